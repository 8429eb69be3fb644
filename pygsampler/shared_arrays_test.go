package pygsampler

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Two places on one device: an array that is cut between them, one piece of which both have.
func TestPeerArrays(t *testing.T) {
	onGPU(t)
	unit, err := PeerUnit(0, true)
	if err != nil {
		t.Fatal(err)
	}
	layout := []ArrayPiece{{unit, 0}, {unit, everyones}, {2 * unit, 1}}
	host := make([]byte, 4*unit-100)
	for i := range host {
		host[i] = byte(i / 1000)
	}
	address := int64(uintptr(unsafe.Pointer(&host[0])))
	made := func(place int64) *SharedArray {
		a, err := NewPeerArray(0, place, layout, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
		return a
	}
	wrong := func(err error, text string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("expected %q, got %v", text, err)
		}
	}
	a, b := made(0), made(1)
	_, err = a.Map(address, int64(len(host)))
	wrong(err, "piece 2 of 3: expected place 1 to give it first")
	if err := a.ShareWith(b); err != nil {
		t.Fatal(err)
	}
	wrong(a.ShareWith(b), "piece 0: expected one that is lacking, got one that is there")
	// The other piece comes as from another process.
	descriptor, err := b.Export(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Import(2, descriptor); err != nil {
		t.Fatal(err)
	}
	wrong(a.Import(2, descriptor), "piece 2: expected one that is lacking")
	wrong(a.Import(7, descriptor), "piece: expected a number in [0, 3), got 7")
	if err := os.NewFile(uintptr(descriptor), "piece").Close(); err != nil {
		t.Error(err)
	}
	for _, piece := range []int64{-1, 1, 2, 3} {
		_, err = a.Export(piece)
		wrong(err, "piece: expected one of place 0")
	}
	_, err = a.Map(address, 4*unit+1)
	wrong(err, "array: expected at most")
	var there []memory.Memory
	for _, p := range []*SharedArray{a, b} {
		m, err := p.Map(address, int64(len(host)))
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, memory.FromAddress(m))
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	wrong(a.ShareWith(b), "got one that was closed")
	_, err = a.Map(address, 1)
	wrong(err, "got one that was closed")
	for _, m := range there {
		back, err := DeviceDownload(0, int64(uintptr(m.Pointer())), int64(len(host)), 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := memory.View[byte](int64(uintptr(memory.FromAddress(back).Pointer())), int64(len(host))); string(got) != string(host) {
			t.Error("other bytes than the host's")
		}
		memory.FromAddress(back).Release()
	}
	if s, err := DeviceStats(0); err != nil || s.Used != 5*unit {
		t.Errorf("used: expected %d, got %+v, %v", 5*unit, s, err)
	}
	for _, m := range there {
		m.Release()
	}
	for _, words := range [][]int64{{0, 0}, {unit, -2}} {
		_, err := PeerLayoutAt(int64(uintptr(unsafe.Pointer(&words[0]))), 1)
		wrong(err, "pieces[0]: expected a size and a place")
	}
	_, err = PeerLayoutAt(0, 1)
	wrong(err, "pieces: expected 1 to")
	if _, err := PeerReaches(0, 99); err == nil {
		t.Error("expected an error, got none")
	}
}

// Each call of the driver fails once on an array's way to two places: there is an error or none, and nothing is lost.
func TestPeerArraysWithFaults(t *testing.T) {
	onGPU(t)
	unit, err := PeerUnit(0, true)
	if err != nil {
		t.Fatal(err)
	}
	layout := []ArrayPiece{{unit, 0}, {unit, everyones}, {unit, 1}}
	host := make([]byte, 3*unit)
	address := int64(uintptr(unsafe.Pointer(&host[0])))
	share := func() (err error) {
		var made []*SharedArray
		defer func() {
			for _, a := range made {
				if failed := a.Close(); failed != nil {
					err = errors.Join(err, failed, a.Close())
				}
			}
		}()
		for place := range int64(2) {
			a, err := NewPeerArray(0, place, layout, true)
			if err != nil {
				return err
			}
			made = append(made, a)
		}
		if err := errors.Join(made[0].ShareWith(made[1]), made[1].ShareWith(made[0])); err != nil {
			return err
		}
		for _, a := range made {
			m, err := a.Map(address, int64(len(host)))
			if err != nil {
				return err
			}
			memory.FromAddress(m).Release()
		}
		return nil
	}
	defer gpu.EndFaults()
	if err := share(); err != nil {
		t.Fatal(err)
	}
	before, failed := alive(), 0
	for n := int64(1); ; n++ {
		gpu.Inject(gpu.Fault{First: n, Code: 999})
		err := share()
		fault := gpu.Faulted()
		gpu.EndFaults()
		if fault == "" {
			break
		}
		if err != nil {
			failed++
			if kind, _ := KindOf(err); kind != KindCuda {
				t.Errorf("call %d, %s: expected a CudaError, got %v", n, fault, err)
			}
		}
		if now := alive(); now != before {
			t.Fatalf("call %d, %s: alive %v, %v before", n, fault, now, before)
		}
	}
	if failed < 20 {
		t.Errorf("expected 20 calls that fail and more, got %d", failed)
	}
}
