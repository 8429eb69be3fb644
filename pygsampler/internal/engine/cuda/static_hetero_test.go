package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/batchtest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// heteroCase is a pass over seeds of a heterogeneous graph.
type heteroCase struct {
	t       *testing.T
	e       *Engine
	s       gpu.Stream
	g       *csc.Graph
	d       *Graph
	fanouts [][]int64
	replace bool
	trees   bool
	factors bool
	onlyNew bool
	without [][][]int64 // of each batch the ids of each relation's edges that it leaves out; nil: none
	rule    *times.Rule // of times of edges; nil: they have none
	keys    []*times.SortedRows
	parts   [][][]int64 // of each batch the seeds of each type
	grid    int
	tags    uint32 // of the map; 0: all
	smaller int    // the batch that is not to fit, counted from 1

	made *StaticHetero
	to   SpreadHetero
}

func (c *heteroCase) bits() int { return c.g.Relations[0].Indices.Bits }

// joined is the seeds of a batch, type by type, and how many there are of each.
func (c *heteroCase) joined(i int) (seeds, counts []int64) {
	for _, of := range c.parts[i] {
		seeds, counts = append(seeds, of...), append(counts, int64(len(of)))
	}
	return seeds, counts
}

// leaves says whether the batches of an epoch leave edges out: in some cases a pass without them follows one with some.
func (c *heteroCase) leaves(epoch uint32) bool {
	return c.without != nil && !(c.onlyNew && epoch == 1)
}

// onCPU is batch i of an epoch.
func (c *heteroCase) onCPU(epoch uint32, i int) (words []int64, arrays [][]int64) {
	c.t.Helper()
	seeds, counts := c.joined(i)
	r := &cpu.HeteroRequest{
		Graph: c.g, Fanouts: c.fanouts, Replace: c.replace, OnlyNew: c.onlyNew, Disjoint: c.trees, EdgeWeights: c.factors, Seeds: counts,
		Batch: request.Batch{Seed: 9, Epoch: epoch, Number: uint64(1 + 2*i), Seeds: csctest.Array(seeds, c.bits())},
	}
	if c.rule != nil {
		r.SeedTimes = c.bounds(i)
		for _, rows := range c.keys {
			r.Times = append(r.Times, &cpu.Times{SortedRows: *rows, Rule: *c.rule, Seeds: r.SeedTimes})
		}
	}
	if c.leaves(epoch) {
		for j, ids := range c.without[i] {
			out, err := c.g.Relations[j].Exclude(ids)
			c.step(err)
			r.Exclude = append(r.Exclude, out)
		}
	}
	var stop atomic.Bool
	m, err := cpu.SampleHetero(r, alone{}, &stop)
	if err != nil {
		c.t.Fatal(err)
	}
	defer m.Release()
	return batchtest.Arrays(m, batch.Layout{Hops: r.Hops(), Types: len(c.g.NodeTypes), Relations: len(c.g.Relations)})
}

// bounds are the times of a batch's seeds.
func (c *heteroCase) bounds(i int) (bounds []int64) {
	seeds, _ := c.joined(i)
	for _, v := range seeds {
		bounds = append(bounds, 10+v%50)
	}
	return bounds
}

// ints downloads n integers of so many bits.
func (c *heteroCase) ints(a gpu.Address, n uint64, bits int) []int64 {
	c.t.Helper()
	m, err := memory.New(int64(max(n, 1)) * int64(bits/8))
	if err != nil {
		c.t.Fatal(err)
	}
	defer m.Release()
	if err := errors.Join(c.s.Download(m.Pointer(), a, n*uint64(bits/8)), c.s.Synchronize()); err != nil {
		c.t.Fatal(err)
	}
	return batchtest.Ints(m, 0, int64(n), int64(bits))
}

