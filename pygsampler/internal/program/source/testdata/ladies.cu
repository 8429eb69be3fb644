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
  const double x2 = 0x1p+01;
  auto v3 = [&](u32 i) -> double { return op_pow(v1(i), x2); };
  GroupSums g4;
  if (!sum_groups(m, g4, e1.rows.n, e1.n, 4, false, [&](u32 i) -> u32 { return e1.number[i]; }, v3)) return;
  auto v4 = [&](u32 i) -> double { return group_sum(g4, i); };
  __shared__ Edges e5;
  m.sync();
  if (!collective(m, e5, e1, e1.rows.n, 64, 5, 0, true, Claims{true, e1.columns}, e1.rows, [&](u32 i) -> u32 { return e1.number[i]; }, v4)) return;
  auto v5 = [&](u32 i) -> double { return v1(e5.parent[i]); };
  const double* s6;
  if (!store(m, s6, e5.n, [&](u32 i) -> double { return op_div(v5(i), v4(e1.number[e5.parent[i]])); })) return;
  auto v6 = [&](u32 i) -> double { return s6[i]; };
  const double* s7;
  m.sync();
  if (!sum_columns(m, s7, e5, false, v6)) return;
  auto v7 = [&](u32 i) -> double { return s7[i]; };
  auto v8 = [&](u32 i) -> double { return op_div(v6(i), v7(e5.column[i])); };
  __shared__ List l9;
  m.put(l9, e5.rows);
  m.meet();
  Batching b(m, 1, 1);
  __shared__ Nested o;
  __shared__ u32 numbered;
  m.sync();
  if (!nest(m, o, e5.columns, e5.rows, numbered, true)) return;
  m.sync();
  if (!block_in_place(m, b, 0, numbered, e5, [&](u32 i) { return o.number(m, e5.row[i]); }, true, v8)) return;
  m.sync();
  if (!vertices(m, b, o, numbered, seeds, e5.columns.n)) return;
  m.sync();
  if (!extra_list(m, b, 1, 0, l9)) return;
  m.sync();
  if (!b.end()) return;
}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  steps(m);
  m.end();
}
