package source

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// OfPoisson is the text of such hops, whose batches are those of the program that they were recognised in. How many there are,
// and of how many edges, its launches bring.
func OfPoisson(values program.PoissonValues) Text {
	name := [...]string{program.NoValues: "NO_VALUES", program.OfChances: "OF_CHANCES", program.OfMeans: "OF_MEANS"}[values]
	return Text{Numberings: 1, Cells: 4 * rng.MaxHops, Source: fmt.Sprintf(`#include "program_poisson.cuh"
extern "C" __global__ void __launch_bounds__(PROGRAM_THREADS, 2) %s(const __grid_constant__ ProgramArgs a) {
  Machine m(a);
  Poisson<%s>(m).run();
  m.end();
}
`, Kernel, name)}
}
