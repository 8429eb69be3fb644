package walk

import (
	"fmt"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// remoteReply is a reply of a partition with more than one edge per row: a number, and edges, or
// none.
type remoteReply[I csc.Index] struct {
	numbers  []int64 // a row's; where there are edges that of listed
	vertices []I     // that the edges lead to
	ids      csc.Array
	weights  []uint64 // nil: replies do not have them
}

// Words before an answer of that kind: toldMagic, how wide ids are, how many rows and edges there are, and whether
// these have weights.
const (
	toldIDBits = 1 + iota
	toldEdgeIDBits
	toldRows
	toldEdges
	toldWeighted
	toldWords
)

const toldMagic = batch.WalkMagic + 1

// A row's number is the end of its edges, with their kind in its lowest bits.
const (
	noEdge  = iota // it has none
	settled        // the last of them is taken where none before it is
	open           // the next question tells more
	refused        // none of all tries settles it
)

const stateBits = 2

// toldPlaces returns the offsets of the arrays, and the size of all.
func toldPlaces(rows, edges, idBits, edgeBits int64, weighted bool) (places [4]int64, size int64) {
	place := batch.Place(8 * toldWords)
	places = [4]int64{place.Next(8 * rows), place.Next(edges * idBits / 8), place.Next(edges * edgeBits / 8)}
	if weighted {
		places[3] = place.Next(8 * edges)
	}
	return places, place.Aligned()
}

// tell returns the memory of a reply: the edges at these positions of a partition's graph.
func tell[I csc.Index](p *PartEdges, numbers, places []int64, weights []uint64) (m memory.Memory, err error) {
	rows, edges := int64(len(numbers)), int64(len(places))
	bits, edgeBits, weighted := int64(p.Vertices.Bits), int64(p.EdgeBits), int64(0)
	if weights != nil {
		weighted = 1
	}
	at, size := toldPlaces(rows, edges, bits, edgeBits, weights != nil)
	if err := memory.Affordable(size); err != nil {
		return m, err
	}
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	copy(memory.ViewAt[int64](m, 0, toldWords), []int64{toldMagic, bits, edgeBits, rows, edges, weighted})
	copy(memory.ViewAt[int64](m, at[0], rows), numbers)
	vertices, ids := memory.ViewAt[I](m, at[1], edges), idsAt(m, at[2], edges, p.EdgeBits)
	for i, place := range places {
		vertices[i] = I(p.Relation.Indices.Element(place))
		setID(ids, int64(i), p.id(place))
	}
	if weights != nil {
		copy(memory.ViewAt[uint64](m, at[3], edges), weights)
	}
	return m, nil
}

// toldOf parses a reply, which may have come over a network: it validates the size. edgeBits is as
// for takenOf.
func toldOf[I csc.Index](a cpu.RowReply, rows int64, edgeBits int, weighted bool) (t remoteReply[I], err error) {
	if a.Size < 8*toldWords || a.Address%8 != 0 {
		return t, fmt.Errorf("%w: an answer of %d bytes at %#x, expected at least %d at a multiple of 8", request.ErrValue, a.Size, a.Address, 8*toldWords)
	}
	var word I
	words, width := memory.View[int64](a.Address, toldWords), int64(unsafe.Sizeof(word))
	edges, bits := words[toldEdges], words[toldEdgeIDBits]
	sound := words[0] == toldMagic && words[toldIDBits] == 8*width && words[toldRows] == rows && edges >= 0 && edges <= a.Size &&
		(bits == 32 || bits == 64) && (edgeBits == 0 || int64(edgeBits) == bits) && (words[toldWeighted] != 0) == weighted
	if sound {
		_, size := toldPlaces(rows, edges, 8*width, bits, weighted)
		sound = size <= a.Size
	}
	if !sound {
		return t, fmt.Errorf("%w: an answer of %d bytes to another question: expected the data of %d rows, got that of %d",
			request.ErrValue, a.Size, rows, words[toldRows])
	}
	at, _ := toldPlaces(rows, edges, 8*width, bits, weighted)
	t.numbers, t.vertices = memory.View[int64](a.Address+at[0], rows), memory.View[I](a.Address+at[1], edges)
	if edgeBits != 0 {
		t.ids = csc.Borrow(a.Address+at[2], edges, edgeBits)
	}
	if weighted {
		t.weights = memory.View[uint64](a.Address+at[3], edges)
	}
	return t, nil
}

// listed is which edges are row i's, and what they are.
func (t *remoteReply[I]) listed(i int) (first, end int64, state int, err error) {
	if i > 0 {
		first = t.numbers[i-1] >> stateBits
	}
	end, state = t.numbers[i]>>stateBits, int(t.numbers[i]&(1<<stateBits-1))
	if first < 0 || end < first || end > int64(len(t.vertices)) || state == settled && end == first {
		return 0, 0, 0, fmt.Errorf("%w: an answer whose rows are no rows: edges %d to %d of %d", request.ErrValue, first, end, len(t.vertices))
	}
	return first, end, state, nil
}
