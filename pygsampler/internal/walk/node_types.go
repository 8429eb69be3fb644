package walk

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// ByType renumbers the ids of walks, 64 bits wide, so that they count within the types of a
// metapath: nodes[s] and edges[s] are the first ids of the types at step s. roots is the number of
// nodes of the first type; a root with a larger id is an error, which leaves all ids unchanged.
func ByType(m memory.Memory, nodes, edges []int64, roots int64) error {
	words := memory.ViewAt[int64](m, 0, batch.WalkWords)
	walks, steps := words[batch.WalkNumWalks], words[batch.WalkSteps]
	if words[batch.WordSignature] != batch.WalkMagic || words[batch.WordIDBits] != 64 || steps != int64(len(edges)) || steps+1 != int64(len(nodes)) {
		return fmt.Errorf("walks: expected some of 64 bits and %d steps: a fault of pygsampler", len(edges))
	}
	ids := memory.ViewAt[int64](m, words[batch.WalkNodes], words[batch.WalkNumNodes])
	for i, v := range ids[:walks] {
		if v >= roots {
			return fmt.Errorf("%w: seeds[%d]: expected an id in [0, %d), got %d", request.ErrIndex, int64(i)/words[batch.WalkPerSeed], roots, v)
		}
	}
	shift(ids, nodes, walks)
	if at := words[batch.WalkEdgeIDs]; at != 0 {
		shift(memory.ViewAt[int64](m, at, words[batch.WalkNumEdges]), edges, walks)
	}
	return nil
}

// shift subtracts the first id of its type from the ids of each step; -1 stays.
func shift(ids, firsts []int64, walks int64) {
	for step, first := range firsts {
		for i, v := range ids[int64(step)*walks:][:walks] {
			if v >= 0 {
				ids[int64(step)*walks+int64(i)] = v - first
			}
		}
	}
}
