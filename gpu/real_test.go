package gpu

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// The tests on a true device. Without one they skip, or fail where the variable
// PYGSAMPLER_REQUIRE names cuda.

func needDevice(t testing.TB) {
	t.Helper()
	if _, err := DeviceName(0); err != nil {
		if slices.Contains(strings.Split(os.Getenv("PYGSAMPLER_REQUIRE"), ","), "cuda") {
			t.Fatalf("PYGSAMPLER_REQUIRE asks for cuda: %v", err)
		}
		t.Skip(err)
	}
}

// addArgs: To[i] = From[i] + Value for all i < Count.
type addArgs struct {
	To, From     Address
	Count, Value uint32
}

// meetArgs: every block counts itself Rounds times at Counter and waits for all
// others each time; blocks that wait in vain count themselves at Late.
type meetArgs struct {
	Counter, Late Address
	Rounds, Pad   uint32
}

// spinArgs: after so many nanoseconds, *To = Value.
type spinArgs struct {
	To          Address
	Nanoseconds uint64
	Value, Pad  uint32
}

// rig is what most tests here need: a device, its kernels, a stream, memory.
type rig struct {
	*Context
	add  Kernel[addArgs]
	meet Kernel[meetArgs]
	spin Kernel[spinArgs]
	none Kernel[mix]
	s    Stream
	pool *MemoryPool
}

