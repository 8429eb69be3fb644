package cuda

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// placed is a graph on the device whose arrays begin so many elements after a
// place that is aligned to 16 bytes, and the same graph on the host.
func placed(t *testing.T, e *Engine, indptr, indices []int64, nodes int64, indptrBits, idBits, shift int) (*csc.Relation, Arrays) {
	t.Helper()
	// The entries before the arrays are no offsets and no ids: they must not be read.
	before := []int64{1 << 30, -1, 1 << 30, -1}[:shift]
	held := &csc.Relation{
		Indptr: csctest.Array(append(append([]int64{}, before...), indptr...), indptrBits),
		// And what lies behind.
		Indices:  csctest.Array(append(append(append([]int64{}, before...), indices...), -1, -1), idBits),
		NumNodes: nodes,
	}
	a := upload(t, e, held).Arrays
	a.Indptr += gpu.Address(shift * indptrBits / 8)
	a.Indices += gpu.Address(shift * idBits / 8)
	a.Rows, a.Edges = int64(len(indptr))-1, int64(len(indices))
	return &csc.Relation{Indptr: csctest.Array(indptr, indptrBits), Indices: csctest.Array(indices, idBits), NumNodes: nodes}, a
}

// alike says how the errors of the two validations differ, if they do.
func alike(got, want error) error {
	var value *csc.ValueError
	switch {
	case got == nil && want == nil:
		return nil
	case got == nil || want == nil || got.Error() != want.Error() || !errors.As(got, &value):
		return fmt.Errorf("got %T %v, want %v", got, got, want)
	}
	return nil
}

// Every small size, at every place: each element in turn is broken, and then a
// second one behind it.
func TestValidateSmall(t *testing.T) {
	e, _ := device(t)
	for size := 1; size <= 13; size += 3 {
		for _, bits := range []int{32, 64} {
			for shift := range 4 {
				indptr, indices := make([]int64, size+1), make([]int64, 2*size)
				for i := range indptr {
					indptr[i] = int64(2 * i)
				}
				for i := range indices {
					indices[i] = int64(i / 2)
				}
				try := func() {
					g, a := placed(t, e, indptr, indices, int64(size), bits, 96-bits, shift)
					if err := alike(e.Validate(a), g.Validate()); err != nil {
						t.Fatalf("indptr %v, indices %v, %d bits, shift %d: %v", indptr, indices, bits, shift, err)
					}
				}
				try()
				for i := range indptr {
					kept := indptr[i]
					for _, wrong := range []int64{-1, kept + 3} {
						indptr[i] = wrong
						try()
					}
					indptr[i] = kept
				}
				for i := range indices {
					kept := indices[i]
					for _, wrong := range []int64{-1, int64(size)} {
						indices[i] = wrong
						try()
						if i+1 < len(indices) {
							indices[len(indices)-1] = -7
							try()
							indices[len(indices)-1] = int64(size) - 1
						}
					}
					indices[i] = kept
				}
			}
		}
	}
}

// Arrays that many blocks share: offenders far apart, the lowest is named.
func TestValidateLarge(t *testing.T) {
	e, _ := device(t)
	const rows = 100_003
	state := rng.NewStream(1, 0, 0, 0, rng.Shuffling).State(0)
	draw := 0
	below := func(n int) int {
		draw++
		return int(rng.Below(rng.Draw(state, draw), uint64(n)))
	}
	for _, bits := range []int{32, 64} {
		indptr := make([]int64, rows+1)
		for i := range rows {
			indptr[i+1] = indptr[i] + int64(below(7))
		}
		indices := make([]int64, indptr[rows])
		for i := range indices {
			indices[i] = int64(below(rows))
		}
		g, a := placed(t, e, indptr, indices, rows, 96-bits, bits, 1)
		if err := alike(e.Validate(a), g.Validate()); err != nil || g.Validate() != nil {
			t.Fatalf("%v, %v", err, g.Validate())
		}
		for range 6 {
			for _, broken := range [][]int64{indptr[1:rows], indices} {
				places := []int{below(len(broken)), below(len(broken)), below(len(broken))}
				var kept []int64
				for _, i := range places {
					kept = append(kept, broken[i])
					broken[i] = -int64(below(2)) - 1
				}
				g, a := placed(t, e, indptr, indices, rows, 96-bits, bits, below(4))
				if err := alike(e.Validate(a), g.Validate()); err != nil || g.Validate() == nil {
					t.Errorf("broken at %v: %v, %v", places, err, g.Validate())
				}
				for k := range places {
					broken[places[len(places)-1-k]] = kept[len(places)-1-k]
				}
			}
		}
	}
}

// Sizes are checked without reading the arrays.
func TestValidateSizes(t *testing.T) {
	e, _ := device(t)
	for _, nodes := range []int64{0, 1, 1 << 31, 1<<31 + 1, 1<<48 + 1} {
		for _, bits := range []int{32, 64} {
			g, a := placed(t, e, []int64{0, 1}, []int64{0}, nodes, 64, bits, 0)
			if err := alike(e.Validate(a), g.Validate()); err != nil {
				t.Errorf("%d nodes, %d bits: %v", nodes, bits, err)
			}
		}
	}
	g, a := placed(t, e, []int64{0}, nil, 3, 32, 32, 0)
	if err := alike(e.Validate(a), g.Validate()); err != nil {
		t.Error(err)
	}
	a.Rows = -1
	if err := alike(e.Validate(a), (&csc.Relation{}).Validate()); err != nil {
		t.Error(err)
	}
}
