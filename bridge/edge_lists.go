package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// JoinedHops is the memory of a batch's hops joined, as core.JoinedHops says.
func JoinedHops(batch, ends int64) (mem int64, err error) {
	defer finish(&err)
	return core.JoinedHops(batch, ends)
}
