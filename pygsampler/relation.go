package pygsampler

import (
	"sync"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/finalizer"
)

// Relation is a CSC over borrowed arrays, validated or trusted, that counts the jobs that read it.
// The arrays must stay valid and unchanged until Close returns.
type Relation struct {
	csc    csc.Relation // none where device is
	device *deviceGraph // nil: the arrays are the host's, for its engine
	mu     sync.Mutex
	idle   *sync.Cond
	jobs   int
	flying map[*DeviceJob]struct{} // those of jobs that run on the device
	static map[*DeviceStatic]struct{}
	closed bool
}

// CSC holds the addresses and lengths of a caller's arrays; bits are 32 or 64, and EdgeIDs 0 means
// that an edge's id is its position.
type CSC struct {
	Indptr     int64
	IndptrBits int
	NumRows    int64
	Indices    int64
	IDBits     int
	NumEdges   int64
	EdgeIDs    int64
	EdgeIDBits int
	NumNodes   int64
	Alias      int64 // what rows draw by, uint64 for each edge; 0: they draw uniformly
	Sums       int64
	Whole      *Relation // the relation on the CPU of which this one has some edges; nil: it has all there are
	Kinds      int64     // how many types of edges rows are split by; 0: one row a node
	Back       *Relation // the transposed relation, on the same device; nil: none
	Data       string    // arrays that programs read, as readData has them; "": none
}

// Words of the list that describes a relation. The parent of a relation on the CPU is the relation
// of which it has some edges; the parent of one on a device is the same relation on the CPU.
const (
	graphDevice = iota // -1: the CPU
	graphIndptr
	graphIndptrBits
	graphRows
	graphIndices
	graphIDBits
	graphEdges
	graphEdgeIDs
	graphEdgeIDBits
	graphNodes
	graphAlias
	graphSums
	graphTrusted // not 0: validated before
	graphParent
	graphKinds
	graphBack
	graphWords
)

// NewRelationAt returns the relation that the list at an address describes: NewRelation,
// NewMappedRelation for arrays that are trusted, or NewDeviceRelation. find returns the relation of
// a handle, nil for 0, and data is as in CSC.
func NewRelationAt(list int64, data string, find func(handle int64) (*Relation, error)) (*Relation, error) {
	if list == 0 {
		return nil, Errorf(KindValue, "graph: expected an address, got 0")
	}
	w := memory.View[int64](list, graphWords)
	parent, err := find(w[graphParent])
	if err != nil {
		return nil, err
	}
	back, err := find(w[graphBack])
	if err != nil {
		return nil, err
	}
	c := CSC{
		Indptr: w[graphIndptr], IndptrBits: int(w[graphIndptrBits]), NumRows: w[graphRows],
		Indices: w[graphIndices], IDBits: int(w[graphIDBits]), NumEdges: w[graphEdges],
		EdgeIDs: w[graphEdgeIDs], EdgeIDBits: int(w[graphEdgeIDBits]), NumNodes: w[graphNodes],
		Alias: w[graphAlias], Sums: w[graphSums], Kinds: w[graphKinds], Back: back, Data: data,
	}
	if w[graphDevice] != -1 {
		return NewDeviceRelation(w[graphDevice], c, w[graphTrusted] != 0, parent)
	}
	c.Whole = parent
	if w[graphTrusted] != 0 {
		return NewMappedRelation(c)
	}
	return NewRelation(c)
}

// check refuses sizes and widths that no graph has.
func (c *CSC) check() error {
	if c.NumRows < 0 || c.NumEdges < 0 || c.NumNodes < 0 {
		return Errorf(KindValue, "graph: expected sizes >= 0, got %d rows, %d edges, %d nodes", c.NumRows, c.NumEdges, c.NumNodes)
	}
	if c.IndptrBits != 32 && c.IndptrBits != 64 {
		return Errorf(KindType, "indptr: expected 32 or 64 bits, got %d", c.IndptrBits)
	}
	if c.IDBits != 32 && c.IDBits != 64 {
		return Errorf(KindType, "indices: expected 32 or 64 bits, got %d", c.IDBits)
	}
	if (c.Alias == 0) != (c.Sums == 0) && c.NumEdges > 0 {
		return Errorf(KindValue, "graph: expected both tables of weights or none, got addresses %#x and %#x", c.Alias, c.Sums)
	}
	if c.Whole != nil && c.Whole.device != nil {
		return Errorf(KindValue, "graph: expected the whole one on the CPU, got one on cuda:%d", c.Whole.device.index)
	}
	if b := c.Back; b != nil && b.nodes() != c.NumNodes {
		return Errorf(KindValue, "graph: expected a transposed one of %d nodes, got %d", c.NumNodes, b.nodes())
	}
	if c.EdgeIDs != 0 && c.EdgeIDBits != 32 && c.EdgeIDBits != 64 {
		return Errorf(KindType, "edge_ids: expected 32 or 64 bits, got %d", c.EdgeIDBits)
	}
	return nil
}

