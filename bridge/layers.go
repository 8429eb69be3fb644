package bridge

import core "github.com/pygsampler/pygsampler/pygsampler"

// SegmentReduce reduces rows over the segments of a block, as core.SegmentReduce says.
func SegmentReduce(list int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.SegmentReduce(list)
}

// SegmentDots writes the products of the rows that each edge joins.
func SegmentDots(list, dots int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.SegmentDots(list, dots)
}

// SegmentTranspose groups the edges of a block by their sources.
func SegmentTranspose(list, starts, rows, places int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.SegmentTranspose(list, starts, rows, places)
}

// DeviceSegmentReduce puts a reduction on a device into a stream, as core.DeviceSegmentReduce
// says.
func DeviceSegmentReduce(device, list, stream, bad int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceSegmentReduce(device, list, stream, bad)
}

// DeviceSegmentDots puts the products of the rows that each edge joins into a stream.
func DeviceSegmentDots(device, list, dots, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceSegmentDots(device, list, dots, stream)
}

// DeviceSegmentTranspose puts into a stream what groups the edges of a block by their sources, as
// core.DeviceSegmentTranspose says.
func DeviceSegmentTranspose(device, list, starts, rows, places, room, bytes, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceSegmentTranspose(device, list, starts, rows, places, room, bytes, stream)
}

// SegmentAttend makes attention on a block, or its gradients, as core.SegmentAttend says.
func SegmentAttend(list int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.SegmentAttend(list)
}

// DeviceSegmentAttend puts the same on a device into a stream.
func DeviceSegmentAttend(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceSegmentAttend(device, list, stream)
}

// SegmentSoftmax makes the softmax of scores of a block's edges, or its gradient, as
// core.SegmentSoftmax says.
func SegmentSoftmax(list int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.SegmentSoftmax(list)
}

// DeviceSegmentSoftmax puts the same on a device into a stream.
func DeviceSegmentSoftmax(device, list, stream int64) (zero int64, err error) {
	defer finish(&err)
	return 0, core.DeviceSegmentSoftmax(device, list, stream)
}
