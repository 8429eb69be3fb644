// Gathers rows of tables by their ids: out[i] = table[ids[i]], for several tables at once.
//
// A batch needs rows of many arrays: features, labels, edge features. Some are on the device, some
// in page-locked memory of the host or on a peer, and some are partly cached. index_select takes a
// launch per array, and supports neither rows of the host nor a cache. Here all tables are one
// launch, which never waits for the host: row y of the grid processes part y. Rows are copied as
// bytes, so their dtype does not matter.
//
// A warp takes up to 32 consecutive ids, and each lane locates one row: in the cache, in the table,
// or nowhere. Then groups of lanes copy rows, one vector per lane, and a row that is longer than 32
// vectors takes several steps of the whole warp. The steps of all rows of the warp are one
// sequence, of which a lane loads several before it stores the first: the number of loads in flight
// determines the speed, from memory with a latency of a microsecond.
//
// - Vectors are as wide as the addresses allow (16 to 1 bytes), each width an instantiation.
// - The steps of a long row begin at lines of 128 bytes instead of the beginning of the row: each
//   line is requested once, which over a link is the unit of transfer.
// - Rows are read by plain loads. ld.global.nc (__ldg) would be wrong for rows of the host, which
//   others may write while the kernel runs: such a row may be a mixture of old and new bytes, and
//   nothing else happens. Rows stay in the L2, where the next batch finds frequent ones; outputs
//   are evicted first (st.global.cs).
// - Few ids are distributed in smaller groups than 32, so that all warps of the device have work.
//
// Go caller: internal/engine/cuda/gather.go, which chooses all of these parameters. Go twin: the
// loop in gather_test.go.
#include "common/philox.cuh"

typedef unsigned char u8;
typedef unsigned short u16;

// Mirrors gatherPart in internal/engine/cuda/gather.go.
struct GatherPart {
  const void* ids;     // [count], of id_bits, signed
  const char* table;   // [rows][row]
  const char* cached;  // [any][row]; not read where slots is null
  const int* slots;    // [rows]: the place in cached, or -1; null: nothing is cached
  char* out;           // [count][row]
  u64* counts;         // the number of rows from the cache is added; may be null
  u64* bad;            // becomes at most the place of an id outside of [0, rows); may be null
  u64 count, rows;
  u32 row;      // bytes, 1 to 2^26: those of a warp's rows have 32 bits
  u32 id_bits;  // 32 or 64
  u32 width;    // of a vector in bytes: of 16, 8, 4, 2, 1 one that divides row and all addresses of rows
  u32 group;    // 2^group lanes copy a row; 5 where it has more than 32 vectors
  u32 steps;    // of a row
  u32 take;     // ids that a warp takes at a time: a power of 2, at least the rows of a step, at most 32
  u32 blocks;   // that work on the part, at most gridDim.x
};

// Mirrors gatherArgs; loading compares the sizes.
struct GatherArgs {
  GatherPart parts[GATHER_PARTS];
};

// What lanes read that have nothing to read: zeros, which the L1 has. All lanes do read, since of a load that
// only some do ptxas makes one to another register and a move, which waits for it before the next is issued.
__device__ const uint4 gather_nothing = {0, 0, 0, 0};

