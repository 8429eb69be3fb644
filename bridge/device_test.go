package bridge

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// deviceCalls are the functions for devices with arguments of any value where that
// is safe: no address is one that a device or a copy would read.
var deviceCalls = []func(a, b, c, d, e int64) (int64, error){
	func(a, b, c, d, e int64) (int64, error) {
		return DeviceGraphNew(a, 0, c, b, 0, c, d, 0, c, e, 0, 0, a&1, 0)
	},
	func(a, b, c, d, e int64) (int64, error) {
		return DeviceGraphNew(0, 0, 64, b, 0, 32, d, 0, 0, e, 0, 0, a&1, 0)
	},
	func(a, b, c, d, e int64) (int64, error) {
		return DeviceGraphNew(0, 0, 64, b, 0, 32, d, 0, 0, e, 0, 0, 1, a|1<<61)
	},
	func(a, b, c, d, e int64) (int64, error) { return DeviceUpload(a, 0, b|1, c) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceDownload(a, 0, b|1, c) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceAlloc(a|1<<40, b, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceAlloc(0, b|-1<<63, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceRegister(a, 0, b|1) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceOrder(0, a) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceExpand(a, b, 0, e) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceDestinations(0, a) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceArrowExport(0, a, b, c) },
	func(a, b, c, d, e int64) (int64, error) {
		return DeviceSubmit(a|1<<61, b, 0, c, d, 0, e, 0, 0, 0, 0, 0, 0, 0)
	},
	func(a, b, c, d, e int64) (int64, error) { return DeviceSubmitMany(a|1<<61, b, c, 0, 0, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceWait(a|1<<61, b) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceWaitInto(a|1<<61, b, c, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceWaitMany(a|1<<61, b, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceWaitManyInto(a|1<<61, b, c, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceFault(a|1<<61, b) },
	func(a, b, c, d, e int64) (int64, error) {
		return DeviceSample(a|1<<61, b, 0, c, d, 0, e, 0, 0, 0, 0, 0, 0, 0)
	},
	func(a, b, c, d, e int64) (int64, error) { _, err := DeviceStats(a | 1<<40); return 0, err },
	func(a, b, c, d, e int64) (int64, error) { return DeviceTrim(a | 1<<40) },
}

// Whatever the numbers are, there is an error with its kind, with a driver and
// without one.
func TestDeviceArguments(t *testing.T) {
	values := []int64{0, 1, -1, 32, 64, 1 << 40, 1<<63 - 1, -1 << 63}
	for i, call := range deviceCalls {
		for _, a := range values {
			for _, b := range values {
				_, err := call(a, b, 64, 5, b)
				if err == nil {
					t.Errorf("function %d of %d, %d: expected an error, got none", i, a, b)
				}
				fails(t, err, "")
				if kind := strings.SplitN(err.Error(), ":", 2)[0]; kind != "CudaError" && kind != "ValueError" && kind != "ClosedError" && kind != "TypeError" && kind != "MemoryError" {
					t.Errorf("function %d of %d, %d: got %v", i, a, b, err)
				}
			}
		}
	}
	for _, job := range []int64{0, -1, 1 << 62} {
		if _, err := DeviceCancel(job); err != nil {
			t.Error(err)
		}
	}
}

// A graph on the CPU is not for a device, and says so before anything else.
func TestDeviceSubmitOfHostGraph(t *testing.T) {
	g, s := newRing(t, 10), newSampler(t, "fused", 2)
	calls, seeds := make([]int64, 8), []int64{1}
	calls[0], calls[1], calls[2] = address(seeds), 1, 64
	const want = "ValueError: graph: expected one on a CUDA device, got one on the CPU"
	_, err := DeviceSubmit(g.handle, s, address(seeds), 1, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	fails(t, err, want)
	_, err = DeviceSubmitMany(g.handle, s, 1, address(calls), 0, 0)
	fails(t, err, want)
	for _, count := range []int64{0, -1, 1 << 40} {
		_, err = DeviceSubmitMany(g.handle, s, count, address(calls), 0, 0)
		fails(t, err, "")
	}
	runtime.KeepAlive(calls)
	runtime.KeepAlive(seeds)
}

// Every mode is known on the CPU, and gives the batch of the others, ordered or not.
func TestModesOnCPU(t *testing.T) {
	g, seeds := newRing(t, 100), []int64{10, 50}
	want := []int64{10, 50, 11, 12, 51, 52, 13, 14, 53, 54}
	for _, mode := range []string{"auto", "persistent", "fused", "bsp", "queue"} {
		for _, ordered := range []bool{false, true} {
			fanouts := []int64{-1, -1}
			s, err := SamplerNew(document(mode, ordered, fanouts), 3)
			if err != nil {
				t.Fatal(err)
			}
			job, err := Submit(g.handle, s, address(seeds), 2, 64, 0, 0, 0, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			mem, err := Wait(-job, -1)
			if err != nil {
				t.Fatal(err)
			}
			if got := nodes(mem); !slices.Equal(got, want) {
				t.Errorf("mode %s: got %v", mode, got)
			}
			runtime.KeepAlive(fanouts)
		}
	}
	runtime.KeepAlive(seeds)
}
