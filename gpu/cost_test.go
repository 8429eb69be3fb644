package gpu

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// What calls cost the host. The stream is emptied before it could fill up and
// make a launch wait for the device.

const burst = 256

func costs(b *testing.B, r *rig, call func() error) {
	b.Helper()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%burst == burst-1 {
			b.StopTimer()
			if err := r.s.Synchronize(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCost(b *testing.B) {
	r := newRig(b, 0)
	shape := Shape{Grid: [3]uint32{1}, Block: [3]uint32{32}}
	together := shape
	together.Cooperative = true
	args := sample
	event, err := r.NewEvent()
	if err != nil {
		b.Fatal(err)
	}
	defer event.Close()
	calls := map[string]func() error{
		"launch":      func() error { return r.none.Launch(r.s, shape, &args) },
		"cooperative": func() error { return r.none.Launch(r.s, together, &args) },
		"record":      func() error { return event.Record(r.s) },
		"wait":        func() error { return r.s.Wait(event) },
		"done":        func() error { _, err := event.Done(); return err },
		"alloc and free": func() error {
			m, err := r.pool.Alloc(r.s, 1<<20)
			if err != nil {
				return err
			}
			return m.Free(r.s)
		},
	}
	for name, call := range calls {
		b.Run(name, func(b *testing.B) { costs(b, r, call) })
		b.Run(name+" in Do", func(b *testing.B) {
			if err := r.Do(func() error { costs(b, r, call); return nil }); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.Run("Do", func(b *testing.B) {
		costs(b, r, func() error { return r.Do(func() error { return nil }) })
	})
	b.Run("launch by mumax", func(b *testing.B) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cu.CtxSetCurrent(cu.Context(r.Handle()))
		defer cu.CtxSetCurrent(0)
		words := []uint64{1, 2, 3}
		parameters := []unsafe.Pointer{unsafe.Pointer(&words[0])}
		costs(b, r, func() error {
			return try("cuLaunchKernel", func() {
				cu.LaunchKernel(cu.Function(r.none.handle), 1, 1, 1, 32, 1, 1, 0, cu.Stream(r.s.Handle()), parameters)
			})
		})
	})
}