func newRig(t testing.TB, device int) *rig {
	t.Helper()
	needDevice(t)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	closing := func(f func() error) {
		t.Cleanup(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	r := &rig{}
	var err error
	r.Context, err = Retain(device)
	check(err)
	closing(r.Close)
	module, err := r.Load([]byte(ptx))
	check(err)
	closing(module.Close)
	r.add, err = KernelOf[addArgs](module, "add")
	check(err)
	r.meet, err = KernelOf[meetArgs](module, "meet")
	check(err)
	r.spin, err = KernelOf[spinArgs](module, "spin")
	check(err)
	r.none, err = KernelOf[mix](module, "mix_24")
	check(err)
	r.s, err = r.NewStream()
	check(err)
	closing(r.s.Close)
	r.pool, err = r.NewPool(64 << 20)
	check(err)
	closing(r.pool.Close)
	return r
}

// words is a block of n words of device memory, freed when the test ends.
func (r *rig) words(t testing.TB, n int) Memory {
	t.Helper()
	m, err := r.pool.Alloc(r.s, uint64(4*n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Free(r.s); err != nil {
			t.Error(err)
		}
	})
	return m
}

func line(threads int) Shape {
	return Shape{Grid: [3]uint32{uint32(threads+255) / 256}, Block: [3]uint32{256}}
}

func TestRealContext(t *testing.T) {
	r := newRig(t, 0)
	again := must(Retain(0))(t)
	equal(t, "handle of another hold", again.Handle(), r.Handle())
	ok(t, again.Close())
	// A thread with a foreign context, as a library of the user's may leave it.
	ok(t, r.Do(func() error {
		foreign := cu.CtxCreate(0, cu.Device(r.number))
		defer foreign.Destroy()
		stream := cu.StreamCreate()
		defer stream.Destroy()
		out := make([]uint32, 4)
		m := must(r.pool.Alloc(r.s, 16))(t)
		ok(t, r.s.Fill32(m.Address, 5, 4))
		ok(t, r.s.Download(unsafe.Pointer(&out[0]), m.Address, 16))
		ok(t, r.s.Synchronize())
		ok(t, m.Free(r.s))
		equal(t, "words", out, []uint32{5, 5, 5, 5})
		equal(t, "current context", cu.CtxGetCurrent(), foreign)
		_, err := r.Wrap(uintptr(stream))
		wantText(t, err, "got one of another context")
		return nil
	}))
	own := must(r.Wrap(r.s.Handle()))(t)
	equal(t, "own stream wrapped", own.Handle(), r.s.Handle())
	t.Logf("%+v", r.Properties())
}

func TestRealLaunch(t *testing.T) {
	r := newRig(t, 0)
	const n = 100_003
	m := r.words(t, 2*n)
	from, to := m.Address, m.Address+4*n
	out := must(r.AllocPinned(4 * n))(t)
	defer out.Close()
	in := make([]uint32, n)
	for i := range in {
		in[i] = uint32(i * i)
	}
	for handle := range PerThreadStream + 1 {
		s := must(r.Wrap(handle))(t)
		ok(t, r.s.Synchronize())
		ok(t, s.Upload(from, unsafe.Pointer(&in[0]), 4*n))
		shape := line(n)
		if handle == 2 { // more dynamic shared memory than without asking
			shape.Shared = 100 << 10
			wantText(t, r.add.Launch(s, shape, &addArgs{}), "cuLaunchKernel", "kernel add, launch of [391 0 0] blocks")
			ok(t, r.add.AllowShared(100<<10))
		}
		ok(t, r.add.Launch(s, shape, &addArgs{to, from, n, 7 + uint32(handle)}))
		ok(t, s.Copy(out.Address, to, 4*n))
		ok(t, s.Synchronize())
		got := unsafe.Slice((*uint32)(out.Pointer), n)
		for i := range got {
			if got[i] != in[i]+7+uint32(handle) {
				t.Fatalf("stream %d, word %d: expected %d, got %d", handle, i, in[i]+7+uint32(handle), got[i])
			}
		}
	}
	if registers := must(r.add.Attribute(Registers))(t); registers < 1 || registers > 64 {
		t.Errorf("registers: got %d", registers)
	}
	equal(t, "device memory", must(Locate(to+8))(t), Location{Device: 0})
	equal(t, "pinned memory", must(Locate(out.Address))(t), Location{Device: 0, Host: true})
	equal(t, "memory of Go's", must(Locate(Address(uintptr(unsafe.Pointer(&in[0])))))(t), Location{Device: -1, Host: true})
	if reserved := must(r.pool.Reserved())(t); r.pool.Ordered() && reserved < r.pool.Used() {
		t.Errorf("reserved: expected at least %d, got %d", r.pool.Used(), reserved)
	}
}

func TestRealCooperative(t *testing.T) {
	r := newRig(t, 0)
	if !r.Properties().Cooperative {
		t.Fatal("expected a device with cooperative launches")
	}
	blocks := must(r.meet.Resident(256, 0))(t)
	m := r.words(t, 2)
	const rounds = 1000
	out := make([]uint32, 2)
	ok(t, r.s.Fill32(m.Address, 0, 2))
	shape := Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{256}, Cooperative: true}
	ok(t, r.meet.Launch(r.s, shape, &meetArgs{Counter: m.Address, Late: m.Address + 4, Rounds: rounds}))
	ok(t, r.s.Download(unsafe.Pointer(&out[0]), m.Address, 8))
	ok(t, r.s.Synchronize())
	equal(t, "met, late", out, []uint32{uint32(blocks) * rounds, 0})
	shape.Grid[0]++
	err := r.meet.Launch(r.s, shape, &meetArgs{})
	wantText(t, err, "cuLaunchCooperativeKernel: CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720)")
	t.Log(blocks, "blocks;", err)
}

func TestRealEvents(t *testing.T) {
	r := newRig(t, 0)
	second := must(r.NewStream())(t)
	defer second.Close()
	reached := must(r.NewEvent())(t)
	defer reached.Close()
	start, stop := must(r.NewTimer())(t), must(r.NewTimer())(t)
	defer start.Close()
	defer stop.Close()
	m := r.words(t, 1)
	out := must(r.AllocPinned(4))(t)
	defer out.Close()
	ok(t, r.s.Fill32(m.Address, 1, 1))
	ok(t, r.s.Synchronize())
	ok(t, start.Record(r.s))
	one := Shape{Grid: [3]uint32{1}, Block: [3]uint32{1}}
	ok(t, r.spin.Launch(r.s, one, &spinArgs{To: m.Address, Nanoseconds: 50_000_000, Value: 7}))
	ok(t, stop.Record(r.s))
	ok(t, reached.Record(r.s))
	ok(t, second.Wait(reached))
	ok(t, second.Copy(out.Address, m.Address, 4))
	for what, done := range map[string]func() (bool, error){"event": reached.Done, "stream": second.Done} {
		if is, err := done(); is || err != nil {
			t.Errorf("%s: expected it to be under way, got %v, %v", what, is, err)
		}
	}
	ok(t, second.Synchronize())
	equal(t, "word", *(*uint32)(out.Pointer), uint32(7))
	equal(t, "done", must(reached.Done())(t), true)
	ok(t, reached.Synchronize())
	if took := must(Elapsed(start, stop))(t); took < 50*time.Millisecond {
		t.Errorf("elapsed: expected 50 ms at least, which the kernel spins, got %v", took)
	}
}

func TestRealErrors(t *testing.T) {
	r := newRig(t, 0)
	_, err := r.pool.Alloc(r.s, 1<<45)
	wantText(t, err, "CUDA_ERROR_OUT_OF_MEMORY (2)", "asked for 35184372088832 bytes of device memory on device 0, which has ", " bytes free")
	t.Log(err)
	_, err = r.Load([]byte(strings.Replace(ptx, "mad.lo.s32", "mad.wrong", 1)))
	wantText(t, err, "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218)", "line 18", "Unknown modifier '.wrong'")
	t.Log(err)
	_, err = r.Load([]byte("\x7fELF, but not much more than that, in fact nothing, yet as long as a header would be"))
	if err == nil {
		t.Error("a cubin that is none: expected an error, got none")
	}
	t.Log(err)
	module := must(r.Load([]byte(ptx)))(t)
	defer module.Close()
	_, err = KernelOf[addArgs](module, "missing")
	wantText(t, err, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)", "kernel missing")
	_, err = KernelOf[[2]uint64](module, "add")
	if version := must(DriverVersion())(t); version >= 12040 {
		wantText(t, err, "kernel add: expected one parameter of 16 bytes, got one of 24")
	}
	none := must(r.pool.Alloc(r.s, 64))(t)
	ok(t, none.Free(r.s))
	ok(t, none.Free(r.s))
}

// TestRealRegister lets a kernel read memory of others: of malloc, as it were, and
// of a file that this process can only read.
func TestRealRegister(t *testing.T) {
	r := newRig(t, 0)
	const n = 50_000
	path := filepath.Join(t.TempDir(), "file")
	content := make([]uint32, n+3*1024)
	for i := range content {
		content[i] = uint32(3 * i)
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&content[0])), 4*len(content))
	ok(t, os.WriteFile(path, raw, 0o644))
	file := must(os.Open(path))(t)
	defer file.Close()
	for _, protection := range []int{syscall.PROT_READ | syscall.PROT_WRITE, syscall.PROT_READ} {
		mapped := must(syscall.Mmap(int(file.Fd()), 0, len(raw), protection, syscall.MAP_PRIVATE))(t)
		if protection&syscall.PROT_WRITE != 0 {
			copy(mapped, raw)
		}
		to := r.words(t, n)
		out := make([]uint32, n)
		// The second array begins in the page where the first one ends.
		first, err := r.Register(unsafe.Pointer(&mapped[100]), 4*1000)
		if err != nil && protection&syscall.PROT_WRITE == 0 && !r.Properties().RegistersReadOnly {
			t.Logf("a file that can only be read, on a device that cannot register such: %v", err)
			continue
		}
		ok(t, err)
		second := must(r.Register(unsafe.Pointer(&mapped[4*1025]), 4*n))(t)
		ok(t, r.add.Launch(r.s, line(1000), &addArgs{to.Address, first.Address, 1000, 9}))
		ok(t, r.add.Launch(r.s, line(n), &addArgs{to.Address, second.Address, n, 1}))
		ok(t, r.s.Download(unsafe.Pointer(&out[0]), to.Address, 4*n))
		ok(t, r.s.Synchronize())
		for i := range out {
			if want := content[1025+i] + 1; out[i] != want {
				t.Fatalf("word %d: expected %d, got %d", i, want, out[i])
			}
		}
		ok(t, first.Close())
		ok(t, second.Close())
		ok(t, syscall.Munmap(mapped))
	}
	pinned := must(r.AllocPinned(3 * 4096))(t)
	inside := must(r.Register(unsafe.Add(pinned.Pointer, 8), 3*4096-8))(t)
	equal(t, "address in memory that was pinned before", inside.Address, pinned.Address+8)
	ok(t, inside.Close())
	_, err := r.Register(unsafe.Add(pinned.Pointer, 8), 1<<20)
	wantText(t, err, "cuMemHostRegister", "1048576 bytes of host memory, of which a part may be pinned already")
	t.Log(err)
	ok(t, pinned.Close())
}

