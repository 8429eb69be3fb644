package cpu

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// HeteroRequest says what to sample of a heterogeneous graph, and how. It is read-only while a
// batch is sampled.
type HeteroRequest struct {
	request.Batch // its seeds are those of the first type, then those of the second, and so on
	Graph         *csc.Graph
	Seeds         []int64   // how many there are of each type
	Fanouts       [][]int64 // of each relation those of its hops, outermost first
	Exclude       []*csc.Exclusions
	Replace       bool
	OnlyNew       bool
	Disjoint      bool
	// Times limit the rows of each relation of a disjoint batch, which are in the order of time, to
	// the edges within the bounds of their trees; nil: no limit. SeedTimes are the bounds of the
	// seeds.
	Times       []*Times
	SeedTimes   []int64
	EdgeWeights bool
	// Poisson gives rows their fanouts in expectation, so that a row may have any number of edges.
	Poisson  bool
	MapBytes int64
	Most     int64 // edges of a hop; 0: any number
	// Bounds and the fields after it describe the rows of each relation of a partitioned graph,
	// like Partition, for all relations; nil: the rows are local.
	Bounds [][]int64
	Ask    func(*RowRequest) ([]RowReply, error)
}

// heteroBatch is an unfinished batch of a heterogeneous graph. A hop has a list of rows, first
// those of the first relation, then those of the second, and so on; its tiles are pieces of that
// list, none of which spans two relations. So nodes of a type are numbered by their first
// occurrence in that list, each type separately.
type heteroBatch[I csc.Index] struct {
	*HeteroRequest
	*heteroScratch
	team      *team
	stop      *atomic.Bool
	out       *batch.Builder
	hops      int
	nodeTypes []nodeType[I]
	rels      []relation[I]
}

// nodeType is the state of a node type in a batch.
type nodeType[I csc.Index] struct {
	csc.NodeType
	*nodeTypeScratch
	n, expanded int64 // as those of sampling
	first, rows int64 // of the hop: the nodes that it expands
	coming      int64 // edges of the hop that lead from it
	// The nodes by their numbers, with one more than used, as claimDirect requires; in a disjoint
	// batch trees has them.
	vertices []I
	trees    *disjointMap[I]
}

// relation is the state of an edge type in a batch.
type relation[I csc.Index] struct {
	tiled[I]
	req      Request
	src, dst *nodeType[I]
	from     rows[I] // tiled, or far
	far      remoteSource[I]
	widths   batch.Widths
	edges    int64    // of the hop
	offsets  [4]int64 // of the block
	block    block[I]
}

// tile is some rows of one relation.
type tile struct{ relation, lo, hi, first, edges int64 }

// heteroScratch is the working memory of a heterogeneous batch, reused between batches.
type heteroScratch struct {
	nodeTypes []*nodeTypeScratch
	rows      []*hopRows // of each relation
	here      []*NodeMap // likewise: which rows are here, of those that lie elsewhere
	tiles     []tile
	drawn     []int32
	ranks     rankScratch
	crewScratch
}

type nodeTypeScratch struct {
	lists
	numbers NodeMap
	around  NodeMap   // of one relation's rows in a hop
	table   hashTable // of pairs of tree and node
}

var heteroShelf struct {
	sync.Mutex
	free []*heteroScratch
}

func takeHeteroScratch(types, relations int) *heteroScratch {
	heteroShelf.Lock()
	s := &heteroScratch{}
	if last := len(heteroShelf.free) - 1; last >= 0 {
		s, heteroShelf.free[last], heteroShelf.free = heteroShelf.free[last], nil, heteroShelf.free[:last]
	}
	heteroShelf.Unlock()
	for len(s.nodeTypes) < types {
		s.nodeTypes = append(s.nodeTypes, &nodeTypeScratch{})
	}
	for len(s.rows) < relations {
		s.rows = append(s.rows, &hopRows{})
	}
	return s
}

// rowsHere is the map of the nodes of a relation whose rows are here.
func (s *heteroScratch) rowsHere(relation int) *NodeMap {
	for len(s.here) <= relation {
		s.here = append(s.here, &NodeMap{})
	}
	return s.here[relation]
}

