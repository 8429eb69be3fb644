// What NVRTC gives a kernel, for g++: the words of CUDA C++, its types and functions. build.py includes
// it before each file of kernels. Behind it is scheduler.cpp.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#define PGS_EMULATED 1
#define __CUDA_ARCH__ 900
#define __CUDACC__ 1

#define __global__
#define __device__
#define __host__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define __constant__ static
// __shared__ is a section of the file's own, see build.py.

#define __builtin_assume(x) ((void)0)

// ---- types ---------------------------------------------------------------------------------------

#define VECTOR2(name, T, bytes)                  \
  struct alignas(bytes) name {                   \
    T x, y;                                      \
  };                                             \
  inline name make_##name(T x, T y) { return {x, y}; }
#define VECTOR4(name, T, bytes)                  \
  struct alignas(bytes) name {                   \
    T x, y, z, w;                                \
  };                                             \
  inline name make_##name(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR2(int2, int, 8)
VECTOR2(uint2, unsigned, 8)
VECTOR2(float2, float, 8)
VECTOR2(longlong2, long long, 16)
VECTOR2(ulonglong2, unsigned long long, 16)
VECTOR2(double2, double, 16)
VECTOR4(int4, int, 16)
VECTOR4(uint4, unsigned, 16)
VECTOR4(float4, float, 16)
VECTOR4(uchar4, unsigned char, 4)
VECTOR4(ushort4, unsigned short, 8)
#undef VECTOR2
#undef VECTOR4
struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// ---- the scheduler -------------------------------------------------------------------------------

namespace emulator {
// What a kernel asks about itself. The scheduler keeps these right for the thread that runs.
extern const uint3* thread_index;
extern const uint3* block_index;
extern dim3 block_size, grid_size;

enum Kind : unsigned char { SYNC, SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, BALLOT, ADD, MIN, MAX, AND, OR, XOR,
                            SIGNED_MIN, SIGNED_MAX, MATCH, BARRIER, BARRIER_OR, BARRIER_AND, BARRIER_COUNT };

// Waits for the lanes of mask, and gives what the operation gives this lane. width is a shuffle's.
uint64_t collective(Kind kind, unsigned mask, uint64_t value, int argument = 0, int width = 32);
// Waits for all threads of the block.
int barrier(Kind kind, int predicate = 0);
unsigned lane();
// After a load, or an atomic that changed nothing: lets others run where that looks like waiting.
void loaded(const volatile void* address, uint64_t value);
// After an atomic that did change memory.
void changed();
// Lets all others run.
void yield();
[[noreturn]] void trap(const char* reason);
uint64_t clock();
void* dynamic_shared();
bool is_shared(const void* p);

template <class T>
uint64_t bits(T x) {
  static_assert(sizeof(T) <= 8, "at most 64 bits");
  uint64_t word = 0;
  memcpy(&word, &x, sizeof x);
  return word;
}
template <class T>
T value(uint64_t word) {
  T x;
  memcpy(&x, &word, sizeof x);
  return x;
}
template <class T>
struct Same {
  typedef T type;
};
// Hazards with atomics are none (races.cpp).
#define ATOMICALLY __attribute__((no_sanitize("thread")))
template <class T>
ATOMICALLY T load(const T* p) {
  T x = *(const volatile T*)p;
  loaded(p, bits(x));
  return x;
}
template <class T>
ATOMICALLY T atomic(T* p, T next) {
  T old = *p;
  *p = next;
  if (bits(old) == bits(next)) loaded(p, bits(old));
  else changed();
  return old;
}
}  // namespace emulator

#define threadIdx (*emulator::thread_index)
#define blockIdx (*emulator::block_index)
#define blockDim emulator::block_size
#define gridDim emulator::grid_size
#define warpSize 32

// ---- collectives ---------------------------------------------------------------------------------

inline void __syncthreads() { emulator::barrier(emulator::BARRIER); }
inline int __syncthreads_or(int x) { return emulator::barrier(emulator::BARRIER_OR, x); }
inline int __syncthreads_and(int x) { return emulator::barrier(emulator::BARRIER_AND, x); }
inline int __syncthreads_count(int x) { return emulator::barrier(emulator::BARRIER_COUNT, x); }
inline void __syncwarp(unsigned mask = ~0u) { emulator::collective(emulator::SYNC, mask, 0); }
inline unsigned __ballot_sync(unsigned mask, int x) { return (unsigned)emulator::collective(emulator::BALLOT, mask, x != 0); }
inline int __any_sync(unsigned mask, int x) { return __ballot_sync(mask, x) != 0; }
inline int __all_sync(unsigned mask, int x) { return __ballot_sync(mask, !x) == 0; }
inline unsigned __activemask() { return 1u << emulator::lane(); }

template <class T>
T __shfl_sync(unsigned mask, T x, int lane, int width = 32) {
  return emulator::value<T>(emulator::collective(emulator::SHUFFLE, mask, emulator::bits(x), lane, width));
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32) {
  return emulator::value<T>(emulator::collective(emulator::SHUFFLE_UP, mask, emulator::bits(x), (int)by, width));
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32) {
  return emulator::value<T>(emulator::collective(emulator::SHUFFLE_DOWN, mask, emulator::bits(x), (int)by, width));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int by, int width = 32) {
  return emulator::value<T>(emulator::collective(emulator::SHUFFLE_XOR, mask, emulator::bits(x), by, width));
}
template <class T>
unsigned __match_any_sync(unsigned mask, T x) {
  return (unsigned)emulator::collective(emulator::MATCH, mask, emulator::bits(x));
}
template <class T>
T __reduce_add_sync(unsigned mask, T x) {
  return (T)emulator::collective(emulator::ADD, mask, (uint64_t)x);
}
template <class T>
T __reduce_min_sync(unsigned mask, T x) {
  return (T)emulator::collective(std::is_signed<T>::value ? emulator::SIGNED_MIN : emulator::MIN, mask, (uint64_t)x);
}
template <class T>
T __reduce_max_sync(unsigned mask, T x) {
  return (T)emulator::collective(std::is_signed<T>::value ? emulator::SIGNED_MAX : emulator::MAX, mask, (uint64_t)x);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned x) { return (unsigned)emulator::collective(emulator::AND, mask, x); }
