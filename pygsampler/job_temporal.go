package pygsampler

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/times"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/temporal"
)

// StartTimes begins to put the rows of a graph into the order of time: times are at an address, one for
// each edge id or each vertex, and must stay until the job has ended. name is theirs, for errors.
func StartTimes(g *Graph, name, dtype string, address, length int64, byVertex bool) (*DeriveJob, error) {
	if length < 0 {
		return nil, Errorf(KindValue, "%s: expected a length >= 0, got %d", name, length)
	}
	s := &times.Sort{Graph: &g.csc, Name: name, ByVertex: byVertex, Len: length}
	switch dtype {
	case "int32", "int64":
		s.Int = types[dtype](address, length)
	case "float32", "float64":
		s.Float = readers[dtype](address, length)
	default:
		return nil, Errorf(KindType, "%s: expected times of int32, int64, float32 or float64, got %s", name, dtype)
	}
	return derive(g, s)
}

// TimedCall is a call whose seeds have times: SeedTimes is the address of one for each, float64 where Sorted,
// the memory that StartTimes has made, has such, else int64.
type TimedCall struct {
	Call
	Sorted    int64
	SeedTimes int64
	ByVertex  bool
}

// SubmitTimed is Submit, and with prompt it is Sample, for a graph whose rows are those of a sorted one.
func SubmitTimed(g *Graph, p *Sampler, c TimedCall, prompt bool) (*Job, error) {
	given, err := c.times(g.csc.NumEdges())
	if err != nil {
		return nil, err
	}
	// Nothing that panics stands between entering the graph and the job that leaves it.
	t, err := newSampling(g, p, c.Call)
	if err != nil {
		return nil, err
	}
	j := t.job()
	t.work.Times = given
	if prompt {
		return promptly(j, &t.work, t.prompt()), nil
	}
	engine.submit(j)
	return j, nil
}

// DeviceSubmitTimed puts a batch whose seeds have times into a stream of the device that the graph is on.
func DeviceSubmitTimed(g *Graph, p *Sampler, c DeviceCall, timed TimedCall) (*DeviceJob, error) {
	if g.device == nil {
		return nil, Errorf(KindValue, "graph: expected one on a CUDA device, got one on the CPU")
	}
	plan, is := p.Plan.(*temporal.Plan)
	if !is {
		return nil, Errorf(KindValue, "sampler: expected one of edges with times, got one of another family")
	}
	timed.Call = c.Call
	given, err := timed.times(g.device.graph.Edges)
	if err != nil {
		return nil, err
	}
	call, err := g.device.call(p, c)
	if err != nil {
		return nil, err
	}
	j := newDeviceJob(g.device, c.Out, g)
	if err := g.enterDevice([]*DeviceJob{j}); err != nil {
		return nil, err
	}
	// Whatever happens: Close and Shutdown wait for jobs that were let in.
	defer func() {
		if err != nil {
			j.ended, j.err = true, err
			j.leave()
		}
		close(j.started)
	}()
	keys, err := g.device.graph.Keys(given.Of[0].Edges)
	if err == nil {
		call.Plan = plan.Device(keys, given, len(call.Exclude))
		j.flight, err = g.device.engine.Start(g.device.graph.Alone(), call)
	}
	if err = onDevice(err); err != nil {
		return nil, err
	}
	return j, nil
}

// times are those of a graph of so many edges, and of the seeds.
func (c *TimedCall) times(edges int64) (*plan.Times, error) {
	if c.Sorted == 0 || c.NumSeeds < 0 {
		return nil, Errorf(KindValue, "seed_time: expected the rows by time and a length >= 0, got %#x and %d", c.Sorted, c.NumSeeds)
	}
	rows, err := sortedRows(c.Sorted, edges, c.ByVertex)
	if err != nil {
		return nil, err
	}
	given := &plan.Times{Of: []*times.Rows{rows}}
	given.Seeds, err = seedKeys(c.SeedTimes, c.NumSeeds, rows.Float)
	return given, err
}

// sortedRows is what StartTimes has made, of a graph of so many edges.
func sortedRows(address, edges int64, byVertex bool) (*times.Rows, error) {
	m := memory.FromAddress(address)
	words := memory.At[int64](m, 0, times.TimesWords)
	rows := &times.Rows{
		Edges:    memory.At[int64](m, words[times.TimesKeys], words[times.TimesNumEdges]),
		Of:       memory.At[int64](m, words[times.TimesGiven], words[times.TimesNumGiven]),
		ByVertex: byVertex, Float: words[times.TimesFloat] != 0,
	}
	if int64(len(rows.Edges)) != edges {
		return nil, Errorf(KindValue, "graph: expected one of %d edges, got %d", len(rows.Edges), edges)
	}
	return rows, nil
}

// seedKeys are the keys of times.
func seedKeys(address, count int64, float bool) ([]int64, error) {
	if !float {
		return append([]int64(nil), memory.View[int64](address, count)...), nil
	}
	keys := make([]int64, count)
	for i, t := range memory.View[float64](address, count) {
		if math.IsNaN(t) {
			return nil, Errorf(KindValue, "seed_time[%d]: expected a time, got nan", i)
		}
		keys[i] = times.Key(t)
	}
	return keys, nil
}
