package pygsampler

import "github.com/pygsampler/pygsampler/gpu"

// DeviceCount is the number of CUDA devices, 0 without a driver.
func DeviceCount() (int64, error) {
	n, err := gpu.DeviceCount()
	return int64(n), err
}

// DeviceName is the name that the driver gives device i.
func DeviceName(i int64) (string, error) {
	n, err := gpu.DeviceCount()
	if err != nil {
		return "", err
	}
	if i < 0 || i >= int64(n) {
		return "", Errorf(KindIndex, "device: expected an index in [0, %d), got %d", n, i)
	}
	return gpu.DeviceName(int(i))
}

// DriverVersion is the CUDA version of the driver (12090 is 12.9), 0 without one.
func DriverVersion() (int64, error) {
	version, err := gpu.DriverVersion()
	return int64(version), err
}
