package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// SegmentReduce reduces rows over the segments of a block, as core.SegmentReduce does. On a device
// it enqueues the reduction, as core.DeviceSegmentReduce does. Device -1 is the CPU, which has no
// stream and returns the error that a device counts in bad.
func SegmentReduce(device, list, stream, bad int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentReduce(list)
	}
	return 0, core.DeviceSegmentReduce(device, list, stream, bad)
}

// SegmentDots computes the dot product of the two rows at the ends of each edge; on a device it
// enqueues the computation.
func SegmentDots(device, list, dots, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentDots(list, dots)
	}
	return 0, core.DeviceSegmentDots(device, list, dots, stream)
}

// SegmentTranspose groups the edges of a block by their sources. On a device it enqueues the work,
// which uses bytes bytes at room, as core.DeviceSegmentTranspose does; the CPU needs no room.
func SegmentTranspose(device, list, starts, rows, places, room, bytes, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentTranspose(list, starts, rows, places)
	}
	return 0, core.DeviceSegmentTranspose(device, list, starts, rows, places, room, bytes, stream)
}

// SegmentAttend computes attention on a block, or its gradients, as core.SegmentAttend does; on a
// device it enqueues the computation.
func SegmentAttend(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentAttend(list)
	}
	return 0, core.DeviceSegmentAttend(device, list, stream)
}

// SegmentSoftmax computes the softmax of the edge scores of a block, or its gradient, as
// core.SegmentSoftmax does; on a device it enqueues the computation.
func SegmentSoftmax(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.SegmentSoftmax(list)
	}
	return 0, core.DeviceSegmentSoftmax(device, list, stream)
}

// DrawNumbers draws numbers below a bound, as core.Negatives does; on a device it enqueues the
// work. Device -1 is the CPU.
func DrawNumbers(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	if device == onCPU {
		return 0, core.Negatives(list)
	}
	return 0, core.DeviceNegatives(device, list, stream)
}
