package gpu

import (
	"errors"
	"syscall"
	"testing"
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// The cost of calls for the host. The stream is emptied before it could fill up and
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
	calls := []struct {
		name string
		call func() error
	}{
		{"launch", func() error { return r.none.Launch(r.s, shape, &args) }},
		{"cooperative", func() error { return r.none.Launch(r.s, together, &args) }},
		{"record", func() error { return event.Record(r.s) }},
		{"wait", func() error { return r.s.Wait(event) }},
		{"done", func() error { _, err := event.Done(); return err }},
		{"alloc and free", func() error {
			m, err := r.pool.Alloc(r.s, 1<<20)
			if err != nil {
				return err
			}
			return m.Free(r.s)
		}},
		{"launch and wait for the stream", func() error {
			if err := r.none.Launch(r.s, together, &args); err != nil {
				return err
			}
			return r.s.Synchronize()
		}},
		{"launch and wait for an event", func() error {
			if err := errors.Join(r.none.Launch(r.s, together, &args), event.Record(r.s)); err != nil {
				return err
			}
			return event.Synchronize()
		}},
		{"launch and ask an event", func() error {
			err := errors.Join(r.none.Launch(r.s, together, &args), event.Record(r.s))
			for done := false; !done && err == nil; {
				done, err = event.Done()
			}
			return err
		}},
	}
	for _, c := range calls {
		b.Run(c.name, func(b *testing.B) { costs(b, r, c.call) })
		b.Run(c.name+" in Do", func(b *testing.B) {
			if err := r.Do(func() error { costs(b, r, c.call); return nil }); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.Run("Do", func(b *testing.B) {
		costs(b, r, func() error { return r.Do(func() error { return nil }) })
	})
	// Calls that calls.h declares again, and the same by mumax, whose stream is one of ours.
	m, err := r.pool.Alloc(r.s, 1<<10)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Free(r.s)
	page, err := r.AllocPinned(1 << 10)
	if err != nil {
		b.Fatal(err)
	}
	defer page.Close()
	words := []uint64{1, 2, 3}
	parameters := []unsafe.Pointer{unsafe.Pointer(&words[0])}
	stream, at := cu.Stream(r.s.Handle()), cu.DevicePtr(m.Address)
	for _, c := range []struct {
		name   string
		ours   func() error
		theirs func()
	}{
		{"cuLaunchKernel", func() error { return r.none.Launch(r.s, shape, &args) }, func() {
			cu.LaunchKernel(cu.Function(r.none.handle), 1, 1, 1, 32, 1, 1, 0, stream, parameters)
		}},
		{"cuMemsetD32Async", func() error { return r.s.Fill32(m.Address, 0, 64) }, func() { cu.MemsetD32Async(at, 0, 64, stream) }},
		{"cuMemcpyHtoDAsync", func() error { return r.s.Upload(m.Address, page.Pointer, 64) }, func() {
			cu.MemcpyHtoDAsync(at, page.Pointer, 64, stream)
		}},
		{"cuStreamQuery", func() error { _, err := r.s.Done(); return err }, func() { stream.Query() }},
		{"cuStreamSynchronize", func() error { return r.s.Synchronize() }, stream.Synchronize},
	} {
		b.Run(c.name, func(b *testing.B) { costs(b, r, c.ours) })
		b.Run(c.name+" by mumax", func(b *testing.B) {
			err := r.Do(func() error {
				costs(b, r, func() error { return try(c.name, c.theirs) })
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
		b.Run(c.name+" by mumax, each in Do", func(b *testing.B) {
			costs(b, r, func() error { return r.Do(func() error { return try(c.name, c.theirs) }) })
		})
	}
}

// BenchmarkRegister pins and unpins memory that has been written to.
func BenchmarkRegister(b *testing.B) {
	r := newRig(b, 0)
	const size = 1 << 30
	block, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		b.Fatal(err)
	}
	defer syscall.Munmap(block)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	b.SetBytes(size)
	for b.Loop() {
		registered, err := r.Register(unsafe.Pointer(&block[0]), size)
		if err == nil {
			err = registered.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
