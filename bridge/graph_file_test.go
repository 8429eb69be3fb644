package bridge

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

func plan(path string, more string) string {
	return fmt.Sprintf(`{"path":%q,"num_nodes":2,"sections":[{"name":"indptr","dtype":"int64","shape":[3]},{"name":"indices","dtype":"int64","shape":[2]}%s]}`,
		base64.StdEncoding.EncodeToString([]byte(path)), more)
}

func TestAGraphFileGoesThroughTheBridge(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a\xff")
	indptr, indices := []int64{0, 1, 2}, []int64{1, 0}
	w, err := GraphFileCreate(plan(path, ""))
	if err != nil {
		t.Fatal(err)
	}
	for section, values := range [][]int64{indptr, indices} {
		if _, err := GraphFileWrite(w, int64(section), 0, int64(uintptr(unsafe.Pointer(&values[0]))), int64(8*len(values))); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range [][4]int64{{2, 0, 1, 1}, {-1, 0, 1, 1}, {0, -1, 1, 1}, {0, 24, 1, 1}, {0, 0, 1, 1 << 62}, {0, 0, 0, 8}, {0, 0, 8, -1}} {
		if _, err := GraphFileWrite(w, bad[0], bad[1], bad[2], bad[3]); err == nil {
			t.Error(bad)
		}
	}
	for done := int64(0); done == 0; {
		if done, err = GraphFileCommit(w, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := GraphFileAbort(w); err != nil {
		t.Fatal(err)
	}
	if _, err := GraphFileWrite(w, 0, 0, 0, 0); err == nil || !strings.HasPrefix(err.Error(), "ClosedError: ") {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := GraphFileHeader(int64(file.Fd()), "a")
	var header struct {
		NumEdges int64 `json:"num_edges"`
		Bytes    int64 `json:"bytes"`
	}
	if err != nil || json.Unmarshal([]byte(text), &header) != nil || header.NumEdges != 2 {
		t.Fatal(text, err)
	}
	if about, err := file.Stat(); err != nil || about.Size() != header.Bytes {
		t.Fatal(about, err)
	}
}

func TestFilesOfTheBridgeGiveTheSystemsErrors(t *testing.T) {
	for bad, kind := range map[string]string{
		"":                        "ValueError: ",
		"{}":                      "OSError: 2: ",
		plan("/nowhere/a", ""):    "OSError: 2: ",
		plan("/nowhere/\xff", ""): "OSError: 2: ",
		plan("/dev/null", ""):     "ValueError: ",
		plan("/tmp/a", `,{"name":"x","dtype":"text","shape":[]}`):                    "ValueError: ",
		plan("/tmp/a", `,{"name":"x","dtype":"int8","shape":[4611686018427387904]}`): "OSError: ",
	} {
		if _, err := GraphFileCreate(bad); err == nil || !strings.HasPrefix(err.Error(), kind) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := GraphFileHeader(-1, "a"); err == nil || !strings.HasPrefix(err.Error(), "OSError: 9: ") {
		t.Error(err)
	}
	if _, err := GraphFileChecksum(0, 0, 8); err == nil {
		t.Error("address 0")
	}
}

func TestTheEndLeavesNoTemporaryFile(t *testing.T) {
	folder := t.TempDir()
	w, err := GraphFileCreate(plan(filepath.Join(folder, "a"), ""))
	if err != nil {
		t.Fatal(err)
	}
	abortWriters()
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
	if _, err := GraphFileCommit(w, 0); err == nil {
		t.Fatal("an aborted file was completed")
	}
}
