package csc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

func TestFindTakesNamesAndShortNames(t *testing.T) {
	g := &csc.Schema{
		NodeTypes: []csc.NodeType{{Name: "a"}, {Name: "b"}},
		EdgeTypes: []csc.EdgeType{
			{Name: "a__x__b", Short: "x", Dst: 1}, {Name: "a__y__b", Short: "y", Dst: 1}, {Name: "b__y__a", Short: "y", Src: 1},
			{Name: "b__a__y__b__a", Short: "a__y__b", Src: 1},
		},
	}
	for name, want := range map[string]int{"a__x__b": 0, "x": 0, "b__y__a": 2, "a__y__b": 1, "b__a__y__b__a": 3} {
		if got, err := g.Find(name); got != want || err != nil {
			t.Errorf("%q: expected %d, got %d and %v", name, want, got, err)
		}
	}
	for name, want := range map[string]string{
		"y": `a name that only one edge type has, got "y"; it can be any of ('a', 'y', 'b'), ('b', 'y', 'a')`,
		"z": `edge types of the graph, got "z"; there are ('a', 'x', 'b'), ('a', 'y', 'b'), ('b', 'y', 'a'), ('b', 'a__y__b', 'a')`,
		"":  `edge types of the graph, got ""; there are ('a', 'x', 'b'), `,
	} {
		if _, err := g.Find(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: expected %s, got %v", name, want, err)
		}
	}
}

func TestFindListsSomeOfManyTypes(t *testing.T) {
	g := &csc.Schema{NodeTypes: []csc.NodeType{{Name: "a"}}}
	for i := range 25 {
		short := fmt.Sprint("r", i)
		g.EdgeTypes = append(g.EdgeTypes, csc.EdgeType{Name: "a__" + short + "__a", Short: short})
	}
	_, err := g.Find("r99")
	if text := fmt.Sprint(err); strings.Count(text, "('a', ") != 20 || !strings.HasSuffix(text, "('a', 'r19', 'a') and 5 more") {
		t.Errorf("expected 20 types and how many more there are, got %s", text)
	}
}
