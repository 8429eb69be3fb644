package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every function of the driver that mumax's cu has and calls.h declares again is in README.md, with the
// reason, and so is no other.
func TestFunctionsDeclaredAgainAreListed(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/mumax/3/cuda/cu").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of cu: %v", err)
	}
	theirs := map[string]bool{}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			for _, name := range found(t, file, `(?m)^(?:[^/\n]|/[^/\n])*?\bC\.(cu[A-Z]\w*)\(`) {
				theirs[name] = true
			}
		}
	}
	if !theirs["cuInit"] || theirs["cuMemHostRegister"] {
		t.Fatal("the functions of cu are not those that it calls; cuMemHostRegister is commented out there")
	}
	var again []string
	for _, header := range []string{"calls.h", "await.h"} {
		for _, name := range found(t, header, `\b(cu[A-Z]\w*)\(`) {
			if theirs[name] {
				again = append(again, name)
			}
		}
	}
	slices.Sort(again)
	again = slices.Compact(again)
	listed := found(t, "README.md", `(?m)^\| (cu[A-Z]\w*) \| \S`)
	if !slices.Equal(again, listed) {
		t.Errorf("declared again: %v\nin README.md:    %v", again, listed)
	}
}

// found is what the first group of a pattern matches in a file, in order.
func found(t *testing.T, file, pattern string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		names = append(names, match[1])
	}
	return names
}
