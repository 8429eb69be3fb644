package bridge

import (
	"fmt"
	"runtime"
	"testing"
)

// Neighbours on a ring whose edges are as old as their ids, and what is refused.
func TestTimesOfARing(t *testing.T) {
	r := newRing(t, 50)
	times := make([]int64, 100)
	for i := range times {
		times[i] = int64(i)
	}
	job, err := deriveStart(r.handle, "times", "t", "int64", address(times), 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	sorted, err := DeriveTake(job)
	if err != nil {
		t.Fatal(err)
	}
	sampler, err := SamplerNew(`{"family": "temporal", "time": "t", "fanouts": [-1]}`, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	seeds, bounds := []int64{5, 5}, []int64{10, 9}
	timed := func(graph, numSeeds, seedBits, sorted, bounds int64) (int64, error) {
		rows := []int64{sorted, 0}
		defer runtime.KeepAlive(rows)
		return submitted(words(32, map[int]int64{
			wordFlags: prompt, wordGraph: graph, wordSampler: sampler, wordSeeds: address(seeds), wordNumSeeds: numSeeds,
			wordSeedBits: seedBits, wordThreads: 1, wordSorted: address(rows), wordSeedTimes: bounds,
		}))
	}
	mem, err := timed(r.handle, 2, 64, sorted, address(bounds))
	if err != nil || mem <= 0 {
		t.Fatalf("expected a memory, got %d, %v", mem, err)
	}
	// The vertex 5 has the edges 10 and 11: the first tree has one of them, the second none.
	if got := nodes(mem); len(got) != 3 {
		t.Errorf("expected two seeds and one neighbour, got %v", got)
	}

	_, err = deriveStart(-1, "times", "t", "int64", address(times), 100, 0)
	fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
	_, err = deriveStart(r.handle, "times", "t", "bool", address(times), 100, 0)
	fails(t, err, "TypeError: t: expected times of int32, int64, float32 or float64, got bool")
	_, err = deriveStart(r.handle, "times", "t", "int64", address(times), -1, 0)
	fails(t, err, "ValueError: t: expected a length >= 0, got -1")
	if job, err = deriveStart(r.handle, "times", "t", "int64", address(times), 99, 0); err != nil {
		t.Fatal(err)
	}
	_, err = DeriveTake(job)
	fails(t, err, "ValueError: t: expected a time for 99, got 99 of them")
	for _, call := range [][4]int64{{2, 64, 0, address(bounds)}, {-1, 64, sorted, address(bounds)}, {2, 16, sorted, address(bounds)}, {2, 64, sorted, 0}} {
		_, err = timed(r.handle, call[0], call[1], call[2], call[3])
		fails(t, err, "")
	}
	other := newRing(t, 7)
	_, err = timed(other.handle, 2, 64, sorted, address(bounds))
	fails(t, err, "ValueError: graph: expected one of 100 edges, got 14")
	if _, err := sample(r.handle, sampler, address(seeds), 2, 64, 0, 0, 0, 0, 1); err == nil {
		t.Error("expected an error of seeds without times, got none")
	}
	if _, err := SamplerClose(sampler); err != nil {
		t.Error(err)
	}
}

// A heterogeneous graph without its types, walks by type, and what is refused.
func TestTypesThatGo(t *testing.T) {
	r := newRing(t, 20)
	document := `{"types": ["v"], "nodes": [20], "salts": ["1"], "relations": [{"name": "v__to__v", "src": 0, "dst": 0, "salt": "2"}], "graphs": [%d]}`
	g, err := GraphCompose(fmt.Sprintf(document, r.handle))
	if err != nil {
		t.Fatal(err)
	}
	firsts := []int64{0, 40}
	if _, err := GraphHomogeneous(g, address(firsts)); err != nil {
		t.Error(err)
	}
	firsts[1] = 39
	_, err = GraphHomogeneous(g, address(firsts))
	fails(t, err, "ValueError: v__to__v: expected edge ids in [0, 39), got 39")
	_, err = GraphHomogeneous(-1, address(firsts))
	fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
	_, err = WalksByType(0, 0, 0, -1, 0)
	fails(t, err, "ValueError: length: expected 0 to 1048576 steps, got -1")
	_, err = WalksByType(0, 0, 0, 1, 0)
	fails(t, err, "")
	if _, err := GraphClose(g); err != nil {
		t.Error(err)
	}
}