// place makes arrays for batches of a plan, in one memory of the device.
func (c *heteroCase) place(p *StaticHeteroPlan) {
	c.t.Helper()
	offset, bits := uint64(0), c.bits()
	next := func(n uint64, bits int) gpu.Address {
		at := offset
		offset += (n*uint64(bits/8) + 15) &^ 15
		return gpu.Address(at)
	}
	room := func(most int64) uint64 {
		if most == 0 {
			return 0
		}
		return uint64(most) + dummies
	}
	counts := len(c.g.NodeTypes) * (len(p.Edges) + 2)
	for t := range c.g.NodeTypes {
		k := SpreadNodeType{Size: room(p.Vertices[0][t]), Outputs: room(p.Plan.Seeds[t])}
		k.Nodes, k.OutputNodes, k.OutputIndex = next(k.Size, bits), next(k.Outputs, bits), next(k.Outputs, bits)
		if c.trees {
			k.Trees = next(k.Size, bits)
		}
		c.to.NodeTypes = append(c.to.NodeTypes, k)
	}
	for i := range p.Edges {
		var hop []SpreadHeteroBlock
		for r, relation := range c.g.EdgeTypes {
			var b SpreadHeteroBlock
			b.Size = BlockSize{room(p.sources(i, relation.Src)), room(p.rows(c.d.schema.EdgeTypes, i, relation.Dst)), uint64(p.Edges[i][r]) + 5}
			if p.Edges[i][r] == 0 {
				b.Size.Edges = 0
			}
			b.Indptr, b.Indices = next(b.Size.Dst+1, bits), next(b.Size.Edges, bits)
			b.EdgeIDs = next(b.Size.Edges, c.made.EdgeBits(r))
			if c.factors {
				b.EdgeWeights = next(b.Size.Edges, 32)
			}
			if c.onlyNew {
				b.DstNodes = next(b.Size.Dst, bits)
			}
			hop = append(hop, b)
			counts += 3
		}
		c.to.Blocks = append(c.to.Blocks, hop)
	}
	c.to.Counts = next(uint64(counts), 64)
	m, err := c.e.pool.Alloc(c.s, offset)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := m.Free(c.s); err != nil {
			c.t.Error(err)
		}
	})
	c.to.Counts += m.Address
	for t := range c.to.NodeTypes {
		k := &c.to.NodeTypes[t]
		for _, a := range []*gpu.Address{&k.Nodes, &k.Trees, &k.OutputNodes, &k.OutputIndex} {
			*a += m.Address
		}
	}
	for _, hop := range c.to.Blocks {
		for r := range hop {
			b := &hop[r]
			for _, a := range []*gpu.Address{&b.Indptr, &b.Indices, &b.EdgeIDs, &b.EdgeWeights, &b.DstNodes} {
				*a += m.Address
			}
		}
	}
	c.step(c.made.Place(&c.to))
}

