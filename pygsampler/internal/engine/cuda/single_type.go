package cuda

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// SingleType has a plan of graphs without types make the batches of a graph with one type of vertices and one of
// edges, which are the same bytes: it knows of neither what the kernel of many types looks up.
type SingleType struct {
	Plan
	Name string // of the type of vertices
}

// Header is what describes the batch, as that of a graph with types.
func (p *SingleType) Header(words []int64) []int64 {
	l := batch.TypedLayout{Hops: int(words[batch.WordHops]), Types: 1, Relations: 1}
	header := make([]int64, l.Words())
	copy(header, words[:batch.HeaderWords])
	clear(header[batch.TypedHops:batch.WordSize])
	header[batch.WordSignature], header[batch.WordEdgeIDBits], header[batch.WordTrees] = batch.TypedMagic, 0, 0
	header[batch.TypedHops], header[batch.TypedNumTypes], header[batch.TypedNumRelations] = int64(l.Hops), 1, 1
	about := header[l.Type(0):]
	about[batch.TypeNumNodes], about[batch.TypeNodes] = words[batch.WordNumNodes], words[batch.WordNodes]
	about[batch.TypeNumOutput], about[batch.TypeOutputNodes] = words[batch.WordNumOutput], words[batch.WordOutputNodes]
	about[batch.TypeOutputIndex], about[batch.TypeTrees] = words[batch.WordOutputIndex], words[batch.WordTrees]
	header[l.EdgeIDBits(0)] = words[batch.WordEdgeIDBits]
	for hop := range l.Hops {
		block := batch.Block(words, l.Hops-1-hop)
		copy(header[l.Block(l.Hops-1-hop, 0):][:batch.BlockWords], block[:batch.BlockWords])
		header[l.Count(0, hop)] = block[batch.BlockFirstDst] + block[batch.BlockNumDst]
	}
	header[l.Count(0, l.Hops)] = words[batch.WordNumNodes]
	return header
}

func (p *SingleType) outside(f *Flight, i int64) error {
	return fmt.Errorf("%w: seeds[%q][%d]: expected an id in [0, %d), got %s", request.ErrIndex, p.Name, i, f.graph.Nodes, f.seed(i))
}
