package edges

import (
	"fmt"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Shape holds the sizes of a graph to build.
type Shape struct {
	Nodes    int64 `json:"nodes"`
	Edges    int64 `json:"edges"`
	Bits     int   `json:"bits"`
	EdgeBits int   `json:"edge_bits"` // 0: an edge's id is its position
	Map      bool  `json:"map"`       // node_ids are there
	// Data are the arrays over the edges, by id, of Rows values.
	Data []ArrayColumn `json:"-"`
	Rows int64         `json:"-"`
}

// Target receives the arrays of a graph.
type Target interface {
	// Make allocates the arrays. They are zero and may be written until Finish.
	Make(s Shape) (Arrays, error)
	// Finish completes the graph.
	Finish() error
	// Drop frees the arrays of Make; after Finish it does nothing.
	Drop()
}

// Arrays is the memory of an unfinished graph; absent arrays have 0 bits.
type Arrays struct {
	Indptr  []int64
	Indices csc.Array
	EdgeIDs csc.Array
	NodeIDs []int64
	Data    [][]byte
}

// Words at the beginning of the memory that Memory makes.
const (
	MemoryNumNodes = iota
	MemoryNumEdges
	MemoryIDBits
	MemoryEdgeIDBits // 0: no edge ids
	MemoryOffIndptr
	MemoryOffIndices
	MemoryOffEdgeIDs
	MemoryOffNodeIDs // 0: no map
	MemoryRows       // of each array over the edges; for each follow its dtype, as a file has it, and its offset
	memoryWords
)

// Memory is a target in one block of C memory, which its taker owns after Finish.
type Memory struct {
	Block memory.Memory
	made  bool
	done  bool
}

func align(n int64) int64 { return (n + 63) &^ 63 }

// Make implements Target.
func (t *Memory) Make(s Shape) (Arrays, error) {
	offIndptr := align((memoryWords + 2*int64(len(s.Data))) * 8)
	offIndices := align(offIndptr + (s.Nodes+1)*8)
	offEdgeIDs := align(offIndices + s.Edges*int64(s.Bits/8))
	offNodeIDs := align(offEdgeIDs + s.Edges*int64(s.EdgeBits/8))
	size := offNodeIDs
	if s.Map {
		size += s.Nodes * 8
	}
	header := []int64{s.Nodes, s.Edges, int64(s.Bits), int64(s.EdgeBits), offIndptr, offIndices, offEdgeIDs, 0, s.Rows}
	for _, d := range s.Data {
		size = align(size)
		header = append(header, int64(d.DType), size)
		size += s.Rows * d.DType.Size()
	}
	if err := memory.Affordable(size); err != nil {
		return Arrays{}, err
	}
	block, err := memory.New(size)
	if err != nil {
		return Arrays{}, err
	}
	block.SetSize(size)
	t.Block, t.made = block, true
	words := memory.ViewAt[int64](block, 0, int64(len(header)))
	copy(words, header)
	at := func(offset int64, bits int) csc.Array {
		if bits == 32 {
			return csc.Array{Bits: 32, I32: memory.ViewAt[int32](block, offset, s.Edges)}
		}
		return csc.Array{Bits: 64, I64: memory.ViewAt[int64](block, offset, s.Edges)}
	}
	out := Arrays{Indptr: memory.ViewAt[int64](block, offIndptr, s.Nodes+1), Indices: at(offIndices, s.Bits)}
	if s.EdgeBits != 0 {
		out.EdgeIDs = at(offEdgeIDs, s.EdgeBits)
	}
	if s.Map {
		words[MemoryOffNodeIDs] = offNodeIDs
		out.NodeIDs = memory.ViewAt[int64](block, offNodeIDs, s.Nodes)
	}
	for i, d := range s.Data {
		out.Data = append(out.Data, memory.ViewAt[byte](block, header[memoryWords+2*i+1], s.Rows*d.DType.Size()))
	}
	return out, nil
}

// Finish implements Target.
func (t *Memory) Finish() error {
	t.done = true
	return nil
}

// Drop implements Target.
func (t *Memory) Drop() {
	if t.made && !t.done {
		t.made = false
		t.Block.Release()
	}
}

// File is a target in the file format of this module; Finish moves it to Path.
type File struct {
	Path      string
	writer    atomic.Pointer[graphfile.Writer]
	finishing atomic.Bool
}

// Finishing reports whether Finish has begun. Only then may another goroutine than Build's call
// Drop, which unmaps the memory that Build writes to.
func (t *File) Finishing() bool { return t.finishing.Load() }

func dataSection(d ArrayColumn) string { return "edge_data." + d.Name }

// Make implements Target.
func (t *File) Make(s Shape) (Arrays, error) {
	type section struct {
		name  string
		bits  int
		count int64
	}
	sections := []section{{"indptr", 64, s.Nodes + 1}, {"indices", s.Bits, s.Edges}}
	if s.EdgeBits != 0 {
		sections = append(sections, section{"edge_ids", s.EdgeBits, s.Edges})
	}
	if s.Map {
		sections = append(sections, section{"node_ids", 64, s.Nodes})
	}
	var listed []graphfile.Section
	for _, k := range sections {
		listed = append(listed, graphfile.Section{Name: k.name, DType: graphfile.DTypeOf(fmt.Sprintf("int%d", k.bits)), Shape: []int64{k.count}})
	}
	for _, d := range s.Data {
		listed = append(listed, graphfile.Section{Name: dataSection(d), DType: d.DType, Shape: []int64{s.Rows}})
	}
	w, err := graphfile.Create(t.Path, listed)
	if err != nil {
		return Arrays{}, err
	}
	t.writer.Store(w)
	if err := w.Map(); err != nil {
		return Arrays{}, err
	}
	at := func(name string, bits int, n int64) csc.Array {
		bytes := w.Bytes(name)
		if bits == 32 {
			return csc.Array{Bits: 32, I32: elements[int32](bytes, n)}
		}
		return csc.Array{Bits: 64, I64: elements[int64](bytes, n)}
	}
	out := Arrays{Indptr: at("indptr", 64, s.Nodes+1).I64, Indices: at("indices", s.Bits, s.Edges)}
	if s.EdgeBits != 0 {
		out.EdgeIDs = at("edge_ids", s.EdgeBits, s.Edges)
	}
	if s.Map {
		out.NodeIDs = at("node_ids", 64, s.Nodes).I64
	}
	for _, d := range s.Data {
		out.Data = append(out.Data, w.Bytes(dataSection(d)))
	}
	return out, nil
}

// Finish implements Target.
func (t *File) Finish() error {
	t.finishing.Store(true)
	return t.writer.Load().Commit()
}

// Drop implements Target; it also ends a running Finish.
func (t *File) Drop() {
	if w := t.writer.Load(); w != nil {
		w.Abort()
	}
}
