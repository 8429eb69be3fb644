package cuda

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// standing is the arrays of fixed sizes that a Static's batches are copied to, in one memory of the
// device, and where they are in it.
type standing struct {
	t      *testing.T
	made   *Static
	stream gpu.Stream
	memory gpu.Memory
	to     Spread
	size   []BlockSize
	idBits int64
	edge   int64
}

// dummies is how many rows every block has for what fills it up.
const dummies = 3

// standUp makes arrays for batches of up to such sizes.
func standUp(t *testing.T, e *Engine, s gpu.Stream, made *Static, g *csc.Relation) *standing {
	t.Helper()
	x := &standing{t: t, made: made, stream: s, idBits: int64(g.Indices.Bits), edge: int64(made.graph.SampleBits())}
	offset := uint64(0)
	next := func(n uint64, bits int64) gpu.Address {
		at := offset
		offset += (n*uint64(bits/8) + 15) &^ 15
		return gpu.Address(at)
	}
	hops := len(made.plan.Most)
	for _, m := range made.plan.Most {
		x.size = append(x.size, BlockSize{m.Src + dummies, m.Dst + dummies, m.Edges + 5})
	}
	x.to.Nodes = next(x.size[0].Src, x.idBits)
	x.to.Outputs = uint64(made.plan.Seeds) + dummies
	x.to.OutputNodes, x.to.OutputIndex = next(x.to.Outputs, x.idBits), next(x.to.Outputs, x.idBits)
	x.to.Counts = next(uint64(1+3*hops), 64)
	for _, n := range x.size {
		x.to.Blocks = append(x.to.Blocks, SpreadBlock{
			next(n.Dst+1, x.idBits), next(n.Edges, x.idBits), next(n.Edges, x.edge), n,
		})
	}
	var err error
	if x.memory, err = e.pool.Alloc(s, offset); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.memory.Free(s); err != nil {
			t.Error(err)
		}
	})
	for _, a := range []*gpu.Address{&x.to.Nodes, &x.to.OutputNodes, &x.to.OutputIndex, &x.to.Counts} {
		*a += x.memory.Address
	}
	for i := range x.to.Blocks {
		b := &x.to.Blocks[i]
		b.Indptr, b.Indices, b.EdgeIDs = b.Indptr+x.memory.Address, b.Indices+x.memory.Address, b.EdgeIDs+x.memory.Address
	}
	return x
}

// ints downloads n integers of so many bits.
func (x *standing) ints(a gpu.Address, n uint64, bits int64) []int64 {
	x.t.Helper()
	m, err := memory.New(int64(n) * bits / 8)
	if err != nil {
		x.t.Fatal(err)
	}
	defer m.Release()
	if err := errors.Join(x.stream.Download(m.Pointer(), a, n*uint64(bits/8)), x.stream.Synchronize()); err != nil {
		x.t.Fatal(err)
	}
	return batchtest.Ints(m, 0, int64(n), bits)
}

// read is the batch that the arrays hold, once all that fills them up is as it should be.
func (x *standing) read(nodes, edges int64) (b batchtest.Batch) {
	x.t.Helper()
	filled := func(what string, a []int64, used int64, want func(i int64) bool) []int64 {
		for i := used; i < int64(len(a)); i++ {
			if !want(i) {
				x.t.Fatalf("%s[%d], behind %d, is %d", what, i, used, a[i])
			}
		}
		return a[:used]
	}
	counts := x.ints(x.to.Counts, uint64(1+3*len(x.size)), 64)
	b.IDBits, b.EdgeIDBits = x.idBits, x.edge
	all := x.ints(x.to.Nodes, x.size[0].Src, x.idBits)
	b.Nodes = filled("nodes", all, counts[1], func(i int64) bool { return all[i] == i%nodes })
	out := x.ints(x.to.OutputNodes, x.to.Outputs, x.idBits)
	b.Output = filled("output_nodes", out, counts[0], func(i int64) bool { return out[i] == i%nodes })
	index := x.ints(x.to.OutputIndex, x.to.Outputs, x.idBits)
	b.OutputIndex = filled("output_index", index, counts[0], func(i int64) bool { return index[i] == i })
	for k, size := range x.size {
		src, dst, count := counts[1+3*k], counts[2+3*k], counts[3+3*k]
		to := x.to.Blocks[k]
		indptr := x.ints(to.Indptr, size.Dst+1, x.idBits)
		indices, ids := x.ints(to.Indices, size.Edges, x.idBits), x.ints(to.EdgeIDs, size.Edges, x.edge)
		block := batchtest.Block{Src: src, Dst: dst}
		block.Indptr = filled("indptr", indptr, dst+1, func(i int64) bool { return indptr[i] == count })
		behind := int64(size.Src) - src
		block.Indices = filled("indices", indices, count, func(i int64) bool { return indices[i] == src+(i-count)%behind })
		block.EdgeIDs = filled("edge_ids", ids, count, func(i int64) bool { return ids[i] == i%max(edges, 1) })
		b.Blocks = append(b.Blocks, block)
		x.checkEdges(k, block, size)
	}
	return b
}

