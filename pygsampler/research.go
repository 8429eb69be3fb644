//go:build !noresearch

package pygsampler

import (
	"maps"

	"github.com/pygsampler/pygsampler/pygsampler/internal/plan"
	"github.com/pygsampler/pygsampler/pygsampler/internal/plan/walk"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/plan/bsp"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/plan/fused"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/plan/khop"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/plan/queue"
	"github.com/pygsampler/pygsampler/pygsampler/internal/research/plan/reservoir"
)

// The families and the executions of papers' experiments. A build with the tag noresearch has none of them.
func init() {
	maps.Copy(families, map[string]plan.Parse{
		"bsp": bsp.Parse, "fused": fused.Parse, "khop": khop.Parse, "queue": queue.Parse, "reservoir": reservoir.Parse,
	})
	for _, name := range cuda.Executions {
		walk.RegisterExecution(cuda.Transits(name))
	}
}