// TestRealCrowd lets many threads work at once, on all devices.
func TestRealCrowd(t *testing.T) {
	needDevice(t)
	devices := must(DeviceCount())(t)
	var crowd sync.WaitGroup
	for i := range 2 * devices {
		r := newRig(t, i%devices)
		crowd.Go(func() {
			const n = 4096
			var err error
			for round := range uint32(200) {
				out := make([]uint32, n)
				m, failed := r.pool.Alloc(r.s, 4*n)
				err = errors.Join(err, failed,
					r.s.Fill32(m.Address, round, n),
					r.add.Launch(r.s, line(n), &addArgs{m.Address, m.Address, n, round}),
					r.s.Download(unsafe.Pointer(&out[0]), m.Address, 4*n),
					m.Free(r.s), r.s.Synchronize())
				if out[0] != 2*round || out[n-1] != 2*round {
					t.Errorf("round %d: expected %d, got %d, %d", round, 2*round, out[0], out[n-1])
				}
			}
			ok(t, err)
			equal(t, "used", r.pool.Used(), int64(0))
		})
	}
	crowd.Wait()
}

// TestRealFaults fails every call of everything, one at a time; the driver's
// memory is then as before.
func TestRealFaults(t *testing.T) {
	r := newRig(t, 0)
	defer EndFaults()
	ok(t, everything(0))
	ok(t, r.Synchronize())
	before, _, err := r.MemoryInfo()
	ok(t, err)
	Inject(Fault{})
	ok(t, everything(0))
	calls := Calls()
	for n := int64(1); n <= calls; n++ {
		Inject(Fault{First: n, Code: 999})
		err := everything(0)
		name := Faulted()
		EndFaults()
		if name == "" && n > 150 {
			break // fewer questions were needed than at the first time
		}
		if err == nil && !silent[name] {
			t.Errorf("call %d, %s: expected an error, got none", n, name)
		}
	}
	ok(t, everything(0))
	ok(t, r.Synchronize())
	after, _, err := r.MemoryInfo()
	ok(t, err)
	if lost := before - after; lost > 4<<20 {
		t.Errorf("memory: %d bytes fewer are free", lost)
	}
	t.Logf("%d calls", calls)
}
