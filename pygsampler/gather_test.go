package pygsampler

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/deadline"
)

// lookup is a table, the ids of its rows that are wanted, and room for them.
type lookup struct {
	ids        []int64
	narrow     []int32 // the ids, where they have 32 bits
	table, out []byte
	rows, row  int64
}

// newLookup is count rows of a table of any bytes.
func newLookup(bits int, count, rows, row int64) *lookup {
	r := rand.New(rand.NewPCG(uint64(count), uint64(row)))
	l := &lookup{table: make([]byte, rows*row), out: make([]byte, count*row), rows: rows, row: row}
	for i := range l.table {
		l.table[i] = byte(r.Uint32())
	}
	for range count {
		id := r.Int64N(rows)
		l.ids = append(l.ids, id)
		if bits == 32 {
			l.narrow = append(l.narrow, int32(id))
		}
	}
	return l
}

// words is the lookup as Gather takes it, to be written to an offset or an address.
func (l *lookup) words(out int64) []int64 {
	at, bits := address(l.ids), int64(64)
	if l.narrow != nil {
		at, bits = address(l.narrow), 32
	}
	return []int64{at, int64(len(l.ids)), bits, address(l.table), l.rows, l.row, out, 0, 0, 0, 0, 0}
}

// want is the rows.
func (l *lookup) want() []byte {
	var all []byte
	for _, id := range l.ids {
		all = append(all, l.table[id*l.row:(id+1)*l.row]...)
	}
	return all
}

func gatherLater(list, count, size, threads int64) (*HostJob, error) {
	return Gather(list, count, size, threads, false)
}

func gatherNow(list, count, size, threads int64) (*HostJob, error) {
	return Gather(list, count, size, threads, true)
}

type gatherer func(list, count, size, threads int64) (*HostJob, error)

// gatherers are the ways to gather.
var gatherers = map[string]gatherer{"Gather": gatherLater, "GatherNow": gatherNow}

// rowsOf waits for a job and is what it made; the memory is the caller's.
func rowsOf(t *testing.T, j *HostJob, err error) memory.Memory {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	at, finished, err := j.Wait(-1)
	if err != nil || !finished {
		t.Fatalf("finished %v: %v", finished, err)
	}
	return memory.FromAddress(at)
}

// Few rows and many, of ids of both widths and of none, by any number of threads, into
// the job's memory and into the caller's.
func TestGatherIsExact(t *testing.T) {
	quiet(t)
	all := []*lookup{
		newLookup(64, 700, 90, 4), newLookup(32, 5, 9, 13), newLookup(64, 0, 3, 8),
		newLookup(32, 20_000, 1000, 400), newLookup(64, 1, 1, 1), newLookup(32, 0, 0, 7),
	}
	if n := int64(len(all[3].out)); n <= promptBytes {
		t.Fatalf("%d bytes are few", n)
	}
	for name, gather := range gatherers {
		for _, parts := range [][]*lookup{all[:3], all, all[2:3], {}} {
			for _, threads := range []int64{0, 1, 3, -5, 1 << 40} {
				var list, starts []int64
				size := int64(0)
				for _, l := range parts {
					list = append(list, l.words(size)...)
					starts = append(starts, size)
					size += int64(len(l.out)) + 3
				}
				j, err := gather(address(list), int64(len(parts)), size, threads)
				clear(list) // is the caller's again
				m := rowsOf(t, j, err)
				for i, l := range parts {
					if !bytes.Equal(memory.ViewAt[byte](m, starts[i], int64(len(l.out))), l.want()) {
						t.Errorf("%s, %d threads, part %d: other rows", name, threads, i)
					}
				}
				m.Release()

				list = list[:0]
				for _, l := range parts {
					clear(l.out)
					list = append(list, l.words(address(l.out))...)
				}
				j, err = gather(address(list), int64(len(parts)), -1, threads)
				rowsOf(t, j, err).Release()
				for i, l := range parts {
					if !bytes.Equal(l.out, l.want()) {
						t.Errorf("%s, %d threads, part %d: other rows at an address", name, threads, i)
					}
				}
			}
		}
	}
	runtime.KeepAlive(all)
}

// A memory of no bytes is one too, where the pool has none to give.
func TestGatherWithoutAPool(t *testing.T) {
	quiet(t)
	l := newLookup(64, 2, 5, 8)
	for name, gather := range gatherers {
		Trim()
		list := l.words(address(l.out))
		j, err := gather(address(list), 1, -1, 0)
		m := rowsOf(t, j, err)
		if !bytes.Equal(l.out, l.want()) {
			t.Errorf("%s: other rows", name)
		}
		if n := memory.Count(); n.LiveBytes > 1<<14 {
			t.Errorf("%s: %d bytes for nothing", name, n.LiveBytes)
		}
		Trim()
		j, err = gather(0, 0, 0, 0)
		rowsOf(t, j, err).Release()
		m.Release()
	}
	runtime.KeepAlive(l)
}

