package bridge

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "github.com/pygsampler/pygsampler/pygsampler"
)

func edgesPlan(source, target, more string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`{"source": %q, "target": %q, "format": "csv", "num_nodes": -1, "numbering": "never"%s}`,
		encode([]byte(source)), encode([]byte(target)), more)
}

// A job is polled to its end, and forgotten then.
func TestEdgesJob(t *testing.T) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "e.csv"), filepath.Join(folder, "g")
	if err := os.WriteFile(source, []byte("0,1\n2,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job, err := EdgesStart(edgesPlan(source, target, ""))
	if err != nil {
		t.Fatal(err)
	}
	var state struct {
		Finished bool
		Shape    struct{ Nodes, Edges int64 }
	}
	for !state.Finished {
		text, err := EdgesPoll(job, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &state); err != nil {
			t.Fatal(err)
		}
	}
	if state.Shape.Nodes != 3 || state.Shape.Edges != 2 {
		t.Errorf("got %+v", state)
	}
	if _, err := os.Stat(target); err != nil {
		t.Error(err)
	}
	if mem, err := EdgesTake(job); err != nil || mem != 0 {
		t.Errorf("memory beside a file: %d, %v", mem, err)
	}
	if _, err := EdgesPoll(job, 0); err == nil {
		t.Error("a job that was taken is polled")
	}
	for _, handle := range []int64{job, -1, 1 << 60} {
		if _, err := EdgesCancel(handle); err != nil {
			t.Error(err)
		}
	}
}

// A graph in memory is the caller's once it was taken, and only once.
func TestEdgesTake(t *testing.T) {
	source := filepath.Join(t.TempDir(), "e.csv")
	if err := os.WriteFile(source, []byte("0,1\n2,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, taken := range []bool{true, false} {
		before := core.Stats().Live
		job, err := EdgesStart(edgesPlan(source, "", ""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := EdgesPoll(job, 10_000); err != nil {
			t.Fatal(err)
		}
		if taken {
			address, err := EdgesTake(job)
			if err != nil || address == 0 {
				t.Fatalf("took %d: %v", address, err)
			}
			if _, err := EdgesTake(job); err == nil {
				t.Error("taken twice")
			}
			before++
		}
		if _, err := EdgesCancel(job); err != nil {
			t.Error(err)
		}
		if now := core.Stats().Live; now != before {
			t.Errorf("taken: %v, %d memories live, want %d", taken, now, before)
		}
	}
}

// A cancelled job, in memory or into a file, finished or not, leaves nothing.
func TestEdgesCancel(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "e.csv")
	if err := os.WriteFile(source, []byte(strings.Repeat("0,1\n2,1\n", 1<<18)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		for _, target := range []string{"", filepath.Join(folder, "g")} {
			job, err := EdgesStart(edgesPlan(source, target, ""))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := EdgesCancel(job); err != nil {
				t.Error(err)
			}
			if _, err := EdgesPoll(job, 0); err == nil {
				t.Error("a cancelled job is polled")
			}
			_ = os.Remove(filepath.Join(folder, "g")) // it may have been done before
			if left, _ := os.ReadDir(folder); len(left) != 1 {
				t.Errorf("left %v", left)
			}
		}
	}
}

func TestEdgesPlansThatAreWrong(t *testing.T) {
	for plan, want := range map[string]string{
		"":                                   "ValueError: plan: expected JSON, got",
		"7":                                  "ValueError: plan: expected JSON, got",
		`{"numbering": "some"}`:              "ValueError: numbering: expected gaps, never or always",
		`{"numbering": "never", "bits": 16}`: "ValueError: dtype: expected 32 or 64 bits, got 16",
		`{"numbering": "never", "num_nodes": -2}`:  "ValueError: plan: expected sizes and columns >= 0",
		`{"numbering": "never", "source": "/\\/"}`: "ValueError: plan: expected JSON",
	} {
		if _, err := EdgesStart(plan); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", plan, err, want)
		}
	}
	job, err := EdgesStart(edgesPlan("/nowhere/e.csv", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := EdgesPoll(job, 10_000); err == nil || !strings.HasPrefix(err.Error(), "OSError: 2: ") {
		t.Errorf("no file: %v", err)
	}
}