inline unsigned __reduce_or_sync(unsigned mask, unsigned x) { return (unsigned)emulator::collective(emulator::OR, mask, x); }
inline unsigned __reduce_xor_sync(unsigned mask, unsigned x) { return (unsigned)emulator::collective(emulator::XOR, mask, x); }

// ---- memory --------------------------------------------------------------------------------------

inline unsigned __isShared(const void* p) { return emulator::is_shared(p); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldca(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T __ldlu(const T* p) { return *p; }
template <class T> T __ldcv(const T* p) { return *p; }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> void __stcg(T* p, typename emulator::Same<T>::type x) { *p = x; }
template <class T> void __stcs(T* p, typename emulator::Same<T>::type x) { *p = x; }
template <class T> void __stwb(T* p, typename emulator::Same<T>::type x) { *p = x; }
template <class T> void __stwt(T* p, typename emulator::Same<T>::type x) { *p = x; }

#define ATOMIC(name, next)                                       \
  template <class T>                                             \
  ATOMICALLY T name(T* p, typename emulator::Same<T>::type x) {  \
    return emulator::atomic<T>(p, (T)(next));                    \
  }                                                              \
  template <class T>                                             \
  T name##_block(T* p, typename emulator::Same<T>::type x) {     \
    return name(p, x);                                           \
  }                                                              \
  template <class T>                                             \
  T name##_system(T* p, typename emulator::Same<T>::type x) {    \
    return name(p, x);                                           \
  }
ATOMIC(atomicAdd, *p + x)
ATOMIC(atomicSub, *p - x)
ATOMIC(atomicMin, x < *p ? x : *p)
ATOMIC(atomicMax, x > *p ? x : *p)
ATOMIC(atomicAnd, *p & x)
ATOMIC(atomicOr, *p | x)
ATOMIC(atomicXor, *p ^ x)
ATOMIC(atomicExch, x)
ATOMIC(atomicInc, *p >= x ? 0 : *p + 1)
ATOMIC(atomicDec, *p == 0 || *p > x ? x : *p - 1)
#undef ATOMIC
template <class T>
ATOMICALLY T atomicCAS(T* p, typename emulator::Same<T>::type expected, typename emulator::Same<T>::type x) {
  return emulator::atomic<T>(p, *p == expected ? x : *p);
}

// ---- arithmetic ----------------------------------------------------------------------------------

template <class A, class B>
typename std::common_type<A, B>::type min(A a, B b) {
  typedef typename std::common_type<A, B>::type T;
  return (T)b < (T)a ? (T)b : (T)a;
}
template <class A, class B>
typename std::common_type<A, B>::type max(A a, B b) {
  typedef typename std::common_type<A, B>::type T;
  return (T)a < (T)b ? (T)b : (T)a;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline int __mulhi(int a, int b) { return (int)((int64_t)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline unsigned __brev(unsigned x) {
  unsigned y = 0;
  for (int i = 0; i < 32; i++) y = y << 1 | (x >> i & 1);
  return y;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return (unsigned)((((uint64_t)high << 32 | low) << (by & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
inline int __float_as_int(float x) { return emulator::value<int>(emulator::bits(x)); }
inline unsigned __float_as_uint(float x) { return emulator::value<unsigned>(emulator::bits(x)); }
inline float __int_as_float(int x) { return emulator::value<float>(emulator::bits(x)); }
inline float __uint_as_float(unsigned x) { return emulator::value<float>(emulator::bits(x)); }
inline long long __double_as_longlong(double x) { return emulator::value<long long>(emulator::bits(x)); }
inline double __longlong_as_double(long long x) { return emulator::value<double>(emulator::bits(x)); }
// Each rounded by itself: no product is fused with a sum.
inline double __dadd_rn(double x, double y) {
  volatile double sum = x + y;
  return sum;
}
inline double __dmul_rn(double x, double y) {
  volatile double product = x * y;
  return product;
}
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline float __fadd_rn(float x, float y) {
  volatile float sum = x + y;
  return sum;
}
inline float __fmul_rn(float x, float y) {
  volatile float product = x * y;
  return product;
}
inline float __fdiv_rn(float x, float y) { return x / y; }
inline double __ull2double_rn(unsigned long long x) { return (double)x; }
inline unsigned long long __double2ull_rz(double x) { return (unsigned long long)x; }
inline float __double2float_rn(double x) { return (float)x; }

// float16, which kernels convert by inline PTX.
inline float of_half(unsigned short half) {
  _Float16 x;
  memcpy(&x, &half, sizeof x);
  return (float)x;
}
inline unsigned short to_half(float x) {
  _Float16 half = (_Float16)x;
  unsigned short bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

inline long long clock64() { return (long long)emulator::clock(); }
inline unsigned long long globaltimer() { return emulator::clock(); }
inline void __nanosleep(unsigned) { emulator::yield(); }
[[noreturn]] inline void __trap() { emulator::trap("__trap()"); }
