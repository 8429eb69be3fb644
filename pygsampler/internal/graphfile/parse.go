package graphfile

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// parse reads and checks a header. No memory is taken for a number in the file
// before that number was compared with the file's size.
func parse(r io.ReaderAt, size int64, path string) (*Header, error) {
	prelude, err := readAt(r, 0, min(size, preludeBytes), path)
	if err != nil {
		return nil, err
	}
	length, err := checkPrelude(prelude, size, path)
	if err != nil {
		return nil, err
	}
	b, err := readAt(r, 0, length, path)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if want, got := le.Uint32(b[checksumAt:]), headerChecksum(b); want != got {
		return nil, formatError("%s: expected a header with the checksum %08x, got %08x: the file is damaged", path, want, got)
	}
	h := &Header{
		Typed:     le.Uint32(b[8:]) == Version,
		FileBytes: int64(le.Uint64(b[24:])), NumNodes: int64(le.Uint64(b[32:])), NumEdges: int64(le.Uint64(b[40:])),
		IDBits: int(le.Uint32(b[48:])), Checksum: le.Uint32(b[checksumAt:]),
	}
	if h.FileBytes != size {
		what := "more was appended to it"
		if size < h.FileBytes {
			what = "it is cut short"
		}
		return nil, formatError("%s: expected a file of %d bytes, got %d: %s", path, h.FileBytes, size, what)
	}
	if err := h.decodeEntries(b, path); err != nil {
		return nil, err
	}
	return h, h.checkGraph(r, path)
}

// checkPrelude checks what has to hold before the rest of a header can be read, and
// gives its length.
func checkPrelude(b []byte, size int64, path string) (length int64, err error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		if size > 0 && size < int64(len(magic)) && bytes.HasPrefix([]byte(magic), b) {
			return 0, formatError("%s: expected a graph file, got its first %d bytes: it is cut short", path, size)
		}
		hint := ""
		if size > 0 {
			hint = `; datasets.convert, and the command "pygsampler convert", make one of a list of edges`
		}
		return 0, formatError("%s: expected a graph file, which begins with %q, got %d bytes that begin with %q%s",
			path, magic, size, b[:min(len(b), len(magic))], hint)
	}
	if size < preludeBytes {
		return 0, formatError("%s: expected a header of at least %d bytes, got %d: it is cut short", path, preludeBytes, size)
	}
	le := binary.LittleEndian
	if version := le.Uint32(b[8:]); version > Version {
		return 0, formatError("%s: expected a file of version %d or older, got version %d: a newer pygsampler reads it",
			path, Version, version)
	} else if version == 0 {
		return 0, formatError("%s: expected a version from 1 on, got 0: the file is damaged", path)
	}
	length, sections := int64(le.Uint32(b[12:])), le.Uint32(b[20:])
	if sections > MostSections || length != headerBytes(int(sections)) {
		return 0, formatError("%s: expected at most %d sections and a header as long as they need, got %d and %d bytes: the file is damaged",
			path, MostSections, sections, length)
	}
	if length > size {
		return 0, formatError("%s: expected a header of %d bytes, got a file of %d: it is cut short", path, length, size)
	}
	return length, nil
}

