package run

import (
	"sync"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// arena is the working memory of one batch: arrays without pointers, one after another, that are
// freed together. Their contents are undefined.
type arena struct {
	pages []*memory.Pages // in the order in which batches take them
	at    int             // which of them arrays are taken of,
	last  []byte          // its bytes, and
	used  int64           // how many of these are taken
}

// The first pages of an arena, the bound of their growth by doubling, and the maximal number of
// bytes that are reused from batch to batch. With unbounded doubling, the pages after one large
// array would exceed that bound, and each batch would map all of them anew.
const (
	firstPages = 1 << 20
	mostMore   = 1 << 27
	mostKept   = 1 << 30
)

// take is n elements of T, which no bytes of the system's refuse: a failure of the batch.
func take[T any](a *arena, n int64) []T {
	var element T
	size := int64(unsafe.Sizeof(element))
	if n < 0 || n > 1<<60/size {
		panic(failure{memory.ErrNoMemory})
	}
	if n == 0 {
		return nil
	}
	bytes := (n*size + 63) &^ 63
	for a.used+bytes > int64(len(a.last)) {
		a.more(bytes)
	}
	at := unsafe.Pointer(&a.last[a.used])
	a.used += bytes
	return unsafe.Slice((*T)(at), n)
}

// more goes on to the next pages, or to new ones, twice as large as the last as long as that is little.
func (a *arena) more(bytes int64) {
	if next := a.at + 1; next < len(a.pages) {
		a.begin(next)
		return
	}
	if err := memory.Affordable(bytes); err != nil {
		panic(failure{err})
	}
	pages, err := memory.Map(max(bytes, min(2*int64(len(a.last)), mostMore), firstPages))
	if err != nil {
		panic(failure{err})
	}
	a.pages = append(a.pages, pages)
	a.begin(len(a.pages) - 1)
}

// begin has arrays taken of pages from their beginning on.
func (a *arena) begin(at int) { a.at, a.last, a.used = at, memory.All[byte](a.pages[at]), 0 }

// reset frees all arrays. Pages that a batch had to add stay next to those that were too few: the
// system clears mapped pages, so that one mapping instead of all of them would cost a larger
// batch's time again.
func (a *arena) reset() {
	if len(a.pages) > 1 && len(memory.All[byte](a.pages[0])) == firstPages { // too few for pages of the large kind
		a.pages[0].Free()
		a.pages = append(a.pages[:0], a.pages[1:]...)
	}
	kept := int64(0)
	for _, pages := range a.pages {
		kept += int64(len(memory.All[byte](pages)))
	}
	if kept > mostKept {
		a.free()
	}
	if len(a.pages) > 0 {
		a.begin(0)
	}
}

func (a *arena) free() {
	for _, pages := range a.pages {
		pages.Free()
	}
	*a = arena{pages: a.pages[:0]}
}

// scratch is the working memory of a batch, apart from graph and output, reused between batches so
// that a steady state allocates nothing that grows. One batch uses it at a time.
type scratch struct {
	arena arena
	// numbers serves numberings that end before the next begins.
	numbers cpu.NodeMap
	here    cpu.NodeMap // of nodes whose rows are here, of those that lie elsewhere
	members []uint64    // a bit for each node, 0 but while somebody uses them
	workers []*worker
}

// membersOf returns a bit for each node, all 0; whoever sets some clears them.
func (s *scratch) membersOf(vertices int64) []uint64 {
	if words := (vertices + 63) / 64; int64(len(s.members)) < words {
		s.members = make([]uint64, words)
	}
	return s.members
}

// shelf keeps the scratches of finished batches; one for each batch that was ever in flight at once.
var shelf struct {
	sync.Mutex
	free []*scratch
}

func takeScratch() *scratch {
	shelf.Lock()
	defer shelf.Unlock()
	last := len(shelf.free) - 1
	if last < 0 {
		return &scratch{}
	}
	s := shelf.free[last]
	shelf.free[last] = nil
	shelf.free = shelf.free[:last]
	return s
}

func (s *scratch) put() {
	s.arena.reset()
	for _, w := range s.workers {
		if w.evaluator != nil {
			w.evaluator.forget()
		}
	}
	shelf.Lock()
	defer shelf.Unlock()
	shelf.free = append(shelf.free, s)
}

// Trim frees the scratch of idle batches.
func Trim() {
	shelf.Lock()
	defer shelf.Unlock()
	for _, s := range shelf.free {
		s.arena.free()
		s.numbers.Free()
		s.here.Free()
	}
	shelf.free = nil
}
