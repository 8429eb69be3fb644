// Floats of 16 bits, to and from float, rounded to nearest and ties to even, as a GPU does it.
#ifndef PGS_NARROW_H
#define PGS_NARROW_H

#include <stdint.h>
#include <string.h>

static inline float pgs_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint32_t pgs_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

// One of two words, by masks: a compiler makes wide registers of loops without branches.
static inline uint32_t pgs_either(int first, uint32_t one, uint32_t other) {
  uint32_t mask = -(uint32_t)(first != 0);
  return (one & mask) | (other & ~mask);
}

static inline float pgs_of_half(uint16_t half) {
  uint32_t size = (half & 0x7FFFu) << 13;
  // Another bias of the exponent, which subnormals take too.
  uint32_t bits = pgs_bits(pgs_float(size) * 0x1p112f);
  bits = pgs_either((half & 0x7C00) == 0x7C00, size | 0x7F800000, bits);
  return pgs_float(bits | (half & 0x8000u) << 16);
}

static inline uint16_t pgs_to_half(float x) {
  uint32_t bits = pgs_bits(x), size = bits & 0x7FFFFFFF;
  uint32_t normal = (size + 0xC8000FFF + (size >> 13 & 1)) >> 13;
  // The sum ends where a subnormal does.
  uint32_t subnormal = pgs_bits(pgs_float(size) + 0.5f) - 0x3F000000;
  uint32_t half = pgs_either(size < 0x38800000, subnormal, normal);
  half = pgs_either(size >= 0x47800000, pgs_either(size > 0x7F800000, 0x7FFF, 0x7C00), half);
  return (uint16_t)(half | (bits >> 16 & 0x8000));
}

static inline float pgs_of_brain(uint16_t brain) { return pgs_float((uint32_t)brain << 16); }

static inline uint16_t pgs_to_brain(float x) {
  uint32_t bits = pgs_bits(x);
  uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return (uint16_t)pgs_either((bits & 0x7FFFFFFF) > 0x7F800000, 0x7FFF, rounded);
}

#endif
