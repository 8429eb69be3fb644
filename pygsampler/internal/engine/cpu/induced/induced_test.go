package induced

import (
	"errors"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// lent is a crew of so many workers.
type lent int

func (l lent) Borrow(n int) int { return min(n, int(l)) }
func (l lent) Return(int)       {}

// slow is what Edges is to give, by a look at each pair of vertices.
func slow(g *csc.Relation, vertices, trees []int64) (starts, sources, ids []int64) {
	starts = []int64{0}
	for target, v := range vertices {
		if v < g.NumRows() {
			for place := g.Indptr.Element(v); place < g.Indptr.Element(v+1); place++ {
				for source, u := range vertices {
					if u == g.Indices.Element(place) && trees[source] == trees[target] {
						sources = append(sources, int64(source))
						if g.EdgeIDs.Bits != 0 {
							ids = append(ids, g.EdgeIDs.Element(place))
						} else {
							ids = append(ids, place)
						}
						break
					}
				}
			}
		}
		starts = append(starts, int64(len(sources)))
	}
	return starts, sources, ids
}

func TestAllPairs(t *testing.T) {
	rows := csctest.RandomRows(60, 3)
	for _, count := range []int{0, 1, 400} {
		vertices, trees := make([]int64, count), make([]int64, count)
		for i := range vertices {
			// Some trees have vertices twice, some numbers no vertex, and 60 and 61 no row.
			vertices[i], trees[i] = int64(i*i*7%62), int64(i*i%17*3)
			if trees[i] >= int64(count) {
				trees[i] = 0
			}
		}
		for _, g := range []*csc.Relation{csctest.Graph(rows, 62, 32, 64, false), csctest.Graph(rows, 62, 64, 32, true)} {
			starts, sources, ids := slow(g, vertices, trees)
			want := slices.Concat(starts, sources, ids)
			for _, crew := range []lent{0, 3} {
				for _, bits := range []int{32, 64} {
					m, err := Edges(g, csctest.Array(vertices, bits), csctest.Array(trees, 64), crew)
					if err != nil {
						t.Fatal(err)
					}
					got := slices.Clone(memory.ViewAt[int64](m, 0, int64(len(want))))
					m.Release()
					if !slices.Equal(got, want) {
						t.Errorf("%d vertices, %d workers: expected %v, got %v", count, crew, want, got)
					}
				}
			}
			if count == 400 && len(sources) < 100 {
				t.Errorf("expected some edges, got %d", len(sources))
			}
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	g := csctest.Graph([][]int64{{1}, {0}}, 2, 32, 64, false)
	for name, c := range map[string]struct {
		vertices, trees []int64
		want            error
	}{
		"a vertex":   {[]int64{2}, []int64{0}, request.ErrIndex},
		"a tree":     {[]int64{1}, []int64{1}, request.ErrValue},
		"below 0":    {[]int64{1}, []int64{-1}, request.ErrValue},
		"their size": {[]int64{1}, nil, request.ErrValue},
	} {
		if _, err := Edges(g, csctest.Array(c.vertices, 64), csctest.Array(c.trees, 64), lent(0)); !errors.Is(err, c.want) {
			t.Errorf("%s: expected %v, got %v", name, c.want, err)
		}
	}
}
