package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// DeviceKernels is what the device is and which image of each kernel runs on it,
// as JSON.
func DeviceKernels(device int64) (report string, err error) {
	defer finish(&err)
	return core.DeviceKernels(device)
}
