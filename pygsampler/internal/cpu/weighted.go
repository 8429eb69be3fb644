package cpu

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// weightedRow is a row of a tile that draws by weight, on its way. Each of the steps is
// taken for all rows before the next one: its reads then overlap.
type weightedRow struct {
	row   int // in the tile
	at    int // its first place among the positions
	take  int
	state uint64
	total uint64 // the weights of its edges, where factors are asked for
}

// beginWeighted takes the first step of a row of a tile, whose positions begin at a place.
func (s *sampling[I]) beginWeighted(w *worker, positions []int64, at, row int, v int64, degree int64, state uint64) {
	if len(w.coins) < len(positions) {
		coins := make([]uint32, cap(positions))
		copy(coins, w.coins)
		w.coins = coins
	}
	rng.Slots(positions[at:], w.coins[at:len(positions)], state, degree+int64(len(s.Exclude.Of(v))))
	w.weighted = append(w.weighted, weightedRow{row: row, at: at, take: len(positions) - at, state: state})
}

// settleWeighted takes the other steps of all rows of a tile that have begun; lo is the
// tile's first row of the frontier.
func (s *sampling[I]) settleWeighted(w *worker, positions []int64, frontier []I, lo int64, rule request.Rule, b block[I]) {
	for _, r := range w.weighted {
		row := lo + int64(r.row)
		edges := s.degrees[row] + int64(len(s.Exclude.Of(int64(frontier[row]))))
		s.Graph.Weights(s.starts[row], edges).Toss(positions[r.at:r.at+r.take], w.coins[r.at:r.at+r.take])
	}
	for _, r := range w.weighted {
		row, pos := lo+int64(r.row), positions[r.at:r.at+r.take]
		start, excluded := s.starts[row], s.Exclude.Of(int64(frontier[row]))
		weights := s.Graph.Weights(start, s.degrees[row]+int64(len(excluded)))
		w.chooser.Settle(pos, weights, r.state, excluded, s.Replace, rule.Fanout, 0)
		for j := range pos {
			pos[j] += start
		}
	}
	if b.edgeWeights != nil {
		s.weighFactors(w, positions, frontier, lo, rule, b)
	}
	w.weighted = w.weighted[:0]
}

// weighFactors makes the factors of rows that have been settled.
func (s *sampling[I]) weighFactors(w *worker, positions []int64, frontier []I, lo int64, rule request.Rule, b block[I]) {
	if len(w.chosen) < len(positions) {
		w.chosen = make([]uint64, cap(positions))
	}
	for i := range w.weighted {
		r := &w.weighted[i]
		row, end := lo+int64(r.row), r.at+r.take
		start, excluded := s.starts[row], s.Exclude.Of(int64(frontier[row]))
		weights := s.Graph.Weights(start, s.degrees[row]+int64(len(excluded)))
		r.total = weights.Chosen(w.chosen[r.at:end], positions[r.at:end], start, excluded)
	}
	for _, r := range w.weighted {
		row, end := lo+int64(r.row), r.at+r.take
		start := s.starts[row]
		weights := s.Graph.Weights(start, s.degrees[row]+int64(len(s.Exclude.Of(int64(frontier[row])))))
		to := b.weightsOf(int64(b.indptr[row]), r.take)
		weights.Factors(to, w.chosen[r.at:end], r.total, positions[r.at:end], start, r.state, s.Replace, rule.Fanout)
	}
}
