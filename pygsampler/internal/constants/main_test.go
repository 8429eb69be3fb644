package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The committed files agree with the Go files.
func TestGenerated(t *testing.T) {
	const root = "../../.."
	files, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is not what its Go files say (%v): go generate ./pygsampler/internal/constants", name, err)
		}
	}
}

func TestConstantCase(t *testing.T) {
	for name, want := range map[string]string{
		"threads": "THREADS", "WordIDBits": "WORD_ID_BITS", "BlockEdgeIDs": "BLOCK_EDGE_IDS", "philoxM0": "PHILOX_M0",
		"statusOK": "STATUS_OK", "MaxNodes32": "MAX_NODES32", "IDsOf": "IDS_OF", "mostHops": "MOST_HOPS",
	} {
		if got := constantCase(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// A file whose values need another package cannot be read.
func TestReadRefusesImports(t *testing.T) {
	root := t.TempDir()
	text := "package p\n\nimport \"math\"\n\nconst Most = math.MaxInt32\n"
	if err := os.WriteFile(filepath.Join(root, "p.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if groups, err := read(root, "p.go"); err == nil {
		t.Errorf("got %v", groups)
	}
}
