#include "program_result.cuh"
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  __shared__ ProgramShared shared;
  Machine m(a, shared);
  List seeds;
  m.sync();
  if (!m.seeds(seeds)) return m.end();
  List l0;
  l0 = seeds;
  Edges e2;
  List d2;
  m.sync();
  if (!unique(m, d2, l0)) return m.end();
  m.sync();
  if (!neighbors(m, e2, d2, 3, false, 0)) return m.end();
  m.sync();
  if (!number_rows(m, e2)) return m.end();
  List l3;
  l3 = e2.rows;
  List l4;
  m.sync();
  if (!join(m, l4, l0, l3, true)) return m.end();
  Edges e5;
  const u32* c5;
  m.sync();
  if (!cross(m, e5, c5, l4, l4)) return m.end();
  auto v5 = [&](u32 i) -> double { return m.named(0, m.edge_id(e5.place[i])); };
  Batching b(m, 1, 0);
  m.sync();
  m.claim(l4.n, l4);
  m.sync();
  if (!block(m, b, 0, l4.n, l4.n, e5, [](u32 c) { return c; }, [&](u32 i) { return m.first(e5.row[i]); }, true, v5)) return m.end();
  m.sync();
  if (!subgraph_vertices(m, b, l4, seeds)) return m.end();
  m.sync();
  if (!b.end()) return m.end();
  m.end();
}
