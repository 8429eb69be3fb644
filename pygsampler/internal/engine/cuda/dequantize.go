package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// dequantizeArgs mirrors DequantizeArgs in kernels/features/dequantize.cu.
type dequantizeArgs struct {
	IDs, Scales, Stored, Out, Bad                                 gpu.Address
	Count, Rows                                                   uint64
	Row, Columns, IDBits, Kind, To, ByColumn, ByID, Lanes, Values uint32
}

func loadDequantize(e *Engine) (*residentKernel[dequantizeArgs], error) {
	return loadResident[dequantizeArgs](e, "dequantize", dequantizeThreads)
}

// Dequantize describes quantized rows that are converted to floats: those that a Gather has copied,
// or with ByID rows of a table. All addresses are on the device. The zero value has no rows.
type Dequantize struct {
	IDs      IDs         // of the rows, by which they have scales
	Rows     uint64      // of the table; an id outside gives zeros
	Scales   gpu.Address // of rows, or of columns, floats; 0 of kinds without them
	Stored   gpu.Address // as many rows as ids, or the table, Row bytes from one to the next
	Out      gpu.Address // as many rows as ids, without gaps
	Bad      gpu.Address // with ByID 64 bits that become at most the place of an id outside of the table; or 0
	Row      uint64      // even where values have 16 bits, as Stored
	Columns  uint64      // at most MostRow
	Kind, To int         // as package quantized numbers them
	ByColumn bool
	ByID     bool
}

// Dequantize enqueues the conversion. With beside, it takes as few blocks as Gather does.
func (e *Engine) Dequantize(d *Dequantize, beside bool, s gpu.Stream) error {
	k, err := Cached(e, "dequantize", loadDequantize)
	if err != nil || d.IDs.Count == 0 {
		return err
	}
	size := uint64(4)
	if d.To != readAsFloat {
		size = 2
	}
	a := dequantizeArgs{
		IDs: d.IDs.At, Scales: d.Scales, Stored: d.Stored, Out: d.Out, Count: d.IDs.Count, Rows: d.Rows, Row: uint32(d.Row),
		Columns: uint32(d.Columns), IDBits: uint32(d.IDs.Bits), Kind: uint32(d.Kind), To: uint32(d.To),
	}
	if d.ByColumn {
		a.ByColumn = 1
	}
	if d.ByID {
		a.ByID, a.Bad = 1, d.Bad
	}
	a.Values = uint32(d.values(size))
	a.Lanes = uint32(bits.Len64(min(d.Columns/uint64(a.Values), 32) - 1))
	rows := uint64(dequantizeThreads) >> a.Lanes
	blocks := min((d.IDs.Count+rows-1)/rows, e.blocksOf(k.resident, beside))
	return k.Launch(s, gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{dequantizeThreads}}, &a)
}

// values returns how many values a lane converts at a time, where a value of the result has size bytes.
func (d *Dequantize) values(size uint64) uint64 {
	for _, n := range []uint64{8, 4} {
		word := n
		switch d.Kind {
		case quantizedHalf, quantizedBrain:
			word = 2 * n
		case quantizedInt4:
			word = n / 2
		}
		if d.Columns%n == 0 && (d.Row|uint64(d.Stored))%word == 0 && uint64(d.Out)%min(n*size, 16) == 0 {
			return n
		}
	}
	return 1
}
