package pygsampler

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Code of papers' experiments is reached from research.go, which a build may leave out, and from itself.
func TestResearchIsImportedByOneFile(t *testing.T) {
	files, importers := 0, []string{}
	for _, root := range []string{".", "../bridge", "../gpu", "../kernels"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			if strings.HasPrefix(path, "internal/research/") || strings.HasPrefix(path, "internal/testing/") {
				return nil
			}
			files++
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range parsed.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				if strings.Contains(name+"/", "/pygsampler/internal/research/") {
					importers = append(importers, path+": "+name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 || len(importers) == 0 {
		t.Fatalf("%d files import research %d times: the files are elsewhere", files, len(importers))
	}
	for _, one := range importers {
		if !strings.HasPrefix(one, "research.go: ") {
			t.Errorf("%s belongs to papers' experiments, which research.go alone imports", one)
		}
	}
}
