package task

import (
	"math/bits"
	"sync/atomic"
)

// MaxHops is the number of hops that a Seen can distinguish.
const MaxHops = 64

// Seen deduplicates tasks: a word for each node, a bit for each hop that it is
// queued for.
//
// Source: PGSampler, Algorithm 2, which stores a boolean for each pair. A node
// reached at some hop is a source, and so a destination again, at every later
// hop: one atomic Or claims all of them at once, and no task depends on another.
type Seen struct {
	words []uint64
	hops  int
}

// NewSeen uses words, zeroed, one for each node.
func NewSeen(words []uint64, hops int) Seen { return Seen{words, hops} }

// Claim appends to tasks the tasks of node v from hop on that have not been claimed
// before.
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
