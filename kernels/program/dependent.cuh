// Dependent rounding: selects edges of each column by their chances, as many as the chances sum up
// to.
//
// Source: R. Gandhi et al., "Dependent rounding and its applications to approximation algorithms",
// J. ACM 53 (2006).
//
// Two open edges are compared, and one of them is decided. A lane has every 32nd edge of its column,
// and then the last open edges of the lanes are compared, as docs/developer/operator-rules.md defines: a
// hub of 100,000 edges is a chain of 3,100 comparisons.
//
// Go twin: internal/program/run/dependent.go.
#pragma once
#include "program/choose.cuh"

// Chances are integers of which WHOLE is 1. Within SLACK of an integer a sum is that integer, since sums of doubles are none.
const u64 WHOLE = 1ull << 62, SLACK = WHOLE >> 24;

// A chance that edges have left between them: edge i's. 0: none.
struct Unit {
  u64 chance;
  u32 i;
  // Settles one of two, and leaves what the other has.
  __device__ __forceinline__ void meet(Unit b, u64 draw, u32* chosen) {
    u64 sum = chance + b.chance;
    if (sum < WHOLE) {
      u32 out = below(draw, sum) < chance ? b.i : i;
      chosen[out] = 0, i = i ^ b.i ^ out, chance = sum;
      return;
    }
    u32 in = below(draw, 2 * WHOLE - sum) < WHOLE - b.chance ? i : b.i;
    chosen[in] = 1, i = i ^ b.i ^ in, chance = sum - WHOLE;
    if (!chance) chosen[i] = 0;
  }
};

// Edges of each column by their chances p. With four counters.
template <class P>
__device__ __forceinline__ bool dependent(Machine& m, Edges& e, const Edges& c, u32 node, u32 site, P p) {
  u32* worst = m.counters(2);
  u64* states = column_states(m, c.columns, site);
  u32* chosen = m.take<u32>(c.n);
  if (!m.well()) return false;
  m.each(c.n, [&](u32 i) {
    double x = p(i);
    m.look(worst, i, x > 1 ? -x : x);
  });
  m.barrier();
  if (!m.looked(worst, node, [&](u32 i) { return c.columns(c.column[i]); }, p)) return false;
  m.each_warp(c.columns.n, [&](u32 column) {
    u32 lo = c.begins[column], hi = c.begins[column + 1], lane = threadIdx.x & 31;
    u64 state = states[column];
    Unit open{0, 0};
#pragma unroll 1
    for (u32 i = lo + lane; i < hi; i += 32) {
      Unit own{(u64)__dmul_rn(p(i), (double)WHOLE), i};
      if (own.chance == 0 || own.chance == WHOLE) chosen[i] = own.chance != 0;
      else if (!open.chance) open = own;
      else open.meet(own, draw_bits(state, i - lo), chosen);
    }
#pragma unroll 1
    for (u32 h = 16; h; h /= 2) {
      Unit other{__shfl_down_sync(~0u, open.chance, h), __shfl_down_sync(~0u, open.i, h)};
      if (lane >= h || !other.chance) continue;
      if (!open.chance) open = other;
      else open.meet(other, draw_bits(state, lane + h), chosen);
    }
    if (lane == 0 && open.chance)
      chosen[open.i] = open.chance >= SLACK && (open.chance > WHOLE - SLACK || draw_bits(state, 0) >> 2 < open.chance);
  });
  m.barrier();
  return filter(m, e, c, [&](u32 i) -> u32 { return chosen[i]; });
}