func (s *heteroScratch) put() {
	heteroShelf.Lock()
	defer heteroShelf.Unlock()
	heteroShelf.free = append(heteroShelf.free, s)
}

// trimHetero frees the scratch of idle batches of heterogeneous graphs.
func trimHetero() {
	heteroShelf.Lock()
	defer heteroShelf.Unlock()
	for _, s := range heteroShelf.free {
		s.ranks.free()
		for _, k := range s.nodeTypes {
			k.lists.free()
			k.numbers.Free()
			k.around.Free()
			if k.table.pages != nil {
				k.table.pages.Free()
			}
		}
		for _, here := range s.here {
			here.Free()
		}
	}
	heteroShelf.free = nil
}

// SampleHetero samples the batch of a request tile by tile, like Sample.
func SampleHetero(req *HeteroRequest, crew Crew, stop *atomic.Bool) (m memory.Memory, err error) {
	defer recovered(&err)
	if req.Graph.IDBits() == 32 {
		return sampleHetero[int32](req, crew, stop)
	}
	return sampleHetero[int64](req, crew, stop)
}

// Hops returns the number of hops.
func (r *HeteroRequest) Hops() int {
	if len(r.Fanouts) == 0 {
		return 0
	}
	return len(r.Fanouts[0])
}

// Expected estimates the number of edges of a batch, like Request.Expected.
func (r *HeteroRequest) Expected() int64 {
	vertices := make([]float64, len(r.Seeds))
	for t, n := range r.Seeds {
		vertices[t] = float64(n)
	}
	total := 0.0
	for hop := range r.Hops() {
		more := make([]float64, len(vertices))
		for i, rel := range r.Graph.EdgeTypes {
			rule := request.Rule{Fanout: r.Fanouts[i][r.Hops()-1-hop], Replace: r.Replace}
			degree := float64(r.Graph.Relations[i].NumEdges()) / float64(max(r.Graph.NodeTypes[rel.Dst].Nodes, 1))
			edges := vertices[rel.Dst] * rule.Mean(degree)
			more[rel.Src] += edges
			total += edges
		}
		for t := range vertices {
			vertices[t] = min(vertices[t]+more[t], float64(max(r.Graph.NodeTypes[t].Nodes, 1)))
		}
	}
	return int64(min(total, 1<<62))
}

// bound is the most nodes of one type that the batch can hold, whatever the degrees.
func (r *HeteroRequest) bound() float64 {
	if r.Poisson {
		return math.Inf(1)
	}
	most := 0.0
	for _, n := range r.Seeds {
		most += float64(n)
	}
	for hop := range r.Hops() {
		edges := 1.0
		for i := range r.Fanouts {
			if r.Fanouts[i][hop] < 0 {
				return math.Inf(1)
			}
			edges += float64(r.Fanouts[i][hop])
		}
		most *= edges
	}
	return most
}

func sampleHetero[I csc.Index](req *HeteroRequest, crew Crew, stop *atomic.Bool) (memory.Memory, error) {
	g := req.Graph
	s := &heteroBatch[I]{
		HeteroRequest: req, heteroScratch: takeHeteroScratch(len(g.NodeTypes), len(g.Relations)),
		team: muster(crew, req.Expected()), stop: stop, hops: req.Hops(),
	}
	return s.made(s.hop)
}

// made is the batch by its hops.
func (s *heteroBatch[I]) made(sampled func(hop int) error) (memory.Memory, error) {
	defer s.heteroScratch.put()
	defer s.team.dismiss()
	complete := false
	defer func() {
		if !complete && s.out != nil {
			s.out.Discard()
		}
	}()
	if err := s.begin(); err != nil {
		return memory.Memory{}, err
	}
	for hop := range s.hops {
		if err := sampled(hop); err != nil {
			return memory.Memory{}, err
		}
	}
	if err := s.finish(); err != nil {
		return memory.Memory{}, err
	}
	complete = true
	return s.out.Finish(0), nil
}

