package kernels

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSources compares with the folders: each file of kernels is there, under a name that no
// other has, and each header is needed by one of them.
func TestSources(t *testing.T) {
	wanted, _ := filepath.Glob("*/*.cu")
	if len(wanted) == 0 || len(wanted) != len(SourceNames()) {
		t.Fatalf("expected %v, got %v", wanted, SourceNames())
	}
	if names := SourceNames(); len(slices.Compact(names)) != len(wanted) {
		t.Fatalf("expected names that are unique over all folders, got %v", wanted)
	}
	used := map[string]bool{}
	for _, name := range SourceNames() {
		source, headers, err := Source(name)
		if err != nil || path.Base(source.Name) != name+".cu" || !slices.Contains(wanted, source.Name) {
			t.Fatalf("%s: got %s, %v", name, source.Name, err)
		}
		for _, f := range append(headers, source) {
			used[f.Name] = true
			if strings.HasPrefix(f.Name, "research/") && !strings.HasPrefix(source.Name, "research/") {
				t.Errorf("%s includes %s, which belongs to research modes alone", source.Name, f.Name)
			}
			if text, err := os.ReadFile(f.Name); err != nil || string(text) != f.Text {
				t.Errorf("%s: the embedded %s is another one (%v)", name, f.Name, err)
			}
		}
		if !slices.IsSortedFunc(headers, func(a, b File) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("%s: headers are not in order", name)
		}
	}
	// What programs are generated upon: their texts include it (internal/program/source).
	for _, f := range Headers("#include \"program/result.cuh\"\n#include \"program/dense.cuh\"\n#include \"program/submatrix.cuh\"\n#include \"program/poisson.cuh\"") {
		used[f.Name] = true
	}
	headers, _ := filepath.Glob("*/*.cuh")
	for _, name := range headers {
		if !used[name] {
			t.Errorf("%s: no file of kernels includes it", name)
		}
	}
	if _, _, err := Source("none"); err == nil || !strings.Contains(err.Error(), "kernel none: expected one of attention, attention_half, bsp, cache, context, dequantize, edge_factors") {
		t.Error(err)
	}
}

func TestHeaders(t *testing.T) {
	names := func(text string) (all []string) {
		for _, f := range Headers(text) {
			all = append(all, f.Name)
		}
		return all
	}
	for text, want := range map[string][]string{
		"":                                            nil,
		"#include <common/philox.cuh>":                nil,
		"#include \"philox.cuh\"":                     nil,
		"#include \"of_others.h\"":                    nil,
		"// #include \"common/philox.cuh\"":           nil,
		" # include \"common/constants.cuh\"":         {"common/constants.cuh"},
		"int x;\n#include \"common/philox.cuh\" // a": {"common/constants.cuh", "common/philox.cuh"},
		"#include \"common/philox.cuh\"\n#include \"common/philox.cuh\"\n#include \"common/constants.cuh\"": {"common/constants.cuh", "common/philox.cuh"},
	} {
		if got := names(text); !slices.Equal(got, want) {
			t.Errorf("%q: expected %v, got %v", text, want, got)
		}
	}
}
