package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// SegmentReduce reduces rows over the segments of a block, as core.SegmentReduce says; on a device it puts the
// reduction into a stream, as core.DeviceSegmentReduce says. Device -1 is the CPU, which has no stream and raises for
// what bad counts on a device.
func SegmentReduce(device, list, stream, bad int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentReduce(list)
	}
	return 0, core.DeviceSegmentReduce(device, list, stream, bad)
}

// SegmentDots writes the products of the rows that each edge joins, or puts that into a stream of a device.
func SegmentDots(device, list, dots, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentDots(list, dots)
	}
	return 0, core.DeviceSegmentDots(device, list, dots, stream)
}

// SegmentTranspose groups the edges of a block by their sources, or puts that into a stream of a device, which works
// in so many bytes at room, as core.DeviceSegmentTranspose says; the CPU needs no room.
func SegmentTranspose(device, list, starts, rows, places, room, bytes, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentTranspose(list, starts, rows, places)
	}
	return 0, core.DeviceSegmentTranspose(device, list, starts, rows, places, room, bytes, stream)
}

// SegmentAttend makes attention on a block, or its gradients, as core.SegmentAttend says, or puts that into a stream
// of a device.
func SegmentAttend(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentAttend(list)
	}
	return 0, core.DeviceSegmentAttend(device, list, stream)
}

// SegmentSoftmax makes the softmax of scores of a block's edges, or its gradient, as core.SegmentSoftmax says, or puts
// that into a stream of a device.
func SegmentSoftmax(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentSoftmax(list)
	}
	return 0, core.DeviceSegmentSoftmax(device, list, stream)
}

// DrawNumbers draws numbers below a bound, as core.Negatives says, or puts that into a stream of a device; device -1 is
// the CPU.
func DrawNumbers(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.Negatives(list)
	}
	return 0, core.DeviceNegatives(device, list, stream)
}
