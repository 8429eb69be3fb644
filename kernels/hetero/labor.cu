// LABOR on heterogeneous graphs in one cooperative launch, for any number of types and relations.
// labor.cuh describes the phases.
//
// Go caller: internal/engine/cuda/labor.go. Go twin: internal/engine/cpu/labor.go.
#include "hetero/labor.cuh"

#define LABOR(name, I) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ LaborArgs a) { labor<I>(a); }

LABOR(labor32, int)
LABOR(labor64, long long)
