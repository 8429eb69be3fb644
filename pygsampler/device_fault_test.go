package pygsampler

import (
	"runtime"
	"testing"

	"github.com/mumax/3/cuda/cu"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// alive is how many objects of each kind the emulator's driver has out: contexts,
// streams, events, pools, memories, pinned, registered, modules, pieces. A true driver does
// not say.
func alive() (counts [9]int) {
	defer func() { _ = recover() }()
	for kind := range counts {
		counts[kind] = cu.Device(40).Attribute(cu.DeviceAttribute(100000 + kind))
	}
	return counts
}

// Each call of the driver fails once, from the graph's way to the device to the end
// of a batch. There is a CudaError or none, nothing is lost, and the next batch is
// the CPU's.
func TestEveryDriverCallFails(t *testing.T) {
	onGPU(t)
	host := random(200).open(t)
	o, seeds, exclude := options(t, "auto", false, 3, 4), []int64{5, 6, 7}, []int64{2, 3}
	call := Request{Seeds: address(seeds), NumSeeds: 3, SeedBits: 64, Exclude: address(exclude), NumExclude: 2}
	own := call
	own.OwnStream = true
	j, err := submit(host, o, call)
	if err != nil {
		t.Fatal(err)
	}
	want := result(t, j)
	// sample does it all; "" and an error where it could not.
	sample := func() (got string, err error) {
		g, err := copyOf(host, false, host)
		defer g.close()
		if err != nil {
			return "", err
		}
		j, err := deviceSubmit(g.device, o, own)
		if err != nil {
			return "", err
		}
		at, _, err := j.Wait(-1)
		if err != nil {
			return "", err
		}
		m := memory.FromAddress(at)
		defer m.Release()
		if err := DeviceOrder(at, 0); err != nil {
			return "", err
		}
		header := m.Header(int64(batch.Homogeneous(2).Words()))
		down, err := DeviceDownload(0, int64(uintptr(m.Pointer())), header[batch.WordSize], 0)
		if err != nil {
			return "", err
		}
		copy(memory.ViewAt[int64](memory.FromAddress(down), 0, int64(len(header))), header)
		return contents(t, down), nil
	}
	cold := func() {
		empty(t)
		opened.of.Store(nil)
		if err := cuda.CloseAll(); err != nil {
			t.Error(err)
		}
	}
	defer gpu.EndFaults()
	live := memory.Count().Live
	cold()
	before := alive()
	for n := int64(1); ; n++ {
		if now := alive(); now != before {
			t.Errorf("before call %d: the driver has %v, and had %v", n, now, before)
			before = now
		}
		gpu.Inject(gpu.Fault{First: n, Code: 999})
		got, err := sample()
		name := gpu.Faulted()
		gpu.EndFaults()
		if name == "" {
			if n < 50 {
				t.Errorf("only %d calls", n)
			}
			t.Logf("%d calls", n-1)
			break
		}
		if err != nil {
			if kind, text := KindOf(err); kind != KindCuda {
				t.Errorf("call %d, %s: got %s: %s", n, name, kind, text)
			}
		} else if got != want {
			t.Errorf("call %d, %s: another batch", n, name)
		}
		if got, err := sample(); err != nil || got != want {
			t.Errorf("after call %d, %s: got %v, another batch: %v", n, name, err, got != want)
		}
		if now := memory.Count().Live; now != live {
			t.Errorf("after call %d, %s: %d memories were lost", n, name, now-live)
			live = now
		}
		cold()
	}
	if _, err := openDevice(0); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(seeds)
	runtime.KeepAlive(exclude)
}
