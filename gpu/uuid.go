package gpu

// #include "calls.h"
// #cgo noescape gpu_uuid
// #cgo nocallback gpu_uuid
import "C"

import (
	"fmt"
	"unsafe"
)

// DeviceUUID returns the name of device i that is the same in every process, as in "GPU-8f3c...";
// indices differ if CUDA_VISIBLE_DEVICES does.
func DeviceUUID(i int) (string, error) {
	dev, err := device(i)
	if err != nil {
		return "", err
	}
	var b [16]byte
	err = check("cuDeviceGetUuid", C.gpu_uuid(C.int(dev), (*C.uchar)(unsafe.Pointer(&b[0]))))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
}
