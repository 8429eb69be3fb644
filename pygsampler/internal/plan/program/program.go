// Package program is the family of samplers that users write: the text of a program, checked and
// optimized, or the plan of another family if the program equals one of its samplers.
package program

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/neighbor"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/explain"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/layout"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/passes"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program/run"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Plan is a program as it runs.
type Plan struct {
	Program         *program.Program // after all optimization passes
	traced          *program.Program // before them
	steps           []passes.Step
	edges, vertices []string         // the arrays that it reads
	known           *neighbor.Plan   // what it was recognised as; nil: nothing
	poisson         *program.Poisson // likewise, of what has a kernel of its own
	onDevice        func() cuda.Plan
	excluding       func() (excluding, error)
}

// excluding is the program for batches that leave edges out.
type excluding struct {
	program  *program.Program
	onDevice cuda.Plan
}

// Parse returns the plan of a document: code is the program's text, one line per operator; weight
// names the values of the graph's matrix; passes lists the optimization passes to skip; and layouts
// holds choices that override the cost model.
func Parse(d *plan.Document) plan.Plan {
	code := d.Texts("code", program.MaxNodes+1)
	weight := d.Name("weight", "an edge array")
	off := d.Texts("passes", len(passes.Names()), passes.Names()...)
	d.Note("passes", append([]string{}, off...))
	forced := d.Texts("layouts", len(layout.Forced), slices.Sorted(maps.Keys(layout.Forced))...)
	if len(forced) > 0 {
		d.Note("layouts", forced)
	}
	timed := d.Flag("timed")
	p := new(Plan)
	traced, err := parsed(code, weight)
	if err == nil && traced.Reads() {
		inputs := d.Texts("inputs", 3*program.MaxNodes)
		d.Note("inputs", inputs)
		err = traced.Bind(inputs)
	}
	if err == nil {
		traced.Timed = timed
		p.traced = traced
		// The program as it was traced, so that equal programs have equal plans.
		d.Note("code", strings.Split(traced.String(), "\n"))
		p.Program, p.steps, err = passes.Run(traced, off)
	}
	if err == nil {
		p.Program = passes.Forced(p.Program, forced)
	}
	if err != nil {
		d.Refuse(request.ErrValue, "%v", err)
		return p
	}
	recognises := !timed && !slices.Contains(off, passes.Recognise)
	if recognises {
		p.poisson = passes.Poisson(p.Program)
	}
	p.onDevice = sync.OnceValue(func() cuda.Plan {
		if p.poisson != nil {
			return cuda.NewPoisson(p.Program, p.poisson)
		}
		return cuda.NewProgram(p.Program)
	})
	p.excluding = sync.OnceValues(func() (made excluding, err error) {
		if made.program, err = traced.Excluding(); err == nil {
			made.program, _, err = passes.Run(made.program, off)
		}
		if err != nil {
			return made, fmt.Errorf("%w: %w", request.ErrValue, err)
		}
		made.program = passes.Forced(made.program, forced)
		made.onDevice = cuda.NewProgram(made.program)
		return made, nil
	})
	p.edges, p.vertices = p.Program.Arrays()
	if hops, is := passes.Neighbors(p.Program); is && recognises {
		p.known = neighbors(hops)
	}
	return p
}

// parsed reads lines, none of which may hold another.
func parsed(code []string, weight string) (*program.Program, error) {
	for i, line := range code {
		if strings.ContainsRune(line, '\n') {
			return nil, fmt.Errorf("code[%d]: expected a line, got several", i)
		}
	}
	return program.Parse(strings.Join(code, "\n"), weight)
}

// neighbors is the plan of the neighbor family that makes these hops.
func neighbors(hops request.Hops) *neighbor.Plan {
	text, err := json.Marshal(map[string]any{"fanouts": hops.Fanouts, "replace": hops.Replace})
	if err != nil {
		panic(err)
	}
	d := plan.Read(string(text))
	p := neighbor.Parse(d)
	if err := d.Err(); err != nil {
		panic(err)
	}
	return p.(*neighbor.Plan)
}

