package graphfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alone fails unless the folder holds the named files and nothing else.
func alone(t *testing.T, folder string, names ...string) {
	t.Helper()
	found, err := os.ReadDir(folder)
	if err != nil || len(found) != len(names) {
		t.Fatalf("expected %v, got %v, %v", names, found, err)
	}
	for i, name := range names {
		if found[i].Name() != name {
			t.Fatalf("expected %v, got %v", names, found)
		}
	}
}

var small = []Section{{"indptr", Int64, []int64{3}}, {"indices", Int64, []int64{2}}, {"x", Uint8, []int64{1 << 20}}}

func begin(t *testing.T, path string) *Writer {
	t.Helper()
	w, err := Create(path, small)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Abort)
	return w
}

func fill(t *testing.T, w *Writer) {
	t.Helper()
	put(t, w.Bytes("indptr"), int64(0), 1, 2)
	put(t, w.Bytes("indices"), int64(1), 0)
}

func TestAFileDoesNotDependOnHowItWasWritten(t *testing.T) {
	folder := t.TempDir()
	x := make([]byte, 1<<20)
	for i := range x {
		x[i] = byte(i * 7 >> 3)
	}
	half := int64(len(x) / 2)
	var first []byte
	for name, write := range map[string]func(w *Writer) error{
		"in order":    func(w *Writer) error { return errors.Join(w.Write("x", 0, x[:half]), w.Write("x", half, x[half:])) },
		"out of turn": func(w *Writer) error { return errors.Join(w.Write("x", half, x[half:]), w.Write("x", 0, x[:half])) },
		"twice": func(w *Writer) error {
			return errors.Join(w.Write("x", 0, x[half:]), w.Write("x", 0, x[:half]), w.Write("x", half, x[half:]))
		},
		"mapped": func(w *Writer) error { copy(w.Bytes("x"), x); return nil },
		"both": func(w *Writer) error {
			err := w.Write("x", 0, x)
			w.Bytes("x")[0]++
			w.Bytes("x")[0]--
			return err
		},
	} {
		path := filepath.Join(folder, name)
		w := begin(t, path)
		fill(t, w)
		if err := write(w); err != nil {
			t.Fatal(name, err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(name, err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(name, err)
		}
		if err := errors.Join(f.Verify(), f.Close()); err != nil {
			t.Fatal(name, err)
		}
		got, err := os.ReadFile(path)
		if err != nil || first != nil && !bytes.Equal(got, first) {
			t.Fatal(name, err)
		}
		first = got
	}
}

func TestVerifyFindsAChangeInEachSection(t *testing.T) {
	good := sampleBytes(t)
	h, err := parseBytes(good)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bad")
	for _, e := range h.Entries {
		if e.Bytes == 0 {
			continue
		}
		bad := bytes.Clone(good)
		// Not the ends of indptr and names, which Open reads.
		bad[e.Offset+e.Bytes/2] ^= 4
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Verify(); err == nil || !strings.Contains(err.Error(), e.Name) {
			t.Errorf("%s: %v", e.Name, err)
		}
		f.Close()
	}
}

func TestAFileThatBecomesShorterIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	w := begin(t, path)
	fill(t, w)
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Fatal(err)
	}
}

func TestWhatIsNoGraphIsNotWritten(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	sample(t, path)
	before, _ := os.ReadFile(path)
	for what, spoil := range map[string]func(w *Writer){
		"an id out of range":  func(w *Writer) { w.Bytes("indices")[0] = 9 },
		"offsets that fall":   func(w *Writer) { w.Bytes("indptr")[8] = 3 },
		"offsets to the end":  func(w *Writer) { w.Bytes("indptr")[16] = 1 },
		"fewer nodes":         func(w *Writer) { w.NumNodes = 1 },
		"more nodes than ids": func(w *Writer) { w.NumNodes = 1<<48 + 1 },
	} {
		w := begin(t, path)
		fill(t, w)
		spoil(w)
		if err := w.Commit(); err == nil {
			t.Error(what)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Error(what, err)
		}
		alone(t, folder, "a")
	}
	for what, sections := range map[string][]Section{
		"no indices":        {{"indptr", Int64, []int64{1}}},
		"ids of floats":     {{"indptr", Int64, []int64{1}}, {"indices", Float32, []int64{0}}},
		"ids of two":        {{"indptr", Int64, []int64{1}}, {"indices", Int64, []int64{0, 2}}},
		"no offsets":        {{"indptr", Int64, []int64{0}}, {"indices", Int64, []int64{0}}},
		"edge ids too few":  {{"indptr", Int64, []int64{1}}, {"indices", Int64, []int64{0}}, {"edge_ids", Int64, []int64{1}}},
		"vertices too many": {{"indptr", Int64, []int64{1}}, {"indices", Int64, []int64{0}}, {"node_ids", Int64, []int64{1}}},
		"half of names":     {{"indptr", Int64, []int64{1}}, {"indices", Int64, []int64{0}}, {"node_names.bytes", Uint8, []int64{1}}},
	} {
		w, err := Create(path, sections)
		if err == nil {
			err = w.Commit()
		}
		if err == nil {
			t.Error(what)
		}
		alone(t, folder, "a")
	}
}

