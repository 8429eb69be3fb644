#include "program/result.cuh"
__device__ __forceinline__ void steps(Machine& m) {
  List seeds;
  m.sync();
  if (!m.seeds(seeds, true)) return;
  __shared__ List l0;
  m.put(l0, seeds);
  m.meet();
  __shared__ List l1;
  Alone w1;
  m.sync();
  if (!unique(m, l1, l0, true, w1, 0)) return;
  __shared__ List l3;
  m.put(l3, m.all());
  m.meet();
  __shared__ Edges e4;
  __shared__ Ranges w4;
  m.sync();
  if (!ranges(m, w4, l3, false)) return;
  __shared__ const u32* c4;
  if (!cross(m, e4, c4, l1, l3, w4)) return;
  auto v4 = [&](u32 i) -> double { return m.named<ARRAY_0>(0, m.edge_id(e4.place[i])); };
  Batching b(m, 1, 0);
  Occurrences o;
  m.sync();
  if (!room(m, o, (u64)seeds.n + e4.columns.n + e4.n)) return;
  occur(m, o, seeds.n, seeds);
  occur(m, o, e4.columns.n, e4.columns);
  const u32 from0 = o.n;
  occur(m, o, e4.n, [&](u32 i) { return e4.row[i]; });
  const u32 to0 = o.n;
  Destinations dst0;
  if (!dst0.room(m, from0)) return;
  __shared__ u32 numbered;
  m.sync();
  if (!number(m, o, numbered)) return;
  dst0.count(m, o.before[from0], e4, [&](u32 c) { return o.before[m.first(e4.columns(c))]; });
  m.loosen();
  Destinations none1;
  Destinations none2;
  m.sync();
  if (!destinations(m, dst0, none1, none2)) return;
  m.sync();
  if (!block(m, b, 0, o.before[to0], dst0, e4, [&](u32 c) { return o.before[m.first(e4.columns(c))]; }, [&](u32 i) { return o.before[m.first(e4.row[i])]; }, true, v4)) return;
  m.sync();
  if (!vertices(m, b, o, numbered, seeds, o.before[seeds.n])) return;
  m.sync();
  if (!b.end()) return;
}
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) program(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  steps(m);
  m.end();
}
