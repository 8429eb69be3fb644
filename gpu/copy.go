package gpu

// #include "calls.h"
// #cgo noescape gpu_copy
// #cgo nocallback gpu_copy
// #cgo noescape gpu_upload
// #cgo nocallback gpu_upload
// #cgo noescape gpu_download
// #cgo nocallback gpu_download
// #cgo nocallback gpu_fill8
// #cgo nocallback gpu_fill32
import "C"

import "unsafe"

// Copy enqueues a copy of bytes bytes. The two ranges, on any device or in mapped host memory, do
// not overlap and stay valid until it is done.
func (s Stream) Copy(to, from Address, bytes uint64) error {
	if bytes == 0 {
		return nil
	}
	return moved("cuMemcpyAsync", C.gpu_copy(s.context.handle, s.handle,
		C.uint64_t(to), C.uint64_t(from), C.uint64_t(bytes)), bytes)
}

// Upload enqueues a copy from host memory. From pinned memory it returns at once, and the memory
// must stay unchanged until the copy is done; from other memory the driver reads everything before
// the call returns, so that Go memory is allowed.
func (s Stream) Upload(to Address, from unsafe.Pointer, bytes uint64) error {
	if bytes == 0 {
		return nil
	}
	return moved("cuMemcpyHtoDAsync", C.gpu_upload(s.context.handle, s.handle,
		C.uint64_t(to), from, C.uint64_t(bytes)), bytes)
}

// Download enqueues a copy to host memory. To pinned memory it returns at once; to other memory it
// waits for the stream, so that the bytes are complete when it returns.
func (s Stream) Download(to unsafe.Pointer, from Address, bytes uint64) error {
	if bytes == 0 {
		return nil
	}
	return moved("cuMemcpyDtoHAsync", C.gpu_download(s.context.handle, s.handle,
		to, C.uint64_t(from), C.uint64_t(bytes)), bytes)
}

// Fill8 enqueues the filling of count bytes with value.
func (s Stream) Fill8(to Address, value uint8, count uint64) error {
	if count == 0 {
		return nil
	}
	return moved("cuMemsetD8Async", C.gpu_fill8(s.context.handle, s.handle,
		C.uint64_t(to), C.uint8_t(value), C.uint64_t(count)), count)
}

// Fill32 enqueues the filling of count 32-bit words with value; to is a multiple of 4.
func (s Stream) Fill32(to Address, value uint32, count uint64) error {
	if count == 0 {
		return nil
	}
	return moved("cuMemsetD32Async", C.gpu_fill32(s.context.handle, s.handle,
		C.uint64_t(to), C.uint32_t(value), C.uint64_t(count)), 4*count)
}

func moved(call string, result C.int, bytes uint64) error {
	if result == 0 {
		return nil
	}
	return explained(check(call, result), "%d bytes", bytes)
}
