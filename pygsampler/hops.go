package pygsampler

import "github.com/pygsampler/pygsampler/pygsampler/internal/hops"

// JoinedHops is the address of a memory with the hops of a batch on the CPU joined, as hops.Joined has
// them; at ends are the types that each relation of a batch with types leads from and to.
func JoinedHops(data, ends int64) (int64, error) {
	if err := aligned(8, "batch", data, "ends", ends); err != nil {
		return 0, err
	}
	m, err := hops.Joined(data, ends)
	if err != nil {
		return 0, err
	}
	return m.Address(), nil
}
