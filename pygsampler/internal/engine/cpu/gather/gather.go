// Package gather copies rows of tables by index on the CPU, and converts quantized rows to floats.
package gather

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/quantized"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Part is a set of rows of one table: row IDs[i] of Table becomes row i of Out, byte by byte, or as
// Form says.
type Part struct {
	IDs   csc.Array
	Table []byte // rows without gaps
	Row   int64  // bytes from one row to the next, 1 or more
	Out   []byte
	Form  quantized.Form
}

// OutRow returns the bytes of a row of Out.
func (p *Part) OutRow() int64 {
	if p.Form.Kind == 0 {
		return p.Row
	}
	return p.Form.ReadBytes()
}

// IDError reports an id of a row that the table does not have.
type IDError struct {
	Part      int
	Place, ID int64
	Rows      int64
}

func (e *IDError) Error() string {
	return fmt.Sprintf("ids[%d]: expected an integer in [0, %d), got %d", e.Place, e.Rows, e.ID)
}

// Unwrap returns the kind of the error.
func (e *IDError) Unwrap() error { return request.ErrIndex }

// unitBytes is the number of bytes that a worker copies at a time.
const unitBytes = 1 << 17

// Copy copies all parts. It returns request.ErrCancelled soon after stop is set, and an IDError for
// the first wrong id of the first part that has one.
func Copy(parts []Part, crew csc.Crew, stop *atomic.Bool) error {
	c := copying{parts: parts, stop: stop}
	for _, p := range parts {
		if p.Row < 1 || int64(len(p.Table))%p.Row != 0 || int64(len(p.Out)) != p.IDs.Len()*p.OutRow() {
			return fmt.Errorf("gather: %d ids, rows of %d bytes, table of %d, out of %d", p.IDs.Len(), p.Row, len(p.Table), len(p.Out))
		}
		size := max(1, unitBytes/p.OutRow())
		c.size = append(c.size, size)
		c.units += (p.IDs.Len() + size - 1) / size
		c.ends = append(c.ends, c.units)
	}
	csc.Crewed(crew, c.units, c.work)
	if stop.Load() {
		return request.ErrCancelled
	}
	if c.wrong != nil {
		return c.wrong
	}
	return nil
}

// copying is the work of one call, in units of rows of one part.
type copying struct {
	parts []Part
	size  []int64 // rows in a unit, for each part
	ends  []int64 // units up to the end of each part
	units int64
	next  atomic.Int64
	stop  *atomic.Bool
	mu    sync.Mutex
	wrong *IDError
}

func (c *copying) work() {
	part := 0
	for !c.stop.Load() {
		unit := c.next.Add(1) - 1
		if unit >= c.units {
			return
		}
		before := int64(0)
		for unit >= c.ends[part] {
			part++
		}
		if part > 0 {
			before = c.ends[part-1]
		}
		p := &c.parts[part]
		low := (unit - before) * c.size[part]
		high := min(low+c.size[part], p.IDs.Len())
		if place := p.rows(low, high); place >= 0 {
			c.refuse(part, place)
		}
	}
}

// refuse notes a wrong id, unless there is one before it.
func (c *copying) refuse(part int, place int64) {
	p := &c.parts[part]
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.wrong; w == nil || part < w.Part || part == w.Part && place < w.Place {
		c.wrong = &IDError{part, place, p.IDs.Element(place), int64(len(p.Table)) / p.Row}
	}
}

// rows makes rows low to high of Out; it returns the place of a wrong id, or -1.
func (p *Part) rows(low, high int64) int64 {
	if p.IDs.Bits == 32 {
		return rowsBy(p, p.IDs.I32[low:high], low)
	}
	return rowsBy(p, p.IDs.I64[low:high], low)
}

func rowsBy[I int32 | int64](p *Part, ids []I, first int64) int64 {
	rows := uint64(int64(len(p.Table)) / p.Row)
	for i, id := range ids {
		if uint64(int64(id)) >= rows {
			return first + int64(i)
		}
	}
	if len(ids) == 0 {
		return -1
	}
	out := p.Out[first*p.OutRow():]
	if p.Form.Kind != 0 {
		quantized.Read(&p.Form, p.Table, p.Row, ids, out)
		return -1
	}
	switch aligned := uintptr(unsafe.Pointer(&p.Table[0])) | uintptr(unsafe.Pointer(&out[0])); {
	case p.Row == 4 && aligned%4 == 0:
		words[uint32](p.Table, ids, out)
	case p.Row == 8 && aligned%8 == 0:
		words[uint64](p.Table, ids, out)
	default:
		prefetch.Copy(p.Table, p.Row, ids, out)
	}
	return -1
}

// words copies rows that are one word each: labels, times, weights.
func words[W uint32 | uint64, I int32 | int64](table []byte, ids []I, out []byte) {
	size := int(unsafe.Sizeof(*new(W)))
	from := unsafe.Slice((*W)(unsafe.Pointer(&table[0])), len(table)/size)
	to := unsafe.Slice((*W)(unsafe.Pointer(&out[0])), len(out)/size)
	for i, id := range ids {
		to[i] = from[id]
	}
}

// Borrow returns a part of arrays at Python's addresses, without Out.
func Borrow(ids, count int64, bits int, table, rows, row int64) Part {
	return Part{IDs: csc.Borrow(ids, count, bits), Table: memory.View[byte](table, rows*row), Row: row}
}
