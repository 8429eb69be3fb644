package edges

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// graph is what was built, widened.
type graph struct {
	nodes                             int64
	indptr, indices, edgeIDs, nodeIDs []int64
	shape                             Shape
}

func wide(a csc.Array) []int64 {
	var out []int64
	for i := range a.Len() {
		out = append(out, a.Element(i))
	}
	return out
}

func build(t *testing.T, s Source, p Plan) (graph, error) {
	t.Helper()
	var target Memory
	var m Meter
	shape, err := Build(s, p, &target, &m)
	if err != nil {
		return graph{}, err
	}
	defer target.Block.Release()
	if m.Done.Load() != m.Total.Load() {
		t.Errorf("%d of %d bytes done at the end", m.Done.Load(), m.Total.Load())
	}
	words := memory.ViewAt[int64](target.Block, 0, memoryWords)
	at := func(word int, bits int, n int64) []int64 {
		if words[word] == 0 || bits == 0 {
			return nil
		}
		if bits == 32 {
			return wide(csc.Array{Bits: 32, I32: memory.ViewAt[int32](target.Block, words[word], n)})
		}
		return slices.Clone(memory.ViewAt[int64](target.Block, words[word], n))
	}
	return graph{
		shape.Nodes, at(MemoryOffIndptr, 64, shape.Nodes+1), at(MemoryOffIndices, shape.Bits, shape.Edges),
		at(MemoryOffEdgeIDs, shape.EdgeBits, shape.Edges), at(MemoryOffNodeIDs, 64, shape.Nodes), shape,
	}, nil
}

// held is a source of edges in memory, in batches of three.
type held struct {
	src, dst []int64
	facts    Facts
}

func (l held) Facts() Facts { return l.facts }
func (l held) Size() int64  { return int64(len(l.src)) }
func (l held) Scan(m *Meter, emit func(*Batch) error) error {
	for lo := 0; lo < len(l.src); lo += 3 {
		hi := min(lo+3, len(l.src))
		m.Done.Add(int64(hi - lo))
		where := func(i int) string { return fmt.Sprintf("edge %d", lo+i) }
		if err := emit(&Batch{Src: slices.Clone(l.src[lo:hi]), Dst: slices.Clone(l.dst[lo:hi]), where: where}); err != nil {
			return err
		}
	}
	return nil
}

