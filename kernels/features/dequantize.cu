// Converts quantized rows to floats: out[i] = row[i] * scales[ids[i]], or with a scale for each
// column.
//
// Rows in the memory of a GPU are read where they are, by their ids. gather.cu has copied other rows
// first, as they are stored, from the host or in part from a cache. The product is a float32, rounded
// once, and rounded again for 16-bit results: the same bits as on the CPU.
//
// 2^group lanes process a row. A lane converts eight values at a time if eight divides the columns
// and the addresses of rows are aligned, else four or one, and loads those of AHEAD steps, in this row
// and the next ones of the group, before it converts the first: reads by id wait for memory. Every
// output is written once, so none stays in a cache.
//
// Go caller: internal/engine/cuda/dequantize.go. C twin: internal/engine/cpu/quantized/quantized.c.
#include "common/half.cuh"

// Mirrors dequantizeArgs in internal/engine/cuda/dequantize.go.
struct DequantizeArgs {
  const void* ids;      // [count], of id_bits, signed: which scale is a row's
  const float* scales;  // [rows], or by_column [columns]; null: none
  const char* stored;   // [count][row], or by_id [rows][row]; what is behind the values of a row is not read
  char* out;            // [count][columns]
  u64* bad;             // by_id: becomes at most the place of an id outside of [0, rows); may be null
  u64 count, rows;
  u32 row, columns;  // bytes from one stored row to the next, and values of a row
  u32 id_bits;       // 32 or 64
  u32 kind, to;      // QUANTIZED_*, READ_AS_*
  u32 by_column;
  u32 by_id;  // whether row i is that of ids[i], else it is the row at place i
  u32 group;  // 2^group lanes make a row
  u32 values; // that a lane makes at a time: 8, 4 or 1
};

__device__ __forceinline__ float of_e4m3(u32 code) {
  u32 size = code & 0x7F;
  // Another bias of the exponent, which subnormals take too.
  float x = __fmul_rn(__uint_as_float(size << 20), __uint_as_float(247u << 23));
  u32 bits = size == 0x7F ? 0x7FFFFFFF : __float_as_uint(x);
  return __uint_as_float(bits | (code & 0x80) << 24);
}

// What N values take that stand side by side in a stored row. A kind is compiled, since a branch for
// each value would take several times as long as its conversion.
template <int N, u32 KIND>
struct Codes {
  u64 low, high;  // high: of the last four of eight values of 16 bits

  __device__ __forceinline__ void load(const char* row, u32 j) {
    high = 0;
    if constexpr (KIND <= QUANTIZED_BRAIN) {
      row += 2 * (u64)j;
      if constexpr (N == 8) {
        ulonglong2 both = *(const ulonglong2*)row;
        low = both.x, high = both.y;
      } else {
        low = N == 4 ? *(const u64*)row : *(const u16*)row;
      }
    } else if constexpr (KIND != QUANTIZED_INT4) {
      row += j;
      low = N == 8 ? *(const u64*)row : N == 4 ? *(const u32*)row : *(const unsigned char*)row;
    } else {
      row += j / 2;
      low = N == 8 ? *(const u32*)row : N == 4 ? *(const u16*)row : *(const unsigned char*)row >> j % 2 * 4;
    }
  }

  __device__ __forceinline__ float value(u32 j) const {
    u64 word = j < 4 || KIND > QUANTIZED_BRAIN ? low : high;
    switch (KIND) {
      case QUANTIZED_HALF: return of_half((u16)(word >> 16 * (j % 4)));
      case QUANTIZED_BRAIN: return of_brain((u16)(word >> 16 * (j % 4)));
      case QUANTIZED_FLOAT8: return of_e4m3((u32)(word >> 8 * j) & 0xFF);
      case QUANTIZED_INT8: return (float)(signed char)(word >> 8 * j);
      default: return (float)(((int)(word >> 4 * j) & 15 ^ 8) - 8);
    }
  }
};

