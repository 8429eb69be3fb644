package gpu

import (
	"os"
	"testing"
	"unsafe"
)

// spanning makes every call of spans and pieces once or more, in c.
func spanning(c *Context, s Stream) (err error) {
	var own owner
	defer own.close(&err)
	unit, err := c.Granularity(true)
	if err != nil {
		return err
	}
	first, err := c.NewPiece(unit, true)
	if err != nil {
		return err
	}
	own.add(first.Close)
	second, err := c.NewPiece(2*unit, false)
	if err != nil {
		return err
	}
	own.add(second.Close)
	descriptor, err := first.Export()
	if err != nil {
		return err
	}
	own.add(func() error { return os.NewFile(uintptr(descriptor), "piece").Close() })
	again, err := c.ImportPiece(descriptor, unit)
	if err != nil {
		return err
	}
	own.add(again.Close)
	span, err := c.Map([]Piece{first, second})
	if err != nil {
		return err
	}
	own.add(span.Close)
	if l, err := Locate(span.Address + 5); err != nil || l.Device != c.Device() || l.Host {
		return explained(err, "located at %v", l)
	}
	values := [8]byte{1, 2, 3}
	if err := s.Upload(span.Address+Address(unit)-4, unsafe.Pointer(&values), 4); err != nil {
		return err
	}
	return s.Synchronize()
}

// workSpans: several ranges show the same memory, which lives as long as any of them.
func workSpans(t *testing.T) {
	before := alive()
	c, d := must(Retain(0))(t), must(Retain(1))(t)
	s := must(c.NewStream())(t)
	unit := must(c.Granularity(false))(t)
	equal(t, "granularity", unit, uint64(2<<20))
	here, there := must(c.NewPiece(unit, false))(t), must(d.NewPiece(2*unit, true))(t)
	own := must(c.NewPiece(unit, false))(t)
	a := must(c.Map([]Piece{here, there}))(t)
	b := must(d.Map([]Piece{own, there}))(t)
	none := must(c.Map(nil))(t)
	equal(t, "no pieces", none.Address, Address(0))
	ok(t, none.Close())
	equal(t, "size", a.Size, 3*unit)
	// The driver itself would say device 1 for the piece there.
	for _, k := range []struct {
		span   Span
		device int
	}{{a, 0}, {b, 1}} {
		for _, at := range []uint64{0, unit, 3*unit - 1} {
			equal(t, "location", must(Locate(k.span.Address+Address(at)))(t), Location{Device: k.device})
		}
	}
	last := max(a.Address, b.Address) + Address(a.Size)
	if InSpan(last) || !InSpan(last-1) {
		t.Error("the end is not where the last piece ends")
	}
	equal(t, "in a span", []bool{InSpan(a.Address), InSpan(4096), InSpan(0)}, []bool{true, false, false})
	for _, k := range []struct{ at, bytes, want uint64 }{{0, unit + 9, unit}, {unit - 1, 5, 1}, {unit, unit, unit}, {3*unit - 2, 90, 2}} {
		equal(t, "unbroken", Unbroken(a.Address+Address(k.at), k.bytes), k.want)
	}
	equal(t, "unbroken elsewhere", Unbroken(4096, 1<<40), uint64(1<<40))
	values, got := [4]byte{1, 2, 3, 4}, [4]byte{}
	ok(t, s.Upload(a.Address+Address(unit)+8, unsafe.Pointer(&values), 4))
	for _, p := range []*Piece{&here, &there, &own} {
		ok(t, p.Close())
		ok(t, p.Close())
	}
	other := must(d.NewStream())(t)
	ok(t, other.Download(unsafe.Pointer(&got), b.Address+Address(unit)+8, 4))
	equal(t, "the peer's", got, values)
	ok(t, other.Download(unsafe.Pointer(&got), b.Address, 4))
	equal(t, "its own", got, [4]byte{0xa5, 0xa5, 0xa5, 0xa5})
	ok(t, a.Close())
	ok(t, a.Close())
	ok(t, other.Download(unsafe.Pointer(&got), b.Address+Address(unit)+8, 4))
	equal(t, "after the other span", got, values)
	ok(t, b.Close())
	if list := *spans.list.Load(); len(list) != 0 {
		t.Errorf("spans: expected none, got %v", list)
	}
	ok(t, s.Close())
	ok(t, other.Close())
	ok(t, c.Close())
	ok(t, d.Close())
	equal(t, "alive", alive(), before)
}

// workSpanRefusals: what a device or the wires between two cannot do is said in words.
func workSpanRefusals(t *testing.T) {
	before := alive()
	set := func(name, value string) {
		// Go sets C's environment too, which the fake driver reads.
		t.Setenv(name, value)
		forget()
	}
	defer forget()
	set("FAKE_CUDA_MAPS", "0")
	c := must(Retain(0))(t)
	_, err := c.NewPiece(2<<20, false)
	wantText(t, err, "cuMemCreate", "device 0 (Fake GPU 0) cannot map memory of other devices")
	_, err = c.Granularity(false)
	wantText(t, err, "cannot map memory of other devices")
	ok(t, c.Close())
	set("FAKE_CUDA_MAPS", "1")
	set("FAKE_CUDA_DESCRIPTORS", "0")
	c = must(Retain(0))(t)
	_, err = c.NewPiece(2<<20, true)
	wantText(t, err, "cannot share its memory with other processes")
	piece := must(c.NewPiece(2<<20, false))(t)
	set("FAKE_CUDA_PEERS", "0")
	d := must(Retain(1))(t)
	_, err = d.Map([]Piece{piece})
	wantText(t, err, "cuMemSetAccess", "CUDA_ERROR_INVALID_DEVICE", "device 1 (Fake GPU 1) cannot reach piece 0 of 1")
	_, err = c.NewPiece(2<<40, false)
	wantText(t, err, "asked for 2199023255552 bytes of device memory on device 0")
	_, err = c.ImportPiece(1<<20, 2<<20)
	wantText(t, err, "cuMemImportFromShareableHandle")
	ok(t, piece.Close())
	ok(t, c.Close())
	ok(t, d.Close())
	set("FAKE_CUDA_DESCRIPTORS", "1")
	set("FAKE_CUDA_PEERS", "1")
	equal(t, "alive", alive(), before)
	name := must(DeviceUUID(1))(t)
	equal(t, "UUID", name, "GPU-11111111-1111-1111-1111-111111111111")
	if _, err := DeviceUUID(7); err == nil {
		t.Error("expected an error, got none")
	}
}
