package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// WalksByType renumbers the ids of walks along a metapath so that they count within their types.
// The caller must be the only user of the walks.
func WalksByType(walks, nodes, edges, steps, roots int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.WalksByType(walks, nodes, edges, steps, roots)
}
