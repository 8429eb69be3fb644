// LABOR on graphs with types in one cooperative launch, whatever the number of types and of relations: labor.cuh.
// Go caller: internal/engine/cuda/labor.go.
#include "hetero/labor.cuh"

#define LABOR(name, I) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ LaborArgs a) { labor<I>(a); }

LABOR(labor32, int)
LABOR(labor64, long long)
