package pygsampler

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/batch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// onGPU skips the test where no device can be used, or fails it where
// PYGSAMPLER_REQUIRE names cuda. At its end the device has all of its memory back.
func onGPU(t *testing.T) {
	t.Helper()
	if _, err := openDevice(0); err != nil {
		if slices.Contains(strings.Split(os.Getenv("PYGSAMPLER_REQUIRE"), ","), "cuda") {
			t.Fatalf("PYGSAMPLER_REQUIRE asks for cuda: %v", err)
		}
		t.Skip(err)
	}
	quiet(t)
	t.Cleanup(func() { empty(t) })
}

// empty checks that nothing of the device is in use.
func empty(t *testing.T) {
	t.Helper()
	if err := DeviceTrim(0); err != nil {
		t.Error(err)
	}
	s, err := DeviceStats(0)
	if err != nil || s.Used != 0 || s.Workspaces != 0 || s.Flights != 0 {
		t.Errorf("the device has %+v, %v", s, err)
	}
}

// copied is a graph on the host and its copy on the device.
type copied struct {
	host, device *Relation
	memories     []memory.Memory
}

func (c *copied) close() {
	if c.device != nil {
		c.device.Close()
	}
	for _, m := range c.memories {
		m.Release()
	}
}

// copyOf uploads a graph; what it has made is in the result also after an error.
func copyOf(host *Relation, trusted bool, with *Relation) (c *copied, err error) {
	c = &copied{host: host}
	s := &host.csc
	d := CSC{
		IndptrBits: 64, NumRows: s.NumRows(), IDBits: 64, NumEdges: s.NumEdges(), EdgeIDBits: s.EdgeIDs.Bits, NumNodes: s.NumNodes,
	}
	for _, part := range []struct {
		to   *int64
		from []int64
	}{{&d.Indptr, s.Indptr.I64}, {&d.Indices, s.Indices.I64}, {&d.EdgeIDs, s.EdgeIDs.I64}} {
		if part.from == nil {
			continue
		}
		at, err := DeviceUpload(0, address(part.from), int64(len(part.from))*8, 0)
		if err != nil {
			return c, err
		}
		m := memory.FromAddress(at)
		c.memories = append(c.memories, m)
		*part.to = int64(uintptr(m.Pointer()))
	}
	c.device, err = NewDeviceRelation(0, d, trusted, with)
	return c, err
}

// pair is a random graph on both sides; withIDs numbers its edges backwards.
func pair(t *testing.T, n int, withIDs, trusted bool) *copied {
	t.Helper()
	a := random(n)
	c := a.csc()
	if withIDs {
		ids := make([]int64, len(a.indices))
		for i := range ids {
			ids[i] = int64(len(ids) - 1 - i)
		}
		c.EdgeIDs, c.EdgeIDBits = address(ids), 64
		t.Cleanup(func() { runtime.KeepAlive(ids) })
	}
	g, err := NewRelation(c)
	if err != nil {
		t.Fatal(err)
	}
	both, err := copyOf(g, trusted, g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { both.close(); g.Close(); runtime.KeepAlive(a) })
	return both
}

// downloaded is a batch on the device, as a memory of the host's; the device's is
// released.
func downloaded(t *testing.T, at int64) int64 {
	t.Helper()
	m := memory.FromAddress(at)
	defer m.Release()
	l, _ := batch.LayoutOf(m.Header(batch.FixedWords))
	header := m.Header(int64(l.Words()))
	size := header[batch.WordSize]
	if m.Device() != 0 {
		t.Errorf("a batch on device %d", m.Device())
	}
	host, err := DeviceDownload(0, int64(uintptr(m.Pointer())), size, 0)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory.ViewAt[int64](memory.FromAddress(host), 0, int64(len(header))), header)
	return host
}

func deviceResult(t *testing.T, j *DeviceJob) string {
	t.Helper()
	at, finished, err := j.Wait(-1)
	if err != nil || !finished || at <= 0 {
		t.Errorf("got %d, finished %v: %v", at, finished, err)
		return ""
	}
	return contents(t, downloaded(t, at))
}

