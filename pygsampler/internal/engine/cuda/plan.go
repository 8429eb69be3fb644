package cuda

import (
	"strings"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/compiler"
)

// Plan is how samplers of one kind make batches on a device. It is immutable, a pointer, and
// serves any number of flights at once. A flight asks it for room, for launches, and for what a
// report of its own says; all else (streams, seeds on their way, memory for the batch,
// waiting, failures, what batches have needed so far) is the same for all plans.
type Plan interface {
	// Check refuses graphs and calls that the plan cannot serve.
	Check(g *Graph, c *Call) error
	// Words is how many words describe a batch.
	Words() int
	// Shape is what the size of a batch depends on beside the number of its seeds.
	Shape() string
	// Guess is what a batch of so many seeds needs while nothing is known.
	Guess(g *Graph, seeds int64) Needs
	// Fit makes room in the flight's workspace, for what the flight needs.
	Fit(f *Flight) error
	// Launch puts the batch into the flight's stream. In the end it reports: a status, a
	// detail, and with statusOK the words that describe the batch.
	Launch(f *Flight) error
	// Arrived acts upon a status that is the plan's own: by an error, or by other Needs
	// with which the batch is launched again.
	Arrived(f *Flight, status, detail int64) (again bool, err error)
	// Used is what the batch that has arrived needed, and some more.
	Used(f *Flight) Needs
}

// Joint is a plan several batches of which can be one launch.
type Joint interface {
	Plan
	// Alike is how many of the flights, from the first on, one launch should make.
	Alike(flights []*Flight) int
	// LaunchMany is Launch for all of them, in the stream of the first.
	LaunchMany(flights []*Flight) error
}

// Needs are the largest sizes that batches of a shape had, and some more. What a plan has
// no use for stays zero.
type Needs struct {
	Out         uint64 // bytes of the batch
	Rows, Edges int64  // of a hop
	Ranks       int64  // seeds and edges of all hops
	Work        uint64 // bytes that a program works in
	NoBins      bool   // some vertex comes too often
	Arrived     bool   // some batch did; else Rows and Edges are guesses
}

// with is the larger of both in each.
func (n Needs) with(o Needs) Needs {
	return Needs{
		Out: max(n.Out, o.Out), Rows: max(n.Rows, o.Rows), Edges: max(n.Edges, o.Edges),
		Ranks: max(n.Ranks, o.Ranks), Work: max(n.Work, o.Work), NoBins: n.NoBins || o.NoBins, Arrived: n.Arrived || o.Arrived,
	}
}

// Space is what a plan keeps in a workspace between batches: device memory beside the
// graph and the output, which only ever grows. Its zero value holds nothing.
type Space interface {
	// Forget is told that a launch did not end as it should: what launches leave behind
	// for the next ones may be wrong.
	Forget()
	// Free gives everything back once what is in the stream has been done.
	Free(gpu.Stream) error
}

// SpaceOf is the workspace's space of a type, made when it is first asked for.
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

// Call is what the flight samples, its seeds on the device.
func (f *Flight) Call() *Call { return &f.call }

// Engine is the device's.
func (f *Flight) Engine() *Engine { return f.engine }

// Stream is where the flight's launches go.
func (f *Flight) Stream() gpu.Stream { return f.stream }

// Header is the words that the batch was described by.
func (f *Flight) Header() []int64 { return f.batch.Header }

// Report is where a launch reports, in memory that host and device share: the status,
// which comes last, the detail, and the words.
func (f *Flight) Report() gpu.Address { return f.space.report.Address }

// CompiledOf is a kernel of a program that is compiled when it is first asked for.
func CompiledOf[Args any](e *Engine, p compiler.Program, name string) (k gpu.Kernel[Args], err error) {
	m, err := e.loaded(strings.Join(append(p.Options, p.Name, p.Source), "\x00"), func(major, minor int) (compiler.Image, error) {
		return compiler.Default.Compile(p, major, minor)
	})
	if err != nil {
		return k, err
	}
	return gpu.KernelOf[Args](m, name)
}

// Cached is what load makes of an engine under a key, once; after a failure the next call
// tries again. Plans keep their kernels so.
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

// kept is something that is made once.
type kept struct {
	sync.Mutex
	made any
}
