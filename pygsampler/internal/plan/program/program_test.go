package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/explain"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

var (
	hop    = []string{"%0 = seeds", "%1 = slice %0", "%2 = individual %1 k=10 replace=false site=0", "return blocks %2"}
	values = []string{"%0 = seeds", "%1 = slice %0", `%2 = data %1 name="t"`, `%3 = vertices name="x"`, "%4 = mul %2, %3 axis=1", `return blocks %4 "x"=%3`}
)

// planOf is the plan of fields beside the code.
func planOf(code any, more map[string]any) (*Plan, *plan.Document) {
	fields := map[string]any{"code": code}
	for name, value := range more {
		fields[name] = value
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	d := plan.Read(string(text))
	return Parse(d).(*Plan), d
}

func TestDocumentErrors(t *testing.T) {
	for _, k := range []struct {
		code any
		more map[string]any
		kind error
		want string
	}{
		{nil, nil, request.ErrValue, "return: expected 'return blocks|subgraph|vectors ...', got \"\""},
		{"seeds", nil, request.ErrType, "code: expected a sequence of str, got str 'seeds'"},
		{[]any{1}, nil, request.ErrType, "code[0]: expected a str, got int 1"},
		{[]any{nil}, nil, request.ErrType, "code[0]: expected a str, got NoneType None"},
		{make([]string, 1<<12+2), nil, request.ErrValue, "code: expected at most 4097 texts, got 4098"},
		{[]string{"%0 = seeds\n%1 = slice %0", "return blocks %1"}, nil, request.ErrValue, "code[0]: expected a line, got several"},
		{[]string{"%0 = seeds", "%1 = slide %0", "return blocks %1"}, nil, request.ErrValue, `%1: expected an operator, got "slide"`},
		{[]string{"%0 = seeds", "return blocks %0"}, nil, request.ErrValue, "return: %0: expected a matrix of chosen edges, got a list of nodes"},
		{hop, map[string]any{"weight": 3}, request.ErrType, "weight: expected the name of an edge array, got int 3"},
		{hop, map[string]any{"passes": []string{"dce", "cle"}}, request.ErrValue, "passes[1]: expected one of ('fold', 'cse', 'dce', 'preprocess', 'extract_select', 'edge_map', 'edge_map_reduce', 'vector_map', 'layout', 'recognise'), got str 'cle'"},
		{hop, map[string]any{"layouts": []string{"csc"}}, request.ErrValue, "layouts[0]: expected one of ('all_rows', 'out_edges', 'vertices'), got str 'csc'"},
		{hop, map[string]any{"passes": "dce"}, request.ErrType, "passes: expected a sequence of str, got str 'dce'"},
		{hop, map[string]any{"fanouts": 1}, request.ErrType, "fanouts: expected no such option here, got int 1"},
	} {
		_, d := planOf(k.code, k.more)
		if err := d.Err(); !errors.Is(err, k.kind) || err.Error() != k.kind.Error()+": "+k.want {
			t.Errorf("got %v, want %v: %s", err, k.kind, k.want)
		}
	}
}

func TestDocument(t *testing.T) {
	_, d := planOf([]string{"%0 = seeds", "%1 = slice %0", "%2 = const  value=2.0", "%3 = mul %1, %2", "return blocks %3"}, nil)
	want := `{"weight": null, "passes": [], "code": ["%0 = seeds","%1 = slice %0","%2 = const value=2","%3 = mul %1, %2","return blocks %3"]}`
	if d.Err() != nil || d.String() != want {
		t.Errorf("got %v and %s", d.Err(), d)
	}
}

// The choices with what both ways cost, which is taken, and what is asked for; a device has those of A[R, S].
func TestExplainsLayouts(t *testing.T) {
	lines := []string{"%0 = seeds", "%1 = unique %0", "%2 = whole", "%3 = column %2", "%4 = cross %1, %3", "%5 = random site=0", "%6 = mul %4, %5 axis=1", "return blocks %6"}
	about := explain.Graph{Nodes: 1000, Edges: 1000_000}
	text := func(more map[string]any) string {
		p, d := planOf(lines, more)
		if d.Err() != nil {
			t.Fatal(d.Err())
		}
		return p.Explain(about, 2)
	}
	const costs = `layouts, of which batches choose by the sizes that they turn out to have:
  %4 = cross %1, %3   in-edges of columns 1.1K us  out-edges of rows 44 us  -> out-edges of rows
  %5 = random site=0  each edge 13 us              all nodes 10 us          -> all nodes
  out-edges are found once a graph, when batches have lost the 10K us that it takes, and kept: about 8.0M bytes
`
	if got := text(nil); !strings.HasSuffix(got, costs) || !strings.Contains(got, "after layout: the layout of data follows from its cost\n") {
		t.Errorf("got\n%s", got)
	}
	if got := text(map[string]any{"layouts": []string{"out_edges"}}); !strings.Contains(got, "-> out-edges of rows, as was asked for\n") {
		t.Errorf("got\n%s", got)
	}
	if got := text(map[string]any{"passes": []string{"layout"}}); strings.Count(got, ", without the pass layout\n") != 2 || !strings.Contains(got, "-> each edge,") {
		t.Errorf("got\n%s", got)
	}
	const onDevice = `layouts by the costs of another GPU: 'pygsampler calibrate --device cuda' measures those of this one
layouts, of which batches choose by the sizes that they turn out to have:
  %4 = cross %1, %3  in-edges of columns 17 us  out-edges of rows 1.5 us  -> out-edges of rows
  out-edges are found once a graph, when batches have lost the 85 us that it takes, and kept: about 8.0M bytes
`
	if about.Device = true; !strings.HasSuffix(text(nil), onDevice) {
		t.Errorf("got\n%s of a device", text(nil))
	}
	if lines[4] = "%4 = cross %1, %1"; strings.Contains(text(nil), "layouts, of which") {
		t.Errorf("got\n%s of a device, and of rows that are the columns", text(nil))
	}
}

func TestRecognised(t *testing.T) {
	for _, k := range []struct {
		more map[string]any
		is   bool
	}{
		{nil, true},
		{map[string]any{"passes": []string{"recognise"}}, false},
		{map[string]any{"weight": "w"}, false},
	} {
		p, d := planOf(hop, k.more)
		if is := p.known != nil; is != k.is || d.Err() != nil {
			t.Errorf("%v: got the plan %T, %v", k.more, p.known, d.Err())
		}
		first := p.CUDA()
		if _, own := first.(*cuda.Programs); own == k.is || first.Words() != batch.Homogeneous(1).Words() || own && p.CUDA() != first {
			t.Errorf("%v: got %T of %d words on a device", k.more, p.CUDA(), p.CUDA().Words())
		}
	}
	p, _ := planOf(values, nil)
	if words := p.CUDA().Words(); words != (batch.Layout{Hops: 1, Types: 1, Relations: 1, Extras: 1}).Words() {
		t.Errorf("got %d words", words)
	}
	if err := p.CUDA().Check(new(cuda.Graph), new(cuda.Call)); !errors.Is(err, request.ErrValue) || !strings.Contains(err.Error(), `edata["t"]`) {
		t.Errorf("got %v", err)
	}
}

func TestCheck(t *testing.T) {
	p, _ := planOf(values, map[string]any{"weight": "w"})
	some := func(names ...string) map[string]csc.Values {
		m := map[string]csc.Values{}
		for _, name := range names {
			m[name] = csc.Values{}
		}
		return m
	}
	for _, k := range []struct {
		graph plan.Arrays
		want  string
	}{
		{plan.Arrays{EdgeData: some("t", "w"), VertexData: some("x")}, "<nil>"},
		{plan.Arrays{EdgeData: some("t", "x"), VertexData: some("x")}, `value error: weight: expected a graph with the edge array "w", got one without`},
		{plan.Arrays{EdgeData: some("w"), VertexData: some("x")}, `value error: edata: expected a graph with the edge array "t", got one without`},
		{plan.Arrays{EdgeData: some("t", "w")}, `value error: ndata: expected a graph with the node array "x", got one without`},
		{plan.Arrays{EdgeData: some("t", "w"), VertexData: some("x"), Kinds: 2}, "value error: graph: expected one whose rows are not split by types, got 2 types"},
	} {
		if err := p.Check(k.graph); fmt.Sprint(err) != k.want {
			t.Errorf("got %v, want %s", err, k.want)
		}
	}
}

func TestExclude(t *testing.T) {
	for _, k := range [][2]string{
		{"%1 = walk %0 k=1 site=0", "walk"},
	} {
		lines := append([]string{"%0 = seeds"}, strings.Split(k[0], "\n")...)
		p, _ := planOf(append(lines, fmt.Sprintf("return vectors \"a\"=%%%d", len(lines)-1)), nil)
		want := "exclude: expected a program that takes edges by A, A[:, S] and A[R, S], got one with " + k[1]
		if _, err := p.CPU(&plan.Work{Exclude: []*csc.Exclusions{{}}}); !errors.Is(err, request.ErrValue) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
		if _, err := p.CUDAExcluding(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}

func TestExplain(t *testing.T) {
	code := []string{
		"%0 = seeds", "%1 = slice %0", "%2 = const value=2", "%3 = pow %1, %2", "%4 = sum %3 axis=1",
		"%5 = collective %1, %4 k=50 replace=false site=0", "%6 = degree", "%7 = sqrt %6", "%8 = mul %5, %7 axis=1", "return blocks %8",
	}
	p, d := planOf(code, map[string]any{"weight": "w"})
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	got := p.Explain(explain.Graph{Nodes: 1000, Edges: 10000}, 100)
	want := `as traced
  %0 = seeds
  %1 = slice %0
  %2 = const value=2
  %3 = pow %1, %2
  %4 = sum %3 axis=1
  %5 = collective %1, %4 k=50 replace=false site=0
  %6 = degree
  %7 = sqrt %6
  %8 = mul %5, %7 axis=1
  return blocks %8
  # about 2.9K elements and 17K bytes a batch

after preprocess: values that depend on the graph only are computed once for a graph
  %0 = seeds
  %1 = slice %0
  %2 = const value=2
  %3 = pow %1, %2
  %4 = sum %3 axis=1
  %5 = collective %1, %4 k=50 replace=false site=0
  %6 = degree
  %7 = sqrt %6                                      # once a graph
  %8 = mul %5, %7 axis=1
  return blocks %8
  # about 2.9K elements and 17K bytes a batch, and 8.0K bytes kept with the graph

after edge_map: edge values with one reader are computed in it
  %0 = seeds
  %1 = slice %0
  %2 = const value=2
  %3 = pow %1, %2                                   # made where it is taken
  %4 = sum %3 axis=1
  %5 = collective %1, %4 k=50 replace=false site=0
  %6 = degree
  %7 = sqrt %6                                      # once a graph
  %8 = mul %5, %7 axis=1
  return blocks %8
  # about 2.9K elements and 9.4K bytes a batch, and 8.0K bytes kept with the graph

after layout: the layout of data follows from its cost
  %0 = seeds
  %1 = slice %0                                     # layout by costs
  %2 = const value=2
  %3 = pow %1, %2                                   # made where it is taken
  %4 = sum %3 axis=1
  %5 = collective %1, %4 k=50 replace=false site=0
  %6 = degree
  %7 = sqrt %6                                      # once a graph
  %8 = mul %5, %7 axis=1
  return blocks %8
  # about 2.9K elements and 9.4K bytes a batch, and 8.0K bytes kept with the graph

runs as the executor of programs on the CPU
times by the costs of another machine: 'pygsampler calibrate' measures those of this one
a batch of 100 seeds on a graph of 1000 nodes and 10000 edges, if all had the mean degree:
  node                                              kind    elements  bytes  us
  %0 = seeds                                        list    100       800    0
  %1 = slice %0                                     matrix  1.0K      1.6K   0.1  layout by costs
  %2 = const value=2                                scalar  1         8      0
  %3 = pow %1, %2                                   matrix  1.0K      0      0.6  made where it is taken
  %4 = sum %3 axis=1                                vector  632       5.1K   6.0
  %5 = collective %1, %4 k=50 replace=false site=0  matrix  79        1.3K   31
  %6 = degree                                       vector  1.0K      0      0
  %7 = sqrt %6                                      vector  1.0K      8.0K   0    once a graph
  %8 = mul %5, %7 axis=1                            matrix  79        633    0.2
  in all 9.4K bytes a batch, and 8.0K kept with the graph; about 39 us of one core of the CPU, 0.8 of them to write the batch
layouts, of which batches choose by the sizes that they turn out to have:
  %1 = slice %0  rows of its edges 6.0 us  all nodes as rows 8.5 us  -> rows of its edges
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
	p, _ = planOf(hop, nil)
	if got := p.Explain(explain.Graph{}, 5); !strings.Contains(got, "\nruns as PGSampler: fanouts [10], replace false\n") {
		t.Errorf("got\n%s", got)
	}
}
