package graphfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sampleBytes is the contents of the sample file.
func sampleBytes(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.pgs")
	sample(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parseBytes(b []byte) (*Header, error) { return parse(bytes.NewReader(b), int64(len(b)), "file") }

// wantFormatError fails unless the bytes are refused in words that begin with the path.
func wantFormatError(t *testing.T, b []byte, what string, words ...string) {
	t.Helper()
	_, err := parseBytes(b)
	var wrong *FormatError
	if !errors.As(err, &wrong) || !strings.HasPrefix(wrong.Text, "file: expected") && !strings.HasPrefix(wrong.Text, "file: section") &&
		!strings.HasPrefix(wrong.Text, "file: indptr") && !strings.HasPrefix(wrong.Text, "file: num_nodes") && !strings.HasPrefix(wrong.Text, "file: node_names") {
		t.Fatalf("%s: %v", what, err)
	}
	for _, word := range words {
		if !strings.Contains(wrong.Text, word) {
			t.Errorf("%s: expected %q in %q", what, word, wrong.Text)
		}
	}
}

// sealed gives a header that was tampered with the checksum that belongs to it.
func sealed(b []byte) []byte {
	length := binary.LittleEndian.Uint32(b[12:])
	binary.LittleEndian.PutUint32(b[checksumAt:], headerChecksum(b[:length]))
	return b
}

func TestEveryByteOfAHeaderCounts(t *testing.T) {
	good := sampleBytes(t)
	header := binary.LittleEndian.Uint32(good[12:])
	for i := range header {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := slices.Clone(good)
			bad[i] ^= flip
			wantFormatError(t, bad, "flipped")
		}
	}
}

func TestEveryCutIsFound(t *testing.T) {
	good := sampleBytes(t)
	h, err := parseBytes(good)
	if err != nil {
		t.Fatal(err)
	}
	cuts := []int64{h.FileBytes - 1}
	for i := range headerBytes(len(h.Entries)) + 1 {
		cuts = append(cuts, i)
	}
	for _, e := range h.Entries {
		cuts = append(cuts, e.Offset, e.Offset+1, e.Offset+e.Bytes/2, e.Offset+e.Bytes-1, e.Offset+e.Bytes)
	}
	for _, cut := range cuts {
		if cut == h.FileBytes {
			continue
		}
		words := []string{"cut short"}
		if cut == 0 {
			words = []string{"graph file"}
		}
		wantFormatError(t, good[:cut], "cut", words...)
	}
	wantFormatError(t, append(slices.Clone(good), 0), "longer", "appended")
}

func TestForeignAndNewerFilesAreNamed(t *testing.T) {
	good := sampleBytes(t)
	newer := slices.Clone(good)
	newer[8] = Version + 1
	wantFormatError(t, sealed(newer), "newer", "version 2", "newer pygsampler")
	// A newer header need not look like ours behind the version.
	for i := range newer[12:64] {
		newer[12+i] = 0xee
	}
	wantFormatError(t, newer, "newer", "version 2")
	for _, foreign := range []string{"", "x", "\x93NUMPY\x01\x00v\x00", "0 1\n1 2\n", "\x1f\x8b\x08\x00\x00\x00\x00\x00", strings.Repeat("\x00", 4096)} {
		wantFormatError(t, []byte(foreign), "foreign", "graph file")
	}
	// The damage that a transfer as text does to a file.
	wantFormatError(t, bytes.ReplaceAll(good, []byte("\r\n"), []byte("\n")), "text", "graph file")
}

// TestWhatIsSealedAndWrongIsRefused writes headers that no writer writes.
func TestWhatIsSealedAndWrongIsRefused(t *testing.T) {
	good := sampleBytes(t)
	le := binary.LittleEndian
	entry := func(b []byte, i int) []byte { return b[preludeBytes+entryBytes*i:][:entryBytes] }
	for what, spoil := range map[string]func(b []byte){
		"reserved word":           func(b []byte) { b[52] = 1 },
		"a size too many":         func(b []byte) { le.PutUint64(entry(b, 0)[80:], 1) },
		"a word of an entry":      func(b []byte) { entry(b, 0)[156] = 1 },
		"behind the table":        func(b []byte) { b[preludeBytes+9*entryBytes] = 1 },
		"reserved words":          func(b []byte) { b[63] = 1 },
		"a file of other bytes":   func(b []byte) { le.PutUint64(b[24:], 1<<62) },
		"more sections":           func(b []byte) { le.PutUint32(b[20:], 10) },
		"very many sections":      func(b []byte) { le.PutUint32(b[20:], 1<<31) },
		"other edges":             func(b []byte) { le.PutUint64(b[40:], 6) },
		"fewer nodes than rows":   func(b []byte) { le.PutUint64(b[32:], 2) },
		"negative nodes":          func(b []byte) { le.PutUint64(b[32:], 1<<63) },
		"more nodes than int32":   func(b []byte) { le.PutUint64(b[32:], 1<<31+1) },
		"a map of other length":   func(b []byte) { le.PutUint64(b[32:], 5) },
		"other bits":              func(b []byte) { le.PutUint32(b[48:], 64) },
		"an unknown dtype":        func(b []byte) { le.PutUint32(entry(b, 6)[64:], 99) },
		"a dtype of ids":          func(b []byte) { le.PutUint32(entry(b, 1)[64:], uint32(Float32)) },
		"nine dimensions":         func(b []byte) { le.PutUint32(entry(b, 6)[68:], 9) },
		"a negative size":         func(b []byte) { le.PutUint64(entry(b, 6)[72:], 1<<63) },
		"a size that wraps":       func(b []byte) { le.PutUint64(entry(b, 6)[72:], 1<<62) },
		"an offset at the header": func(b []byte) { le.PutUint64(entry(b, 0)[136:], 0) },
		"an unaligned offset":     func(b []byte) { le.PutUint64(entry(b, 6)[136:], le.Uint64(entry(b, 6)[136:])+1) },
		"an offset that wraps":    func(b []byte) { le.PutUint64(entry(b, 8)[136:], 1<<63-64) },
		"sections that overlap":   func(b []byte) { le.PutUint64(entry(b, 6)[136:], le.Uint64(entry(b, 5)[136:])) },
		"other bytes":             func(b []byte) { le.PutUint64(entry(b, 6)[144:], 8) },
		"two of a name":           func(b []byte) { copy(entry(b, 7)[:nameBytes], entry(b, 6)[:nameBytes]) },
		"no name":                 func(b []byte) { clear(entry(b, 6)[:nameBytes]) },
		"a name that is no text":  func(b []byte) { entry(b, 6)[0] = 0xff },
		"bytes behind a name":     func(b []byte) { entry(b, 6)[40] = 'x' },
		"a name without an end":   func(b []byte) { copy(entry(b, 6), strings.Repeat("x", nameBytes)) },
		"no indices":              func(b []byte) { copy(entry(b, 1), "somewhat") },
		"half of the names":       func(b []byte) { entry(b, 5)[0] = 'm' },
		"first offset":            func(b []byte) { b[le.Uint64(entry(b, 0)[136:])] = 1 },
		"last offset":             func(b []byte) { b[le.Uint64(entry(b, 0)[136:])+24] = 6 },
		"last name":               func(b []byte) { b[le.Uint64(entry(b, 4)[136:])+32] = 5 },
	} {
		bad := slices.Clone(good)
		spoil(bad)
		length := int(le.Uint32(bad[12:]))
		le.PutUint32(bad[checksumAt:], headerChecksum(bad[:length]))
		wantFormatError(t, bad, what)
	}
}

func FuzzRead(f *testing.F) {
	good := sampleBytes(f)
	f.Add(good, false)
	f.Add(good, true)
	path := filepath.Join(f.TempDir(), "typed.pgs")
	if err := typedSample(f, path, Int32); err != nil {
		f.Fatal(err)
	}
	typed, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(typed, true)
	f.Add(good[:100], true)
	f.Add([]byte(magic), false)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal && len(b) >= preludeBytes {
			// Past the checksum, where the other checks are.
			b = slices.Clone(b)
			if length := binary.LittleEndian.Uint32(b[12:]); int64(length) <= int64(len(b)) && length >= preludeBytes {
				sealed(b)
			}
		}
		h, err := parseBytes(b)
		if err != nil {
			return
		}
		end := headerBytes(len(h.Entries))
		for _, e := range h.Entries {
			if e.Offset < end || e.Bytes < 0 || e.Offset+e.Bytes > int64(len(b)) || e.Offset%alignment != 0 {
				t.Fatalf("%+v in a file of %d bytes", e, len(b))
			}
			end = e.Offset + e.Bytes
		}
		edges := int64(0)
		for _, graph := range h.graphs() {
			indptr, _ := h.Entry(graph + "indptr")
			indices, _ := h.Entry(graph + "indices")
			edges += indices.Shape[0]
			if h.NumNodes < indptr.Shape[0]-1 {
				t.Fatalf("%+v", h)
			}
		}
		if h.NumEdges != edges {
			t.Fatalf("%+v", h)
		}
	})
}
