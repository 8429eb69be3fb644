package program

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// refused is how a device makes batches of a program that it has no kernels for: not at all.
type refused struct{ words int }

func (r *refused) err() error {
	return fmt.Errorf("%w: program: expected a graph on the CPU, got one on a GPU, where this program has no kernels yet", request.ErrValue)
}

// Check refuses every graph.
func (r *refused) Check(*cuda.Graph, *cuda.Call) error { return r.err() }

// Words is how many describe a batch.
func (r *refused) Words() int { return r.words }

// Shape is one for all.
func (r *refused) Shape() string { return "" }

// Guess is nothing.
func (r *refused) Guess(*cuda.Graph, int64) cuda.Needs { return cuda.Needs{} }

// Fit refuses, as what Check refuses never comes here.
func (r *refused) Fit(*cuda.Flight) error { return r.err() }

// Launch refuses likewise.
func (r *refused) Launch(*cuda.Flight) error { return r.err() }

// Arrived refuses likewise.
func (r *refused) Arrived(*cuda.Flight, int64, int64) (again bool, err error) { return false, r.err() }

// Used is nothing.
func (r *refused) Used(*cuda.Flight) cuda.Needs { return cuda.Needs{} }
