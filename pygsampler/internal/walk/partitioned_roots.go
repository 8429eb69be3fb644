package walk

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Walks of several roots request degrees, those of their roots and then of each new node: the edge
// to take follows from these here, and its partition finds the edge by its number.
const (
	hopDegrees = 0
	hopEdges   = 1
)

// fromRoots makes the walks of several roots, as frontier does of a graph that is here.
func (p *party[I]) fromRoots(stop *atomic.Bool) error {
	at, total := make([]I, p.walks*p.Roots), make([]int64, p.walks)
	for i := range at {
		at[i] = I(p.Seeds.Element(int64(i)))
	}
	of, err := p.degreesOf(at)
	if err != nil {
		return err
	}
	going := make([]int64, p.walks)
	for w := range p.walks {
		going[w], p.nodes[w] = w, at[w*p.Roots]
		for _, degree := range of[w*p.Roots : (w+1)*p.Roots] {
			total[w] += degree
		}
	}
	for step := range p.Length {
		if stop.Load() {
			return request.ErrCancelled
		}
		going = slices.DeleteFunc(going, func(w int64) bool {
			if total[w] == 0 {
				p.endSlots(w, step)
			}
			return total[w] == 0
		})
		arrived, places, err := p.stepOf(going, at, of, total, step)
		if err != nil {
			return err
		}
		degrees, err := p.degreesOf(arrived)
		if err != nil {
			return err
		}
		for i, place := range places {
			total[going[i]] += degrees[i] - of[place]
			at[place], of[place] = arrived[i], degrees[i]
		}
	}
	for _, w := range going {
		p.lengths[w] = int32(p.Length)
	}
	return nil
}

// endSlots finishes a walk of several roots before a step.
func (p *party[I]) endSlots(w, step int64) {
	p.end(w, step)
	for ; step < p.Length; step++ {
		p.slots[step*p.walks+w] = -1
	}
}

// stepOf runs a step of walks, and returns the new node of each, and the position of the root that
// moves: at, of and total hold the present nodes of all roots, the numbers of edges that leave
// them, and their sum for each walk.
func (p *party[I]) stepOf(walks []int64, at []I, of, total []int64, step int64) (arrived []I, places []int64, err error) {
	q := rows[I]{draws: make([]int64, 0, len(walks))}
	for _, w := range walks {
		rank := int64(rng.Below(rng.Draw(p.state[w], int(step)), uint64(total[w])))
		place := w * p.Roots
		for ; rank >= of[place]; place++ {
			rank -= of[place]
		}
		q.vertices, q.draws, places = append(q.vertices, at[place]), append(q.draws, rank), append(places, place)
	}
	arrived = make([]I, len(walks))
	err = p.put(hopEdges, q, func(answer cpu.RowReply, which []int32) error {
		vertices, ids, err := takenOf[I](answer, int64(len(which)), p.edgeBits())
		if err != nil {
			return err
		}
		for i, j := range which {
			v, w := vertices[i], walks[j]
			if v < 0 || int64(v) >= p.Relation.NumNodes {
				return p.noVertex(int64(v), p.Relation.NumNodes)
			}
			arrived[j], p.nodes[(step+1)*p.walks+w] = v, v
			p.slots[step*p.walks+w] = int32(places[j] - w*p.Roots)
			if ids.Bits != 0 {
				p.putEdge(step, w, ids.Element(int64(i)))
			}
		}
		return nil
	})
	return arrived, places, err
}

// degreesOf returns the degrees of nodes.
func (p *party[I]) degreesOf(vertices []I) ([]int64, error) {
	degrees := make([]int64, len(vertices))
	return degrees, p.put(hopDegrees, rows[I]{vertices: vertices}, func(answer cpu.RowReply, which []int32) error {
		t, err := toldOf[I](answer, int64(len(which)), 0, false)
		if err != nil {
			return err
		}
		for i, j := range which {
			if degrees[j] = t.numbers[i]; degrees[j] < 0 || degrees[j] > math.MaxInt64/mostRoots {
				return fmt.Errorf("%w: an answer with a degree of %d", request.ErrValue, degrees[j])
			}
		}
		return nil
	})
}

// tellDegrees is the answer to that.
func tellDegrees[I csc.Index](p *PartEdges) (memory.Memory, error) {
	numbers := make([]int64, p.Vertices.Len())
	for i := range numbers {
		_, numbers[i] = p.row(p.Vertices.Element(int64(i)), 0)
	}
	return tell[I](p, numbers, nil, nil)
}
