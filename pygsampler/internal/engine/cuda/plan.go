package cuda

import (
	"strings"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
)

// Plan says how samplers of one kind sample batches on a device. It is immutable, a pointer, and
// serves any number of flights at once. A flight uses it for allocations, for launches, and for the
// meaning of its own statuses; everything else (streams, uploads of seeds, memory for the batch,
// waiting, failures, the sizes of earlier batches) is the same for all plans.
type Plan interface {
	// Check returns an error for graphs and calls that the plan cannot serve.
	Check(g *Graph, c *Call) error
	// Words returns the number of words that describe a batch.
	Words() int
	// Shape returns the parameters that the size of a batch depends on, apart from the number of
	// its seeds.
	Shape() string
	// Guess estimates the needs of a batch of seeds seeds before any batch has been sampled.
	Guess(g *Graph, seeds int64) Needs
	// Fit allocates the needs of the flight in its workspace.
	Fit(f *Flight) error
	// Launch enqueues the batch on the flight's stream. At the end the launch reports: a status, a
	// detail, and with StatusOK the words that describe the batch.
	Launch(f *Flight) error
	// Arrived handles a status that is specific to the plan: by an error, or by larger Needs with
	// which the batch is launched again.
	Arrived(f *Flight, status, detail int64) (again bool, err error)
	// Used returns the needs of the completed batch, plus a margin.
	Used(f *Flight) Needs
}

// Joint is a plan that can sample several batches in one launch.
type Joint interface {
	Plan
	// Alike returns the number of flights, from the first on, that one launch should sample.
	Alike(flights []*Flight) int
	// LaunchMany enqueues all of them, like Launch, on the stream of the first.
	LaunchMany(flights []*Flight) error
}

// Needs are the largest sizes of batches of a shape, plus a margin. Sizes that a plan does not use
// stay zero.
type Needs struct {
	Out         uint64 // bytes of the batch
	Rows, Edges int64  // of a hop
	Ranks       int64  // seeds and edges of all hops
	Work        uint64 // bytes that a program works in
	NoBins      bool   // some node comes too often
	Arrived     bool   // some batch did; else Rows and Edges are guesses
}

// with is the larger of both in each.
func (n Needs) with(o Needs) Needs {
	return Needs{
		Out: max(n.Out, o.Out), Rows: max(n.Rows, o.Rows), Edges: max(n.Edges, o.Edges),
		Ranks: max(n.Ranks, o.Ranks), Work: max(n.Work, o.Work), NoBins: n.NoBins || o.NoBins, Arrived: n.Arrived || o.Arrived,
	}
}

// Space is the part of a workspace that belongs to a plan and is reused between batches: device
// memory in addition to the graph and the output, which only ever grows. Its zero value holds
// nothing.
type Space interface {
	// Forget is called after a launch that failed: data that launches leave for the next ones may
	// be wrong.
	Forget()
	// Free releases all memory once the present work of the stream is complete.
	Free(gpu.Stream) error
}

// SpaceOf returns the workspace's space of a type, which it creates at the first call.
func SpaceOf[S any, P interface {
	*S
	Space
}](w *Workspace) P {
	for _, s := range w.spaces {
		if p, ok := s.(P); ok {
			return p
		}
	}
	p := P(new(S))
	w.spaces = append(w.spaces, p)
	return p
}

// Call returns the call that the flight samples, with its seeds on the device.
func (f *Flight) Call() *Call { return &f.call }

// Graph returns the graph that the flight samples.
func (f *Flight) Graph() *Graph { return f.graph }

// Space returns the flight's workspace.
func (f *Flight) Space() *Workspace { return f.space }

// Needs returns the needs of the flight, which its plan may change.
func (f *Flight) Needs() *Needs { return &f.need }

// Engine returns the engine of the device.
func (f *Flight) Engine() *Engine { return f.engine }

// Stream returns the stream of the flight's launches.
func (f *Flight) Stream() gpu.Stream { return f.stream }

// Header returns the words that describe the batch.
func (f *Flight) Header() []int64 { return f.batch.Header }

// Report returns the address that a launch reports to, in memory that host and device share: the
// status, which is written last, the detail, and the words.
func (f *Flight) Report() gpu.Address { return f.space.report.Address }

// ReportWords returns the words of the report, which a launch may be writing.
func (f *Flight) ReportWords() []int64 { return f.space.words() }

// Meeting returns the address of the counter of blocks that have arrived at a barrier. The lowest
// bad seed is BadSeedAt bytes after it, and the slots for exchanges of sums begin at SlotsAt.
func (f *Flight) Meeting() gpu.Address { return f.space.meeting.Address }

// Excluded returns the address of the excluded CSC positions, in ascending order.
func (f *Flight) Excluded() gpu.Address { return f.space.excluded.Address }

// CompiledOf returns a kernel of a program, which is compiled at the first call.
func CompiledOf[Args any](e *Engine, p compiler.Program, name string) (k gpu.Kernel[Args], err error) {
	m, err := e.loaded(strings.Join(append(p.Options, p.Name, p.Source), "\x00"), func(major, minor int) (compiler.Image, error) {
		return compiler.Default.Compile(p, major, minor)
	})
	if err != nil {
		return k, err
	}
	return gpu.KernelOf[Args](m, name)
}

// Cached returns the value that load returns for an engine under a key; load runs once, and after a
// failure the next call tries again. Plans cache their kernels with it.
func Cached[T any](e *Engine, key string, load func(*Engine) (*T, error)) (*T, error) {
	e.keeping.Lock()
	k := e.kept[key]
	if k == nil {
		k = new(kept)
		e.kept[key] = k
	}
	e.keeping.Unlock()
	// To load takes milliseconds, or seconds where code is compiled: others go on.
	k.Lock()
	defer k.Unlock()
	if k.made != nil {
		return k.made.(*T), nil
	}
	made, err := load(e)
	if err == nil {
		k.made = made
	}
	return made, err
}

// kept is a value that is computed once.
type kept struct {
	sync.Mutex
	made any
}
