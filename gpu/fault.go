package gpu

// void shim_fault(long long first, int code, int sticky);
// long long shim_calls(void);
// const char *shim_faulted(void);
import "C"

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// Fault names the calls of the driver that fail without being executed, for tests: the First-th
// from now on, with result Code. All calls of the process count, including mumax's. First 0 only
// counts the calls.
type Fault struct {
	First  int64
	Code   int
	Sticky bool // also every later one, as after a kernel that crashed
}

// Inject starts to count calls, from 0, and makes the calls of f fail. It replaces an earlier
// Fault.
func Inject(f Fault) {
	sticky := C.int(0)
	if f.Sticky {
		sticky = 1
	}
	C.shim_fault(C.longlong(max(f.First, 0)), C.int(f.Code), sticky)
}

// EndFaults lets all calls reach the driver and stops counting.
func EndFaults() { C.shim_fault(-1, 0, 0) }

// Calls returns the number of calls since Inject, or 0 if Inject was never called.
func Calls() int64 { return int64(C.shim_calls()) }

// Faulted returns the symbol of the driver's function that failed last because of the Fault, as in
// cuMemGetInfo_v2; it is empty if none has failed since Inject.
func Faulted() string { return C.GoString(C.shim_faulted()) }

// faultVariable lets calls of a whole process fail, counted from cuInit on: "7"
// the 7th, with CUDA_ERROR_UNKNOWN; "7:2" with result 2; "7:700:sticky" and all
// later ones; "0" counts.
const faultVariable = "PYGSAMPLER_FAULT"

// faults follows the variable, once. A value that says nothing is an error for
// good: the test that set it would prove nothing.
var faults = sync.OnceValue(func() error {
	value, set := os.LookupEnv(faultVariable)
	if !set || value == "" {
		return nil
	}
	fault, err := parseFault(value)
	if err == nil {
		Inject(fault)
	}
	return err
})

func parseFault(value string) (f Fault, err error) {
	parts := strings.Split(value, ":")
	f.First, err = strconv.ParseInt(parts[0], 10, 64)
	f.Code = 999
	if err == nil && len(parts) > 1 {
		f.Code, err = strconv.Atoi(parts[1])
	}
	f.Sticky = len(parts) == 3 && parts[2] == "sticky"
	if err != nil || len(parts) > 3 || len(parts) == 3 && !f.Sticky || f.First < 0 || f.Code < 1 || f.Code > 0xffff {
		return Fault{}, refuse(faultVariable, invalidValue, "expected CALL, CALL:CODE or CALL:CODE:sticky, got %q", value)
	}
	return f, nil
}
