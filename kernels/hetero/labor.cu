// LABOR on graphs with types in one cooperative launch, whatever the number of types and of relations: typed_labor.cuh.
// Go caller: internal/cuda/labor.go.
#include "typed_labor.cuh"

#define TYPED_LABOR(name, I) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ TypedLaborArgs a) { typed_labor<I>(a); }

TYPED_LABOR(typed_labor32, int)
TYPED_LABOR(typed_labor64, long long)
