package bridge

import (
	"encoding/json"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

// GraphCompose returns the handle of a heterogeneous graph that a document describes; the document
// names the handle of a homogeneous graph for each edge type.
func GraphCompose(document string) (graph int64, err error) {
	defer finish(&err)
	var named struct {
		Graphs []int64 `json:"graphs"`
	}
	if err := json.Unmarshal([]byte(document), &named); err != nil {
		return 0, core.Errorf(core.KindValue, "graph: expected a JSON object, got %v", err)
	}
	relations := make([]*core.Relation, len(named.Graphs))
	for i, handle := range named.Graphs {
		if relations[i], err = relationOf(handle); err != nil {
			return 0, err
		}
	}
	g, err := core.NewGraph(document, relations)
	if err != nil {
		return 0, err
	}
	return graphs.add(g), nil
}

// GraphHomogeneous returns a memory with the homogeneous graph of a heterogeneous graph. ids is the
// address of the bounds of the edge ids of each relation: first the starts, then the ends.
func GraphHomogeneous(graph, ids int64) (mem int64, err error) {
	defer finish(&err)
	g, err := graphOf(graph)
	if err != nil {
		return 0, err
	}
	return g.Join(ids)
}
