package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// EdgeLists is the memory of a batch's hops joined, as core.EdgeLists says.
func EdgeLists(batch, ends int64) (mem int64, err error) {
	defer finish(&err)
	return core.EdgeLists(batch, ends)
}
