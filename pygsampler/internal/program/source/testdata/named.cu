#include "program/result.cuh"
__device__ __forceinline__ void steps(Machine& m) {
  List seeds;
  m.sync();
  if (!m.seeds(seeds, true)) return;
  __shared__ List l0;
  m.put(l0, seeds);
  m.meet();
  __shared__ List l1;
  __shared__ Ranges w2;
  m.sync();
  if (!unique(m, l1, l0, true, w2, false)) return;
  Sieve e2;
  m.sync();
  sieve(e2, l1, w2);
  auto v3 = [&](u32 i) -> double { return m.named<ARRAY_0>(0, m.edge_id(e2.place[i])); };
  auto v4 = [&](u32 i) -> double { return m.named<ARRAY_1>(1, i); };
  auto v5 = [&](u32 i) -> double { return op_add(v3(i), v4((u32)e2.row[i])); };
  const double x6 = -0x1.999999999999ap-04;
  auto v7 = [&](u32 i) -> double { return op_le(v5(i), x6); };
  __shared__ Edges e8;
  m.sync();
  if (!sift(m, e8, e2, [&](u32 i) -> u32 { return v7(i) != 0; })) return;
  auto v8 = [&](u32 i) -> double { return m.named<ARRAY_2>(2, m.edge_id(e8.place[i])); };
  Batching b(m, 1, 1);
  __shared__ Nested o;
  __shared__ u32 numbered;
  m.sync();
  if (!nest(m, o, e8.columns, List{e8.n, e8.row}, numbered, false)) return;
  m.sync();
  if (!block_in_place(m, b, 0, numbered, e8, [&](u32 i) { return o.number(m, e8.row[i]); }, true, v8)) return;
  m.sync();
  if (!vertices(m, b, o, numbered, seeds, e8.columns.n)) return;
  m.sync();
  if (!extra_values(m, b, 1, 0, m.all().n, v4)) return;
  m.sync();
  if (!b.end()) return;
}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  steps(m);
  m.end();
}
