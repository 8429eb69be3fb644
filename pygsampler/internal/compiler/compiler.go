// Package compiler provides the code of kernels: images that the build embedded, or sources that
// NVRTC compiles at run time and caches on disk.
package compiler

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/gpu/nvrtc"
	"github.com/pygsampler/pygsampler/kernels"
)

// Program is CUDA C++, hand-written or generated. It may include the headers of the package kernels
// by their names.
type Program struct {
	Name    string // in messages and in the cache: "neighbor"
	Source  string
	Options []string // of NVRTC, in addition to those of all kernels: "-DHOPS=3"
}

// Image is code for a device. The zero value is no image.
type Image struct {
	Code         []byte
	Architecture string // "sm_90", or "compute_75" for PTX
	Compiler     string // "NVRTC 12.9"; empty for code of the build
	Cached       bool   // it was compiled by an earlier call, perhaps of another process
	Log          string // what NVRTC said
}

// PTX reports whether the driver has to compile the image.
func (i Image) PTX() bool { return strings.HasPrefix(i.Architecture, "compute_") }

// String returns "sm_90 machine code", and the compiler if it was compiled here.
func (i Image) String() string {
	text := kernels.Choice{Architecture: i.Architecture}.String()
	if i.Compiler != "" {
		text += ", from source by " + i.Compiler
	}
	return text
}

// toolchain compiles programs: an NVRTC, or a replacement in tests.
type toolchain interface {
	Version() string
	Identity() string
	Architectures() []int
	Compile(nvrtc.Program, string) (image []byte, log string, err error)
}

// Compiler compiles programs and caches the results. The zero value looks for NVRTC at the first
// compilation. Any number of goroutines may use it.
type Compiler struct {
	mu         sync.Mutex
	candidates []string
	found      toolchain
	kept       map[[32]byte][]byte // images for which there was no room on disk
	notes      []string            // that nobody has taken yet
	noted      map[string]bool
	slow       []string // what took long to compile, that nobody has taken yet
}

// Default is the compiler of the process.
var Default Compiler

// names are the library names that the dynamic linker searches, after all files of Search. The
// older one is first, since its code runs on drivers of both.
var names = []string{"libnvrtc.so.12", "libnvrtc.so.13"}

// options are those of kernels/compile.py.
var options = []string{"-std=c++17"}

// Search sets the candidates for NVRTC, the best first. Libraries that the dynamic linker finds
// come after them; PYGSAMPLER_NVRTC replaces all of them.
func (c *Compiler) Search(candidates []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.candidates, c.found = candidates, nil
}

// nvrtc returns the library that compiles all programs; the caller holds c.mu. A failed search is
// repeated, since the library may have been installed since.
func (c *Compiler) nvrtc() (toolchain, error) {
	if c.found != nil {
		return c.found, nil
	}
	candidates := append(slices.Clone(c.candidates), names...)
	own := os.Getenv("PYGSAMPLER_NVRTC")
	if own != "" {
		candidates = []string{own}
	}
	driver, _ := gpu.DriverVersion() // 0 without one, and then there is no device either
	l, err := nvrtc.Find(candidates, driver)
	if err != nil {
		if missing := new(nvrtc.NoLibraryError); own != "" && errors.As(err, &missing) && len(missing.Reasons) == 0 {
			missing.Reasons = []string{"PYGSAMPLER_NVRTC is " + own}
		}
		return nil, fmt.Errorf(`%w; pip install nvidia-cuda-nvrtc-cu12 (nvidia-cuda-nvrtc-cu12) brings it, a torch for CUDA too`, err)
	}
	c.found = l
	return l, nil
}

// Compile returns the code of a program for a device of the compute capability major.minor, from
// the cache if possible.
func (c *Compiler) Compile(p Program, major, minor int) (Image, error) {
	image, err := c.compile(p, major, minor)
	if err != nil {
		return Image{}, fmt.Errorf("pygsampler: kernel %s: %w", p.Name, err)
	}
	return image, nil
}

