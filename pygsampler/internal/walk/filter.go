package walk

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// pairs tells by one read, for most pairs of nodes, that no edge joins them: eight bits per edge,
// in which each pair that an edge joins sets its own. It is computed once, under the lock, and
// lives as long as the graph.
type pairs struct {
	mu    sync.Mutex
	pages *memory.Pages
	words []uint32 // nil: not computed yet
	// The maximal number of edges from any node to any other.
	parallel int64
}

// pairsText is the cache key of pairs.
const pairsText = "walk: pairs of nodes"

// pairsOf returns the pairs of a graph's edges, which the first caller computes.
func pairsOf(g *csc.Relation, crew csc.Crew, stop *atomic.Bool) (*pairs, error) {
	p := g.Kept.Put(pairsText, new(pairs)).(*pairs)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.words != nil {
		return p, nil
	}
	count := g.Back.NumEdges()/4 + 1
	if err := memory.Affordable(4 * count); err != nil {
		return nil, err
	}
	pages, err := memory.Map(4 * count)
	if err != nil {
		return nil, err
	}
	words := memory.Slice[uint32](pages, count)
	if g.Back.Indices.Bits == 32 {
		p.parallel = gather(words, g.Back, csc.Elements[int32](g.Back.Indices), crew, stop)
	} else {
		p.parallel = gather(words, g.Back, csc.Elements[int64](g.Back.Indices), crew, stop)
	}
	if stop.Load() {
		// Some pairs may be missing.
		pages.Free()
		return nil, request.ErrCancelled
	}
	p.pages, p.words = pages, words
	return p, nil
}

// rowsOfUnit is the number of rows that a worker processes at a time.
const rowsOfUnit = 1 << 12

// gather sets the bits of all edges, and returns the longest run of one neighbor in a row.
func gather[I csc.Index](words []uint32, back *csc.Relation, ids []I, crew csc.Crew, stop *atomic.Bool) int64 {
	units := (back.NumRows() + rowsOfUnit - 1) / rowsOfUnit
	var next, longest atomic.Int64
	csc.Crewed(crew, units, func() {
		most := int64(0)
		var at [packAhead]int64
		var masks [packAhead]uint32
		n := 0
		set := func() {
			prefetch.Elements(words, at[:n])
			for j, word := range at[:n] {
				atomic.OrUint32(&words[word], masks[j])
			}
			n = 0
		}
		for i := next.Add(1) - 1; i < units && !stop.Load(); i = next.Add(1) - 1 {
			for row := i * rowsOfUnit; row < min((i+1)*rowsOfUnit, back.NumRows()); row++ {
				start, end, run := back.Indptr.Element(row), back.Indptr.Element(row+1), int64(0)
				for e := start; e < end; e++ {
					if run++; e > start && ids[e] != ids[e-1] {
						run = 1
					}
					if most = max(most, run); run > 1 {
						continue
					}
					at[n], masks[n] = pairAt(uint64(row), uint64(ids[e]), uint64(len(words)))
					if n++; n == len(at) {
						set()
					}
				}
			}
		}
		set()
		for known := longest.Load(); most > known && !longest.CompareAndSwap(known, most); {
			known = longest.Load()
		}
	})
	return longest.Load()
}

// pairAt is the word of an edge from x to t, and its bits there: of eight bits an edge, about one
// other pair in thirty has them too. CUDA twin: filter_bits of kernels/walk/walk.cuh.
func pairAt(t, x, words uint64) (word int64, mask uint32) {
	h := rng.Mix(rng.Draw(t, 0) ^ x)
	high, _ := bits.Mul64(h, words)
	return int64(high), 1<<(h&31) | 1<<(h>>5&31) | 1<<(h>>10&31)
}
