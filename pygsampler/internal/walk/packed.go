package walk

import (
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// packed holds the edges of a graph's rows with all data that a uniform step reads, so that it
// reads one place: two words per edge, the offset of the neighbor's row, and the neighbor with its
// degree above it. It is computed once, under the lock, and lives as long as the graph.
type packed struct {
	mu    sync.Mutex
	pages *memory.Pages
	words []uint64 // nil: not computed yet
}

// packedText is the cache key of packed edges.
const packedText = "walk: packed edges"

// packable reports whether walks use packed edges: if requested and if a step depends on the row
// only, on graphs whose ids and degrees fit.
func (r *Request) packable() bool {
	g := r.Relation
	return r.Pack && r.plain() && g.NumNodes <= 1<<32 && g.NumEdges() < 1<<32 && g.NumEdges() > 0
}

// plain reports whether a step depends on the row only, and a walk ends at dead ends only.
func (r *Request) plain() bool {
	return r.Stop == 0 && r.Restart == 0 && r.Relation.Kinds <= 1 && len(r.Path) == 0 && r.Relation.Alias == nil &&
		!r.Second() && r.Roots == 0
}

// packedOf returns the packed edges of a graph, which the first caller computes.
func packedOf(g *csc.Relation, crew csc.Crew, stop *atomic.Bool) (*packed, error) {
	p := g.Kept.Put(packedText, new(packed)).(*packed)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.words != nil {
		return p, nil
	}
	size := 16 * g.NumEdges()
	if err := memory.Affordable(size); err != nil {
		return nil, err
	}
	pages, err := memory.Map(size)
	if err != nil {
		return nil, err
	}
	words := memory.Slice[uint64](pages, 2*g.NumEdges())
	switch [2]int{g.Indptr.Bits, g.Indices.Bits} {
	case [2]int{32, 32}:
		pack[int32, int32](words, g, crew, stop)
	case [2]int{64, 32}:
		pack[int64, int32](words, g, crew, stop)
	case [2]int{32, 64}:
		pack[int32, int64](words, g, crew, stop)
	default:
		pack[int64, int64](words, g, crew, stop)
	}
	if stop.Load() {
		// Some edges may be missing.
		pages.Free()
		return nil, request.ErrCancelled
	}
	p.pages, p.words = pages, words
	return p, nil
}

// edgesOf are the words of packed edges that may be none.
func edgesOf(p *packed) []uint64 {
	if p == nil {
		return nil
	}
	return p.words
}

// packUnit is the number of edges that are packed between two checks of stop.
const packUnit = 1 << 16

// packAhead is the number of rows that are prefetched together.
const packAhead = 256

func pack[P, I csc.Index](words []uint64, g *csc.Relation, crew csc.Crew, stop *atomic.Bool) {
	indptr, indices := csc.Elements[P](g.Indptr), csc.Elements[I](g.Indices)
	units := (int64(len(indices)) + packUnit - 1) / packUnit
	var next atomic.Int64
	csc.Crewed(crew, units, func() {
		for i := next.Add(1) - 1; i < units && !stop.Load(); i = next.Add(1) - 1 {
			first := i * packUnit
			ids := indices[first:min(first+packUnit, int64(len(indices)))]
			out := words[2*first:][:2*len(ids)]
			for j, v := range ids {
				if j%packAhead == 0 {
					prefetch.Elements(indptr, ids[j:min(j+packAhead, len(ids))])
				}
				start, degree := P(0), P(0)
				// Rows that are not there have no edges.
				if int64(v)+1 < int64(len(indptr)) {
					start = indptr[v]
					degree = indptr[v+1] - start
				}
				out[2*j], out[2*j+1] = uint64(start), uint64(uint32(v))|uint64(degree)<<32
			}
		}
	})
}