func (c *heteroCase) step(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// read is what the arrays hold, in the order of heteroParts, once all that fills them up is as it should be.
func (c *heteroCase) read() (arrays [][]int64) {
	c.t.Helper()
	take := func(a gpu.Address, n uint64, bits int, used int64, want func(i int64) int64) {
		c.t.Helper()
		all := c.ints(a, n, bits)
		for i := used; i < int64(n); i++ {
			if all[i] != want(i) {
				c.t.Fatalf("array %d: place %d, behind %d, is %d, want %d", len(arrays), i, used, all[i], want(i))
			}
		}
		arrays = append(arrays, all[:used])
	}
	bits, relations, hops := c.bits(), len(c.g.Relations), len(c.to.Blocks)
	kinds := len(c.g.NodeTypes)
	found := kinds + 3*relations*hops
	counts := c.ints(c.to.Counts, uint64(found+kinds*(hops+1)), 64)
	for t, k := range c.to.NodeTypes {
		vertex := func(i int64) int64 { return i % c.g.NodeTypes[t].Nodes }
		nodes := counts[found+t*(hops+1)+hops]
		take(k.Nodes, k.Size, bits, nodes, vertex)
		if c.trees {
			take(k.Trees, k.Size, bits, nodes, func(int64) int64 { return c.made.plan.numSeeds() })
		}
		take(k.OutputNodes, k.Outputs, bits, counts[t], vertex)
		take(k.OutputIndex, k.Outputs, bits, counts[t], func(i int64) int64 { return i })
	}
	for i, hop := range c.to.Blocks {
		for r, b := range hop {
			of := counts[kinds+3*(i*relations+r):]
			src, dst, edges := of[0], of[1], of[2]
			ends := func(t int) []int64 { return counts[found+t*(hops+1):][:hops+1] }
			if relation := c.g.EdgeTypes[r]; c.onlyNew {
				src = ends(relation.Src)[hops]
				first, kind := int64(0), relation.Dst
				if i+1 < hops {
					first = ends(kind)[hops-2-i]
				}
				nodes := c.ints(c.to.NodeTypes[kind].Nodes, c.to.NodeTypes[kind].Size, bits)
				take(b.DstNodes, b.Size.Dst, bits, dst, func(j int64) int64 { return j % c.g.NodeTypes[kind].Nodes })
				if last := len(arrays) - 1; !slices.Equal(arrays[last], nodes[first:first+dst]) {
					c.t.Fatalf("hop %d, relation %d: destinations are %v, want %v", i, r, arrays[last], nodes[first:first+dst])
				}
				arrays = arrays[:len(arrays)-1]
			}
			take(b.Indptr, b.Size.Dst+1, bits, dst+1, func(int64) int64 { return edges })
			take(b.Indices, b.Size.Edges, bits, edges, func(i int64) int64 { return src + (i-edges)%(int64(b.Size.Src)-src) })
			take(b.EdgeIDs, b.Size.Edges, c.made.EdgeBits(r), edges, func(i int64) int64 { return i % max(c.g.Relations[r].NumEdges(), 1) })
			if c.factors {
				take(b.EdgeWeights, b.Size.Edges, 32, edges, func(int64) int64 { return 0 })
			}
		}
	}
	return arrays
}

// run compares every batch of two passes with the CPU's.
func (c *heteroCase) run() {
	c.t.Helper()
	kinds, relations, hops := len(c.g.NodeTypes), len(c.g.Relations), len(c.fanouts[0])
	l := batch.Layout{Hops: hops, Types: kinds, Relations: relations}
	plan := &Hetero{Fanouts: c.fanouts, Replace: c.replace, OnlyNew: c.onlyNew, Disjoint: c.trees, EdgeWeights: c.factors, Seeds: make([]int64, kinds)}
	p := StaticHeteroPlan{Plan: plan, Seed: 9, SeedBits: c.bits(), Grid: c.grid}
	if c.rule != nil {
		plan.Times = &Times{Rule: *c.rule}
		for r, rows := range c.keys {
			keys, err := c.d.relations[r].Keys(rows.Edges)
			c.step(err)
			plan.Times.Keys = append(plan.Times.Keys, keys)
		}
	}
	for range hops {
		p.Vertices, p.Edges = append(p.Vertices, make([]int64, kinds)), append(p.Edges, make([]int64, relations))
	}
	grow := func(words []int64) (fits bool) {
		fits = true
		for i := range hops {
			for t := range kinds {
				n := words[l.Count(t, hops-i)]
				fits = fits && n <= p.Vertices[i][t]
				p.Vertices[i][t] = max(p.Vertices[i][t], n)
			}
			for r := range relations {
				n := words[l.Block(i, r)+batch.BlockNumEdges]
				fits = fits && n <= p.Edges[i][r]
				p.Edges[i][r] = max(p.Edges[i][r], n)
			}
		}
		return fits
	}
	var seeds, counts, bounds, without, withoutAt []int64
	var parts []Seeds
	if c.without != nil {
		withoutAt = []int64{0}
	}
	for i := range c.parts {
		own, of := c.joined(i)
		parts = append(parts, Seeds{int64(len(seeds)), int64(len(own))})
		seeds, counts = append(seeds, own...), append(counts, of...)
		bounds = append(bounds, c.bounds(i)...)
		if c.without != nil {
			for r, ids := range c.without[i] {
				positions, err := c.g.Relations[r].Positions(ids)
				c.step(err)
				without = append(without, positions...)
				withoutAt = append(withoutAt, int64(len(without)))
			}
		}
		for t, n := range of {
			p.Plan.Seeds[t] = max(p.Plan.Seeds[t], n)
		}
		for epoch := range uint32(2) {
			if words, _ := c.onCPU(epoch, i); i+1 != c.smaller {
				grow(words)
			}
		}
	}
	var err error
	c.made, err = c.e.NewStaticHetero(c.d, p)
	c.step(err)
	if c.tags > 0 {
		c.made.turns.Tags = c.tags
	}
	c.place(&p)
	host := csctest.Array(seeds, c.bits())
	m, err := c.e.pool.Alloc(c.s, uint64(max(len(seeds), 1)*8))
	c.step(err)
	if len(seeds) > 0 {
		c.step(c.s.Upload(m.Address, host.Pointer(), uint64(len(seeds)*c.bits()/8)))
	}
	if c.rule == nil {
		bounds = nil
	}
	words := make([]int64, p.Plan.Words())
	for epoch := range uint32(2) {
		if !c.leaves(epoch) {
			without, withoutAt = nil, nil
		}
		c.step(c.made.Begin(c.s, m.Address, &HeteroPass{
			Parts: parts, Counts: counts, Keys: bounds, Excluded: without, ExcludedAt: withoutAt, Epoch: epoch, First: 1, Stride: 2,
		}))
		c.step(errors.Join(c.made.Sample(c.s), c.made.Sample(c.s)))
		for i := range parts {
			done, fits, err := c.made.Wait(int64(i), 10*time.Second, words)
			c.step(err)
			wanted, want := c.onCPU(epoch, i)
			if !done || fits != (i+1 != c.smaller) {
				c.t.Fatalf("batch %d: done is %v, fits is %v", i, done, fits)
			}
			c.step(errors.Join(c.made.Spread(c.s), c.made.Sample(c.s)))
			if !fits {
				if grow(wanted) {
					c.t.Fatalf("batch %d was to be larger than there is room for", i)
				}
				continue
			}
			got := c.read()
			for j := range want {
				if !slices.Equal(got[j], want[j]) {
					c.t.Fatalf("batch %d, array %d of %d:\n got %.300s\nwant %.300s", i, j, len(want), fmt.Sprint(got[j]), fmt.Sprint(want[j]))
				}
			}
		}
	}
	c.step(errors.Join(c.s.Synchronize(), m.Free(c.s), c.made.Close()))
}

// deal has batches of random seeds, of some of the types each, and a batch of none.
func (c *heteroCase) deal(random *rand.Rand, batches, most int) {
	for i := range batches {
		of := make([][]int64, len(c.g.NodeTypes))
		for t, kind := range c.g.NodeTypes {
			if i == 2 || random.IntN(3) == 0 && len(of) > 1 {
				continue
			}
			for range random.IntN(most) {
				of[t] = append(of[t], random.Int64N(kind.Nodes))
			}
		}
		c.parts = append(c.parts, of)
	}
}

// leaveOut has each batch leave some edges of each relation out, and of the first relation all.
func (c *heteroCase) leaveOut(random *rand.Rand) {
	for i := range c.parts {
		var of [][]int64
		for r, relation := range c.g.Relations {
			var ids []int64
			for p := range relation.NumEdges() {
				if i == 1 && r == 0 || random.IntN(4) == 0 {
					if relation.EdgeIDs.Bits != 0 {
						p = relation.EdgeIDs.Element(p)
					}
					ids = append(ids, p)
				}
			}
			of = append(of, ids)
		}
		c.without = append(c.without, of)
	}
}

// timesOf are times of all edges, which ascend in each row.
func timesOf(g *csc.Graph) (all []*times.SortedRows) {
	for _, of := range g.Relations {
		rows := &times.SortedRows{Edges: make([]int64, of.NumEdges()), Of: make([]int64, of.NumEdges())}
		for v := range of.NumRows() {
			start, end := of.Indptr.Element(v), of.Indptr.Element(v+1)
			for p := start; p < end; p++ {
				id := p
				if of.EdgeIDs.Bits != 0 {
					id = of.EdgeIDs.Element(p)
				}
				rows.Edges[p] = (p - start) * 60 / (end - start)
				rows.Of[id] = rows.Edges[p]
			}
		}
		all = append(all, rows)
	}
	return all
}

// Batches of random schemas that replayed launches make are the CPU's, whatever the widths, weights, the sampler and
// the grid, past the end of the map's tags.
func TestStaticHeteroEqualsTheCPU(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 3))
	for i, types := range []int{1, 3, 12} {
		for _, bits := range []int{32, 64} {
			g := randomTypes(random, types, bits)
			if bits == 32 {
				for j := 0; j < len(g.Relations); j += 2 {
					weigh(g.Relations[j], csctest.Weightings["ramp"])
				}
			}
			d := uploadHetero(t, e, g)
			for variant := range 7 {
				c := heteroCase{
					t: t, e: e, s: s, g: g, d: d, replace: variant == 1, grid: []int{0, 3}[variant%2],
					trees: variant == 2 || variant == 3 || variant == 6, factors: variant == 2 || variant == 5, onlyNew: variant >= 5,
				}
				if variant == 1 {
					c.tags = 3
				}
				if (variant == 3 || variant == 6) && bits == 64 {
					c.rule = &times.Rule{Window: 20, Carry: i%2 == 0, Last: i%3 == 0}
					c.keys = timesOf(g)
				}
				for range g.Relations {
					var fanouts []int64
					for range 1 + i%3 {
						fanouts = append(fanouts, []int64{0, 1, 3, 40, 7}[random.IntN(5)])
					}
					if !c.replace && random.IntN(4) == 0 {
						fanouts[0] = -1
					}
					c.fanouts = append(c.fanouts, fanouts)
				}
				c.deal(random, 4, 20-5*min(variant, 3))
				if variant >= 4 {
					c.leaveOut(random)
				}
				c.run()
			}
		}
	}
}

