package cuda

import (
	"errors"
	"fmt"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// queueTags is how many tags the upper bits of a claim hold.
const queueTags = 1 << 24

// queueArgs mirrors Args in kernels/research/queue.cuh.
type queueArgs struct {
	Indptr, Indices, EdgeIDs, Seeds, Excluded          gpu.Address
	Claims, Counts, Arrived, Slots, Queue              gpu.Address
	Rows, Table, Keys, Found, Numbers, Order           gpu.Address
	Picked, PickedIDs, Kept, Out, Report               gpu.Address
	OutCapacity, TaskCapacity, FoundCapacity           uint64
	EdgeCapacity                                       uint64
	NumRows, NumNodes, NumEdges, NumSeeds, NumExcluded uint64
	IndptrBits, EdgeIDBits, OutEdgeBits, SeedBits      uint32
	Hops, Replace, Ordered, Widest, Fewest, Fetch      uint32
	Tag, Key0, Key1, Batch0, Batch1                    uint32
	Fanouts                                            [cuda.MostHops]int64
}

// Queue is mode "queue": all hops in one cooperative launch without barriers between them.
type Queue struct {
	cuda.Hops
	Unordered bool  // vertices may be numbered as they arrive
	FetchSize int64 // tasks that a block asks for at a time, up to MostFetched; 0: by the backlog
}

// MostFetched is how many tasks a block asks for at most.
const MostFetched = queueTile

// queueKernels are the kernels of mode "queue".
type queueKernels struct {
	of   [2]gpu.Kernel[queueArgs] // graphs of int32 and of int64 ids
	most int                      // blocks that run at a time, of either and whatever the fanouts
}

func loadQueue(e *cuda.Engine) (k *queueKernels, err error) {
	const shared = queueTile * (cuda.Direct | 1) * 4
	k = new(queueKernels)
	for i, name := range []string{"queue32", "queue64"} {
		if k.of[i], err = cuda.KernelOf[queueArgs](e, "queue", name, shared); err != nil {
			return nil, err
		}
		resident, err := k.of[i].Resident(queueThreads, shared)
		if err != nil {
			return nil, err
		}
		if k.most == 0 || resident < k.most {
			k.most = resident
		}
	}
	return k, nil
}

// queueSpace is what a workspace holds for mode "queue"; the zero value holds
// nothing. Between launches counts and queue are as clear left them.
type queueSpace struct {
	claims  gpu.Memory // two words a vertex
	counts  gpu.Memory // the queue's counters, the meetings' counter, the slots
	queue   gpu.Memory // a word a task
	scratch gpu.Memory // all else, laid out anew for each launch
	nextTag uint32     // 0: claims must be cleared
	dirty   bool       // a launch was lost

	most  queueSizes // what launches have room for
	limit int64      // > 0: so few tasks in the next launch, for tests
}

// queueSizes are numbers of tasks, of vertices and of edges of a batch.
type queueSizes struct{ tasks, found, edges int64 }

// The places in counts.
const (
	queueArrivedAt = 64
	queueSlotsAt   = 128
	queueMostEdges = cuda.MostEdges - 1
)

// fit makes room for the batch of a flight, of so many hops.
func (q *queueSpace) fit(f *cuda.Flight, hops int64) error {
	w, nodes, widths := f.Space(), max(f.Graph().Nodes, 1), f.Graph().Widths()
	// need.Out is about all edges of the batch, need.Rows and need.Edges are of its
	// outermost hop.
	guess := queueSizes{
		tasks: min(f.Needs().Rows, nodes) * max(hops, 1), found: min(f.Needs().Rows+f.Needs().Edges, nodes),
		edges: int64(f.Needs().Out) / (widths.ID + widths.EdgeID),
	}
	q.most.tasks = max(q.most.tasks, guess.tasks, f.Call().NumSeeds*hops, 1<<12)
	q.most.found = max(q.most.found, guess.found, f.Call().NumSeeds, 1<<12)
	q.most.edges = max(q.most.edges, min(guess.edges, queueMostEdges), 1<<13)
	if q.counts.Size == 0 {
		var err error
		if q.counts, err = f.Engine().MemoryPool().Alloc(f.Stream(), queueSlotsAt+2*(cuda.MostHops+1)*4*cuda.MostBlocks); err != nil {
			return err
		}
		q.dirty = true
	}
	if bytes := uint64(nodes) * 8; q.claims.Size < bytes {
		err := q.claims.Free(f.Stream())
		if err == nil {
			q.claims, err = f.Engine().MemoryPool().Alloc(f.Stream(), bytes)
		}
		if err != nil {
			return err
		}
		q.nextTag = 0
	}
	tasks, found := q.room(f.Graph(), hops)
	had := q.queue.Size
	if err := w.Grow(&q.queue, uint64(tasks)*8, f.Stream()); err != nil {
		return err
	}
	q.dirty = q.dirty || q.queue.Size != had
	if q.dirty {
		if err := q.clear(f.Stream()); err != nil {
			return err
		}
	}
	if q.nextTag == 0 {
		if err := f.Stream().Fill32(q.claims.Address, ^uint32(0), q.claims.Size/4); err != nil {
			return err
		}
		q.nextTag = queueTags - 2 // all ones stand for no tag
	}
	args := queueArgs{}
	return w.Grow(&q.scratch, q.layOut(&args, tasks, found, f.Call().NumSeeds, hops, widths), f.Stream())
}

// room is what there is room for and a batch of the graph can use.
func (q *queueSpace) room(g *cuda.Graph, hops int64) (tasks, found int64) {
	nodes := max(g.Nodes, 1)
	tasks, found = min(q.most.tasks, queueMostEdges), min(q.most.found, nodes, queueMostEdges)
	if hops > 0 && nodes <= queueMostEdges/hops {
		tasks = min(tasks, nodes*hops)
	}
	return tasks, found
}

// layOut places the arrays of a launch in scratch, and returns their bytes.
func (q *queueSpace) layOut(args *queueArgs, tasks, found, seeds, hops int64, widths batch.Widths) uint64 {
	args.TaskCapacity, args.FoundCapacity, args.EdgeCapacity = uint64(tasks), uint64(found), uint64(q.most.edges)
	_, picked, pickedIDs := widths.Block(0, q.most.edges)
	used := uint64(0)
	for _, part := range []struct {
		at    *gpu.Address
		bytes int64
	}{
		{&args.Rows, tasks * 8}, {&args.Table, found * hops * 8}, {&args.Keys, found * 8}, {&args.Found, widths.Nodes(found)},
		{&args.Numbers, found * 4}, {&args.Order, found * 4}, {&args.Kept, widths.Nodes(seeds)},
		{&args.Picked, picked}, {&args.PickedIDs, pickedIDs},
	} {
		*part.at = q.scratch.Address + gpu.Address(used)
		used += (uint64(part.bytes) + 255) &^ 255
	}
	return used
}

// clear makes counts and queue what a launch expects and leaves behind.
func (q *queueSpace) clear(s gpu.Stream) error {
	err := errors.Join(
		s.Fill32(q.counts.Address, 0, q.counts.Size/4),
		s.Fill32(q.counts.Address+8*queueLowestBad, ^uint32(0), 2),
		s.Fill32(q.queue.Address, 0, q.queue.Size/4),
	)
	q.dirty = err != nil
	return err
}

// Forget has counts and queue cleared.
func (q *queueSpace) Forget() { q.dirty = true }

func (q *queueSpace) Free(s gpu.Stream) error {
	return errors.Join(q.claims.Free(s), q.counts.Free(s), q.queue.Free(s), q.scratch.Free(s))
}

// Fit makes room for tasks, and for what is found.
func (p *Queue) Fit(f *cuda.Flight) error {
	return cuda.SpaceOf[queueSpace](f.Space()).fit(f, int64(len(p.Fanouts)))
}

// Launch puts that launch into the stream.
func (p *Queue) Launch(f *cuda.Flight) error {
	c, g, q := f.Call(), f.Graph(), cuda.SpaceOf[queueSpace](f.Space())
	k, err := cuda.Cached(f.Engine(), "queue", loadQueue)
	if err != nil {
		return err
	}
	hops := int64(len(p.Fanouts))
	out, bytes := f.Region()
	random := c.Random()
	args := queueArgs{
		Indptr: g.Indptr, Indices: g.Indices, EdgeIDs: g.EdgeIDs, Seeds: c.Seeds, Excluded: f.Excluded(),
		Claims: q.claims.Address, Counts: q.counts.Address, Arrived: q.counts.Address + queueArrivedAt,
		Slots: q.counts.Address + queueSlotsAt, Queue: q.queue.Address,
		Out: out, Report: f.Report(), OutCapacity: bytes,
		NumRows: uint64(g.Rows), NumNodes: uint64(g.Nodes), NumEdges: uint64(g.Edges),
		NumSeeds: uint64(c.NumSeeds), NumExcluded: uint64(len(c.Exclude)),
		IndptrBits: uint32(g.IndptrBits), EdgeIDBits: g.StoredEdgeIDBits(), OutEdgeBits: uint32(g.SampleBits()),
		SeedBits: uint32(c.SeedBits), Hops: uint32(hops), Replace: cuda.Word(p.Replace), Ordered: cuda.Word(!p.Unordered), Fewest: fewest(1), Fetch: uint32(p.FetchSize),
		Tag: q.nextTag, Key0: random[0], Key1: random[1], Batch0: random[2], Batch1: random[3],
	}
	q.nextTag--
	tasks, found := q.room(g, hops)
	if q.limit > 0 {
		tasks, q.limit = min(tasks, q.limit), 0
	}
	q.layOut(&args, tasks, found, c.NumSeeds, hops, g.Widths())
	for i, fanout := range p.Fanouts {
		args.Fanouts[i] = fanout
		if fanout <= cuda.Direct {
			args.Widest = max(args.Widest, uint32(max(fanout, 0)))
		}
		args.Fewest = min(args.Fewest, fewest(fanout))
	}
	grid := f.Grid(2)
	if c.Grid == 0 {
		grid = c.Within(min(grid, k.most), k.most)
	}
	shape := gpu.Shape{
		Grid: [3]uint32{uint32(grid)}, Block: [3]uint32{queueThreads}, Shared: queueTile * (args.Widest | 1) * 4,
		Cooperative: true,
	}
	return k.of[g.Wide()].Launch(f.Stream(), shape, &args)
}

// fewest is how many tasks of a fanout give each thread of a block an edge: fewer
// take a block as long. All edges of a row may be many.
func fewest(fanout int64) uint32 {
	if fanout < 0 {
		return 2
	}
	return uint32(min(max(queueThreads/max(fanout, 1), 1), 32))
}

// Arrived makes more room after a launch that ran out of it.
func (p *Queue) Arrived(f *cuda.Flight, status, detail int64) (again bool, err error) {
	if status != statusQueueFull {
		return p.Hops.Arrived(f, status, detail)
	}
	q, full := cuda.SpaceOf[queueSpace](f.Space()), f.ReportWords()[cuda.ReportHeader:]
	if needed := uint64(detail); needed > 0 {
		f.Needs().Out = needed
		if f.Call().Out != 0 {
			f.OutTooSmall(needed)
			return false, nil
		}
		return true, nil
	}
	tasks, found, edges := full[queueFullTasks], full[queueFullFound], full[queueFullEdges]
	if edges > queueMostEdges {
		return false, fmt.Errorf("%w: a batch of %d edges or more: expected fewer than 2^31 on a GPU", request.ErrOverflow, edges)
	}
	// A half full buffer may be full next time, since the batch was not complete.
	grow := func(most *int64, got int64) {
		if got > *most/2 {
			*most = min(2*max(*most, got), queueMostEdges)
		}
	}
	grow(&q.most.tasks, tasks)
	grow(&q.most.found, found)
	grow(&q.most.edges, edges)
	return true, nil
}
