package bridge

import (
	core "github.com/pygsampler/pygsampler/pygsampler"
)

var peerArrays table[*core.SharedArray]

// SharedUnit is what sizes of pieces of a device's memory are multiples of; shared ones go to other processes.
func SharedUnit(device, shared int64) (bytes int64, err error) {
	defer finish(&err)
	return core.PeerUnit(device, shared != 0)
}

// SharedReach is 1 where kernels of a device can read memory of another, else 0.
func SharedReach(device, peer int64) (can int64, err error) {
	defer finish(&err)
	return number(core.PeerReaches(device, peer))
}

// DeviceUUID is what a device is called in all processes.
func DeviceUUID(device int64) (uuid string, err error) {
	defer finish(&err)
	return core.PeerUUID(device)
}

// GraphAccess says how often runs of a graph's edges, or of rows of its vertices, are read, as core.PeerHeat says.
func GraphAccess(graph, degrees, row, perUnit, count, out int64) (zero int64, err error) {
	defer finish(&err)
	g, err := relationOf(graph)
	if err != nil {
		return 0, err
	}
	return 0, core.PeerHeat(g, degrees, row, perUnit, count, out)
}

// SharedNew begins an array that lies on several devices, at one of them: pieces is the address of a size and a place
// for each piece, the place -1 for those of which each device has a copy.
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

// SharedForward gives the pieces of one array in the making to another, of the same process.
func SharedForward(array, to int64) (zero int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	b, also := peerArrays.get(to)
	if !ok || !also {
		return 0, closed("array")
	}
	return 0, a.ShareWith(b)
}

// SharedExport is a descriptor of a piece, the caller's to close.
func SharedExport(array, piece int64) (descriptor int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	if !ok {
		return 0, closed("array")
	}
	return a.Export(piece)
}

// SharedImport takes a piece of another process's by a descriptor, which stays the caller's.
func SharedImport(array, piece, descriptor int64) (zero int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	if !ok {
		return 0, closed("array")
	}
	return 0, a.Import(piece, descriptor)
}

// SharedMap is the memory of an array whose pieces are there, as core.SharedArray.Map says.
func SharedMap(array, address, bytes int64) (mem int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.get(array)
	if !ok {
		return 0, closed("array")
	}
	return a.Map(address, bytes)
}

// SharedClose lets go of the pieces; memories that were mapped stay.
func SharedClose(array int64) (zero int64, err error) {
	defer finish(&err)
	a, ok := peerArrays.take(array)
	if !ok {
		return 0, nil
	}
	return 0, a.Close()
}
