package pygsampler

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// WalksByType has the ids of walks along a metapath of so many steps count within their types. nodes
// and edges are the addresses of where the ids of each step's type begin, roots is how many vertices the
// first has.
func WalksByType(walks, nodes, edges, steps, roots int64) error {
	if steps < 0 || steps > walk.MaxLength {
		return Errorf(KindValue, "length: expected 0 to %d steps, got %d", walk.MaxLength, steps)
	}
	m := memory.FromAddress(walks)
	return walk.ByType(m, memory.View[int64](nodes, steps+1), memory.View[int64](edges, steps), roots)
}
