// The argument struct that queue.cu shares with its launcher, internal/research/cuda/queue.go, in
// addition to research/constants.cuh, and the shared memory of a block of the kernel.
#pragma once
#include "common/choose.cuh"
#include "common/grid.cuh"
#include "common/header.cuh"
#include "research/constants.cuh"

#define WARPS (QUEUE_THREADS / 32)
#define ITEMS 4                  // edges of a thread whose loads are under way together
#define CHUNK (QUEUE_THREADS * ITEMS)  // edges of a block between two publications

// Mirrors queueArgs in internal/research/cuda/queue.go; loading compares the sizes. Sampled nodes have a
// number of arrival, called t here; tasks have a slot of the queue.
struct Args {
  const void *indptr, *indices, *edge_ids, *seeds;
  const u64* excluded;  // CSC positions to sample around, ascending
  u32* claims;          // two words a vertex: tag << 8 | lowest hop it is queued from; t
  u64* counts;          // QUEUE_PROGRESS and so on; zero between launches, QUEUE_LOWEST_BAD ~0
  u32* arrived;         // the meetings' counter
  u32* slots;           // two times MOST_HOPS + 1 rows of gridDim.x, which take turns
  u64* queue;           // per slot (vertex << 8 | hop) + 1; zero between launches
  u64* rows;            // per slot the first of its edges in picked, and how many << 32
  u64* table;           // per t and hop the same
  u64* keys;            // per t: where it occurred first, or its level; see queue.cu
  void* found;          // per t: the vertex
  u32* numbers;         // per t: the vertex's number in the batch
  u32* order;           // per number: t
  void* picked;         // sampled edges as their tasks ran: the neighbour
  void* picked_ids;     // and the edge id, out_edge_bits wide
  void* kept;           // the seeds, which may come from the host's memory and are read there once
  char* out;            // the batch; layout of internal/batch
  u64* report;          // status, detail and the batch's header, in memory that the host sees
  u64 out_capacity, task_capacity, found_capacity, edge_capacity;  // bytes; slots, t's, edges below 2^31
  u64 num_rows, num_nodes, num_edges, num_seeds, num_excluded;
  u32 indptr_bits, edge_id_bits, out_edge_bits, seed_bits;
  u32 hops, replace, ordered, widest, fewest, fetch, tag, key0, key1, batch0, batch1;
  // widest: the largest fanout up to DIRECT. fewest: the fewest tasks that a block asks for, at most
  // QUEUE_TILE. fetch: how many it asks for, at most as many; 0: by the backlog. tag: 24 bits.
  long long fanouts[MOST_HOPS];  // outermost first
};

// Why blocks stop.
enum { STOP_FULL = 1, STOP_BAD_SEED = 2 };

// What becomes of a row's edges.
enum { WHOLE, NARROW, WIDE };

struct Shared {
  Meeting meeting;
  u64 parts[2][32];
  u64 ticket, ticket_end;  // the block's slots, the next one first
  u32 ready, stopped, done;
  u64 slot, arrival, edge;  // what the block has got for its tasks, vertices and edges
  u64 tail;                 // slots published when the block last published
  // Of the tile's rows.
  u32 offsets[QUEUE_TILE];  // first edge in the tile
  u64 firsts[QUEUE_TILE];   // first CSC position; later the first edge in picked
  u64 states[QUEUE_TILE], degrees[QUEUE_TILE];
  u32 takes[QUEUE_TILE];
  unsigned char hops[QUEUE_TILE], kinds[QUEUE_TILE];
  // Of an exchange: what this block gives; sums over earlier blocks, and over all.
  u32 mine[MOST_HOPS + 1], before[MOST_HOPS + 1], total[MOST_HOPS + 1];
  u32 ends[MOST_HOPS + 1];  // vertices that a hop, or one before it, has found; [0]: seeds
  u32 next[MOST_HOPS + 1];  // the next number of each when they are numbered as they arrived
};

// The block's part of n things.
struct Part {
  u32 lo, hi;
  __device__ __forceinline__ explicit Part(u32 n) {
    u32 each = n / gridDim.x, more = n % gridDim.x;
    lo = each * blockIdx.x + min(blockIdx.x, more);
    hi = lo + each + (blockIdx.x < more);
  }
};

// One store, which others see whole; nothing else has to be seen with it.
__device__ __forceinline__ void store_relaxed(u64* p, u64 value) { *(volatile u64*)p = value; }

// Functions that are not inlined: with them the kernel is half as long, and code that is not in the
// instruction cache takes longer than a call.

// The sum of x over the threads before this one, and over all.
struct Before {
  u64 before, all;
};
__device__ __noinline__ Before threads_before(u64 x, u64* parts) {
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u64 inclusive = x;
#pragma unroll
  for (int d = 1; d < 32; d <<= 1) {
    u64 y = __shfl_up_sync(~0u, inclusive, d);
    if (lane >= d) inclusive += y;
  }
  if (lane == 31) parts[warp] = inclusive;
  __syncthreads();
  u64 part = lane < WARPS ? parts[lane] : 0, earlier = lane < warp ? part : 0;
#pragma unroll
  for (int d = 16; d; d >>= 1) {
    part += __shfl_xor_sync(~0u, part, d);
    earlier += __shfl_xor_sync(~0u, earlier, d);
  }
  return Before{earlier + inclusive - x, part};
}

__device__ __noinline__ void barrier(Shared& s) { grid_barrier(s.meeting); }

// A barrier of all blocks that also adds up: every block gives mine[0, n).
__device__ __noinline__ void add_up(Shared& s, u32* slots, u32 n) {
  u32 lane = threadIdx.x & 31;
  __syncthreads();
  if (threadIdx.x < n) slots[threadIdx.x * gridDim.x + blockIdx.x] = s.mine[threadIdx.x];
  grid_barrier(s.meeting);
  for (u32 i = threadIdx.x >> 5; i < n; i += WARPS) {
    u32 earlier = 0, all = 0;
    for (u32 b = lane; b < gridDim.x; b += 32) {
      u32 x = __ldcg(slots + i * gridDim.x + b);
      all += x;
      if (b < blockIdx.x) earlier += x;
    }
    for (int d = 16; d; d >>= 1) {
      all += __shfl_xor_sync(~0u, all, d);
      earlier += __shfl_xor_sync(~0u, earlier, d);
    }
    if (lane == 0) s.before[i] = earlier, s.total[i] = all;
  }
  __syncthreads();
}

// Of excluded positions; few batches have any.
__device__ __noinline__ u64 excluded_in(const u64* excluded, u64 n, u64 start, u64 end) {
  return excluded_below(excluded, n, end) - excluded_below(excluded, n, start);
}
__device__ __noinline__ u64 kept(const u64* excluded, u64 n, u64 start, u64 pick) {
  return kept_position(excluded, n, start, pick);
}
