// Kernels that do what the emulator has to notice, and one that tries what it offers.
typedef unsigned int u32;
typedef unsigned long long u64;
#ifdef PGS_EMULATED
u32 load_acquire(const u32* p);
#endif

struct Args {
  u32* out;   // a word for each thread of all blocks
  u32* word;  // one for all
  u32 how, unused;
};

// Block sums by static and dynamic shared memory, one after another through `word`.
extern "C" __global__ void __launch_bounds__(128) relay(const __grid_constant__ Args a) {
  extern __shared__ u32 values[];
  __shared__ u32 sum;
  u32 at = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
  if (threadIdx.x == 0) sum = 0;
  values[threadIdx.x] = at;
  __syncthreads();
  atomicAdd(&sum, __shfl_xor_sync(~0u, values[threadIdx.x ^ 64], 5));
  if (threadIdx.x == 0)
    while (load_acquire(a.word) != blockIdx.x) {
    }
  __syncthreads();
  u32 even = __ballot_sync(~0u, lane % 2 == 0), below = __shfl_up_sync(~0u, lane, 1), most = __reduce_max_sync(~0u, lane);
  bool good = even == 0x55555555u && below == (lane ? lane - 1 : 0) && most == 31 && __syncthreads_count(lane == 3) == 4;
  a.out[at] = good ? sum : 0;
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(a.word, 1u);
}

enum { FOR_EVER, EXITED, MIXED, LANES, BEYOND, TRAP };

extern "C" __global__ void __launch_bounds__(64) fault(const __grid_constant__ Args a) {
  extern __shared__ u32 values[];
  if (a.how == FOR_EVER)
    while (load_acquire(a.word) != 77) {
    }
  if (a.how == EXITED) {
    if (threadIdx.x == 5) return;
    __syncthreads();
  }
  if (a.how == MIXED) {
    if (threadIdx.x < 32) __syncthreads();
    else __syncthreads_or(1);
  }
  if (a.how == LANES && threadIdx.x != 7) __syncwarp();
  if (a.how == BEYOND) values[64 + threadIdx.x % 4] = 1;
  if (a.how == TRAP && threadIdx.x == 9) __trap();
  if (threadIdx.x == 0) a.out[0] = 1;
}

enum { MEETS, ALIKE, READS, WRITES, ATOMIC };

// Shared memory that several threads use: as they may, or not.
extern "C" __global__ void __launch_bounds__(64) hazard(const __grid_constant__ Args a) {
  __shared__ u32 of_warps[2], word, sum;
  u32 warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  if (threadIdx.x == 0) word = 1, sum = 0;
  if (lane == 0) of_warps[warp] = 1;
  __syncthreads();
  if (a.how == ALIKE) of_warps[warp] = 2;
  if (a.how == READS && threadIdx.x == 0) word = 2;
  u32 own = word + of_warps[warp];
  if (a.how == WRITES && threadIdx.x == 63) word = 3;
  if (a.how == ATOMIC) atomicAdd(&sum, own);
  __syncwarp();
  if (lane == 0) of_warps[warp] = own;
  __syncwarp();
  a.out[threadIdx.x] = of_warps[warp];
}
