package memory

import "testing"

// Mapped pages read as zero, hold what is written and may be freed twice.
func TestPages(t *testing.T) {
	for _, size := range []int64{0, 1, 4096, 4097, hugePage, 3 << 20} {
		p, err := Map(size)
		if err != nil {
			t.Fatal(err)
		}
		bytes := Slice[byte](p, max(size, 1))
		for i := range bytes {
			if bytes[i] != 0 {
				t.Fatalf("%d bytes: byte %d is %d", size, i, bytes[i])
			}
			bytes[i] = byte(i)
		}
		if size >= 16 {
			if w := Slice[uint64](p, size/8); w[1] != 0x0f0e0d0c0b0a0908 {
				t.Errorf("got %x", w[1])
			}
		}
		p.Free()
		p.Free()
	}
}

// A mapping larger than the machine's memory costs nothing until it is written.
func TestSparsePages(t *testing.T) {
	p, err := Map(1 << 40)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Free()
	words := Slice[int64](p, 1<<37)
	words[1<<36] = 5
	if words[1<<36] != 5 || words[1<<37-1] != 0 || words[0] != 0 {
		t.Error("not what was written")
	}
}
