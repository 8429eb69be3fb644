package edges

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
)

// Values is a column in addition to the ends of the edges: a value for each edge, in the order of
// the file.
type Values struct {
	DType graphfile.DType
	Size  int64 // bytes that a scan adds to the meter, about
	// Scan passes the bytes of all values to consecutive calls of emit, and returns its first
	// error.
	Scan func(m *Meter, emit func(values []byte) error) error
}

// Table is a source with columns in addition to the ends of the edges.
type Table interface {
	Source
	// Values finds a column. where is the name of the column in errors.
	Values(where string, c Column) (Values, error)
	// Words finds a column of names.
	Words(where string, c Column) (*Words, error)
}

// ArrayColumn is a column that becomes an array over the edges of a graph, with its name there.
type ArrayColumn struct {
	Name string
	Values
}

// fillData writes the arrays over the edges. An edge's id is its position in the file, so they are
// written in order; if each edge has a reverse, the reverse has the same value.
func (s *survey) fillData(out Arrays, m *Meter) error {
	for i, d := range s.plan.Data {
		to := out.Data[i]
		size := s.edges * d.DType.Size()
		at := int64(0)
		err := d.Scan(m, func(values []byte) error {
			if m.Stop.Load() {
				return ErrStopped
			}
			if at+int64(len(values)) > size {
				return errors.New(changed)
			}
			at += int64(copy(to[at:], values))
			return nil
		})
		if err == nil && at != size {
			err = errors.New(changed)
		}
		if err != nil {
			return err
		}
		if s.plan.Undirected {
			if err := s.reverseData(to, d.DType.Size()); err != nil {
				return err
			}
		}
	}
	return nil
}

// reverseData repeats the values of all edges but the self loops, which have no reverse.
func (s *survey) reverseData(to []byte, size int64) error {
	if int64(len(s.loopsAt)) != s.loops {
		return errors.New(changed)
	}
	at, from := s.edges*size, int64(0)
	for _, loop := range s.loopsAt {
		at += int64(copy(to[at:], to[from*size:loop*size]))
		from = loop + 1
	}
	copy(to[at:], to[from*size:s.edges*size])
	return nil
}

// findIn returns the position of a requested column among the columns of the file.
func findIn(path string, names []string, where string, c Column) (int, error) {
	at, err := find(path, names, where, c)
	if err == nil && names != nil && at >= len(names) {
		err = located(path, "%s: expected at least %d columns, got %d", where, at+1, len(names))
	}
	return at, err
}

// bytesOf is the memory of values.
func bytesOf[T any](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(*new(T))))
}

// narrowed is the low bytes of integers.
func narrowed[T int8 | int16 | uint8 | uint16](values []int32) []byte {
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = T(v)
	}
	return bytesOf(out)
}

func noValues(path, where, name, kind string) error {
	return located(path, "%s: expected a column of bool, integers, float32 or float64, got %q of type %s", where, name, kind)
}

// Values implements Table: all numbers of a text are float64.
func (t *text) Values(where string, c Column) (Values, error) {
	at, err := findIn(t.path, t.names, where, c)
	if err != nil {
		return Values{}, err
	}
	// The fields of the column instead of the ends of an edge, as the bits of numbers.
	column := *t
	column.fields.columns = columns{at, at, where, where}
	column.fields.numbers = true
	column.rejected = ""
	return Values{graphfile.Float64, t.size, func(m *Meter, emit func([]byte) error) error {
		return column.Scan(m, func(b *Batch) error { return emit(bytesOf(b.Src)) })
	}}, nil
}

// number reads a field as the bits of a float64; problem says what is wrong with it.
func (f *fields) number(field []byte) (bits int64, problem string) {
	digits := field
	if f.quotes {
		digits = unquote(digits)
	}
	value, err := strconv.ParseFloat(string(digits), 64)
	if err != nil {
		return 0, "expected a number, got " + quoted(field)
	}
	return *(*int64)(unsafe.Pointer(&value)), ""
}

// arrowKinds are the types of columns that are arrays in memory.
var arrowKinds = map[arrow.Type]graphfile.DType{
	arrow.BOOL: graphfile.Bool, arrow.FLOAT16: graphfile.Float16, arrow.FLOAT32: graphfile.Float32, arrow.FLOAT64: graphfile.Float64,
	arrow.INT8: graphfile.Int8, arrow.INT16: graphfile.Int16, arrow.INT32: graphfile.Int32, arrow.INT64: graphfile.Int64,
	arrow.UINT8: graphfile.Uint8, arrow.UINT16: graphfile.Uint16, arrow.UINT32: graphfile.Uint32, arrow.UINT64: graphfile.Uint64,
}

