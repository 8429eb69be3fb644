package gpu

// #include "calls.h"
// #cgo noescape gpu_function
// #cgo nocallback gpu_function
// #cgo noescape gpu_parameter
// #cgo nocallback gpu_parameter
import "C"

import (
	"bytes"
	"strings"
	"unsafe"
)

// logSize is the room for what the driver's compiler has to say, each for errors
// and for notes.
const logSize = 8 << 10

// Module is code on a device. The caller that loads it owns it and calls Close when no function of
// it is running or will be launched. Any goroutine may use it.
type Module struct {
	Log     string // notes of the driver's compiler; empty for code that was ready to run
	context *Context
	handle  C.handle
}

// Load loads an image onto the device: a cubin, a fatbin, or PTX, which the driver compiles (in
// seconds; it caches the result on disk).
func (c *Context) Load(image []byte) (*Module, error) {
	if len(image) == 0 {
		return nil, refuse("cuModuleLoadDataEx", invalidValue, "image: expected a cubin, a fatbin or PTX, got 0 bytes")
	}
	if elf := bytes.HasPrefix(image, []byte("\x7fELF")); !elf && image[len(image)-1] != 0 {
		image = append(bytes.Clone(image), 0) // PTX is a C string
	}
	m := &Module{context: c}
	errors, notes := make([]byte, logSize), make([]byte, logSize)
	err := check("cuModuleLoadDataEx", C.gpu_load(c.handle, unsafe.Pointer(&image[0]),
		(*C.char)(unsafe.Pointer(&errors[0])), (*C.char)(unsafe.Pointer(&notes[0])), logSize, &m.handle))
	if err != nil {
		if said := text(errors); said != "" {
			err = explained(err, "%s", said)
		}
		return nil, c.shortage(err, "device", uint64(len(image)))
	}
	m.Log = text(notes)
	return m, nil
}

// Context returns the context that the module was loaded into.
func (m *Module) Context() *Context { return m.context }

// Close unloads the code. After an error it may be called again.
func (m *Module) Close() error {
	if m.handle == 0 {
		return nil
	}
	if err := check("cuModuleUnload", C.gpu_unload(m.context.handle, m.handle)); err != nil {
		return err
	}
	m.handle = 0
	return nil
}

// function finds a kernel that takes a single parameter of size bytes. A driver before 12.4 does
// not report parameters; the size is not checked then.
func (m *Module) function(name string, size uintptr) (Function, error) {
	f := Function{name: name, context: m.context}
	zero := append([]byte(name), 0)
	err := check("cuModuleGetFunction",
		C.gpu_function(m.context.handle, m.handle, (*C.char)(unsafe.Pointer(&zero[0])), &f.handle))
	if err != nil {
		return Function{}, explained(err, "kernel %s", name)
	}
	var takes, more C.uint64_t
	err = check("cuFuncGetParamInfo", C.gpu_parameter(m.context.handle, f.handle, 0, &takes))
	switch code(err) {
	case 0:
	case symbolNotFound:
		return f, nil
	case invalidValue:
		return Function{}, refuse("cuFuncGetParamInfo", invalidValue,
			"kernel %s: expected one parameter of %d bytes, got none", name, size)
	default:
		return Function{}, err
	}
	err = check("cuFuncGetParamInfo", C.gpu_parameter(m.context.handle, f.handle, 1, &more))
	switch {
	case code(err) != 0 && code(err) != invalidValue:
		return Function{}, err
	case err == nil:
		return Function{}, refuse("cuFuncGetParamInfo", invalidValue,
			"kernel %s: expected one parameter of %d bytes, got several", name, size)
	case uintptr(takes) != size:
		return Function{}, refuse("cuFuncGetParamInfo", invalidValue,
			"kernel %s: expected one parameter of %d bytes, got one of %d", name, size, takes)
	}
	return f, nil
}

func text(log []byte) string {
	before, _, _ := bytes.Cut(log, []byte{0})
	return strings.TrimSpace(string(before))
}
