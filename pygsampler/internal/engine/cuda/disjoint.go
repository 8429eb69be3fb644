package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// disjointSpace is the additional working memory of a disjoint batch: a table of pairs of tree and
// node, instead of the map of all nodes.
type disjointSpace struct {
	keys, words buffer // for each slot its pair, and what a map has for a node
	trees       buffer // for each row
	bits        int    // log2 of the slots in use
	shift       int    // a pair's key is tree << shift | node
}

// fit allocates a batch of hops hops, and clears the table.
func (t *disjointSpace) fit(f *Flight, hops int) error {
	// A batch that needs more is repeated with twice the edges.
	if err := t.room(f.graph, f.space, f.call.NumSeeds, f.need.Edges*int64(hops), f.stream); err != nil {
		return err
	}
	slots := uint64(1) << t.bits
	return errors.Join(
		f.stream.Fill32(t.keys.Address, emptyWord, slots*2), f.stream.Fill32(t.words.Address, emptyWord, slots*2),
	)
}

// room allocates a batch of seeds seeds and edges edges over all hops; it does not clear the table.
func (t *disjointSpace) room(g *Graph, w *Workspace, seeds, edges int64, stream gpu.Stream) error {
	hop, bins := SpaceOf[hopSpace](w), SpaceOf[binSpace](w)
	shift, err := request.TreeShift(g.Nodes, seeds)
	if err != nil {
		return err
	}
	t.shift = shift
	// At most half full.
	most := max(uint64(seeds)+uint64(edges), 1)
	t.bits = max(bits.Len64(2*most-1), 10)
	if t.bits > 31 {
		return fmt.Errorf("%w: a disjoint batch of up to %d pairs: expected at most 2^30 on a GPU", request.ErrOverflow, most)
	}
	slots := uint64(1) << t.bits
	return errors.Join(
		t.keys.fit(w, slots*8, stream), t.words.fit(w, slots*8, stream),
		t.trees.fit(w, uint64(hop.rowCapacity)*4, stream), bins.answers.fit(w, uint64(hop.edgeCapacity)*4*2, stream),
	)
}

// asMap is the table's words in the map's place: empty, so that any tag is new.
func (t *disjointSpace) asMap() *vertexMap {
	return &vertexMap{Memory: t.words.Memory, nodes: math.MaxInt64, bits: 64, shift: 32, next: 1}
}

func (t *disjointSpace) arguments(a *neighborArgs) {
	a.Keys, a.Trees = t.keys.Address, t.trees.Address
	a.TableBits, a.TreeShift = uint32(t.bits), uint32(t.shift)
	a.KnownFrom = ^uint64(0)
}

// Forget does nothing, since every batch empties its table.
func (*disjointSpace) Forget() {}

func (t *disjointSpace) Free(s gpu.Stream) error {
	return errors.Join(t.keys.Free(s), t.words.Free(s), t.trees.Free(s))
}
