package cpu

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Reservoirs draws rows of cpu.Sample by Reservoir, of random numbers of its own.
var Reservoirs = &cpu.RowDraw{Purpose: rng.Reservoirs, Choose: Reservoir}

// Reservoir fills pos with len(pos) distinct positions of [0, degree) by Vitter's Algorithm R: the first
// ones in order, then position i instead of a draw of [0, i], draw i of the row, where that is below
// len(pos). It needs degree > len(pos); its cost is O(degree). CUDA twin: fill in kernels/research/reservoir.cu.
func Reservoir(pos []int64, state uint64, degree int64) {
	for j := range pos {
		pos[j] = int64(j)
	}
	state = rng.Advance(state, len(pos))
	for i := int64(len(pos)); i < degree; i++ {
		state = rng.Advance(state, 1)
		if slot := rng.Below(rng.Mix(state), uint64(i)+1); slot < uint64(len(pos)) {
			pos[slot] = i
		}
	}
}
