// Attention on rows of float16 and bfloat16, with scores of float32. attention.cuh describes the
// algorithm.
//
// Go caller: internal/engine/cuda/attention.go. C twin: internal/engine/cpu/layers (attend.h).
#include "layers/attention.cuh"

#define VECTORS(function, V)                     \
  if (a.vector == 8) function<V, 8>(b);          \
  else if (a.vector == 4) function<V, 4>(b);     \
  else if (a.vector == 2) function<V, 2>(b);     \
  else function<V, 1>(b);
#define FLOATS(function)         \
  if (a.brain) {                 \
    VECTORS(function, Brain)     \
  } else {                       \
    VECTORS(function, Half)      \
  }

ATTENTION_KERNELS(attention_half)
