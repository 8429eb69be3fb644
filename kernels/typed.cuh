// What typed.cu and its launcher, internal/cuda/typed.go, agree on beside constants.cuh.
#pragma once
#include "choose.cuh"
#include "typed_constants.cuh"

// A type of vertices. Mirrors typedKind in internal/cuda/typed.go.
struct TypedKind {
  u64 nodes, seeds;
  u64 map_at, list_at;  // where its words of the map begin, and its vertices by their numbers
};

// A type of edges. Mirrors typedRelation.
struct TypedRelation {
  const void *indptr, *indices, *edge_ids;
  u64 num_rows, num_edges, excluded_at, num_excluded;
  u64 salt;
  u32 indptr_bits, edge_id_bits, out_edge_bits, src, dst, unused;
};

// Mirrors typedArgs; loading compares the sizes.
struct TypedArgs {
  const TypedKind* kinds;
  const TypedRelation* relations;
  const long long* fanouts;  // of each relation those of its hops, outermost first
  const u64* excluded;       // CSC positions to sample around, of each relation ascending
  const void* seeds;         // those of the first type, then those of the second, and so on
  u64* map;                  // a word for every vertex of every type
  u64* counts;               // of the seeds, then of each hop: 2 for each type or relation, zero at the launch
  ulonglong2* rows;          // per row of a hop: first CSC position, degree
  void* nodes;               // the vertices of each type by their numbers
  u32* firsts;               // per 32 edges of a hop: which are first occurrences
  u32* arrived;              // the meetings' counter
  u64* slots;                // two rows of gridDim.x, which take turns
  char* out;                 // the batch; layout of batch.TypedLayout
  u64* report;               // status, detail and the batch's words, in memory that the host sees
  u64* bad_seed;             // the lowest seed out of range; ~0 if none
  u64 out_capacity, row_capacity, edge_capacity, num_seeds;  // bytes, rows, edges of a hop, seeds
  u32 hops, types, num_relations, seed_bits;
  u32 replace, only_new;  // only_new: a hop draws the rows that the last one found, else all
  u32 mixed;              // whether rows draw by their relation too
  u32 direct;             // the largest fanout whose choices stand in shared memory
  u32 key0, key1, batch0, batch1, tag, unused;
};

// The state of a row for edges of a type, whose hash is the salt. Go twin: rng.OfType.
__device__ __forceinline__ u64 state_of_type(u64 state, u64 salt) { return mix(state ^ salt); }