// decodeEntries reads the table of sections. They follow each other in the order of
// the table.
func (h *Header) decodeEntries(b []byte, path string) error {
	le := binary.LittleEndian
	if le.Uint32(b[52:]) != 0 || le.Uint64(b[56:]) != 0 {
		return formatError("%s: expected zeros in the reserved bytes of the header", path)
	}
	sections := int(le.Uint32(b[20:]))
	h.Entries = make([]Entry, 0, sections)
	end := int64(len(b))
	for i := range sections {
		at := b[preludeBytes+entryBytes*i:][:entryBytes]
		name, rest, _ := bytes.Cut(at[:nameBytes], []byte{0})
		dims := le.Uint32(at[68:])
		if dims > MostDims || le.Uint32(at[156:]) != 0 || !zero(rest) || !zero(at[72+8*dims:136]) {
			return formatError("%s: expected an entry of the table of sections, got other bytes at %d", path, preludeBytes+entryBytes*i)
		}
		e := Entry{
			Section: Section{Name: string(name), DType: DType(le.Uint32(at[64:]))},
			Offset:  int64(le.Uint64(at[136:])), Bytes: int64(le.Uint64(at[144:])), Checksum: le.Uint32(at[152:]),
		}
		for d := range int(dims) {
			e.Shape = append(e.Shape, int64(le.Uint64(at[72+8*d:])))
		}
		size, err := bytesOf(e.Section)
		if err != nil {
			return formatError("%s: %v", path, err)
		}
		if size != e.Bytes || e.Offset < end || e.Offset%alignment != 0 || e.Offset > h.FileBytes-e.Bytes {
			return formatError("%s: section %q: expected %d bytes from %d or later within %d, got %d from %d",
				path, e.Name, size, end, h.FileBytes, e.Bytes, e.Offset)
		}
		if _, twice := h.Entry(e.Name); twice {
			return formatError("%s: section %q: expected one of that name, got two", path, e.Name)
		}
		end = e.Offset + e.Bytes
		h.Entries = append(h.Entries, e)
	}
	if end != h.FileBytes {
		return formatError("%s: expected sections up to byte %d, got %d", path, h.FileBytes, end)
	}
	if !zero(b[preludeBytes+entryBytes*sections:]) {
		return formatError("%s: expected zeros at the end of the header", path)
	}
	return nil
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// checkRoles checks types and shapes of the sections that have a meaning of their own.
func (h *Header) checkRoles(path string) error {
	if h.Typed {
		if err := h.checkRole(path, "types", true, Uint8); err != nil {
			return err
		}
	}
	for _, graph := range h.graphs() {
		for _, name := range []string{"indptr", "indices", "edge_ids"} {
			if err := h.checkRole(path, graph+name, name != "edge_ids", Int32, Int64); err != nil {
				return err
			}
		}
	}
	if h.Typed {
		return nil
	}
	for _, role := range []struct {
		name string
		kind DType
	}{{"node_ids", Int64}, {"node_names.offsets", Int64}, {"node_names.bytes", Uint8}} {
		if err := h.checkRole(path, role.name, false, role.kind); err != nil {
			return err
		}
	}
	_, offsets := h.Entry("node_names.offsets")
	_, text := h.Entry("node_names.bytes")
	if offsets != text {
		return formatError("%s: expected both of node_names.offsets and node_names.bytes or neither", path)
	}
	return nil
}

// checkRole checks the type and the shape of a section.
func (h *Header) checkRole(path, name string, needed bool, types ...DType) error {
	e, ok := h.Entry(name)
	if !ok && needed {
		return formatError("%s: expected a section %q, got none", path, name)
	}
	if ok && (len(e.Shape) != 1 || !slices.Contains(types, e.DType)) {
		return formatError("%s: section %q: expected one dimension of %v, got shape %v of %v", path, name, types, e.Shape, e.DType)
	}
	return nil
}

// checkMap checks the lengths of what describes the nodes.
func (h *Header) checkMap(path string) error {
	if h.Typed {
		return nil
	}
	for name, more := range map[string]int64{"node_ids": 0, "node_names.offsets": 1} {
		if e, ok := h.Entry(name); ok && e.Shape[0] != h.NumNodes+more {
			return formatError("%s: section %q: expected %d elements for %d nodes, got %d", path, name, h.NumNodes+more, h.NumNodes, e.Shape[0])
		}
	}
	return nil
}

// checkGraph checks what the header says of the graph, and the ends of the offsets:
// all that can be known of a graph without reading it.
func (h *Header) checkGraph(r io.ReaderAt, path string) error {
	if err := h.checkRoles(path); err != nil {
		return err
	}
	var all int64
	for _, graph := range h.graphs() {
		edges, err := h.checkCSC(r, path, graph)
		if err != nil {
			return err
		}
		all += edges
	}
	if all != h.NumEdges {
		return formatError("%s: expected %d edges, as the header says, got %d", path, h.NumEdges, all)
	}
	if err := h.checkMap(path); err != nil || h.Typed {
		return err
	}
	if names, ok := h.Entry("node_names.offsets"); ok {
		text, _ := h.Entry("node_names.bytes")
		first, last, err := names.ends(r, path)
		if err != nil {
			return err
		}
		if first != 0 || last != text.Bytes {
			return formatError("%s: node_names.offsets: expected 0 to %d, got %d to %d", path, text.Bytes, first, last)
		}
	}
	return nil
}

// checkCSC checks one of the graphs, and gives the number of its edges.
func (h *Header) checkCSC(r io.ReaderAt, path, graph string) (edges int64, err error) {
	indptr, _ := h.Entry(graph + "indptr")
	indices, _ := h.Entry(graph + "indices")
	rows, edges := indptr.Shape[0]-1, indices.Shape[0]
	if int64(h.IDBits) != 8*indices.DType.Size() {
		return 0, formatError("%s: expected %d edges with ids of %d bits, as the header says, got %d of %v", path, h.NumEdges, h.IDBits, edges, indices.DType)
	}
	if e, ok := h.Entry(graph + "edge_ids"); ok && e.Shape[0] != edges {
		return 0, formatError("%s: section %q: expected %d elements, got %d", path, e.Name, edges, e.Shape[0])
	}
	if err := csc.CheckSizes(rows, h.NumNodes, 0, h.IDBits); err != nil {
		return 0, formatError("%s: %v", path, err)
	}
	first, last, err := indptr.ends(r, path)
	if err != nil {
		return 0, err
	}
	if err := csc.CheckEnds(first, last, rows, edges); err != nil {
		return 0, formatError("%s: %v", path, err)
	}
	return edges, nil
}

// ends is the first and the last element of a section of int32 or int64.
func (e *Entry) ends(r io.ReaderAt, path string) (first, last int64, err error) {
	size := e.DType.Size()
	for i, to := range []*int64{&first, &last} {
		b, err := readAt(r, e.Offset+int64(i)*(e.Bytes-size), size, path)
		if err != nil {
			return 0, 0, err
		}
		if size == 4 {
			*to = int64(int32(binary.LittleEndian.Uint32(b)))
		} else {
			*to = int64(binary.LittleEndian.Uint64(b))
		}
	}
	return first, last, nil
}

// compare is the error of a section whose bytes have another checksum.
func (e *Entry) compare(path string, got uint32) error {
	if got == e.Checksum {
		return nil
	}
	return formatError("%s: section %q: expected the checksum %08x, got %08x: the file is damaged", path, e.Name, e.Checksum, got)
}
