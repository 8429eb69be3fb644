// Package gpu is the driver layer: the CUDA driver's functions as Go functions that return errors.
//
// Invariants:
//   - importing the package does nothing. The driver is opened by the first call
//     and initialised by the first that needs a device, on the caller's thread;
//   - a machine without a driver, or with a driver and no device, is no error:
//     it has 0 devices. Whatever else the driver says is an *Error;
//   - the package makes no context and changes no setting of the process: torch uses the same driver in the same process. It works in the primary contexts, and each
//     call leaves the thread's current context as it was;
//   - every function may be called from any goroutine at any time.
//
// It imports nothing else of this module.
package gpu

import (
	"errors"
	"sync"

	"github.com/mumax/3/cuda/cu"
)

// driver is the process's one driver. Its zero value is not initialized; up stays true once cuInit
// has succeeded. A failure is not cached: cuInit can succeed later, when a device has been freed or
// a permission granted.
var driver struct {
	sync.Mutex
	up bool
}

func start() error {
	driver.Lock()
	defer driver.Unlock()
	if driver.up {
		return nil
	}
	if err := faults(); err != nil {
		return err
	}
	err := try("cuInit", func() { cu.Init(0) })
	driver.up = err == nil
	return err
}

// absent distinguishes a machine without a device or driver from a broken one.
func absent(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Code == int(noDevice) || e.Code == int(stubLibrary))
}

// Available reports whether a device can be used. It is also false if the driver is broken;
// DeviceCount then returns the reason.
func Available() bool {
	n, err := DeviceCount()
	return err == nil && n > 0
}

// DriverVersion returns the newest CUDA version that the installed driver supports, 1000*major +
// 10*minor (12090 is 12.9), or 0 if there is no driver. It initializes nothing.
func DriverVersion() (version int, err error) {
	err = try("cuDriverGetVersion", func() { version = cu.Version() })
	if absent(err) {
		return 0, nil
	}
	return version, err
}
