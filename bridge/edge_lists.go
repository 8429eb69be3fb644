package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// EdgeLists returns a memory with the joined hops of a batch, as core.EdgeLists does.
func EdgeLists(batch, ends int64) (mem int64, err error) {
	defer finish(&err)
	return core.EdgeLists(batch, ends)
}
