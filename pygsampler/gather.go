package pygsampler

import (
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/gather"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/quantized"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// gathering is rows of arrays as a job's task.
type gathering struct {
	parts []gather.Part
	out   memory.Memory
	crew  crew
	stop  *atomic.Bool
}

// gatherWords is the number of words that describe a part of a gather.
const gatherWords = 7 + formWords

// formWords is the number of words that describe the quantization of a table: all 0 for a plain
// table.
const formWords = 5

// formAt returns the format that words describe.
func formAt(w []int64) quantized.Form {
	return quantized.Form{Kind: int(w[0]), To: int(w[1]), ByColumn: w[2]&1 != 0, InFile: w[2]&2 != 0, Columns: w[3], Scales: w[4]}
}

// promptBytes is the size up to which Gather works on the caller's thread.
const promptBytes = 1 << 22

// Gather starts to copy rows of several tables into one memory of size bytes. list is the address
// of count parts of 12 words each: the address, number and bits of the ids; the address of the
// table, its rows, and the bytes of a row; and the offset of its rows in the memory, or, with size
// -1 and an empty memory, their address. The last 5 words describe a quantized table: the kind, the
// type that its values are read as, 1 for scales of columns plus 2 for a table in a file, the
// number of columns, and the address of the scales. All of this except the list must stay valid
// until the job has ended. With prompt the call waits if there are few bytes, so that they are
// complete when it returns.
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
		form, read := formAt(w[7:]), row
		if form.Kind != 0 {
			if err := form.Check(row); err != nil {
				return nil, err
			}
			read = form.ReadBytes()
		}
		if bits != 32 && bits != 64 {
			return nil, Errorf(KindType, "ids: expected 32 or 64 bits, got %d", bits)
		}
		if ids < 0 || rows < 0 || row < 1 || out < 0 {
			return nil, Errorf(KindValue, "gather: expected lengths and offsets >= 0 and rows of 1 byte or more, got %v", w)
		}
		if size >= 0 && (out > size || ids > (size-out)/read) || max(ids, rows) > (1<<62)/max(row, read) {
			return nil, Errorf(KindValue, "gather: expected %d rows of %d bytes at %d in a memory, got %d bytes", ids, read, out, size)
		}
	}
	t := &gathering{crew: crewOf(threads), parts: make([]gather.Part, count)}
	for p := range t.parts {
		w := words[gatherWords*p:][:gatherWords]
		t.parts[p] = gather.Borrow(w[0], w[1], int(w[2]), w[3], w[4], w[5])
		t.parts[p].Form = formAt(w[7:])
		if size < 0 {
			t.parts[p].Out = memory.View[byte](w[6], w[1]*t.parts[p].OutRow())
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
			t.parts[p].Out = memory.ViewAt[byte](t.out, w[6], w[1]*t.parts[p].OutRow())
		}
	}
	return t, nil
}

// bytes returns the number of bytes to copy.
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

// Quantize stores rows of floats in fewer bits, as quantized.Store does, with all idle threads. The
// address list holds 11 words: the address of the floats, their bits, 1 if 16-bit floats are
// bfloat16, and the number of rows; the five words of a quantized table; the address of the stored
// rows, or 0, and the bytes of each. It returns the position of the first value that cannot be
// stored, or -1. Without rows and without an address for them, it computes scales of columns from
// the greatest absolute values found.
func Quantize(list int64) (int64, error) {
	w := memory.View[int64](list, 6+formWords)
	form := formAt(w[4:])
	if err := form.Check(w[10]); err != nil {
		return 0, err
	}
	s := quantized.Source{Address: w[0], Bits: w[1], Brain: w[2] != 0, Rows: w[3]}
	if s.Rows == 0 && w[9] == 0 && form.ByColumn {
		quantized.Scale(&form)
		return -1, nil
	}
	return quantized.Store(&form, &s, w[9], w[10], crewOf(0))
}

func (t *gathering) reads(*Relation) bool { return false }

func (t *gathering) fault() string { return "an array changed while its rows were read" }
