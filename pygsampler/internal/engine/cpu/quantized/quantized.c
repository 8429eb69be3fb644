#include "quantized.h"

#include <string.h>

#include "../layers/half.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx2", "default")))
#else
#define CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

#define INFINITE 0x7F800000u
// The one that a GPU's products give.
#define NOT_A_NUMBER 0x7FFFFFFFu

// The greatest size that a kind stores.
static float limit_of(int kind) { return kind == PGS_E4M3 ? 448.0f : kind == PGS_INT8 ? 127.0f : 7.0f; }

// Bytes of n values side by side.
INLINE int64_t bytes_of(int64_t n, int kind) {
  return kind == PGS_HALF || kind == PGS_BRAIN ? 2 * n : kind == PGS_INT4 ? (n + 1) / 2 : n;
}

INLINE float of_e4m3(uint8_t x) {
  uint32_t size = x & 0x7Fu;
  // Another bias of the exponent, which subnormals take too.
  uint32_t bits = pgs_bits(pgs_float(size << 20) * 0x1p120f);
  return pgs_float(pgs_either(size == 0x7F, NOT_A_NUMBER, bits) | (x & 0x80u) << 24);
}

// Converts a value of absolute size up to 448.
INLINE uint8_t to_e4m3(float x) {
  uint32_t bits = pgs_bits(x), size = bits & 0x7FFFFFFF;
  uint32_t normal = ((size + 0x7FFFF + (size >> 20 & 1)) >> 20) - (120 << 3);
  // The sum ends where a subnormal does.
  uint32_t subnormal = pgs_bits(pgs_float(size) + 0x1p14f) - 0x46800000;
  uint32_t made = pgs_either(size < 0x3C800000, subnormal, normal);
  made = pgs_either(size > INFINITE, 0x7F, made);
  return (uint8_t)(made | (bits >> 24 & 0x80));
}

// Rounds a value of absolute size below 2^22.
INLINE int32_t nearest(float x) { return (int32_t)(pgs_bits(x + 12582912.0f) - 0x4B400000); }

INLINE float value(const uint8_t *row, int64_t j, int kind) {
  switch (kind) {
    case PGS_HALF: return pgs_of_half(((const uint16_t *)row)[j]);
    case PGS_BRAIN: return pgs_of_brain(((const uint16_t *)row)[j]);
    case PGS_E4M3: return of_e4m3(row[j]);
    default: return (float)((const int8_t *)row)[j];
  }
}

INLINE void store(void *out, int64_t j, int to, float x) {
  const int is_nan = (pgs_bits(x) & 0x7FFFFFFF) > INFINITE;
  switch (to) {
    case PGS_TO_HALF: ((uint16_t *)out)[j] = (uint16_t)pgs_either(is_nan, 0x7FFF, pgs_to_half(x)); break;
    case PGS_TO_BRAIN: ((uint16_t *)out)[j] = pgs_to_brain(x); break;
    default: ((float *)out)[j] = pgs_float(pgs_either(is_nan, NOT_A_NUMBER, pgs_bits(x)));
  }
}

INLINE void one_row(const uint8_t *row, int64_t n, int kind, int to, int by_column, const float *scales, void *out) {
  const float whole = scales ? scales[0] : 1.0f;
#define SCALED(x, j) ((x) * (by_column ? scales[j] : whole))
  if (kind == PGS_INT4) {
    for (int64_t j = 0; j < n / 2; j++) {
      store(out, 2 * j, to, SCALED((float)((row[j] & 15 ^ 8) - 8), 2 * j));
      store(out, 2 * j + 1, to, SCALED((float)((row[j] >> 4 ^ 8) - 8), 2 * j + 1));
    }
    if (n % 2) store(out, n - 1, to, SCALED((float)((row[n / 2] & 15 ^ 8) - 8), n - 1));
    return;
  }
  for (int64_t j = 0; j < n; j++) store(out, j, to, SCALED(value(row, j, kind), j));
#undef SCALED
}

// Rows whose place in memory is asked for ahead.
enum { AHEAD = 12 };

INLINE void some_rows(const struct pgs_quantized *q, const uint8_t *table, const float *scales, const void *ids, int id_bits, int64_t count, char *out, int kind, int to, int by_column) {
#define ID(i) (!ids ? (i) : id_bits == 32 ? (int64_t)((const int32_t *)ids)[i] : ((const int64_t *)ids)[i])
  const int64_t n = q->columns, stride = q->stride, bytes = bytes_of(n, kind), size = n * (to == PGS_TO_FLOAT ? 4 : 2);
  const int by_row = scales && !by_column;
  for (int64_t i = 0; i < count; i++) {
    if (ids && i + AHEAD < count) {
      const int64_t next = ID(i + AHEAD);
      for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(table + next * stride + at);
      __builtin_prefetch(table + next * stride + bytes - 1);
      if (by_row) __builtin_prefetch(scales + next);
    }
    const int64_t id = ID(i);
    one_row(table + id * stride, n, kind, to, by_column, by_row ? scales + id : scales, out + i * size);
  }
#undef ID
}

