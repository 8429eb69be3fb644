package gpu

// #include "calls.h"
// #cgo noescape gpu_occupancy
// #cgo nocallback gpu_occupancy
// #cgo nocallback gpu_function_set
// #cgo noescape gpu_launch
// #cgo nocallback gpu_launch
import "C"

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/mumax/3/cuda/cu"
)

// Function is a kernel of a Module, valid as long as the module. It is a value that may be copied.
// Any goroutine may use it.
type Function struct {
	name    string
	context *Context
	handle  C.handle
}

// FunctionAttribute is an attribute of a kernel, CUfunction_attribute in cuda.h.
type FunctionAttribute int

// Attributes of kernels; sizes are in bytes.
const (
	MaxThreads       = FunctionAttribute(cu.FUNC_A_MAX_THREADS_PER_BLOCK)
	SharedBytes      = FunctionAttribute(cu.FUNC_A_SHARED_SIZE_BYTES) // static, for a block
	LocalBytes       = FunctionAttribute(cu.FUNC_A_LOCAL_SIZE_BYTES)  // for a thread; registers spilled, arrays
	Registers        = FunctionAttribute(cu.FUNC_A_NUM_REGS)          // for a thread
	PTXVersion       = FunctionAttribute(cu.FUNC_A_PTX_VERSION)       // 75 is compute_75
	BinaryVersion    = FunctionAttribute(cu.FUNC_A_BINARY_VERSION)    // 90 is sm_90
	MaxDynamicShared = FunctionAttribute(C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
)

// Name returns the name of the kernel.
func (f Function) Name() string { return f.name }

// Attribute returns an attribute of the kernel from the driver.
func (f Function) Attribute(a FunctionAttribute) (value int, err error) {
	err = f.context.Do(func() error {
		return try("cuFuncGetAttribute", func() {
			value = cu.FuncGetAttribute(cu.FunctionAttribute(a), cu.Function(f.handle))
		})
	})
	return value, err
}

// AllowShared lets launches of the kernel use up to bytes of dynamic shared memory, at most
// Properties.SharedPerBlockOptIn less SharedBytes. The limit is 48 KiB otherwise.
func (f Function) AllowShared(bytes int) error {
	const attribute = C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
	err := check("cuFuncSetAttribute", C.gpu_function_set(f.context.handle, f.handle, attribute, C.int(bytes)))
	return explained(err, "kernel %s: %d bytes of dynamic shared memory", f.name, bytes)
}

// Occupancy returns the number of blocks of threads threads, with shared bytes of dynamic shared
// memory each, that one multiprocessor runs at a time.
func (f Function) Occupancy(threads, shared int) (int, error) {
	var blocks C.int
	err := check("cuOccupancyMaxActiveBlocksPerMultiprocessor",
		C.gpu_occupancy(f.context.handle, f.handle, C.int(threads), C.uint64_t(shared), &blocks))
	return int(blocks), explained(err, "kernel %s: blocks of %d threads", f.name, threads)
}

// Resident returns the number of such blocks that the device runs at a time: the maximum of a
// cooperative launch.
func (f Function) Resident(threads, shared int) (int, error) {
	blocks, err := f.Occupancy(threads, shared)
	return blocks * f.context.properties.Multiprocessors, err
}

// Shape is the geometry of a launch: blocks per grid, threads per block, bytes of dynamic shared
// memory per block. In y and z, 0 means 1. Cooperative blocks all run at once, so that they may
// wait for one another.
type Shape struct {
	Grid, Block [3]uint32
	Shared      uint32
	Cooperative bool
}

func (s Shape) String() string {
	kind := "launch"
	if s.Cooperative {
		kind = "cooperative launch"
	}
	return fmt.Sprintf("%s of %v blocks of %v threads with %d bytes", kind, s.Grid, s.Block, s.Shared)
}

// Kernel is a Function that takes one struct by value, Args, which has the same layout in Go and in
// the kernel: integers, floats, Addresses and arrays and structs of them, no Go pointer. A Function
// that KernelOf returns is never launched with another struct.
type Kernel[Args any] struct{ Function }

// KernelOf finds a kernel by its name; it returns an error if the size of its parameter is not that
// of Args.
func KernelOf[Args any](m *Module, name string) (Kernel[Args], error) {
	args := reflect.TypeFor[Args]()
	if field := pointerIn(args, args.Name()); field != "" {
		return Kernel[Args]{}, fmt.Errorf("gpu: kernel %s: %s holds a Go pointer", name, field)
	}
	f, err := m.function(name, args.Size())
	return Kernel[Args]{f}, err
}

// Launch enqueues one run of the kernel on s, a stream of its module's context. args has been
// copied when it returns. It allocates nothing. An error may also be one of earlier work.
func (k Kernel[Args]) Launch(s Stream, shape Shape, args *Args) error {
	return k.launch(s, &shape, unsafe.Pointer(args))
}

func (f Function) launch(s Stream, shape *Shape, args unsafe.Pointer) error {
	call, cooperative := "cuLaunchKernel", C.int(0)
	if shape.Cooperative {
		call, cooperative = "cuLaunchCooperativeKernel", 1
	}
	result := C.gpu_launch(f.context.handle, f.handle, s.handle, (*C.uint32_t)(&shape.Grid[0]),
		(*C.uint32_t)(&shape.Block[0]), C.uint32_t(shape.Shared), cooperative, args)
	if result == 0 {
		return nil
	}
	return explained(check(call, result), "kernel %s, %s", f.name, shape.String())
}

// pointerIn is the path of a member of t that a kernel cannot use, if any.
func pointerIn(t reflect.Type, path string) string {
	switch kind := t.Kind(); {
	case kind == reflect.Struct:
		for i := range t.NumField() {
			if found := pointerIn(t.Field(i).Type, path+"."+t.Field(i).Name); found != "" {
				return found
			}
		}
		return ""
	case kind == reflect.Array:
		return pointerIn(t.Elem(), path+"[]")
	case reflect.Bool <= kind && kind <= reflect.Complex128:
		return ""
	}
	return path
}
