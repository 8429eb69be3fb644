package prefetch

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"
)

// atEnd is n elements before a page that none may read.
func atEnd[T Element](t *testing.T, n int) []T {
	t.Helper()
	page := syscall.Getpagesize()
	bytes, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(bytes) })
	if err := syscall.Mprotect(bytes[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	var element T
	return unsafe.Slice((*T)(unsafe.Pointer(&bytes[page-n*int(unsafe.Sizeof(element))])), n)
}

// Every place is read, none behind them, and no element of the table.
func TestFetch(t *testing.T) {
	debug.SetPanicOnFault(true)
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, early - 1, early, early + 1, early + Step, early + Step + 1, 4 * early} {
		fetchFrom[int32, int32](t, n)
		fetchFrom[uint32, int64](t, n)
		fetchFrom[int64, int32](t, n)
		fetchFrom[uint64, int64](t, n)
	}
}

func fetchFrom[T, I Element](t *testing.T, n int) {
	places, table := atEnd[I](t, n), atEnd[T](t, n)
	for i := range places {
		places[i] = I(i) * 1000 // most of them beyond the table, where nothing may be read
	}
	Elements(table, places)
	for lo := 0; lo == 0 || lo < n; lo += Step {
		Ahead(table, places, lo)
	}
	All(table)
}
