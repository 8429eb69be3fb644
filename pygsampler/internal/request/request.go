// Package request is what both engines are asked for, and what follows from it
// whoever samples: which edges a row gives, about how large a batch is, and what
// can be wrong with a request.
package request

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// Hops says which neighbourhood is sampled, hop by hop from the seeds outwards.
type Hops struct {
	Fanouts []int64 // outermost hop first; -1 takes all edges
	Replace bool
	// OnlyNew expands a vertex only at the hop after the one that reached it first;
	// else each hop expands all vertices reached so far.
	OnlyNew bool
	// Disjoint gives each seed a tree of its own, which shares no vertices or draws
	// with the others.
	Disjoint bool
}

// Batch says which batch of a plan is made. It is a function of both and of the graph
// alone. The seeds must stay valid until it is there.
type Batch struct {
	Seed   uint64
	Epoch  uint32
	Number uint64
	Seeds  csc.Array
}

// CheckSeeds returns ErrIndex, and which it is, for a seed that is none of so many vertices.
func (b *Batch) CheckSeeds(nodes int64) error {
	for i := range b.Seeds.Len() {
		if v := b.Seeds.Element(i); uint64(v) >= uint64(nodes) {
			return fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %d", ErrIndex, i, nodes, v)
		}
	}
	return nil
}

// CheckSeedsOf does so for the count seeds from first on, which are of a node type.
func (b *Batch) CheckSeedsOf(name string, first, count, nodes int64) error {
	for i := range count {
		if v := b.Seeds.Element(first + i); uint64(v) >= uint64(nodes) {
			return fmt.Errorf("%w: seeds[%q][%d]: expected an id in [0, %d), got %d", ErrIndex, name, i, nodes, v)
		}
	}
	return nil
}

// Request is a batch of neighbours.
type Request struct {
	Hops
	Batch
}

// What a request can end with, whichever engine it was made to.
var (
	ErrCancelled = errors.New("cancelled")
	ErrIndex     = errors.New("index error")
	ErrOverflow  = errors.New("overflow")
	ErrValue     = errors.New("value error")
	ErrType      = errors.New("type error")
	ErrLarge     = errors.New("larger than its bound") // of those who set one
)

// KeyBits is how many bits a pair of tree and vertex may take: what the CPU engine's
// table has beside its tags.
const KeyBits = 48

// TreeShift is by how many bits a tree stands above the vertices of a graph in the key
// of a pair. An error says that a disjoint batch of so many seeds has no such keys.
func TreeShift(nodes, seeds int64) (int, error) {
	shift := bits.Len64(uint64(max(nodes-1, 0)))
	if shift+bits.Len64(uint64(max(seeds-1, 0))) > KeyBits {
		return shift, fmt.Errorf("%w: seeds: expected at most 2^%d with disjoint=True and %d vertices, got %d",
			ErrValue, KeyBits-shift, nodes, seeds)
	}
	return shift, nil
}
