// Package graphfile is the on-disk format of a graph: a CSC, or one for each relation of a
// heterogeneous graph, and any number of arrays, laid out to be mapped into memory.
// docs/developer/file-format.md describes it byte by byte. All numbers are little-endian.
//
// A file has a header, which a checksum covers, and sections, each of which has its own checksum in
// the header. Open checks the header, and every size against the file; it reads no more than that,
// so that a file of any size opens at once. Verify reads the sections. A Writer works on a
// temporary file in the folder of the target and renames it, complete and synced, in one step.
package graphfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"unicode/utf8"
)

// Version is the newest format that this package reads, which heterogeneous graphs need.
// Homogeneous graphs are written as version 1.
const Version = 2

const (
	// Text conversions, a stripped high bit and type(1) all show in these bytes.
	magic = "\x93PGS\r\n\x1a\n"

	preludeBytes = 64
	entryBytes   = 160
	nameBytes    = 64
	// MostSections and MostDims bound a header, so that no count in a file can request more memory
	// than that.
	MostSections = 4096
	MostDims     = 8

	alignment  = 64
	pageBytes  = 4096
	pageFrom   = 1 << 16 // sections from this size begin at a page
	checksumAt = 16
)

// DType is the type of an array's elements.
type DType uint32

// The types that a file can hold; the numbers are part of the format.
const (
	Bool DType = iota + 1
	Int8
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float16
	Float32
	Float64
	BFloat16
	lastDType = BFloat16
)

var dtypes = [...]struct {
	name string
	size int64
}{
	Bool: {"bool", 1},
	Int8: {"int8", 1}, Int16: {"int16", 2}, Int32: {"int32", 4}, Int64: {"int64", 8},
	Uint8: {"uint8", 1}, Uint16: {"uint16", 2}, Uint32: {"uint32", 4}, Uint64: {"uint64", 8},
	Float16: {"float16", 2}, Float32: {"float32", 4}, Float64: {"float64", 8}, BFloat16: {"bfloat16", 2},
}

// Size returns the number of bytes of an element, 0 for an unknown type.
func (d DType) Size() int64 {
	if d < Bool || d > lastDType {
		return 0
	}
	return dtypes[d].size
}

func (d DType) String() string {
	if d.Size() == 0 {
		return fmt.Sprintf("dtype %d", uint32(d))
	}
	return dtypes[d].name
}

// DTypeOf returns the type with a name such as "int64"; 0 if there is none.
func DTypeOf(name string) DType {
	for d := Bool; d <= lastDType; d++ {
		if dtypes[d].name == name {
			return d
		}
	}
	return 0
}

// Section is an array to write: C order, no gaps. A shape without dimensions is one element.
type Section struct {
	Name  string // UTF-8, 1 to 63 bytes, no zero byte
	DType DType
	Shape []int64
}

// Entry is the position of a section in a file.
type Entry struct {
	Section
	Offset, Bytes int64
	Checksum      uint32 // CRC-32C of the bytes
}

// Header is the description at the beginning of a file.
type Header struct {
	Typed     bool  // version 2: relation i is in the sections "i.indptr" and so on
	NumNodes  int64 // with types, of the largest of them
	NumEdges  int64 // with types, of all relations
	IDBits    int
	FileBytes int64
	Checksum  uint32 // of the header: with the checksums in it, it stands for the file
	Entries   []Entry
}

// Entry returns the section with a name.
func (h *Header) Entry(name string) (*Entry, bool) {
	i := slices.IndexFunc(h.Entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return nil, false
	}
	return &h.Entries[i], true
}

// Version returns the format of the file.
func (h *Header) Version() int {
	if h.Typed {
		return Version
	}
	return 1
}

// graphs returns the prefixes of the section names of each graph in the file.
func (h *Header) graphs() []string {
	if !h.Typed {
		return []string{""}
	}
	var found []string
	for {
		prefix := fmt.Sprintf("%d.", len(found))
		if _, ok := h.Entry(prefix + "indptr"); !ok {
			return found
		}
		found = append(found, prefix)
	}
}

// FormatError reports a malformed file, or a malformed section to write.
type FormatError struct{ Text string }

func (e *FormatError) Error() string { return e.Text }

// checkOrder refuses machines whose numbers are not the file's.
func checkOrder() error {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		return formatError("graph file: expected a little-endian machine, got a big-endian one")
	}
	return nil
}

