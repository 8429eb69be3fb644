// Package request defines the requests to both engines, and the values that follow from a request
// on any engine: the edges that a row contributes, the estimated size of a batch, and the possible
// errors of a request.
package request

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// Hops says which neighborhood is sampled, hop by hop from the seeds outwards.
type Hops struct {
	Fanouts []int64 // outermost hop first; -1 takes all edges
	Replace bool
	// OnlyNew expands a node only at the hop after the one that reached it first;
	// else each hop expands all nodes reached so far.
	OnlyNew bool
	// Disjoint gives each seed its own tree, which shares no nodes or draws with the others.
	Disjoint bool
}

// Batch identifies a batch of a plan, which is a function of both and of the graph only. The seeds
// must stay valid until the batch is complete.
type Batch struct {
	Seed   uint64
	Epoch  uint32
	Number uint64
	Seeds  csc.Array
}

// CheckSeeds returns ErrIndex, with the position, for a seed that is not in [0, nodes).
func (b *Batch) CheckSeeds(nodes int64) error {
	for i := range b.Seeds.Len() {
		if v := b.Seeds.Element(i); uint64(v) >= uint64(nodes) {
			return fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %d", ErrIndex, i, nodes, v)
		}
	}
	return nil
}

// CheckSeedsOf checks, like CheckSeeds, the count seeds from first on, which belong to a node type.
func (b *Batch) CheckSeedsOf(name string, first, count, nodes int64) error {
	for i := range count {
		if v := b.Seeds.Element(first + i); uint64(v) >= uint64(nodes) {
			return fmt.Errorf("%w: seeds[%q][%d]: expected an id in [0, %d), got %d", ErrIndex, name, i, nodes, v)
		}
	}
	return nil
}

// Request is a request for a batch of neighbors.
type Request struct {
	Hops
	Batch
}

// Errors that can end a request on any engine.
var (
	ErrCancelled = errors.New("cancelled")
	ErrIndex     = errors.New("index error")
	ErrOverflow  = errors.New("overflow")
	ErrValue     = errors.New("value error")
	ErrType      = errors.New("type error")
	ErrLarge     = errors.New("larger than its bound") // of those who set one
)

// KeyBits is the maximal number of bits of a pair of tree and node: the bits that the CPU engine's
// table has in addition to its tags.
const KeyBits = 48

// TreeShift returns the number of bits below the tree in the key of a pair, which hold the node. It
// returns an error if a disjoint batch of seeds seeds has no such keys.
func TreeShift(nodes, seeds int64) (int, error) {
	shift := bits.Len64(uint64(max(nodes-1, 0)))
	if shift+bits.Len64(uint64(max(seeds-1, 0))) > KeyBits {
		return shift, fmt.Errorf("%w: seeds: expected at most 2^%d with disjoint=True and %d nodes, got %d",
			ErrValue, KeyBits-shift, nodes, seeds)
	}
	return shift, nil
}
