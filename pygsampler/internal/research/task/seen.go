package task

import (
	"math/bits"
	"sync/atomic"
)

// MaxHops is how many hops a Seen can tell apart.
const MaxHops = 64

// Seen deduplicates tasks: a word for each vertex, a bit for each hop it is
// queued for.
//
// Source: PGSampler, Algorithm 2, which keeps a boolean for each pair. A vertex
// reached at some hop is a source, and so a destination again, at every later
// hop: one atomic Or claims all of them at once, and no task depends on another.
type Seen struct {
	words []uint64
	hops  int
}

// NewSeen uses words, zeroed, one for each vertex.
func NewSeen(words []uint64, hops int) Seen { return Seen{words, hops} }

// Claim appends to tasks those of vertex v from the given hop on that nobody has
// claimed before.
func (s Seen) Claim(tasks []Task, v int64, hop int) []Task {
	if hop >= s.hops {
		return tasks
	}
	want := ^uint64(0) << hop
	if s.hops < MaxHops {
		want &= 1<<s.hops - 1
	}
	// Most vertices were seen before: a plain read spares the locked operation.
	if atomic.LoadUint64(&s.words[v])&want == want {
		return tasks
	}
	fresh := want &^ atomic.OrUint64(&s.words[v], want)
	for ; fresh != 0; fresh &= fresh - 1 {
		tasks = append(tasks, Task{Vertex: v, Hop: uint8(bits.TrailingZeros64(fresh))})
	}
	return tasks
}
