package walktest

import (
	"fmt"
	"reflect"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/walk"
)

// Rules are walks of every kind.
var Rules = []walk.Rule{
	{Length: 11}, {Length: 9, EdgeIDs: true, PerSeed: 3}, {Length: 0}, {Length: 12, Stop: .2, EdgeIDs: true},
	{Length: 12, Restart: .3}, {Length: 12, Restart: .3, Stop: .05, Jumps: true, EdgeIDs: true}, {Length: 3, Stop: 1},
	{Length: 8, P: 2, Q: .5, EdgeIDs: true}, {Length: 8, P: .25, Q: 4, PerSeed: 2}, {Length: 8, P: 4, Q: .25}, {Length: 8, P: 1, Q: 2, Restart: .1},
	{Length: 8, Every: 2, Stop: .5, PerSeed: 10, Top: 3}, {Length: 5, PerSeed: 3, Top: 40, Restart: .5}, {Length: 100, PerSeed: 20, Top: 7, Stop: .01},
	{Length: 20, Roots: 5, EdgeIDs: true}, {Length: 300, Roots: 130}, {Length: 0, Roots: 1},
	{Length: 6, P: 1e9, Q: 1e10}, {Length: 6, P: 1e-9, Q: 1}, {Length: 5, P: 1e90, Q: 1e-90, Stop: .1},
}

// Request returns a request for walks of a rule from seeds. Rules with many visits get few seeds,
// since a block of threads sorts the visits, which takes long on the emulator.
func Request(rule walk.Rule, g *csc.Relation, seeds []int64) walk.Request {
	if rule.Top > 0 && rule.Visits() > 200 {
		seeds = seeds[:7]
	}
	return walk.Request{Rule: rule, Relation: g, Batch: request.Batch{Seed: 1 << 40, Epoch: 3, Number: 1<<39 + 1, Seeds: csctest.Array(seeds, g.Indices.Bits)}}
}

// Graphs runs f on graphs with every small degree, awkward ones and random ones, with ids of both
// widths, with and without edge ids, by weight and uniformly.
func Graphs(f func(name string, g *csc.Relation, seeds []int64)) {
	every, _ := csctest.EveryDegree()
	graphs := csctest.Awkward(3000)
	graphs["every degree"], graphs["random"] = every, csctest.RandomRows(500, 3)
	for name, rows := range graphs {
		for _, bits := range []int{32, 64} {
			for _, weights := range []string{"", "ramp", "heavy"} {
				if bits == 64 && weights == "heavy" {
					continue
				}
				nodes := int64(len(rows)) + 3
				for _, row := range rows {
					for _, v := range row {
						nodes = max(nodes, v+1)
					}
				}
				var seeds []int64
				for i := range 130 {
					seeds = append(seeds, int64(i*7)%nodes)
				}
				g := Graph(rows, nodes, bits, 96-bits, bits == 32, csctest.Weightings[weights])
				f(fmt.Sprintf("%s, %d bits, weights %q", name, bits, weights), g, seeds)
			}
		}
	}
}

// Kinds returns a graph whose rows are split by kinds of edges, and walks along metapaths.
func Kinds() (g *csc.Relation, requests []walk.Request) {
	rows := csctest.RandomRows(600, 8)
	for _, row := range rows {
		for i := range row {
			row[i] %= 200
		}
	}
	g = csctest.Graph(rows, 600, 32, 64, true)
	g.NumNodes, g.Kinds = 200, 3
	var seeds []int64
	for v := range int64(200) {
		seeds = append(seeds, v)
	}
	for _, path := range [][]int64{{0}, {1, 2}, {2, 0, 0, 1, 2}} {
		for _, restart := range []float64{0, .2} {
			requests = append(requests, walk.Request{
				Rule: walk.Rule{Length: 13, Path: path, Restart: restart, EdgeIDs: true}, Relation: g, Batch: request.Batch{Seeds: csctest.Array(seeds, 32)},
			})
		}
	}
	return g, requests
}

// Compare returns where walks differ from those that are wanted.
func (w Walks) Compare(want Walks) error {
	if reflect.DeepEqual(w, want) {
		return nil
	}
	for i := range want.Nodes {
		if !reflect.DeepEqual(w.Nodes[i], want.Nodes[i]) || w.Lengths[i] != want.Lengths[i] || want.EdgeIDs != nil && !reflect.DeepEqual(w.EdgeIDs[i], want.EdgeIDs[i]) {
			return fmt.Errorf("walk %d is %v of length %d, want %v of %d", i, w.Nodes[i], w.Lengths[i], want.Nodes[i], want.Lengths[i])
		}
	}
	return fmt.Errorf("visits %v %v, slots %v, want %v %v, %v", w.Top, w.Visits, w.Slots, want.Top, want.Visits, want.Slots)
}
