package memory

// #include "memory.h"
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

const hugePage = 2 << 20

// Pages is zeroed working memory of its own mapping, on huge pages if the system grants them: a map
// of all nodes is read at random, and small pages would cost a page walk for each read. The mapping
// ends when Pages is collected or freed.
type Pages struct {
	bytes []byte
	heap  bool // of Go's: there is nothing to unmap
}

// smallPages is up to how many bytes are of Go's heap: a mapping takes longer to make, to touch and to end than
// a small graph to be sorted there.
const smallPages = 1 << 15

// Affordable returns an error for memory that will all be written and that the machine does not
// have. Mappings here reserve nothing, so the system itself would not refuse them: it would end the
// process when their pages are touched.
func Affordable(size int64) error {
	if uint64(size) <= hugePage {
		// Every machine has it, and to ask takes as long as to sample a few edges: batches ask for each hop.
		return nil
	}
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return nil
	}
	total := float64(info.Totalram+info.Totalswap) * float64(info.Unit)
	if size < 0 || float64(size) > total {
		return fmt.Errorf("%w: wanted %d bytes, the machine has %.0f", ErrNoMemory, size, total)
	}
	return nil
}

// Map returns at least size zeroed bytes.
func Map(size int64) (*Pages, error) {
	size = max((size+4095)&^4095, 4096)
	if size <= smallPages {
		// Words are aligned for any type of a slice.
		words := make([]uint64, size/8)
		return &Pages{bytes: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size), heap: true}, nil
	}
	if size >= hugePage {
		// Whole huge pages: systems put these, and no others, where such pages begin.
		size = (size + hugePage - 1) &^ (hugePage - 1)
	}
	bytes, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("%w: wanted %d bytes of scratch (%v)", ErrNoMemory, size, err)
	}
	if C.pgs_memory_has_headroom() == 0 {
		_ = syscall.Munmap(bytes)
		return nil, fmt.Errorf("%w: wanted %d bytes of scratch, and more room", ErrNoMemory, size)
	}
	if size >= hugePage {
		// A hint: without huge pages everything works, more slowly.
		_ = syscall.Madvise(bytes, syscall.MADV_HUGEPAGE)
	}
	p := &Pages{bytes: bytes}
	runtime.SetFinalizer(p, (*Pages).Free)
	return p, nil
}

// Free unmaps the pages; slices of them must no longer be used.
func (p *Pages) Free() {
	if p.bytes != nil && !p.heap {
		runtime.SetFinalizer(p, nil)
		_ = syscall.Munmap(p.bytes)
	}
	p.bytes = nil
}

// All returns the pages as elements of T, as many as fit.
func All[T any](p *Pages) []T {
	var element T
	return Slice[T](p, int64(len(p.bytes))/int64(unsafe.Sizeof(element)))
}

// Slice returns the pages as n elements of T.
func Slice[T any](p *Pages, n int64) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(p.bytes))), n)
}
