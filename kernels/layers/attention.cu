// Attention on rows of float32 and float64. attention.cuh describes the algorithm.
//
// Go caller: internal/engine/cuda/attention.go. C twin: internal/engine/cpu/layers (attend.h).
#include "layers/attention.cuh"

#define FLOATS(function, SHARED)                            \
  if (a.float_bits == 32) {                                 \
    if (a.vector == 4) function<float, 4, SHARED>(b);       \
    else if (a.vector == 2) function<float, 2, SHARED>(b);  \
    else function<float, 1, SHARED>(b);                     \
  } else if (a.vector == 2) function<double, 2, SHARED>(b); \
  else function<double, 1, SHARED>(b);

ATTENTION_KERNELS(attention)
