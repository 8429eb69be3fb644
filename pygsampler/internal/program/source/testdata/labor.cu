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
  if (!number_rows(m, e1)) return m.end();
  auto v1 = [&](u32 i) -> double { return m.named(0, m.edge_id(e1.place[i])); };
  const double* s2;
  if (!labor(m, s2, e1, 3, 2, v1, v1)) return m.end();
  auto v2 = [&](u32 i) -> double { return s2[i]; };
  auto v3 = [&](u32 i) -> double { return op_mul(v1(i), v2(e1.column[i])); };
  const double* s4;
  if (!extreme_groups(m, s4, e1.rows.n, e1.n, true, [&](u32 i) -> u32 { return e1.number[i]; }, v3)) return m.end();
  auto v4 = [&](u32 i) -> double { return s4[i]; };
  auto v5 = [&](u32 i) -> double { return v4(e1.number[i]); };
  const double* s6;
  if (!labor(m, s6, e1, -1, 6, v1, v5)) return m.end();
  auto v6 = [&](u32 i) -> double { return s6[i]; };
  Batching b(m, 0, 1);
  Occurrences o;
  if (!room(m, o, (u64)seeds.n)) return m.end();
  occur(m, o, seeds.n, seeds);
  u32 numbered;
  if (!number(m, o, numbered)) return m.end();
  if (!vertices(m, b, o, numbered)) return m.end();
  if (!extra_values(m, b, 0, 0, e1.columns.n, v6)) return m.end();
  if (!b.end()) return m.end();
  m.end();
}
