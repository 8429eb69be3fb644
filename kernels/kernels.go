// Package kernels holds the CUDA kernels: their sources, and the images that NVRTC compiled from
// them when the extension was built, one for each architecture.
//
// `make kernels` compiles them for Go commands. A missing image is an error at the first use of a
// GPU, not of the build: the CPU engine needs none.
package kernels

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

//go:embed all:compiled
var embedded embed.FS

// compiled holds a file per file of kernels and generation, as compile.py names
// them: neighbor.sm_80-86-89.xz has three images, neighbor.compute_75.xz has one.
var compiled, _ = fs.Sub(embedded, "compiled")

// Choice is the image that fits a device best. The zero value is no image.
type Choice struct {
	Name         string // of the file of kernels: "neighbor"
	Architecture string // "sm_90", or "compute_75" for PTX
	file         string
	index        int // of the image in the file
}

// PTX reports whether the driver has to compile the image.
func (c Choice) PTX() bool { return strings.HasPrefix(c.Architecture, "compute_") }

// String returns "sm_90 machine code" or "PTX for compute_75, compiled by the driver".
func (c Choice) String() string {
	if c.PTX() {
		return "PTX for " + c.Architecture + ", compiled by the driver"
	}
	return c.Architecture + " machine code"
}

// Image returns the bytes that a device loads.
func (c Choice) Image() ([]byte, error) {
	packed, err := fs.ReadFile(compiled, c.file)
	if err != nil {
		return nil, fmt.Errorf("pygsampler: kernel %s: %w", c.Name, err)
	}
	image, err := unpack(c.file, packed, c.index)
	if err != nil {
		return nil, fmt.Errorf("pygsampler: kernel %s for %s: %w", c.Name, c.Architecture, err)
	}
	return image, nil
}

// Names returns the names of the kernel files with images in this build, in order.
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

// tegra holds Orin, and Thor by both of its names: CUDA 13 renamed 10.1 to 11.0.
var tegra = map[int]bool{87: true, 101: true, 110: true}

// Runs reports whether a device can run machine code for another device, both as 10 * major +
// minor: code for its own version, and for earlier minor ones of the same major version. "Binary
// compatibility is supported only for the desktop. It is not supported for Tegra. Also, the binary
// compatibility between desktop and Tegra is not supported." (CUDA C++ Programming Guide 12.9,
// 6.1.2)
func Runs(code, device int) bool {
	if tegra[code] || tegra[device] {
		return code == device
	}
	return code/10 == device/10 && code <= device
}

// Choose finds the image of a kernel file for a device of the compute capability major.minor: the
// newest machine code that Runs, else the newest PTX that is not newer than the device.
func Choose(name string, major, minor int) (Choice, error) {
	var best Choice
	most := -1
	for _, c := range choices() {
		kind, version, _ := strings.Cut(c.Architecture, "_")
		number, err := strconv.Atoi(version)
		if c.Name != name || err != nil {
			continue
		}
		rank := number
		switch {
		case kind == "sm" && Runs(number, 10*major+minor):
			rank += 1 << 16 // before any PTX
		case kind != "compute" || number > 10*major+minor:
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

// Image returns the image that Choose chooses.
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
		parts := strings.Split(f.Name(), ".")
		if len(parts) != 3 || parts[0] == "" {
			continue
		}
		kind, versions, _ := strings.Cut(parts[1], "_")
		for i, version := range strings.Split(versions, "-") {
			all = append(all, Choice{Name: parts[0], Architecture: kind + "_" + version, file: f.Name(), index: i})
		}
	}
	return all
}

// largest is far beyond the images of any file: more is a file that is damaged.
const largest = 256 << 20

// unpack decompresses the file by its extension and returns the image with the index. The length of
// each image precedes it. Both formats have checksums, which the readers verify at the end of the
// content.
func unpack(file string, packed []byte, index int) ([]byte, error) {
	var r io.Reader
	var err error
	switch path.Ext(file) {
	case ".xz":
		// By default the decoder makes room for 8 MiB; the file says how little it needs.
		r, err = xz.ReaderConfig{DictCap: lzma.MinDictCap, SingleStream: true}.NewReader(bytes.NewReader(packed))
	case ".gz":
		r, err = gzip.NewReader(bytes.NewReader(packed))
	default:
		err = errors.New("expected a file of compile.py")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	content, err := io.ReadAll(io.LimitReader(r, largest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	case len(content) > largest:
		return nil, fmt.Errorf("%s: expected at most %d bytes of images, got more", file, largest)
	}
	for i, rest := 0, content; len(rest) >= 8; i++ {
		size := binary.LittleEndian.Uint64(rest)
		if rest = rest[8:]; size > uint64(len(rest)) {
			break
		}
		if i == index {
			return bytes.Clone(rest[:size]), nil // not the others with it
		}
		rest = rest[size:]
	}
	return nil, fmt.Errorf("%s: expected %d images or more, got %d bytes that end before", file, index+1, len(content))
}
