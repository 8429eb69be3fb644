package graphfile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func put[T any](t testing.TB, b []byte, values ...T) {
	t.Helper()
	if n, err := binary.Encode(b, binary.LittleEndian, values); err != nil || n != len(b) {
		t.Fatalf("%d of %d bytes, %v", n, len(b), err)
	}
}

// sample writes a graph of 4 vertices and 5 edges with every kind of section.
func sample(t testing.TB, path string) {
	t.Helper()
	w, err := Create(path, []Section{
		{"indptr", Int64, []int64{4}}, {"indices", Int32, []int64{5}}, {"edge_ids", Int64, []int64{5}},
		{"node_ids", Int64, []int64{4}}, {"node_names.offsets", Int64, []int64{5}}, {"node_names.bytes", Uint8, []int64{6}},
		{"x", Float16, []int64{4, 3}}, {"empty", Float64, []int64{0, 7}}, {"one", Bool, nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	w.NumNodes = 4
	put(t, w.Bytes("indptr"), int64(0), 2, 4, 5)
	put(t, w.Bytes("indices"), int32(1), 3, 0, 0, 2)
	put(t, w.Bytes("edge_ids"), int64(4), 3, 2, 1, 0)
	put(t, w.Bytes("node_ids"), int64(10), 20, 30, 40)
	put(t, w.Bytes("node_names.offsets"), int64(0), 1, 3, 3, 6)
	copy(w.Bytes("node_names.bytes"), "abbccc")
	if err := w.Write("x", 0, []byte("123456789012345678901234")); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pgs")
	sample(t, path)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Verify(); err != nil {
		t.Fatal(err)
	}
	if f.NumNodes != 4 || f.NumEdges != 5 || f.IDBits != 32 || len(f.Entries) != 9 {
		t.Fatalf("%+v", f.Header)
	}
	if got := string(f.Bytes("x")); got != "123456789012345678901234" {
		t.Fatal(got)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
}

// typedSample writes two relations, of 4 and of 2 rows.
func typedSample(t testing.TB, path string, bits DType) error {
	t.Helper()
	w, err := Create(path, []Section{
		{"types", Uint8, []int64{2}},
		{"0.indptr", Int64, []int64{5}}, {"0.indices", Int32, []int64{3}},
		{"1.indptr", Int64, []int64{3}}, {"1.indices", bits, []int64{2}}, {"1.edge_ids", Int32, []int64{2}},
		{"1.edge_data.w", Float32, []int64{2}}, {"node_ids", Bool, []int64{1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	w.NumNodes, w.Typed = 5, true
	put(t, w.Bytes("0.indptr"), int64(0), 1, 1, 1, 3)
	put(t, w.Bytes("0.indices"), int32(4), 0, 1)
	put(t, w.Bytes("1.indptr"), int64(0), 0, 2)
	return w.Commit()
}

func TestAFileOfRelations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pgs")
	if err := typedSample(t, path, Int64); err == nil || !strings.Contains(err.Error(), `section "1.indices": expected ids of 32 bits`) {
		t.Fatal(err)
	}
	if err := typedSample(t, path, Int32); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !f.Typed || f.Version() != 2 || f.NumNodes != 5 || f.NumEdges != 5 || f.IDBits != 32 || f.Verify() != nil {
		t.Fatalf("%+v", f.Header)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(b []byte, i int) []byte { return b[preludeBytes+entryBytes*i:][:entryBytes] }
	for what, spoil := range map[string]func(b []byte){
		"without types":         func(b []byte) { b[8] = 1 },
		"no list of types":      func(b []byte) { entry(b, 0)[0] = 'T' },
		"a relation less":       func(b []byte) { entry(b, 3)[0] = '7' },
		"no indices":            func(b []byte) { entry(b, 4)[2] = 'I' },
		"other edges":           func(b []byte) { b[40]++ },
		"other ids":             func(b []byte) { binary.LittleEndian.PutUint32(entry(b, 5)[64:], uint32(Float32)) },
		"fewer nodes than rows": func(b []byte) { b[32] = 3 },
		"the last offset":       func(b []byte) { b[f.Entries[3].Offset+16] = 1 },
	} {
		bad := slices.Clone(good)
		spoil(bad)
		wantFormatError(t, sealed(bad), what)
	}
}
