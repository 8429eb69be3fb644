package bridge

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
)

// message is the form of every error: the name of a Python exception, then text.
var message = regexp.MustCompile(
	`^(TypeError|ValueError|IndexError|OverflowError|MemoryError|OSError|ClosedError|CudaError|KeyboardInterrupt|Error): (?s).+`)

// fails checks that an error has the form and, where want is given, that text.
func fails(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !message.MatchString(err.Error()) || want != "" && err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// onHeap makes what address is asked for escape: memory on a goroutine's stack moves.
var onHeap atomic.Pointer[byte]

func address[T any](a []T) int64 {
	p := unsafe.Pointer(unsafe.SliceData(a))
	onHeap.Store((*byte)(p))
	return int64(uintptr(p))
}

// view is n words at an address, as Python reads a memory.
func view(at, n int64) []int64 {
	return unsafe.Slice(*(**int64)(unsafe.Pointer(&at)), n)
}

// ring is a graph and its handle: every vertex has the next two as in-neighbours.
type ring struct {
	indptr, indices []int64
	handle          int64
}

func newRing(t testing.TB, n int64) *ring {
	t.Helper()
	r := &ring{indptr: []int64{0}}
	for v := range n {
		r.indices = append(r.indices, (v+1)%n, (v+2)%n)
		r.indptr = append(r.indptr, 2*v+2)
	}
	var err error
	if r.handle, err = graphNew("", onCPU, address(r.indptr), 64, n, address(r.indices), 64, 2*n, 0, 0, n, 0, 0, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := GraphClose(r.handle); err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(r)
	})
	return r
}

// withData is the ring's graph once more, with arrays that a text tells of.
func withData(r *ring, data string) (int64, error) {
	n := int64(len(r.indptr)) - 1
	return graphNew(data, onCPU, address(r.indptr), 64, n, address(r.indices), 64, 2*n, 0, 0, n, 0, 0, 1, 0, 0, 0)
}

// edgeData tells of an edge array "w".
func edgeData(dtype string, address, length int64) string {
	return fmt.Sprintf(`{"edges": {"w": {"dtype": %q, "address": %d, "length": %d}}}`, dtype, address, length)
}

// graphNew is GraphNew of a list of words: a device, the CSC, whether it is trusted, parent, kinds and back.
func graphNew(arrays string, words ...int64) (int64, error) {
	defer runtime.KeepAlive(words)
	return GraphNew(address(words), arrays)
}

// document is that of a plan of fanouts in a mode.
func document(mode string, ordered bool, fanouts []int64) string {
	family := mode
	if mode == "auto" || mode == "persistent" {
		family = "neighbor"
	}
	text := strings.ReplaceAll(fmt.Sprint(fanouts), " ", ",")
	return fmt.Sprintf(`{"family": %q, "fanouts": %s, "ordered": %v}`, family, text, ordered)
}

