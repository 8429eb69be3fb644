package pygsampler

import (
	"math"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/negatives"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Words of the list that describes negatives; the last four are addresses, and the bits at the last.
const (
	negativesSeed = iota
	negativesEpoch
	negativesBatch
	negativesSite
	negativesBelow
	negativesRows
	negativesSlots
	negativesCount
	negativesAlias
	negativesPlaces
	negativesOut
	negativesBits
	negativesWords
)

// negativesAt returns the request of a list, without its arrays.
func negativesAt(list int64) (r negatives.Request, w []int64, err error) {
	if list == 0 {
		return r, nil, Errorf(KindValue, "list: expected an address, got 0")
	}
	w = memory.View[int64](list, negativesWords)
	if w[negativesEpoch] < 0 || w[negativesEpoch] > rng.MaxEpoch || w[negativesBatch] < 0 || w[negativesSite] < 0 || w[negativesSite] >= rng.MaxHops {
		return r, nil, Errorf(KindValue, "negatives: expected an epoch, a batch and a site, got %d, %d and %d", w[negativesEpoch], w[negativesBatch], w[negativesSite])
	}
	r = negatives.Request{
		Seed: uint64(w[negativesSeed]), Epoch: uint32(w[negativesEpoch]), Batch: uint64(w[negativesBatch]), Site: uint8(w[negativesSite]),
		Below: w[negativesBelow], Rows: w[negativesRows], Slots: w[negativesSlots], Count: w[negativesCount],
	}
	if bits := w[negativesBits]; bits != 32 && bits != 64 || bits == 32 && r.Below > math.MaxInt32+1 {
		return r, nil, Errorf(KindType, "negatives: expected 32 or 64 bits with room for %d, got %d", r.Below-1, bits)
	}
	if err := r.Check(); err != nil {
		return r, nil, err
	}
	if w[negativesOut] == 0 && r.Rows*r.Count > 0 {
		return r, nil, Errorf(KindValue, "out: expected an address, got 0")
	}
	return r, w, aligned(8, "alias", w[negativesAlias], "places", w[negativesPlaces])
}

// Negatives draws the numbers of negatives.Request, on the caller's thread and idle threads. The
// address list holds seed, epoch, batch, site, the bound of numbers, rows, slots and count, the
// addresses of the alias table, of the places (either may be 0) and of the numbers, and their bits.
func Negatives(list int64) error {
	r, w, err := negativesAt(list)
	if err != nil {
		return err
	}
	if w[negativesAlias] != 0 {
		r.Alias = memory.View[uint64](w[negativesAlias], r.Below)
	}
	if w[negativesPlaces] != 0 {
		r.Places = csc.Borrow(w[negativesPlaces], r.Rows, 64)
	}
	r.Out = csc.Borrow(w[negativesOut], r.Rows*r.Count, int(w[negativesBits]))
	return r.Draw(crewOf(0))
}

// DeviceNegatives enqueues the same draws; all addresses in the list are on the device.
func DeviceNegatives(device, list, stream int64) error {
	r, w, err := negativesAt(list)
	if err != nil {
		return err
	}
	if err := aligned(w[negativesBits]/8, "out", w[negativesOut]); err != nil {
		return err
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Negatives(&cuda.Negatives{
		Request: r, Alias: gpu.Address(w[negativesAlias]), Places: gpu.Address(w[negativesPlaces]),
		Out: gpu.Address(w[negativesOut]), OutBits: int(w[negativesBits]),
	}, s))
}
