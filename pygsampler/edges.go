package pygsampler

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/edges"
)

// edgesPlan is the request from Python.
type edgesPlan struct {
	Source     []byte       `json:"source"` // paths need not be UTF-8: base64
	Format     string       `json:"format"`
	Src        edges.Column `json:"src"`
	Dst        edges.Column `json:"dst"`
	NumNodes   int64        `json:"num_nodes"`
	Undirected bool         `json:"undirected"`
	Numbering  string       `json:"numbering"` // "gaps", "never" or "always"
	Bits       int          `json:"bits"`
	Target     []byte       `json:"target"` // a file's path; empty for memory
	Data       []edgesData  `json:"data"`
}

// edgesData is a column of the file that becomes an array over the edges.
type edgesData struct {
	Name   string       `json:"name"` // of the array
	Column edges.Column `json:"column"`
	Words  bool         `json:"words"` // it has names; EdgesState says which
}

// EdgesEnds finds the positions of the source and target columns among the columns of a table.
// about is JSON with the names of the columns and the arguments src and dst.
func EdgesEnds(about string) (ends [2]int, err error) {
	var table struct {
		Path     string   `json:"path"`
		Names    []string `json:"names"`
		Src, Dst edges.Column
	}
	if err := json.Unmarshal([]byte(about), &table); err != nil {
		return ends, Errorf(KindValue, "table: expected JSON, got %v", err)
	}
	ends[0], ends[1], err = edges.EndpointColumns(table.Path, table.Names, table.Src, table.Dst)
	return ends, err
}

// EdgesJob builds a graph from a file of edges. It ends exactly once, with a result or an error.
type EdgesJob struct {
	plan   edgesPlan
	meter  edges.Meter
	memory edges.Memory
	file   edges.File
	words  map[string]*edges.Words // of the columns of names
	done   chan struct{}
	err    error
}

// reading holds every EdgesJob that is not finished, so that Shutdown can end them.
var reading struct {
	sync.Mutex
	jobs map[*EdgesJob]struct{}
}

// keepInFile bounds the edges that stay in memory while a file is written, to spare
// reading the source again.
const keepInFile = 256 << 20

// StartEdges starts to read the file that the JSON names.
func StartEdges(plan string) (*EdgesJob, error) {
	j := &EdgesJob{done: make(chan struct{}), words: map[string]*edges.Words{}}
	if err := json.Unmarshal([]byte(plan), &j.plan); err != nil {
		return nil, Errorf(KindValue, "plan: expected JSON, got %v", err)
	}
	if j.plan.Bits != 0 && j.plan.Bits != 32 && j.plan.Bits != 64 {
		return nil, Errorf(KindValue, "dtype: expected 32 or 64 bits, got %d", j.plan.Bits)
	}
	if j.plan.NumNodes < -1 || j.plan.Src.Index < 0 || j.plan.Dst.Index < 0 {
		return nil, Errorf(KindValue, "plan: expected sizes and columns >= 0, got %s", plan)
	}
	numbering, ok := map[string]edges.Numbering{"gaps": edges.IfGaps, "never": edges.Never, "always": edges.Always}[j.plan.Numbering]
	if !ok {
		return nil, Errorf(KindValue, "numbering: expected gaps, never or always, got %q", j.plan.Numbering)
	}
	j.file.Path = string(j.plan.Target)
	reading.Lock()
	if reading.jobs == nil {
		reading.jobs = make(map[*EdgesJob]struct{})
	}
	reading.jobs[j] = struct{}{}
	reading.Unlock()
	go j.run(numbering)
	return j, nil
}

func (j *EdgesJob) run(numbering edges.Numbering) {
	defer func() {
		if p := recover(); p != nil {
			j.err = fmt.Errorf("%v", p)
		}
		if errors.Is(j.err, edges.ErrStopped) {
			j.err = Errorf(KindInterrupt, "edges: expected to read on, got a cancelled job")
		}
		reading.Lock()
		delete(reading.jobs, j)
		reading.Unlock()
		close(j.done)
	}()
	source, err := edges.Open(string(j.plan.Source), j.plan.Format, j.plan.Src, j.plan.Dst)
	if err != nil {
		j.err = err
		return
	}
	plan := edges.Plan{
		NumNodes: j.plan.NumNodes, Undirected: j.plan.Undirected, Numbering: numbering, Bits: j.plan.Bits,
	}
	for _, d := range j.plan.Data {
		table, ok := source.(edges.Table)
		if !ok {
			j.err = Errorf(KindValue, "edge_data: expected none of a file of format %s, whose columns are not read", j.plan.Format)
			return
		}
		var values edges.Values
		if d.Words {
			words, err := table.Words(d.Name, d.Column)
			if err != nil {
				j.err = err
				return
			}
			j.words[d.Name], values = words, words.Values
		} else if values, err = table.Values(fmt.Sprintf("edge_data['%s']", d.Name), d.Column); err != nil {
			j.err = err
			return
		}
		plan.Data = append(plan.Data, edges.ArrayColumn{Name: d.Name, Values: values})
	}
	var target edges.Target = &j.file
	if len(j.plan.Target) == 0 {
		target, plan.Keep = &j.memory, edges.Available()/4
		// Memory has no better order to be written in.
		plan.Window = 1 << 62
	} else {
		plan.Keep = min(keepInFile, edges.Available()/4)
	}
	_, j.err = edges.Build(source, plan, target, &j.meter)
}

// EdgesState is the progress of a job.
type EdgesState struct {
	Done     int64       `json:"done"`
	Total    int64       `json:"total"`
	Finished bool        `json:"finished"`
	Shape    edges.Shape `json:"shape"` // zero until it is known
	// Words holds the distinct names in each column of names, by the array, once the job has ended.
	Words map[string][]string `json:"words"`
}

// Poll waits up to timeout milliseconds for the job's end.
func (j *EdgesJob) Poll(timeout int64) (EdgesState, error) {
	timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
	defer timer.Stop()
	s := EdgesState{}
	select {
	case <-j.done:
		s.Finished = true
	case <-timer.C:
	}
	s.Total = j.meter.Total.Load()
	s.Done = min(j.meter.Done.Load(), s.Total)
	if known := j.meter.Shape.Load(); known != nil {
		s.Shape = *known
	}
	if !s.Finished {
		return s, nil
	}
	s.Words = make(map[string][]string, len(j.words))
	for name, words := range j.words {
		s.Words[name] = words.List
	}
	return s, j.err
}

// Take returns the memory of the graph, whose reference the caller then owns, or 0 if the graph is
// in a file. It waits for the end of the job and may be called once.
func (j *EdgesJob) Take() (address int64, err error) {
	<-j.done
	if j.err != nil || len(j.plan.Target) > 0 {
		return 0, j.err
	}
	return j.memory.Block.Address(), nil
}

// Cancel ends the job and returns when it has closed its files. A result that was ready is dropped,
// except a file that already has its name. It must not be called after Take.
func (j *EdgesJob) Cancel() {
	j.stop()
	if j.err == nil && len(j.plan.Target) == 0 {
		j.memory.Block.Release()
	}
}

func (j *EdgesJob) stop() {
	j.meter.Stop.Store(true)
	// A file that is being synced ends at this, not at the meter.
	if j.file.Finishing() {
		j.file.Drop()
	}
	<-j.done
}

// endReading ends all jobs.
func endReading() {
	reading.Lock()
	jobs := make([]*EdgesJob, 0, len(reading.jobs))
	for j := range reading.jobs {
		jobs = append(jobs, j)
	}
	reading.Unlock()
	for _, j := range jobs {
		j.stop()
	}
}
