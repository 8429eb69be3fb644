// Package cpu is the CPU engine: it samples L-hop neighbourhoods into a batch.
//
// A hop runs in three steps over tiles of rows: count reads the row offsets and
// sizes the block, draw chooses positions and gathers neighbours, claim gives
// every new vertex its local number. Loads within a step are independent, so the
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
)

// Request says what to sample of which graph, and how. It is read-only while a batch
// is made, and its arrays must stay valid until then.
type Request struct {
	request.Request
	Relation *csc.Relation
	Exclude  *csc.Exclusions
	// MapBytes bounds the bytes of a direct map of all vertices; a larger graph
	// takes a hash table sized to the batch.
	MapBytes int64
	// EdgeWeights asks for a factor for each edge: rng.Weights.Factors, request.Rule.Factor.
	// ByQueue makes none.
	EdgeWeights bool
	// Reservoir has rows drawn by rng.Reservoir, of random numbers of its own. ByQueue and
	// graphs with weights do not heed it.
	Reservoir bool
	// Times leaves of each row of a disjoint batch, whose rows are in the order of time, what the bound
	// of its tree does; nil: all. ByQueue does not heed it.
	Times *Times
	// Most is how many edges a hop may have: a batch with a larger one ends with
	// request.ErrLarge before it draws that hop. 0 sets no bound. ByQueue does not heed it.
	Most int64
	// First is the vertex whose row is the graph's first: the graph may be a part of a larger one.
	First int64
	// Partition is where the rows lie of a graph that has none itself; nil: here. ByQueue does not heed it.
	Parts *Partition
}

// Times is when the edges of a graph are, and which of them a batch may take.
type Times struct {
	times.SortedRows
	times.Rule
	Seeds []int64 // the key of each seed's time
}

// carries says whether the times of a hop's edges bound the next hop.
func (r *Request) carries() bool { return r.Times != nil && r.Times.Carry }

// arrays is how many answers have beside the edges of rows that lie elsewhere: as far has it.
func (r *Request) arrays() int64 {
	if r.carries() {
		return 1
	}
	return 0
}

// Crew lends workers beside the caller's own goroutine.
type Crew = csc.Crew

// Sample makes the batch of a request tile by tile, and hands its memory, with one
// reference, to the caller. It returns request.ErrCancelled soon after stop is set.
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

// ByQueue is Sample by the task queue, whose workers fetch fetchSize tasks at a time, or
// with 0 the usual number; the result is equal.
func ByQueue(req *Request, fetchSize int, crew Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer recovered(&err)
	if fetchSize == 0 {
		fetchSize = usualFetchSize
	}
	if req.Relation.Indices.Bits == 32 {
		return sampleHops(req, crew, stop, func(s *sampling[int32]) (rows[int32], error) { return s.runQueue(fetchSize) })
	}
	return sampleHops(req, crew, stop, func(s *sampling[int64]) (rows[int64], error) { return s.runQueue(fetchSize) })
}

// recovered turns a panic into an error: arrays that the caller changes while a
// batch is made end in a bounds check, and must not end the interpreter.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the graph's arrays changed while a batch was sampled, or a fault of pygsampler: %v", p)
	}
}
