// Checks a CSC that the device can read, in one launch.
//
// Everything is read once: each thread reads 16 bytes at a time, with a stride of the grid, and
// remembers its first violation, which is its lowest; the lowest of all is an atomicMin that valid
// arrays never execute. The block that ends last looks up the violations and reports them, so that
// the host reads values from its own memory, wherever the arrays are.
//
// Go caller: internal/engine/cuda/validate.go. Go twin: Graph.Validate in
// internal/graph/csc/validate.go.
#include "common/grid.cuh"

// Mirrors validateArgs in internal/engine/cuda/validate.go; loading compares the sizes.
struct ValidateArgs {
  const void *indptr, *indices;  // [rows + 1], [edges]; aligned to their elements
  u64* lowest;                   // of indptr and of indices: the lowest offender, ~0 before the launch
  u32* ended;                    // blocks that are done; 0 before the launch
  long long* report;             // VALIDATE_WORDS, in memory that the host sees
  u64 rows, edges, nodes;
  u32 indptr_bits, id_bits;
};

// 16 bytes, as the elements that they are.
template <typename T>
struct alignas(16) Lot {
  static constexpr u32 COUNT = 16 / sizeof(T);
  T at[COUNT];
};

// One below another, for offsets.
template <typename T>
struct Decreases {
  const T* p;
  __device__ bool at(u64 i) const { return i > 0 && p[i] < p[i - 1]; }
  // Whether any of the lot's elements, the first of which is element i, is bad.
  __device__ bool any(const Lot<T>& lot, u64 i) const {
    bool bad = i > 0 && lot.at[0] < p[i - 1];
#pragma unroll
    for (u32 k = 1; k < Lot<T>::COUNT; k++) bad |= lot.at[k] < lot.at[k - 1];
    return bad;
  }
};

// Not below nodes, for ids: one unsigned comparison refuses negative ones too.
template <typename T>
struct LiesOutside {
  const T* p;
  u64 nodes;
  __device__ bool is(T v) const { return (u64)(long long)v >= nodes; }
  __device__ bool at(u64 i) const { return is(p[i]); }
  __device__ bool any(const Lot<T>& lot, u64) const {
    bool bad = false;
#pragma unroll
    for (u32 k = 0; k < Lot<T>::COUNT; k++) bad |= is(lot.at[k]);
    return bad;
  }
};

// Notes the lowest offender among p[0, n).
template <typename T, typename Bad>
__device__ void search(const T* p, u64 n, Bad bad, u64* lowest) {
  const u32 COUNT = Lot<T>::COUNT, AHEAD = 4;
  u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x, threads = (u64)gridDim.x * blockDim.x;
  // Elements before the first multiple of 16 bytes, and after the last, are taken one by one.
  u64 head = min((u64)((16 - (u64)p % 16) % 16 / sizeof(T)), n), lots = (n - head) / COUNT, tail = head + lots * COUNT;
  u64 found = ~0ull;
  if (thread < head && bad.at(thread)) found = thread;
  const Lot<T>* body = (const Lot<T>*)(p + head);
  // Four loads are on their way at a time.
  for (u64 l0 = thread; l0 < lots && found == ~0ull; l0 += AHEAD * threads) {
    Lot<T> lot[AHEAD];
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++)
      if (l0 + k * threads < lots) lot[k] = body[l0 + k * threads];
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++) {
      u64 l = l0 + k * threads, i = head + l * COUNT;
      if (found != ~0ull || l >= lots || !bad.any(lot[k], i)) continue;
      for (u32 e = 0; e < COUNT && found == ~0ull; e++)
        if (bad.at(i + e)) found = i + e;
    }
  }
  if (thread < n - tail && bad.at(tail + thread)) found = min(found, tail + thread);
  if (found != ~0ull) atomicMin(lowest, found);
}

template <typename P, typename I>
__device__ void validate(const ValidateArgs& a) {
  const P* indptr = (const P*)a.indptr;
  const I* indices = (const I*)a.indices;
  search(indptr, a.rows + 1, Decreases<P>{indptr}, a.lowest);
  search(indices, a.edges, LiesOutside<I>{indices, a.nodes}, a.lowest + 1);
  __syncthreads();
  if (threadIdx.x) return;
  fence();
  if (atomicAdd(a.ended, 1u) + 1 < gridDim.x) return;
  fence();
  u64 decrease = load_relaxed(a.lowest), outside = load_relaxed(a.lowest + 1);
  a.report[VALIDATE_FIRST] = indptr[0];
  a.report[VALIDATE_LAST] = indptr[a.rows];
  a.report[VALIDATE_DECREASE_AT] = (long long)decrease;
  if (decrease != ~0ull) a.report[VALIDATE_DECREASE_BEFORE] = indptr[decrease - 1], a.report[VALIDATE_DECREASE_GOT] = indptr[decrease];
  a.report[VALIDATE_OUTSIDE_AT] = (long long)outside;
  if (outside != ~0ull) a.report[VALIDATE_OUTSIDE_GOT] = indices[outside];
}

extern "C" __global__ void __launch_bounds__(VALIDATE_THREADS) validate(const __grid_constant__ ValidateArgs a) {
  if (a.indptr_bits == 32) {
    if (a.id_bits == 32) validate<int, int>(a);
    else validate<int, long long>(a);
  } else {
    if (a.id_bits == 32) validate<long long, int>(a);
    else validate<long long, long long>(a);
  }
}