// reference builds the same in the plainest way.
func reference(src, dst []int64, p Plan) graph {
	g := graph{nodes: p.NumNodes}
	var ids []int64
	for i := range src {
		ids = append(ids, src[i], dst[i])
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	top := int64(-1)
	if len(ids) > 0 {
		top = ids[len(ids)-1]
	}
	anew := p.Numbering == Always || p.Numbering == IfGaps && p.NumNodes < 0 && int64(len(ids)) <= top
	number := func(id int64) int64 { return id }
	if anew {
		g.nodeIDs, g.nodes = ids, int64(len(ids))
		number = func(id int64) int64 {
			n, _ := slices.BinarySearch(ids, id)
			return int64(n)
		}
	} else if p.NumNodes < 0 {
		g.nodes = top + 1
	}
	rows := make([][][2]int64, g.nodes)
	for i := range src {
		v := number(dst[i])
		rows[v] = append(rows[v], [2]int64{number(src[i]), int64(i)})
	}
	if p.Undirected {
		reverse := int64(len(src))
		for i := range src {
			if u := number(src[i]); src[i] != dst[i] {
				rows[u] = append(rows[u], [2]int64{number(dst[i]), reverse})
				reverse++
			}
		}
	}
	g.indptr = []int64{0}
	for _, row := range rows {
		for _, e := range row {
			g.indices, g.edgeIDs = append(g.indices, e[0]), append(g.edgeIDs, e[1])
		}
		g.indptr = append(g.indptr, int64(len(g.indices)))
	}
	if !p.Undirected && slices.IsSorted(dst) {
		g.edgeIDs = nil
	}
	return g
}

func same(t *testing.T, what string, got, want graph) {
	t.Helper()
	if got.nodes != want.nodes || !slices.Equal(got.indptr, want.indptr) || !slices.Equal(got.indices, want.indices) ||
		!slices.Equal(got.edgeIDs, want.edgeIDs) || !slices.Equal(got.nodeIDs, want.nodeIDs) {
		t.Fatalf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

// Every plan gives what the plainest code gives, whether edges are kept, read again,
// or written in many windows, and whether ids are bits, hashed, or both.
func TestBuildIsTheReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	scales := []int64{1, 7, 1 << 21, mostCounted, mostBitID + 5, 1 << 59, (1<<63 - 1) / 7}
	for n := range 14 {
		for _, scale := range scales {
			src, dst := make([]int64, n), make([]int64, n)
			for i := range n {
				src[i], dst[i] = rng.Int64N(8)*scale, rng.Int64N(8)*scale
			}
			for k := range 24 {
				p := Plan{
					NumNodes: -1, Undirected: k&1 != 0, Numbering: Numbering(k % 3), Bits: 32 + 32*(k/12),
					Keep: int64(k/6%2) << 20, Window: []int64{1 << 40, 1, 40}[k/3%3],
				}
				if p.Numbering == Never && scale > 7 {
					continue
				}
				if p.Numbering == Never && k/6%2 == 1 {
					p.NumNodes = 50
				}
				got, err := build(t, held{src, dst, Facts{64, -1, false}}, p)
				if err != nil {
					t.Fatalf("%+v: %v", p, err)
				}
				same(t, fmt.Sprintf("%v -> %v, %+v", src, dst, p), got, reference(src, dst, p))
			}
		}
	}
}

// Ids without gaps, of which there are too many for degrees to be counted at first,
// are kept and have their degrees.
func TestManyIdsWithoutGaps(t *testing.T) {
	defer func(n int64) { mostCounted = n }(mostCounted)
	mostCounted = 4
	src, dst := []int64{3, 9, 8, 7, 6, 6, 0, 1}, []int64{0, 1, 2, 3, 4, 6, 5, 1}
	for k := range 4 {
		p := Plan{NumNodes: -1, Numbering: IfGaps, Undirected: k&1 != 0, Keep: int64(k/2) << 20, Window: 40}
		got, err := build(t, held{src, dst, Facts{64, -1, false}}, p)
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		same(t, fmt.Sprintf("%+v", p), got, reference(src, dst, p))
	}
}

// A graph file has what memory has.
func TestBuildIntoAFile(t *testing.T) {
	src, dst := []int64{5, 9, 5, 100, 9}, []int64{9, 5, 5, 9, 100}
	for _, undirected := range []bool{false, true} {
		p := Plan{NumNodes: -1, Undirected: undirected, Window: 1}
		path := filepath.Join(t.TempDir(), "g.pgs")
		var m Meter
		if _, err := Build(held{src, dst, Facts{32, -1, false}}, p, &File{Path: path}, &m); err != nil {
			t.Fatal(err)
		}
		f, err := graphfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want := reference(src, dst, p)
		if err := f.Verify(); err != nil {
			t.Fatal(err)
		}
		same(t, "file", graph{
			nodes: int64(len(f.Bytes("indptr"))/8 - 1), indptr: elements[int64](f.Bytes("indptr"), want.nodes+1),
			indices: wide(csc.Array{Bits: 32, I32: elements[int32](f.Bytes("indices"), int64(len(want.indices)))}),
			edgeIDs: wide(csc.Array{Bits: 32, I32: elements[int32](f.Bytes("edge_ids"), int64(len(want.edgeIDs)))}),
			nodeIDs: elements[int64](f.Bytes("node_ids"), want.nodes),
		}, want)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An error or a cancelled job leaves no file, and no memory.
func TestBuildLeavesNothing(t *testing.T) {
	before := memory.Count().Live
	fine := held{[]int64{0, 1, 2, 3}, []int64{1, 2, 3, 0}, Facts{64, -1, false}}
	for name, source := range map[string]Source{
		"fails later": &changing{held: fine, after: 1, err: errors.New("gone")},
		"shrinks":     &changing{held: fine, after: 1, drop: 2},
		"other edges": &changing{held: fine, after: 1, add: 1},
		"stops":       &changing{held: fine, after: 1, stop: true},
		"panics":      &changing{held: fine, after: 1, panics: true},
	} {
		for _, numbering := range []Numbering{Never, Always} {
			folder := t.TempDir()
			var m Meter
			_, err := Build(source, Plan{NumNodes: -1, Numbering: numbering}, &File{Path: filepath.Join(folder, "g.pgs")}, &m)
			if err == nil {
				t.Errorf("%s: expected an error", name)
			}
			if name == "stops" && !errors.Is(err, ErrStopped) {
				t.Errorf("stops: %v", err)
			}
			if left, _ := os.ReadDir(folder); len(left) != 0 {
				t.Errorf("%s: left %v", name, left)
			}
			source.(*changing).scans = 0
			m.Stop.Store(false)
			if _, err := Build(source, Plan{NumNodes: -1, Numbering: numbering}, &Memory{}, &m); err == nil {
				t.Errorf("%s: expected an error", name)
			}
			source.(*changing).scans = 0
		}
	}
	if n := memory.Count().Live; n != before {
		t.Errorf("%d memories live, %d before", n, before)
	}
}

// changing is a source that is different when it is read again.
type changing struct {
	held
	scans, after, drop int
	add                int64
	err                error
	stop, panics       bool
}

func (c *changing) Scan(m *Meter, emit func(*Batch) error) error {
	l := c.held
	if c.scans++; c.scans > c.after {
		l.src, l.dst = l.src[:len(l.src)-c.drop], slices.Clone(l.dst[:len(l.dst)-c.drop])
		for i := range l.dst {
			l.dst[i] = min(l.dst[i]+c.add, 3)
		}
		if c.stop {
			m.Stop.Store(true)
			return ErrStopped
		}
		if c.panics {
			panic("fault")
		}
		if c.err != nil {
			return c.err
		}
	}
	return l.Scan(m, emit)
}

func TestIdsThatNoGraphHas(t *testing.T) {
	for _, k := range []struct {
		plan Plan
		id   int64
		want string
	}{
		{Plan{NumNodes: 4}, 4, "edge 1: expected ids below 4, as num_nodes says, got 4"},
		{Plan{NumNodes: 4, Numbering: Never}, 1 << 60, "edge 1: expected ids below 4"},
		{Plan{NumNodes: -1, Numbering: Never}, 1 << 50, "edge 1: expected ids below 281474976710656, as nodes have; renumber=True"},
		{Plan{NumNodes: -1, Numbering: Never}, 1 << 47, "edge 1: expected ids below 2147483648, as this machine has memory for; renumber=True"},
		{Plan{NumNodes: -1, Numbering: Never, Bits: 32}, 1 << 31, "edge 1: expected ids below 2147483648, as int32 asks for"},
		{Plan{NumNodes: 4, Numbering: Always}, 1, "num_nodes: expected None with renumber=True"},
		{Plan{NumNodes: 1 << 49}, 1, "num_nodes: expected at most 281474976710656"},
	} {
		_, err := build(t, held{[]int64{0, 1, 2}, []int64{1, k.id, 2}, Facts{64, -1, false}}, k.plan)
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v, %d: %v", k.plan, k.id, err)
		}
	}
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func packed(t testing.TB, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(content))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
