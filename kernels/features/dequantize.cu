// Converts quantized rows to floats: out[i] = stored[i] * scales[ids[i]], or with a scale for each
// column.
//
// gather.cu has copied the rows as they are stored, from the device, its cache, a peer or the host,
// so that the link transfers only their few bytes. The product is a float32, rounded once, and
// rounded again for 16-bit results: the same bits as on the CPU.
//
// 2^group lanes process a row, each lane four values at a time if four divides the columns and the
// addresses of rows are aligned, else one. Every input is read once and every output is written
// once, so neither stays in a cache; scales are read at random, four bytes per row.
//
// Go caller: internal/engine/cuda/dequantize.go. C twin: internal/engine/cpu/quantized/quantized.c.
#include "common/half.cuh"

// Mirrors dequantizeArgs in internal/engine/cuda/dequantize.go.
struct DequantizeArgs {
  const void* ids;      // [count], of id_bits, signed: which scale is a row's
  const float* scales;  // [rows], or by_column [columns]; null: none
  const char* stored;   // [count][row], aligned to 16 bytes; what is behind the values of a row is not read
  char* out;            // [count][columns]
  u64 count, rows;
  u32 row, columns;  // bytes from one stored row to the next, and values of a row
  u32 id_bits;       // 32 or 64
  u32 kind, to;      // QUANTIZED_*, READ_AS_*
  u32 by_column;
  u32 group;  // 2^group lanes make a row
  u32 wide;   // whether a lane makes four values at a time
};

__device__ __forceinline__ float of_e4m3(u32 code) {
  u32 size = code & 0x7F;
  // Another bias of the exponent, which subnormals take too.
  float x = __fmul_rn(__uint_as_float(size << 20), __uint_as_float(247u << 23));
  u32 bits = size == 0x7F ? 0x7FFFFFFF : __float_as_uint(x);
  return __uint_as_float(bits | (code & 0x80) << 24);
}

// Value j of N that stand side by side in a word of the stored row.
template <typename W>
__device__ __forceinline__ float stored_value(W word, u32 j, u32 kind) {
  switch (kind) {
    case QUANTIZED_HALF: return of_half((u16)(word >> 16 * j));
    case QUANTIZED_BRAIN: return of_brain((u16)(word >> 16 * j));
    case QUANTIZED_FLOAT8: return of_e4m3((u32)(word >> 8 * j) & 0xFF);
    case QUANTIZED_INT8: return (float)(signed char)(word >> 8 * j);
    default: return (float)(((int)(word >> 4 * j) & 15 ^ 8) - 8);
  }
}

// N values from column j on of a stored row, side by side.
template <int N>
__device__ __forceinline__ u64 stored_word(const char* row, u32 j, u32 kind) {
  if (kind <= QUANTIZED_BRAIN) return N == 4 ? *(const u64*)(row + 2 * (u64)j) : *(const u16*)(row + 2 * (u64)j);
  if (kind != QUANTIZED_INT4) return N == 4 ? *(const u32*)(row + j) : *(const unsigned char*)(row + j);
  return N == 4 ? *(const u16*)(row + j / 2) : *(const unsigned char*)(row + j / 2) >> j % 2 * 4;
}

template <int N>
__device__ __forceinline__ void write_values(char* row, u32 j, u32 to, const float* x) {
  if (to == READ_AS_FLOAT) {
    u32 bits[N];
#pragma unroll
    for (int c = 0; c < N; c++) bits[c] = x[c] == x[c] ? __float_as_uint(x[c]) : 0x7FFFFFFF;
    if (N == 4) __stcs((uint4*)((u32*)row + j), make_uint4(bits[0], bits[N / 4], bits[N / 2], bits[N - 1]));
    else __stcs((u32*)row + j, bits[0]);
    return;
  }
  u32 bits[N];
#pragma unroll
  for (int c = 0; c < N; c++) bits[c] = x[c] != x[c] ? 0x7FFF : to == READ_AS_HALF ? to_half(x[c]) : to_brain(x[c]);
  if (N == 4) __stcs((uint2*)((u16*)row + j), make_uint2(bits[0] | bits[N / 4] << 16, bits[N / 2] | bits[N - 1] << 16));
  else __stcs((u16*)row + j, (u16)bits[0]);
}

template <int N>
__device__ __forceinline__ void dequantize_rows(const DequantizeArgs& a) {
  u32 lane = threadIdx.x & ((1u << a.group) - 1);
  u64 thread = (u64)blockIdx.x * DEQUANTIZE_THREADS + threadIdx.x, threads = (u64)gridDim.x * DEQUANTIZE_THREADS;
  u32 size = a.columns * (a.to == READ_AS_FLOAT ? 4 : 2);
  for (u64 i = thread >> a.group; i < a.count; i += threads >> a.group) {
    float scale = 1;
    if (a.scales && !a.by_column) {
      u64 id = a.id_bits == 64 ? (u64)((const long long*)a.ids)[i] : (u64)(long long)((const int*)a.ids)[i];
      // The row of an id outside is zeros.
      scale = id < a.rows ? __ldg(a.scales + id) : 0;
    }
    const char* row = a.stored + i * a.row;
    for (u32 j = lane * N; j < a.columns; j += (u32)N << a.group) {
      u64 word = stored_word<N>(row, j, a.kind);
      float x[N];
#pragma unroll
      for (int c = 0; c < N; c++) {
        x[c] = stored_value(word, c, a.kind);
        if (a.scales) x[c] = __fmul_rn(x[c], a.by_column ? __ldg(a.scales + j + c) : scale);
      }
      write_values<N>(a.out + i * size, j, a.to, x);
    }
  }
}

extern "C" __global__ void __launch_bounds__(DEQUANTIZE_THREADS) dequantize(const __grid_constant__ DequantizeArgs a) {
  if (a.wide) dequantize_rows<4>(a);
  else dequantize_rows<1>(a);
}
