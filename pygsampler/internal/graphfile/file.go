package graphfile

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// File is an open graph file, mapped read-only. Any number of goroutines may use it until Close. If
// another process shortens the file, reading the missing part is a fault, which Verify turns into
// an error; the readers of package csc do so, too, if their goroutine has asked for it
// (debug.SetPanicOnFault).
type File struct {
	Header
	path string
	data []byte
}

// Open checks header and sizes and maps the file.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	header, err := ReadHeader(file, path)
	if err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(header.FileBytes), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%s: mapping %d bytes: %w", path, header.FileBytes, err)
	}
	return &File{*header, path, data}, nil
}

// ReadHeader returns the header of an open file after checking it against the file. It reads
// nothing else but the ends of indptr.
func ReadHeader(file *os.File, path string) (*Header, error) {
	if err := checkOrder(); err != nil {
		return nil, err
	}
	about, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !about.Mode().IsRegular() {
		return nil, formatError("%s: expected a graph file, got a %s", path, kindOf(about.Mode()))
	}
	return parse(file, about.Size(), path)
}

// Section returns the section with a name.
func (f *File) Section(name string) (Section, bool) {
	e, ok := f.Entry(name)
	if !ok {
		return Section{}, false
	}
	return e.Section, true
}

// Bytes returns the content of a section, read-only, until Close; nil if there is no such section.
func (f *File) Bytes(name string) []byte {
	e, ok := f.Entry(name)
	if !ok {
		return nil
	}
	return f.data[e.Offset : e.Offset+e.Bytes : e.Offset+e.Bytes]
}

// Verify reads all sections and compares their checksums.
func (f *File) Verify() (err error) {
	defer RecoverFault(&err, f.path)
	defer FaultsPanic()()
	for i := range f.Entries {
		e := &f.Entries[i]
		if err := e.compare(f.path, Checksum(0, f.data[e.Offset:e.Offset+e.Bytes])); err != nil {
			return err
		}
	}
	return nil
}

// Close unmaps the file.
func (f *File) Close() error {
	data := f.data
	f.data = nil
	if data == nil {
		return nil
	}
	return syscall.Munmap(data)
}

func readAt(r io.ReaderAt, at, n int64, path string) ([]byte, error) {
	b := make([]byte, n)
	if got, err := r.ReadAt(b, at); int64(got) < n {
		if err == io.EOF {
			return nil, formatError("%s: expected %d bytes at %d, got %d: the file became shorter", path, n, at, got)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}