func TestPlansThatNoFileCanHoldAreRefused(t *testing.T) {
	folder := t.TempDir()
	many := make([]Section, MostSections+1)
	for i := range many {
		many[i] = Section{strings.Repeat("s", i%60+1) + string(rune('a'+i%26)), Int8, nil}
	}
	for what, sections := range map[string][]Section{
		"no name":       {{"", Int64, nil}},
		"a long name":   {{strings.Repeat("x", 64), Int64, nil}},
		"no text":       {{"\xff", Int64, nil}},
		"a zero byte":   {{"a\x00b", Int64, nil}},
		"no dtype":      {{"a", 0, nil}},
		"many":          many,
		"dimensions":    {{"a", Int8, make([]int64, 9)}},
		"negative":      {{"a", Int8, []int64{-1}}},
		"too large":     {{"a", Int64, []int64{1 << 60}}},
		"wrapping":      {{"a", Int64, []int64{1 << 32, 1 << 32}}},
		"all too large": {{"a", Int8, []int64{1 << 62}}, {"b", Int8, []int64{1 << 62}}},
		"two of a name": {{"a", Int8, nil}, {"a", Int8, nil}},
	} {
		var wrong *FormatError
		if _, err := Create(filepath.Join(folder, "a"), sections); !errors.As(err, &wrong) {
			t.Error(what, err)
		}
	}
	alone(t, folder)
}

func TestOneFileReplacesAnother(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "a"), filepath.Join(folder, "link")
	sample(t, path)
	if err := errors.Join(os.Chmod(path, 0o640), os.Symlink("a", link)); err != nil {
		t.Fatal(err)
	}
	old, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	w := begin(t, link)
	fill(t, w)
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	// Whoever has the old one open keeps it.
	if err := old.Verify(); err != nil || old.NumEdges != 5 {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil || f.NumEdges != 2 {
		t.Fatal(err)
	}
	f.Close()
	if about, err := os.Lstat(path); err != nil || about.Mode() != 0o640 {
		t.Fatal(about, err)
	}
	alone(t, folder, "a", "link")
	for _, bad := range []string{folder, "/dev/null", filepath.Join(path, "b"), filepath.Join(folder, "none", "b")} {
		if _, err := Create(bad, small); err == nil {
			t.Error(bad)
		}
	}
	alone(t, folder, "a", "link")
}

func TestAbortLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	for _, late := range []bool{false, true} {
		w := begin(t, path)
		fill(t, w)
		if late {
			// While Commit is on its way; it may have been faster.
			done := make(chan error)
			go func() { done <- w.Commit() }()
			w.Abort()
			if err := <-done; err == nil {
				alone(t, folder, "a")
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else if !errors.Is(err, ErrAborted) {
				t.Fatal(err)
			}
		}
		w.Abort()
		w.Abort()
		if err := w.Commit(); !errors.Is(err, ErrAborted) {
			t.Fatal(err)
		}
		if err := w.Write("x", 0, []byte{1}); !errors.Is(err, ErrAborted) {
			t.Fatal(err)
		}
		alone(t, folder)
	}
}

func TestADiskThatIsFullSaysWhatIsNeeded(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	sample(t, path)
	defer func() { fallocate = syscall.Fallocate }()
	fallocate = func(int, uint32, int64, int64) error { return syscall.ENOSPC }
	var full *WriteError
	if _, err := Create(path, small); !errors.As(err, &full) || full.Bytes < 1<<20 || full.Path != path || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	alone(t, folder, "a")
	// Room can be taken without it.
	fallocate = func(int, uint32, int64, int64) error { return syscall.EOPNOTSUPP }
	w := begin(t, path)
	fill(t, w)
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	about, err := os.Stat(path)
	if err != nil || about.Sys().(*syscall.Stat_t).Blocks*512 < 1<<20 {
		t.Fatal(about, err)
	}
}

func TestWhatAKilledWriterLeftIsRemoved(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	old := time.Now().Add(-time.Hour)
	other := begin(t, path)
	defer other.Abort()
	names := map[string]bool{".a.ABCDEFGHIJ.tmp": true, ".a.ABCDEFGHIJ.tm": false, ".ab.ABCDEFGHIJ.tmp": false, ".a.ABCDE.tmp": false}
	for name := range names {
		at := filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(at, nil, 0o600), os.Chtimes(at, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(other.file.Name(), old, old); err != nil {
		t.Fatal(err)
	}
	young := filepath.Join(folder, ".a.KLMNOPQRST.tmp")
	if err := os.WriteFile(young, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := begin(t, path)
	fill(t, w)
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	for name, gone := range names {
		if _, err := os.Stat(filepath.Join(folder, name)); errors.Is(err, os.ErrNotExist) != gone {
			t.Error(name, err)
		}
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
	fill(t, other)
	if err := other.Commit(); err != nil {
		t.Error(err)
	}
}
