// Segment reductions of float16 and bfloat16 rows, added as float32. segment.cuh describes the
// algorithm.
//
// Go caller: internal/engine/cuda/segment.go. C twin: internal/engine/cpu/layers (body.h).
#include "layers/segment.cuh"

#define VECTORS(function, V, OF, FACTOR)                              \
  if (a.vector == 8) function<V, 8, OF, FACTOR>(a, blockIdx.y);       \
  else if (a.vector == 4) function<V, 4, OF, FACTOR>(a, blockIdx.y);  \
  else if (a.vector == 2) function<V, 2, OF, FACTOR>(a, blockIdx.y);  \
  else function<V, 1, OF, FACTOR>(a, blockIdx.y);
#define FLOATS(function, OF, FACTOR)             \
  if (a.brain) {                                    \
    VECTORS(function, Brain, OF, FACTOR)         \
  } else {                                          \
    VECTORS(function, Half, OF, FACTOR)          \
  }

SEGMENT_KERNELS(segment_half)
