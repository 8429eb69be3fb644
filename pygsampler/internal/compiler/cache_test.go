package compiler

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestKey(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, words := range [][]string{{}, {""}, {"", ""}, {"a"}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", ""}, {"", "a"}, {"1 a"}, {"a1 b"}} {
		k := key(words...)
		if before, ok := seen[k]; ok {
			t.Errorf("%q and %s have the same key", words, before)
		}
		if seen[k] = fmt.Sprintf("%q", words); k != key(words...) {
			t.Errorf("%q: another key at the second call", words)
		}
	}
}

func TestCacheKeeps(t *testing.T) {
	c := cache{filepath.Join(t.TempDir(), "a", "b")}
	k := key("x")
	if got := c.load("x", k); got != nil {
		t.Fatalf("got %q of an empty cache", got)
	}
	for _, image := range [][]byte{[]byte("image"), bytes.Repeat([]byte("large"), 1<<18), []byte("small again")} {
		if err := c.store("x", k, image); err != nil {
			t.Fatal(err)
		}
		if got := c.load("x", k); !bytes.Equal(got, image) {
			t.Errorf("expected %d bytes, got %d", len(image), len(got))
		}
		if got := c.load("x", key("y")); got != nil {
			t.Errorf("got %d bytes of another key", len(got))
		}
	}
	// A file under the name of another key is not taken for it.
	if err := os.Rename(c.path("x", k), c.path("x", key("y"))); err != nil {
		t.Fatal(err)
	}
	if got := c.load("x", key("y")); got != nil {
		t.Errorf("got %d bytes of another key", len(got))
	}
	folder, _ := os.Stat(c.folder)
	file, _ := os.Stat(c.path("x", key("y")))
	if folder.Mode().Perm() != 0o700 || file.Mode().Perm() != 0o600 {
		t.Errorf("others may write: %v, %v", folder.Mode(), file.Mode())
	}
}

func TestNamesOfFilesAreHarmless(t *testing.T) {
	c := cache{t.TempDir()}
	for _, name := range []string{"../../x", "a/b", "", "\x00", strings.Repeat("é", 300), "new-1"} {
		if err := c.store(name, key(name), []byte("image")); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if got := c.load(name, key(name)); string(got) != "image" || filepath.Dir(c.path(name, key(name))) != c.folder {
			t.Errorf("%q: got %q at %s", name, got, c.path(name, key(name)))
		}
	}
}

// TestBrokenFiles changes each byte, and cuts the file off at each: nothing of it is
// taken, and the next store puts it right.
func TestBrokenFiles(t *testing.T) {
	c, k := cache{t.TempDir()}, key("x")
	path := c.path("x", k)
	if err := c.store("x", k, []byte("image")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil || len(whole) != binary.Size(head{})+5 {
		t.Fatalf("got %d bytes, %v", len(whole), err)
	}
	broken := func(what string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.load("x", k); got != nil {
			t.Errorf("%s: got %q", what, got)
		}
	}
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		broken(fmt.Sprintf("byte %d", i), changed)
		broken(fmt.Sprintf("cut off at %d", i), whole[:i])
	}
	broken("longer", append(bytes.Clone(whole), 0))
	if err := c.store("x", k, []byte("image")); err != nil || string(c.load("x", k)) != "image" {
		t.Errorf("got %q, %v", c.load("x", k), err)
	}
}

func TestFoldersThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{file, filepath.Join(file, "below"), "/proc/none", "relative", ""} {
		c := cache{folder}
		if err := c.store("x", key("x"), []byte("image")); err == nil {
			t.Errorf("%q: expected an error", folder)
		}
		if got := c.load("x", key("x")); got != nil {
			t.Errorf("%q: got %q", folder, got)
		}
	}
}

// TestFullDisk has the system refuse a file's later bytes: nothing of it stays.
func TestFullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	c := cache{t.TempDir()}
	if err := c.store("x", key("x"), []byte("before")); err != nil {
		t.Fatal(err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	err := c.store("x", key("x"), make([]byte, 10000))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), "file too large") {
		t.Errorf("expected an error, got %v", err)
	}
	if files, _ := os.ReadDir(c.folder); len(files) != 1 || string(c.load("x", key("x"))) != "before" {
		t.Errorf("got %v, %q", files, c.load("x", key("x")))
	}
}

func TestSweep(t *testing.T) {
	c := cache{t.TempDir()}
	for name, age := range map[string]time.Duration{"new-1": 2 * stale, "new-2": stale / 2, "of-others": 2 * stale} {
		path, then := filepath.Join(c.folder, name), time.Now().Add(-age)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.store("x", key("x"), []byte("image")); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"new-1": false, "new-2": true, "of-others": true} {
		if _, err := os.Stat(filepath.Join(c.folder, name)); (err == nil) != stays {
			t.Errorf("%s: expected to find it: %v, got %v", name, stays, err)
		}
	}
}

// TestManyAtOnce has writers and readers of one file: a reader sees one of the images
// whole, or none.
func TestManyAtOnce(t *testing.T) {
	c, k := cache{t.TempDir()}, key("x")
	images := map[string]bool{}
	for i := range 4 {
		images[strings.Repeat(string(rune('a'+i)), 1<<16+i)] = true
	}
	var group sync.WaitGroup
	for image := range images {
		group.Go(func() {
			for range 50 {
				if err := c.store("x", k, []byte(image)); err != nil {
					t.Error(err)
				}
				if got := c.load("x", k); !images[string(got)] {
					t.Errorf("got %d bytes that nobody wrote", len(got))
				}
			}
		})
	}
	group.Wait()
	if files, _ := os.ReadDir(c.folder); len(files) != 1 {
		t.Errorf("got %v", files)
	}
}

func TestFolder(t *testing.T) {
	for _, c := range []struct{ own, xdg, home, want string }{
		{"/own", "/xdg", "/home", "/own"},
		{"", "/xdg", "/nonexistent", "/xdg/pygsampler"},
		{"", "", "/", "/.cache/pygsampler"},
		{"", "", "/nonexistent", ""},
		{"", "", "", ""},
		{"", "relative", "/home", ""},
	} {
		t.Setenv("PYGSAMPLER_CACHE", c.own)
		t.Setenv("XDG_CACHE_HOME", c.xdg)
		t.Setenv("HOME", c.home)
		if got, err := Folder(); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
}
