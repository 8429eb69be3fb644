package source

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// OfPoisson returns the text of hops of Poisson sampling, whose batches are the batches of the
// recognized program. The launch passes the number of hops, of edges, and of rounds; importance
// says that there are rounds.
func OfPoisson(values program.PoissonValues, importance bool) Text {
	name := [...]string{program.NoValues: "NO_VALUES", program.OfChances: "OF_CHANCES", program.OfMeans: "OF_MEANS"}[values]
	cells := 4 * rng.MaxHops
	if importance {
		cells *= 3
	}
	return Text{Numberings: 1, Cells: cells, Source: fmt.Sprintf(`#include "program/poisson.cuh"
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) %s(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  Poisson<%s, %t>(m).run();
  m.end();
}
`, Kernel, name, importance)}
}
