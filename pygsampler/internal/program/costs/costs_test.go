package costs

import (
	"os"
	"path/filepath"
	"testing"
)

func forgotten() { known.read, known.here = false, nil }

func TestCostsAreKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	t.Setenv("PYGSAMPLER_CACHE", folder)
	t.Cleanup(forgotten)
	forgotten()
	if c, here := Measured(); here || c != Elsewhere {
		t.Errorf("got %v, %t before any were measured", c, here)
	}
	mine := Elsewhere
	mine.Store = 3.5
	path, err := mine.Keep()
	if err != nil || path != filepath.Join(folder, "costs.json") {
		t.Fatalf("got %q, %v", path, err)
	}
	for range 2 {
		if c, here := Measured(); !here || c != mine {
			t.Errorf("got %v, %t, want %v", c, here, mine)
		}
		forgotten() // as another process
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "new-*")); len(left) > 0 {
		t.Errorf("got %v beside the file", left)
	}
	for _, text := range []string{"", "{}", `{"map": -1}`, "no"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		forgotten()
		if c, here := Measured(); here || c != Elsewhere {
			t.Errorf("%q: got %v, %t", text, c, here)
		}
	}
	if _, err := (Costs{}).Keep(); err == nil {
		t.Error("kept costs of 0")
	}
}

func TestOperations(t *testing.T) {
	for _, k := range []struct {
		of   Costs
		want int
	}{{Elsewhere, 4}, {Costs{Map: 1, Store: 0.1}, 1}, {Costs{Map: 1, Store: 1e9}, 16}, {Costs{Map: 2, Store: 5.1}, 3}} {
		if got := k.of.Operations(); got != k.want {
			t.Errorf("%v: got %d, want %d", k.of, got, k.want)
		}
	}
}
