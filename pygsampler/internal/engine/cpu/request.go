// Package cpu is the CPU engine: it samples L-hop neighborhoods into a batch.
//
// A hop runs in three steps over tiles of rows: count reads the row offsets and
// sizes the block, draw chooses positions and gathers neighbors, claim gives
// every new node its local number. Loads within a step are independent, so the
// hardware overlaps their misses. Tiles are counted and drawn by any worker in
// any order, but claimed in order, one at a time: numbering by first occurrence
// comes from that order alone, and no worker count can change it. Many workers
// claim the tiles of a large hop in any order, too, by ranks that say that order.
package cpu

import (
	"fmt"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Request says what to sample of which graph, and how. It is read-only while a batch is sampled,
// and its arrays must stay valid until then.
type Request struct {
	request.Request
	Relation *csc.Relation
	Exclude  *csc.Exclusions
	// MapBytes bounds the bytes of a direct map of all nodes; a larger graph
	// takes a hash table sized to the batch.
	MapBytes int64
	// EdgeWeights asks for a factor for each edge: rng.Weights.Factors, request.Rule.Factor.
	EdgeWeights bool
	// Draw chooses the edges of rows without replacement, in graphs without weights; nil: rng.Chooser.
	Draw *RowDraw
	// Times limit each row of a disjoint batch, which is in the order of time, to the edges within
	// the bound of its tree; nil: no limit.
	Times *Times
	// Most is the maximal number of edges of a hop: a batch with a larger hop ends with
	// request.ErrLarge before it draws that hop. 0 sets no bound.
	Most int64
	// First is the node of the graph's first row: the graph may be a partition of a larger one.
	First int64
	// Parts describes the partitions of a graph without rows of its own; nil: the rows are local.
	Parts *Partition
}

// RowDraw is a way to choose edges of a row that reads the whole row.
type RowDraw struct {
	Purpose rng.Purpose // of the random numbers
	// Choose fills positions with distinct numbers in [0, degree), of which there are more; state is
	// the random state of the row.
	Choose func(positions []int64, state uint64, degree int64)
}

// Times holds the times of the edges of a graph, and the rule that says which of them a batch may
// take.
type Times struct {
	times.SortedRows
	times.Rule
	Seeds []int64 // the key of each seed's time
}

// carries reports whether the times of a hop's edges bound the next hop.
func (r *Request) carries() bool { return r.Times != nil && r.Times.Carry }

// arrays returns the number of additional arrays of the edges of remote rows.
func (r *Request) arrays() int64 {
	if r.carries() {
		return 1
	}
	return 0
}

// Crew provides workers in addition to the caller's own goroutine.
type Crew = csc.Crew

// Sample samples the batch of a request tile by tile and returns its memory, with one reference. It
// returns request.ErrCancelled soon after stop is set.
func Sample(req *Request, crew Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer recovered(&err)
	narrow := req.Relation.Indices.Bits == 32
	switch {
	case req.Parts != nil && narrow:
		return sampleHops(req, crew, stop, (*sampling[int32]).remote)
	case req.Parts != nil:
		return sampleHops(req, crew, stop, (*sampling[int64]).remote)
	case narrow:
		return sampleHops(req, crew, stop, (*sampling[int32]).tiles)
	}
	return sampleHops(req, crew, stop, (*sampling[int64]).tiles)
}

// recovered turns a panic into an error: arrays that the caller changes while a batch is sampled
// end in a bounds check, and must not end the interpreter.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the graph's arrays changed while a batch was sampled, or a fault of pygsampler: %v", p)
	}
}
