// The L-hop uniform sampler of heterogeneous graphs in one cooperative launch, for any number of
// types and relations. hetero_batch.cuh describes the phases. The kernels whose names end in _all
// also support weights, factors, disjoint trees and times.
//
// Go caller: internal/engine/cuda/hetero.go. Go twin: internal/engine/cpu/hetero.go.
#include "hetero/hetero_batch.cuh"

#define HETERO(name, I, ALL) \
  extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ HeteroArgs a) { hetero<I, ALL>(a); }

HETERO(hetero32, int, false)
HETERO(hetero64, long long, false)
HETERO(hetero32_all, int, true)
HETERO(hetero64_all, long long, true)
