package edges

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// tally is counts by node, as many as the largest that was asked for needs. It
// grows by moving its pages, so that those which were never touched cost nothing.
type tally struct {
	pages []byte
	n     []int64
}

// reach makes room for counts up to id.
func (t *tally) reach(id int64) error {
	if id < int64(len(t.n)) {
		return nil
	}
	if err := memory.Affordable((id + 1) * 8); err != nil {
		return err
	}
	size := int(max((id+1)*8, int64(len(t.pages))*2, 1<<15)+4095) &^ 4095
	var err error
	if t.pages == nil {
		t.pages, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	} else {
		var grown []byte
		if grown, err = unix.Mremap(t.pages, size, unix.MREMAP_MAYMOVE); err == nil {
			t.pages = grown
		}
	}
	if err != nil {
		return fmt.Errorf("%w: wanted %d bytes for degrees (%v)", memory.ErrNoMemory, size, err)
	}
	// A hint: counts are read at random, and small pages cost a page walk each.
	_ = unix.Madvise(t.pages, unix.MADV_HUGEPAGE)
	t.n = unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(t.pages))), size/8)
	return nil
}

func (t *tally) free() {
	if t.pages != nil {
		_ = unix.Munmap(t.pages)
	}
	*t = tally{}
}
