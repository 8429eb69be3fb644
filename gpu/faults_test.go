package gpu

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// silent are the calls whose failure may stay without an error: the pop of a
// context is made up for, and the words of another error may be fewer.
var silent = map[string]bool{
	"cuCtxPopCurrent_v2": true, "cuGetErrorName": true, "cuGetErrorString": true,
}

// forget lets the next question about a device go to the driver.
func forget() {
	properties.Clear()
	names.Clear()
}

// workFaults fails every call of everything, one at a time.
func workFaults(t *testing.T) {
	defer EndFaults()
	for _, device := range []int{-1, 1} {
		onThread(t, device, func() {
			before := alive()
			forget()
			Inject(Fault{})
			if err := everything(0); err != nil {
				t.Fatal(err)
			}
			calls := Calls()
			EndFaults()
			t.Logf("%d calls", calls)
			if calls < 150 {
				t.Errorf("calls: expected at least 150, got %d", calls)
			}
			failed := map[string]int{}
			for n := int64(1); n <= calls; n++ {
				forget()
				Inject(Fault{First: n, Code: 999})
				err := everything(0)
				name := Faulted()
				EndFaults()
				failed[name]++
				switch e := (*Error)(nil); {
				case err == nil:
					if !silent[name] {
						t.Errorf("call %d, %s: expected an error, got none", n, name)
					}
				case !errors.As(err, &e):
					t.Errorf("call %d, %s: expected an *Error, got %T: %v", n, name, err, err)
				case e.Code != 999 && e.Code != OutOfMemory,
					e.Code == 999 && e.Call != strings.TrimSuffix(name, "_v2"):
					t.Errorf("call %d, %s: got %v", n, name, err)
				}
				equal(t, "alive after "+name, alive(), before)
			}
			if len(failed) < 45 {
				t.Errorf("functions that failed: expected at least 45, got %v", failed)
			}
			if err := everything(0); err != nil {
				t.Errorf("after all faults: %v", err)
			}
		})
	}
}

// workSticky lets everything fail from some call on, as after a kernel that
// crashed, also what gives back.
func workSticky(t *testing.T) {
	defer EndFaults()
	onThread(t, -1, func() {
		before := alive()
		c := must(Retain(0))(t)
		s := must(c.NewStream())(t)
		pool := must(c.NewPool(0))(t)
		m := must(pool.Alloc(s, 100))(t)
		Inject(Fault{First: 1, Code: 700, Sticky: true})
		for range 3 {
			for _, f := range []func() error{
				s.Synchronize, s.Close, c.Synchronize, c.Close, pool.reservedOrClose,
				func() error { return m.Free(s) },
				func() error { return c.Do(func() error { t.Error("f ran"); return nil }) },
			} {
				if err := f(); code(err) != 700 {
					t.Errorf("expected result 700, got %v", err)
				}
			}
		}
		equal(t, "used", pool.Used(), int64(100))
		EndFaults()
		ok(t, m.Free(s))
		ok(t, m.Free(s))
		equal(t, "used", pool.Used(), int64(0))
		ok(t, pool.Close())
		ok(t, s.Close())
		ok(t, c.Close())
		equal(t, "alive", alive(), before)
	})
}

// reservedOrClose is a call that a pool makes in any case.
func (p *MemoryPool) reservedOrClose() error {
	if !p.Ordered() {
		return p.context.Synchronize()
	}
	return p.Close()
}

// workCrowd does everything on many threads at once, with arrays that share pages.
func workCrowd(t *testing.T) {
	before := alive()
	array := make([]byte, 40*4096)
	var crowd sync.WaitGroup
	for i := range 16 {
		crowd.Go(func() {
			for range 10 {
				if err := everything(i % 2); err != nil {
					t.Error(err)
				}
				c, err := Retain(i % 2)
				if err != nil {
					t.Error(err)
					return
				}
				r, err := c.Register(unsafe.Pointer(&array[1000*i]), 20000)
				ok(t, err)
				ok(t, r.Close())
				ok(t, c.Close())
			}
		})
	}
	crowd.Wait()
	equal(t, "alive", alive(), before)
	equal(t, "pages", len(registry.runs), 0)
}

// workNoGarbage: what a batch does again and again allocates nothing.
func workNoGarbage(t *testing.T) {
	c := must(Retain(0))(t)
	defer c.Close()
	s := must(c.NewStream())(t)
	defer s.Close()
	e := must(c.NewEvent())(t)
	defer e.Close()
	module := must(c.Load([]byte("good")))(t)
	defer module.Close()
	kernel := must(KernelOf[mix](module, "mix_24"))(t)
	pool := must(c.NewPool(0))(t)
	defer pool.Close()
	room := must(pool.Alloc(s, 64))(t)
	defer room.Free(s)
	n := testing.AllocsPerRun(20, func() {
		args := sample
		args.Count++
		m, err := pool.Alloc(s, 64)
		if err == nil {
			err = kernel.Launch(s, Shape{Grid: [3]uint32{4}, Block: [3]uint32{64}}, &args)
		}
		if err == nil {
			err = s.Copy(room.Address, m.Address, 64)
		}
		if err == nil {
			err = e.Record(s)
		}
		if err == nil {
			err = s.Wait(e)
		}
		if err == nil {
			err = m.Free(s)
		}
		if err != nil {
			t.Error(err)
		}
	})
	// The race detector allocates by itself, as does memory that is not of a pool.
	if n != 0 && pool.Ordered() && !raceDetector {
		t.Errorf("allocations in a batch: expected 0, got %g", n)
	}
}

// TestFaultVariable fails the first calls of whole processes.
func TestFaultVariable(t *testing.T) {
	folder := fakeDriver(t)
	got, _ := inProcess(t, "ask", folder, "PYGSAMPLER_FAULT=1:2")
	equal(t, "the first call", got[0].CountErr, (*Error)(nil))
	equal(t, "available", got[0].Available, false)
	got, _ = inProcess(t, "ask", folder, "PYGSAMPLER_FAULT=1 ")
	if err := got[0].CountErr; err == nil || err.Text != `expected CALL, CALL:CODE or CALL:CODE:sticky, got "1 "` {
		t.Errorf("a value that says nothing: got %v", err)
	}
	got, _ = inProcess(t, "ask", folder, "PYGSAMPLER_FAULT=0")
	equal(t, "no call", got[0].Names, []string{"Fake GPU 0", "Fake GPU 1"})

	for value, want := range map[string]Fault{
		"7": {7, 999, false}, "7:2": {7, 2, false}, "7:2:sticky": {7, 2, true}, "0": {0, 999, false},
	} {
		fault, err := parseFault(value)
		if fault != want || err != nil {
			t.Errorf("%q: expected %v, got %v, %v", value, want, fault, err)
		}
	}
	for _, value := range []string{"x", "-1", "1:0", "1:x", "1:2:3", "1:2:sticky:", "1:70000", ":"} {
		if fault, err := parseFault(value); err == nil || !strings.Contains(err.Error(), "expected CALL") {
			t.Errorf("%q: expected an error, got %v, %v", value, fault, err)
		}
	}
}
