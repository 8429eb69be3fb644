// Attention on rows of float32 and float64. attention.cuh describes the algorithm.
//
// Go caller: internal/engine/cuda/attention.go. C twin: internal/engine/cpu/layers (attend.h).
#include "layers/attention.cuh"

#define FLOATS(function)                             \
  if (a.float_bits == 32) {                          \
    if (a.vector == 4) function<float, 4>(b);        \
    else if (a.vector == 2) function<float, 2>(b);   \
    else function<float, 1>(b);                      \
  } else if (a.vector == 2) function<double, 2>(b);  \
  else function<double, 1>(b);

ATTENTION_KERNELS(attention)
