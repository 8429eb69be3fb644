// What neighbor.cu and its launcher, internal/cuda/neighbor.go, agree on: constants, arguments, report.
#pragma once
#include "grid.cuh"

#define THREADS 512
#define MOST_HOPS 16
#define LARGE_HOP (1ull << 18)  // rows from which on all are dealt anew
#define DIRECT 32               // the largest fanout whose choices a thread keeps in shared memory

// Mirrors neighborArgs in internal/cuda/neighbor.go; loading compares the sizes.
struct Args {
  const void *indptr, *indices, *edge_ids, *seeds;
  u64* map;           // a word for every vertex
  u32* arrived;       // the barrier's counter
  ulonglong2* slots;  // two rows of gridDim.x, which take turns
  ulonglong2* rows;   // per row of a hop: first CSC position, degree
  u32* firsts;        // per 32 edges of a hop: which are first occurrences
  char* out;          // the batch; layout of internal/batch
  u64* report;        // status, detail and the batch's header, in memory that the host sees
  u64* bad_seed;      // the lowest seed out of range; ~0 if none
  u64 out_capacity, row_capacity, edge_capacity;  // bytes of out, rows of rows, edges of firsts
  u64 num_rows, num_nodes, num_edges, num_seeds, node_bound;
  u32 indptr_bits, edge_id_bits, out_edge_bits, seed_bits;
  u32 hops, replace, tag, key0, key1, batch0, batch1;
  long long fanouts[MOST_HOPS];  // outermost first
};

enum { HEADER_WORDS = 16, BLOCK_WORDS = 8 };
enum { OK = 1, SEED_OUT_OF_RANGE = 2, TOO_SMALL = 3, TOO_MANY_EDGES = 4 };

// What a block knows beside its registers.
struct Shared {
  BlockParts parts[4];
  u64 states[THREADS];
  // Of the tile's rows: first CSC position, first edge in the hop, degree, edges to take, state.
  u64 starts[THREADS], offsets[THREADS], degrees[THREADS];
  u32 takes[THREADS];
};

__device__ __forceinline__ u64 align64(u64 n) { return (n + 63) & ~63ull; }
// The block's part of n edges begins at a multiple of 32, so that a warp's ballot is a word of firsts.
__device__ __forceinline__ u64 slice_begin(u64 n) { return (n * blockIdx.x / gridDim.x) & ~31ull; }
__device__ __forceinline__ u64 slice_end(u64 n) {
  return blockIdx.x + 1 == gridDim.x ? n : (n * (blockIdx.x + 1) / gridDim.x) & ~31ull;
}

__device__ __forceinline__ u64 read(const void* p, u32 bits, u64 i) {
  return bits == 32 ? (u64)(long long)((const int*)p)[i] : (u64)((const long long*)p)[i];
}
