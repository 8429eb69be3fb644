package graphfile

import (
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// checksumBytes is the number of bytes that are summed between two checks for an abort.
const checksumBytes = 64 << 20

// Commit validates the graph, writes checksums and header, syncs, and renames the file to its final
// name, where it replaces an existing file: readers find either the old file or the new one. After
// an error the temporary file is removed and the old file is unchanged.
func (w *Writer) Commit() (err error) {
	w.mu.Lock()
	if w.ended || w.closed || w.committing {
		w.mu.Unlock()
		return ErrAborted
	}
	w.committing = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.committing = false
		w.mu.Unlock()
		w.Abort()
	}()
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return w.failed(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return ErrAborted
	}
	if err := os.Rename(w.file.Name(), w.target); err != nil {
		return err
	}
	w.ended = true
	return syncFolder(filepath.Dir(w.target))
}

// finish completes the contents of the file.
func (w *Writer) finish() (err error) {
	if err := w.Map(); err != nil {
		return err
	}
	defer RecoverFault(&err, w.target)
	defer FaultsPanic()()
	if err := w.validate(); err != nil {
		return err
	}
	for i := range w.header.Entries {
		e := &w.header.Entries[i]
		run := w.sums[i]
		if run.mapped || run.upTo != e.Bytes {
			if run.sum, err = w.sum(e); err != nil {
				return err
			}
		}
		e.Checksum = run.sum
	}
	if _, err := w.file.WriteAt(w.header.encode(), 0); err != nil {
		return w.failed(err)
	}
	return nil
}

func (w *Writer) sum(e *Entry) (sum uint32, err error) {
	for at := int64(0); at < e.Bytes; at += checksumBytes {
		if w.givenUp() {
			return 0, ErrAborted
		}
		sum = Checksum(sum, w.data[e.Offset+at:e.Offset+min(e.Bytes, at+checksumBytes)])
	}
	return sum, nil
}

// validate fills in what the header says of the graph, and checks that it is one:
// a file that has a header was a sound graph when it got it.
func (w *Writer) validate() error {
	h := &w.header
	h.Typed = w.Typed
	if err := h.checkRoles(w.target); err != nil {
		return err
	}
	h.NumNodes = w.NumNodes
	for i, name := range h.graphs() {
		g := csc.Relation{Indptr: arrayOf(h, w.data, name+"indptr"), Indices: arrayOf(h, w.data, name+"indices"), EdgeIDs: arrayOf(h, w.data, name+"edge_ids")}
		if h.NumNodes < 0 {
			h.NumNodes = g.NumRows()
		}
		g.NumNodes = h.NumNodes
		if i > 0 && g.Indices.Bits != h.IDBits {
			return formatError("%s: section %q: expected ids of %d bits, as the first relation has them, got %d", w.target, name+"indices", h.IDBits, g.Indices.Bits)
		}
		h.IDBits = g.Indices.Bits
		h.NumEdges += g.NumEdges()
		if err := g.Validate(); err != nil {
			return err
		}
	}
	return h.checkMap(w.target)
}

// arrayOf returns a section of ids in a mapped file; the zero array if there is none.
func arrayOf(h *Header, data []byte, name string) csc.Array {
	e, ok := h.Entry(name)
	if !ok {
		return csc.Array{}
	}
	bits := int(8 * e.DType.Size())
	if e.Bytes == 0 {
		return csc.Array{Bits: bits}
	}
	at := unsafe.Pointer(&data[e.Offset])
	if bits == 32 {
		return csc.Array{Bits: 32, I32: unsafe.Slice((*int32)(at), e.Bytes/4)}
	}
	return csc.Array{Bits: 64, I64: unsafe.Slice((*int64)(at), e.Bytes/8)}
}

func (w *Writer) givenUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

// Abort removes the temporary file at once, unless Commit has renamed it by then. A running Commit
// ends with ErrAborted. Abort may be called twice.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		w.ended = true
		_ = os.Remove(w.file.Name())
	}
	if w.committing || w.closed {
		return
	}
	w.closed = true
	if w.data != nil {
		_ = syscall.Munmap(w.data)
		w.data = nil
	}
	_ = w.file.Close()
}

// syncFolder makes a rename last. Some file systems cannot sync a folder; there the
// rename lasts as they see fit.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer folder.Close()
	_ = folder.Sync()
	return nil
}
