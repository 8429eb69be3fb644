package gpu

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// work are the tests on the fake driver that does work. They run in a process of
// their own, with that driver.
var work = map[string]func(*testing.T){
	"contexts":   workContexts,
	"batch":      workBatch,
	"pages":      workPages,
	"refusals":   workRefusals,
	"kernels":    workKernels,
	"faults":     workFaults,
	"sticky":     workSticky,
	"crowd":      workCrowd,
	"no garbage": workNoGarbage,
	"spans":      workSpans,
	"refused":    workSpanRefusals,
}

// TestWork runs this test program once more for each kind of fake driver.
func TestWork(t *testing.T) {
	if os.Getenv("GPU_TEST_ROLE") == "work" {
		for _, name := range slices.Sorted(maps.Keys(work)) {
			t.Run(name, work[name])
		}
		return
	}
	folder := fakeDriver(t, "-DWORKING")
	for _, setting := range []string{"FAKE_CUDA_POOLS=1", "FAKE_CUDA_POOLS=0"} {
		t.Run(setting, func(t *testing.T) {
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			command := exec.Command(program, "-test.run=^TestWork$", "-test.v")
			command.Env = append(os.Environ(), setting, "GPU_TEST_ROLE=work", "LD_LIBRARY_PATH="+folder,
				"FAKE_CUDA_LOG="+filepath.Join(t.TempDir(), "log"))
			out, err := command.CombinedOutput()
			if passed := strings.Count(string(out), "    --- PASS: "); err != nil || passed != len(work) {
				t.Errorf("expected %d tests to pass, got %d, %v\n%s", len(work), passed, err, out)
			}
		})
	}
}

