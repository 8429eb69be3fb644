package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

//go:embed *.cu *.cuh
var sources embed.FS

// File is a source text under the name by which others include it.
type File struct{ Name, Text string }

// Source is the named file of kernels, "neighbor" for neighbor.cu, and the headers that
// it takes to compile it.
func Source(name string) (File, []File, error) {
	text, err := fs.ReadFile(sources, name+".cu")
	if err != nil {
		return File{}, nil, fmt.Errorf("pygsampler: kernel %s: expected one of %s", name, strings.Join(SourceNames(), ", "))
	}
	return File{name + ".cu", string(text)}, Headers(string(text)), nil
}

// SourceNames are the files of kernels that there are sources of, in order.
func SourceNames() []string {
	files, _ := fs.Glob(sources, "*.cu")
	for i := range files {
		files[i] = strings.TrimSuffix(files[i], ".cu")
	}
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