// checkEdges has the edges of a block one by one.
func (x *standing) checkEdges(k int, block batchtest.Block, size BlockSize) {
	x.t.Helper()
	m, err := x.made.engine.pool.Alloc(x.stream, 16*size.Edges)
	if err != nil {
		x.t.Fatal(err)
	}
	to := StaticEdges{
		Block: x.to.Blocks[k], NumDst: x.to.Counts + gpu.Address(8*(2+3*k)), Sources: m.Address,
		Destinations: m.Address + gpu.Address(8*size.Edges), Bits: 64,
	}
	if err := x.made.Edges(&to, x.stream); err != nil {
		x.t.Fatal(err)
	}
	sources, destinations := x.ints(to.Sources, size.Edges, 64), x.ints(to.Destinations, size.Edges, 64)
	if !slices.Equal(sources[:len(block.Indices)], block.Indices) {
		x.t.Fatalf("sources are %v, want %v", sources, block.Indices)
	}
	for row := range block.Dst {
		for e := block.Indptr[row]; e < block.Indptr[row+1]; e++ {
			if destinations[e] != row {
				x.t.Fatalf("edge %d ends in %d, want %d", e, destinations[e], row)
			}
		}
	}
	for e := len(block.Indices); e < len(destinations); e++ {
		if want := block.Dst + int64(e-len(block.Indices))%(int64(size.Dst)-block.Dst); destinations[e] != want {
			x.t.Fatalf("edge %d, which fills up, ends in %d, want %d", e, destinations[e], want)
		}
	}
	if err := m.Free(x.stream); err != nil {
		x.t.Fatal(err)
	}
}

// wait is what becomes of batch i.
func (x *standing) wait(i int64) (fits bool) {
	x.t.Helper()
	words := make([]int64, x.made.plan.Plan.Words())
	done, fits, err := x.made.Wait(i, 10*time.Second, words)
	if err != nil || !done {
		x.t.Fatalf("batch %d: %v, %v", i, done, err)
	}
	return fits
}

// step does one of a Static's things.
func (x *standing) step(f func() error) {
	x.t.Helper()
	if err := f(); err != nil {
		x.t.Fatal(err)
	}
}

// pass is a pass over parts of seeds, as a captured loop does it: batch i is copied out while batch
// i + 2 is sampled.
func (x *standing) pass(g *csc.Relation, seeds []int64, parts []Seeds, epoch uint32, first, stride uint64, want func(i int) (*batchtest.Batch, error)) {
	x.t.Helper()
	e, s := x.made.engine, x.stream
	bits := x.made.plan.SeedBits
	host := csctest.Array(seeds, bits)
	m, err := e.pool.Alloc(s, uint64(max(len(seeds), 1)*8))
	if err != nil {
		x.t.Fatal(err)
	}
	if len(seeds) > 0 {
		x.step(func() error { return s.Upload(m.Address, host.Pointer(), uint64(len(seeds)*bits/8)) })
	}
	x.step(func() error { return x.made.Begin(s, m.Address, parts, epoch, first, stride) })
	x.step(func() error { return x.made.Sample(s) })
	x.step(func() error { return x.made.Sample(s) })
	for i := range parts {
		fits := x.wait(int64(i))
		b, err := want(i)
		if err != nil {
			x.t.Fatal(err)
		}
		if fits != (b != nil) {
			x.t.Fatalf("batch %d: fits is %v", i, fits)
		}
		x.step(func() error { return x.made.Spread(&x.to, s) })
		x.step(func() error { return x.made.Sample(s) })
		if b == nil {
			b = &batchtest.Batch{IDBits: x.idBits, EdgeIDBits: x.edge}
			for range x.size {
				b.Blocks = append(b.Blocks, batchtest.Block{Indptr: []int64{0}})
			}
		}
		if got := x.read(g.NumNodes, g.NumEdges()); !got.Equal(*b) {
			x.t.Fatalf("batch %d:\n got %.600s\nwant %.600s", i, fmt.Sprint(got), fmt.Sprint(*b))
		}
	}
	x.step(s.Synchronize)
	x.step(func() error { return m.Free(s) })
}

