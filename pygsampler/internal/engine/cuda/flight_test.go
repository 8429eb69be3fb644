package cuda

import (
	"errors"
	"testing"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// halfLaunched is a plan whose second kernel cannot be launched.
type halfLaunched struct{ *Neighbors }

var errLaunch = errors.New("not launched")

func (p halfLaunched) Launch(f *Flight) error { return errors.Join(p.Neighbors.Launch(f), errLaunch) }

// The workspace of a launch that failed is cleared before the next batch.
func TestFailedLaunchLeavesAWorkspaceToClear(t *testing.T) {
	e, s := device(t)
	g, d := graphOf(t, e, csctest.RandomRows(300, 1), 300, 32, 64, false)
	r := cpu.Request{Relation: g, Request: request.Request{Hops: request.Hops{Fanouts: []int64{4, 3}}, Batch: request.Batch{Seeds: csctest.Array([]int64{1, 2, 3}, 32)}}}
	check(t, e, s, d, &r, 0)
	c := with(Call{Stream: s.Handle(), Own: true}, r.Request)
	c.Plan = halfLaunched{c.Plan.(*Neighbors)}
	if _, err := e.Start(d, &c); !errors.Is(err, errLaunch) {
		t.Fatal(err)
	}
	if len(e.idle) != 1 || !e.idle[0].dirty {
		t.Error("expected one workspace, to be cleared")
	}
	check(t, e, s, d, &r, 0)
	if e.idle[0].dirty {
		t.Error("expected a workspace that was cleared")
	}
}
