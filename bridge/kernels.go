package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// DeviceKernels describes, as JSON, a device and the image of each kernel that runs on it.
func DeviceKernels(device int64) (report string, err error) {
	defer finish(&err)
	return core.DeviceKernels(device)
}
