// Maintains a cache of table rows in device memory: the list of cached rows, and their copies.
//
// gather.cu reads the cache: slots holds the slot of each row of a table, or -1. The kernels of this
// file change it. keys holds the row of each slot, or -1: rows are inserted and evicted by the data
// on the device only, so that two rows never share a slot, even if the host is out of date.
//
// cache_put   copies the rows of a list into the slots of another list, and evicts their previous
//             rows; or it rewrites rows that are cached already.
// cache_touch and cache_bid precede it if the cache keeps the most recently used rows: after a
//             gather they stamp the slots that were read, and each missing row bids for one of
//             CACHE_CHOICES slots that a hash selects: the least recently used one, which must not
//             be of this gather. If several rows bid for a slot, the first of the ids gets it. So
//             the content of the cache is a function of the requests.
// cache_tally counts the requests of each row.
//
// A list of all slots by their use would be one chain of dependent writes. Source of the choice
// among a few random slots: Redis (maxmemory-samples).
//
// No row of a list is cached already, nor twice in the list, and of two equal ids of a gather one
// gets the slot that both chose; so blocks of a launch never conflict. If a row were in two slots,
// slots would name one of them or none, and reads would still be right. Ids that are no rows are
// ignored.
//
// Go caller: internal/engine/cuda/cache.go. Go twin: the model in cache_test.go.
#include "common/philox.cuh"

typedef unsigned char u8;
typedef unsigned short u16;

// Mirrors cacheArgs in internal/engine/cuda/cache.go; loading compares the sizes.
struct CacheArgs {
  const void* ids;     // [count], of id_bits, signed
  const char* source;  // [rows][row], or [count][row] where the rows stand in the order of ids
  char* cached;        // [places][row]
  int* slots;          // [rows]: the place, or -1
  long long* keys;     // [places]: the row, or -1
  u32* stamps;         // [places]: when it was used last
  u32* bids;           // [places]: who wants it, all ones between launches; null: nobody has to
  u32* chosen;         // [count]: the place, or all ones; null: that of a row that is there
  u32* counts;         // [rows], of cache_tally
  u64 count, rows, places;
  u32 row;      // bytes
  u32 id_bits;  // 32 or 64
  u32 width;    // of a vector in bytes, one that divides row and all addresses of rows
  u32 by_place; // whether source has the rows in the order of ids
  u32 now;      // the number of this gather; wraps around
};

const u32 NO_PLACE = ~0u;

__device__ __forceinline__ u64 id_of(const CacheArgs& a, u64 i) {
  return a.id_bits == 64 ? (u64)((const long long*)a.ids)[i] : (u64)(long long)((const int*)a.ids)[i];
}

#define FOR_EACH_ID(i) \
  for (u64 i = (u64)blockIdx.x * CACHE_THREADS + threadIdx.x; i < a.count; i += (u64)gridDim.x * CACHE_THREADS)

extern "C" __global__ void __launch_bounds__(CACHE_THREADS) cache_tally(const __grid_constant__ CacheArgs a) {
  FOR_EACH_ID(i) {
    u64 id = id_of(a, i);
    if (id < a.rows) atomicAdd(a.counts + id, 1u);
  }
}

extern "C" __global__ void __launch_bounds__(CACHE_THREADS) cache_touch(const __grid_constant__ CacheArgs a) {
  FOR_EACH_ID(i) {
    u64 id = id_of(a, i);
    if (id >= a.rows) continue;
    int slot = a.slots[id];
    if (slot >= 0) a.stamps[slot] = a.now;
  }
}

extern "C" __global__ void __launch_bounds__(CACHE_THREADS) cache_bid(const __grid_constant__ CacheArgs a) {
  FOR_EACH_ID(i) {
    u64 id = id_of(a, i);
    u32 best = NO_PLACE;
    if (id < a.rows && a.slots[id] < 0) {
      u64 state = mix(id ^ (u64)a.now << 32);
      u64 most = 0;
      for (u32 c = 0; c < CACHE_CHOICES; c++) {
        u32 place = (u32)draw_below(state, c, a.places);
        // One that is empty is older than all; one that this gather has read is no choice.
        u64 age = a.keys[place] < 0 ? 1ull << 32 : (u64)(u32)(a.now - a.stamps[place]);
        if (age > most) most = age, best = place;
      }
    }
    a.chosen[i] = best;
    if (best != NO_PLACE) atomicMin(a.bids + best, (u32)i);
  }
}

template <typename V>
__device__ __forceinline__ void copy_row(const char* from, char* to, u32 row) {
  const u32 AHEAD = 4;
  u32 lane = threadIdx.x & 31, vectors = row / (u32)sizeof(V);
  for (u32 at = lane; at < vectors; at += 32 * AHEAD) {
    V value[AHEAD];
#pragma unroll
    for (u32 c = 0; c < AHEAD; c++)
      if (at + 32 * c < vectors) value[c] = ((const V*)from)[at + 32 * c];
#pragma unroll
    for (u32 c = 0; c < AHEAD; c++)
      if (at + 32 * c < vectors) ((V*)to)[at + 32 * c] = value[c];
  }
}

// A warp has an id at a time.
extern "C" __global__ void __launch_bounds__(CACHE_THREADS) cache_put(const __grid_constant__ CacheArgs a) {
  u64 warp = ((u64)blockIdx.x * CACHE_THREADS + threadIdx.x) / 32, stride = (u64)gridDim.x * (CACHE_THREADS / 32);
  for (u64 i = warp; i < a.count; i += stride) {
    u64 id = id_of(a, i);
    if (id >= a.rows) continue;
    u32 place = a.chosen ? a.chosen[i] : (u32)a.slots[id];
    if (place >= a.places) continue;
    if (a.bids && a.bids[place] != (u32)i) continue;
    __syncwarp();
    if (a.chosen && (threadIdx.x & 31) == 0) {
      long long before = a.keys[place];
      if (before >= 0 && a.slots[before] == (int)place) a.slots[before] = -1;
      a.keys[place] = (long long)id;
      a.slots[id] = (int)place;
      if (a.bids) a.stamps[place] = a.now, a.bids[place] = NO_PLACE;
    }
    const char* from = a.source + (a.by_place ? i : id) * a.row;
    char* to = a.cached + (u64)place * a.row;
    switch (a.width) {
      case 16: copy_row<uint4>(from, to, a.row); break;
      case 8: copy_row<uint2>(from, to, a.row); break;
      case 4: copy_row<u32>(from, to, a.row); break;
      case 2: copy_row<u16>(from, to, a.row); break;
      default: copy_row<u8>(from, to, a.row);
    }
  }
}