// Check returns an error for graphs without the arrays that the program reads.
func (p *Plan) Check(g plan.Arrays) error {
	if p.known != nil {
		return p.known.Check(g)
	}
	for _, name := range p.edges {
		what := "edata"
		if name == p.Program.Weight {
			what = "weight"
		}
		if _, has := g.EdgeData[name]; !has {
			return fmt.Errorf("%w: %s: expected a graph with the edge array %q, got one without", request.ErrValue, what, name)
		}
	}
	for _, name := range p.vertices {
		if _, has := g.VertexData[name]; !has {
			return fmt.Errorf("%w: ndata: expected a graph with the node array %q, got one without", request.ErrValue, name)
		}
	}
	if g.Kinds > 0 {
		return fmt.Errorf("%w: graph: expected one whose rows are not split by types, got %d types", request.ErrValue, g.Kinds)
	}
	return nil
}

// Expected returns the number of edges that the model of explain estimates.
func (p *Plan) Expected(w *plan.Work) int64 {
	if p.known != nil {
		return p.known.Expected(w)
	}
	g := explain.Graph{Nodes: w.Graph.Relation(0).NumNodes, Edges: w.Graph.Relation(0).NumEdges()}
	return int64(min(explain.Work(p.Program, g, w.Batch.Seeds.Len()), math.MaxInt32))
}

// CPU samples the batch, by another family if the program equals one of its samplers.
func (p *Plan) CPU(w *plan.Work) (memory.Memory, error) {
	if p.known != nil {
		return p.known.CPU(w)
	}
	sampled := p.Program
	if w.Excluded(0) != nil {
		without, err := p.excluding()
		if err != nil {
			return memory.Memory{}, err
		}
		sampled = without.program
	}
	return run.Sample(&run.Request{Program: sampled, Batch: w.Batch, Relation: w.Graph.Relation(0), Exclude: w.Excluded(0)}, w.Crew, w.Stop)
}

// Partitioned returns the plan of the same program on a partitioned graph; the caller, which requests the
// rows, knows which arrays exist.
func (p *Plan) Partitioned() (plan.Plan, error) {
	if err := p.Program.CheckPartitioned(); err != nil {
		return nil, fmt.Errorf("%w: %w", request.ErrValue, err)
	}
	return &apart{p}, nil
}

type apart struct{ *Plan }

// Check accepts any graph.
func (*apart) Check(plan.Arrays) error { return nil }

// CPU samples the batch from the rows that it requests.
func (p *apart) CPU(w *plan.Work) (memory.Memory, error) {
	return run.Sample(&run.Request{Program: p.Program, Batch: w.Batch, Relation: w.Graph.Relation(0), Parts: w.Parts, Arrays: p.edges}, w.Crew, w.Stop)
}

// CUDA returns the plan on a device.
func (p *Plan) CUDA() cuda.Plan {
	if p.known != nil {
		return p.known.CUDA()
	}
	return p.onDevice()
}

// CUDAExcluding returns the device plan for batches that leave edges out.
func (p *Plan) CUDAExcluding() (cuda.Plan, error) {
	if p.known != nil {
		return p.known.CUDA(), nil
	}
	without, err := p.excluding()
	return without.onDevice, err
}

// Explain returns the plan as text, for a graph and a number of seeds.
func (p *Plan) Explain(g explain.Graph, seeds int64) string {
	where := "the executor of programs on the CPU"
	if g.Device {
		where = "one kernel that is written for it, in one launch a batch"
		if p.poisson != nil {
			where = fmt.Sprintf("the kernel of LABOR-%d, in one launch a batch: fanouts %v from the seeds on", p.poisson.Rounds, p.poisson.K)
		}
	}
	if p.known != nil {
		hops, _ := passes.Neighbors(p.Program)
		where = fmt.Sprintf("PGSampler: fanouts %v, replace %t", hops.Fanouts, hops.Replace)
	}
	return explain.Text(p.traced, p.steps, p.Program, where, g, seeds)
}
