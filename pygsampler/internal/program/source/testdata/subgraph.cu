#include "program_result.cuh"
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  __shared__ ProgramShared shared;
  Machine m(a, shared);
  List seeds;
  if (!m.seeds(seeds)) return m.end();
  List l0;
  l0 = seeds;
  Edges e1;
  List d1;
  if (!unique(m, d1, l0)) return m.end();
  if (!slice(m, e1, d1)) return m.end();
  Edges e2;
  if (!individual(m, e2, e1, 3, false, 0)) return m.end();
  if (!number_rows(m, e2)) return m.end();
  List l3;
  l3 = e2.rows;
  List l4;
  if (!join(m, l4, l0, l3, true)) return m.end();
  Edges e5;
  const u32* c5;
  if (!cross(m, e5, c5, l4, l4)) return m.end();
  auto v5 = [&](u32 i) -> double { return m.named(0, m.edge_id(e5.place[i])); };
  Batching b(m, 1, 0);
  m.claim(l4.n, l4);
  if (!block(m, b, 0, l4.n, l4.n, e5, [](u32 c) { return c; }, [&](u32 i) { return m.first(e5.row[i]); }, true, v5)) return m.end();
  if (!subgraph_vertices(m, b, l4, seeds)) return m.end();
  if (!b.end()) return m.end();
  m.end();
}