// Few rows are there when a prompt Gather returns; many are not waited for.
func TestGatherNow(t *testing.T) {
	quiet(t)
	few, most := newLookup(64, promptBytes/8, 100, 8), newLookup(64, promptBytes/8+1, 100, 8)
	for _, l := range []*lookup{few, most} {
		list := l.words(0)
		j, err := gatherNow(address(list), 1, int64(len(l.out)), 0)
		if err != nil {
			t.Fatal(err)
		}
		prompt := l == few
		select {
		case <-j.done:
		default:
			if prompt {
				t.Error("few rows are on their way")
			}
		}
		m := rowsOf(t, j, nil)
		if !bytes.Equal(memory.ViewAt[byte](m, 0, int64(len(l.out))), l.want()) {
			t.Error("other rows")
		}
		m.Release()
	}
	// Nor are few where all threads are busy.
	end := occupy(t)
	list := few.words(0)
	j, err := gatherNow(address(list), 1, int64(len(few.out)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, finished, _ := j.Wait(0); finished {
		t.Error("was made beside the one thread")
	}
	end()
	rowsOf(t, j, nil).Release()
	runtime.KeepAlive(few)
	runtime.KeepAlive(most)
}

// occupy gives the engine one thread and that something to do, until end is called.
func occupy(t *testing.T) (end func()) {
	t.Helper()
	g, o, c := long(t)
	before, err := SetThreads(1)
	if err != nil {
		t.Fatal(err)
	}
	j, err := submit(g, o, c)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		deadline.Within(t, time.Minute, j.Cancel)
		if _, err := SetThreads(before); err != nil {
			t.Error(err)
		}
	}
}

// Wrong gathers are refused before any work, with no memory lost.
func TestGatherErrors(t *testing.T) {
	quiet(t)
	l := newLookup(64, 3, 5, 8)
	const most = 1<<63 - 1
	for i, k := range []struct {
		change      func(w []int64)
		count, size int64
		kind        Kind
		text        string
	}{
		{nil, -1, 24, KindValue, "gather: expected 0 to 65536 parts, got -1"},
		{nil, 1<<16 + 1, 24, KindValue, "gather: expected 0 to 65536 parts, got 65537"},
		{nil, most, 24, KindValue, ""},
		{func(w []int64) { w[2] = 16 }, 1, 24, KindType, "ids: expected 32 or 64 bits, got 16"},
		{func(w []int64) { w[2] = 64 | 1<<32 }, 1, 24, KindType, ""},
		{func(w []int64) { w[2] = -64 }, 1, 24, KindType, ""},
		{func(w []int64) { w[1] = -1 }, 1, 24, KindValue, ""},
		{func(w []int64) { w[4] = -1 }, 1, 24, KindValue, ""},
		{func(w []int64) { w[5] = 0 }, 1, 24, KindValue, ""},
		{func(w []int64) { w[5] = -8 }, 1, 24, KindValue, ""},
		{func(w []int64) { w[6] = -8 }, 1, 24, KindValue, ""},
		{func(w []int64) { w[6] = -8 }, 1, -1, KindValue, ""},
		{nil, 1, 23, KindValue, "gather: expected 3 rows of 8 bytes at 0 in a memory, got 23 bytes"},
		{func(w []int64) { w[6] = 1 }, 1, 24, KindValue, ""},
		{func(w []int64) { w[1], w[6] = 0, 25 }, 1, 24, KindValue, ""},
		{func(w []int64) { w[6] = most }, 1, 24, KindValue, ""},
		{func(w []int64) { w[1] = most }, 1, 24, KindValue, ""},
		{func(w []int64) { w[1] = most }, 1, -1, KindValue, ""},
		{func(w []int64) { w[1], w[5] = 1<<32, 1<<32 }, 1, most, KindValue, ""},
		{func(w []int64) { w[4], w[5] = 1<<32, 1<<32 }, 1, -1, KindValue, ""},
		{func(w []int64) { w[4] = most }, 1, 24, KindValue, ""},
		{func(w []int64) { w[1] = 0 }, 1, 1 << 62, KindMemory, ""},
	} {
		for name, gather := range gatherers {
			list := l.words(0)
			if k.change != nil {
				k.change(list)
			}
			_, err := gather(address(list), k.count, k.size, 0)
			if err == nil {
				t.Errorf("%s, case %d: no error", name, i)
				continue
			}
			if kind, text := KindOf(err); kind != k.kind || k.text != "" && text != k.text {
				t.Errorf("%s, case %d: got %s: %s", name, i, kind, text)
			}
		}
	}
	runtime.KeepAlive(l)
}

// Wrong ids are errors of the job, which leaves no memory.
func TestGatherRefusesIDs(t *testing.T) {
	quiet(t)
	good, bad := newLookup(64, 9, 5, 8), newLookup(64, 200_000, 5, 40)
	bad.ids[150_000], bad.ids[199_999] = 5, -1
	for name, gather := range gatherers {
		for _, size := range []int64{1 << 24, -1} {
			at := func(l *lookup, offset int64) int64 {
				if size < 0 {
					return address(l.out)
				}
				return offset
			}
			list := slices.Concat(good.words(at(good, 0)), bad.words(at(bad, 128)), bad.words(at(bad, 1<<23)))
			j, err := gather(address(list), 3, size, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, finished, err := j.Wait(-1)
			if kind, text := KindOf(err); !finished || kind != KindIndex || text != "ids[150000]: expected an integer in [0, 5), got 5" {
				t.Errorf("%s: got %s: %s", name, kind, text)
			}
			deadline.Within(t, time.Minute, j.Cancel)
		}
	}
	runtime.KeepAlive(good)
	runtime.KeepAlive(bad)
}

// A job that waits, one that runs and one that is finished can be cancelled; none keeps
// its memory.
func TestGatherCancel(t *testing.T) {
	quiet(t)
	l := newLookup(32, 50_000, 1000, 400)
	list := l.words(0)
	begin := func() *HostJob {
		j, err := gatherLater(address(list), 1, int64(len(l.out)), 0)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	live := memory.Count().Live
	end := occupy(t)
	j := begin()
	if n := memory.Count().Live - live; n < 1 || Stats().Jobs != 2 {
		t.Errorf("%d memories, %d jobs", n, Stats().Jobs)
	}
	deadline.Within(t, time.Minute, j.Cancel)
	if _, finished, err := j.Wait(0); !finished || err != request.ErrCancelled {
		t.Errorf("finished %v: %v", finished, err)
	}
	end()
	for i := range 30 {
		j := begin()
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		deadline.Within(t, time.Minute, j.Cancel)
	}
	runtime.KeepAlive(l)
}

// Graphs that are closed or dropped have nothing to do with it.
func TestGatherOutlivesGraphs(t *testing.T) {
	quiet(t)
	l := newLookup(64, 10, 5, 8)
	list := l.words(0)
	end := occupy(t)
	j, err := gatherLater(address(list), 1, int64(len(l.out)), 0)
	a := random(10)
	a.open(t).Drop()
	a.open(t).Close()
	end()
	m := rowsOf(t, j, err)
	if !bytes.Equal(memory.ViewAt[byte](m, 0, int64(len(l.out))), l.want()) {
		t.Error("other rows")
	}
	m.Release()
	runtime.KeepAlive(l)
}

// Shutdown ends what runs and what waits.
func TestGatherShutdown(t *testing.T) {
	quiet(t)
	l := newLookup(64, 50_000, 1000, 400)
	list := l.words(0)
	for range 3 {
		var jobs []*HostJob
		for range 8 {
			j, err := gatherLater(address(list), 1, int64(len(l.out)), 0)
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, j)
		}
		deadline.Within(t, time.Minute, Shutdown)
		if n := Stats().Jobs; n != 0 {
			t.Errorf("%d jobs after Shutdown", n)
		}
		for _, j := range jobs {
			at, finished, err := j.Wait(0)
			if !finished || err != nil && err != request.ErrCancelled {
				t.Errorf("finished %v: %v", finished, err)
			}
			if err == nil && finished {
				memory.FromAddress(at).Release()
			}
		}
	}
	end := occupy(t)
	j, err := gatherLater(address(list), 1, int64(len(l.out)), 0)
	if err != nil {
		t.Fatal(err)
	}
	deadline.Within(t, time.Minute, Shutdown)
	if _, finished, err := j.Wait(0); !finished || err != request.ErrCancelled {
		t.Errorf("one that waited: finished %v: %v", finished, err)
	}
	end()
	runtime.KeepAlive(l)
}

// Batches and rows at once, from many goroutines.
func TestGatherBesideSampling(t *testing.T) {
	quiet(t)
	g := random(3000).open(t)
	o := options(t, "auto", false, 5, 5)
	seeds := csctest.Squares(300, 3000)
	l := newLookup(64, 20_000, 1000, 100)
	want := l.want()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				list := l.words(0)
				gather := []gatherer{gatherLater, gatherNow}[(w+i)%2]
				rows, err := gather(address(list), 1, int64(len(l.out)), 0)
				if err != nil {
					t.Error(err)
					return
				}
				j, err := submit(g, o, Request{Seeds: address(seeds), NumSeeds: 300, SeedBits: 64, Batch: int64(i)})
				if err != nil {
					t.Error(err)
					return
				}
				result(t, j)
				at, _, err := rows.Wait(-1)
				if err != nil {
					t.Error(err)
					return
				}
				m := memory.FromAddress(at)
				if !bytes.Equal(unsafe.Slice((*byte)(m.Pointer()), len(want)), want) {
					t.Error("other rows")
				}
				m.Release()
			}
		})
	}
	wg.Wait()
	runtime.KeepAlive(l)
	runtime.KeepAlive(seeds)
}
