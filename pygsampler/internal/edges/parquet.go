package edges

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/schema"
)

// rowsAtOnce is the number of rows of a columnar file that are read together.
const rowsAtOnce = 1 << 16

// parquetFile is two integer columns of a Parquet file. The two are decoded side by
// side, page by page: a row group is never in memory as a whole.
type parquetFile struct {
	path     string
	src, dst parquetColumn
	size     int64 // bytes of the two columns
	facts    Facts
}

// parquetColumn is the position of a column, and the type of its values.
type parquetColumn struct {
	leaf     int
	label    string // what errors call it
	name     string
	unsigned bool
	wide     bool // 64 bits
}

func (p *parquetFile) Facts() Facts { return p.facts }
func (p *parquetFile) Size() int64  { return p.size }

func openParquet(path string, src, dst Column) (Source, error) {
	if _, err := fileSize(path); err != nil {
		return nil, err
	}
	p := &parquetFile{path: path, facts: Facts{Bits: 64, NumNodes: -1}}
	err := guarded(path, func() error {
		r, f, err := p.open(nil)
		if err != nil {
			return err
		}
		defer f.Close()
		s, names := leaves(r)
		c, err := pick(path, names, src, dst)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return located(path, "expected at least 2 columns, got none")
		}
		if p.src, err = p.column("src", c.srcName, s.Column(c.src), c.src); err != nil {
			return err
		}
		if p.dst, err = p.column("dst", c.dstName, s.Column(c.dst), c.dst); err != nil {
			return err
		}
		if !p.src.wide && !p.dst.wide && !p.src.unsigned && !p.dst.unsigned {
			p.facts.Bits = 32
		}
		for g := range r.NumRowGroups() {
			for _, leaf := range []int{c.src, c.dst} {
				size, err := p.packed(r, g, leaf)
				if err != nil {
					return err
				}
				p.size += size
			}
		}
		return nil
	})
	return p, err
}

// leaves is the schema of a file, and the names of its columns, which are the leaves there.
func leaves(r *file.Reader) (*schema.Schema, []string) {
	s := r.MetaData().Schema
	names := make([]string, s.NumColumns())
	for i := range names {
		names[i] = s.Column(i).Path()
	}
	return s, names
}

// packed returns the compressed size of a column in a row group, and an error if it cannot be
// decompressed.
func (p *parquetFile) packed(r *file.Reader, group, leaf int) (size int64, err error) {
	chunk, err := r.RowGroup(group).MetaData().ColumnChunk(leaf)
	if err != nil {
		return 0, p.broken(err)
	}
	packing := chunk.Compression()
	if _, err := compress.GetCodec(packing); err != nil {
		return 0, located(p.path, "expected pages packed by snappy, zstd, gzip or brotli, or not at all, got %s, which is not read", packing)
	}
	return chunk.TotalCompressedSize(), nil
}

// open is the file and its reader; meter may be nil.
func (p *parquetFile) open(m *Meter) (*file.Reader, *os.File, error) {
	f, err := os.Open(p.path)
	if err != nil {
		return nil, nil, err
	}
	properties := parquet.NewReaderProperties(nil)
	// Else a column of a row group is read as a whole.
	properties.BufferedStreamEnabled = true
	properties.BufferSize = 1 << 20
	r, err := file.NewParquetReader(trackedAt{f, m}, file.WithReadProps(properties))
	if err != nil {
		_ = f.Close()
		return nil, nil, p.broken(err)
	}
	return r, f, nil
}

func (p *parquetFile) broken(err error) error {
	if errors.Is(err, ErrStopped) {
		return ErrStopped
	}
	return located(p.path, "expected a whole Parquet file, got %v", err)
}

// column checks that the column holds integers, one a row.
func (p *parquetFile) column(side, label string, c *schema.Column, leaf int) (parquetColumn, error) {
	out := parquetColumn{leaf: leaf, label: label, name: c.Path(), wide: c.PhysicalType() == parquet.Types.Int64}
	kind := c.PhysicalType().String()
	if logical := c.LogicalType(); logical != nil && logical.IsValid() && !logical.IsNone() {
		integer, ok := logical.(*schema.IntLogicalType)
		// Narrower ones have no bit that could be taken for a sign.
		out.unsigned = ok && !integer.IsSigned() && integer.BitWidth() >= 32
		kind = logical.String()
		if !ok {
			return out, located(p.path, "%s: expected an integer column, got %q of type %s", side, c.Path(), kind)
		}
	}
	if !out.wide && c.PhysicalType() != parquet.Types.Int32 {
		return out, located(p.path, "%s: expected an integer column, got %q of type %s", side, c.Path(), kind)
	}
	if c.MaxRepetitionLevel() > 0 {
		return out, located(p.path, "%s: expected one integer a row, got %q, a list", side, c.Path())
	}
	return out, nil
}

