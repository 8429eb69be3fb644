package bridge

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

// gpu is a number that does not stand for the CPU.
func gpu(device int64) int64 {
	if device == onCPU {
		return -2
	}
	return device
}

// deviceCalls are the functions for devices with arguments of any value where that
// is safe: no address is one that a device or a copy would read.
var deviceCalls = []func(a, b, c, d, e int64) (int64, error){
	func(a, b, c, d, e int64) (int64, error) {
		return graphNew("", gpu(a), 0, c, b, 0, c, d, 0, c, e, 0, 0, a&1, 0, 0, 0)
	},
	func(a, b, c, d, e int64) (int64, error) {
		return graphNew("", 0, 0, 64, b, 0, 32, d, 0, 0, e, 0, 0, a&1, 0, 0, 0)
	},
	func(a, b, c, d, e int64) (int64, error) {
		return graphNew("", 0, 0, 64, b, 0, 32, d, 0, 0, e, 0, 0, 1, a|1<<61, 0, 0)
	},
	func(a, b, c, d, e int64) (int64, error) {
		return graphNew("", 0, 0, 64, b, 0, 32, d, 0, 0, e, 0, 0, 1, 0, a, c)
	},
	func(a, b, c, d, e int64) (int64, error) { return DeviceUpload(a, 0, b|1, c) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceDownload(a, 0, b|1, c) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceAlloc(a|1<<40, b, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceAlloc(0, b|-1<<63, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceRegister(a, 0, b|1) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceOrder(0, a) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceExpand(a, b, 0, e) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceGather(a, b, 0, c, e) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceCachePut(a, 0, b, e) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceCacheAdmit(a, 0, b, b, c, e) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceCountIDs(a, 0, b|1, c, d, e, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceWriteEdges(a|1<<61, "w", b, c, d) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceFill(a|1<<40, b, c, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceFill(0, b|-1<<63, c, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceAfter(a|1<<40, b, 0) },
	func(a, b, c, d, e int64) (int64, error) { return DeviceDestinations(0, a) },
	func(a, b, c, d, e int64) (int64, error) { return ArrowExport(0, 0, a, b, c) },
	func(a, b, c, d, e int64) (int64, error) { return submitted(deviceWords(0, a|1<<61, b, 0, c, d, e, 0)) },
	func(a, b, c, d, e int64) (int64, error) { return submitMany(a|1<<61, b, c, 0, 0) },
	func(a, b, c, d, e int64) (int64, error) { return Wait(a|1<<61, b) },
	func(a, b, c, d, e int64) (int64, error) { return WaitWords(a|1<<61, b, c, 0) },
	func(a, b, c, d, e int64) (int64, error) { return WaitMany(a|1<<61, b, 0) },
	func(a, b, c, d, e int64) (int64, error) { return WaitWords(a|1<<61, b, c, 0) },
	func(a, b, c, d, e int64) (int64, error) { return JobFault(a|1<<61, b) },
	func(a, b, c, d, e int64) (int64, error) {
		return submitted(deviceWords(prompt, a|1<<61, b, 0, c, d, e, 0))
	},
	func(a, b, c, d, e int64) (int64, error) { _, err := DeviceStats(a | 1<<40); return 0, err },
	func(a, b, c, d, e int64) (int64, error) { return Trim(gpu(a | 1<<40)) },
	func(a, b, c, d, e int64) (int64, error) { return SegmentReduce(gpu(a|1<<40), 0, b, c) },
	func(a, b, c, d, e int64) (int64, error) { return SegmentDots(gpu(a|1<<40), 0, b, c) },
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
		if _, err := Cancel(job); err != nil {
			t.Error(err)
		}
	}
}

// Each word of a table that cannot be right is named, before a device is asked for.
func TestDeviceGatherArguments(t *testing.T) {
	const ids, count, bits, table, rows, bytes, cached, slots, out, counts, bad = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
	for want, change := range map[string]map[int]int64{
		"count: expected an integer >= 0, got -1":                                                   {count: -1},
		"id_bits: expected 32 or 64, got 16":                                                        {bits: 16},
		"rows: expected an integer >= 0, got -3":                                                    {rows: -3},
		"row_bytes: expected 1 to 67108864, got 0":                                                  {bytes: 0},
		"row_bytes: expected 1 to 67108864, got 67108865":                                           {bytes: 1<<26 + 1},
		"slots: expected addresses of cached rows and of their slots, or neither, got 0x40 and 0x0": {cached: 64},
		"slots: expected addresses of cached rows and of their slots, or neither, got 0x0 and 0x40": {slots: 64},
		"ids: expected an address, got 0":                                                           {ids: 0},
		"table: expected an address, got 0":                                                         {table: 0},
		"out: expected an address, got 0":                                                           {out: 0},
		"ids: expected an address that 8 divides, got 0x44":                                         {ids: 68},
		"ids: expected an address that 4 divides, got 0x42":                                         {ids: 66, bits: 32},
		"slots: expected an address that 4 divides, got 0x41":                                       {cached: 65, slots: 65},
		"counts: expected an address that 8 divides, got 0x44":                                      {counts: 68},
		"bad: expected an address that 8 divides, got 0x1":                                          {bad: 1},
	} {
		// The second of two, behind one without ids, whose addresses are nobody's business.
		list := []int64{ids: 0, bits: 32, bytes: 1, bad: 0, 11 + ids: 64, 11 + count: 5, 11 + bits: 64, 11 + table: 1, 11 + rows: 3, 11 + bytes: 7, 11 + out: 3, 11 + bad: 0}
		for at, value := range change {
			list[11+at] = value
		}
		_, err := DeviceGather(0, 2, address(list), 0, 0)
		fails(t, err, "ValueError: list[1]."+want)
		runtime.KeepAlive(list)
	}
	// A quantized one: ids of 64 bits, 3 rows of 7 values of int8, whose scales and stored rows have a place.
	for want, change := range map[string]map[int]int64{
		"list[0]: expected addresses for stored rows and for floats that 16 and 4 divide, got 0x44 and 0x80":                                            {16: 68},
		"list[0]: expected addresses for stored rows and for floats that 16 and 4 divide, got 0x40 and 0x82":                                            {out: 130},
		"ids: expected an address that 8 divides, got 0x41":                                                                                             {ids: 65},
		"quantized: expected a kind, a dtype, columns and scales of rows of 7 bytes, got {Kind:6 To:0 ByColumn:false InFile:false Columns:7 Scales:64}": {11: 6},
		"quantized: expected a kind, a dtype, columns and scales of rows of 7 bytes, got {Kind:4 To:0 ByColumn:false InFile:false Columns:8 Scales:64}": {14: 8},
	} {
		list := []int64{ids: 64, count: 5, bits: 64 + 256, table: 1, rows: 3, bytes: 7, out: 128, bad: 0, 11: 4, 14: 7, 15: 64, 16: 64}
		for at, value := range change {
			list[at] = value
		}
		_, err := DeviceGather(0, 1, address(list), 0, 0)
		fails(t, err, "ValueError: "+want)
		runtime.KeepAlive(list)
	}
	list := make([]int64, 11)
	for _, c := range []int64{0, -1, 1<<10 + 1, 1 << 62} {
		_, err := DeviceGather(0, c, address(list), 0, 0)
		fails(t, err, "")
	}
	runtime.KeepAlive(list)
}

// The wrong words of a cache are named, as a gather's are.
func TestDeviceCacheArguments(t *testing.T) {
	const ids, count, bits, source, rows, bytes, cached, slots, keys, places = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
	for want, change := range map[string]map[int]int64{
		"ids: expected 32 or 64 bits, got 8":                  {bits: 8},
		"ids: expected 0 to 2^32 - 2 of them, got -1":         {count: -1},
		"ids: expected 0 to 2^32 - 2 of them, got 4294967295": {count: 1<<32 - 1},
		"ids: expected an address that 8 divides, got 0x0":    {ids: 0},
		"ids: expected an address that 8 divides, got 0x44":   {ids: 68},
		"rows: expected an integer >= 0, got -1":              {rows: -1},
		"row_bytes: expected 1 to 67108864, got 0":            {bytes: 0},
		"row_bytes: expected 1 to 67108864, got 67108865":     {bytes: 1<<26 + 1},
		"places: expected 0 to 2147483647, got -1":            {places: -1},
		"places: expected 0 to 2147483647, got 2147483648":    {places: 1 << 31},
		"source: expected an address that 1 divides, got 0x0": {source: 0},
		"cached: expected an address that 1 divides, got 0x0": {cached: 0},
		"slots: expected an address that 4 divides, got 0x42": {slots: 66},
		"keys: expected an address that 8 divides, got 0x44":  {keys: 68},
	} {
		list := []int64{ids: 64, count: 5, bits: 64, source: 1, rows: 3, bytes: 7, cached: 3, slots: 64, keys: 64, places: 2}
		for at, value := range change {
			list[at] = value
		}
		_, err := DeviceCachePut(0, address(list), 0, 0)
		fails(t, err, "ValueError: "+want)
		_, err = DeviceCacheAdmit(0, address(list), 64, 64, 0, 0)
		fails(t, err, "ValueError: "+want)
		runtime.KeepAlive(list)
	}
	list := []int64{ids: 64, count: 5, bits: 64, source: 1, rows: 3, bytes: 7, cached: 3, slots: 64, keys: 64, places: 2}
	_, err := DeviceCachePut(0, address(list), 2, 0)
	fails(t, err, "ValueError: places: expected an address that 4 divides, got 0x2")
	_, err = DeviceCacheAdmit(0, address(list), 0, 64, 0, 0)
	fails(t, err, "ValueError: stamps: expected an address that 4 divides, got 0x0")
	_, err = DeviceCacheAdmit(0, address(list), 64, 66, 0, 0)
	fails(t, err, "ValueError: bids: expected an address that 4 divides, got 0x42")
	_, err = DeviceCountIDs(0, 64, 5, 64, 66, 3, 0)
	fails(t, err, "ValueError: counts: expected an address that 4 divides and rows >= 0, got 0x42 and 3")
	runtime.KeepAlive(list)
}

// A graph on the CPU is not for a device, and says so before anything else.
func TestDeviceSubmitOfHostGraph(t *testing.T) {
	g, s := newRing(t, 10), newSampler(t, "persistent", 2)
	calls, seeds := make([]int64, 8), []int64{1}
	calls[0], calls[1], calls[2] = address(seeds), 1, 64
	const want = "ValueError: graph: expected one on a CUDA device, got one on the CPU"
	_, err := submitted(deviceWords(ownStream, g.handle, s, address(seeds), 1, 64, 0, 0))
	fails(t, err, want)
	_, err = submitMany(g.handle, s, 1, address(calls), 0)
	fails(t, err, want)
	_, err = DeviceWriteEdges(g.handle, "w", address(seeds), address(seeds), 1)
	fails(t, err, "ValueError: graph: expected one of a CUDA device that came from the CPU, got another one")
	for _, count := range []int64{0, -1, 1 << 40} {
		_, err = submitMany(g.handle, s, count, address(calls), 0)
		fails(t, err, "")
	}
	runtime.KeepAlive(calls)
	runtime.KeepAlive(seeds)
}

// Every mode is known on the CPU, and gives the batch of the others, ordered or not.
func TestModesOnCPU(t *testing.T) {
	g, seeds := newRing(t, 100), []int64{10, 50}
	want := []int64{10, 50, 11, 12, 51, 52, 13, 14, 53, 54}
	for _, mode := range append([]string{"auto", "persistent"}, modesOfBuild...) {
		for _, ordered := range []bool{false, true} {
			fanouts := []int64{-1, -1}
			s, err := SamplerNew(document(mode, ordered, fanouts), 3, 0)
			if err != nil {
				t.Fatal(err)
			}
			job, err := submit(g.handle, s, address(seeds), 2, 64, 0, 0, 0, 0, 0)
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