// begin numbers the seeds.
func (s *heteroBatch[I]) begin() error {
	g := s.Graph
	l := batch.Layout{Hops: s.hops, Types: len(g.NodeTypes), Relations: len(g.Relations)}
	total := s.Batch.Seeds.Len()
	var err error
	if s.out, err = batch.NewBuilder(l, total*2*idBits[I]()/8+4096); err != nil {
		return err
	}
	s.out.Set(batch.WordIDBits, idBits[I]())
	s.nodeTypes = make([]nodeType[I], len(g.NodeTypes))
	first := int64(0)
	for t := range s.nodeTypes {
		k := &s.nodeTypes[t]
		k.NodeType, k.nodeTypeScratch = g.NodeTypes[t], s.heteroScratch.nodeTypes[t]
		if err := s.plant(t, first, total); err != nil {
			return err
		}
		first += s.HeteroRequest.Seeds[t]
	}
	s.rels = make([]relation[I], len(g.Relations))
	for i, about := range g.EdgeTypes {
		rel := g.Relations[i]
		r := &s.rels[i]
		r.src, r.dst = &s.nodeTypes[about.Src], &s.nodeTypes[about.Dst]
		r.req = Request{Relation: rel, EdgeWeights: s.EdgeWeights}
		r.req.Batch = s.Batch
		r.req.Hops = request.Hops{Fanouts: s.HeteroRequest.Fanouts[i], Replace: s.Replace}
		if s.Exclude != nil {
			r.req.Exclude = s.Exclude[i]
		}
		if s.Times != nil {
			r.req.Times = s.Times[i]
		}
		r.widths = batch.Widths{ID: idBits[I]() / 8, EdgeID: int64(rel.EdgeIDBits()) / 8}
		r.tiled = tiled[I]{
			Request: &r.req, hopRows: s.heteroScratch.rows[i], trees: r.dst.trees,
			salt: about.Salt, mixed: g.Mixed(),
		}
		if r.from = &r.tiled; s.Ask != nil {
			r.far = remoteSource[I]{bounds: s.Bounds[i], nodes: r.src.Nodes, widths: r.widths, weights: s.EdgeWeights, beside: r.req.arrays()}
			r.from = &r.far
		}
		s.out.Set(s.out.EdgeIDBits(i), r.widths.EdgeID*8)
	}
	for w := range s.team.size {
		s.worker(w)
	}
	return nil
}

// plant numbers the seeds of a type, which begin at first among the seeds of the batch.
func (s *heteroBatch[I]) plant(t int, first, total int64) error {
	k, count, word := &s.nodeTypes[t], s.HeteroRequest.Seeds[t], s.out.Type(t)
	if err := s.CheckSeedsOf(k.Name, first, count, k.Nodes); err != nil {
		return err
	}
	bytes := count * idBits[I]() / 8
	index, err := s.out.Alloc(bytes)
	if err != nil {
		return err
	}
	given, err := s.out.Alloc(bytes)
	if err != nil {
		return err
	}
	local, ids := memory.ViewAt[I](s.out.Memory, index, count), memory.ViewAt[I](s.out.Memory, given, count)
	for i := range count {
		ids[i] = I(s.Batch.Seeds.Element(first + i))
	}
	copy(local, ids)
	s.out.Set(word+batch.TypeNumOutput, count)
	s.out.Set(word+batch.TypeOutputNodes, given)
	s.out.Set(word+batch.TypeOutputIndex, index)
	if s.Disjoint {
		shift, err := request.TreeShift(k.Nodes, total)
		if err != nil {
			return err
		}
		k.trees = &disjointMap[I]{shift: shift, timed: s.Times != nil}
		k.table.begin()
		if err := k.trees.reserve(&k.lists, &k.table, 0, count); err != nil {
			return err
		}
		k.trees.root(&k.table, local, first)
		if s.Times != nil {
			copy(k.trees.bounds, s.SeedTimes[first:first+count])
		}
		k.n = count
	} else {
		k.numbers.Limit = s.MapBytes
		if err := k.numbers.Begin(k.Nodes, int64(min(s.bound()+1, float64(k.Nodes)))); err != nil {
			return err
		}
		if err := k.reserve(count); err != nil {
			return err
		}
		if k.n, err = Claim(&k.numbers, local, k.vertices, 0); err != nil {
			return err
		}
	}
	s.out.Set(s.out.Count(t, 0), k.n)
	return nil
}

