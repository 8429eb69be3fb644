package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// gatherPart mirrors GatherPart in kernels/features/gather.cu.
type gatherPart struct {
	IDs, Table, Cached, Slots, Out, Counts, Bad    gpu.Address
	Count, Rows                                    uint64
	Row, IDBits, Width, Group, Steps, Take, Blocks uint32
}

// gatherArgs mirrors GatherArgs.
type gatherArgs struct {
	Parts [gatherParts]gatherPart
}

// residentKernel is a kernel that gets no more blocks than the device runs at a time.
type residentKernel[A any] struct {
	gpu.Kernel[A]
	resident uint64 // blocks that the device runs at a time
}

// loadResident loads the kernel with the name of its file, for blocks of threads threads.
func loadResident[A any](e *Engine, name string, threads int) (*residentKernel[A], error) {
	k, err := KernelOf[A](e, name, name, 0)
	if err != nil {
		return nil, err
	}
	resident, err := k.Resident(threads, 0)
	return &residentKernel[A]{k, uint64(max(resident, 1))}, err
}

func loadGather(e *Engine) (*residentKernel[gatherArgs], error) {
	return loadResident[gatherArgs](e, "gather", gatherThreads)
}

// MostRow is the maximal number of bytes of a gathered row.
const MostRow = 1 << 26

// Gather describes rows of a table that are copied, as bytes, in the order of their ids. The device
// can address all memory: its own, a peer's, or page-locked host memory. None may be written to
// before the launch is done, except rows whose readers accept a mixture of old and new bytes. A row
// whose id is outside of the table becomes zeros. The zero value gathers nothing.
type Gather struct {
	IDs    gpu.Address // Count signed integers of Bits, 32 or 64, aligned to that
	Count  uint64
	Bits   int
	Table  gpu.Address // Rows rows of Row bytes, 1 to MostRow, without gaps
	Rows   uint64
	Row    uint64
	Cached gpu.Address // rows again, of which Slots says for each row of the table which it is, or -1
	Slots  gpu.Address // Rows integers of 32 bits; 0: nothing is cached
	Out    gpu.Address // Count rows without gaps
	Counts gpu.Address // 64 bits to which the number of rows is added that came from Cached; or 0
	Bad    gpu.Address // 64 bits that become at most the place of an id outside of the table; or 0
}

// part returns the parameters of a Gather on a device that runs resident blocks at a time.
func (g *Gather) part(resident uint64) gatherPart {
	p := gatherPart{
		IDs: g.IDs, Table: g.Table, Cached: g.Cached, Slots: g.Slots, Out: g.Out, Counts: g.Counts, Bad: g.Bad,
		Count: g.Count, Rows: g.Rows, Row: uint32(g.Row), IDBits: uint32(g.Bits),
	}
	places := uint64(g.Table|g.Cached) | g.Row
	width := lowest(places|uint64(g.Out), 16)
	vectors := g.Row / width
	p.Width = uint32(width)
	p.Group = uint32(bits.Len64(min(vectors, 32) - 1))
	p.Steps = 1
	if vectors > 32 {
		// Steps begin at lines, before the row by as much as its alignment leaves open.
		span := min(32*width, 128)
		before := (span - lowest(places, span)) / width
		p.Steps = uint32((before + vectors + 31) / 32)
	}
	const warps = gatherThreads / 32
	take, atOnce := uint64(32), uint64(32)>>p.Group
	for take > atOnce && g.Count/take < resident*warps {
		take /= 2
	}
	p.Take = uint32(take)
	p.Blocks = uint32(min((g.Count+warps*take-1)/(warps*take), resident))
	return p
}

// lowest is the greatest power of two that divides x, at most most, which is one too.
func lowest(x, most uint64) uint64 { return 1 << bits.TrailingZeros64(x|most) }

// blocksOf returns how many blocks of resident ones a kernel takes: with beside one for every second
// multiprocessor, to leave room for other work. Over a link of 55 GB/s rows of 200 bytes and more
// arrive as fast from 33 blocks as from all 660 that an H200 runs at a time, rows of 512 bytes 1 %
// slower from 66.
func (e *Engine) blocksOf(resident uint64, beside bool) uint64 {
	if !beside {
		return resident
	}
	return min(resident, uint64(max(e.context.Properties().Multiprocessors/2, 1)))
}

// Gather enqueues the copies, in as few launches as possible.
func (e *Engine) Gather(all []Gather, beside bool, s gpu.Stream) error {
	k, err := Cached(e, "gather", loadGather)
	if err != nil {
		return err
	}
	resident := e.blocksOf(k.resident, beside)
	var args gatherArgs
	count := 0
	for i := range all {
		if all[i].Count == 0 {
			continue
		}
		args.Parts[count] = all[i].part(resident)
		if count++; count == gatherParts {
			if err := launchGather(k, resident, &args, count, s); err != nil {
				return err
			}
			count = 0
		}
	}
	if count == 0 {
		return nil
	}
	return launchGather(k, resident, &args, count, s)
}

// launchGather launches the first parts once, with resident blocks, or one block per part if there
// are more parts.
func launchGather(k *residentKernel[gatherArgs], resident uint64, args *gatherArgs, count int, s gpu.Stream) error {
	blocks := share(args.Parts[:count], uint32(resident))
	return k.Launch(s, gpu.Shape{Grid: [3]uint32{blocks, uint32(count)}, Block: [3]uint32{gatherThreads}}, args)
}

// share gives each part as many blocks as it can use while all run at a time, and returns the
// largest share. Parallel parts overlap their reads from the device and from the host; in sequence,
// a slow one would delay the rest.
func share(parts []gatherPart, resident uint32) (most uint32) {
	each := max(resident/uint32(len(parts)), 1)
	used, large := uint32(0), uint32(0)
	for i := range parts {
		used += min(parts[i].Blocks, each)
		if parts[i].Blocks > each {
			large++
		}
	}
	for i := range parts {
		p := &parts[i]
		if p.Blocks > each {
			p.Blocks = min(p.Blocks, each+(max(resident, used)-used)/large)
		}
		most = max(most, p.Blocks)
	}
	return most
}
