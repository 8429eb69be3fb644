package pygsampler

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch/edgelists"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// EdgeLists is the address of a memory with the hops of a batch on the CPU joined, as edgelists.Joined has
// them; at ends are the types that each relation of a batch with types leads from and to.
func EdgeLists(data, ends int64) (int64, error) {
	if err := aligned(8, "batch", data, "ends", ends); err != nil {
		return 0, err
	}
	m, err := edgelists.Joined(data, memory.View[int64](ends, 2*edgelists.Relations(data)))
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}

// joined is a batch with its hops joined, in its place.
func joined(m memory.Memory, ends []int64) (memory.Memory, error) {
	defer m.Release()
	return edgelists.Joined(int64(uintptr(m.Data())), ends)
}
