package pygsampler

import (
	"math"

	"github.com/pygsampler/pygsampler/pygsampler/internal/family"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/times"
)

// StartTimes begins to put the rows of a graph into the order of time: times are at an address, one for
// each edge id or each vertex, and must stay until the job has ended. name is theirs, for errors.
func StartTimes(g *Graph, name, dtype string, address, length int64, byVertex bool) (*DerivedJob, error) {
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
	if c.Sorted == 0 || c.NumSeeds < 0 {
		return nil, Errorf(KindValue, "seed_time: expected the rows by time and a length >= 0, got %#x and %d", c.Sorted, c.NumSeeds)
	}
	m := memory.FromAddress(c.Sorted)
	words := memory.At[int64](m, 0, times.TimesWords)
	given := &family.Times{Rows: times.Rows{
		Edges:    memory.At[int64](m, words[times.TimesKeys], words[times.TimesNumEdges]),
		Of:       memory.At[int64](m, words[times.TimesGiven], words[times.TimesNumGiven]),
		ByVertex: c.ByVertex, Float: words[times.TimesFloat] != 0,
	}}
	if int64(len(given.Edges)) != g.csc.NumEdges() {
		return nil, Errorf(KindValue, "graph: expected one of %d edges, got %d", len(given.Edges), g.csc.NumEdges())
	}
	var err error
	if given.Seeds, err = seedKeys(c.SeedTimes, c.NumSeeds, given.Float); err != nil {
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
