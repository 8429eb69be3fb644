// Attention on rows of float32 and float64: attend.cuh says how.
#include "attend.cuh"

#define FLOATS(function)                             \
  if (a.float_bits == 32) {                          \
    if (a.vector == 4) function<float, 4>(b);        \
    else if (a.vector == 2) function<float, 2>(b);   \
    else function<float, 1>(b);                      \
  } else if (a.vector == 2) function<double, 2>(b);  \
  else function<double, 1>(b);

ATTEND_KERNEL(attend_forward, 4, attend)
ATTEND_KERNEL(attend_backward, 3, attend_back)
