package csc_test

import (
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

type alone struct{}

func (alone) Borrow(int) int { return 0 }
func (alone) Return(int)     {}

// Edge ids that no row of the joint arrays belongs to are an error, not a write beyond them.
func TestJoinRefusesIDs(t *testing.T) {
	g := csctest.Graph([][]int64{{1}, {0}}, 2, 64, 64, true)
	hetero := csc.Graph{
		Schema:    &csc.Schema{NodeTypes: []csc.NodeType{{Name: "v", Nodes: 2}}, EdgeTypes: []csc.EdgeType{{Name: "v__to__v"}}},
		Relations: []*csc.Relation{g},
	}
	if m, err := hetero.ToHomogeneous([]int64{0, 2}, alone{}); err != nil {
		t.Fatal(err)
	} else {
		m.Release()
	}
	if _, err := hetero.ToHomogeneous([]int64{0, 1}, alone{}); err == nil {
		t.Fatal("expected an error of the id 1 in [0, 1), got none")
	}
}