// The same batch on the host and on the device, for seeds here and there, with and
// without exclusions, alone and together, in memory of ours and of the caller's.
func TestDeviceBatches(t *testing.T) {
	onGPU(t)
	for _, withIDs := range []bool{false, true} {
		g := pair(t, 500, withIDs, withIDs)
		seeds, exclude := []int64{5, 6, 7, 5, 499}, []int64{2, 1, 300, 1, 17, 18, 19, 20}
		at, err := DeviceUpload(0, address(seeds), 40, 0)
		if err != nil {
			t.Fatal(err)
		}
		there := memory.FromAddress(at)
		out, err := DeviceAlloc(0, 1<<20, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []*Sampler{options(t, "auto", false, 3, 4), options(t, "auto", true, 2), options(t, "persistent", false, -1, 2)} {
			for i, c := range []Request{
				{Seeds: address(seeds), NumSeeds: 5, SeedBits: 64},
				{SeedBits: 64, Epoch: 3},
				{Seeds: address(seeds), NumSeeds: 5, SeedBits: 64, Batch: 9, Exclude: address(exclude), NumExclude: 8},
			} {
				j, err := submit(g.host, o, c)
				if err != nil {
					t.Fatal(err)
				}
				want := result(t, j)
				calls := []Request{
					c, c, c, c, c,
				}
				calls[1].OwnStream, calls[2].OwnStream, calls[2].Stream, calls[3].Stream = true, true, 2, 2
				calls[4].Out, calls[4].OutBytes = int64(uintptr(memory.FromAddress(out).Pointer())), 1<<20
				if c.NumSeeds > 0 {
					c.Seeds = int64(uintptr(there.Pointer()))
					c.OnDevice = true
					calls = append(calls, c, c)
					calls[6].OwnStream = true
				}
				for k, dc := range calls {
					j, err := deviceSubmit(g.device, o, dc)
					if err != nil {
						t.Fatal(err)
					}
					if got := deviceResult(t, j); got != want {
						t.Fatalf("options %+v, call %d, %d: got %s, want %s", o, i, k, got, want)
					}
				}
				many, err := submitMany(Homogeneous(g.device), o, calls[:4])
				if err != nil {
					t.Fatal(err)
				}
				for k, j := range many {
					if got := deviceResult(t, j); got != want {
						t.Fatalf("options %+v, call %d, %d of many: got %s, want %s", o, i, k, got, want)
					}
				}
			}
		}
		there.Release()
		memory.FromAddress(out).Release()
		runtime.KeepAlive(seeds)
		runtime.KeepAlive(exclude)
	}
}

// A place that is too small gives the bytes that would do, and those do.
func TestOutTooSmall(t *testing.T) {
	onGPU(t)
	g, o := pair(t, 500, false, false), options(t, "auto", false, 5, 5)
	seeds := []int64{1, 2, 3, 4, 5, 6, 7, 8}
	c := Request{Seeds: address(seeds), NumSeeds: 8, SeedBits: 64}
	for bytes := int64(256); ; {
		out, err := DeviceAlloc(0, bytes, 0)
		if err != nil {
			t.Fatal(err)
		}
		m := memory.FromAddress(out)
		c.Out, c.OutBytes = int64(uintptr(m.Pointer())), bytes
		j, err := deviceSubmit(g.device, o, c)
		if err != nil {
			t.Fatal(err)
		}
		at, finished, err := j.Wait(-1)
		if err != nil || !finished {
			t.Fatal(err)
		}
		if at > 0 {
			if bytes == 256 {
				t.Error("256 bytes were enough")
			}
			downloadedContents := contents(t, downloaded(t, at))
			m.Release()
			there := c
			there.Out, there.OutBytes = 0, 0
			host, err := submit(g.host, o, there)
			if err != nil {
				t.Fatal(err)
			}
			if downloadedContents != result(t, host) {
				t.Error("another batch")
			}
			break
		}
		m.Release()
		if -at <= bytes {
			t.Fatalf("%d bytes are too few, and %d would do", bytes, -at)
		}
		bytes = -at
	}
	runtime.KeepAlive(seeds)
}

// Close ends what nobody has looked at and keeps it; Cancel and Shutdown drop it.
func TestDeviceJobsEnd(t *testing.T) {
	onGPU(t)
	host := random(500).open(t)
	o, seeds := options(t, "auto", false, 5, 5), []int64{1, 2, 3}
	c := Request{Seeds: address(seeds), NumSeeds: 3, SeedBits: 64}
	for _, how := range []string{"close", "cancel", "shutdown"} {
		g, err := copyOf(host, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := submitMany(Homogeneous(g.device), o, []Request{c, c, c})
		if err != nil {
			t.Fatal(err)
		}
		if n := Stats().Jobs; n != 3 {
			t.Errorf("%d jobs", n)
		}
		switch how {
		case "close":
			deadline.Within(t, time.Minute, g.device.Close)
			for _, j := range jobs {
				deviceResult(t, j)
			}
		case "cancel":
			for _, j := range jobs {
				deadline.Within(t, time.Minute, j.Cancel)
			}
		case "shutdown":
			deadline.Within(t, time.Minute, Shutdown)
			for _, j := range jobs {
				if _, finished, err := j.Wait(0); !finished || err != request.ErrCancelled {
					t.Errorf("got %v, %v", finished, err)
				}
			}
		}
		deadline.Within(t, time.Minute, g.close)
		_, err = deviceSubmit(g.device, o, c)
		if kind, _ := KindOf(err); kind != KindClosed {
			t.Errorf("got %v", err)
		}
		empty(t)
	}
	runtime.KeepAlive(seeds)
}

// Wrong arguments are refused at once, with the kind of the error, and leave nothing behind.
func TestDeviceErrors(t *testing.T) {
	onGPU(t)
	g, o := pair(t, 100, true, true), options(t, "auto", false, 3)
	alone, err := copyOf(g.host, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer alone.close()
	seeds, bad := []int64{1, 100}, []int64{1 << 40}
	good := Request{Seeds: address(seeds), NumSeeds: 1, SeedBits: 64}
	with := func(change func(*Request)) Request {
		c := good
		change(&c)
		return c
	}
	exclude := with(func(c *Request) { c.Exclude, c.NumExclude = address(bad), 1 })
	for _, k := range []struct {
		graph *Relation
		call  Request
		kind  Kind
		text  string // how it begins
	}{
		{g.host, with(func(*Request) {}), KindValue, "graph: expected one on a CUDA device, got one on the CPU"},
		{g.device, with(func(c *Request) { c.SeedBits = 8 }), KindType, "seeds: expected 32 or 64 bits, got 8"},
		{g.device, with(func(c *Request) { c.OutBytes = 5 }), KindValue, "out: expected an address and bytes >= 0, got 0x0 and 5"},
		{g.device, with(func(c *Request) { c.OnDevice = true }), KindValue, "seeds: expected memory that cuda:0 can read, got host memory"},
		{g.device, exclude, KindValue, "exclude[0]: expected the id of an edge of the graph, got 1099511627776"},
		{alone.device, exclude, KindValue, "exclude: expected a graph without edge_ids, or one that came from the CPU"},
		{g.device, with(func(c *Request) { c.Stream = -1 }), KindCuda, "gpu: cuStreamGetCtx: "},
		{g.device, with(func(c *Request) { c.NumSeeds = 2 }), KindIndex, "seeds[1]: expected an id in [0, 100), got 100"},
	} {
		j, err := deviceSubmit(k.graph, o, k.call)
		if err == nil {
			_, _, err = j.Wait(-1)
		}
		if kind, text := KindOf(err); kind != k.kind || !strings.HasPrefix(text, k.text) {
			t.Errorf("got %s: %s, want %s: %s", kind, text, k.kind, k.text)
		}
	}
	_, err = NewDeviceRelation(0, random(10).csc(), true, nil)
	if kind, text := KindOf(err); kind != KindValue || !strings.HasPrefix(text, "indptr: expected memory that cuda:0 can read") {
		t.Errorf("got %v", err)
	}
	if _, err := DeviceAlloc(0, 1<<50, 0); err == nil || !strings.Contains(err.Error(), "asked for 1125899906842624 bytes") {
		t.Errorf("got %v", err)
	}
	runtime.KeepAlive(seeds)
	runtime.KeepAlive(bad)
}
