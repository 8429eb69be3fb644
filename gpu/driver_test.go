package gpu

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// The tests on the fake driver that does work, but for those that fail its calls.

func workContexts(t *testing.T) {
	for _, device := range []int{-1, 0, 1} {
		onThread(t, device, func() {
			before := alive()
			a, b := must(Retain(0))(t), must(Retain(0))(t)
			second := must(Retain(1))(t)
			if a.Handle() != b.Handle() || a.Handle() == second.Handle() {
				t.Errorf("handles: expected %x twice and another, got %x, %x", a.Handle(), b.Handle(), second.Handle())
			}
			equal(t, "device", second.Device(), 1)
			equal(t, "holds", alive()["context"], before["context"]+3)
			current := func() uintptr { return uintptr(cu.CtxGetCurrent()) }
			ok(t, a.Do(func() error {
				equal(t, "inside", current(), a.Handle())
				ok(t, second.Do(func() error {
					equal(t, "two deep", current(), second.Handle())
					ok(t, a.Synchronize())
					equal(t, "after a call", current(), second.Handle())
					return nil
				}))
				equal(t, "outside again", current(), a.Handle())
				return nil
			}))
			broken := errors.New("broken")
			equal(t, "f's error", a.Do(func() error { return broken }), broken)
			func() {
				defer func() { equal(t, "panic", recover(), any("broken")) }()
				a.Do(func() error { panic("broken") })
			}()
			for range 2 { // the second Close does nothing
				ok(t, a.Close())
				ok(t, b.Close())
				ok(t, second.Close())
			}
			equal(t, "alive", alive(), before)
		})
	}
	p := must(DeviceProperties(1))(t)
	p.Pools = false // either, here
	equal(t, "properties", p, Properties{
		Name: "Fake GPU 1", Major: 9, Minor: 1, Multiprocessors: 132, L2: 60 << 20, SharedPerBlock: 49152,
		SharedPerBlockOptIn: 232448, SharedPerMultiprocessor: 233472, ThreadsPerMultiprocessor: 2048,
		BlocksPerMultiprocessor: 32, Cooperative: true, MapsHost: true, RegistersHost: true, Memory: 1 << 30,
		Maps: true, MapsElsewhere: true,
	})
}

// workBatch compares what one batch asks of the driver, in order and in full.
func workBatch(t *testing.T) {
	onThread(t, 1, func() {
		first := len(traced(t, func() {})) // nothing is noted where nothing is done
		equal(t, "notes", first, 1)
		forget()
		var pools bool
		got := traced(t, func() {
			if err := everything(0); err != nil {
				t.Error(err)
			}
			pools = must(DeviceProperties(0))(t).Pools
		})
		args := "08070605040302010d0c0b0a000000ff1817161514131211"
		want := []string{
			"cuDevicePrimaryCtxRetain 0",
			"cuStreamCreate S flags 1", "cuEventCreate E flags 2", "cuEventCreate T flags 0",
			"cuMemPoolCreate P device 0", "cuMemPoolSetAttribute P 4 1048576",
			"cuMemAllocFromPoolAsync 64 P S",
			"cuMemHostAlloc 64 flags 3",
			"cuDevicePrimaryCtxRetain 0", "cuMemHostRegister R N pages flags 3",
			"cuModuleLoadDataEx M good", "cuModuleGetFunction M mix_24",
			"cuFuncGetParamInfo mix_24 0", "cuFuncGetParamInfo mix_24 1",
			"cuMemAllocFromPoolAsync 1099511627776 P S",
			"cuCtxEnablePeerAccess context1",
			"cuFuncSetAttribute mix_24 8 65536", "cuFuncGetAttribute mix_24 4", "cuOccupancy mix_24 256 0",
			"cuMemcpyHtoDAsync 64 S", "cuMemsetD8Async 7 32 S", "cuMemsetD32Async 16909060 8 S",
			"cuMemcpyAsync 64 S", "cuMemcpyDtoHAsync 64 S",
			"cuEventRecord T S",
			"cuLaunchKernel mix_24 4x1x1 64x1x1 0 S " + args,
			"cuLaunchCooperativeKernel mix_24 2x3x4 8x4x2 128 S " + args,
			"cuEventRecord E S", "cuStreamWaitEvent S E",
			"cuEventQuery E", "cuEventQuery E", "cuStreamQuery S", "cuStreamQuery S",
			"cuEventSynchronize E", "cuStreamSynchronize S", "cuEventElapsedTime T T",
			"cuMemCreate 2097152 device 0 handles 1", "cuMemCreate 4194304 device 0 handles 0",
			"cuMemExportToShareableHandle", "cuMemImportFromShareableHandle",
			"cuDevicePrimaryCtxRetain 0", "cuMemAddressReserve 6291456", "cuMemMap 2097152", "cuMemMap 4194304",
			"cuMemSetAccess 2097152 device 0", "cuMemSetAccess 4194304 device 0",
			"cuMemcpyHtoDAsync 4 S", "cuStreamSynchronize S",
			"cuCtxSynchronize", "cuMemUnmap 4194304", "cuMemUnmap 2097152", "cuMemAddressFree 6291456",
			"cuDevicePrimaryCtxRelease 0", "cuMemRelease 2097152", "cuMemRelease 4194304", "cuMemRelease 2097152",
			"cuMemPoolGetAttribute P 5", "cuMemPoolTrimTo P 0",
			"cuCtxSynchronize",
			"cuModuleUnload M", "cuMemHostUnregister R", "cuDevicePrimaryCtxRelease 0",
			"cuMemFreeHost H", "cuMemFreeAsync D S", "cuMemPoolDestroy P",
			"cuEventDestroy T", "cuEventDestroy E", "cuStreamDestroy S",
			"cuDevicePrimaryCtxRelease 0",
		}
		if !pools {
			want = withoutPools(want)
		}
		equal(t, "calls", anonymous(got), want)
	})
}

