package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// GraphCompose is the handle of a graph with types that a document describes; the document names the
// handle of a graph for each relation.
func GraphCompose(document string) (graph int64, err error) {
	defer finish(&err)
	var named struct {
		Graphs []int64 `json:"graphs"`
	}
	if err := json.Unmarshal([]byte(document), &named); err != nil {
		return 0, core.Errorf(core.KindValue, "graph: expected a JSON object, got %v", err)
	}
	relations := make([]*core.Graph, len(named.Graphs))
	for i, handle := range named.Graphs {
		g, err := graphOf(handle)
		if err != nil {
			return 0, err
		}
		relations[i] = g
	}
	g, err := core.NewHetero(document, relations)
	if err != nil {
		return 0, err
	}
	return graphs.add(g), nil
}

// GraphHomogeneous is the memory of the graph without types of a graph with types; ids is the address of where
// those of each relation's edges begin, and of where they end.
func GraphHomogeneous(graph, ids int64) (mem int64, err error) {
	defer finish(&err)
	g, err := itemOf[*core.HeteroGraph](&graphs, graph, "graph")
	if err != nil {
		return 0, err
	}
	return g.Join(ids)
}
