package gpu

import (
	"fmt"
	"sync"

	"github.com/mumax/3/cuda/cu"
)

// Attributes of a device that mumax does not name.
const (
	computeCapabilityMajor cu.DeviceAttribute = 75
	computeCapabilityMinor cu.DeviceAttribute = 76
)

// names keeps what devices are called, by index. mumax loses 257 bytes at every
// question for a name, and a device never changes its own.
var names sync.Map

// DeviceCount returns the number of devices that this process may use (CUDA_VISIBLE_DEVICES
// counts); it is 0, without an error, if there is no driver.
func DeviceCount() (count int, err error) {
	if err = start(); err == nil {
		err = try("cuDeviceGetCount", func() { count = cu.DeviceGetCount() })
	}
	if absent(err) {
		return 0, nil
	}
	return count, err
}

// DeviceName returns the name that device i reports, as in "NVIDIA H200".
func DeviceName(i int) (string, error) {
	dev, err := device(i)
	if err != nil {
		return "", err
	}
	if name, ok := names.Load(i); ok {
		return name.(string), nil
	}
	var name string
	if err := try("cuDeviceGetName", func() { name = dev.Name() }); err != nil {
		return "", err
	}
	names.Store(i, name)
	return name, nil
}

// ComputeCapability returns the version of device i's instruction set; 9, 0 is sm_90.
func ComputeCapability(i int) (major, minor int, err error) {
	dev, err := device(i)
	if err != nil {
		return 0, 0, err
	}
	err = try("cuDeviceGetAttribute", func() {
		major = dev.Attribute(computeCapabilityMajor)
		minor = dev.Attribute(computeCapabilityMinor)
	})
	if err != nil {
		return 0, 0, err
	}
	return major, minor, nil
}

// device is the driver's handle of device i. The index is checked here, since
// mumax would cut it to 32 bits and find device 0 under index 1<<32.
func device(i int) (dev cu.Device, err error) {
	if err = start(); err != nil {
		return 0, err
	}
	count, err := DeviceCount()
	if err != nil {
		return 0, err
	}
	if i < 0 || i >= count {
		e := newError("cuDeviceGet", cu.ERROR_INVALID_DEVICE)
		e.Text = fmt.Sprintf("expected 0 <= device < %d, got %d", count, i)
		return 0, e
	}
	err = try("cuDeviceGet", func() { dev = cu.DeviceGet(i) })
	return dev, err
}
