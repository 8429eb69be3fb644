package cuda

import (
	"math/bits"

	"github.com/pygsampler/pygsampler/gpu"
)

// dequantizeArgs mirrors DequantizeArgs in kernels/features/dequantize.cu.
type dequantizeArgs struct {
	IDs, Scales, Stored, Out                                    gpu.Address
	Count, Rows                                                 uint64
	Row, Columns, IDBits, Kind, To, ByColumn, Lanes, FourValues uint32
}

func loadDequantize(e *Engine) (*residentKernel[dequantizeArgs], error) {
	return loadResident[dequantizeArgs](e, "dequantize", dequantizeThreads)
}

// Dequantize describes quantized rows that a Gather has copied and that are converted to floats.
// All addresses are on the device. The zero value has no rows.
type Dequantize struct {
	IDs      IDs         // of the rows, by which they have scales
	Rows     uint64      // scales of rows that there are; an id outside gives zeros of zeros
	Scales   gpu.Address // of rows, or of columns, floats; 0 of kinds without them
	Stored   gpu.Address // as many rows as ids, Row bytes from one to the next; 16 divides it
	Out      gpu.Address // as many rows as ids, without gaps
	Row      uint64      // even where values have 16 bits
	Columns  uint64      // at most MostRow
	Kind, To int         // as package quantized numbers them
	ByColumn bool
}

// Dequantize enqueues the conversion.
func (e *Engine) Dequantize(d *Dequantize, s gpu.Stream) error {
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
	// The bytes of four values, which one load reads.
	word := uint64(4)
	switch d.Kind {
	case quantizedHalf, quantizedBrain:
		word = 8
	case quantizedInt4:
		word = 2
	}
	steps := d.Columns
	if d.Columns%4 == 0 && d.Row%word == 0 && uint64(d.Out)%(4*size) == 0 {
		a.FourValues = 1
		steps /= 4
	}
	a.Lanes = uint32(bits.Len64(min(steps, 32) - 1))
	rows := uint64(dequantizeThreads) >> a.Lanes
	blocks := min((d.IDs.Count+rows-1)/rows, k.resident)
	return k.Launch(s, gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{dequantizeThreads}}, &a)
}