#define READ_AS(kind, by_column)                                                                       \
  switch (q->to) {                                                                                     \
    case PGS_TO_HALF: some_rows(q, table, scales, ids, id_bits, count, out, kind, PGS_TO_HALF, by_column); break;     \
    case PGS_TO_BRAIN: some_rows(q, table, scales, ids, id_bits, count, out, kind, PGS_TO_BRAIN, by_column); break;   \
    default: some_rows(q, table, scales, ids, id_bits, count, out, kind, PGS_TO_FLOAT, by_column);                    \
  }                                                                                                    \
  break

CLONES void pgs_dequantize(const struct pgs_quantized *q, const uint8_t *table, const float *scales, const void *ids, int id_bits, int64_t count, void *out) {
  switch (q->kind * 2 + (q->by_column != 0)) {
    case PGS_HALF * 2: READ_AS(PGS_HALF, 0);
    case PGS_BRAIN * 2: READ_AS(PGS_BRAIN, 0);
    case PGS_E4M3 * 2: READ_AS(PGS_E4M3, 0);
    case PGS_E4M3 * 2 + 1: READ_AS(PGS_E4M3, 1);
    case PGS_INT8 * 2: READ_AS(PGS_INT8, 0);
    case PGS_INT8 * 2 + 1: READ_AS(PGS_INT8, 1);
    case PGS_INT4 * 2: READ_AS(PGS_INT4, 0);
    default: READ_AS(PGS_INT4, 1);
  }
}

INLINE float read_value(const void *from, int from_kind, int64_t at) {
  switch (from_kind) {
    case PGS_HALF: return pgs_of_half(((const uint16_t *)from)[at]);
    case PGS_BRAIN: return pgs_of_brain(((const uint16_t *)from)[at]);
    case PGS_FLOAT: return ((const float *)from)[at];
    default: return (float)((const double *)from)[at];
  }
}

// True if a scaled kind stores a value of that size.
INLINE int fits(uint32_t size, int kind) { return size < INFINITE || (size > INFINITE && kind == PGS_E4M3); }

int64_t pgs_greatest(const struct pgs_quantized *q, const void *from, int from_kind, int64_t rows, float *most) {
  const int64_t n = q->columns;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < n; j++) {
      uint32_t size = pgs_bits(read_value(from, from_kind, i * n + j)) & 0x7FFFFFFF;
      if (!fits(size, q->kind)) return i * n + j;
      most[j] = pgs_float(size) > most[j] ? pgs_float(size) : most[j];
    }
  }
  return -1;
}

void pgs_scales(int kind, float *most, int64_t count) {
  for (int64_t i = 0; i < count; i++) most[i] /= limit_of(kind);
}

// A value as a kind stores it, of a scale.
INLINE uint8_t stored(float x, float scale, int kind) {
  const float limit = limit_of(kind);
  float y = scale > 0 ? x / scale : x == x ? 0.0f : x;
  // Scales that are subnormal are rounded much; a NaN stays.
  y = y > limit ? limit : y < -limit ? -limit : y;
  return kind == PGS_E4M3 ? to_e4m3(y) : (uint8_t)nearest(y);
}

int64_t pgs_quantize(const struct pgs_quantized *q, const void *from, int from_kind, int64_t rows, float *scales, uint8_t *out) {
  const int64_t n = q->columns, bytes = bytes_of(n, q->kind);
  for (int64_t i = 0; i < rows; i++) {
    uint8_t *row = out + i * q->stride;
    memset(row + bytes, 0, q->stride - bytes);
    if (q->kind == PGS_HALF || q->kind == PGS_BRAIN) {
      for (int64_t j = 0; j < n; j++) {
        float x = read_value(from, from_kind, i * n + j);
        ((uint16_t *)row)[j] = q->kind == PGS_HALF ? pgs_to_half(x) : pgs_to_brain(x);
      }
      continue;
    }
    float scale = 0;
    for (int64_t j = 0; j < n; j++) {
      uint32_t size = pgs_bits(read_value(from, from_kind, i * n + j)) & 0x7FFFFFFF;
      if (!fits(size, q->kind)) return i * n + j;
      scale = pgs_float(size) > scale ? pgs_float(size) : scale;
    }
    if (!q->by_column) {
      pgs_scales(q->kind, &scale, 1);
      scales[i] = scale;
    }
    for (int64_t j = 0; j < n; j++) {
      uint8_t made = stored(read_value(from, from_kind, i * n + j), q->by_column ? scales[j] : scale, q->kind);
      if (q->kind != PGS_INT4)
        row[j] = made;
      else if (j % 2 == 0)
        row[j / 2] = made & 15;
      else
        row[j / 2] |= (uint8_t)(made << 4);
    }
  }
  return -1;
}
