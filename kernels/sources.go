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

// File is a source text under the name by which others include it: "common/grid.cuh".
type File struct{ Name, Text string }

// Source is the named file of kernels, "hgt" for hetero/hgt.cu, and the headers that it
// takes to compile it. Names are unique over all folders, since images have no folders.
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

// SourceNames are the files of kernels that there are sources of, in order.
func SourceNames() []string {
	files, _ := fs.Glob(sources, "*/*.cu")
	for i := range files {
		files[i] = strings.TrimSuffix(path.Base(files[i]), ".cu")
	}
	slices.Sort(files)
	return files
}

var include = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*include[ \t]+"([^"]+)"`)

// Headers are all of our headers that a text includes, or that those include, in the
// order of their names. An include of a file that is not ours is left to the compiler.
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
