// Draws nodes, uniformly or by an alias table over all of them: the negative samples of skip-gram for
// random walks.
//
// A walk has a separate state for them, and every number is a draw at a position of its own, so
// neither the grid nor other places change a bit, and leaving out pairs does not change the others.
// The unit of work is a number: adjacent lanes write adjacent numbers, and the computation that they
// repeat, ten rounds of Philox, costs less than one read of the table.
//
// Go caller: internal/engine/cuda/negatives.go. Go twin: internal/engine/cpu/negatives.
#include "neighbor/weighted.cuh"

// Mirrors negativeArgs in internal/engine/cuda/negatives.go; loading compares the sizes.
struct NegativeArgs {
  const u64* alias;      // [below]; null: all are equally likely
  const u64* places;     // [numbers / count]; null: 0, 1, ...
  void* out;             // [numbers], of out_bits
  u64 numbers, count;    // count: of a place
  u64 slots, below;      // places of a walk; what numbers are below
  u32 key0, key1, batch0, batch1;
  u32 site, out_bits;
};

extern "C" __global__ void __launch_bounds__(NEGATIVE_THREADS) negatives(const __grid_constant__ NegativeArgs a) {
  const Stream stream = stream_of(a.key0, a.key1, a.site, a.batch0, a.batch1, PURPOSE_NEGATIVES);
  for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < a.numbers; i += (u64)gridDim.x * blockDim.x) {
    u64 row = i / a.count, place = a.places ? a.places[row] : row, walk = place / a.slots;
    u64 bits = draw_bits64(row_state(stream, walk), (place - walk * a.slots) * a.count + (i - row * a.count));
    write(a.out, a.out_bits, i, a.alias ? weighted_pick(a.alias, bits, a.below) : below(bits, a.below));
  }
}
