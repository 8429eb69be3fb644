package graphfile

import (
	"encoding/binary"
	"os"
	"path/filepath"
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
