package pygsampler

import (
	"encoding/json"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graphfile"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// fileSection is a section of a graph file as Python reads it.
type fileSection struct {
	Name     string  `json:"name"`
	DType    string  `json:"dtype"`
	Shape    []int64 `json:"shape"`
	Offset   int64   `json:"offset"`
	Bytes    int64   `json:"bytes"`
	Checksum uint32  `json:"checksum"`
}

// GraphFileHeader describes, as JSON, the graph file of a descriptor, which the caller closes; path
// is for errors. The header and the sizes are checked.
func GraphFileHeader(fd int64, path string) (string, error) {
	own, err := syscall.Dup(int(fd))
	if err != nil {
		return "", err
	}
	syscall.CloseOnExec(own)
	file := os.NewFile(uintptr(own), path)
	defer file.Close()
	h, err := graphfile.ReadHeader(file, path)
	if err != nil {
		return "", err
	}
	sections := make([]fileSection, 0, len(h.Entries))
	for _, e := range h.Entries {
		sections = append(sections, fileSection{e.Name, e.DType.String(), e.Shape, e.Offset, e.Bytes, e.Checksum})
	}
	text, err := json.Marshal(map[string]any{
		"version": h.Version(), "typed": h.Typed, "bytes": h.FileBytes, "checksum": h.Checksum,
		"num_nodes": h.NumNodes, "num_edges": h.NumEdges, "id_bits": h.IDBits, "sections": sections,
	})
	return string(text), err
}

// GraphFileChecksum continues the checksum of a section over n mapped bytes.
func GraphFileChecksum(before, address, n int64) (sum int64, err error) {
	defer graphfile.RecoverFault(&err, "graph file")
	defer graphfile.FaultsPanic()()
	return int64(graphfile.Checksum(uint32(before), memory.View[byte](address, n))), nil
}

// NewMappedRelation borrows the arrays of a graph file. The writer of the file has validated them,
// so that only their ends are checked; reads of the CPU engine are checked against the bounds in
// any case.
func NewMappedRelation(c CSC) (g *Relation, err error) {
	defer graphfile.RecoverFault(&err, "graph file")
	defer graphfile.FaultsPanic()()
	if g, err = newHostRelation(c); err != nil {
		return nil, err
	}
	if err := csc.CheckSizes(g.csc.NumRows(), g.csc.NumNodes, g.csc.Kinds, g.csc.Indices.Bits); err != nil {
		return nil, err
	}
	return g, csc.CheckEnds(g.csc.Indptr.Element(0), g.csc.Indptr.Element(g.csc.NumRows()), g.csc.NumRows(), g.csc.NumEdges())
}

// GraphFileWriter writes a graph file.
type GraphFileWriter struct {
	file      *graphfile.Writer
	sections  []graphfile.Section
	committed chan struct{} // closed when Commit is done; nil before it began
	err       error
	once      sync.Once
}

// graphFilePlan describes the file that Python writes. Path is bytes, since names of files need not
// be text.
type graphFilePlan struct {
	Path     []byte        `json:"path"`
	NumNodes int64         `json:"num_nodes"`
	Hetero   bool          `json:"typed"`
	Sections []fileSection `json:"sections"`
}

// NewGraphFileWriter reserves the space of the file that the JSON text describes.
func NewGraphFileWriter(plan string) (*GraphFileWriter, error) {
	var p graphFilePlan
	if err := json.Unmarshal([]byte(plan), &p); err != nil {
		return nil, Errorf(KindValue, "plan: expected JSON of a graph file, got %v", err)
	}
	sections := make([]graphfile.Section, 0, len(p.Sections))
	for _, s := range p.Sections {
		sections = append(sections, graphfile.Section{Name: s.Name, DType: graphfile.DTypeOf(s.DType), Shape: s.Shape})
	}
	file, err := graphfile.Create(string(p.Path), sections)
	if err != nil {
		return nil, err
	}
	file.NumNodes, file.Typed = p.NumNodes, p.Hetero
	return &GraphFileWriter{file: file, sections: sections}, nil
}

// Write writes n bytes from an address to a section, at an offset from its start.
func (w *GraphFileWriter) Write(section, at, address, n int64) (err error) {
	defer graphfile.RecoverFault(&err, "graph file")
	defer graphfile.FaultsPanic()()
	if section < 0 || section >= int64(len(w.sections)) {
		return Errorf(KindIndex, "section: expected one of %d, got %d", len(w.sections), section)
	}
	return w.file.Write(w.sections[section].Name, at, memory.View[byte](address, n))
}

// Commit starts to complete the file; Wait reports when it has its name.
func (w *GraphFileWriter) Commit() {
	w.once.Do(func() {
		w.committed = make(chan struct{})
		go func() {
			defer close(w.committed)
			defer func() {
				if p := recover(); p != nil {
					w.err = Errorf(KindOther, "graph file: %v", p)
				}
			}()
			w.err = w.file.Commit()
		}()
	})
}

// Wait waits up to timeout milliseconds for Commit; done is false while it runs.
func (w *GraphFileWriter) Wait(timeout int64) (done bool, err error) {
	w.Commit()
	timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-w.committed:
		return true, w.err
	case <-timer.C:
		return false, nil
	}
}

// Abort removes the temporary file, unless the file already has its name.
func (w *GraphFileWriter) Abort() { w.file.Abort() }
