package memory

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"unsafe"
)

// balanced checks that a test leaves the counters of live memories where it found
// them, and starts it with an empty pool.
func balanced(t *testing.T) {
	t.Helper()
	Trim()
	before := Count()
	if before.Pooled != 0 || before.PooledBytes != 0 {
		t.Fatalf("a trimmed pool holds %v", before)
	}
	t.Cleanup(func() {
		if after := Count(); after.Live != before.Live || after.LiveBytes != before.LiveBytes {
			t.Errorf("%v before, %v after", before, after)
		}
		Trim()
	})
}

func allocate(t *testing.T, size int64) Memory {
	t.Helper()
	m, err := New(size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The struct begins with the words that Python reads: references, data, size, where
// the header is, the device.
func TestLayout(t *testing.T) {
	balanced(t)
	m := allocate(t, 100)
	m.SetSize(77)
	words := View[int64](m.Address(), 5)
	if words[0] != 1 || words[1] != int64(uintptr(m.Pointer())) || words[2] != 77 || words[3] != words[1] || words[4] != -1 {
		t.Errorf("got %x", words)
	}
	if err := m.Grow(64 << 20); err != nil {
		t.Fatal(err)
	}
	if words[1] != int64(uintptr(m.Pointer())) || words[3] != words[1] {
		t.Errorf("after it has moved: %x", words)
	}
	if FromAddress(m.Address()) != m {
		t.Error("another memory under the same address")
	}
	m.Release()
}

// Whole pages of the system, so that to pin a memory pins nothing else.
func TestWholePages(t *testing.T) {
	balanced(t)
	page := int64(os.Getpagesize())
	for _, size := range []int64{1, 100, 1 << 14, 1<<14 + 1, 1 << 16, 1<<16 + 1, 5 << 20} {
		m := allocate(t, size)
		if at := int64(uintptr(m.Pointer())); at%page != 0 || int64(m.c.capacity)%page != 0 || int64(m.c.capacity) < size {
			t.Errorf("%d bytes: %d bytes at %#x, with pages of %d", size, m.c.capacity, at, page)
		}
		m.Release()
	}
}

func TestCounts(t *testing.T) {
	balanced(t)
	before := Count()
	a, b := allocate(t, 100), allocate(t, 10<<20)
	now := Count()
	if now.Live != before.Live+2 || now.LiveBytes < before.LiveBytes+10<<20+100 {
		t.Errorf("got %v after %v", now, before)
	}
	a.SetSize(100)
	a.Release()
	b.SetSize(5 << 20)
	b.Release()
	if now = Count(); now.Live != before.Live || now.LiveBytes != before.LiveBytes || now.Pooled != 2 || now.PooledBytes != 5<<20+100 {
		t.Errorf("got %v", now)
	}
	if Trim(); Count().Pooled != 0 || Count().PooledBytes != 0 {
		t.Error("Trim leaves something")
	}
}

// The next memory that fits is the last one's, and the smallest of those that do.
func TestPoolReuses(t *testing.T) {
	balanced(t)
	sizes := []int64{1 << 16, 1 << 22, 1 << 18}
	var memories []Memory
	for _, size := range sizes {
		memories = append(memories, allocate(t, size))
	}
	for _, m := range memories {
		m.SetSize(1000)
		m.Release()
	}
	for _, k := range []struct{ size, want int64 }{{1 << 17, 2}, {1 << 17, 1}, {100, 0}} {
		m := allocate(t, k.size)
		if m != memories[k.want] {
			t.Errorf("%d bytes: not memory %d", k.size, k.want)
		}
		if words := View[int64](m.Address(), 3); words[0] != 1 || words[2] != 0 {
			t.Errorf("a pooled memory comes with %d references and size %d", words[0], words[2])
		}
		defer m.Release()
	}
	if n := Count().Pooled; n != 0 {
		t.Errorf("%d are left", n)
	}
	fresh := allocate(t, 100)
	defer fresh.Release()
	if slices.Contains(memories, fresh) {
		t.Error("one memory twice")
	}
}

// The pool is bounded in number and in bytes. Bytes are those that were ever
// written, not those of the last batch: the pages are still there.
func TestPoolIsBounded(t *testing.T) {
	balanced(t)
	var memories []Memory
	for range 40 {
		memories = append(memories, allocate(t, 1000))
	}
	for _, m := range memories {
		m.SetSize(1000)
		m.Release()
	}
	if c := Count(); c.Pooled != 16 || c.PooledBytes != 16000 {
		t.Errorf("40 memories: %v", c)
	}
	Trim()

	// Sizes are claimed, no page is touched.
	const gib = 1 << 30
	a, b, c := allocate(t, 2*gib), allocate(t, 2*gib), allocate(t, 2*gib)
	a.SetSize(gib + 1)
	a.Release()
	if n := Count().Pooled; n != 0 {
		t.Error("more than the bound in one memory")
	}
	b.SetSize(gib - 1000)
	b.Release()
	c.SetSize(1001)
	c.Release()
	if n := Count(); n.Pooled != 1 || n.PooledBytes != gib-1000 {
		t.Errorf("more than the bound in two memories: %v", n)
	}
	small := allocate(t, 10)
	small.SetSize(10)
	small.Release()
	if n := Count(); n.Pooled != 1 || n.PooledBytes != gib-1000 {
		t.Errorf("a large memory that held a small batch: %v", n)
	}
}

func TestGrowKeepsContents(t *testing.T) {
	balanced(t)
	m := allocate(t, 64)
	var written []int64
	for i, size := range []int64{64, 1 << 10, 1 << 16, 1 << 22, 3 << 22} {
		at := Count().LiveBytes
		if err := m.Grow(size); err != nil {
			t.Fatal(err)
		}
		words := ViewAt[int64](m, 0, size/8)
		if !slices.Equal(words[:len(written)], written) {
			t.Fatalf("growth to %d bytes loses contents", size)
		}
		for j := range words {
			words[j] = int64(i*1000 + j)
		}
		written = slices.Clone(words)
		if Count().LiveBytes < at {
			t.Error("growth takes bytes away")
		}
	}
	data := m.Pointer()
	if err := m.Grow(8); err != nil || m.Pointer() != data {
		t.Error("a smaller size moves the memory")
	}
	m.Release()
}

// More than any address space: an error that names the size; the memory stays.
func TestNoMemory(t *testing.T) {
	balanced(t)
	for _, size := range []int64{1 << 50, 1<<63 - 1} {
		if _, err := New(size); !errors.Is(err, ErrNoMemory) {
			t.Errorf("New(%d): %v", size, err)
		}
	}
	m := allocate(t, 64)
	ViewAt[int64](m, 0, 1)[0] = 42
	if err := m.Grow(1 << 50); !errors.Is(err, ErrNoMemory) || err.Error() != "out of memory: wanted 1125899906842624 bytes for a batch" {
		t.Error(err)
	}
	if ViewAt[int64](m, 0, 1)[0] != 42 {
		t.Error("a growth that fails loses contents")
	}
	m.Release()
	for _, size := range []int64{-1, 1 << 60} {
		if err := Affordable(size); !errors.Is(err, ErrNoMemory) {
			t.Errorf("Affordable(%d): %v", size, err)
		}
	}
	if err := Affordable(1 << 20); err != nil {
		t.Error(err)
	}
	if _, err := Map(1 << 50); !errors.Is(err, ErrNoMemory) {
		t.Error(err)
	}
}

// Many goroutines take, grow and release at once; no memory has two owners.
func TestPoolAtOnce(t *testing.T) {
	balanced(t)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 300 {
				m, err := New(int64(1000 * (1 + (w+i)%50)))
				if err != nil {
					t.Error(err)
					return
				}
				mark := ViewAt[int64](m, 0, 100)
				for j := range mark {
					mark[j] = int64(w)
				}
				if i%7 == 0 {
					if err := m.Grow(200_000); err != nil {
						t.Error(err)
					}
					mark = ViewAt[int64](m, 0, 100)
				}
				for _, x := range mark {
					if x != int64(w) {
						t.Error("a memory has two owners")
					}
				}
				m.SetSize(800)
				m.Release()
			}
		})
	}
	wg.Wait()
	if c := Count(); c.Pooled > 16 || c.PooledBytes > 16*200_000 {
		t.Errorf("got %v", c)
	}
}

