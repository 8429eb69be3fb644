package walk

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// frontier is a walk of several roots (Ribeiro and Towsley's frontier sampling): a step leads along one of
// all edges that leave its nodes, each as likely as any other, and moves the node that it leaves.
// CUDA twin: visit_roots in kernels/walk/visit_counts.cu.
type frontier[P, I csc.Index] struct {
	at     []I
	chunks []int64 // edges that leave the nodes of each chunk
}

// of returns the function that runs the walks of an engine.
func (f *frontier[P, I]) of(e *engine[P, I]) func(first, n int64) {
	f.at, f.chunks = make([]I, e.Roots), make([]int64, (e.Roots+rootChunk-1)/rootChunk)
	return func(first, n int64) {
		for w := first; w < first+n; w++ {
			f.walk(e, w)
		}
	}
}

func (f *frontier[P, I]) walk(e *engine[P, I], w int64) {
	clear(f.chunks)
	total := int64(0)
	for i := range f.at {
		f.at[i] = I(e.Seeds.Element(w*e.Roots + int64(i)))
		_, degree := e.row(int64(f.at[i]))
		f.chunks[i/rootChunk] += degree
		total += degree
	}
	state := e.stream.State(uint64(e.FirstWalk + w))
	e.nodes[w] = f.at[0]
	step := int64(0)
	for ; step < e.Length && total > 0; step++ {
		rank := int64(rng.Below(rng.Draw(state, int(step)), uint64(total)))
		chunk := 0
		for rank >= f.chunks[chunk] {
			rank -= f.chunks[chunk]
			chunk++
		}
		slot := chunk * rootChunk
		start, degree := e.row(int64(f.at[slot]))
		for rank >= degree {
			rank -= degree
			slot++
			start, degree = e.row(int64(f.at[slot]))
		}
		v := e.indices[start+rank]
		_, next := e.row(int64(v))
		f.at[slot] = v
		f.chunks[chunk] += next - degree
		total += next - degree
		e.nodes[(step+1)*e.walks+w], e.slots[step*e.walks+w] = v, int32(slot)
		e.putEdge(step, w, e.id(start+rank))
	}
	e.lengths[w] = int32(step)
	for ; step < e.Length; step++ {
		e.nodes[(step+1)*e.walks+w], e.slots[step*e.walks+w] = -1, -1
		e.putEdge(step, w, -1)
	}
}
