#include "program/result.cuh"
__device__ __forceinline__ void steps(Machine& m) {
  List seeds;
  m.sync();
  if (!m.seeds(seeds, true)) return;
  __shared__ List l0;
  m.put(l0, seeds);
  m.meet();
  __shared__ Edges e2;
  __shared__ List d2;
  __shared__ Draws w2;
  m.sync();
  if (!unique(m, d2, l0, true, w2, DrawsAbout{Uniform{3, false}, 0})) return;
  m.sync();
  if (!neighbors(m, e2, d2, w2, Claims{true, l0})) return;
  __shared__ List l3;
  m.put(l3, List{e2.n, e2.row});
  m.meet();
  __shared__ List l4;
  __shared__ Ranges w5;
  m.sync();
  if (!unite(m, l4, l0, l3, true, w5, true)) return;
  __shared__ Edges e5;
  __shared__ const u32* c5;
  if (!cross(m, e5, c5, l4, l4, w5)) return;
  auto v5 = [&](u32 i) -> double { return m.named<ARRAY_0>(0, m.edge_id(e5.place[i])); };
  Batching b(m, 1, 0);
  m.sync();
  if (!block_in_place(m, b, 0, l4.n, e5, [&](u32 i) { return m.first(e5.row[i]); }, true, v5)) return;
  m.sync();
  if (!subgraph_vertices(m, b, l4, seeds)) return;
  m.sync();
  if (!b.end()) return;
}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  steps(m);
  m.end();
}
