#include "program_result.cuh"
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  __shared__ ProgramShared shared;
  Machine m(a, shared);
  List seeds;
  if (!m.seeds(seeds)) return m.end();
  List l0;
  l0 = seeds;
  List l1;
  if (!unique(m, l1, l0)) return m.end();
  Edges e2;
  if (!slice(m, e2, l1)) return m.end();
  auto v2 = [&](u32 i) -> double { return m.named(0, m.edge_id(e2.place[i])); };
  auto v3 = [&](u32 i) -> double { return m.named(1, m.edge_id(e2.place[i])); };
  auto v4 = [&](u32 i) -> double { return m.named(2, i); };
  auto v5 = [&](u32 i) -> double { return op_add(v3(i), v4((u32)e2.row[i])); };
  const double x6 = -0x1.999999999999ap-04;
  auto v7 = [&](u32 i) -> double { return op_le(v5(i), x6); };
  Edges e8;
  if (!filter(m, e8, e2, [&](u32 i) -> u32 { return v7(i) != 0; })) return m.end();
  auto v8 = [&](u32 i) -> double { return v2(e8.parent[i]); };
  Batching b(m, 1, 1);
  Occurrences o;
  if (!room(m, o, (u64)seeds.n + e8.columns.n + e8.n)) return m.end();
  occur(m, o, seeds.n, seeds);
  occur(m, o, e8.columns.n, e8.columns);
  const u32 from0 = o.n;
  occur(m, o, e8.n, [&](u32 i) { return e8.row[i]; });
  const u32 to0 = o.n;
  u32 numbered;
  if (!number(m, o, numbered)) return m.end();
  if (!block(m, b, 0, o.before[to0], o.before[from0], e8, [&](u32 c) { return o.before[m.first(e8.columns(c))]; }, [&](u32 i) { return o.before[m.first(e8.row[i])]; }, true, v8)) return m.end();
  if (!vertices(m, b, o, numbered)) return m.end();
  if (!extra_values(m, b, 1, 0, m.all.n, v4)) return m.end();
  if (!b.end()) return m.end();
  m.end();
}
