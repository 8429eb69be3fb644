package edges

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
)

var arrowMagic = []byte("ARROW1")

// arrowFile is two integer columns of an Arrow IPC file (Feather 2) or stream, read
// one record batch at a time.
type arrowFile struct {
	path  string
	file  bool // else a stream
	size  int64
	facts Facts
	columns
}

func (a *arrowFile) Facts() Facts { return a.facts }
func (a *arrowFile) Size() int64  { return a.size }

func openArrow(path string, src, dst Column) (Source, error) {
	size, err := fileSize(path)
	if err != nil {
		return nil, err
	}
	a := &arrowFile{path: path, size: size, facts: Facts{Bits: 64, NumNodes: -1}}
	if a.file, err = starts(path, arrowMagic); err != nil {
		return nil, err
	}
	err = guarded(path, func() error {
		r, err := a.open(&Meter{})
		if err != nil {
			return err
		}
		defer r.close()
		fields, names := r.columns()
		if a.columns, err = pick(path, names, src, dst); err != nil {
			return err
		}
		narrow := true
		for _, side := range []struct {
			name   string
			column int
		}{{"src", a.src}, {"dst", a.dst}} {
			kind := idType(fields[side.column].Type)
			if kind == nil {
				return located(path, "%s: expected an integer column, got %q of type %s",
					side.name, names[side.column], fields[side.column].Type)
			}
			switch kind.ID() {
			case arrow.INT64, arrow.UINT64, arrow.UINT32:
				narrow = false
			}
		}
		if narrow {
			a.facts.Bits = 32
		}
		return nil
	})
	return a, err
}

// idType returns the type of a column's values, or of its dictionary if it has one; nil if they are
// no integers.
func idType(t arrow.DataType) arrow.DataType {
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	if arrow.IsInteger(t.ID()) {
		return t
	}
	return nil
}

// records reads a file or a stream.
type records struct {
	schema *arrow.Schema
	next   func() (arrow.Record, error) // io.EOF behind the last
	close  func()
}

// columns are the fields of a record, and their names.
func (r *records) columns() ([]arrow.Field, []string) {
	fields := r.schema.Fields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return fields, names
}

func (a *arrowFile) open(m *Meter) (*records, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	out := &records{close: func() { _ = f.Close() }}
	if a.file {
		r, err := ipc.NewFileReader(trackedAt{f, m})
		if err != nil {
			out.close()
			return nil, a.broken(err)
		}
		i := 0
		out.schema, out.next = r.Schema(), func() (arrow.Record, error) {
			if i == r.NumRecords() {
				return nil, io.EOF
			}
			i++
			return r.Record(i - 1)
		}
		return out, nil
	}
	r, err := ipc.NewReader(tracked{f, m})
	if err != nil {
		out.close()
		return nil, a.broken(err)
	}
	out.schema, out.next = r.Schema(), r.Read
	return out, nil
}

func (a *arrowFile) broken(err error) error {
	if errors.Is(err, ErrStopped) {
		return ErrStopped
	}
	return located(a.path, "expected a whole Arrow IPC file or stream, got %v", err)
}

func (a *arrowFile) Scan(m *Meter, emit func(*Batch) error) error {
	// Not around emit: its panics are not the file's.
	var r *records
	err := guarded(a.path, func() (err error) {
		r, err = a.open(m)
		return err
	})
	if err != nil {
		return err
	}
	defer r.close()
	for row := int64(0); ; {
		if m.Stop.Load() {
			return ErrStopped
		}
		var batches []*Batch
		var bad error
		err := guarded(a.path, func() error {
			record, err := r.next()
			if err != nil {
				return err
			}
			batches, row, bad = a.batches(record, row)
			return nil
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return a.broken(err)
		}
		for _, b := range batches {
			if err := emit(b); err != nil {
				return err
			}
		}
		if bad != nil {
			return bad
		}
	}
}

// batches returns the edges of a record, and the error of the first invalid row.
func (a *arrowFile) batches(record arrow.Record, row int64) (out []*Batch, next int64, bad error) {
	n := int(record.NumRows())
	var sides [2][]int64
	good := n
	for i, side := range []struct {
		name   string
		column int
	}{{a.srcName, a.src}, {a.dstName, a.dst}} {
		ids, problem := integers(record.Column(side.column))
		if len(ids) < good {
			good = len(ids)
			bad = located(a.path, "row %d: %s: expected an integer >= 0, got %s", row+int64(good), side.name, problem)
		}
		sides[i] = ids
	}
	for at := 0; at < good; at += rowsAtOnce {
		end := min(at+rowsAtOnce, good)
		out = append(out, &Batch{Src: sides[0][at:end], Dst: sides[1][at:end], where: func(i int) string {
			return fmt.Sprintf("%s: row %d", baseName(a.path), row+int64(at+i))
		}})
	}
	return out, row + int64(n), bad
}

// integers is the column's values up to the first that is no id, and what that is.
func integers(column arrow.Array) (ids []int64, problem string) {
	if d, ok := column.(*array.Dictionary); ok {
		known, problem := integers(d.Dictionary())
		ids = make([]int64, 0, d.Len())
		for i := range d.Len() {
			if d.IsNull(i) {
				return ids, "null"
			}
			k := d.GetValueIndex(i)
			if k >= len(known) {
				return ids, problem
			}
			ids = append(ids, known[k])
		}
		return ids, ""
	}
	n := column.Len()
	if column.NullN() > 0 {
		for n = 0; column.IsValid(n); {
			n++
		}
		problem = "null"
	}
	var at int
	switch c := column.(type) {
	case *array.Int64:
		ids, at = widen(c.Int64Values()[:n])
	case *array.Int32:
		ids, at = widen(c.Int32Values()[:n])
	case *array.Int16:
		ids, at = widen(c.Int16Values()[:n])
	case *array.Int8:
		ids, at = widen(c.Int8Values()[:n])
	case *array.Uint64:
		ids, at = widen(c.Uint64Values()[:n])
	case *array.Uint32:
		ids, at = widen(c.Uint32Values()[:n])
	case *array.Uint16:
		ids, at = widen(c.Uint16Values()[:n])
	case *array.Uint8:
		ids, at = widen(c.Uint8Values()[:n])
	default:
		return nil, fmt.Sprintf("values of type %s", column.DataType())
	}
	if at < n {
		problem = column.ValueStr(at)
	}
	return ids[:at], problem
}

// widen copies the values, and counts those before the first that is no id.
func widen[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](in []T) ([]int64, int) {
	out := make([]int64, len(in))
	for i, v := range in {
		if out[i] = int64(v); out[i] < 0 {
			return out, i
		}
	}
	return out, len(in)
}