func formatError(format string, args ...any) error {
	return &FormatError{fmt.Sprintf(format, args...)}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum continues the CRC-32C of a section over more of its bytes; it begins at 0.
func Checksum(before uint32, more []byte) uint32 { return crc32.Update(before, castagnoli, more) }

// headerChecksum is the checksum of a header, its own field taken as zero.
func headerChecksum(header []byte) uint32 {
	sum := Checksum(0, header[:checksumAt])
	sum = Checksum(sum, make([]byte, 4))
	return Checksum(sum, header[checksumAt+4:])
}

// bytesOf returns the number of bytes of a section, or an error for an invalid name, type or shape.
func bytesOf(s Section) (int64, error) {
	if s.Name == "" || len(s.Name) >= nameBytes || !utf8.ValidString(s.Name) || bytes.IndexByte([]byte(s.Name), 0) >= 0 {
		return 0, formatError("section %q: expected a name of 1 to %d bytes of UTF-8", s.Name, nameBytes-1)
	}
	if s.DType.Size() == 0 {
		return 0, formatError("section %q: expected a known dtype, got %v", s.Name, s.DType)
	}
	if len(s.Shape) > MostDims {
		return 0, formatError("section %q: expected at most %d dimensions, got %d", s.Name, MostDims, len(s.Shape))
	}
	if slices.ContainsFunc(s.Shape, func(n int64) bool { return n < 0 }) {
		return 0, formatError("section %q: expected sizes >= 0, got %v", s.Name, s.Shape)
	}
	size := s.DType.Size()
	if slices.Contains(s.Shape, 0) {
		return 0, nil
	}
	for _, n := range s.Shape {
		if size > math.MaxInt64/n {
			return 0, formatError("section %q: expected fewer than 2^63 bytes, got shape %v of %v", s.Name, s.Shape, s.DType)
		}
		size *= n
	}
	return size, nil
}

func headerBytes(sections int) int64 {
	return roundUp(preludeBytes+entryBytes*int64(sections), alignment)
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// layOut gives each section its place, in order.
func layOut(sections []Section) (Header, error) {
	if len(sections) > MostSections {
		return Header{}, formatError("sections: expected at most %d, got %d", MostSections, len(sections))
	}
	h := Header{NumNodes: -1}
	end := headerBytes(len(sections))
	for _, s := range sections {
		size, err := bytesOf(s)
		if err != nil {
			return h, err
		}
		if _, twice := h.Entry(s.Name); twice {
			return h, formatError("section %q: expected one of that name, got two", s.Name)
		}
		to := int64(alignment)
		if size >= pageFrom {
			to = pageBytes
		}
		if size > math.MaxInt64-2*pageBytes-end {
			return h, formatError("section %q: expected a file of fewer than 2^63 bytes", s.Name)
		}
		at := roundUp(end, to)
		s.Shape = slices.Clone(s.Shape)
		h.Entries = append(h.Entries, Entry{Section: s, Offset: at, Bytes: size})
		end = at + size
	}
	h.FileBytes = end
	return h, nil
}

// encode is the header in the file, complete with its checksum.
func (h *Header) encode() []byte {
	b := make([]byte, headerBytes(len(h.Entries)))
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], uint32(h.Version()))
	le.PutUint32(b[12:], uint32(len(b)))
	le.PutUint32(b[20:], uint32(len(h.Entries)))
	le.PutUint64(b[24:], uint64(h.FileBytes))
	le.PutUint64(b[32:], uint64(h.NumNodes))
	le.PutUint64(b[40:], uint64(h.NumEdges))
	le.PutUint32(b[48:], uint32(h.IDBits))
	for i, e := range h.Entries {
		at := b[preludeBytes+entryBytes*i:]
		copy(at[:nameBytes], e.Name)
		le.PutUint32(at[64:], uint32(e.DType))
		le.PutUint32(at[68:], uint32(len(e.Shape)))
		for d, n := range e.Shape {
			le.PutUint64(at[72+8*d:], uint64(n))
		}
		le.PutUint64(at[136:], uint64(e.Offset))
		le.PutUint64(at[144:], uint64(e.Bytes))
		le.PutUint32(at[152:], e.Checksum)
	}
	le.PutUint32(b[checksumAt:], headerChecksum(b))
	h.Checksum = le.Uint32(b[checksumAt:])
	return b
}
