package bridge

import (
	core "github.com/pygsampler/pygsampler/pygsampler"
)

var peerArrays table[*core.SharedArray]

// SharedUnit returns the number of bytes that the sizes of pieces of a device's memory are
// multiples of; if shared is not 0, the pieces can be exported to other processes.
func SharedUnit(device, shared int64) (bytes int64, err error) {
	defer finish(&err)
	return core.PeerUnit(device, shared != 0)
}

// SharedReach returns 1 if kernels of a device can read the memory of another, else 0.
func SharedReach(device, peer int64) (can int64, err error) {
	defer finish(&err)
	return number(core.PeerReaches(device, peer))
}

// DeviceUUID returns the name of a device that is the same in all processes.
func DeviceUUID(device int64) (uuid string, err error) {
	defer finish(&err)
	return core.PeerUUID(device)
}

// GraphAccess estimates the read frequencies of ranges of a graph's edges, or of rows of its nodes,
// as core.PeerHeat does.
func GraphAccess(graph, degrees, row, perUnit, count, out int64) (zero int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	return 0, core.PeerHeat(g, degrees, row, perUnit, count, out)
}

// SharedNew starts to build an array that is spread over several devices, from the view of one of
// them. pieces is the address of a size and a device index for each piece; the index is -1 for
// pieces that each device has a copy of.
func SharedNew(device, place, pieces, count, shared int64) (array int64, err error) {
	defer finish(&err)
	layout, err := core.PeerLayoutAt(pieces, count)
	if err != nil {
		return 0, err
	}
	a, err := core.NewPeerArray(device, place, layout, shared != 0)
	if err != nil {
		return 0, err
	}
	return peerArrays.add(a), nil
}

// SharedForward shares the pieces of an unfinished array with another unfinished array of the same
// process.
func SharedForward(array, to int64) (zero int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	b, also := peerArrays.get(to)
	if !ok || !also {
		return 0, closed("array")
	}
	return 0, a.ShareWith(b)
}

// SharedExport returns a file descriptor of a piece, which the caller closes.
func SharedExport(array, piece int64) (descriptor int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	if !ok {
		return 0, closed("array")
	}
	return a.Export(piece)
}

// SharedImport imports a piece of another process from a file descriptor, which the caller closes.
func SharedImport(array, piece, descriptor int64) (zero int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	if !ok {
		return 0, closed("array")
	}
	return 0, a.Import(piece, descriptor)
}

// SharedMap returns the memory of an array whose pieces are complete, as core.SharedArray.Map does.
func SharedMap(array, address, bytes int64) (mem int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	if !ok {
		return 0, closed("array")
	}
	return a.Map(address, bytes)
}

// SharedClose releases the pieces; mapped memories remain valid.
func SharedClose(array int64) (zero int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.take(array)
	if !ok {
		return 0, nil
	}
	return 0, a.Close()
}