// staticCase is passes over a graph with a sampler.
type staticCase struct {
	g       *csc.Relation
	d       *Graph
	hops    request.Hops
	seeds   []int64
	size    int // of a batch
	grid    int
	tags    uint32 // of the map; 0: all
	smaller int    // the batch of the first pass that is not to fit, counted from 1
}

// run compares every batch of two passes with the CPU's, and closes what it made.
func (c *staticCase) run(t *testing.T, e *Engine, s gpu.Stream) {
	t.Helper()
	var parts []Seeds
	for at := 0; at < len(c.seeds); at += c.size {
		parts = append(parts, Seeds{int64(at), int64(min(c.size, len(c.seeds)-at))})
	}
	bits := c.g.Indices.Bits
	onHost := func(epoch uint32, number uint64, part Seeds) (batchtest.Batch, error) {
		return onCPU(&cpu.Request{Relation: c.g, Request: request.Request{Hops: c.hops, Batch: request.Batch{
			Seed: 9, Epoch: epoch, Number: number, Seeds: csctest.Array(c.seeds[part.First:][:part.Count], bits),
		}}})
	}
	most := make([]BlockSize, len(c.hops.Fanouts))
	for i := range most {
		most[i].Dst = 1
	}
	var sizes [][]BlockSize
	for epoch := range uint32(2) {
		for i, part := range parts {
			b, err := onHost(epoch, uint64(1+2*i), part)
			if err != nil {
				t.Fatal(err)
			}
			var size []BlockSize
			for k, block := range b.Blocks {
				size = append(size, BlockSize{uint64(block.Src), uint64(block.Dst), uint64(len(block.Indices))})
				if epoch == 0 && i+1 == c.smaller {
					continue
				}
				m := &most[k]
				m.Src, m.Dst, m.Edges = max(m.Src, size[k].Src), max(m.Dst, size[k].Dst), max(m.Edges, size[k].Edges)
			}
			sizes = append(sizes, size)
		}
	}
	made, err := e.NewStatic(c.d, StaticPlan{
		Plan: &Neighbors{Hops{c.hops}}, Seed: 9, Seeds: int64(c.size), SeedBits: bits, Most: most, Grid: c.grid,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.tags > 0 {
		made.turns.Tags = c.tags
	}
	x := standUp(t, e, s, made, c.g)
	for epoch := range uint32(2) {
		x.pass(c.g, c.seeds, parts, epoch, 1, 2, func(i int) (*batchtest.Batch, error) {
			for k, m := range most {
				if size := sizes[int(epoch)*len(parts)+i][k]; size.Src > m.Src || size.Dst > m.Dst || size.Edges > m.Edges {
					return nil, nil
				}
			}
			b, err := onHost(epoch, uint64(1+2*i), parts[i])
			return &b, err
		})
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
}

// Batches that replayed launches make are the CPU's, whatever the widths, the sampler and the grid,
// past the end of the map's tags, with repeated seeds and a last batch that is not full.
func TestStaticEqualsTheCPU(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		g, d := graphOf(t, e, csctest.RandomRows(3000, 1), 3060, bits, 96-bits, bits == 32)
		wg, wd := weighted(t, e, csctest.RandomRows(3000, 2), 3060, bits, bits == 64, csctest.Weightings["ramp"])
		for _, hops := range []request.Hops{
			{Fanouts: []int64{4}}, {Fanouts: []int64{5, 3, 7}}, {Fanouts: []int64{-1, 2}}, {Fanouts: []int64{40, 0}},
			{Fanouts: []int64{3, 3}, Replace: true},
		} {
			for _, grid := range []int{0, 7} {
				c := staticCase{g: g, d: d, hops: hops, seeds: csctest.Mixed(700), size: 150, grid: grid, tags: uint32(grid)}
				c.run(t, e, s)
				c.g, c.d = wg, wd
				c.run(t, e, s)
			}
		}
	}
}

// Graphs of all kinds: vertices without edges, hubs, no edges at all.
func TestStaticOfAwkwardGraphs(t *testing.T) {
	e, s := device(t)
	for name, rows := range csctest.Awkward(5000) {
		t.Run(name, func(t *testing.T) {
			n := int64(len(rows))
			g, d := graphOf(t, e, rows, n+2, 64, 32, true)
			c := staticCase{g: g, d: d, hops: request.Hops{Fanouts: []int64{2, 3}}, seeds: []int64{n + 1, 0, n, 0, 0, 0}, size: 2}
			c.run(t, e, s)
		})
	}
}

// A batch that is larger than it may be is found, and the others are what they are.
func TestStaticFindsWhatDoesNotFit(t *testing.T) {
	e, s := device(t)
	rows := csctest.RandomRows(500, 3)
	for v := 100; v < 110; v++ {
		for i := range int64(200) {
			rows[v] = append(rows[v], i)
		}
	}
	g, d := graphOf(t, e, rows, 500, 32, 64, false)
	seeds := csctest.Steps(70, 1)
	seeds = append(seeds[:40:40], append([]int64{100, 101, 102, 103, 104, 105, 106, 107, 108, 109}, seeds[40:]...)...)
	for _, fanouts := range [][]int64{{-1}, {3, -1}, {-1, 100}} {
		c := staticCase{g: g, d: d, hops: request.Hops{Fanouts: fanouts}, seeds: seeds, size: 10, smaller: 5}
		c.run(t, e, s)
	}
}

// Batches that launches with the same arguments cannot sample are refused, and nothing is held
// afterwards.
func TestStaticRefuses(t *testing.T) {
	e, s := device(t)
	_, d := graphOf(t, e, csctest.RandomRows(300, 1), 300, 64, 64, false)
	most := []BlockSize{{30, 20, 20}}
	for _, hops := range []request.Hops{
		{Fanouts: []int64{2}, OnlyNew: true}, {Fanouts: []int64{2}, Disjoint: true}, {Fanouts: []int64{2, 2}},
	} {
		_, err := e.NewStatic(d, StaticPlan{Plan: &Neighbors{Hops{hops}}, Seeds: 4, SeedBits: 64, Most: most})
		if !errors.Is(err, request.ErrValue) {
			t.Errorf("%+v: %v", hops, err)
		}
	}
	plan := StaticPlan{Plan: &Neighbors{Hops{request.Hops{Fanouts: []int64{2}}}}, Seeds: 4, SeedBits: 64, Most: most}
	if _, err := e.NewStatic(d, StaticPlan{Plan: plan.Plan, Seeds: 4, SeedBits: 64, Most: []BlockSize{{30, 20, 1 << 31}}}); !errors.Is(err, request.ErrOverflow) {
		t.Error(err)
	}
	made, err := e.NewStatic(d, plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []*Spread{{Outputs: 4}, {Outputs: 4, Blocks: []SpreadBlock{{Size: most[0]}}}, {Outputs: 3, Blocks: []SpreadBlock{{Size: BlockSize{31, 20, 20}}}}} {
		if err := made.Spread(to, s); !errors.Is(err, request.ErrValue) {
			t.Error(err)
		}
	}
	// Nothing was sampled, so nothing arrives.
	if done, _, err := made.Wait(0, time.Millisecond, nil); done || err != nil {
		t.Error(done, err)
	}
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	if n := e.inFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// Go's mirrors of the kernels' structs that the host writes have the kernels' sizes.
func TestStaticState(t *testing.T) {
	if got := unsafe.Sizeof(staticStep{}); got != 32 {
		t.Error(got)
	}
	if got := unsafe.Offsetof(staticState{}.Launches); got != unsafe.Sizeof(staticPass{}) {
		t.Error(got)
	}
}
