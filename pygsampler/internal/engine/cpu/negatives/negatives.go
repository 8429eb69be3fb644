// Package negatives draws the negative samples of skip-gram for walks, uniformly or by degree, and
// builds the table for draws by degree. docs/developer/walk-draws.md has the rule.
package negatives

import (
	"fmt"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Request asks for Count numbers for each of several places. A place p is slot p % Slots of walk p
// / Slots, and its number k is draw (p % Slots) * Count + k of the walk's state: neither the other
// places nor their order change it. The zero value asks for no numbers.
type Request struct {
	Seed   uint64
	Epoch  uint32
	Batch  uint64
	Site   uint8     // which draws of the walk; those of sites are independent
	Below  int64     // numbers are in [0, Below)
	Alias  []uint64  // of Below nodes, as rng.Weights has it; nil: all are equally likely
	Places csc.Array // of 64 bits, >= 0; Bits 0: those from 0 on
	Rows   int64     // how many places
	Slots  int64     // of a walk, at least 1
	Count  int64
	Out    csc.Array // Rows * Count
}

// Check returns an error for requests that cannot be served, on the CPU and on CUDA.
func (r *Request) Check() error {
	switch {
	case r.Rows < 0 || r.Count < 0 || r.Slots < 1 || r.Rows > (1<<62)/max(r.Count, 1):
		return fmt.Errorf("%w: negatives: expected rows and a count >= 0 and slots >= 1, got %d, %d and %d", request.ErrValue, r.Rows, r.Count, r.Slots)
	case r.Slots > (1<<62)/max(r.Count, 1):
		return fmt.Errorf("%w: negatives: expected fewer draws of a walk, got %d slots of %d", request.ErrValue, r.Slots, r.Count)
	case r.Below < 1 && r.Rows*r.Count > 0:
		return fmt.Errorf("%w: negatives: expected a graph with nodes, got one of %d", request.ErrValue, r.Below)
	case r.Epoch > rng.MaxEpoch || r.Batch > rng.MaxBatch:
		return fmt.Errorf("%w: negatives: expected an epoch and a batch of at most %d and %d, got %d and %d", request.ErrValue, rng.MaxEpoch, int64(rng.MaxBatch), r.Epoch, r.Batch)
	}
	return nil
}

// Stream returns the random stream that the states of walks come from.
func (r *Request) Stream() rng.Stream {
	return rng.NewStream(r.Seed, r.Epoch, r.Batch, r.Site, rng.Negatives)
}

// unit is the approximate number of numbers that a worker draws at a time.
const unit = 1 << 14

// Draw fills Out.
func (r *Request) Draw(crew csc.Crew) error {
	if err := r.Check(); err != nil {
		return err
	}
	if r.Rows*r.Count == 0 {
		return nil
	}
	if int64(len(r.Places.I64)) != r.Rows && r.Places.Bits != 0 || r.Out.Len() != r.Rows*r.Count {
		return fmt.Errorf("negatives: %d rows of %d, %d places, out of %d", r.Rows, r.Count, r.Places.Len(), r.Out.Len())
	}
	if r.Alias != nil && int64(len(r.Alias)) != r.Below {
		return fmt.Errorf("negatives: a table of %d for %d nodes", len(r.Alias), r.Below)
	}
	if r.Out.Bits == 32 {
		draw(r, r.Out.I32, crew)
	} else {
		draw(r, r.Out.I64, crew)
	}
	return nil
}

func draw[I csc.Index](r *Request, out []I, crew csc.Crew) {
	stream, by := r.Stream(), rng.Weights{Alias: r.Alias}
	each := max(unit/r.Count, 1)
	units := (r.Rows + each - 1) / each
	var next atomic.Int64
	csc.Crewed(crew, units, func() {
		for u := next.Add(1) - 1; u < units; u = next.Add(1) - 1 {
			// Places of a walk are beside each other, as a rule.
			walk, state := int64(-1), uint64(0)
			for i := u * each; i < min((u+1)*each, r.Rows); i++ {
				place := i
				if r.Places.Bits != 0 {
					place = r.Places.I64[i]
				}
				if w := place / r.Slots; w != walk {
					walk, state = w, stream.State(uint64(w))
				}
				first := place % r.Slots * r.Count
				to := out[i*r.Count:][:r.Count]
				if r.Alias == nil {
					for k := range to {
						to[k] = I(rng.Below(rng.Draw(state, int(first)+k), uint64(r.Below)))
					}
					continue
				}
				for k := range to {
					to[k] = I(by.AliasPosition(rng.Draw(state, int(first)+k)))
				}
			}
		}
	})
}
