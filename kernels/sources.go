package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed common graph neighbor hetero walk program layers features static research
var sources embed.FS

// File is a source text with the name that others include it by: "common/grid.cuh".
type File struct{ Name, Text string }

// Source returns a kernel file by its name, "hgt" for hetero/hgt.cu, and the headers that it needs.
// Names are unique over all folders, since images have no folders.
func Source(name string) (File, []File, error) {
	files, _ := fs.Glob(sources, "*/"+name+".cu")
	if len(files) != 1 {
		return File{}, nil, fmt.Errorf("pygsampler: kernel %s: expected one of %s", name, strings.Join(SourceNames(), ", "))
	}
	text, err := fs.ReadFile(sources, files[0])
	if err != nil {
		return File{}, nil, fmt.Errorf("pygsampler: kernel %s: %w", name, err)
	}
	return File{files[0], string(text)}, Headers(string(text)), nil
}

// SourceNames returns the names of the kernel files with sources, in order.
func SourceNames() []string {
	files, _ := fs.Glob(sources, "*/*.cu")
	for i := range files {
		files[i] = strings.TrimSuffix(path.Base(files[i]), ".cu")
	}
	slices.Sort(files)
	return files
}

var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"([^"]+)"`)

// Headers returns the headers of this package that a text includes, directly or through others,
// sorted by name. An include of any other file is left to the compiler.
func Headers(text string) []File {
	seen := map[string]bool{}
	var found []File
	for todo := []string{text}; len(todo) > 0; todo = todo[1:] {
		for _, m := range include.FindAllStringSubmatch(todo[0], -1) {
			name := m[1]
			content, err := fs.ReadFile(sources, name)
			if err != nil || seen[name] {
				continue
			}
			seen[name] = true
			found = append(found, File{name, string(content)})
			todo = append(todo, string(content))
		}
	}
	slices.SortFunc(found, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return found
}
