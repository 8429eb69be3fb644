package walk

import (
	"fmt"
	"math"
	"sort"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// A step of node2vec reads two rows: the row of the walk's node has the edges of the tries, and the
// row of the previous node tells whether one of them leads to a neighbor of it. So a partition
// makes all tries of a row, and lists the edges whose tries another partition decides, up to the
// first that is accepted in any case. All these edges are requested together: most steps take two
// rounds. If all tries are refused, the whole row is requested.
const (
	hopJoined = iota // whether an edge leads from each node to the one that the walk came from
	hopWhole         // all edges of the rows, with weights
	hopTries         // what tries propose; in each hop from here on the next ones of whom another part decides
	// perTell is the number of those edges that a partition lists at once. All tries may be such.
	perTell    = 8
	secondHops = hopTries + tries/perTell
)

// proposals are edges that were proposed to walks, one row per walk.
type proposals[I csc.Index] struct {
	vertices []I
	ids      []int64
	weights  []uint64
	first    []int64 // of each walk
	end      []int64
	state    []int
}

// askSecond is ask for walks of node2vec.
func (p *party[I]) askSecond(walks []int32, step int64) (without []int32, err error) {
	var tired []int32
	for hop := int64(hopTries); len(walks) > 0; hop++ {
		if hop == secondHops {
			return nil, fmt.Errorf("%w: answers that never settle a step", request.ErrValue)
		}
		made, err := p.proposed(walks, step, hop, false)
		if err != nil {
			return nil, err
		}
		// Edges that settle a row need no request.
		joined, err := p.joined(walks, &made, step, func(j int, place int64) bool {
			return made.state[j] != settled || place+1 < made.end[j]
		})
		if err != nil {
			return nil, err
		}
		left := walks[:0]
		for j, w := range walks {
			taken := int64(-1)
			for place := made.first[j]; place < made.end[j] && taken < 0; place++ {
				if made.state[j] == settled && place+1 == made.end[j] || joined[place] == (p.chance.Common > p.chance.Far) {
					taken = place
				}
			}
			switch {
			case taken >= 0:
				p.take(w, step, &made, taken)
			case made.state[j] == noEdge:
				without = append(without, w)
			case made.state[j] == open:
				left = append(left, w)
			default:
				tired = append(tired, w)
			}
		}
		walks = left
	}
	return without, p.finish(tired, step)
}

func (p *party[I]) take(w int32, step int64, made *proposals[I], place int64) {
	p.move(w, step, made.vertices[place], csc.Array{}, 0)
	if made.ids != nil {
		p.putEdge(step, int64(w), made.ids[place])
	}
}

// finish draws an edge of each walk that has refused all tries, by what all edges of its row weigh.
func (p *party[I]) finish(walks []int32, step int64) error {
	if len(walks) == 0 {
		return nil
	}
	made, err := p.proposed(walks, step, hopWhole, true)
	if err != nil {
		return err
	}
	joined, err := p.joined(walks, &made, step, func(j int, place int64) bool {
		return made.vertices[place] != p.last[walks[j]]
	})
	if err != nil {
		return err
	}
	for j, w := range walks {
		class := func(place int64) int {
			switch {
			case made.vertices[place] == p.last[w]:
				return 0
			case joined[place]:
				return 1
			}
			return 2
		}
		var classes [3]uint64
		for place := made.first[j]; place < made.end[j]; place++ {
			classes[class(place)] += made.weights[place]
		}
		chosen := p.chance.Class(rng.Draw(p.draws[w], classDraw), classes[0], classes[1], classes[2])
		rank := rng.Below(rng.Draw(p.draws[w], rankDraw), classes[chosen])
		taken := int64(-1)
		for place := made.first[j]; place < made.end[j] && taken < 0; place++ {
			if class(place) != chosen {
				continue
			}
			if rank < made.weights[place] {
				taken = place
			} else {
				rank -= made.weights[place]
			}
		}
		if taken < 0 {
			return fmt.Errorf("%w: an answer whose row has no edge for a walk to take", request.ErrValue)
		}
		p.take(w, step, &made, taken)
	}
	return nil
}

// proposed requests proposed edges of the rows of walks.
func (p *party[I]) proposed(walks []int32, step, hop int64, weighted bool) (made proposals[I], err error) {
	n := len(walks)
	made.first, made.end, made.state = make([]int64, n), make([]int64, n), make([]int, n)
	var q rows[I]
	for _, w := range walks {
		q.vertices = append(q.vertices, p.at[w])
		if draws, last := p.needs(hop); draws && last {
			q.last, q.draws = append(q.last, p.last[w]), append(q.draws, int64(p.draws[w]))
		}
	}
	return made, p.put(step*secondHops+hop, q, func(answer cpu.RowReply, which []int32) error {
		t, err := toldOf[I](answer, int64(len(which)), p.edgeBits(), weighted)
		if err != nil {
			return err
		}
		before := int64(len(made.vertices))
		for i, j := range which {
			first, end, state, err := t.listed(i)
			if err != nil {
				return err
			}
			made.first[j], made.end[j], made.state[j] = before+first, before+end, state
		}
		for _, v := range t.vertices {
			if v < 0 || int64(v) >= p.Relation.NumNodes {
				return p.noVertex(int64(v), p.Relation.NumNodes)
			}
		}
		// The answer is there until more is asked.
		made.vertices, made.weights = append(made.vertices, t.vertices...), append(made.weights, t.weights...)
		for i := range t.ids.Len() {
			made.ids = append(made.ids, t.ids.Element(i))
		}
		return nil
	})
}

// joined requests, for proposed edges, whether an edge leads from their node to the previous node
// of the walk.
func (p *party[I]) joined(walks []int32, made *proposals[I], step int64, of func(j int, place int64) bool) ([]bool, error) {
	var q rows[I]
	var places []int64
	for j, w := range walks {
		for place := made.first[j]; place < made.end[j]; place++ {
			if of(j, place) {
				q.vertices, q.last, places = append(q.vertices, made.vertices[place]), append(q.last, p.last[w]), append(places, place)
			}
		}
	}
	found := make([]bool, len(made.vertices))
	return found, p.put(step*secondHops+hopJoined, q, func(answer cpu.RowReply, which []int32) error {
		t, err := toldOf[I](answer, int64(len(which)), 0, false)
		if err != nil {
			return err
		}
		for i, j := range which {
			found[places[j]] = t.numbers[i] != 0
		}
		return nil
	})
}

// tellSecond is the answer to each of these questions.
func tellSecond[I csc.Index](p *PartEdges) (memory.Memory, error) {
	if p.Relation.Back == nil {
		return memory.Memory{}, fmt.Errorf("walks with p, q: expected a part with adjacency, got none: a fault of pygsampler")
	}
	s := seconds[I]{PartEdges: p, chance: p.Chances(), indices: csc.Elements[I](p.Relation.Indices)}
	s.step, s.hop = p.Hop/secondHops, p.Hop%secondHops
	numbers := make([]int64, p.Vertices.Len())
	for i := range numbers {
		v := p.Vertices.Element(int64(i))
		if s.hop == hopJoined {
			if s.isJoined(v, p.Last.Element(int64(i))) {
				numbers[i] = 1
			}
			continue
		}
		start, degree := p.row(v, s.step)
		state := noEdge
		switch {
		case degree == 0:
		case s.hop == hopWhole:
			for at := start; at < start+degree; at++ {
				s.places, s.weights = append(s.places, at), append(s.weights, weightOf(p.Relation.Sums, start, at, 1))
			}
			state = refused
		default:
			state = s.tried(start, degree, p.Last.Element(int64(i)), uint64(p.Draws[i]))
		}
		numbers[i] = int64(len(s.places))<<stateBits | int64(state)
	}
	if s.hop == hopWhole && s.weights == nil {
		s.weights = []uint64{}
	}
	return tell[I](p, numbers, s.places, s.weights)
}

// seconds are steps of node2vec on rows of a part.
type seconds[I csc.Index] struct {
	*PartEdges
	chance    Chances
	indices   []I
	step, hop int64
	places    []int64
	weights   []uint64
}

// tried lists the edges of a row that may be taken by a walk that comes from last, as unit.try tries them.
func (s *seconds[I]) tried(start, degree, last int64, draw uint64) (state int) {
	switch {
	case degree == 1:
		s.places = append(s.places, start)
		return settled
	case last < 0:
		s.places = append(s.places, proposed(s.Relation, start, degree, draw))
		return settled
	}
	sums := s.Relation.Sums
	// The larger of the two accepts any edge, so that adjacency decides only above the smaller one.
	surely := min(s.chance.Common, s.chance.Far)
	back, backs, area := int64(0), int64(0), uint64(0)
	if s.chance.Extra > 0 {
		row := s.indices[start : start+degree]
		back = int64(sort.Search(len(row), func(i int) bool { return int64(row[i]) >= last }))
		backs = int64(sort.Search(len(row), func(i int) bool { return int64(row[i]) > last })) - back
		if back += start; backs > 0 {
			area = s.chance.Area(weightOf(sums, start, back, backs), weightOf(sums, start, start, degree))
		}
	}
	passed := (s.hop - hopTries) * perTell
	listed := int64(0)
	for k := range tries {
		first := firstTry + tryDraws*k
		proposal := rng.Draw(draw, first)
		if Coin(rng.Draw(draw, first+2)) < area {
			at := rankOf(sums, start, back, backs, rng.Below(proposal, weightOf(sums, start, back, backs)))
			s.places = append(s.places, at)
			return settled
		}
		coin, at := Coin(rng.Draw(draw, first+1)), proposed(s.Relation, start, degree, proposal)
		chance, x := s.chance.Far, int64(s.indices[at])
		switch {
		case x == last:
			chance = s.chance.Return
		case coin < surely:
			chance = math.MaxUint64
		case !s.mine(x):
			// Another part knows.
			if listed == passed+perTell {
				return open
			}
			if listed++; listed > passed {
				s.places = append(s.places, at)
			}
			continue
		case s.isJoined(x, last):
			chance = s.chance.Common
		}
		if coin < chance {
			s.places = append(s.places, at)
			return settled
		}
	}
	return refused
}

// mine reports whether a node's row is one of the partition's, with edges: adjacency in other rows
// is reported by their partitions.
func (s *seconds[I]) mine(x int64) bool {
	kinds := max(s.Relation.Kinds, 1)
	row := (x - s.First) * kinds
	return row >= 0 && row+kinds <= s.Relation.NumRows() && s.Relation.Indptr.Element(row) < s.Relation.Indptr.Element(row+kinds)
}

// isJoined reports whether an edge leads from a node of the partition to another node.
func (s *seconds[I]) isJoined(x, to int64) bool {
	back := s.Relation.Back
	if to < 0 || to >= back.NumRows() {
		return false
	}
	// Back numbers the part's rows from 0 on.
	start, end, row := back.Indptr.Element(to), back.Indptr.Element(to+1), x-s.First
	at := start + int64(sort.Search(int(end-start), func(i int) bool { return back.Indices.Element(start+int64(i)) >= row }))
	return at < end && back.Indices.Element(at) == row
}
