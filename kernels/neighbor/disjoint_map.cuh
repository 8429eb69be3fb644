// The map of disjoint trees: a number belongs to a pair of tree and node, since trees share nothing,
// and the words of the map are in an open-addressing table of pairs. The host clears it before the
// launch, and it is at most half full.
//
// Go twin: disjointMap in internal/engine/cpu/disjoint.go.
#pragma once
#include "neighbor/neighbor.cuh"

// The slot of a pair, a new one where it has none.
template <class Args>
__device__ __noinline__ u32 slot_of(const Args& a, u32 tree, u64 v) {
  const u64 FREE = ~0ull;
  u64 key = (u64)tree << a.tree_shift | v;
  u32 last = (1u << a.table_bits) - 1, at = (u32)(key * GOLDEN >> (64 - a.table_bits));
  for (;; at = (at + 1) & last) {
    u64 old = load_relaxed(a.keys + at);
    if (old == FREE) old = atomicCAS(a.keys + at, FREE, key);
    if (old == FREE || old == key) return at;
  }
}
template <class Args>
__device__ __forceinline__ u32 tree_of(const Args& a, u32 slot) { return (u32)(load_relaxed(a.keys + slot) >> a.tree_shift); }
