package cuda

import (
	"fmt"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// Call describes a batch to sample.
type Call struct {
	Plan     Plan
	Batch    request.Batch // its seeds: on the host, or empty when they are on the device
	Seeds    gpu.Address   // on the device: NumSeeds of SeedBits
	NumSeeds int64
	SeedBits int
	Exclude  []int64     // CSC positions to sample around, ascending
	Stream   uintptr     // a CUstream; what is in it comes before the batch
	Own      bool        // run in a stream of the engine's, after what is in Stream; else in Stream itself
	Out      gpu.Address // where the caller wants the batch; 0: in memory of the engine's
	OutBytes uint64
	Grid     int // blocks; 0 for a good number. The batch does not depend on it
	Share    int // the maximal thousandths of the device that a launch takes; 0: all, like Grid
}

// WholeShare is a Share without a bound.
const WholeShare = 1000

// Within bounds the blocks of a launch, resident of which the device runs at a time.
func (c *Call) Within(blocks, resident int) int {
	if c.Share == 0 {
		return blocks
	}
	return max(min(blocks, resident*c.Share/WholeShare), 1)
}

// Batch is a sampled batch in device memory, laid out as internal/batch says;
// Header is a copy of its words on the host.
type Batch struct {
	Memory gpu.Memory // the caller's to free in Stream; none where the caller gave Out
	Stream gpu.Stream // the engine's; good as long as the engine
	Header []int64
	Needed uint64 // > 0: Out was too small and there is no batch; so many bytes would do
}

// check makes the seeds' place uniform, and refuses what no kernel can do.
func (c *Call) check(g *Graph) error {
	if c.Seeds == 0 {
		c.NumSeeds, c.SeedBits = c.Batch.Seeds.Len(), c.Batch.Seeds.Bits
	}
	if c.NumSeeds >= 1<<31 {
		return fmt.Errorf("%w: seeds: expected fewer than 2^31 on a GPU, got %d", request.ErrOverflow, c.NumSeeds)
	}
	return c.Plan.Check(g, c)
}

// Random is the words of the batch's random numbers, as every kernel takes them.
func (c *Call) Random() [4]uint32 {
	return rng.NewStream(c.Batch.Seed, c.Batch.Epoch, c.Batch.Number, 0, 0).Words()
}

// Word is a truth as kernels take it.
func Word(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

// Download copies a batch to C memory on the host, with the same layout as on the device and with
// the header, which the device does not hold.
func (b Batch) Download(stream gpu.Stream) (memory.Memory, error) {
	size := b.Header[batch.WordSize]
	m, err := memory.New(size)
	if err != nil {
		return m, err
	}
	m.SetSize(size)
	if err := stream.Download(m.Pointer(), b.Memory.Address, uint64(size)); err != nil {
		m.Release()
		return memory.Memory{}, err
	}
	copy(unsafe.Slice((*int64)(m.Pointer()), len(b.Header)), b.Header)
	return m, nil
}