// Values implements Table.
func (a *arrowFile) Values(where string, c Column) (v Values, err error) {
	err = guarded(a.path, func() error {
		at, field, err := a.column(where, c)
		if err != nil {
			return err
		}
		kind, ok := arrowKinds[field.Type.ID()]
		if !ok {
			return noValues(a.path, where, field.Name, fmt.Sprint(field.Type))
		}
		v = Values{kind, a.size, func(m *Meter, emit func([]byte) error) error {
			return a.scanValues(m, where, at, func(column arrow.Array) ([]byte, error) { return valuesOf(column, kind.Size()), nil }, emit)
		}}
		return nil
	})
	return v, err
}

// column returns the position and the type of a column.
func (a *arrowFile) column(where string, c Column) (at int, field arrow.Field, err error) {
	r, err := a.open(&Meter{})
	if err != nil {
		return 0, field, err
	}
	defer r.close()
	fields, names := r.columns()
	if at, err = findIn(a.path, names, where, c); err != nil {
		return 0, field, err
	}
	return at, fields[at], nil
}

func (a *arrowFile) scanValues(m *Meter, where string, at int, read func(arrow.Array) ([]byte, error), emit func([]byte) error) error {
	var r *records
	err := guarded(a.path, func() (err error) {
		r, err = a.open(m)
		return err
	})
	if err != nil {
		return err
	}
	defer r.close()
	for row := 0; ; {
		var column arrow.Array
		var values []byte
		// Not around emit: its panics are not the file's.
		err := guarded(a.path, func() error {
			record, err := r.next()
			if err == nil {
				column = record.Column(at)
				values, err = read(column)
			}
			return err
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return a.broken(err)
		}
		for i := 0; column.NullN() > 0 && i < column.Len(); i++ {
			if column.IsNull(i) {
				return located(a.path, "row %d: %s: expected a value, got null", row+i, where)
			}
		}
		row += column.Len()
		if err := emit(values); err != nil {
			return err
		}
	}
}

// valuesOf is the bytes of a column without nulls, of elements of that size.
func valuesOf(column arrow.Array, size int64) []byte {
	if c, ok := column.(*array.Boolean); ok {
		out := make([]byte, c.Len())
		for i := range out {
			if c.Value(i) {
				out[i] = 1
			}
		}
		return out
	}
	n := int64(column.Len())
	if n == 0 {
		return nil
	}
	from := int64(column.Data().Offset()) * size
	return column.Data().Buffers()[1].Bytes()[from : from+n*size]
}

// Values implements Table.
func (p *parquetFile) Values(where string, c Column) (v Values, err error) {
	err = guarded(p.path, func() error {
		column, at, size, err := p.beside(where, c)
		if err != nil {
			return err
		}
		kind := parquetKind(column)
		if kind == 0 || column.MaxRepetitionLevel() > 0 {
			return noValues(p.path, where, column.Path(), kindOfColumn(column))
		}
		v = Values{kind, size, func(m *Meter, emit func([]byte) error) error {
			return p.scanValues(m, where, at, func(chunk file.ColumnChunkReader, n int64) ([]byte, int64, int64, error) {
				return readValues(chunk, kind, n)
			}, emit)
		}}
		return nil
	})
	return v, err
}

// beside returns a column other than the ends of the edges: its position and its packed bytes.
func (p *parquetFile) beside(where string, c Column) (column *schema.Column, at int, size int64, err error) {
	r, f, err := p.open(nil)
	if err != nil {
		return nil, 0, 0, err
	}
	defer f.Close()
	s, names := leaves(r)
	if at, err = findIn(p.path, names, where, c); err != nil {
		return nil, 0, 0, err
	}
	for g := range r.NumRowGroups() {
		packed, err := p.packed(r, g, at)
		if err != nil {
			return nil, 0, 0, err
		}
		size += packed
	}
	return s.Column(at), at, size, nil
}

// kindOfColumn returns the name of a column's type in errors.
func kindOfColumn(column *schema.Column) string {
	if logical := column.LogicalType(); logical != nil && logical.IsValid() && !logical.IsNone() {
		return logical.String()
	}
	return column.PhysicalType().String()
}

// parquetKind returns the type of a column's values; 0 if no array supports it.
func parquetKind(c *schema.Column) graphfile.DType {
	logical := c.LogicalType()
	plain := logical == nil || !logical.IsValid() || logical.IsNone()
	if integer, ok := logical.(*schema.IntLogicalType); ok {
		name := fmt.Sprintf("int%d", integer.BitWidth())
		if !integer.IsSigned() {
			name = "u" + name
		}
		return graphfile.DTypeOf(name)
	}
	if !plain {
		return 0
	}
	return map[parquet.Type]graphfile.DType{
		parquet.Types.Boolean: graphfile.Bool, parquet.Types.Int32: graphfile.Int32, parquet.Types.Int64: graphfile.Int64,
		parquet.Types.Float: graphfile.Float32, parquet.Types.Double: graphfile.Float64,
	}[c.PhysicalType()]
}

func (p *parquetFile) scanValues(
	m *Meter, where string, at int,
	read func(chunk file.ColumnChunkReader, n int64) (values []byte, rows, null int64, err error),
	emit func([]byte) error,
) error {
	r, f, err := p.open(m)
	if err != nil {
		return err
	}
	defer f.Close()
	row := int64(0)
	for g := range r.NumRowGroups() {
		var column file.ColumnChunkReader
		for left := r.RowGroup(g).NumRows(); left > 0; {
			var values []byte
			var rows, null int64
			// Not around emit: its panics are not the file's.
			err := guarded(p.path, func() (err error) {
				if column == nil {
					if column, err = r.RowGroup(g).Column(at); err != nil {
						return err
					}
				}
				values, rows, null, err = read(column, min(left, rowsAtOnce))
				return err
			})
			if err != nil {
				return p.broken(err)
			}
			if null >= 0 {
				return located(p.path, "row %d: %s: expected a value, got null", row+null, where)
			}
			if err := emit(values); err != nil {
				return err
			}
			row += rows
			left -= rows
		}
	}
	runtime.KeepAlive(r)
	return nil
}

// readValues is the bytes of some of the next n rows of a column, how many they are, and
// the first of them that is null, or -1.
func readValues(column file.ColumnChunkReader, kind graphfile.DType, n int64) (values []byte, rows, null int64, err error) {
	levels := make([]int16, n)
	var defined int
	switch c := column.(type) {
	case *file.BooleanColumnChunkReader:
		read := make([]bool, n)
		rows, defined, err = c.ReadBatch(n, read, levels, nil)
		values = bytesOf(read[:max(defined, 0)])
	case *file.Int32ColumnChunkReader:
		read := make([]int32, n)
		rows, defined, err = c.ReadBatch(n, read, levels, nil)
		read = read[:max(defined, 0)]
		switch kind {
		case graphfile.Int8, graphfile.Uint8:
			values = narrowed[uint8](read)
		case graphfile.Int16, graphfile.Uint16:
			values = narrowed[uint16](read)
		default:
			values = bytesOf(read)
		}
	case *file.Int64ColumnChunkReader:
		read := make([]int64, n)
		rows, defined, err = c.ReadBatch(n, read, levels, nil)
		values = bytesOf(read[:max(defined, 0)])
	case *file.Float32ColumnChunkReader:
		read := make([]float32, n)
		rows, defined, err = c.ReadBatch(n, read, levels, nil)
		values = bytesOf(read[:max(defined, 0)])
	case *file.Float64ColumnChunkReader:
		read := make([]float64, n)
		rows, defined, err = c.ReadBatch(n, read, levels, nil)
		values = bytesOf(read[:max(defined, 0)])
	default:
		err = fmt.Errorf("a column of type %s where the schema says otherwise", column.Type())
	}
	null, err = firstNull(column, n, rows, defined, levels, err)
	return values, rows, null, err
}

// firstNull returns the first null of the rows read, or -1; err is the error of the read.
func firstNull(column file.ColumnChunkReader, n, rows int64, defined int, levels []int16, err error) (int64, error) {
	if err == nil {
		err = column.Err()
	}
	if err == nil && rows == 0 {
		err = fmt.Errorf("%d values too few", n)
	}
	null := int64(-1)
	if err == nil && int64(defined) < rows {
		for null = 0; levels[null] == column.Descriptor().MaxDefinitionLevel(); null++ {
		}
	}
	return null, err
}
