// Package edges reads lists of edges from files (text, Parquet, Arrow, MatrixMarket) and builds a
// CSC from them, in memory or in a file. The edges are streamed: memory holds a few arrays over the
// nodes and buffers of bounded size.
package edges

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// ErrStopped is the error of cancelled work.
var ErrStopped = errors.New("cancelled")

// Meter counts the bytes read of a file and carries the request to stop. The zero value is a meter
// at the beginning; any goroutine may use it.
type Meter struct {
	Done  atomic.Int64 // bytes of the source, over all scans so far
	Total atomic.Int64 // expected at the end; it may change between passes
	Stop  atomic.Bool
	Shape atomic.Pointer[Shape] // of the graph, once it is known: before memory is taken for it
}

// Batch is a run of consecutive edges of a file: Src[i] -> Dst[i], both at least 0. It belongs to
// the receiver until emit returns.
type Batch struct {
	Src, Dst []int64
	where    func(i int) string
}

// Source is a file of edges that can be read any number of times.
type Source interface {
	// Scan passes all edges in the order of the file to consecutive calls of emit, and returns its
	// first error. None of its goroutines runs any more when it returns.
	Scan(m *Meter, emit func(b *Batch) error) error
	// Facts returns the properties that the file declares.
	Facts() Facts
	// Size returns the number of bytes that a scan adds to the meter.
	Size() int64
}

// Facts are the properties that a file declares in addition to its edges.
type Facts struct {
	Bits      int   // 32 or 64: the width of the ids
	NumNodes  int64 // -1 where the file does not say
	Symmetric bool  // each edge that is no self loop stands for both directions
}

// Column is a column by its name or its position, from 0. The zero value, with neither, leaves the
// choice to the reader.
type Column struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
	Given bool   `json:"given"`
	Mixed bool   `json:"mixed"` // of sources: targets may be another kind of nodes
	Of    string `json:"of"`    // the type of its nodes, whose column is called so where none is given
}

func (c Column) String() string {
	if c.Name != "" {
		return fmt.Sprintf("column %q", c.Name)
	}
	return fmt.Sprintf("column %d", c.Index)
}

// Open opens the file at path in a format: snap, csv, tsv, parquet, arrow or mtx.
func Open(path, format string, src, dst Column) (Source, error) {
	switch format {
	case "snap", "csv", "tsv":
		return openText(path, format, src, dst)
	case "mtx":
		return openMatrix(path, src, dst)
	case "parquet":
		return openParquet(path, src, dst)
	case "arrow":
		return openArrow(path, src, dst)
	}
	return nil, valueError("format: expected snap, csv, tsv, parquet, arrow or mtx, got %q", format)
}

func valueError(format string, args ...any) error {
	return &csc.ValueError{Text: fmt.Sprintf(format, args...)}
}

// located is an error of a file, which it names.
func located(path, format string, args ...any) error {
	return valueError("%s: %s", baseName(path), fmt.Sprintf(format, args...))
}

// tracked counts the bytes that are read from a file, and stops if the meter says so.
type tracked struct {
	*os.File
	meter *Meter
}

func (t tracked) Read(p []byte) (int, error) {
	if t.meter.Stop.Load() {
		return 0, ErrStopped
	}
	n, err := t.File.Read(p)
	t.meter.Done.Add(int64(n))
	return n, err
}

func fileSize(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		// It is read more than once.
		return 0, located(path, "expected a regular file, got %s", info.Mode().Type())
	}
	return info.Size(), nil
}

// guarded runs f and makes an error of its panic: the libraries that read files of
// others panic on some of those that are damaged.
func guarded(path string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = located(path, "expected a whole file, got one that cannot be decoded: %v", p)
		}
	}()
	return f()
}

// starts reports whether the file begins with the magic bytes.
func starts(path string, magic []byte) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	got := make([]byte, len(magic))
	if _, err := io.ReadFull(f, got); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, err
	}
	return bytes.Equal(got, magic), nil
}

func baseName(path string) string { return filepath.Base(path) }

// trackedAt is tracked for readers that jump about; meter may be nil.
type trackedAt struct {
	*os.File
	meter *Meter
}

func (t trackedAt) ReadAt(p []byte, at int64) (int, error) {
	n, err := t.File.ReadAt(p, at)
	return n, t.count(n, err)
}

func (t trackedAt) Read(p []byte) (int, error) {
	n, err := t.File.Read(p)
	return n, t.count(n, err)
}

func (t trackedAt) count(n int, err error) error {
	if t.meter == nil {
		return err
	}
	t.meter.Done.Add(int64(n))
	if t.meter.Stop.Load() {
		return ErrStopped
	}
	return err
}
