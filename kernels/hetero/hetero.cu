// The L-hop uniform sampler of graphs with types in one cooperative launch, whatever the number of types and of
// relations: hetero_batch.cuh. The kernels whose names end in _all also know weights, factors, trees and times.
// Go caller: internal/engine/cuda/hetero.go.
#include "hetero/hetero_batch.cuh"

#define HETERO(name, I, ALL) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ HeteroArgs a) { hetero<I, ALL>(a); }

HETERO(hetero32, int, false)
HETERO(hetero64, long long, false)
HETERO(hetero32_all, int, true)
HETERO(hetero64_all, long long, true)
