// Writes some values of a graph's edge array: to[ids[i]] = values[i].
//
// Samplers that learn change the values of the edges that a batch has drawn, which are few: copying
// those and their ids is cheaper than copying the array. A thread writes one value at a time. The
// ids of the list are distinct, so no two threads write to the same address.
//
// Go caller: internal/engine/cuda/program_arrays.go. Go twin: none; the host writes its own array in
// place.
#include "common/philox.cuh"

// Mirrors writeArgs in internal/engine/cuda/program_arrays.go; loading compares the sizes.
struct WriteArgs {
  double* to;            // [length]
  const long long* ids;  // [count]
  const double* values;  // [count]
  u64 count, length;
};

extern "C" __global__ void __launch_bounds__(WRITE_THREADS) write_values(const __grid_constant__ WriteArgs a) {
  for (u64 i = (u64)blockIdx.x * WRITE_THREADS + threadIdx.x; i < a.count; i += (u64)gridDim.x * WRITE_THREADS) {
    u64 id = (u64)a.ids[i];
    if (id < a.length) a.to[id] = a.values[i];
  }
}