// The references are counted: a pair of Arrow structs holds one of its own, and the
// last to go gives the memory to the pool.
func TestReferences(t *testing.T) {
	balanced(t)
	m := allocate(t, 4096)
	m.SetSize(4096)
	refs := func() int64 { return View[int64](m.Address(), 1)[0] }
	var pairs []ArrowPair
	for i := range int64(3) {
		p, err := NewArrowPair(m, "i", 2, int64(uintptr(m.Pointer()))+4*i, 10)
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, p)
		if refs() != i+2 {
			t.Fatalf("%d references after %d pairs", refs(), i+1)
		}
	}
	m.Release()
	pairs[1].Free()
	pairs[0].Free()
	if refs() != 1 || Count().Pooled != 0 {
		t.Fatalf("%d references, %d pooled", refs(), Count().Pooled)
	}
	pairs[2].Free()
	if refs() != 0 || Count().Pooled != 1 {
		t.Errorf("%d references, %d pooled", refs(), Count().Pooled)
	}
}

func TestSymbols(t *testing.T) {
	seen := map[int64]string{}
	for _, name := range []string{"memory_retain", "memory_release", "memory_of_object", "memory_claim", "tensor_maker", "dlpack_export", "dlpack_export_tensor", "arrow_export", "dlpack_export_device", "arrow_export_device"} {
		address := Symbol(name)
		if other, twice := seen[address]; address == 0 || twice {
			t.Errorf("%s has address %x, as has %q", name, address, other)
		}
		seen[address] = name
	}
	for _, name := range []string{"", "memory", "pgs_memory_retain"} {
		if Symbol(name) != 0 {
			t.Errorf("%q has an address", name)
		}
	}
}

func TestView(t *testing.T) {
	if View[int64](0, 0) != nil || View[int32](123, 0) != nil {
		t.Error("no elements are something")
	}
	p, err := Map(12)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Free()
	a := Slice[int32](p, 3)
	v := View[int32](int64(uintptr(unsafe.Pointer(&a[0]))), 3)
	if v[2] = 9; a[2] != 9 || len(v) != 3 || cap(v) != 3 {
		t.Errorf("got %v of %v", v, a)
	}
	for _, k := range [][2]int64{{0, 1}, {8, -1}, {8, 1 << 61}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d elements at %d are a slice", k[1], k[0])
				}
			}()
			View[int64](k[0], k[1])
		}()
	}
}
