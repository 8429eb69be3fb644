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
  if (!slice(m, e1, d1, w1, false)) return;
  auto v1 = [&](u32 i) -> double { return m.named<ARRAY_0>(0, m.edge_id(e1.place[i])); };
  auto v2 = [&](u32 i) -> double { return (double)(m.start((u64)i + 1) - m.start(i)); };
  const double* s3;
  m.sync();
  if (!level(m, s3, e1, 3, v1, [&](u32 c) -> double { return v2((u32)e1.columns(c)); })) return;
  auto v3 = [&](u32 i) -> double { return s3[i]; };
  auto v4 = [&](u32 i) -> double { return op_mul(v1(i), v3(e1.column[i])); };
  auto v5 = [&](u32 i) -> double { return (double)(e1.begins[i + 1] - e1.begins[i]); };
  const double* s6;
  m.sync();
  if (!level(m, s6, e1, 6, v4, [&](u32 c) -> double { return v5(c); })) return;
  auto v6 = [&](u32 i) -> double { return s6[i]; };
  __shared__ Edges e7;
  m.sync();
  if (!dependent(m, e7, e1, 7, 0, v4)) return;
  auto v7 = [&](u32 i) -> double { return v1(e7.parent[i]); };
  Batching b(m, 1, 2);
  __shared__ Nested o;
  __shared__ u32 numbered;
  m.sync();
  if (!nest(m, o, e7.columns, List{e7.n, e7.row}, numbered, false)) return;
  m.sync();
  if (!block_in_place(m, b, 0, numbered, e7, [&](u32 i) { return o.number(m, e7.row[i]); }, true, v7)) return;
  m.sync();
  if (!vertices(m, b, o, numbered, seeds, e7.columns.n)) return;
  m.sync();
  if (!extra_values(m, b, 1, 0, e1.columns.n, v3)) return;
  m.sync();
  if (!extra_values(m, b, 1, 1, e1.columns.n, v6)) return;
  m.sync();
  if (!b.end()) return;
}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  steps(m);
  m.end();
}
