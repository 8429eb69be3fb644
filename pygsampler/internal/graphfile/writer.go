package graphfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ErrAborted is the error of Commit after Abort.
var ErrAborted = errors.New("graph file: the write was aborted")

// Writer writes a file: a temporary one in the folder of the target, with reserved disk space for
// all of its sections. It has no header until Commit, so that no reader takes it for a graph. Bytes
// and Write may be called for several sections at once; Abort at any time, from any goroutine.
type Writer struct {
	// NumNodes is the number of nodes, set before Commit if it exceeds the rows of indptr; -1
	// stands for the rows. For a heterogeneous graph it is the number of nodes of the largest type.
	NumNodes int64
	// Typed marks the graph as heterogeneous; it is set before Commit.
	Typed bool

	header Header
	target string // what the file will be called
	file   *os.File
	data   []byte // the whole file, mapped

	mu         sync.Mutex
	sums       []running
	committing bool
	ended      bool // renamed or removed: the temporary name is gone
	closed     bool
}

// running is the checksum of the first upTo bytes of a section.
type running struct {
	sum    uint32
	upTo   int64
	mapped bool // handed out by Bytes: nobody knows when it was written
}

// Create creates the temporary file and reserves its disk space. Commit needs the sections "indptr"
// and "indices". The error for a full disk names the bytes.
func Create(path string, sections []Section) (*Writer, error) {
	if err := checkOrder(); err != nil {
		return nil, err
	}
	header, err := layOut(sections)
	if err != nil {
		return nil, err
	}
	target, mode, err := resolve(path)
	if err != nil {
		return nil, err
	}
	file, err := createTemporary(target)
	if err != nil {
		return nil, err
	}
	w := &Writer{NumNodes: -1, header: header, target: target, file: file, sums: make([]running, len(header.Entries))}
	if err := w.reserve(mode); err != nil {
		w.Abort()
		return nil, err
	}
	return w, nil
}

// resolve follows links, so that a file which a link names is replaced and not the
// link, and gives the mode of the file that is there.
func resolve(path string) (target string, mode fs.FileMode, err error) {
	if path == "" {
		return "", 0, &fs.PathError{Op: "create", Path: path, Err: syscall.ENOENT}
	}
	target, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		// A link that leads nowhere is replaced.
		return path, 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	about, err := os.Stat(target)
	if err != nil {
		return "", 0, err
	}
	if !about.Mode().IsRegular() {
		return "", 0, formatError("%s: expected a file or a free name, got a %s", path, kindOf(about.Mode()))
	}
	return target, about.Mode().Perm(), nil
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeDevice != 0:
		return "device"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	}
	return "special file"
}

// Replaced in tests by file systems that lack it.
var fallocate = syscall.Fallocate

// reserve takes the room on the disk now: writing to a mapping for which there is
// none would be a fault, not an error.
func (w *Writer) reserve(mode fs.FileMode) error {
	size := w.header.FileBytes
	err := ignoringInterrupts(func() error { return fallocate(int(w.file.Fd()), 0, 0, size) })
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		err = w.fillWithZeros(size)
	}
	if err != nil {
		return w.failed(err)
	}
	if mode != 0 {
		return w.file.Chmod(mode)
	}
	return nil
}

// fillWithZeros reserves space if the file system cannot.
func (w *Writer) fillWithZeros(size int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := w.file.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}

// failed names the target and the size of what did not fit.
func (w *Writer) failed(err error) error {
	return &WriteError{Path: w.target, Bytes: w.header.FileBytes, Err: err}
}

// WriteError reports a failed write to the disk.
type WriteError struct {
	Path  string
	Bytes int64 // of the whole file
	Err   error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("%s: expected room for a file of %d bytes, got: %v", e.Path, e.Bytes, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }

func ignoringInterrupts(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

func (w *Writer) find(name string) int {
	for i, e := range w.header.Entries {
		if e.Name == name {
			return i
		}
	}
	panic(fmt.Sprintf("graph file: no section %q was asked for", name))
}

// Bytes returns the memory of a section, to be written before Commit; it is zero at first. It is
// invalid after Commit or Abort. It panics if the file cannot be mapped, which Map reports
// beforehand, and for a name that Create does not know.
func (w *Writer) Bytes(name string) []byte {
	if err := w.Map(); err != nil {
		panic(fmt.Sprintf("graph file: %v", err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	i := w.find(name)
	w.sums[i].mapped = true
	e := w.header.Entries[i]
	return w.data[e.Offset : e.Offset+e.Bytes : e.Offset+e.Bytes]
}

// Map maps the file, which Bytes otherwise does at its first call.
func (w *Writer) Map() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.closed {
		return ErrAborted
	}
	if w.data != nil {
		return nil
	}
	data, err := syscall.Mmap(int(w.file.Fd()), 0, int(w.header.FileBytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("%s: mapping %d bytes: %w", w.target, w.header.FileBytes, err)
	}
	w.data = data
	return nil
}

// Write writes bytes to a section, at an offset from its beginning. If a section is written in
// order, its checksum needs no second pass over it.
func (w *Writer) Write(name string, at int64, more []byte) error {
	i := w.find(name)
	e := w.header.Entries[i]
	if at < 0 || int64(len(more)) > e.Bytes-at {
		return formatError("section %q: expected bytes within [0, %d), got [%d, %d)", name, e.Bytes, at, at+int64(len(more)))
	}
	w.mu.Lock()
	ended, before := w.ended || w.closed, w.sums[i]
	w.mu.Unlock()
	run := before
	if ended {
		return ErrAborted
	}
	// Parts that the cache holds while they are summed and copied.
	for len(more) > 0 {
		part := more[:min(len(more), 1<<18)]
		if _, err := w.file.WriteAt(part, e.Offset+at); err != nil {
			return w.failed(err)
		}
		if at == run.upTo {
			run.sum, run.upTo = Checksum(run.sum, part), at+int64(len(part))
		} else if at < run.upTo {
			run = running{mapped: true}
		}
		at += int64(len(part))
		more = more[len(part):]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sums[i] != before {
		// Two at once: nobody knows who wrote last.
		run = running{mapped: true}
	}
	w.sums[i] = run
	return nil
}
