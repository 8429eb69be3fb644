package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// WalksByType has the ids of walks along a metapath, which nobody else has yet, count within their types.
func WalksByType(walks, nodes, edges, steps, roots int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.WalksByType(walks, nodes, edges, steps, roots)
}