// A batch that is larger than it may be is found, and the others are what they are.
func TestStaticHeteroFindsWhatDoesNotFit(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(15, 4))
	g := &csc.Graph{Schema: &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a", Nodes: 500}, {Name: "b", Nodes: 500}}}}
	for i := range 2 {
		rows := csctest.RandomRows(500, uint64(3+i))
		g.Add(csc.EdgeType{Name: fmt.Sprint("r", i), Src: 1 - i, Dst: i, Salt: uint64(i) + 9}, csctest.Graph(rows, 500, 64, 64, false))
	}
	c := heteroCase{t: t, e: e, s: s, g: g, d: uploadHetero(t, e, g), fanouts: [][]int64{{3, 3}, {-1, 4}}, smaller: 5}
	c.deal(random, 7, 8)
	for v := range int64(200) {
		c.parts[4][1] = append(c.parts[4][1], v)
	}
	c.run()
}

// Batches that launches with the same arguments cannot sample are refused, and nothing is held
// afterwards.
func TestStaticHeteroRefuses(t *testing.T) {
	e, s := device(t)
	g := randomTypes(rand.New(rand.NewPCG(4, 4)), 2, 64)
	d := uploadHetero(t, e, g)
	fanouts := [][]int64{{2}, {2}, {2}}
	plan := func(change func(*Hetero)) StaticHeteroPlan {
		p := StaticHeteroPlan{
			Plan: &Hetero{Fanouts: fanouts, Seeds: []int64{3, 0}}, SeedBits: 64, Vertices: [][]int64{{20, 20}}, Edges: [][]int64{{6, 6, 6}},
		}
		change(p.Plan)
		return p
	}
	for i, change := range []func(*Hetero){
		func(p *Hetero) { p.Fanouts = [][]int64{{2, 2}, {2, 2}, {2, 2}} },
	} {
		if _, err := e.NewStaticHetero(d, plan(change)); !errors.Is(err, request.ErrValue) {
			t.Errorf("%d: %v", i, err)
		}
	}
	p := plan(func(*Hetero) {})
	p.Edges[0][1] = 1 << 31
	if _, err := e.NewStaticHetero(d, p); !errors.Is(err, request.ErrOverflow) {
		t.Error(err)
	}
	p.Edges[0][1] = 6
	made, err := e.NewStaticHetero(d, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := made.Spread(s); !errors.Is(err, request.ErrValue) {
		t.Error(err)
	}
	for i, to := range []*SpreadHetero{{}, {NodeTypes: make([]SpreadNodeType, 2), Blocks: [][]SpreadHeteroBlock{make([]SpreadHeteroBlock, 3)}}} {
		if err := made.Place(to); !errors.Is(err, request.ErrValue) {
			t.Errorf("%d: %v", i, err)
		}
	}
	// Nothing was sampled, so nothing arrives.
	if err := made.Begin(s, 0, &HeteroPass{Parts: make([]Seeds, 1), Keys: []int64{1}, Stride: 1}); !errors.Is(err, request.ErrValue) {
		t.Error(err)
	}
	if err := made.Begin(s, 0, &HeteroPass{Parts: make([]Seeds, 1), ExcludedAt: []int64{0, 0}, Stride: 1}); !errors.Is(err, request.ErrValue) {
		t.Error(err)
	}
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
func TestStaticHeteroState(t *testing.T) {
	if got := unsafe.Offsetof(heteroState{}.Launches); got != unsafe.Sizeof(heteroPass{}) {
		t.Error(got)
	}
	if got := unsafe.Sizeof(heteroPiece{}); got != 64 {
		t.Error(got)
	}
}
