package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Hops is the common part of plans that sample hop by hop.
type Hops struct{ request.Hops }

// Check returns an error for requests that no kernel has room for.
func (h *Hops) Check(g *Graph, c *Call) error {
	if hops := len(h.Fanouts); hops > MostHops {
		return fmt.Errorf("%w: fanouts: expected at most %d hops on a GPU, got %d", request.ErrValue, MostHops, hops)
	}
	return nil
}

// Words returns the number of words of the header and of a block for each hop.
func (h *Hops) Words() int { return batch.Homogeneous(len(h.Fanouts)).Words() }

// Shape returns the fanouts, and all other parameters that determine the number of edges.
func (h *Hops) Shape() string {
	text := make([]byte, 0, 64)
	for _, fanout := range h.Fanouts {
		text = binary.AppendVarint(text, fanout)
	}
	for _, is := range []bool{h.Replace, h.OnlyNew, h.Disjoint} {
		text = append(text, byte(Word(is)))
	}
	return string(text)
}

// A first guess is bounded by these sizes: a batch that needs more is repeated.
const (
	mostOut   = 1 << 28
	mostRows  = 1 << 22
	mostGuess = 1 << 26 // edges
)

// Guess estimates the needs of a batch from rows of twice the mean degree.
func (h *Hops) Guess(g *Graph, seeds int64) Needs {
	widths := g.Widths()
	out, rows, edges := 4096+float64(widths.Nodes(2*seeds)), float64(seeds), 0.0
	degree := 2 * float64(g.Edges) / float64(max(g.Nodes, 1))
	vertices := h.Expect(seeds, g.Nodes, degree, func(hopRows, hopEdges float64) {
		out += hopRows*float64(widths.ID) + hopEdges*float64(widths.ID+widths.EdgeID) + 4*batch.Alignment
		rows, edges = hopRows, max(edges, hopEdges)
	})
	out += vertices * float64(widths.ID)
	return Needs{Out: uint64(min(out, mostOut)), Rows: int64(min(rows, mostRows)), Edges: int64(min(edges, mostGuess))}
}

// Used returns the sizes in the header, plus a quarter.
func (h *Hops) Used(f *Flight) Needs {
	words := f.batch.Header
	n := Needs{Out: uint64(words[batch.WordSize]) * 5 / 4, Ranks: f.call.NumSeeds, Arrived: true}
	for i := range h.Fanouts {
		block := batch.Block(words, i)
		n.Rows = max(n.Rows, (block[batch.BlockNumDst]+block[batch.BlockFirstDst])*5/4)
		n.Edges = max(n.Edges, block[batch.BlockNumEdges]*5/4)
		n.Ranks += block[batch.BlockNumEdges] * 5 / 4
	}
	return n
}

// Fit allocates the rows and edges of a hop.
func (h *Hops) Fit(f *Flight) error { return SpaceOf[hopSpace](f.space).fit(f.space, f.need, f.stream) }

// Arrived handles no additional status.
func (h *Hops) Arrived(_ *Flight, status, _ int64) (bool, error) {
	return false, fmt.Errorf("a kernel reported status %d: a fault of pygsampler", status)
}

// hopSpace is the working memory of rows, maps and numbers of a hop.
type hopSpace struct {
	narrow vertexMap // for plain launches of neighbor.cu; each map is allocated on demand
	wide   vertexMap // for the others
	rows   buffer    // 16 bytes for each row of a hop
	vertex buffer    // and its node
	firsts buffer    // a bit for each edge of a hop

	rowCapacity, edgeCapacity int64
}

func (s *hopSpace) fit(w *Workspace, n Needs, stream gpu.Stream) error {
	s.narrow.bits, s.wide.bits = 32, 64
	rows, edges := max(n.Rows, s.rowCapacity), max(n.Edges, s.edgeCapacity)
	if rows > s.rowCapacity {
		s.rowCapacity = 0 // a buffer whose growth fails is gone
		if err := errors.Join(s.rows.fit(w, uint64(rows)*16, stream), s.vertex.fit(w, uint64(rows)*8, stream)); err != nil {
			return err
		}
		s.rowCapacity = rows
	}
	if edges > s.edgeCapacity {
		s.edgeCapacity = 0
		// A word of firsts for every 32 edges, and one for the last part of each block.
		if err := s.firsts.fit(w, uint64(edges)/8+4*MostBlocks, stream); err != nil {
			return err
		}
		s.edgeCapacity = edges
	}
	return nil
}

// HopRoom is the memory for the rows and edges of a hop, with its capacity for both.
type HopRoom struct {
	Rows, Nodes, Firsts       gpu.Address // 16 bytes a row, its node, a bit an edge
	RowCapacity, EdgeCapacity int64
}

// HopRoom returns the memory that Hops.Fit allocated.
func (f *Flight) HopRoom() HopRoom {
	s := SpaceOf[hopSpace](f.space)
	return HopRoom{s.rows.Address, s.vertex.Address, s.firsts.Address, s.rowCapacity, s.edgeCapacity}
}

// LeaveTags leaves the workspace's map of 64-bit words n tags, as after nearly 2^32 launches. Tests
// of plans call it.
func (w *Workspace) LeaveTags(n uint32) { SpaceOf[hopSpace](w).wide.next = n }

// Forget lets the next launch begin with an empty map.
func (s *hopSpace) Forget() { s.narrow.next, s.wide.next = 0, 0 }

func (s *hopSpace) Free(stream gpu.Stream) error {
	return errors.Join(
		s.narrow.Free(stream), s.wide.Free(stream), s.rows.Free(stream), s.vertex.Free(stream), s.firsts.Free(stream),
	)
}
