package cpu

import (
	"fmt"
	"math"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// RemoteRows holds the whole rows of a partitioned graph that a batch has requested, as a graph:
// its nodes are the nodes of the whole graph, so that draws by node ids are equal, and its edges
// are stored in the order in which their rows arrived. A row is requested once per batch, and comes
// without the excluded edges of the batch. One goroutine uses it.
type RemoteRows[I csc.Index] struct {
	remoteSource[I]
	// Relation has no Indptr: Rows returns the positions of rows. Its EdgeData are indexed by the
	// positions of edges instead of their ids. With weights it has Sums, and an Alias without
	// elements, since single edges are never drawn from it.
	Relation csc.Relation

	numbers *NodeMap // of the nodes whose rows are here
	known   []I      // these nodes, with one more than used, as Claim has it
	n       int64
	ends    []int64 // of their rows
	ids     []I
	indices []I
	ids32   []int32
	ids64   []int64
	names   []string    // of arrays, in the order in which answers have them
	values  [][]float64 // these
	sums    []uint64
	copies  csc.Copies // of the rows before `copied`; nil: they have none
	copied  int
}

// NewRemoteRows returns an empty RemoteRows for a graph of vertices nodes whose edges come from sources
// nodes; the partitions begin at bounds. names are the arrays of edges in replies; without names,
// edges may have weights. The batch is the only user of the map of nodes.
func NewRemoteRows[I csc.Index](vertices, sources int64, bounds []int64, widths batch.Widths, names []string, numbers *NodeMap) (*RemoteRows[I], error) {
	r := &RemoteRows[I]{remoteSource: remoteSource[I]{bounds: bounds, nodes: sources, widths: widths, beside: int64(len(names))}, numbers: numbers, names: names}
	if len(names) == 0 {
		r.beside = optional
	}
	r.values = make([][]float64, len(names))
	r.Relation.NumNodes = sources
	r.tell()
	return r, numbers.Begin(vertices, vertices)
}

// Bring requests the rows of the nodes that are not here yet.
func (r *RemoteRows[I]) Bring(vertices []I, ask func(*RowRequest) ([]RowReply, error)) error {
	if err := r.want(vertices); err != nil {
		return err
	}
	if err := askTogether(&RowRequest{}, ask, []*remoteSource[I]{&r.remoteSource}); err != nil {
		return err
	}
	return r.keep()
}

// Locate returns the positions and the lengths of the rows of nodes, all of which must be here.
func (r *RemoteRows[I]) Locate(vertices []I, starts, degrees []int64) {
	r.ids = append(r.ids[:0], vertices...)
	Find(r.numbers, r.ids)
	for i, k := range r.ids {
		start := int64(0)
		if k > 0 {
			start = r.ends[k-1]
		}
		starts[i], degrees[i] = start, r.ends[k]-start
	}
}

// Copies returns the copies of the present rows, like csc.Relation.Copies; callers must not use the
// method of Relation.
func (r *RemoteRows[I]) Copies() csc.Copies {
	var scratch csc.RowCopies[I]
	for ; r.copied < len(r.ends); r.copied++ {
		start := int64(0)
		if r.copied > 0 {
			start = r.ends[r.copied-1]
		}
		scratch.Each(r.indices[start:r.ends[r.copied]], func(i, back int) {
			r.grow()
			r.copies[start+int64(i)] = uint32(back)
		})
	}
	if r.copies != nil {
		r.grow()
	}
	return r.copies
}

// grow lets copies reach as far as edges do.
func (r *RemoteRows[I]) grow() {
	if more := len(r.indices) - len(r.copies); more > 0 {
		r.copies = append(r.copies, make(csc.Copies, more)...)
	}
}

// want sorts the nodes whose rows are missing by the partitions that have them; they count as
// requested.
func (r *RemoteRows[I]) want(vertices []I) (err error) {
	r.ids = append(r.ids[:0], vertices...)
	room := int(r.n) + len(r.ids) + 1
	r.known = slices.Grow(r.known[:r.n], room-int(r.n))[:room]
	before := r.n
	if r.n, err = Claim(r.numbers, r.ids, r.known, r.n); err != nil {
		return err
	}
	return r.sort(r.known[before:r.n], nil)
}

// keep appends the rows that were answered last.
func (r *RemoteRows[I]) keep() error {
	edges := int64(0)
	for i, part := range r.part {
		indptr, row := r.blocks[part].indptr, r.row[i]
		edges += int64(indptr[row+1] - indptr[row])
	}
	// Neighbors, ids, and their additional arrays, which grow.
	size := r.widths.ID + r.widths.EdgeID + 8*max(r.beside, 1)
	if err := memory.Affordable(2 * (int64(len(r.indices)) + edges) * size); err != nil {
		return err
	}
	r.indices = slices.Grow(r.indices, int(edges))
	for i, part := range r.part {
		from, row := &r.blocks[part], r.row[i]
		start, end := int64(from.indptr[row]), int64(from.indptr[row+1])
		for _, v := range from.indices[start:end] {
			if uint64(v) >= uint64(r.nodes) {
				return fmt.Errorf("%w: part %d: expected nodes in [0, %d), got %d", request.ErrValue, part, r.nodes, v)
			}
		}
		if r.widths.EdgeID == 4 {
			r.ids32 = append(r.ids32, from.ids32[start:end]...)
		} else {
			r.ids64 = append(r.ids64, from.ids64[start:end]...)
		}
		if err := r.keepBeside(from, start, end, part); err != nil {
			return err
		}
		r.indices = append(r.indices, from.indices[start:end]...)
		r.ends = append(r.ends, int64(len(r.indices)))
	}
	r.tell()
	return nil
}

// keepBeside appends the additional values of the edges of a row.
func (r *RemoteRows[I]) keepBeside(from *block[I], start, end int64, part int32) error {
	all := int64(len(from.indices))
	for k := range r.values {
		for _, x := range from.keys[int64(k)*all+start : int64(k)*all+end] {
			r.values[k] = append(r.values[k], math.Float64frombits(uint64(x)))
		}
	}
	if len(r.names) > 0 || start == end {
		return nil
	}
	if (from.keys != nil) != (len(r.sums) > 0) && len(r.indices) > 0 {
		return fmt.Errorf("%w: part %d: expected weights of all edges of a relation, or of none, got some", request.ErrValue, part)
	}
	if from.keys == nil {
		return nil
	}
	sum := uint64(0)
	for _, weight := range from.keys[start:end] {
		if weight <= 0 || sum+uint64(weight) < sum {
			return fmt.Errorf("%w: part %d: expected weights above 0 whose sum has 64 bits, got %d", request.ErrValue, part, weight)
		}
		sum += uint64(weight)
		r.sums = append(r.sums, sum)
	}
	return nil
}

// tell updates the graph with the present rows.
func (r *RemoteRows[I]) tell() {
	g := &r.Relation
	if g.Indices = csc.ArrayOf(r.indices); r.widths.EdgeID == 4 {
		g.EdgeIDs = csc.ArrayOf(r.ids32)
	} else {
		g.EdgeIDs = csc.ArrayOf(r.ids64)
	}
	if g.Sums = r.sums; len(r.sums) > 0 {
		g.Alias = []uint64{}
	}
	if len(r.names) > 0 && g.EdgeData == nil {
		g.EdgeData = make(map[string]csc.Values, len(r.names))
	}
	for k, name := range r.names {
		g.EdgeData[name] = csc.ValuesOf(r.values[k])
	}
}
