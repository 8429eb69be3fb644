package gather

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
	"github.com/pygsampler/pygsampler/pygsampler/internal/testing/csctest"
)

// lent is a crew of so many workers.
type lent int

func (l lent) Borrow(n int) int { return min(n, int(l)) }
func (l lent) Return(int)       {}

// Every row is the table's, however many there are, whatever their size and where table and result
// begin.
func TestCopyIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	widths := []int64{128, 400, 2408, 1 << 12, 1<<12 + 1, 1 << 14}
	for row := int64(1); row <= 70; row++ {
		widths = append(widths, row)
	}
	for _, row := range widths {
		const rows = 50
		for shift := range int64(9) {
			count := []int64{0, 1, 2, 333}[(row+shift)%4]
			raw := make([]byte, rows*row+shift)
			for i := range raw {
				raw[i] = byte(r.Uint32())
			}
			table, out := raw[shift:], make([]byte, count*row+shift+1)
			ids := make([]int64, count)
			for i := range ids {
				ids[i] = r.Int64N(rows)
			}
			for _, bits := range []int{32, 64} {
				clear(out)
				part := Part{IDs: csctest.Array(ids, bits), Table: table, Row: row, Out: out[shift : shift+count*row]}
				if err := Copy([]Part{part}, lent(0), new(atomic.Bool)); err != nil {
					t.Fatal(err)
				}
				for i, id := range ids {
					at := shift + int64(i)*row
					if !bytes.Equal(out[at:at+row], table[id*row:(id+1)*row]) {
						t.Fatalf("row of %d bytes, %d bits, shift %d: place %d is not row %d", row, bits, shift, i, id)
					}
				}
				if out[len(out)-1] != 0 || !bytes.Equal(out[:shift], make([]byte, shift)) {
					t.Fatal("wrote beside the result")
				}
			}
		}
	}
}

// Parts of many units, of different rows, empty ones among them, by one worker and by many.
func TestCopySeveralParts(t *testing.T) {
	var parts []Part
	for i, row := range []int64{4, 400, 1, 8, 2408, 12, 300_000} {
		const rows = 97
		table := make([]byte, rows*row)
		for j := range table {
			table[j] = byte(j/int(row) + 31*i + j)
		}
		count := 3 * (unitBytes/row + 1)
		ids := make([]int64, count)
		for j := range ids {
			ids[j] = int64(j*j) % rows
		}
		parts = append(parts, Part{IDs: csctest.Array(ids, 64), Table: table, Row: row, Out: make([]byte, count*row)})
		parts = append(parts, Part{IDs: csctest.Array(nil, 64), Table: table, Row: row})
	}
	for _, workers := range []lent{0, 1, 7} {
		for _, p := range parts {
			clear(p.Out)
		}
		if err := Copy(parts, workers, new(atomic.Bool)); err != nil {
			t.Fatal(err)
		}
		for i, p := range parts {
			for j := range p.IDs.Len() {
				id := p.IDs.Element(j)
				if !bytes.Equal(p.Out[j*p.Row:(j+1)*p.Row], p.Table[id*p.Row:(id+1)*p.Row]) {
					t.Fatalf("%d workers, part %d: place %d is not row %d", workers, i, j, id)
				}
			}
		}
	}
}

// The first wrong id of the first part that has one is told, whoever finds it.
func TestCopyRefusesIDs(t *testing.T) {
	table := make([]byte, 10*400)
	for _, wrong := range []int64{-1, 10, 1 << 40, -1 << 40} {
		ids := make([]int64, 5000)
		ids[4321], ids[4999], ids[3000] = wrong, wrong, wrong
		part := Part{IDs: csctest.Array(ids, 64), Table: table, Row: 400, Out: make([]byte, 400*len(ids))}
		another := part
		another.Out = make([]byte, 400*len(ids))
		good := Part{IDs: csctest.Array([]int64{3}, 64), Table: table, Row: 400, Out: make([]byte, 400)}
		err := Copy([]Part{good, part, another}, lent(3), new(atomic.Bool))
		var told *IDError
		if !errors.As(err, &told) || told.Part != 1 || told.Place != 3000 || told.ID != wrong || told.Rows != 10 {
			t.Errorf("id %d: got %v", wrong, err)
		}
		if !errors.Is(err, request.ErrIndex) {
			t.Errorf("%v is no index error", err)
		}
	}
	empty := Part{IDs: csctest.Array([]int64{0}, 32), Row: 4, Out: make([]byte, 4)}
	if err := Copy([]Part{empty}, lent(0), new(atomic.Bool)); !errors.Is(err, request.ErrIndex) {
		t.Errorf("a table without rows: got %v", err)
	}
}

func TestCopyStops(t *testing.T) {
	stop := new(atomic.Bool)
	stop.Store(true)
	p := Part{IDs: csctest.Array([]int64{0}, 32), Table: make([]byte, 4), Row: 4, Out: make([]byte, 4)}
	if err := Copy([]Part{p}, lent(0), stop); !errors.Is(err, request.ErrCancelled) {
		t.Errorf("got %v", err)
	}
}

func TestCopyRefusesSizes(t *testing.T) {
	ids := csctest.Array([]int64{0}, 32)
	for _, p := range []Part{
		{IDs: ids, Table: make([]byte, 4), Row: 0, Out: make([]byte, 4)},
		{IDs: ids, Table: make([]byte, 5), Row: 4, Out: make([]byte, 4)},
		{IDs: ids, Table: make([]byte, 4), Row: 4, Out: make([]byte, 3)},
	} {
		if Copy([]Part{p}, lent(0), new(atomic.Bool)) == nil {
			t.Errorf("%v: got no error", p)
		}
	}
}

func BenchmarkCopy(b *testing.B) {
	const rows, count = 1 << 20, 1 << 17
	for _, row := range []int64{8, 400, 2048} {
		table, out := make([]byte, rows*row), make([]byte, count*row)
		for i := 0; i < len(table); i += 64 {
			table[i] = 1
		}
		ids := make([]int64, count)
		r := rand.New(rand.NewPCG(3, 4))
		for i := range ids {
			ids[i] = r.Int64N(rows)
		}
		p := Part{IDs: csc.Borrow(int64(uintptr(unsafe.Pointer(&ids[0]))), count, 64), Table: table, Row: row, Out: out}
		b.Run(map[int64]string{8: "8", 400: "400", 2048: "2048"}[row], func(b *testing.B) {
			b.SetBytes(count * row)
			for b.Loop() {
				if err := Copy([]Part{p}, lent(0), new(atomic.Bool)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
