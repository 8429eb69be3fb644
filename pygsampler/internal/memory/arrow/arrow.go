// Package arrow converts arrays to and from Arrow, through arrow/go.
package arrow

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/cdata"
	arrowmemory "github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// TypeError reports an Arrow array of a type that cannot hold ids.
type TypeError struct{ Text string }

func (e *TypeError) Error() string { return e.Text }

func dataType(bits int) arrow.DataType {
	if bits == 32 {
		return arrow.PrimitiveTypes.Int32
	}
	return arrow.PrimitiveTypes.Int64
}

// Export describes length ids at data to Arrow. arrow/go lays out the array; the result is a copy
// of its description that C owns, since a release that entered Go could not be called in a forked
// child or at the end of the interpreter.
func Export(m memory.Memory, data, length int64, bits int) (memory.ArrowPair, error) {
	bytes := memory.View[byte](data, length*int64(bits/8))
	buffer := arrowmemory.NewBufferBytes(bytes)
	values := array.NewData(dataType(bits), int(length), []*arrowmemory.Buffer{nil, buffer}, nil, 0, 0)
	defer values.Release()
	arr := array.MakeFromData(values)
	defer arr.Release()

	draft, err := memory.EmptyArrowPair()
	if err != nil {
		return memory.ArrowPair{}, err
	}
	defer draft.Free()
	cdata.ExportArrowArray(arr, cdata.ArrayFromPtr(draft.Array()), cdata.SchemaFromPtr(draft.Schema()))
	format, flags := draft.Format()
	address, n, _, _ := draft.Values()
	return memory.NewArrowPair(m, format, flags, address, n)
}

// ExportDevice describes length ids at data in device memory. arrow/go supports host arrays only,
// and would read this one.
func ExportDevice(m memory.Memory, data, length int64, bits int) (memory.ArrowPair, error) {
	format := "l"
	if bits == 32 {
		format = "i"
	}
	return memory.NewArrowPair(m, format, 0, data, length)
}

// Ids is a borrowed Arrow array of integers.
type Ids struct {
	Bits      int   `json:"bits"`
	Length    int64 `json:"length"`
	Data      int64 `json:"data"`
	NullCount int64 `json:"null_count"`
}

// Import reads an Arrow array of int32 or int64 at the addresses of its two structs, which stay
// with their owner: Data is valid as long as the owner keeps them.
func Import(schema, arr int64) (ids Ids, err error) {
	pair, err := memory.BorrowArrowPair(schema, arr)
	if err != nil {
		return ids, err
	}
	defer pair.Free()
	// This is checked first: arrow/go reads its own struct after freeing it if an import fails, as
	// for nested, dictionary and unknown types.
	if format, _ := pair.Format(); len(format) != 1 || !strings.Contains("nbcCsSiIlLefgzZuU", format) {
		return ids, &TypeError{fmt.Sprintf("expected an Arrow array of int32 or int64, got one of format %q", format)}
	}
	_, a, err := cdata.ImportCArray(cdata.ArrayFromPtr(pair.Array()), cdata.SchemaFromPtr(pair.Schema()))
	if err != nil {
		return ids, &TypeError{fmt.Sprintf("expected an Arrow array of int32 or int64, got one that cannot be read (%v)", err)}
	}
	defer a.Release()
	ids = Ids{Length: int64(a.Len()), NullCount: int64(a.NullN())}
	switch a := a.(type) {
	case *array.Int32:
		ids.Bits, ids.Data = 32, addressOf(a.Int32Values())
	case *array.Int64:
		ids.Bits, ids.Data = 64, addressOf(a.Int64Values())
	default:
		return ids, &TypeError{fmt.Sprintf("expected an Arrow array of int32 or int64, got %s", a.DataType())}
	}
	return ids, nil
}

func addressOf[T any](a []T) int64 {
	if len(a) == 0 {
		return 0
	}
	return int64(uintptr(unsafe.Pointer(unsafe.SliceData(a))))
}
