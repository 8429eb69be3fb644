package bridge

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestDegreesOfARing(t *testing.T) {
	r := newRing(t, 100)
	count, err := DegreesNew(r.handle, 1)
	if err != nil {
		t.Fatal(err)
	}
	for row := int64(0); row < 100; {
		if row, err = DegreesAdvance(count, 30); err != nil {
			t.Fatal(err)
		}
	}
	text, err := DegreesProfile(count)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		In, Out  struct{ Min, Median, P99, Max, Zero int64 }
		Isolated int64
		Loops    int64 `json:"self_loops"`
		Parallel int64 `json:"parallel_edges"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	two := struct{ Min, Median, P99, Max, Zero int64 }{2, 2, 2, 2, 0}
	if got.In != two || got.Out != two || got.Isolated+got.Loops+got.Parallel != 0 {
		t.Errorf("got %s", text)
	}
	out, err := DegreesOut(count)
	if err != nil {
		t.Fatal(err)
	}
	if got := view(view(out, 2)[1], 100); !slices.Equal(got, slices.Repeat([]int64{2}, 100)) {
		t.Errorf("out-degrees %d, want 100 times 2", got)
	}
	if _, err := DegreesClose(count); err != nil {
		t.Fatal(err)
	}
	_, err = DegreesOut(count)
	fails(t, err, "ClosedError: degrees: expected an open one, got a closed one")
	_, err = DegreesAdvance(count, 1)
	fails(t, err, "ClosedError: degrees: expected an open one, got a closed one")
	_, err = DegreesProfile(count)
	fails(t, err, "ClosedError: degrees: expected an open one, got a closed one")
	_, err = DegreesNew(-1, 0)
	fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
}

func TestDegreesDoNotKeepAGraphOpen(t *testing.T) {
	r := newRing(t, 10)
	count, err := DegreesNew(r.handle, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := GraphClose(r.handle); err != nil {
		t.Fatal(err)
	}
	_, err = DegreesAdvance(count, 1)
	fails(t, err, "ClosedError: graph: expected an open graph, got a closed one")
	if _, err := DegreesClose(count); err != nil {
		t.Fatal(err)
	}
}
