// Package wholerows is the family of whole rows of nodes. Batches of partitioned graphs request
// them from the partitions when the choice of edges depends on more than one row. It is not
// available to users.
package wholerows

import (
	"fmt"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/program"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Plan is a plan of all edges of rows, and of the elements of some edge arrays.
type Plan struct{ arrays []string }

// Parse returns the plan of a document.
func Parse(d *plan.Document) plan.Plan {
	p := &Plan{arrays: d.Texts("arrays", program.MaxNodes)}
	d.Note("arrays", append([]string{}, p.arrays...))
	d.Name("prob", "an edge array")
	d.Name("mask", "an edge array")
	return p
}

// all is every edge, of one hop.
func all() []int64 { return []int64{-1} }

// Request returns the request to the CPU engine.
func (p *Plan) Request(w *plan.Work) *cpu.Request {
	r := &cpu.Request{Relation: w.Graph.Relation(0), Exclude: w.Excluded(0), Most: w.Most}
	r.Batch, r.Hops = w.Batch, request.Hops{Fanouts: all()}
	return r
}

// Hetero returns the request of a heterogeneous graph.
func (p *Plan) Hetero(w *plan.Work) *cpu.HeteroRequest {
	r := &cpu.HeteroRequest{Batch: w.Batch, Graph: w.Graph, Seeds: w.SeedCounts, Most: w.Most}
	for range w.Graph.Relations {
		r.Fanouts = append(r.Fanouts, all())
	}
	return r
}

// Arrays returns the edge arrays of a graph, in the order in which replies have their elements.
func (p *Plan) Arrays(g *csc.Relation) (of []csc.Values) {
	for _, name := range p.arrays {
		of = append(of, g.EdgeData[name])
	}
	return of
}

// Check returns an error for graphs without the arrays.
func (p *Plan) Check(g plan.Arrays) error {
	for _, name := range p.arrays {
		if _, has := g.EdgeData[name]; !has {
			return fmt.Errorf("%w: arrays: expected a graph with the edge array %q, got one without", request.ErrValue, name)
		}
	}
	return nil
}

// Expected estimates the number of edges from the mean degree.
func (p *Plan) Expected(w *plan.Work) int64 { return p.Request(w).Expected() }

var errAlone = fmt.Errorf("%w: sampler: expected one that makes batches, got the plan of whole rows", request.ErrValue)

// CPU returns an error, since the family samples no batches.
func (p *Plan) CPU(*plan.Work) (memory.Memory, error) { return memory.Memory{}, errAlone }

// CUDA returns a plan that rejects all graphs.
func (p *Plan) CUDA() cuda.Plan { return refused{new(cuda.Neighbors)} }

type refused struct{ *cuda.Neighbors }

// Check returns an error for all graphs.
func (refused) Check(*cuda.Graph, *cuda.Call) error { return errAlone }
