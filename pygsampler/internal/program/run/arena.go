package run

import (
	"sync"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/cpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// arena is the working memory of one batch: arrays without pointers, one behind another, that
// all go at once. Their contents are undefined.
type arena struct {
	pages []*memory.Pages
	last  []byte
	used  int64 // of the last pages
	whole int64 // of all arrays of the batch
}

// The first pages of an arena, and the most bytes that are kept from batch to batch.
const (
	firstPages = 1 << 20
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
	if a.used+bytes > int64(len(a.last)) {
		if err := memory.Affordable(bytes); err != nil {
			panic(failure{err})
		}
		pages, err := memory.Map(max(bytes, 2*int64(len(a.last)), firstPages))
		if err != nil {
			panic(failure{err})
		}
		a.pages = append(a.pages, pages)
		a.last, a.used = memory.All[byte](pages), 0
	}
	at := unsafe.Pointer(&a.last[a.used])
	a.used += bytes
	a.whole += bytes
	return unsafe.Slice((*T)(at), n)
}

// reset forgets all arrays. Next time pages for all of them are one.
func (a *arena) reset() {
	if len(a.pages) > 1 {
		whole := a.whole
		a.free()
		if pages, err := memory.Map(whole + whole/8); err == nil && whole <= mostKept {
			a.pages, a.last = append(a.pages, pages), memory.All[byte](pages)
		}
	}
	if len(a.last) > mostKept {
		a.free()
	}
	a.used, a.whole = 0, 0
}

func (a *arena) free() {
	for _, pages := range a.pages {
		pages.Free()
	}
	*a = arena{pages: a.pages[:0]}
}

// scratch is what a batch needs beside graph and output, kept between batches so that a steady
// state allocates nothing that grows. One batch uses it at a time.
type scratch struct {
	arena arena
	// numbers serves numberings that end before the next begins.
	numbers cpu.VertexMap
	here    cpu.VertexMap // of vertices whose rows are here, of those that lie elsewhere
	members []uint64      // a bit for each vertex, 0 but while somebody uses them
	workers []*worker
}

// membersOf is a bit for each of so many vertices, all 0; whoever sets some clears them.
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