func withoutPools(calls []string) (plain []string) {
	for _, call := range calls {
		switch {
		case strings.HasPrefix(call, "cuMemPool"):
			continue
		case strings.HasPrefix(call, "cuMemAllocFromPoolAsync"):
			call = "cuMemAlloc " + strings.Fields(call)[1]
		case strings.HasPrefix(call, "cuMemFreeAsync"):
			plain = append(plain, "cuStreamSynchronize S")
			call = "cuMemFree D"
		}
		plain = append(plain, call)
	}
	return plain
}

// anonymous gives objects one letter for their numbers, which depend on the tests
// that ran before; of two events the second is the timer.
func anonymous(calls []string) (plain []string) {
	letters := map[string]string{
		"stream": "S", "pool": "P", "memory": "D", "pinned": "H", "registered": "R", "module": "M",
	}
	var timer string
	for _, call := range calls {
		words := strings.Fields(call)
		if call != "" && words[0] == "cuEventCreate" && words[3] == "0" {
			timer = words[1]
		}
		for i, word := range words {
			kind := strings.TrimRight(word, "0123456789")
			if letter, known := letters[kind]; known && kind != word {
				words[i] = letter
			} else if word == timer {
				words[i] = "T"
			} else if kind == "event" && kind != word {
				words[i] = "E"
			} else if word == "pages" { // 8192 bytes cover two pages or three
				words[i-1] = "N"
			}
		}
		plain = append(plain, strings.Join(words, " "))
	}
	return plain
}

func workPages(t *testing.T) {
	before := alive()
	c := must(Retain(0))(t)
	d := must(Retain(1))(t)
	block := make([]byte, 11*4096)
	base := -uintptr(unsafe.Pointer(&block[0])) & 4095
	at := func(offset int) unsafe.Pointer { return unsafe.Pointer(&block[int(base)+offset]) }
	registered := func() int { return alive()["registered"] }

	a := must(c.Register(at(100), 5000))(t) // pages 0, 1
	b := must(c.Register(at(8000), 200))(t) // 1, 2
	equal(t, "two that share a page", registered(), 2)
	equal(t, "distance", uint64(b.Address-a.Address), uint64(7900))
	again := must(d.Register(at(100), 5000))(t) // the same for another graph, on another device
	equal(t, "one twice", registered(), 2)
	far := must(c.Register(at(5*4096), 4096))(t)
	over := must(c.Register(at(4096), 7*4096))(t) // 1, 2, the gap 3 to 4, 5, and 6 to 7
	equal(t, "over a gap", registered(), 5)
	ok(t, a.Close())
	ok(t, far.Close())
	ok(t, far.Close())
	equal(t, "still used", registered(), 5)
	ok(t, over.Close())
	equal(t, "pages 0 to 2", registered(), 2)
	ok(t, c.Close()) // before others that use its pages: they have their own hold
	ok(t, again.Close())
	ok(t, b.Close())
	equal(t, "none", registered(), 0)

	none := must(d.Register(nil, 0))(t)
	ok(t, none.Close())

	// Pinned by somebody else as a whole: used as it is. In part: refused.
	pinned := must(d.AllocPinned(3 * 4096))(t)
	pinned.Bytes()[5] = 1
	inside := must(d.Register(unsafe.Add(pinned.Pointer, 5), 3*4096-5))(t)
	equal(t, "address", inside.Address, pinned.Address+5)
	ok(t, inside.Close())
	_, err := d.Register(unsafe.Add(pinned.Pointer, 5), 9*4096)
	equal(t, "result", code(err), alreadyPinned)
	wantText(t, err, "36864 bytes of host memory, of which a part may be pinned already")
	equal(t, "locations", fmt.Sprint(must(Locate(pinned.Address))(t), must(Locate(Address(uintptr(at(0)))))(t)),
		"{1 true} {-1 true}")
	ok(t, pinned.Close())
	ok(t, pinned.Close())
	_, err = d.Register(at(0), 1<<31)
	wantText(t, err, "asked for 21474", " bytes of registered host memory on device 1, which has 1073741824 of 1073741824 bytes free")
	ok(t, d.Close())
	equal(t, "alive", alive(), before)
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("expected an error with %q, got none", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("expected an error with %q, got %v", part, err)
		}
	}
}

