package pygsampler

import (
	"runtime"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Copies in several pieces, up and down, and memory that is page-locked.
func TestDeviceMemory(t *testing.T) {
	onGPU(t)
	host := make([]int64, (2*piece+40)/8)
	for i := range host {
		host[i] = int64(i) * 7
	}
	bytes := int64(len(host)) * 8
	up, err := DeviceUpload(0, address(host), bytes, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := memory.FromAddress(up)
	if s, err := DeviceStats(0); err != nil || s.Used < bytes {
		t.Errorf("got %+v, %v", s, err)
	}
	down, err := DeviceDownload(0, int64(uintptr(m.Pointer())), bytes, 0)
	if err != nil {
		t.Fatal(err)
	}
	back := memory.FromAddress(down)
	if !slices.Equal(memory.ViewAt[int64](back, 0, int64(len(host))), host) {
		t.Error("another content")
	}
	back.Release()
	for stream := range int64(3) { // all of them, and the thread's own
		if err := DeviceOrder(up, stream); err != nil {
			t.Error(err)
		}
	}
	context, err := gpu.Retain(0)
	if err != nil {
		t.Fatal(err)
	}
	defer context.Close()
	var streams []gpu.Stream
	for range 12 { // more than are kept apart
		s, err := context.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
		if err := DeviceOrder(up, int64(s.Handle())); err != nil {
			t.Error(err)
		}
	}
	m.Release()
	for i := range streams {
		if err := streams[i].Close(); err != nil {
			t.Error(err)
		}
	}
	pinned, err := DeviceRegister(0, address(host), bytes)
	if err != nil {
		t.Fatal(err)
	}
	m = memory.FromAddress(pinned)
	if l, err := gpu.Locate(gpu.Address(uintptr(m.Pointer()))); err != nil || !l.Host || l.Device < 0 {
		t.Errorf("got %+v, %v", l, err)
	}
	m.Release()
	if l, err := gpu.Locate(gpu.Address(address(host))); err != nil || l.Device >= 0 {
		t.Errorf("still registered: %+v, %v", l, err)
	}
	runtime.KeepAlive(host)
}
