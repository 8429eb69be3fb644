// The argument structs that hetero.cu shares with its launcher, internal/engine/cuda/hetero.go, in
// addition to common/constants.cuh.
#pragma once
#include "common/choose.cuh"
#include "common/header.cuh"

// A type of vertices. Mirrors heteroNodeType in internal/engine/cuda/hetero.go.
struct HeteroNodeType {
  u64 nodes, seeds;
  u64 map_at, list_at;  // where its words of the map begin, and its vertices by their numbers
};

// A type of edges. Mirrors heteroRelation.
struct HeteroRelation {
  const void *indptr, *indices, *edge_ids;
  u64 num_rows, num_edges, excluded_at, num_excluded;
  u64 salt;
  u32 indptr_bits, edge_id_bits, out_edge_bits, src, dst, unused;
  const u64 *alias, *sums;  // per edge, where rows draw by weight: rng.Weights; else null
  const long long* keys;    // of the times of its edges, by position, ascending in each row; null: any time
};

// Mirrors heteroArgs; loading compares the sizes.
struct HeteroArgs {
  static constexpr bool CHOOSES = false;
  const HeteroNodeType* kinds;
  const HeteroRelation* relations;
  const long long* fanouts;  // of each relation those of its hops, outermost first
  const u64* excluded;       // CSC positions to sample around, of each relation ascending
  const void* seeds;         // those of the first type, then those of the second, and so on
  u64* map;                  // a word for every vertex of every type
  u64* counts;               // of the seeds, then of each hop: 2 for each type or relation
  ulonglong2* rows;          // per row of a hop: first CSC position, degree
  void* nodes;               // the vertices of each type by their numbers
  u32* firsts;               // per 32 edges of a hop: which are first occurrences
  u32* arrived;              // the meetings' counter
  u64* slots;                // two rows of gridDim.x, which take turns
  u64* keys;                 // of a disjoint batch: per slot its tree and vertex; ~0: free. Else null
  u32* trees;                // its trees beside nodes
  u32* edge_slots;           // and the slots of a hop's edges; two hops take turns
  const long long* seed_times;  // a key for each seed
  long long* bounds;         // of a batch with times: what bounds the edges of nodes; else null
  long long* edge_bounds;    // and of the vertices that a hop's edges lead from; two hops take turns
  char* out;                 // the batch; words of batch.Layout
  u64* report;               // status, detail and the batch's words, in memory that the host sees
  u64* bad_seed;             // the lowest seed out of range; ~0 if none
  u64 out_capacity, row_capacity, edge_capacity, num_seeds;  // bytes, rows, edges of a hop, seeds
  u32 hops, types, num_relations, seed_bits;
  u32 replace, only_new;  // only_new: a hop draws the rows that the last one found, else all
  u32 mixed;              // whether rows draw by their relation too
  u32 direct;             // the largest fanout whose choices stand in shared memory
  u32 key0, key1, batch0, batch1, tag;
  u32 table_bits, tree_shift;  // of a disjoint batch: log2 of its slots; a key is tree << tree_shift | vertex
  u32 before, carry, latest, windowed, float_times;  // times.Rule: edges before a bound only, and so on
  u32 factors, unused;    // factors: whether edges have some
  double window;  // how long before a bound an edge may be, where windowed
};

// Go twins: times.Key, times.Time.
__device__ __forceinline__ long long key_of(double t) {
  const long long LEAST = (long long)(1ull << 63);
  if (t == 0) return 0;
  long long bits = __double_as_longlong(t);
  return bits < 0 ? LEAST - bits : bits;
}
__device__ __forceinline__ double time_of(long long key) {
  const long long LEAST = (long long)(1ull << 63);
  return __longlong_as_double(key < 0 ? LEAST - key : key);
}

// The state of a row for edges of a type, whose hash is the salt. Go twin: rng.OfType.
__device__ __forceinline__ u64 state_of_type(u64 state, u64 salt) { return mix(state ^ salt); }
