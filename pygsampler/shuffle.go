package pygsampler

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Shuffle permutes the array at an address in place, by seed and epoch.
func Shuffle(array, length int64, bits int, seed int64, epoch int64) error {
	if epoch < 0 || epoch > rng.MaxEpoch {
		return Errorf(KindValue, "epoch: expected an integer in [0, %d], got %d", rng.MaxEpoch, epoch)
	}
	if length < 0 {
		return Errorf(KindValue, "array: expected a length >= 0, got %d", length)
	}
	switch bits {
	case 32:
		rng.Shuffle(memory.View[int32](array, length), uint64(seed), uint32(epoch))
	case 64:
		rng.Shuffle(memory.View[int64](array, length), uint64(seed), uint32(epoch))
	default:
		return Errorf(KindType, "array: expected 32 or 64 bits, got %d", bits)
	}
	return nil
}