template <int N>
__device__ __forceinline__ void write_values(char* row, u32 j, u32 to, const float* x) {
  u32 bits[N];
  if (to == READ_AS_FLOAT) {
#pragma unroll
    for (int c = 0; c < N; c++) bits[c] = x[c] == x[c] ? __float_as_uint(x[c]) : 0x7FFFFFFF;
    u32* to = (u32*)row + j;
    if constexpr (N == 1) {
      __stcs(to, bits[0]);
    } else {
#pragma unroll
      for (int c = 0; c < N; c += 4) __stcs((uint4*)(to + c), make_uint4(bits[c], bits[c + 1], bits[c + 2], bits[c + 3]));
    }
    return;
  }
#pragma unroll
  for (int c = 0; c < N; c++) bits[c] = x[c] != x[c] ? 0x7FFF : to == READ_AS_HALF ? to_half(x[c]) : to_brain(x[c]);
  u16* at = (u16*)row + j;
  if constexpr (N == 1) {
    __stcs(at, (u16)bits[0]);
  } else if constexpr (N == 4) {
    __stcs((uint2*)at, make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16));
  } else {
    __stcs((uint4*)at, make_uint4(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16, bits[4] | bits[5] << 16, bits[6] | bits[7] << 16));
  }
}

// What a lane reads that has nothing to read: zeros.
__device__ const uint4 dequantize_nothing = {0, 0, 0, 0};

template <int N, u32 KIND>
__device__ __forceinline__ void dequantize_rows(const DequantizeArgs& a) {
  const int AHEAD = 4;
  u32 first = (threadIdx.x & ((1u << a.group) - 1)) * N, step = (u32)N << a.group;
  u64 thread = (u64)blockIdx.x * DEQUANTIZE_THREADS + threadIdx.x;
  u64 i = thread >> a.group, stride = ((u64)gridDim.x * DEQUANTIZE_THREADS) >> a.group;
  u32 size = a.columns * (a.to == READ_AS_FLOAT ? 4 : 2), j = first;
  while (i < a.count) {
    Codes<N, KIND> codes[AHEAD];
    float scale[AHEAD];
    u64 row[AHEAD];
    u32 column[AHEAD];
    bool on[AHEAD];
#pragma unroll
    for (int c = 0; c < AHEAD; c++) {
      on[c] = i < a.count && j < a.columns;
      row[c] = i, column[c] = j;
      u64 place = i;
      bool outside = false;
      if (on[c] && (a.by_id || (a.scales && !a.by_column))) {
        u64 id = a.id_bits == 64 ? (u64)__ldg((const long long*)a.ids + i) : (u64)(long long)__ldg((const int*)a.ids + i);
        outside = id >= a.rows;
        if (a.by_id) place = id;
        // The row of an id outside is zeros.
        scale[c] = outside ? 0 : a.scales && !a.by_column ? __ldg(a.scales + id) : 1;
        if (a.by_id && outside && a.bad && j == 0) atomicMin(a.bad, i);
      } else {
        scale[c] = 1;
      }
      bool there = on[c] && !(a.by_id && outside);
      codes[c].load(there ? a.stored + place * a.row : (const char*)&dequantize_nothing, there ? j : 0);
      // The group goes on together, where its last lanes have no column left, too.
      j += step;
      if (j - first >= a.columns) j = first, i += stride;
    }
#pragma unroll
    for (int c = 0; c < AHEAD; c++) {
      if (!on[c]) continue;
      float x[N];
#pragma unroll
      for (int v = 0; v < N; v++) {
        x[v] = codes[c].value(v);
        if (a.scales) x[v] = __fmul_rn(x[v], a.by_column ? __ldg(a.scales + column[c] + v) : scale[c]);
      }
      write_values<N>(a.out + row[c] * size, column[c], a.to, x);
    }
  }
}

template <u32 KIND>
__device__ __forceinline__ void dequantize_kind(const DequantizeArgs& a) {
  switch (a.values) {
    case 8: dequantize_rows<8, KIND>(a); break;
    case 4: dequantize_rows<4, KIND>(a); break;
    default: dequantize_rows<1, KIND>(a);
  }
}

extern "C" __global__ void __launch_bounds__(DEQUANTIZE_THREADS) dequantize(const __grid_constant__ DequantizeArgs a) {
  switch (a.kind) {
    case QUANTIZED_HALF: dequantize_kind<QUANTIZED_HALF>(a); break;
    case QUANTIZED_BRAIN: dequantize_kind<QUANTIZED_BRAIN>(a); break;
    case QUANTIZED_FLOAT8: dequantize_kind<QUANTIZED_FLOAT8>(a); break;
    case QUANTIZED_INT8: dequantize_kind<QUANTIZED_INT8>(a); break;
    default: dequantize_kind<QUANTIZED_INT4>(a);
  }
}
