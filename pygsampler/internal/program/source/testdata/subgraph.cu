#include "program_result.cuh"
__device__ __forceinline__ void steps(Machine& m) {
  List seeds;
  m.sync();
  if (!m.seeds(seeds)) return;
  List l0;
  l0 = seeds;
  Edges e2;
  List d2;
  m.sync();
  if (!unique(m, d2, l0)) return;
  m.sync();
  if (!neighbors(m, e2, d2, 3, false, 0)) return;
  m.sync();
  if (!number_rows(m, e2)) return;
  List l3;
  l3 = e2.rows;
  List l4;
  m.sync();
  if (!join(m, l4, l0, l3, true)) return;
  Edges e5;
  const u32* c5;
  m.sync();
  if (!cross(m, e5, c5, l4, l4)) return;
  auto v5 = [&](u32 i) -> double { return m.named<ARRAY_0>(0, m.edge_id(e5.place[i])); };
  Batching b(m, 1, 0);
  Destinations dst0;
  m.sync();
  if (!dst0.room(m, l4.n)) return;
  m.claim(l4.n, l4);
  dst0.count(m, l4.n, e5, [](u32 c) { return c; });
  m.loose = true;
  Destinations none1;
  Destinations none2;
  m.sync();
  if (!destinations(m, dst0, none1, none2)) return;
  m.sync();
  if (!block(m, b, 0, l4.n, dst0, e5, [](u32 c) { return c; }, [&](u32 i) { return m.first(e5.row[i]); }, true, v5)) return;
  m.sync();
  if (!subgraph_vertices(m, b, l4, seeds)) return;
  m.sync();
  if (!b.end()) return;
}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  __shared__ ProgramShared shared;
  Machine m(a, shared);
  steps(m);
  m.end();
}
