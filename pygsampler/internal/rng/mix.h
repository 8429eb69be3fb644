// SplitMix64, as splitmix.go has it: its increment, the factors of its finaliser, and that.
#pragma once
#include <stdint.h>

#define GOLDEN 0x9E3779B97F4A7C15u
#define MIX_FIRST 0xBF58476D1CE4E5B9u
#define MIX_SECOND 0x94D049BB133111EBu

static inline __attribute__((always_inline)) uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * MIX_FIRST;
  z = (z ^ z >> 27) * MIX_SECOND;
  return z ^ z >> 31;
}
