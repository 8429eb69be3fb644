package pygsampler

import (
	"runtime"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
)

// FuzzGraph makes a graph and a call of any bytes. Either the graph or the call is
// refused with an error, or the batch obeys every law of a batch.
func FuzzGraph(f *testing.F) {
	f.Add([]byte{3, 0, 2, 2, 3}, []byte{1, 2, 0}, []byte{0, 2}, []byte{2, 255}, false, false)
	f.Add([]byte{0}, []byte{}, []byte{}, []byte{1}, true, false)
	f.Add([]byte{0, 1, 200}, []byte{9, 9}, []byte{3}, []byte{254}, false, true)
	f.Add([]byte{2, 0, 4, 8}, []byte{0, 1, 0, 1, 1, 1, 1, 0}, []byte{1, 1, 0, 1}, []byte{3, 3, 3}, true, true)
	f.Fuzz(func(t *testing.T, indptrBytes, idBytes, seedBytes, fanoutBytes []byte, replace, queue bool) {
		if len(indptrBytes)+len(idBytes) > 500 || len(seedBytes) > 100 || len(fanoutBytes) > 5 || len(fanoutBytes) == 0 {
			return
		}
		// The first byte says how many vertices there are beyond those with rows.
		indptr, extra := []int64{0}, int64(0)
		for i, b := range indptrBytes {
			if i == 0 {
				extra = int64(b % 4)
			} else {
				indptr = append(indptr, int64(int8(b)))
			}
		}
		ids, seeds, fanouts := []int64{}, []int64{}, []int64{}
		for _, b := range idBytes {
			ids = append(ids, int64(b))
		}
		for _, b := range seedBytes {
			seeds = append(seeds, int64(int8(b)))
		}
		for _, b := range fanoutBytes {
			fanouts = append(fanouts, int64(int8(b)))
		}
		rows, edges := int64(len(indptr)-1), int64(len(ids))
		g, err := NewRelation(CSC{
			Indptr: address(indptr), IndptrBits: 64, NumRows: rows,
			Indices: address(ids), IDBits: 64, NumEdges: edges, NumNodes: rows + extra,
		})
		valid := slices.IsSorted(indptr) && indptr[rows] == edges && !slices.ContainsFunc(ids, func(v int64) bool { return v >= rows+extra })
		if (err == nil) != valid {
			t.Fatalf("indptr %v, indices %v: %v", indptr, ids, err)
		}
		if err != nil {
			if kind, text := KindOf(err); kind != KindValue {
				t.Errorf("got %s: %s", kind, text)
			}
			return
		}
		defer g.Close()
		mode := "auto"
		if queue {
			mode = anotherMode
		}
		o, err := planOf(mode, replace, 1, fanouts)
		if (err == nil) != (slices.Min(fanouts) >= -1) {
			t.Fatalf("fanouts %v: %v", fanouts, err)
		}
		if err != nil {
			return
		}
		j, err := sample(g, o, Request{Seeds: address(seeds), NumSeeds: int64(len(seeds)), SeedBits: 64})
		if err != nil {
			t.Fatal(err)
		}
		at, _, err := j.Wait(-1)
		outside := slices.ContainsFunc(seeds, func(v int64) bool { return v < 0 || v >= rows+extra })
		if (err == nil) == outside {
			t.Fatalf("seeds %v of %d vertices: %v", seeds, rows+extra, err)
		}
		if err == nil {
			m := memory.FromAddress(at)
			defer m.Release()
			obeys(t, m, indptr, ids, seeds, fanouts, replace)
		}
		runtime.KeepAlive(indptr)
		runtime.KeepAlive(ids)
	})
}

// obeys checks every law of a batch: seeds first, vertices distinct, blocks nested,
// every edge an edge of the graph, as many of a row as its fanout says, and none
// twice without replacement.
func obeys(t *testing.T, m memory.Memory, indptr, indices, seeds, fanouts []int64, replace bool) {
	t.Helper()
	whole := batchtest.Read(m)
	vertices, output, index, blocks := whole.Nodes, whole.Output, whole.OutputIndex, whole.Blocks
	if len(blocks) != len(fanouts) || whole.Trees != nil {
		t.Fatalf("%d hops of %d, trees %v", len(blocks), len(fanouts), whole.Trees)
	}
	if !slices.Equal(output, seeds) || len(slices.Compact(slices.Sorted(slices.Values(vertices)))) != len(vertices) {
		t.Fatalf("output %v of seeds %v, vertices %v", output, seeds, vertices)
	}
	for i, v := range seeds {
		if vertices[index[i]] != v || index[i] >= blocks[len(blocks)-1].Dst {
			t.Fatalf("seed %d is row %d", i, index[i])
		}
	}
	if n := blocks[0].Src; n != int64(len(vertices)) {
		t.Fatalf("%d source vertices of %d", n, len(vertices))
	}
	for i, fanout := range fanouts {
		src, dst, offsets, local, ids := blocks[i].Src, blocks[i].Dst, blocks[i].Indptr, blocks[i].Indices, blocks[i].EdgeIDs
		if i+1 < len(fanouts) && blocks[i+1].Src != dst || src < dst || blocks[i].First != 0 {
			t.Fatalf("block %d has %d destinations of %d sources", i, dst, src)
		}
		if offsets[0] != 0 || offsets[dst] != int64(len(ids)) {
			t.Fatalf("block %d: offsets %v of %d edges", i, offsets, len(ids))
		}
		for row, v := range vertices[:dst] {
			start, degree := int64(0), int64(0)
			if v < int64(len(indptr)-1) {
				start, degree = indptr[v], indptr[v+1]-indptr[v]
			}
			want := fanout
			if fanout < 0 || degree == 0 || !replace && degree < fanout {
				want = degree
			}
			chosen := ids[offsets[row]:offsets[row+1]]
			if int64(len(chosen)) != want {
				t.Fatalf("block %d row %d: %d edges of %d with fanout %d", i, row, len(chosen), degree, fanout)
			}
			for k, id := range chosen {
				if n := local[offsets[row]+int64(k)]; id < start || id >= start+degree || n >= src || vertices[n] != indices[id] {
					t.Fatalf("block %d row %d: edge %d", i, row, id)
				}
			}
			if !replace && len(slices.Compact(slices.Sorted(slices.Values(chosen)))) != len(chosen) {
				t.Fatalf("block %d row %d: %v repeats an edge", i, row, chosen)
			}
		}
	}
}
