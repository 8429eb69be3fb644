package cuda

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cpu/quantized"
)

func TestKindsAreThoseOfTheCPU(t *testing.T) {
	ours := []int{quantizedHalf, quantizedBrain, quantizedFloat8, quantizedInt8, quantizedInt4, readAsFloat, readAsHalf, readAsBrain}
	theirs := []int{quantized.Half, quantized.Brain, quantized.E4M3, quantized.Int8, quantized.Int4, quantized.ToFloat, quantized.ToHalf, quantized.ToBrain}
	if !slices.Equal(ours, theirs) {
		t.Errorf("got %v, want %v", ours, theirs)
	}
}

// Every kind is read as every dtype, to the bit as on the CPU, whatever its codes, columns, what is behind a row and
// the places of the rows and of the result; ids outside give zeros. Rows are those of a table, or were copied before.
func TestDequantizeIsTheCPUs(t *testing.T) {
	e, s := device(t)
	random := rand.New(rand.NewPCG(5, 6))
	const rows = 300
	for place, columns := range []int{1, 2, 3, 4, 7, 8, 31, 32, 100, 101, 128, 132, 260} {
		for kind := quantizedHalf; kind <= quantizedInt4; kind++ {
			for form := range 6 {
				to, byColumn := form/2, form%2 == 1
				if byColumn && kind < quantizedFloat8 {
					continue
				}
				f := quantized.Form{Kind: kind, To: to, ByColumn: byColumn, Columns: int64(columns)}
				scales := make([]float32, rows+columns)
				for i := range scales {
					scales[i] = float32(math.Abs(random.NormFloat64()))
				}
				scales[1] = 0
				if kind >= quantizedFloat8 {
					f.Scales = int64(uintptr(unsafe.Pointer(&scales[0])))
				}
				row := int(f.Bytes())
				switch (place + kind + form) % 3 {
				case 1:
					row = (row + 127) / 128 * 128
				case 2:
					// No word of four values fits.
					row += 2
				}
				table := randomBytes(rows * row)
				if kind == quantizedFloat8 {
					// All codes.
					for i := range table {
						table[i] = byte(i)
					}
				}
				ids := make([]int32, rows)
				for i := range ids {
					ids[i] = int32(random.IntN(rows))
				}
				want := make([]byte, rows*int(f.ReadBytes()))
				quantized.Read(&f, table, int64(row), ids, want)
				stored := make([]byte, 0, len(table))
				for _, id := range ids {
					stored = append(stored, table[int(id)*row:][:row]...)
				}
				// The rows that a gather writes for ids outside the table.
				outside := rows / 2
				ids[outside], ids[outside+1] = rows, -1
				clear(stored[outside*row:][:2*row])
				clear(want[outside*int(f.ReadBytes()):][:2*f.ReadBytes()])
				bits, packedIDs := 32, packed(ids)
				if columns%2 == 1 {
					wide := make([]int64, rows)
					for i, id := range ids {
						wide[i] = int64(id)
					}
					bits, packedIDs = 64, packed(wide)
				}
				var memory deviceMemory
				off := []int{0, 4, 8}[columns%3]
				d := Dequantize{
					Rows: rows, Row: uint64(row), Columns: uint64(columns), Kind: kind, To: to, ByColumn: byColumn,
					IDs: IDs{At: memory.at(t, e, s, packedIDs, 0), Count: rows, Bits: bits},
				}
				if f.Scales != 0 {
					d.Scales = memory.at(t, e, s, unsafe.Slice((*byte)(unsafe.Pointer(&scales[0])), 4*len(scales)), 0)
				}
				for _, byID := range []bool{false, true} {
					d.ByID, d.Bad = byID, 0
					if byID {
						d.Stored, d.Bad = memory.at(t, e, s, table, 2*(columns%2)), memory.at(t, e, s, packed([]uint64{math.MaxUint64}), 0)
					} else {
						d.Stored = memory.at(t, e, s, stored, 0)
					}
					d.Out = memory.at(t, e, s, bytes.Repeat([]byte{guard}, len(want)+2*guarded), off) + guarded
					if err := e.Dequantize(&d, byID, s); err != nil {
						t.Fatal(err)
					}
					got := download(t, s, d.Out-guarded, len(want)+2*guarded)
					if !bytes.Equal(got[guarded:][:len(want)], want) {
						at := 0
						for at = range want {
							if got[guarded+at] != want[at] {
								break
							}
						}
						size := int(f.ReadBytes()) / columns
						at -= at % size
						t.Fatalf("kind %d read as %d, %d columns, by column %v, by id %v: value %d is %x, want %x", kind, to, columns, byColumn, byID, at/size,
							binary.LittleEndian.AppendUint32(nil, binary.LittleEndian.Uint32(append(got[guarded+at:][:size:size], 0, 0))), want[at:][:size])
					}
					for _, b := range slices.Concat(got[:guarded], got[guarded+len(want):]) {
						if b != guard {
							t.Fatalf("kind %d, %d columns: wrote beside the result", kind, columns)
						}
					}
					if byID {
						if got := binary.LittleEndian.Uint64(download(t, s, d.Bad, 8)); got != uint64(outside) {
							t.Fatalf("kind %d, %d columns: first id outside at %d, want %d", kind, columns, got, outside)
						}
					}
				}
				memory.free(t, s)
			}
		}
	}
}