// traced runs f and returns what the fake driver noted meanwhile.
func traced(t *testing.T, f func()) []string {
	t.Helper()
	log := os.Getenv("FAKE_CUDA_LOG")
	if err := os.WriteFile(log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// alive is how many objects of each kind the fake driver has.
func alive() map[string]int {
	kinds := []string{"context", "stream", "event", "pool", "memory", "pinned", "registered", "module", "piece"}
	found := map[string]int{}
	for i, kind := range kinds {
		if n := cu.Device(40).Attribute(cu.DeviceAttribute(100000 + i)); n != 0 {
			found[kind] = n
		}
	}
	return found
}

// onThread runs f on a thread whose current context is that of device i, as torch
// leaves its threads, or none where i is -1, and checks that f leaves it so.
func onThread(t *testing.T, i int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var want cu.Context
	if i >= 0 {
		c := must(Retain(i))(t)
		defer c.Close()
		want = cu.Context(c.handle)
		cu.CtxSetCurrent(want)
	}
	f()
	if got := cu.CtxGetCurrent(); got != want {
		t.Errorf("current context: expected %x, got %x", want, got)
	}
	cu.CtxSetCurrent(0)
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// owner closes what an operation made, last first. A Close that fails is tried
// again, as the package promises that it may be.
type owner struct{ closers []func() error }

func (o *owner) add(f func() error) { o.closers = append(o.closers, f) }

func (o *owner) close(err *error) {
	for _, f := range slices.Backward(o.closers) {
		if failed := f(); failed != nil {
			*err = errors.Join(*err, failed, f())
		}
	}
}

// mix is the Args of the fake kernel mix_24.
type mix struct {
	To    Address
	Count int32
	Pad   [3]uint8
	Last  uint8
	Seed  uint64
}

var sample = mix{To: 0x0102030405060708, Count: 0x0a0b0c0d, Last: 0xff, Seed: 0x1112131415161718}

// onFake tells the process that has the fake driver.
var onFake = os.Getenv("GPU_TEST_ROLE") == "work"

// everything makes every call of the package once or more, on device i.
func everything(i int) (err error) {
	var own owner
	defer own.close(&err)
	c, err := Retain(i)
	if err != nil {
		return err
	}
	own.add(c.Close)
	s, err := c.NewStream()
	if err != nil {
		return err
	}
	own.add(s.Close)
	other, err := c.Wrap(s.Handle())
	if err != nil {
		return err
	}
	e, err := c.NewEvent()
	if err != nil {
		return err
	}
	own.add(e.Close)
	timer, err := c.NewTimer()
	if err != nil {
		return err
	}
	own.add(timer.Close)
	pool, err := c.NewPool(1 << 20)
	if err != nil {
		return err
	}
	own.add(pool.Close)
	m, err := pool.Alloc(s, 64)
	if err != nil {
		return err
	}
	own.add(func() error { return m.Free(s) })
	pinned, err := c.AllocPinned(64)
	if err != nil {
		return err
	}
	own.add(pinned.Close)
	array := make([]byte, 3*4096)
	registered, err := c.Register(unsafe.Pointer(&array[100]), 8192)
	if err != nil {
		return err
	}
	own.add(registered.Close)
	image := []byte("good")
	if !onFake {
		image = []byte(ptx)
	}
	module, err := c.Load(image)
	if err != nil {
		return err
	}
	own.add(module.Close)
	kernel, err := KernelOf[mix](module, "mix_24")
	if err != nil {
		return err
	}
	_, err = pool.Alloc(s, 1<<40)
	if code(err) != OutOfMemory || !strings.Contains(err.Error(), "bytes free") {
		return fmt.Errorf("2^40 bytes: %w", err)
	}
	args := sample
	values := make([]byte, 64)
	here := unsafe.Pointer(&values[0])
	peers := []func() error{
		func() error { return c.EnablePeer(c) },
		func() error { _, err := CanAccessPeer(0, 1); return err },
	}
	if !onFake {
		peers = nil // no device is its own peer, and there may be no other
	}
	for _, step := range append(peers, []func() error{
		func() error { return kernel.AllowShared(65536) },
		func() error { _, err := kernel.Attribute(Registers); return err },
		func() error { _, err := kernel.Resident(256, 0); return err },
		func() error { return s.Upload(m.Address, here, 64) },
		func() error { return s.Fill8(m.Address, 7, 32) },
		func() error { return s.Fill32(m.Address+32, 0x01020304, 8) },
		func() error { return s.Copy(pinned.Address, m.Address, 64) },
		func() error { return s.Download(here, m.Address, 64) },
		func() error { return timer.Record(s) },
		func() error { return kernel.Launch(s, Shape{Grid: [3]uint32{4}, Block: [3]uint32{64}}, &args) },
		func() error {
			shape := Shape{Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{8, 4, 2}, Shared: 128, Cooperative: true}
			return kernel.Launch(s, shape, &args)
		},
		func() error { return e.Record(other) },
		func() error { return s.Wait(e) },
		func() error { return until(e.Done) },
		func() error { return until(s.Done) },
		func() error { return e.Synchronize() },
		func() error { return s.Synchronize() },
		func() error { _, err := Elapsed(timer, timer); return err },
		func() error { _, err := Locate(m.Address); return err },
		func() error { return spanning(c, s) },
		func() error { _, err := DeviceUUID(i); return err },
		func() error { _, err := pool.Reserved(); return err },
		func() error { return pool.Trim(0) },
		func() error { _, _, err := c.MemoryInfo(); return err },
		func() error { return c.Do(c.Synchronize) },
	}...) {
		if err := step(); err != nil {
			return err
		}
	}
	if pool.Used() != 64 {
		return fmt.Errorf("used: expected 64, got %d", pool.Used())
	}
	return nil
}

func until(done func() (bool, error)) error {
	questions, pause := 2, time.Duration(0) // the fake driver has done it at the second
	if !onFake {
		questions, pause = 1000, time.Millisecond
	}
	for range questions {
		if is, err := done(); is || err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return errors.New("expected it done by now")
}
