package memory

import (
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
)

// A batch in memory of another owner's has a header of its own on the host, and no
// stream to wait for.
func TestOverDevice(t *testing.T) {
	balanced(t)
	header := []int64{5, 6, 7}
	m, err := OverDevice(3, 0x7f0000000000, 4096, header)
	if err != nil {
		t.Fatal(err)
	}
	clear(header)
	words := View[int64](m.Address(), 5)
	if words[0] != 1 || words[1] != 0x7f0000000000 || words[2] != 4096 || words[4] != 3 {
		t.Errorf("got %x", words)
	}
	if got := View[int64](words[3], 3); !slices.Equal(got, []int64{5, 6, 7}) {
		t.Errorf("header %v", got)
	}
	for stream := range uintptr(20) {
		m.Consumed(stream)
	}
	m.FilledIn(7)
	if _, ok := m.Filler(); ok || m.Device() != 3 || DeviceBytes(3) != 0 {
		t.Error("as if it owned what is there")
	}
	pair, err := NewArrowPair(m, "l", 0, 0x7f0000000040, 9)
	if err != nil {
		t.Fatal(err)
	}
	if data, n, _, _ := pair.Values(); data != 0x7f0000000040 || n != 9 || pair.c.device != 3 {
		t.Errorf("got %x, %d on %d", data, n, pair.c.device)
	}
	m.Release()
	if Count().Live == 0 {
		t.Error("the pair keeps no reference")
	}
	pair.Free()
}

// Without a device that was opened, nothing is taken over.
func TestDeviceNotOpen(t *testing.T) {
	balanced(t)
	if _, err := FromDevice(60, &gpu.Memory{}, nil); err == nil {
		t.Error("expected an error, got none")
	}
	if SettleDevice(60) == nil {
		t.Error("expected an error, got none")
	}
	if err := OpenDevice(60); err == nil {
		t.Error("expected an error, got none")
	}
	for _, device := range []int{-1, 60, 64, 1 << 30} {
		if n := DeviceBytes(device); n != 0 {
			t.Errorf("%d bytes on device %d", n, device)
		}
	}
}
