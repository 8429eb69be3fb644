#include "program/result.cuh"
__device__ __forceinline__ void steps(Machine& m) {
  List seeds;
  m.sync();
  if (!m.seeds(seeds, true)) return;
  __shared__ List l0;
  m.put(l0, seeds);
  m.meet();
  __shared__ Edges e1;
  __shared__ List d1;
  __shared__ Ranges w1;
  m.sync();
  if (!unique(m, d1, l0, true, w1, false)) return;
  m.sync();
  if (!slice(m, e1, d1, w1, true)) return;
  auto v1 = [&](u32 i) -> double { return m.named<ARRAY_0>(0, m.edge_id(e1.place[i])); };
  const double* s2;
  m.sync();
  if (!labor(m, s2, e1, 3, 2, v1, v1)) return;
  auto v2 = [&](u32 i) -> double { return s2[i]; };
  auto v3 = [&](u32 i) -> double { return op_mul(v1(i), v2(e1.column[i])); };
  const double* s4;
  m.sync();
  if (!extreme_groups(m, s4, e1.rows.n, e1.n, true, [&](u32 i) -> u32 { return e1.number[i]; }, v3)) return;
  auto v4 = [&](u32 i) -> double { return s4[i]; };
  auto v5 = [&](u32 i) -> double { return v4(e1.number[i]); };
  const double* s6;
  m.sync();
  if (!labor(m, s6, e1, -1, 6, v1, v5)) return;
  auto v6 = [&](u32 i) -> double { return s6[i]; };
  Batching b(m, 0, 1);
  Occurrences o;
  m.sync();
  if (!room(m, o, (u64)seeds.n)) return;
  occur(m, o, seeds.n, seeds);
  __shared__ u32 numbered;
  m.sync();
  if (!number(m, o, numbered)) return;
  m.loosen();
  m.sync();
  if (!vertices(m, b, o, numbered, seeds, o.before[seeds.n])) return;
  m.sync();
  if (!extra_values(m, b, 0, 0, e1.columns.n, v6)) return;
  m.sync();
  if (!b.end()) return;
}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  steps(m);
  m.end();
}
