package times

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Sort sorts the rows of a graph by time, stably. The caller sets the exported fields; any
// goroutine may halt it and read its progress.
type Sort struct {
	Relation *csc.Relation // on the CPU
	Name     string        // of the times, for errors
	ByVertex bool
	// Int or Float, whichever is not nil, returns the time of each edge id, or of each node.
	Int   func(int64) int64
	Float func(int64) float64
	Len   int64

	stop atomic.Bool
	done atomic.Int64
}

// Halt makes Run return csc.ErrStopped soon.
func (s *Sort) Halt() { s.stop.Store(true) }

// Progress returns the number of sorted edges and of all edges.
func (s *Sort) Progress() (done, total int64) { return s.done.Load(), s.Relation.NumEdges() }

// unit is the number of rows that are sorted between two checks of stop.
const unit = 1 << 12

// Run returns the memory, with one reference.
func (s *Sort) Run() (m memory.Memory, err error) {
	g := s.Relation
	edges, bits, idBits := g.NumEdges(), int64(g.Indices.Bits), int64(g.EdgeIDBits())
	words := [TimesWords]int64{TimesNumEdges: edges, TimesNumGiven: s.Len, TimesIDBits: bits, TimesEdgeIDBits: idBits}
	if s.Float != nil {
		words[TimesFloat] = 1
	}
	size := int64(TimesWords * 8)
	for _, part := range [][2]int64{{TimesIndices, edges * bits / 8}, {TimesEdgeIDs, edges * idBits / 8}, {TimesKeys, 8 * edges}, {TimesGiven, 8 * s.Len}} {
		words[part[0]] = (size + 63) / 64 * 64
		size = words[part[0]] + part[1]
	}
	if err := memory.Affordable(size); err != nil {
		return m, err
	}
	if m, err = memory.New(size); err != nil {
		return m, err
	}
	m.SetSize(size)
	defer func() {
		if err != nil {
			m.Release()
			m = memory.Memory{}
		}
	}()
	copy(memory.ViewAt[int64](m, 0, TimesWords), words[:])
	given, keys := memory.ViewAt[int64](m, words[TimesGiven], s.Len), memory.ViewAt[int64](m, words[TimesKeys], edges)
	for i := range given {
		if s.Float == nil {
			given[i] = s.Int(int64(i))
			continue
		}
		t := s.Float(int64(i))
		if math.IsNaN(t) {
			return m, fmt.Errorf("%w: %s[%d]: expected a time, got nan", request.ErrValue, s.Name, i)
		}
		given[i] = Key(t)
	}
	at, ids := words[TimesIndices], words[TimesEdgeIDs]
	switch {
	case bits == 32 && idBits == 32:
		return m, order(s, given, keys, memory.ViewAt[int32](m, at, edges), memory.ViewAt[int32](m, ids, edges))
	case bits == 32:
		return m, order(s, given, keys, memory.ViewAt[int32](m, at, edges), memory.ViewAt[int64](m, ids, edges))
	case idBits == 32:
		return m, order(s, given, keys, memory.ViewAt[int64](m, at, edges), memory.ViewAt[int32](m, ids, edges))
	}
	return m, order(s, given, keys, memory.ViewAt[int64](m, at, edges), memory.ViewAt[int64](m, ids, edges))
}

// order fills the arrays by position.
func order[I, E csc.Index](s *Sort, given, keys []int64, indices []I, ids []E) error {
	g := s.Relation
	source := csc.Elements[I](g.Indices)
	var wrong atomic.Pointer[error]
	csc.Together((g.NumRows()+unit-1)/unit, func(part int64) {
		var places []int64
		for v := part * unit; v < min((part+1)*unit, g.NumRows()) && !s.stop.Load(); v++ {
			start, end := g.Indptr.Element(v), g.Indptr.Element(v+1)
			places = places[:0]
			sorted, before := true, int64(math.MinInt64)
			for p := start; p < end; p++ {
				of, id := int64(source[p]), p
				if g.EdgeIDs.Bits != 0 {
					id = g.EdgeIDs.Element(p)
				}
				if !s.ByVertex {
					of = id
				}
				if uint64(of) >= uint64(len(given)) {
					err := fmt.Errorf("%w: %s: expected a time for %d, got %d of them", request.ErrValue, s.Name, of, len(given))
					wrong.Store(&err)
					s.stop.Store(true)
					return
				}
				places, keys[p], indices[p], ids[p] = append(places, p), given[of], source[p], E(id)
				sorted, before = sorted && before <= keys[p], keys[p]
			}
			if !sorted {
				slices.SortStableFunc(places, func(a, b int64) int {
					switch x, y := keys[a], keys[b]; {
					case x < y:
						return -1
					case x > y:
						return 1
					}
					return 0
				})
				row := make([]int64, len(places))
				for i, p := range places {
					row[i] = keys[p]
				}
				copy(keys[start:end], row)
				for i, p := range places {
					to := start + int64(i)
					indices[to], ids[to] = source[p], E(p)
					if g.EdgeIDs.Bits != 0 {
						ids[to] = E(g.EdgeIDs.Element(p))
					}
				}
			}
			s.done.Add(end - start)
		}
	})
	if err := wrong.Load(); err != nil {
		return *err
	}
	if s.stop.Load() {
		return csc.ErrStopped
	}
	return nil
}
