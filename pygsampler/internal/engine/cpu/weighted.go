package cpu

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// weightedRow is the state of a row of a tile that draws by weight. Each of the steps is taken for
// all rows before the next one, and prefetches the reads of the next one: the slots of the alias
// table, then the edges, and for refused draws the slots of spare ones. A short row prefetches all
// of its tables and edges at first, which is a line or two more than its draws need.
type weightedRow struct {
	at, take     int   // its places among the positions
	start, edges int64 // in the CSC, excluded ones too
	excluded     []int64
	state        uint64
	edge         int64  // the first one's place in the block
	refused      uint32 // draws to repeat, for rng.Chooser.Again
	total        uint64 // the weights of its edges, where factors are asked for
}

// beginWeighted takes the first step of a row of a tile, whose positions begin at a place.
func (s *tiled[I]) beginWeighted(w *worker, positions []int64, at int, v, start, degree, edge int64, state uint64) {
	if len(w.coins) < len(positions) {
		coins := make([]uint32, cap(positions))
		copy(coins, w.coins)
		w.coins = coins
	}
	excluded := s.Exclude.Offsets(v)
	edges := degree + int64(len(excluded))
	pos := positions[at:]
	rng.Slots(pos, w.coins[at:len(positions)], state, edges)
	if weights := s.Relation.Weights(start, edges); edges <= rng.Short {
		prefetch.All(weights.Alias)
		if !s.Replace {
			prefetch.All(weights.Sums)
		}
		prefetch.All(csc.Elements[I](s.Relation.Indices)[start : start+edges])
	} else {
		prefetch.Elements(weights.Alias, pos)
	}
	w.weighted = append(w.weighted, weightedRow{at: at, take: len(pos), start: start, edges: edges, excluded: excluded, state: state, edge: edge})
}

// settleWeighted takes the other steps of all rows of a tile that have begun.
func (s *tiled[I]) settleWeighted(w *worker, positions []int64, rule request.Rule, b block[I]) {
	open, short := w.open[:0], w.short[:0]
	w.left = w.left[:0]
	for i := range w.weighted {
		r := &w.weighted[i]
		pos, coins := positions[r.at:r.at+r.take], w.coins[r.at:r.at+r.take]
		weights := s.Relation.Weights(r.start, r.edges)
		switch {
		case len(r.excluded) > 0 || !s.Replace && r.take > rng.Scanned:
			weights.Toss(pos, coins)
			open = append(open, int32(i))
			continue
		case s.Replace:
			weights.Toss(pos, coins)
		default:
			if r.refused = weights.TossOnce(pos, coins); r.refused == 0 {
				break
			}
			if r.edges > rng.Short {
				weights.FetchSpare(bits.OnesCount32(r.refused), r.state, rule.Fanout)
				open = append(open, int32(i))
				continue
			}
			w.left = append(w.left, rng.PendingRow{
				At: int64(r.at), Fanout: int64(r.take), Start: r.start, Edges: r.edges, State: r.state, Refused: uint64(r.refused),
			})
			short = append(short, int32(i))
			continue
		}
		s.place(r, pos)
	}
	rng.DrawPending(positions, s.Relation.Sums, w.left)
	for _, i := range short {
		r := &w.weighted[i]
		s.place(r, positions[r.at:r.at+r.take])
	}
	for _, i := range open {
		r := &w.weighted[i]
		pos, weights := positions[r.at:r.at+r.take], s.Relation.Weights(r.start, r.edges)
		if r.refused != 0 {
			w.chooser.Again(pos, weights, r.state, r.refused)
		} else {
			w.chooser.Settle(pos, weights, r.state, r.excluded, s.Replace, rule.Fanout, 0)
		}
		s.place(r, pos)
	}
	if b.edgeWeights != nil {
		s.weighFactors(w, positions, rule, b)
	}
	// Excluded edges are another call's next time.
	clear(w.weighted)
	w.weighted, w.open, w.short = w.weighted[:0], open[:0], short[:0]
}

// place makes the positions in a row those in the CSC.
func (s *tiled[I]) place(r *weightedRow, pos []int64) {
	for j := range pos {
		pos[j] += r.start
	}
}

// weighFactors makes the factors of rows that have been settled.
func (s *tiled[I]) weighFactors(w *worker, positions []int64, rule request.Rule, b block[I]) {
	if len(w.chosen) < len(positions) {
		w.chosen = make([]uint64, cap(positions))
	}
	for i := range w.weighted {
		r := &w.weighted[i]
		end := r.at + r.take
		r.total = s.Relation.Weights(r.start, r.edges).Chosen(w.chosen[r.at:end], positions[r.at:end], r.start, r.excluded)
	}
	for i := range w.weighted {
		r := &w.weighted[i]
		end := r.at + r.take
		to, weights := b.weightsOf(r.edge, r.take), s.Relation.Weights(r.start, r.edges)
		weights.Factors(to, w.chosen[r.at:end], r.total, positions[r.at:end], r.start, r.state, s.Replace, rule.Fanout)
	}
}
