package pygsampler

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/gather"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// gathering is rows of arrays as a job's task.
type gathering struct {
	parts []gather.Part
	out   memory.Memory
	crew  crew
	stop  *atomic.Bool
}

// gatherWords is how many words describe a part of what Gather gathers.
const gatherWords = 7

// promptBytes is the size up to which Gather works on the caller's thread.
const promptBytes = 1 << 22

// Gather queues the copying of rows of several tables into one memory of size bytes. list
// is the address of count parts of 7 words each: address of the ids, how many, their bits,
// the table's address, its rows, the bytes of a row, and where in the memory its rows begin;
// with size -1 at which address, and the memory is empty. All of it must stay until the job
// is finished, but the list. With prompt the caller waits at once: few bytes are there when it returns.
func Gather(list, count, size, threads int64, prompt bool) (*HostJob, error) {
	t, err := newGathering(list, count, size, threads)
	if err != nil {
		return nil, err
	}
	j := t.job()
	if !prompt || t.bytes() > promptBytes || !engine.enter() {
		engine.submit(j)
		return j, nil
	}
	j.make()
	engine.give(1)
	j.finish()
	return j, nil
}

func newGathering(list, count, size, threads int64) (*gathering, error) {
	if count < 0 || count > 1<<16 {
		return nil, Errorf(KindValue, "gather: expected 0 to %d parts, got %d", 1<<16, count)
	}
	words := memory.View[int64](list, gatherWords*count)
	for p := range count {
		w := words[gatherWords*p:][:gatherWords]
		ids, bits, rows, row, out := w[1], w[2], w[4], w[5], w[6]
		if bits != 32 && bits != 64 {
			return nil, Errorf(KindType, "ids: expected 32 or 64 bits, got %d", bits)
		}
		if ids < 0 || rows < 0 || row < 1 || out < 0 {
			return nil, Errorf(KindValue, "gather: expected lengths and offsets >= 0 and rows of 1 byte or more, got %v", w)
		}
		if size >= 0 && (out > size || ids > (size-out)/row) || max(ids, rows) > (1<<62)/row {
			return nil, Errorf(KindValue, "gather: expected %d rows of %d bytes at %d in a memory, got %d bytes", ids, row, out, size)
		}
	}
	t := &gathering{crew: crewOf(threads), parts: make([]gather.Part, count)}
	for p := range t.parts {
		w := words[gatherWords*p:][:gatherWords]
		t.parts[p] = gather.Borrow(w[0], w[1], int(w[2]), w[3], w[4], w[5])
		if size < 0 {
			t.parts[p].Out = memory.View[byte](w[6], w[1]*w[5])
		}
	}
	// Last: what panics on a bad address must not lose it.
	var err error
	if t.out, err = memory.New(max(size, 1)); err != nil {
		return nil, err
	}
	t.out.SetSize(max(size, 0))
	if size >= 0 {
		for p := range t.parts {
			w := words[gatherWords*p:][:gatherWords]
			t.parts[p].Out = memory.At[byte](t.out, w[6], w[1]*w[5])
		}
	}
	return t, nil
}

// bytes is how much is copied.
func (t *gathering) bytes() int64 {
	n := int64(0)
	for _, p := range t.parts {
		n += int64(len(p.Out))
	}
	return n
}

func (t *gathering) job() *HostJob {
	j := newJob(t)
	t.stop = &j.stop
	return j
}

func (t *gathering) do() (memory.Memory, error) {
	if err := gather.Copy(t.parts, t.crew, t.stop); err != nil {
		return memory.Memory{}, err
	}
	m := t.out
	t.out = memory.Memory{}
	return m, nil
}

// over gives the memory back that became no result.
func (t *gathering) over() {
	if t.out != (memory.Memory{}) {
		t.out.Release()
	}
}

func (t *gathering) reads(*Relation) bool { return false }

func (t *gathering) fault() string { return "an array changed while its rows were read" }