// reserve makes room for up to more new nodes.
func (k *nodeType[I]) reserve(more int64) error {
	if k.trees != nil {
		return k.trees.reserve(&k.lists, &k.table, k.n, more)
	}
	count := min(k.n+more, k.Nodes) + 1
	if err := memory.Affordable(count * idBits[I]() / 8); err != nil {
		return err
	}
	var err error
	if k.vertices, err = longer(&k.lists.vertices, k.vertices[:k.n], count); err != nil {
		return err
	}
	return Reserve(&k.numbers, more, k.vertices, k.n)
}

// frontier is the nodes that the hop expands.
func (k *nodeType[I]) frontier() []I {
	if k.trees != nil {
		return k.trees.vertices[k.first : k.first+k.rows]
	}
	return k.vertices[k.first : k.first+k.rows]
}

// hop samples the rows of the nodes found so far, or of those that the last hop found, in
// all relations; hop 0 is next to the seeds.
func (s *heteroBatch[I]) hop(hop int) error {
	s.advance()
	if s.Ask != nil {
		if err := s.bring(hop); err != nil {
			return err
		}
	}
	if err := s.count(hop); err != nil {
		return err
	}
	if err := s.place(hop); err != nil {
		return err
	}
	streams := rng.NewStream(s.Seed, s.Epoch, s.Number, uint8(hop), rng.Neighbors)
	tiles := s.tiles
	draw := func(w int, i int64) {
		t := &tiles[i]
		r := &s.rels[t.relation]
		r.from.draw(s.workers[w], streams, r.dst.frontier(), t.lo, t.hi, t.first, hop, r.block)
	}
	var err error
	if !s.Disjoint && s.team.byRank(s.edges()) {
		err = s.drawRanked(hop, draw)
	} else {
		s.drawn = sized(s.drawn, int64(len(tiles)))
		err = s.team.pipeline(s.drawn, s.stop, draw, func(i int64) { s.claim(&tiles[i]) })
	}
	if err != nil {
		return err
	}
	if s.stop.Load() {
		return request.ErrCancelled
	}
	s.tell(hop)
	return nil
}

// edges returns the number of edges of the hop.
func (s *heteroBatch[I]) edges() (n int64) {
	for i := range s.rels {
		n += s.rels[i].edges
	}
	return n
}

// drawRanked draws the tiles of a hop, and numbers their neighbors by rank.
func (s *heteroBatch[I]) drawRanked(hop int, draw func(worker int, tile int64)) error {
	lists := make([]ranked[I], len(s.nodeTypes))
	tiles := rankedTiles[I]{
		count: int64(len(s.tiles)), last: hop == s.hops-1, draw: draw,
		list: func(i int64) *ranked[I] { return &lists[s.Graph.EdgeTypes[s.tiles[i].relation].Src] },
		size: func(i int64) int64 { return s.tiles[i].edges },
		ids: func(i int64) []I {
			t := &s.tiles[i]
			return s.rels[t.relation].block.indices[t.first : t.first+t.edges]
		},
	}
	for i := range lists {
		k := &s.nodeTypes[i]
		m := &k.numbers
		lists[i] = ranked[I]{by: m.by, narrow: &m.narrow, wide: &m.wide, table: &m.table, nodes: k.vertices, n: k.n}
		tiles.lists = append(tiles.lists, &lists[i])
	}
	err := tiles.number(s.team, s.stop, &s.ranks)
	for i := range lists {
		s.nodeTypes[i].n = lists[i].n
	}
	return err
}

// advance selects the nodes that the next hop expands.
func (s *heteroBatch[I]) advance() {
	for t := range s.nodeTypes {
		k := &s.nodeTypes[t]
		k.first, k.coming = 0, 0
		if s.OnlyNew {
			k.first, k.expanded = k.expanded, k.n
		}
		if k.rows = k.n - k.first; k.trees != nil {
			k.trees.first = k.first
		}
	}
}

