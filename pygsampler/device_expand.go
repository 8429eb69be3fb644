package pygsampler

import (
	"errors"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// mostExpansions bounds what is expanded by one call.
const mostExpansions = 1 << 10

// DeviceExpand enqueues the expansion of blocks of batches into edge lists, as cuda.Expansion
// describes. The address list holds 5 integers for each expansion: the address of the words that
// describe the batch, on the host; the address of the batch; the address of the result; its bits; 1
// to write sources, too.
func DeviceExpand(device, count, list, stream int64) error {
	if list == 0 || count < 1 || count > mostExpansions {
		return Errorf(KindValue, "list: expected 1 to %d expansions at an address, got %d at %#x", mostExpansions, count, list)
	}
	all := make([]cuda.Expansion, count)
	for i, w := range memory.View[[5]int64](list, count) {
		x, err := expansion(w[0], w[1], w[3], w[4] != 0)
		if err != nil {
			return err
		}
		if w[2] == 0 && x.Bytes() > 0 {
			return Errorf(KindValue, "out: expected an address for %d bytes, got 0", x.Bytes())
		}
		x.Out = gpu.Address(w[2])
		if all[i] = x; x.Words[batch.WordIDBits] != all[0].Words[batch.WordIDBits] {
			return Errorf(KindValue, "list: expected ids of %d bits, as those before, got %d", all[0].Words[batch.WordIDBits], x.Words[batch.WordIDBits])
		}
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Expand(all, s))
}

// expansion checks that the words belong to a batch.
func expansion(words, data, bits int64, both bool) (x cuda.Expansion, err error) {
	if words == 0 || data == 0 {
		return x, Errorf(KindValue, "batch: expected addresses of its words and of itself, got %#x and %#x", words, data)
	}
	x = cuda.Expansion{Words: memory.View[int64](words, batch.FixedWords), Data: gpu.Address(data), Bits: int(bits), Both: both}
	l, err := homogeneous(x.Words)
	if err != nil {
		return x, err
	}
	if bits != 64 && bits != x.Words[batch.WordIDBits] {
		return x, Errorf(KindValue, "bits: expected 64 or the ids' %d, got %d", x.Words[batch.WordIDBits], bits)
	}
	x.Words = memory.View[int64](words, int64(l.Words()))
	return x, nil
}

// homogeneous returns the layout of a batch's blocks from its first words, or an error if the batch
// is not of a homogeneous graph.
func homogeneous(words []int64) (batch.Layout, error) {
	l, is := batch.LayoutOf(words)
	if !is || l.Hops < 0 || l.Hops > cuda.MostHops || l.Types != 1 || l.Relations != 1 {
		return l, Errorf(KindValue, "batch: expected the words of a homogeneous graph's batch, got signature %#x, %d hops and %d types",
			words[batch.WordSignature], l.Hops, l.Types)
	}
	return batch.Homogeneous(l.Hops), nil
}

// DeviceDestinations returns the address of a memory with the destinations of the edges of all
// blocks of a batch on a device, outermost first, in the width of its ids. It is computed after the
// present work of the stream, and is complete.
func DeviceDestinations(mem, stream int64) (int64, error) {
	if mem == 0 {
		return 0, Errorf(KindValue, "batch: expected a memory, got 0")
	}
	m := memory.FromAddress(mem)
	header := m.Header(batch.FixedWords)
	if m.Device() < 0 {
		return 0, Errorf(KindValue, "batch: expected one on a CUDA device, got one on the CPU")
	}
	l, err := homogeneous(header)
	if err != nil {
		return 0, err
	}
	x := cuda.Expansion{
		Words: m.Header(int64(l.Words())), Data: gpu.Address(uintptr(m.Pointer())), Bits: int(header[batch.WordIDBits]),
	}
	e, s, out, err := block(int64(m.Device()), int64(x.Bytes()), stream)
	if err != nil {
		return 0, err
	}
	x.Out = out.Address
	err = errors.Join(e.Expand([]cuda.Expansion{x}, s), s.Synchronize())
	var owned memory.Memory
	if err == nil {
		owned, err = memory.FromDevice(m.Device(), &out, nil)
	}
	if err != nil {
		return 0, errors.Join(onDevice(err), out.Free(s))
	}
	return owned.Address(), nil
}
