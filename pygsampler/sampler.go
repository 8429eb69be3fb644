package pygsampler

import (
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Options say what is sampled: pure data, the same for every engine.
type Options struct {
	Fanouts  []int64 // outermost hop first; -1 takes all edges
	Replace  bool
	Seed     uint64
	Ordered  bool   // vertices are numbered by first occurrence; else mode queue need not, on a GPU
	Mode     string // one of modes; a host's engine knows the queue and the rest, all with the same result
	MapLimit int64  // bytes of the vertex map of a batch in flight; 0: the default
	OnlyNew  bool   // a hop expands what the last one reached first; else all that was reached
	Disjoint bool   // each seed has a tree of its own
}

// modes are the ways to put a batch on a GPU.
var modes = []string{"auto", "persistent", "fused", "bsp", "queue"}

// NewOptions checks the options; fanouts are read from an address and copied.
func NewOptions(fanouts, numFanouts int64, o Options) (*Options, error) {
	if numFanouts < 1 || numFanouts > rng.MaxHops {
		return nil, Errorf(KindValue, "fanouts: expected 1 to %d hops, got %d", rng.MaxHops, numFanouts)
	}
	o.Fanouts = append([]int64(nil), memory.View[int64](fanouts, numFanouts)...)
	for i, f := range o.Fanouts {
		if f < -1 {
			return nil, Errorf(KindValue, "fanouts[%d]: expected an integer >= -1, got %d", i, f)
		}
		if f > request.MaxFanout {
			return nil, Errorf(KindValue, "fanouts[%d]: expected at most %d (-1 for all), got %d", i, request.MaxFanout, f)
		}
	}
	if !slices.Contains(modes, o.Mode) {
		return nil, Errorf(KindValue, "mode: expected 'auto', 'persistent', 'fused', 'bsp' or 'queue', got '%s'", o.Mode)
	}
	if (o.OnlyNew || o.Disjoint) && o.Mode != "auto" && o.Mode != "persistent" {
		return nil, Errorf(KindValue, "mode: expected 'auto' or 'persistent' with frontier='new' or disjoint=True, got '%s'", o.Mode)
	}
	if o.MapLimit < 0 {
		return nil, Errorf(KindValue, "map_limit: expected at least 0, got %d", o.MapLimit)
	}
	return &o, nil
}

// checkWeights refuses modes that know no weights.
func (o *Options) checkWeights(weighted bool) error {
	if weighted && o.Mode != "auto" && o.Mode != "persistent" {
		return Errorf(KindValue, "mode: expected 'auto' or 'persistent' with prob, got '%s'", o.Mode)
	}
	return nil
}

// request is what a call asks an engine for, without its seeds.
func (o *Options) request(c *Call) request.Request {
	return request.Request{
		Fanouts: o.Fanouts, Replace: o.Replace, OnlyNew: o.OnlyNew, Disjoint: o.Disjoint,
		Seed: o.Seed, Epoch: uint32(c.Epoch), Batch: uint64(c.Batch),
	}
}

// Shuffle permutes the array at an address in place, as seed and epoch say.
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