func (c *Compiler) compile(p Program, major, minor int) (Image, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tools, err := c.nvrtc()
	if err != nil {
		return Image{}, err
	}
	architecture, err := choose(tools.Architectures(), major, minor)
	if err != nil {
		return Image{}, fmt.Errorf("NVRTC %s: %w", tools.Version(), err)
	}
	program := nvrtc.Program{Name: p.Name + ".cu", Source: p.Source, Options: slices.Concat(options, p.Options)}
	words := []string{tools.Identity(), architecture, program.Name, program.Source, fmt.Sprint(len(program.Options))}
	words = append(words, program.Options...)
	for _, h := range kernels.Headers(p.Source) {
		program.Headers = append(program.Headers, nvrtc.Header(h))
		words = append(words, h.Name, h.Text)
	}
	image := Image{Architecture: architecture, Compiler: "NVRTC " + tools.Version()}
	k, name := key(words...), p.Name+"-"+architecture
	at, unknown := Folder()
	images := cache{at}
	if image.Code = c.kept[k]; image.Code == nil && unknown == nil {
		image.Code = images.load(name, k)
	}
	if image.Code != nil {
		image.Cached = true
		return image, nil
	}
	begin := time.Now()
	if image.Code, image.Log, err = tools.Compile(program, architecture); err != nil {
		return Image{}, err
	}
	if took := time.Since(begin); took > slow {
		c.slow = append(c.slow, fmt.Sprintf("the kernel %s was compiled in %.1f s", program.Name, took.Seconds()))
	}
	err = unknown
	if err == nil {
		err = images.store(name, k, image.Code)
	}
	if err != nil {
		c.keep(k, image.Code, at, err)
	}
	return image, nil
}

// keep holds an image in memory that the disk could not, and notes why.
func (c *Compiler) keep(k [32]byte, code []byte, folder string, err error) {
	if c.kept == nil {
		c.kept = map[[32]byte][]byte{}
	}
	c.kept[k] = code
	// Without the name of the file, so that it is one note for all.
	var path *os.PathError
	if errors.As(err, &path) {
		err = fmt.Errorf("%s: %w", cmp.Or(folder, path.Path), path.Err)
	}
	c.note(fmt.Sprintf("compiled kernels are not cached, so that each process compiles them again: %v; "+
		"PYGSAMPLER_CACHE names another folder", err))
}

// note keeps a text for Notes, once.
func (c *Compiler) note(text string) {
	if c.noted[text] {
		return
	}
	if c.noted == nil {
		c.noted = map[string]bool{}
	}
	c.noted[text] = true
	c.notes = append(c.notes, text)
}

// Warnings returns remarks for users that are no errors, each to one caller only.
func (c *Compiler) Warnings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	notes := c.notes
	c.notes = nil
	return notes
}

// slow is from when on users should hear that they have waited for a compiler.
var slow = time.Second

// Slow returns the compilations that took long, each to one caller only.
func (c *Compiler) Slow() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.slow
	c.slow = nil
	return found
}

// Report describes the compiler.
type Report struct {
	NVRTC         string `json:"nvrtc"`   // its file; empty for none
	Version       string `json:"version"` // of CUDA, as "12.9"
	Architectures []int  `json:"architectures"`
	Cache         string `json:"cache"` // the folder; empty where there can be none
	Error         string `json:"error"` // why there is no NVRTC
}

// Report describes the compiler; it looks for NVRTC if that has not been done yet.
func (c *Compiler) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Report{Architectures: []int{}}
	r.Cache, _ = Folder()
	tools, err := c.nvrtc()
	if err != nil {
		r.Error = err.Error()
		return r
	}
	r.Version, r.Architectures = tools.Version(), tools.Architectures()
	if l, ok := tools.(*nvrtc.Library); ok {
		r.NVRTC = l.Path
	}
	return r
}

// choose is the best that a compiler for these architectures makes for a device: the
// newest machine code that kernels.Runs on it; else PTX for the newest that is not newer.
func choose(architectures []int, major, minor int) (string, error) {
	device := 10*major + minor
	code, ptx := -1, -1
	for _, a := range architectures {
		if kernels.Runs(a, device) {
			code = max(code, a)
		}
		if a <= device {
			ptx = max(ptx, a)
		}
	}
	switch {
	case code >= 0:
		return fmt.Sprintf("sm_%d", code), nil
	case ptx >= 0:
		return fmt.Sprintf("compute_%d", ptx), nil
	}
	return "", fmt.Errorf("expected a device for one of %v, got one of compute capability %d.%d", architectures, major, minor)
}
