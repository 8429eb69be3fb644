// Attention on rows of float16 and bfloat16, with scores of float32. attention.cuh describes the
// algorithm.
//
// Go caller: internal/engine/cuda/attention.go. C twin: internal/engine/cpu/layers (attend.h).
#include "layers/attention.cuh"

#define VECTORS(function, V, SHARED)                 \
  if (a.vector == 8) function<V, 8, SHARED>(b);      \
  else if (a.vector == 4) function<V, 4, SHARED>(b); \
  else if (a.vector == 2) function<V, 2, SHARED>(b); \
  else function<V, 1, SHARED>(b);
#define FLOATS(function, SHARED)     \
  if (a.brain) {                     \
    VECTORS(function, Brain, SHARED) \
  } else {                           \
    VECTORS(function, Half, SHARED)  \
  }

ATTENTION_KERNELS(attention_half)