func workRefusals(t *testing.T) {
	c, d := must(Retain(0))(t), must(Retain(1))(t)
	defer c.Close()
	defer d.Close()
	pool := must(c.NewPool(0))(t)
	defer pool.Close()
	_, err := Retain(2)
	wantText(t, err, "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101): expected 0 <= device < 2, got 2")
	for _, handle := range []uintptr{0, LegacyStream, PerThreadStream} {
		s := must(c.Wrap(handle))(t)
		ok(t, s.Fill8(0, 1, 0))
		ok(t, s.Copy(0, 0, 0))
		ok(t, s.Upload(0, nil, 0))
		ok(t, s.Download(nil, 0, 0))
		ok(t, s.Fill32(0, 1, 0))
		ok(t, s.Synchronize())
		ok(t, s.Close())
		equal(t, "handle after Close", s.Handle(), handle)
		none := must(pool.Alloc(s, 0))(t)
		equal(t, "no memory", none, Memory{})
		ok(t, none.Free(s))
	}
	_, err = c.Wrap(^uintptr(0))
	wantText(t, err, "stream: expected a stream, got -1")
	s := must(d.NewStream())(t)
	defer s.Close()
	_, err = c.Wrap(s.Handle())
	wantText(t, err, "CUDA_ERROR_INVALID_HANDLE (400): stream: expected one of device 0's primary context")
	_, err = pool.Alloc(s, 1)
	wantText(t, err, "stream: expected one of device 0, got one of device 1")
	own := must(c.NewStream())(t)
	defer own.Close()
	block := must(pool.Alloc(own, 1<<20))(t)
	_, err = pool.Alloc(own, 1<<30)
	wantText(t, err, "CUDA_ERROR_OUT_OF_MEMORY (2): asked for 1073741824 bytes of device memory on device 0, which has 1072693248 of 1073741824 bytes free")
	_, err = c.AllocPinned(1 << 31)
	wantText(t, err, "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): asked for 2147483648 bytes of pinned host memory on device 0")
	wantText(t, own.Copy(block.Address, block.Address, 1<<21), "cuMemcpyAsync", "2097152 bytes")
	ok(t, block.Free(own))
	ok(t, block.Free(own))
	event := must(d.NewEvent())(t)
	defer event.Close()
	wantText(t, event.Record(own), "cuEventRecord: CUDA_ERROR_INVALID_CONTEXT (201)")
}

func workKernels(t *testing.T) {
	c := must(Retain(0))(t)
	defer c.Close()
	_, err := c.Load(nil)
	wantText(t, err, "image: expected a cubin, a fatbin or PTX, got 0 bytes")
	_, err = c.Load([]byte("broken"))
	wantText(t, err, "cuModuleLoadDataEx: Unknown CUresult: 218 (218): line 7: broken")
	m := must(c.Load([]byte("good")))(t)
	defer m.Close()
	equal(t, "log", m.Log, "a note")
	equal(t, "context", m.Context(), c)
	cubin := must(c.Load([]byte("\x7fELF")))(t)
	ok(t, cubin.Close())
	ok(t, cubin.Close())

	_, err = KernelOf[mix](m, "missing")
	wantText(t, err, "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500): kernel missing")
	_, err = KernelOf[mix](m, "mix_16")
	wantText(t, err, "kernel mix_16: expected one parameter of 24 bytes, got one of 16")
	_, err = KernelOf[mix](m, "mix_24_8")
	wantText(t, err, "kernel mix_24_8: expected one parameter of 24 bytes, got several")
	_, err = KernelOf[mix](m, "mix_")
	wantText(t, err, "kernel mix_: expected one parameter of 24 bytes, got none")
	type nested struct {
		A [2]struct{ P *int }
	}
	_, err = KernelOf[nested](m, "mix_16")
	wantText(t, err, "kernel mix_16: nested.A[].P holds a Go pointer")
	k := must(KernelOf[mix](m, "mix_24"))(t)
	equal(t, "name", k.Name(), "mix_24")
	equal(t, "registers", must(k.Attribute(Registers))(t), 1004)
	equal(t, "resident", must(k.Resident(512, 0))(t), 4*132)
	_, err = k.Occupancy(2048, 0)
	wantText(t, err, "kernel mix_24: blocks of 2048 threads")
	wantText(t, k.AllowShared(1<<20), "kernel mix_24: 1048576 bytes of dynamic shared memory")

	s := must(c.NewStream())(t)
	defer s.Close()
	args := sample
	wantText(t, k.Launch(s, Shape{Block: [3]uint32{1024, 2}, Cooperative: true}, &args),
		"cuLaunchCooperativeKernel: CUDA_ERROR_INVALID_VALUE (1): kernel mix_24, cooperative launch of [0 0 0] blocks of [1024 2 0] threads")
}
