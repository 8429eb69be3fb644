// Package nvrtc compiles CUDA C++ at run time with the NVRTC of the user's environment. Find opens
// the library at its first call; nothing of it is linked.
package nvrtc

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "nvrtc.h"
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// Library is an open NVRTC; it is never closed. Any goroutine may use it.
type Library struct {
	Path          string // of its file
	Major, Minor  int
	identity      string
	architectures []int
	functions     *C.struct_rtc
	compiling     sync.Mutex // NVRTC before 12 is not safe without, and later ones compile one at a time
}

// Program is a text to compile.
type Program struct {
	Name    string // in messages: neighbor.cu
	Source  string
	Headers []Header
	Options []string // but the architecture
}

// Header is a text that a program includes by name.
type Header struct{ Name, Text string }

// NoLibraryError is the error of Find if no library fits, with a reason for each.
type NoLibraryError struct{ Reasons []string }

func (e *NoLibraryError) Error() string {
	if len(e.Reasons) == 0 {
		return "expected NVRTC to compile it, found none"
	}
	return "expected NVRTC to compile it, found none that will do (" + strings.Join(e.Reasons, "; ") + ")"
}

// Error is a program that NVRTC failed to compile.
type Error struct {
	Program, Architecture string
	Call                  string // of NVRTC
	Code                  int    // its nvrtcResult, never 0
	Name                  string // the code's: NVRTC_ERROR_COMPILATION
	Log                   string // what the compiler said
}

func (e *Error) Error() string {
	text := fmt.Sprintf("nvrtc: %s for %s: %s: %s (%d)", e.Program, e.Architecture, e.Call, e.Name, e.Code)
	if e.Log != "" {
		text += "\n" + e.Log
	}
	return text
}

// Find opens the first candidate that fits. Candidates are absolute paths and names that the
// dynamic linker searches. newest is the CUDA version of the driver, as 12090 for 12.9, which loads
// no machine code of a later major version; 0 accepts any version.
func Find(candidates []string, newest int) (*Library, error) {
	var missing NoLibraryError
	for _, candidate := range candidates {
		named := !strings.Contains(candidate, "/")
		if !named {
			if _, err := os.Stat(candidate); err != nil {
				continue
			}
		}
		l, err := open(candidate)
		switch {
		case err != nil && named: // the dynamic linker has none of the name
		case err != nil:
			missing.Reasons = append(missing.Reasons, err.Error())
		case newest > 0 && l.Major > newest/1000:
			missing.Reasons = append(missing.Reasons, fmt.Sprintf("%s is of CUDA %d, the driver of CUDA %d.%d",
				l.Path, l.Major, newest/1000, newest%1000/10))
		default:
			return l, nil
		}
	}
	return nil, &missing
}

func open(path string) (*Library, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	functions := (*C.struct_rtc)(C.calloc(1, C.sizeof_struct_rtc))
	why := make([]byte, 1024)
	if C.rtc_open(name, functions, (*C.char)(unsafe.Pointer(&why[0])), C.size_t(len(why))) == 0 {
		C.free(unsafe.Pointer(functions))
		return nil, fmt.Errorf("%s", text(why))
	}
	l := &Library{Path: C.GoString(&functions.path[0]), functions: functions}
	if real, err := filepath.EvalSymlinks(l.Path); err == nil {
		l.Path = real
	}
	var major, minor C.int
	if code := C.rtc_version(functions, &major, &minor); code != 0 {
		return nil, fmt.Errorf("%s: nvrtcVersion: %s", l.Path, C.GoString(C.rtc_error(functions, code)))
	}
	l.Major, l.Minor = int(major), int(minor)
	list := make([]C.int, 256)
	count := int(C.rtc_architectures(functions, &list[0], C.int(len(list))))
	if count < 1 || count > len(list) {
		return nil, fmt.Errorf("%s: nvrtcGetSupportedArchs: expected 1 to %d architectures, got %d", l.Path, len(list), count)
	}
	for _, a := range list[:count] {
		l.architectures = append(l.architectures, int(a))
	}
	slices.Sort(l.architectures)
	// A patch release has the version of the one before.
	l.identity = fmt.Sprintf("NVRTC %s %s", l.Version(), l.Path)
	if file, err := os.Stat(l.Path); err == nil {
		l.identity += fmt.Sprintf(" %d %d", file.Size(), file.ModTime().UnixNano())
	}
	return l, nil
}

// Version returns the version, as in "12.9".
func (l *Library) Version() string { return fmt.Sprintf("%d.%d", l.Major, l.Minor) }

// Identity returns a text that differs for each file and each state of a file.
func (l *Library) Identity() string { return l.identity }

// Architectures returns the architectures that the library compiles for, in ascending order: 75
// stands for sm_75 and compute_75.
func (l *Library) Architectures() []int { return slices.Clone(l.architectures) }

// Compile compiles a program to machine code ("sm_90") or PTX ("compute_90"). log holds the
// compiler's remarks on a program that it did compile.
func (l *Library) Compile(p Program, architecture string) (image []byte, log string, err error) {
	options := append([]string{"--gpu-architecture=" + architecture}, p.Options...)
	var names, texts []string
	for _, h := range p.Headers {
		names, texts = append(names, h.Name), append(texts, h.Text)
	}
	var given words
	defer given.free()
	ptx := C.int(0)
	if strings.HasPrefix(architecture, "compute_") {
		ptx = 1
	}
	var out C.struct_rtc_output
	source, name := given.one(p.Source), given.one(p.Name)
	headers, headerNames, flags := given.list(texts), given.list(names), given.list(options)
	l.compiling.Lock()
	C.rtc_compile(l.functions, source, name, C.int(len(names)), headers, headerNames, C.int(len(options)), flags, ptx, &out)
	l.compiling.Unlock()
	defer C.free(unsafe.Pointer(out.image))
	defer C.free(unsafe.Pointer(out.log))
	if out.log != nil {
		log = strings.TrimSpace(C.GoString(out.log))
	}
	if out.result == 0 && out.image_bytes > 0 {
		return C.GoBytes(unsafe.Pointer(out.image), C.int(out.image_bytes)), log, nil
	}
	e := &Error{Program: p.Name, Architecture: architecture, Call: C.GoString(out.call), Code: int(out.result), Log: log}
	e.Name = C.GoString(C.rtc_error(l.functions, out.result))
	if out.result == 0 {
		e.Code, e.Name = -1, "an image of 0 bytes"
	}
	return nil, log, e
}

// words are C strings and lists of them.
type words []unsafe.Pointer

func (w *words) one(text string) *C.char {
	s := C.CString(text)
	*w = append(*w, unsafe.Pointer(s))
	return s
}

func (w *words) list(texts []string) **C.char {
	// A list of none is not NULL, which some versions look into.
	room := C.calloc(C.size_t(len(texts)+1), C.size_t(unsafe.Sizeof(uintptr(0))))
	*w = append(*w, room)
	slots := unsafe.Slice((**C.char)(room), len(texts))
	for i := range texts {
		slots[i] = w.one(texts[i])
	}
	return (**C.char)(room)
}

func (w *words) free() {
	for _, p := range *w {
		C.free(p)
	}
}

func text(why []byte) string {
	before, _, _ := strings.Cut(string(why), "\x00")
	return before
}
