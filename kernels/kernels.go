// Package kernels holds the CUDA kernels: their sources, and the images that NVRTC
// made of them when the extension was built, one for each architecture.
//
// `make kernels` compiles them for Go commands. An image that is missing is an
// error at the first use of a GPU, not of the build: the CPU engine needs none.
package kernels

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

//go:embed all:compiled
var embedded embed.FS

// compiled holds an image per file of kernels and architecture, as compile.py
// names them: neighbor.sm_90.bz2, neighbor.compute_75.bz2.
var compiled, _ = fs.Sub(embedded, "compiled")

// Choice is the image that fits a device best. The zero value is none.
type Choice struct {
	Name         string // of the file of kernels: "neighbor"
	Architecture string // "sm_90", or "compute_75" for PTX
	file         string
}

// PTX reports whether the driver has to compile the image.
func (c Choice) PTX() bool { return strings.HasPrefix(c.Architecture, "compute_") }

// String is "sm_90 machine code" or "PTX for compute_75, compiled by the driver".
func (c Choice) String() string {
	if c.PTX() {
		return "PTX for " + c.Architecture + ", compiled by the driver"
	}
	return c.Architecture + " machine code"
}

// Image is what a device loads.
func (c Choice) Image() ([]byte, error) {
	packed, err := fs.ReadFile(compiled, c.file)
	if err != nil {
		return nil, fmt.Errorf("pygsampler: kernel %s: %w", c.Name, err)
	}
	image, err := unpack(c.file, packed)
	if err != nil {
		return nil, fmt.Errorf("pygsampler: kernel %s for %s: %w", c.Name, c.Architecture, err)
	}
	return image, nil
}

// Names are the files of kernels that this build has images of, in order.
func Names() []string {
	seen := map[string]bool{}
	var names []string
	for _, c := range choices() {
		if !seen[c.Name] {
			seen[c.Name] = true
			names = append(names, c.Name)
		}
	}
	sort.Strings(names)
	return names
}

// Choose finds the image of the named file of kernels for a device of the given
// compute capability. Machine code runs on its own minor version and on later ones
// of the same major version; PTX on every device that is not older.
func Choose(name string, major, minor int) (Choice, error) {
	var best Choice
	most := -1
	for _, c := range choices() {
		kind, version, _ := strings.Cut(c.Architecture, "_")
		number, err := strconv.Atoi(version)
		if c.Name != name || err != nil || number > 10*major+minor {
			continue
		}
		rank := number
		switch {
		case kind == "sm" && number/10 == major:
			rank += 1 << 16 // before any PTX
		case kind != "compute":
			continue
		}
		if rank > most {
			best, most = c, rank
		}
	}
	if most < 0 {
		return best, missing(name, major, minor)
	}
	return best, nil
}

// Image is the image that Choose chooses.
func Image(name string, major, minor int) ([]byte, error) {
	c, err := Choose(name, major, minor)
	if err != nil {
		return nil, err
	}
	return c.Image()
}

// Describe says which image Choose chooses, or why none.
func Describe(name string, major, minor int) string {
	c, err := Choose(name, major, minor)
	if err != nil {
		return err.Error()
	}
	return c.String()
}

// missing says why there is no image, and what there is.
func missing(name string, major, minor int) error {
	var all []string
	for _, c := range choices() {
		if c.Name == name {
			all = append(all, c.Architecture)
		}
	}
	if all == nil {
		return fmt.Errorf("pygsampler: kernel %s: expected an image in this build, got none; make kernels compiles them", name)
	}
	return fmt.Errorf("pygsampler: kernel %s: expected a device for one of %s, got one of compute capability %d.%d",
		name, strings.Join(all, ", "), major, minor)
}

// choices lists all images, in the order of their names.
func choices() []Choice {
	files, _ := fs.ReadDir(compiled, ".")
	var all []Choice
	for _, f := range files {
		if parts := strings.Split(f.Name(), "."); len(parts) == 3 && parts[0] != "" {
			all = append(all, Choice{Name: parts[0], Architecture: parts[1], file: f.Name()})
		}
	}
	return all
}

// unpack undoes the compression that the file's name tells.
func unpack(file string, packed []byte) ([]byte, error) {
	switch path.Ext(file) {
	case ".bz2":
		return io.ReadAll(bzip2.NewReader(bytes.NewReader(packed)))
	case ".gz":
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	return nil, fmt.Errorf("expected a .bz2 or .gz file, got %s", file)
}
