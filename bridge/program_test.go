package bridge

import (
	"runtime"
	"strings"
	"testing"
)

const degreeProgram = `{"family": "program", "code": ["%0 = seeds", "%1 = slice %0", "%2 = count %1 axis=0", "return vectors \"d\"=%2"]}`

func TestProgramExplain(t *testing.T) {
	g := newRing(t, 10)
	text, err := ProgramExplain(g.handle, degreeProgram, 5)
	if err != nil || !strings.HasPrefix(text, "as traced\n  %0 = seeds\n") || !strings.Contains(text, "a batch of 5 seeds on a graph of 10 nodes and 20 edges") {
		t.Errorf("got %v and\n%s", err, text)
	}
	for _, k := range []struct {
		graph    int64
		document string
		seeds    int64
		want     string
	}{
		{1 << 60, degreeProgram, 1, "ClosedError: graph: expected an open one, got a closed one"},
		{g.handle, degreeProgram, -1, "ValueError: seeds: expected a number >= 0, got -1"},
		{g.handle, document("auto", true, []int64{2}), 1, "ValueError: plan: expected one of a program, got one of another family"},
		{g.handle, strings.Replace(degreeProgram, "count", "cunt", 1), 1, `ValueError: %2: expected an operator, got "cunt"`},
		{g.handle, strings.Replace(degreeProgram, "slice %0", "slice %1", 1), 1, `ValueError: %1: expected a node before %1, got "%1"`},
	} {
		_, err := ProgramExplain(k.graph, k.document, k.seeds)
		fails(t, err, k.want)
	}
}

// A program that reads an array, on a graph with it and on one without.
func TestProgramReadsArrays(t *testing.T) {
	g := newRing(t, 10)
	weights := make([]float32, 20)
	seeds := []int64{3, 3, 7}
	s, err := SamplerNew(strings.Replace(degreeProgram, `"code"`, `"weight": "w", "code"`, 1), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = SamplerClose(s) }()
	_, err = submit(g.handle, s, address(seeds), 3, 64, 0, 0, 0, 0, 0)
	fails(t, err, `ValueError: weight: expected a graph with the edge array "w", got one without`)
	with, err := withData(g, edgeData("float32", address(weights), 20))
	if err != nil {
		t.Fatal(err)
	}
	job, err := submit(with, s, address(seeds), 3, 64, 0, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := Wait(-job, -1)
	if err != nil || mem == 0 {
		t.Fatalf("got the memory %#x, %v", mem, err)
	}
	if _, err := GraphClose(with); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(weights)
	runtime.KeepAlive(seeds)
}

func TestProgramCalibrate(t *testing.T) {
	t.Setenv("PYGSAMPLER_CACHE", t.TempDir())
	text, err := ProgramCalibrate(onCPU)
	if err != nil || !strings.Contains(text, `"nanoseconds":{"map":`) || !strings.Contains(text, "costs.json") {
		t.Errorf("got %q, %v", text, err)
	}
	t.Setenv("PYGSAMPLER_CACHE", "/dev/null/no")
	if text, err := ProgramCalibrate(onCPU); err == nil {
		t.Errorf("kept in a folder that cannot be: %s", text)
	}
}