// Copies the rows of the first n lanes to out: from is where a lane's is, null for a row of zeros.
template <typename V, int AHEAD>
__device__ __forceinline__ void copy_rows(const GatherPart& p, const char* from, char* out, u32 n) {
  u32 lane = threadIdx.x & 31;
  const u64 nothing = (u64)&gather_nothing;
  if (p.group == 0) {
    // Each lane has its row.
    if (lane < n) __stcs((V*)out + lane, __ldca((const V*)(from ? (u64)from : nothing)));
    return;
  }
  // A step of the warp is no longer than a line for narrow vectors.
  const u32 SPAN = 32 * sizeof(V) < 128 ? 32 * sizeof(V) : 128;
  u32 at_once = 32 >> p.group, vectors = p.row / (u32)sizeof(V), before = p.steps > 1 ? SPAN - 1 : 0;
  u32 within = lane & ((1u << p.group) - 1);
  u32 all = ((n + at_once - 1) >> (5 - p.group)) * p.steps;
  u32 row = lane >> p.group, step = 0;  // the lane's row, and the step of it
  for (u32 done = 0; done < all; done += AHEAD) {
    V value[AHEAD];
    u32 to[AHEAD];
    bool on[AHEAD];
#pragma unroll
    for (int c = 0; c < AHEAD; c++) {
      u64 source = __shfl_sync(~0u, (u64)from, row & 31);
      // Below the first vector of the row it wraps around, and is beyond the last one.
      u32 vector = step * 32 + within - ((u32)source & before) / (u32)sizeof(V);
      on[c] = row < n && vector < vectors;
      to[c] = row * p.row + vector * (u32)sizeof(V);
      value[c] = __ldca((const V*)(on[c] && source ? source + vector * (u64)sizeof(V) : nothing));
      if (++step == p.steps) step = 0, row += at_once;
    }
#pragma unroll
    for (int c = 0; c < AHEAD; c++)
      if (on[c]) __stcs((V*)(out + to[c]), value[c]);
  }
}

// The warp's share of a part; returns how many of its rows came from the cache.
template <typename V, int AHEAD>
__device__ __forceinline__ u64 gather_part(const GatherPart& p) {
  u32 lane = threadIdx.x & 31;
  u64 warp = (u64)blockIdx.x * (GATHER_THREADS / 32) + threadIdx.x / 32;
  u64 stride = (u64)p.blocks * (GATHER_THREADS / 32) * p.take, hits = 0;
  for (u64 base = warp * p.take; base < p.count; base += stride) {
    u32 n = p.count - base < p.take ? (u32)(p.count - base) : p.take;
    const char* from = nullptr;
    bool hit = false, outside = false;
    if (lane < n) {
      // A negative id is beyond all rows, too.
      u64 id = p.id_bits == 64 ? (u64)__ldcs((const long long*)p.ids + base + lane)
                               : (u64)(long long)__ldcs((const int*)p.ids + base + lane);
      outside = id >= p.rows;
      if (!outside) {
        int slot = p.slots ? __ldcg(p.slots + id) : -1;
        hit = slot >= 0;
        from = hit ? p.cached + (u64)slot * p.row : p.table + id * p.row;
      }
    }
    hits += __popc(__ballot_sync(~0u, hit));
    u32 all = __ballot_sync(~0u, outside);
    if (p.bad && all && lane == __ffs(all) - 1) atomicMin(p.bad, base + lane);
    copy_rows<V, AHEAD>(p, from, p.out + base * p.row, n);
  }
  return hits;
}

// Blocks to a multiprocessor. Five leave 48 registers a thread, of which none spill; before compute capability
// 8.0 there is room for the threads of four.
#if __CUDA_ARCH__ >= 800
const int GATHER_BLOCKS = 5;
#else
const int GATHER_BLOCKS = 4;
#endif

extern "C" __global__ void __launch_bounds__(GATHER_THREADS, GATHER_BLOCKS) gather(const __grid_constant__ GatherArgs a) {
  __shared__ u64 of_block;
  const GatherPart& p = a.parts[blockIdx.y];
  if (blockIdx.x >= p.blocks) return;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  u64 hits;
  // Narrow vectors are loaded further ahead: they are fewer bytes, and fewer registers.
  switch (p.width) {
    case 16: hits = gather_part<uint4, 4>(p); break;
    case 8: hits = gather_part<uint2, 6>(p); break;
    case 4: hits = gather_part<u32, 6>(p); break;
    case 2: hits = gather_part<u16, 6>(p); break;
    default: hits = gather_part<u8, 6>(p);
  }
  if (!p.counts) return;
  // One addition a block: those to one word queue in the L2.
  if ((threadIdx.x & 31) == 0) atomicAdd(&of_block, hits);
  __syncthreads();
  if (threadIdx.x == 0 && of_block) atomicAdd(p.counts, of_block);
}