// tell writes the results of a hop to the header.
func (s *heteroBatch[I]) tell(hop int) {
	for i := range s.rels {
		r := &s.rels[i]
		r.block.indptr[r.dst.rows] = I(r.edges)
		s.out.SetWords(s.out.Block(s.hops-1-hop, i), r.src.n, r.dst.rows, r.edges,
			r.offsets[0], r.offsets[1], r.offsets[2], r.dst.first, r.offsets[3])
	}
	for t := range s.nodeTypes {
		s.out.Set(s.out.Count(t, hop+1), s.nodeTypes[t].n)
	}
}

// count counts the tiles of a hop and the edges that each relation takes.
func (s *heteroBatch[I]) count(hop int) error {
	tiles := s.tiles[:0]
	for i := range s.rels {
		r := &s.rels[i]
		r.hopRows.size(r.dst.rows)
		for lo := int64(0); lo < r.dst.rows && r.Rule(hop).Fanout != 0; lo += tileRows {
			tiles = append(tiles, tile{relation: int64(i), lo: lo, hi: min(lo+tileRows, r.dst.rows)})
		}
	}
	s.tiles = tiles
	err := s.team.each(int64(len(tiles)), s.stop, func(_ int, i int64) {
		t := &tiles[i]
		r := &s.rels[t.relation]
		t.edges = r.from.count(r.dst.frontier(), t.lo, t.hi, hop)
	})
	if err != nil {
		return err
	}
	if s.stop.Load() {
		return request.ErrCancelled
	}
	for i := range s.rels {
		s.rels[i].edges = 0
	}
	total := int64(0)
	for i := range tiles {
		r := &s.rels[tiles[i].relation]
		tiles[i].first = r.edges
		r.edges += tiles[i].edges
		r.src.coming += tiles[i].edges
		total += tiles[i].edges
	}
	if s.Most > 0 && total > s.Most {
		return request.ErrLarge
	}
	return nil
}

// place makes room for the blocks of a hop, and for the nodes that it may find.
func (s *heteroBatch[I]) place(hop int) error {
	for i := range s.rels {
		r := &s.rels[i]
		if idBits[I]() == 32 && (r.edges > math.MaxInt32 || s.Disjoint && r.src.n+r.src.coming > math.MaxInt32) {
			return fmt.Errorf("%w: a block of %d edges needs int64 ids", request.ErrOverflow, max(r.edges, r.src.coming))
		}
		var err error
		if r.offsets, err = placeBlock(s.out, r.widths, r.dst.rows, r.edges, s.EdgeWeights); err != nil {
			return err
		}
	}
	for i := range s.rels {
		r := &s.rels[i]
		r.block = blockAt[I](s.out.Memory, r.widths, r.offsets, r.dst.rows, r.edges)
		if s.Ask != nil && r.req.carries() {
			r.block.keys = make([]int64, r.edges)
		}
		if r.Rule(hop).Fanout == 0 {
			clear(r.block.indptr)
		}
	}
	for t := range s.nodeTypes {
		if err := s.nodeTypes[t].reserve(s.nodeTypes[t].coming); err != nil {
			return err
		}
	}
	return nil
}

// claim numbers the edges of a tile, in place.
func (s *heteroBatch[I]) claim(t *tile) {
	r := &s.rels[t.relation]
	if r.src.trees != nil {
		r.src.n = r.src.trees.claimFrom(r.dst.trees, &r.src.table, r.block, r.req.Times, t.lo, t.hi, t.first+t.edges, r.src.n)
		return
	}
	n, err := Claim(&r.src.numbers, r.block.indices[t.first:t.first+t.edges], r.src.vertices, r.src.n)
	if err != nil {
		// There is room: place has made it.
		panic(err)
	}
	r.src.n = n
}

// finish copies the lists of nodes into the region.
func (s *heteroBatch[I]) finish() error {
	for t := range s.nodeTypes {
		k, word := &s.nodeTypes[t], s.out.Type(t)
		s.out.Set(word+batch.TypeNumNodes, k.n)
		list := k.vertices
		if k.trees != nil {
			list = k.trees.vertices
			if err := putList(s.out, word+batch.TypeSubgraphIDs, k.trees.of[:k.n]); err != nil {
				return err
			}
		}
		if err := putList(s.out, word+batch.TypeNodes, list[:k.n]); err != nil {
			return err
		}
	}
	return nil
}
