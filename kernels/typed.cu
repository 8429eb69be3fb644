// The L-hop uniform sampler of graphs with types in one cooperative launch, whatever the number of types and of
// relations: typed_batch.cuh. The kernels whose names end in _all also know weights, factors, trees and times.
// Go caller: internal/engine/cuda/hetero.go.
#include "typed_batch.cuh"

#define TYPED(name, I, ALL) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ TypedArgs a) { typed<I, ALL>(a); }

TYPED(typed32, int, false)
TYPED(typed64, long long, false)
TYPED(typed32_all, int, true)
TYPED(typed64_all, long long, true)