// NewRelation borrows the arrays of a CSC and validates them once, on all cores.
func NewRelation(c CSC) (*Relation, error) {
	g, err := newHostRelation(c)
	if err != nil {
		return nil, err
	}
	if err := g.csc.Validate(); err != nil {
		return nil, err
	}
	return g, nil
}

// newHostRelation borrows the arrays of a CSC as they are.
func newHostRelation(c CSC) (*Relation, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	g := &Relation{csc: csc.Relation{
		Indptr:   csc.Borrow(c.Indptr, c.NumRows+1, c.IndptrBits),
		Indices:  csc.Borrow(c.Indices, c.NumEdges, c.IDBits),
		NumNodes: c.NumNodes,
		Kinds:    c.Kinds,
	}}
	if c.EdgeIDs != 0 {
		g.csc.EdgeIDs = csc.Borrow(c.EdgeIDs, c.NumEdges, c.EdgeIDBits)
	}
	if c.Alias != 0 {
		g.csc.Alias, g.csc.Sums = memory.View[uint64](c.Alias, c.NumEdges), memory.View[uint64](c.Sums, c.NumEdges)
	}
	if c.Whole != nil {
		g.csc.Whole = &c.Whole.csc
	}
	if c.Back != nil {
		if c.Back.device != nil {
			return nil, Errorf(KindValue, "graph: expected its transposed one on the CPU, got one on cuda:%d", c.Back.device.index)
		}
		g.csc.Back = &c.Back.csc
	}
	if c.Data != "" {
		if err := g.readData(c.Data); err != nil {
			return nil, err
		}
	}
	g.idle = sync.NewCond(&g.mu)
	return g, nil
}

// nodes is the number of nodes.
func (g *Relation) nodes() int64 {
	if g.device != nil {
		return g.device.graph.Nodes
	}
	return g.csc.NumNodes
}

// Close waits for the jobs that read the relation; later jobs are refused. The results of jobs on a
// device remain available to their waiters.
func (g *Relation) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for s := range g.static {
		g.mu.Unlock()
		s.Close()
		g.mu.Lock()
	}
	for g.jobs > 0 {
		// The device's work ends by itself, but only a look at it finds out.
		for j := range g.flying {
			g.mu.Unlock()
			j.settle(-1)
			g.mu.Lock()
			break
		}
		if g.jobs > 0 && len(g.flying) == 0 {
			g.idle.Wait()
		}
	}
	if g.device != nil {
		// Memory that it cannot return is lost with the device.
		_ = g.device.graph.Close()
	}
}

func (g *Relation) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return Errorf(KindClosed, "graph: expected an open graph, got a closed one")
	}
	g.jobs++
	return nil
}

func (g *Relation) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.jobs--; g.jobs == 0 {
		g.idle.Broadcast()
	}
}

// onHost returns the same relation on the CPU; nil if there is none.
func (g *Relation) onHost() *Relation {
	if g.device != nil {
		return g.device.host
	}
	return g
}

// FromCOO builds a CSC from edge lists at addresses; numNodes -1 stands for the largest id plus
// one. It returns the memory's address with one reference.
func FromCOO(src, dst int64, bits int, numEdges, numNodes int64) (int64, error) {
	if bits != 32 && bits != 64 {
		return 0, Errorf(KindType, "src: expected 32 or 64 bits, got %d", bits)
	}
	if numEdges < 0 || numNodes < -1 {
		return 0, Errorf(KindValue, "num_nodes: expected at least 0, got %d", numNodes)
	}
	m, err := csc.FromCOO(csc.Borrow(src, numEdges, bits), csc.Borrow(dst, numEdges, bits), numNodes)
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}

// ExpandRows returns the row of every edge of a block, counted from first on: the destination half
// of its COO representation. indptr has numRows+1 elements of bits bits, and the returned memory
// indptr[numRows].
func ExpandRows(indptr, numRows, first int64, bits int) (int64, error) {
	if numRows < 0 || bits != 32 && bits != 64 {
		return 0, Errorf(KindValue, "indptr: expected at least 0 rows of 32 or 64 bits, got %d rows of %d", numRows, bits)
	}
	m, err := csc.ExpandRows(csc.Borrow(indptr, numRows+1, bits), first)
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}

// Symbol returns the address of a C function that Python calls directly.
func Symbol(name string) (int64, error) {
	if name == "destructor" {
		return finalizer.Destructor(), nil
	}
	if address := memory.Symbol(name); address != 0 {
		return address, nil
	}
	return 0, Errorf(KindValue, "symbol: expected a known name, got %q", name)
}