// values is some rows of a column.
type values struct {
	ids []int64
	bad string // what is wrong with the row behind the last
	err error
}

func (p *parquetFile) Scan(m *Meter, emit func(*Batch) error) error {
	quit := make(chan struct{})
	var wg sync.WaitGroup
	var sides [2]chan values
	for i, c := range []parquetColumn{p.src, p.dst} {
		sides[i] = make(chan values, 2)
		wg.Go(func() {
			defer close(sides[i])
			err := guarded(p.path, func() error { return p.decode(m, c, quit, sides[i]) })
			if err != nil {
				select {
				case sides[i] <- values{err: err}:
				case <-quit:
				}
			}
		})
	}
	err := p.join(m, sides, emit)
	close(quit)
	wg.Wait()
	return err
}

// join pairs the columns, which come in pieces of equal length.
func (p *parquetFile) join(m *Meter, sides [2]chan values, emit func(*Batch) error) error {
	row := int64(0)
	for {
		u, more := <-sides[0]
		v, too := <-sides[1]
		if m.Stop.Load() {
			return ErrStopped
		}
		if u.err != nil {
			return u.err
		}
		if v.err != nil {
			return v.err
		}
		if more != too || (len(u.ids) != len(v.ids) && u.bad == "" && v.bad == "") {
			return located(p.path, "expected as many values of %q as of %q, got another number", p.dst.name, p.src.name)
		}
		if !more {
			return nil
		}
		n := min(len(u.ids), len(v.ids))
		if n > 0 {
			first := row
			b := &Batch{Src: u.ids[:n], Dst: v.ids[:n], where: func(i int) string {
				return fmt.Sprintf("%s: row %d", baseName(p.path), first+int64(i))
			}}
			if err := emit(b); err != nil {
				return err
			}
		}
		row += int64(n)
		for _, side := range []struct {
			values
			column parquetColumn
		}{{u, p.src}, {v, p.dst}} {
			if side.bad != "" && len(side.ids) == n {
				return located(p.path, "row %d: %s: expected an integer >= 0, got %s", row, side.column.label, side.bad)
			}
		}
	}
}

// decode sends the values of a column in the order of the rows.
func (p *parquetFile) decode(m *Meter, c parquetColumn, quit <-chan struct{}, out chan<- values) error {
	r, f, err := p.open(m)
	if err != nil {
		return err
	}
	defer f.Close()
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		if group.NumRows() == 0 {
			continue
		}
		column, err := group.Column(c.leaf)
		if err != nil {
			return p.broken(err)
		}
		for left := group.NumRows(); left > 0; {
			next, err := c.read(column, min(left, rowsAtOnce))
			if err != nil {
				return p.broken(err)
			}
			select {
			case out <- next:
			case <-quit:
				return nil
			}
			if next.bad != "" {
				return nil
			}
			left -= int64(len(next.ids))
		}
	}
	runtime.KeepAlive(r)
	return nil
}

// read is the next n values of the column.
func (c parquetColumn) read(column file.ColumnChunkReader, n int64) (values, error) {
	ids := make([]int64, n)
	levels := make([]int16, n)
	var narrow []int32
	if !c.wide {
		narrow = make([]int32, n)
	}
	got := int64(0)
	for got < n {
		var total int64
		var defined int
		var err error
		switch column := column.(type) {
		case *file.Int64ColumnChunkReader:
			total, defined, err = column.ReadBatch(n-got, ids[got:], levels, nil)
		case *file.Int32ColumnChunkReader:
			total, defined, err = column.ReadBatch(n-got, narrow[got:], levels, nil)
		default:
			return values{}, fmt.Errorf("a column of type %s where the schema says otherwise", column.Type())
		}
		if err == nil {
			err = column.Err()
		}
		if err != nil {
			return values{}, err
		}
		if total == 0 {
			return values{}, fmt.Errorf("%d values too few in column %q", n-got, c.name)
		}
		if int64(defined) < total {
			top := column.Descriptor().MaxDefinitionLevel()
			at := int64(0)
			for at < total && levels[at] == top {
				at++
			}
			return c.checked(values{ids: ids[:got+at], bad: "null"}, narrow), nil
		}
		got += total
	}
	return c.checked(values{ids: ids}, narrow), nil
}

// checked widens the values and stops before the first that is no id.
func (c parquetColumn) checked(v values, narrow []int32) values {
	for i := range v.ids {
		if narrow != nil {
			v.ids[i] = int64(narrow[i])
			if c.unsigned {
				v.ids[i] = int64(uint32(narrow[i]))
			}
		}
		if v.ids[i] < 0 {
			bad := fmt.Sprint(v.ids[i])
			if c.unsigned {
				bad = fmt.Sprint(uint64(v.ids[i]))
			}
			return values{ids: v.ids[:i], bad: bad}
		}
	}
	return v
}