func newSampler(t testing.TB, mode string, fanouts ...int64) int64 {
	t.Helper()
	s, err := SamplerNew(document(mode, true, fanouts), 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// nodes is the vertices of a batch.
func nodes(mem int64) []int64 {
	data := view(mem, 3)[1]
	words := view(data, 16)
	return view(data+words[9], words[8])
}

func TestSampleThroughBridge(t *testing.T) {
	g, s := newRing(t, 100), newSampler(t, "auto", -1, -1)
	seeds := []int64{10, 50}
	want := []int64{10, 50, 11, 12, 51, 52, 13, 14, 53, 54}
	job, err := submit(g.handle, s, address(seeds), 2, 64, 0, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	mem, err := Wait(-job, -1)
	if err != nil || !slices.Equal(nodes(mem), want) {
		t.Fatalf("got %v, %v", nodes(mem), err)
	}
	_, err = Wait(-job, -1)
	fails(t, err, "ClosedError: job: expected an open one, got a closed one")
	mem, err = sample(g.handle, s, address(seeds), 2, 64, 0, 0, 0, 0, 0)
	if mem < 0 && err == nil {
		mem, err = Wait(-mem, -1)
	}
	if err != nil || !slices.Equal(nodes(mem), want) {
		t.Fatalf("got %v, %v", nodes(mem), err)
	}
	var stats struct {
		Live int64 `json:"live"`
		Jobs int64 `json:"jobs"`
	}
	text, err := MemoryStats()
	if err != nil || json.Unmarshal([]byte(text), &stats) != nil || stats.Live < 2 || stats.Jobs != 0 {
		t.Errorf("got %s, %v", text, err)
	}
	runtime.KeepAlive(seeds)
}

// When a job was worked on, for as long as nobody has taken what it made.
func TestJobSpan(t *testing.T) {
	g, s := newRing(t, 100), newSampler(t, "auto", -1, -1)
	seeds, span := []int64{10, 50}, make([]int64, 2)
	before := time.Now()
	job, err := submit(g.handle, s, address(seeds), 2, 64, 0, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := JobSpan(-job, -1, address(span)); err != nil || done != 1 {
		t.Fatalf("got %d, %v", done, err)
	}
	if lasted := time.Duration(span[1] - span[0]); lasted < 0 || lasted > time.Since(before) {
		t.Errorf("got %v, which lasted %v", span, lasted)
	}
	_, err = JobSpan(-job, -1, 0)
	fails(t, err, "ValueError: words: expected an address for some, got 0x0 for 2")
	if _, err := Wait(-job, -1); err != nil {
		t.Fatal(err)
	}
	_, err = JobSpan(-job, -1, address(span))
	fails(t, err, "ClosedError: job: expected an open one, got a closed one")
	runtime.KeepAlive(seeds)
	runtime.KeepAlive(span)
}

// A handle that was closed, or never was, is refused by every function that needs
// one, and closing it again does nothing. Numbers are not used twice.
func TestEndsOfHandlesHaveANumber(t *testing.T) {
	for want, e := range ends {
		if kind, err := EndKind(e.name); err != nil || kind != int64(want) {
			t.Errorf("%s: got %d, %v", e.name, kind, err)
		}
	}
	_, err := EndKind("Trim")
	fails(t, err, `ValueError: destructor: expected the end of a kind of handle, got "Trim"`)
}

func TestStaleHandles(t *testing.T) {
	g, s := newRing(t, 10), newSampler(t, "auto", 2)
	closedGraph := newRing(t, 10).handle
	closedSampler := newSampler(t, "auto", 2)
	for range 2 {
		if _, err := GraphClose(closedGraph); err != nil {
			t.Error(err)
		}
		if _, err := SamplerClose(closedSampler); err != nil {
			t.Error(err)
		}
	}
	for _, stale := range []int64{closedGraph, 0, -1, -g.handle, 1 << 62, -1 << 63} {
		_, err := submit(stale, s, 0, 0, 64, 0, 0, 0, 0, 0)
		fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
		_, err = sample(stale, s, 0, 0, 64, 0, 0, 0, 0, 0)
		fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
	}
	for _, stale := range []int64{closedSampler, 0, -1, 1 << 62} {
		_, err := submit(g.handle, stale, 0, 0, 64, 0, 0, 0, 0, 0)
		fails(t, err, "ClosedError: sampler: expected an open one, got a closed one")
	}
	for _, stale := range []int64{0, -1, 1 << 62, -1 << 63} {
		_, err := Wait(stale, -1)
		fails(t, err, "ClosedError: job: expected an open one, got a closed one")
		for _, f := range []func(int64) (int64, error){Cancel, GraphClose, SamplerClose} {
			if _, err := f(stale); err != nil {
				t.Error(err)
			}
		}
	}
	if again := newRing(t, 10).handle; again <= closedGraph {
		t.Errorf("graph %d after graph %d", again, closedGraph)
	}
	if _, err := GraphClose(g.handle); err != nil {
		t.Error(err)
	}
	_, err := submit(g.handle, s, 0, 0, 64, 0, 0, 0, 0, 0)
	fails(t, err, "ClosedError: graph: expected an open one, got a closed one")
}

// Wrong widths, negative lengths and arrays that are not there.
func TestBadArguments(t *testing.T) {
	g, s := newRing(t, 10), newSampler(t, "auto", 2)
	a := []int64{0, 1, 0, 1}
	at := address(a)
	for _, k := range []struct {
		call func() (int64, error)
		want string
	}{
		{func() (int64, error) { return Symbol("memory") }, `ValueError: symbol: expected a known name, got "memory"`},
		{func() (int64, error) { return ArrowExport(onCPU, 0, 0, 0, 64) }, ""},
		{func() (int64, error) { return ArrowExport(onCPU, at, at, -1, 64) }, ""},
		{func() (int64, error) { return ArrowExport(onCPU, at, at, 1, 16) }, ""},
		{func() (int64, error) { _, err := ArrowImport(0, at); return 0, err }, ""},
		{func() (int64, error) { _, err := ArrowImport(at, 0); return 0, err }, ""},
		{func() (int64, error) { return graphNew("", onCPU, 0, 64, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, ""},
		{func() (int64, error) { return graphNew("", onCPU, at, 64, -1, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, ""},
		{func() (int64, error) {
			return graphNew("", onCPU, at, 64, 1<<63-1, 0, 64, 0, 0, 0, 1<<63-1, 0, 0, 0, 0, 0, 0)
		}, ""},
		{func() (int64, error) { return graphNew("", onCPU, at, 8, 1, at, 64, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0) }, "TypeError: indptr: expected 32 or 64 bits, got 8"},
		{func() (int64, error) { return graphNew("", onCPU, at, 64, 1, at, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0) }, "TypeError: indices: expected 32 or 64 bits, got 0"},
		{func() (int64, error) { return graphNew("", onCPU, at, 64, 1, 0, 64, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0) }, ""},
		{func() (int64, error) { return graphNew("", onCPU, at, 64, 1, at, 64, 1, at, 0, 1, 0, 0, 0, 0, 0, 0) }, "TypeError: edge_ids: expected 32 or 64 bits, got 0"},
		{func() (int64, error) { return graphNew("", onCPU, at, 64, 3, 0, 64, 0, 0, 0, 2, 0, 0, 1, 0, 2, 0) }, "ValueError: indptr: expected 2 rows for each of 2 nodes, got 3 rows"},
		{func() (int64, error) { return graphNew("", onCPU, at, 64, 1, at, 64, 1, 0, 0, 1, 0, 0, 1, 0, -1, 0) }, "ValueError: kinds: expected at most 32768 types, got -1"},
		{func() (int64, error) { return graphNew("", onCPU, at, 64, 1, at, 64, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1<<60) }, "ClosedError: graph: expected an open one, got a closed one"},
		{func() (int64, error) {
			return graphNew("", onCPU, at, 64, 1, at, 64, 1, 0, 0, 1, 0, 0, 1, 0, 0, g.handle)
		}, "ValueError: graph: expected a transposed one of 1 nodes, got 10"},
		{func() (int64, error) { return withData(g, "{") }, "ValueError: graph: expected arrays in JSON, got unexpected end of JSON input"},
		{func() (int64, error) { return withData(g, edgeData("complex64", at, 10)) }, `TypeError: edata["w"]: expected bool, integers or floats, got complex64`},
		{func() (int64, error) { return withData(g, edgeData("float32", at, -1)) }, `ValueError: edata["w"]: expected an address and a length from 0 to 2^48, ` + fmt.Sprintf("got -1 elements at %#x", at)},
		{func() (int64, error) { return withData(g, edgeData("float32", 0, 10)) }, `ValueError: edata["w"]: expected an address and a length from 0 to 2^48, got 10 elements at 0x0`},
		{func() (int64, error) { return withData(g, edgeData("int8", at, 3)) }, `ValueError: edata["w"]: expected a value for each of 20 edges, got 3`},
		{func() (int64, error) {
			return withData(g, strings.Replace(edgeData("int8", at, 3), "edges", "vertices", 1))
		}, `ValueError: ndata["w"]: expected a value or a row for each of 10 nodes, got 3`},
		{func() (int64, error) { return deriveStart(1<<60, "transpose", "t", "", 0, 0, 0, 0) }, "ClosedError: graph: expected an open one, got a closed one"},
		{func() (int64, error) { return deriveStart(g.handle, "transpose", "t", "float32", at, 20, 0, 0) }, "TypeError: t: expected integers, got float32"},
		{func() (int64, error) { return deriveStart(g.handle, "transpose", "t", "int64", at, -1, 0, 0) }, "ValueError: t: expected a length >= 0, got -1"},
		{func() (int64, error) { return deriveStart(g.handle, "transpose", "t", "int64", at, 4, -1, 0) }, "ValueError: kinds: expected 0 to 32768, got -1"},
		{func() (int64, error) { return DerivePoll(1<<60, 0) }, "ClosedError: job: expected an open one, got a closed one"},
		{func() (int64, error) { return DeriveTake(1 << 60) }, "ClosedError: job: expected an open one, got a closed one"},
		{func() (int64, error) { return GraphAscends(1 << 60) }, "ClosedError: graph: expected an open one, got a closed one"},
		{func() (int64, error) { return GraphEqualRows(g.handle, 1<<60) }, "ClosedError: graph: expected an open one, got a closed one"},
		{func() (int64, error) { return GraphFromCOO(0, 0, 64, 1, -1) }, ""},
		{func() (int64, error) { return GraphFromCOO(0, 0, 64, 0, -2) }, ""},
		{func() (int64, error) { return GraphFromCOO(0, 0, 1, 0, 0) }, "TypeError: src: expected 32 or 64 bits, got 1"},
		{func() (int64, error) { return ExpandRows(0, 0, 0, 64) }, ""},
		{func() (int64, error) { return SegmentReduce(onCPU, 0, 0, 0) }, ""},
		{func() (int64, error) { return SegmentDots(onCPU, 0, at, 0) }, ""},
		{func() (int64, error) { return SegmentTranspose(onCPU, 0, 0, 0, 0, 0, 0, 0) }, ""},
		{func() (int64, error) { return Quantize(0) }, ""},
		{func() (int64, error) { return Quantize(address([]int64{64, 32, 0, 1, 9, 0, 0, 4, 64, 64, 4})) }, "ValueError: quantized: expected a kind, a dtype, columns and scales of rows of 4 bytes, got {Kind:9 To:0 ByColumn:false InFile:false Columns:4 Scales:64}"},
		{func() (int64, error) { return Quantize(address([]int64{64, 8, 0, 1, 4, 0, 0, 4, 64, 64, 4})) }, "ValueError: quantized: expected rows of floats at an address, got {Address:64 Bits:8 Brain:false Rows:1}"},
		{func() (int64, error) { return Quantize(address([]int64{64, 32, 0, 1, 4, 0, 0, 4, 64, 64, 3})) }, "ValueError: quantized: expected a kind, a dtype, columns and scales of rows of 3 bytes, got {Kind:4 To:0 ByColumn:false InFile:false Columns:4 Scales:64}"},
		{func() (int64, error) { return MemoryNew(-1) }, "ValueError: size: expected an integer >= 0, got -1"},
		{func() (int64, error) { return MemoryNew(1 << 60) }, ""},
		{func() (int64, error) { return ExpandRows(at, -1, 0, 64) }, ""},
		{func() (int64, error) { return ExpandRows(at, 1, 0, 16) }, ""},
		{func() (int64, error) { return SamplerNew(document("auto", true, nil), 0, 0) }, "ValueError: fanouts: expected 1 to 256 hops, got 0"},
		{func() (int64, error) { return SamplerNew("", 0, 0) }, ""},
		{func() (int64, error) { return SamplerNew(document("auto", true, nil), 0, 5) }, "ValueError: fanouts: expected 1 to 256 hops, got 0"},
		{func() (int64, error) { return SamplerNew(document("auto", true, []int64{2}), 0, -1) }, "ValueError: share: expected 1 to 1000 thousandths, got -1"},
		{func() (int64, error) { return SamplerNew(document("auto", true, []int64{2}), 0, 1001) }, "ValueError: share: expected 1 to 1000 thousandths, got 1001"},
		{func() (int64, error) { return SamplerNew("\x00", 0, 0) }, ""},
		{func() (int64, error) { return SamplerNew(`{"family": null}`, 0, 0) }, "ValueError: family: expected one of " + familyNames + ", got ''"},
		{func() (int64, error) { return submit(g.handle, s, 0, 3, 64, 0, 0, 0, 0, 0) }, ""},
		{func() (int64, error) { return submit(g.handle, s, 0, -3, 64, 0, 0, 0, 0, 0) }, "ValueError: seeds: expected a length >= 0, got -3"},
		{func() (int64, error) { return submit(g.handle, s, 0, 0, 8, 0, 0, 0, 0, 0) }, "TypeError: seeds: expected 32 or 64 bits, got 8"},
		{func() (int64, error) { return sample(g.handle, s, 0, 0, 64, 0, 0, 0, 7, 0) }, ""},
		{func() (int64, error) { return sample(g.handle, s, 0, 0, 64, -1, 0, 0, 0, 0) }, ""},
		{func() (int64, error) { return Gather(0, -1, 0, 0, 0) }, "ValueError: gather: expected 0 to 65536 parts, got -1"},
		{func() (int64, error) { return Gather(0, 1<<16+1, 0, 0, 1) }, "ValueError: gather: expected 0 to 65536 parts, got 65537"},
		{func() (int64, error) { return Gather(0, 2, 8, 0, 0) }, ""},
		{func() (int64, error) { return Gather(0, 2, -1, 0, 1) }, ""},
		{func() (int64, error) { return Gather(part(at, 1, 8, at, 4, 8, 0), 1, 8, 0, 0) }, "TypeError: ids: expected 32 or 64 bits, got 8"},
		{func() (int64, error) { return Gather(part(at, 2, 64, at, 4, 8, 0), 1, 8, 0, 1) }, "ValueError: gather: expected 2 rows of 8 bytes at 0 in a memory, got 8 bytes"},
		{func() (int64, error) { return Gather(part(0, 2, 64, at, 4, 8, 0), 1, 16, 0, 0) }, ""},
		{func() (int64, error) { return Gather(part(at, 2, 64, 0, 4, 8, 0), 1, 16, 0, 1) }, ""},
		{func() (int64, error) { return Gather(part(at, 2, 64, at, 4, 8, 0), 1, -1, 0, 0) }, ""},
		{func() (int64, error) { return Gather(part(at, 2, 64, at, 1, 8, 0), 1, 16, 0, 1) }, "IndexError: ids[1]: expected an integer in [0, 1), got 1"},
		{func() (int64, error) { return Shuffle(0, 5, 64, 0, 0) }, ""},
		{func() (int64, error) { return Shuffle(at, -5, 64, 0, 0) }, "ValueError: array: expected a length >= 0, got -5"},
		{func() (int64, error) { return Shuffle(at, 4, 8, 0, 0) }, "TypeError: array: expected 32 or 64 bits, got 8"},
		{func() (int64, error) { return SetThreads(0) }, "ValueError: threads: expected 1 to 4096, got 0"},
		{func() (int64, error) { return SetThreads(4097) }, "ValueError: threads: expected 1 to 4096, got 4097"},
		{func() (int64, error) { _, err := DeviceName(-1); return 0, err }, ""},
		{func() (int64, error) { _, err := DeviceName(1 << 32); return 0, err }, ""},
	} {
		_, err := k.call()
		fails(t, err, k.want)
	}
	// Empty arguments are no error.
	for _, call := range []func() (int64, error){
		func() (int64, error) { return Shuffle(0, 0, 32, 0, 0) },
		func() (int64, error) { return GraphFromCOO(0, 0, 32, 0, -1) },
		func() (int64, error) { return SetThreads(mustThreads(t)) },
		Threads, func() (int64, error) { return Trim(onCPU) }, Shutdown, DeviceCount, DriverVersion,
	} {
		if _, err := call(); err != nil {
			t.Error(err)
		}
	}
	job, err := submit(g.handle, s, 0, 0, 32, 0, 0, 0, 0, -4)
	if err != nil {
		t.Fatal(err)
	}
	if mem, err := Wait(-job, -1); err != nil || len(nodes(mem)) != 0 {
		t.Error(err)
	}
	runtime.KeepAlive(a)
}

// part is a table in the list of Gather, which is not quantized.
func part(words ...int64) int64 { return address(append(words, 0, 0, 0, 0, 0)) }

// Rows come by both calls; a job that is cancelled or taken is no more.
func TestGatherThroughBridge(t *testing.T) {
	count := func() (live, jobs int64) {
		var stats struct{ Live, Jobs int64 }
		text, err := MemoryStats()
		if err != nil || json.Unmarshal([]byte(text), &stats) != nil {
			t.Fatalf("got %s, %v", text, err)
		}
		return stats.Live, stats.Jobs
	}
	live, _ := count()
	table, ids, out := []int64{7, 8, 9}, []int32{2, 0, 2, 1}, make([]int64, 4)
	want := []int64{9, 7, 9, 8}
	words := []int64{address(ids), 4, 32, address(table), 3, 8, 0, 0, 0, 0, 0, 0}
	taken := int64(0)
	for prompt := range int64(2) {
		mem, err := Gather(address(words), 1, 32, 0, prompt)
		if mem < 0 && err == nil {
			job := -mem
			if mem, err = Wait(job, -1); err == nil {
				_, again := Wait(job, -1)
				fails(t, again, "ClosedError: job: expected an open one, got a closed one")
			}
		} else if prompt == 0 {
			t.Errorf("got %d, want a job", mem)
		}
		if err != nil || !slices.Equal(view(view(mem, 3)[1], 4), want) {
			t.Fatalf("prompt %d: %v", prompt, err)
		}

		clear(out)
		job, err := Gather(part(words[0], 4, 32, words[3], 3, 8, address(out)), 1, -1, 1, 0)
		if err == nil {
			_, err = Wait(-job, -1)
		}
		if err != nil || !slices.Equal(out, want) {
			t.Fatalf("prompt %d: %v, %v", prompt, out, err)
		}
		taken += 2

		if job, err = Gather(address(words), 1, 32, 0, 0); err == nil {
			_, err = Cancel(-job)
		}
		if err != nil {
			t.Error(err)
		}
		_, err = Wait(-job, -1)
		fails(t, err, "ClosedError: job: expected an open one, got a closed one")
	}
	// Python releases the memories that were taken.
	if now, jobs := count(); now-live != taken || jobs != 0 {
		t.Errorf("%d memories, want %d; %d jobs", now-live, taken, jobs)
	}
	runtime.KeepAlive(table)
	runtime.KeepAlive(ids)
	runtime.KeepAlive(out)
}

func mustThreads(t *testing.T) int64 {
	t.Helper()
	n, err := Threads()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Many goroutines wait for a job and one cancels it: at most one gets the memory,
// and all return.
func TestOneGetsTheResult(t *testing.T) {
	g, s := newRing(t, 1000), newSampler(t, "auto", 2, 2, 2)
	seeds := make([]int64, 500)
	for i := range seeds {
		seeds[i] = int64(i)
	}
	for round := range 200 {
		job, err := submit(g.handle, s, address(seeds), 500, 64, 0, int64(round), 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		results := 0
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				if w == 3 && round%2 == 0 {
					if _, err := Cancel(-job); err != nil {
						t.Error(err)
					}
					return
				}
				mem, err := Wait(-job, -1)
				switch {
				case err == nil && mem != 0:
					mu.Lock()
					results++
					mu.Unlock()
				case err == nil || !strings.HasPrefix(err.Error(), "ClosedError: job") && !strings.HasPrefix(err.Error(), "KeyboardInterrupt: "):
					t.Errorf("got %d, %v", mem, err)
				}
			})
		}
		wg.Wait()
		if results > 1 || round%2 == 1 && results != 1 {
			t.Fatalf("%d got the result", results)
		}
	}
	runtime.KeepAlive(seeds)
}

// A panic is an error like any other.
func TestFinish(t *testing.T) {
	_, err := func() (n int64, err error) {
		defer finish(&err)
		panic("broken")
	}()
	fails(t, err, "Error: broken")
	_, err = func() (n int64, err error) {
		defer finish(&err)
		var a []int64
		return a[n], nil
	}()
	fails(t, err, "Error: runtime error: index out of range [0] with length 0")
}
