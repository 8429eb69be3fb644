package pagerank

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// scored is what Run finds for each root.
func scored(t *testing.T, s *Scores) [][]Scored {
	t.Helper()
	m, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	roots := s.Roots.Len()
	starts := memory.ViewAt[int64](m, 0, roots+1)
	total := starts[roots]
	all := memory.ViewAt[int64](m, 0, roots+1+2*total)[roots+1:]
	found := make([][]Scored, roots)
	for i := range found {
		for at := starts[i]; at < starts[i+1]; at++ {
			found[i] = append(found[i], Scored{all[at], all[total+at]})
		}
	}
	return found
}

func of(g *csc.Relation, roots ...int64) *Scores {
	return &Scores{Relation: g, Roots: csctest.Array(roots, 32), Most: 1 << 20, Alpha: .5, Epsilon: 1e-11}
}

// A path has the law that linear equations give.
func TestThePath(t *testing.T) {
	g := csctest.Graph([][]int64{{1}, {0, 2}, {1}}, 3, 32, 64, false)
	found := scored(t, of(g, 0))[0]
	for i, want := range []float64{7. / 12, 1. / 3, 1. / 12} {
		if got := float64(found[i].Score) / One; found[i].Vertex != int64(i) || math.Abs(got-want) > 1e-9 {
			t.Errorf("vertex %d: expected %v, got %v of %d", i, want, got, found[i].Vertex)
		}
	}
	// Two of three: with a threshold, too.
	two := of(g, 0, 2)
	two.Most = 2
	few := of(g, 0, 2)
	few.Threshold = .5
	for _, s := range []*Scores{two, few} {
		for i, want := range [][]int64{{0, 1}, {2, 1}} {
			if got := vertices(scored(t, s)[i]); !slices.Equal(got, want) {
				t.Errorf("root %d: expected %v, got %v", i, want, got)
			}
		}
	}
}

func vertices(found []Scored) (ids []int64) {
	for _, f := range found {
		ids = append(ids, f.Vertex)
	}
	return ids
}

// Scores and residuals add up to the initial mass; scores are near the scores of the power
// method; and neither the widths of ids nor other roots change them.
func TestRandomGraphs(t *testing.T) {
	const nodes = 300
	rows := csctest.RandomRows(nodes, 5)
	narrow, wide := csctest.Graph(rows, nodes+2, 32, 32, false), csctest.Graph(rows, nodes+2, 64, 64, true)
	roots := []int64{0, 7, nodes - 1, nodes + 1, 7}
	one, other := of(narrow, roots...), of(wide, roots...)
	one.Alpha, other.Alpha = .2, .2
	found := scored(t, one)
	if got := scored(t, other); !slices.EqualFunc(found, got, slices.Equal) {
		t.Error("ids of 64 bits: expected the same scores")
	}
	if got := scored(t, one); !slices.EqualFunc(found, got, slices.Equal) {
		t.Error("a second run: expected the same scores")
	}
	for i, root := range roots {
		exact := powers(rows, nodes+2, root, .2)
		var sum float64
		for place, f := range found[i] {
			got := float64(f.Score) / One
			sum += got
			if math.Abs(got-exact[f.Vertex]) > 1e-6 {
				t.Errorf("root %d, vertex %d: expected %v, got %v", root, f.Vertex, exact[f.Vertex], got)
			}
			if before := place - 1; before > 0 && (found[i][before].Score < f.Score || found[i][before].Score == f.Score && found[i][before].Vertex > f.Vertex) {
				t.Errorf("root %d: expected falling scores, ties by id, got %v before %v", root, found[i][before], f)
			}
		}
		if found[i][0].Vertex != root || sum > 1 || sum < 1-1e-6 {
			t.Errorf("root %d: expected it first and scores of 1, got %d and %v", root, found[i][0].Vertex, sum)
		}
	}
}

// powers is where walks end, step by step.
func powers(rows [][]int64, nodes, root int64, alpha float64) []float64 {
	ends, now := make([]float64, nodes), make([]float64, nodes)
	now[root] = 1
	for range 400 {
		next := make([]float64, nodes)
		for v, p := range now {
			if v >= len(rows) || len(rows[v]) == 0 {
				ends[v] += p
				continue
			}
			ends[v] += alpha * p
			for _, u := range rows[v] {
				next[u] += (1 - alpha) * p / float64(len(rows[v]))
			}
		}
		now = next
	}
	return ends
}

func TestWhatIsRefused(t *testing.T) {
	g := csctest.Graph([][]int64{{1}, {0}}, 2, 32, 64, false)
	for name, spoil := range map[string]func(*Scores){
		"alpha 0":     func(s *Scores) { s.Alpha = 0 },
		"alpha NaN":   func(s *Scores) { s.Alpha = math.NaN() },
		"epsilon":     func(s *Scores) { s.Epsilon = 1e-13 },
		"threshold":   func(s *Scores) { s.Threshold = 1.5 },
		"no vertices": func(s *Scores) { s.Most = 0 },
	} {
		s := of(g, 0)
		spoil(s)
		if _, err := s.Run(); !errors.Is(err, request.ErrValue) {
			t.Errorf("%s: expected an error of the value, got %v", name, err)
		}
	}
	if _, err := of(g, 0, 2).Run(); !errors.Is(err, request.ErrIndex) {
		t.Errorf("root 2 of 2: expected an error of the index, got %v", err)
	}
	s := of(g, 0)
	s.Halt()
	if _, err := s.Run(); !errors.Is(err, csc.ErrStopped) {
		t.Errorf("halted: expected ErrStopped, got %v", err)
	}
}
