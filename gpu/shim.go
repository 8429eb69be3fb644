package gpu

// This file ties the package to the shim, libcuda.a, which the build makes of
// shim/*.c and puts on the linker's path in front of any true driver library.

// #cgo CFLAGS: -I${SRCDIR}/shim
// #cgo LDFLAGS: -lcuda -ldl -lpthread
// #include <cuda.h>
//
// // Every line of functions.h is declared once more, after cuda.h's own declaration:
// // where the two differ in any type, this does not compile.
// #define DRIVER(name, parameters, arguments) CUresult name parameters;
// #include "functions.h"
//
// const char *shim_failure(void);
import "C"

import "github.com/mumax/3/cuda/cu"

// loadFailure says why no driver could be opened; it is empty when one was.
func loadFailure() string {
	return C.GoString(C.shim_failure())
}

// explain returns the driver's own name and description of a result. Both are empty if the driver
// is absent or does not know the code.
func explain(result cu.Result) (name, text string) {
	var s *C.char
	if C.cuGetErrorName(C.CUresult(result), &s) == C.CUDA_SUCCESS && s != nil {
		name = C.GoString(s)
	}
	s = nil
	if C.cuGetErrorString(C.CUresult(result), &s) == C.CUDA_SUCCESS && s != nil {
		text = C.GoString(s)
	}
	return name, text
}
