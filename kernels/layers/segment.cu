// Segment reductions of float32 and float64 rows. segment.cuh describes the algorithm.
//
// Go caller: internal/engine/cuda/segment.go. C twin: internal/engine/cpu/layers (body.h).
#include "layers/segment.cuh"

#define FLOATS(function, OF, FACTOR)                                      \
  if (a.float_bits == 32) {                                                  \
    if (a.vector == 4) function<float, 4, OF, FACTOR>(a, blockIdx.y);     \
    else if (a.vector == 2) function<float, 2, OF, FACTOR>(a, blockIdx.y); \
    else function<float, 1, OF, FACTOR>(a, blockIdx.y);                   \
  } else if (a.vector == 2) function<double, 2, OF, FACTOR>(a, blockIdx.y); \
  else function<double, 1, OF, FACTOR>(a, blockIdx.y);

SEGMENT_KERNELS(segment)
