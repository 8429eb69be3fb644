// The argument structs that neighbor.cu shares with its launcher, internal/engine/cuda/neighbor.go,
// in addition to common/constants.cuh.
#pragma once
#include "common/choose.cuh"
#include "common/grid.cuh"
#include "common/header.cuh"

#define WARPS (THREADS / 32)
#define LARGE_HOP (1ull << 16)  // rows from which on all are dealt anew
#define BATCH 2                 // loads that a thread has on their way
#define EDGES 2                 // edges that it gathers at a time
#define SPARE_ROUND 8           // spare draws of a row by weight that are made together
#define SPARE_DRAWS 1024        // and of all rows of a tile
#define KEPT 2                  // chunks of 32 edges that a warp keeps in registers over an exchange

// What is of one batch alone. Mirrors neighborBatch in internal/engine/cuda/neighbor.go; loading compares the
// sizes of Args and ManyArgs.
struct Batch {
  const void* seeds;
  void* map;          // a word for every vertex: the tag above the rank
  u32* arrived;       // the meetings' counter
  ulonglong2* slots;  // two rows of gridDim.x, which take turns
  ulonglong2* rows;   // per row of a hop: first CSC position, degree
  void* nodes;        // per row its vertex
  u32* firsts;        // per 32 edges of a hop: which are first occurrences
  char* out;          // the batch; layout of internal/batch
  u64* report;        // status, detail and the batch's header, in memory that the host sees
  u64* bad_seed;      // the lowest seed out of range; ~0 if none
  u64 out_capacity, row_capacity, edge_capacity;  // bytes, rows, edges of a hop
  u64 num_seeds;
  u32 seed_bits, tag, key0, key1, batch0, batch1;
  u32 shift, unused;  // bits of a rank in a map of 32-bit words
};

// Mirrors neighborArgs.
struct Args {
  Batch batch;
  const void *indptr, *indices, *edge_ids;
  const u64* excluded;  // CSC positions to sample around, ascending
  u64* pairs;           // bins of (vertex, rank), BIN_ROOM each
  u32* fills;           // how many pairs a bin has got; zero between launches
  u32* answers;         // per edge of a binned hop: the lowest rank of its vertex; of a disjoint batch: its slot
  u64* keys;            // of a disjoint batch: per slot its tree and vertex; ~0: free
  u32* trees;           // and per row its tree
  u64 pair_capacity;
  u64 bin_from;         // edges from which on a hop is binned
  u64 known_from;       // likewise, may look for vertices that have numbers
  u64 num_rows, num_nodes, num_edges, num_excluded;
  u32 indptr_bits, edge_id_bits, out_edge_bits;
  u32 hops, replace, direct;  // direct: the largest fanout whose choices stand in shared memory
  u32 only_new;                // a hop draws the rows that the last one found, else all
  u32 table_bits, tree_shift;  // of a disjoint batch: log2 of its slots; a key is tree << tree_shift | vertex
  long long fanouts[MOST_HOPS];  // outermost first
  const u64 *alias, *sums;       // per edge, of a graph with weights: rng.Weights
};

// Mirrors manyArgs. Several batches in one launch: row y of the grid makes batches[y], in place of
// all.batch. Together below the 4 KiB that every driver takes.
struct ManyArgs {
  Args all;
  Batch batches[MOST_BATCHES];
};

// What most batches do not need is left out of the kernel that they run, since its registers and its
// code would slow them down. WITH_ALL: any fanout, exclusions, rows drawn once. WITH_TREES: that, and
// for each seed a tree of its own. The map of a PLAIN kernel has words of 32 bits, since caches hold
// more of it then, that of the others 64. WEIGHTED and after it: the same four, whose rows draw by weight.
enum Kind { PLAIN, WITH_BINS, WITH_ALL, WITH_TREES, WEIGHTED, WEIGHTED_BINS, WEIGHTED_ALL, WEIGHTED_TREES };

// What a block knows beside its registers.
struct Shared {
  Meeting meeting;
  SumSpace sums[2];
  u32 parts[2][2][32];
  u64 states[THREADS];
  // Of the tile's rows: first CSC position, first edge in the hop, degree, edges to take.
  u64 starts[THREADS], degrees[THREADS];
  u32 offsets[THREADS], takes[THREADS];
};
struct TreesShared : Shared {
  u32 trees[THREADS];
};
// With weights, of each row: a bit for each choice that is open; how many spare draws were made, above a bit
// for each of the last ones that is new; the rows that have open choices; spare draws, whose they are, and where
// each row's begin; and each row's edges, excluded ones too.
struct WeightedShared : Shared {
  u32 open[THREADS], spare[THREADS], listed[2], limit[2];
  unsigned short list[THREADS], first[THREADS], owner[SPARE_DRAWS];
  u32 draws[SPARE_DRAWS];
};
struct WeightedAnyShared : WeightedShared {
  u64 edges[THREADS];
  u32 trees[THREADS];
};

// A block's part of n things of its batch, from a multiple of `unit` on; all but the last parts are alike.
struct Slice {
  u32 lo, hi;
};
__device__ __forceinline__ Slice slice(u32 n, u32 unit) {
  u32 part = (n / gridDim.x + unit) & ~(unit - 1), lo = min((u64)part * blockIdx.x, (u64)n);
  return Slice{lo, (u32)min((u64)lo + part, (u64)n)};
}
