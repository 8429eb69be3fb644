package gpu

// #include "calls.h"
// #cgo noescape gpu_granularity
// #cgo nocallback gpu_granularity
// #cgo noescape gpu_piece_create
// #cgo nocallback gpu_piece_create
// #cgo nocallback gpu_piece_release
// #cgo noescape gpu_piece_export
// #cgo nocallback gpu_piece_export
// #cgo noescape gpu_piece_import
// #cgo nocallback gpu_piece_import
// #cgo noescape gpu_reserve
// #cgo nocallback gpu_reserve
// #cgo nocallback gpu_unreserve
// #cgo nocallback gpu_map
// #cgo nocallback gpu_unmap
// #cgo nocallback gpu_access
import "C"

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Piece is memory of a device, or of another process's piece, without an address: a Span maps it to
// addresses.
//
// The caller that creates it owns it and calls Close, which does not affect spans: the memory lives
// until the last of its pieces, spans and descriptors is gone, in whichever process. One goroutine
// at a time may use it. The zero value is no memory.
type Piece struct {
	Size    uint64
	handle  C.uint64_t
	context *Context
}

// Granularity returns the number of bytes that the sizes of pieces are multiples of.
func (c *Context) Granularity(shareable bool) (uint64, error) {
	if err := c.mapping(shareable); err != nil {
		return 0, err
	}
	var bytes C.uint64_t
	err := check("cuMemGetAllocationGranularity", C.gpu_granularity(c.handle, C.int(c.number), truth(shareable), &bytes))
	return uint64(bytes), err
}

// NewPiece allocates bytes of the device's memory; a shareable piece can be exported.
func (c *Context) NewPiece(bytes uint64, shareable bool) (p Piece, err error) {
	if err := c.mapping(shareable); err != nil {
		return p, err
	}
	p = Piece{Size: bytes, context: c}
	err = check("cuMemCreate", C.gpu_piece_create(c.handle, C.int(c.number), truth(shareable), C.uint64_t(bytes), &p.handle))
	if err != nil {
		return Piece{}, c.shortage(err, "device", bytes)
	}
	return p, nil
}

// ImportPiece opens a piece of another process, of bytes bytes, by a descriptor, which the caller
// closes.
func (c *Context) ImportPiece(descriptor int, bytes uint64) (p Piece, err error) {
	p = Piece{Size: bytes, context: c}
	err = check("cuMemImportFromShareableHandle", C.gpu_piece_import(c.handle, C.int(descriptor), &p.handle))
	if err != nil {
		return Piece{}, err
	}
	return p, nil
}

// Export returns a descriptor of the memory for another process to import; the caller closes it.
func (p *Piece) Export() (descriptor int, err error) {
	var d C.int
	err = check("cuMemExportToShareableHandle", C.gpu_piece_export(p.context.handle, p.handle, &d))
	return int(d), err
}

// Close releases the memory. After an error it may be called again; without memory it does nothing.
func (p *Piece) Close() error {
	if p.context == nil {
		return nil
	}
	if err := check("cuMemRelease", C.gpu_piece_release(p.context.handle, p.handle)); err != nil {
		return err
	}
	*p = Piece{}
	return nil
}

// mapping refuses what the device cannot do.
func (c *Context) mapping(shareable bool) error {
	if !c.properties.Maps {
		return refuse("cuMemCreate", notSupported, "device %d (%s) cannot map memory of other devices: "+
			"its driver has no virtual memory management", c.device, c.properties.Name)
	}
	if shareable && !c.properties.MapsElsewhere {
		return refuse("cuMemCreate", notSupported, "device %d (%s) cannot share its memory with other processes: "+
			"its driver has no file descriptors for it", c.device, c.properties.Name)
	}
	return nil
}

func truth(is bool) C.int {
	if is {
		return 1
	}
	return 0
}

// Span is a contiguous range of addresses that consecutive pieces back, of any devices: Size bytes
// at Address, for kernels and copies of one device.
//
// The caller that maps it owns it and calls Close. Any goroutine may use it. The zero value is no
// span.
type Span struct {
	Address Address
	Size    uint64
	context *Context // a hold of its own: whoever closes it may be the last
	mapped  []uint64 // the sizes of the pieces
}

// spans holds all spans of the process, by address: for an address in a span, the driver reports
// the device of the piece there instead of the span's.
var spans struct {
	sync.Mutex
	list atomic.Pointer[[]Span]
}

// spanAt is the span with an address.
func spanAt(a Address) (s Span, ok bool) {
	list := spans.list.Load()
	if list == nil {
		return s, false
	}
	i, exact := slices.BinarySearchFunc(*list, a, func(s Span, a Address) int {
		switch {
		case s.Address < a:
			return -1
		case s.Address > a:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || a >= (*list)[i].Address+Address((*list)[i].Size) {
		return s, false
	}
	return (*list)[i], true
}

// InSpan reports whether an address belongs to a span.
func InSpan(a Address) bool {
	_, ok := spanAt(a)
	return ok
}

// Unbroken returns the number of the bytes from an address on that lie in one piece of a span: all
// of them if the address is in no span. A copy takes at most that many at a time, so that it never
// crosses the memory of several devices.
func Unbroken(a Address, bytes uint64) uint64 {
	s, ok := spanAt(a)
	if !ok {
		return bytes
	}
	end := s.Address
	for _, size := range s.mapped {
		if end += Address(size); end > a {
			break
		}
	}
	return min(bytes, uint64(end-a))
}

// changeSpans replaces the list, which readers hold without a lock.
func changeSpans(change func([]Span) []Span) {
	spans.Lock()
	defer spans.Unlock()
	var list []Span
	if known := spans.list.Load(); known != nil {
		list = slices.Clone(*known)
	}
	list = change(list)
	spans.list.Store(&list)
}

// Map maps pieces to consecutive addresses that this context's device can use. It returns an error
// if the device cannot reach one of them.
func (c *Context) Map(pieces []Piece) (s Span, err error) {
	for _, p := range pieces {
		s.Size += p.Size
	}
	if s.Size == 0 {
		return Span{}, nil
	}
	if s.context, err = Retain(c.device); err != nil {
		return Span{}, err
	}
	var address C.uint64_t
	err = check("cuMemAddressReserve", C.gpu_reserve(c.handle, C.uint64_t(s.Size), &address))
	if err != nil {
		return Span{}, both(err, s.context.Close())
	}
	s.Address = Address(address)
	at := s.Address
	for _, p := range pieces {
		err = check("cuMemMap", C.gpu_map(c.handle, C.uint64_t(at), C.uint64_t(p.Size), p.handle))
		if err != nil {
			return Span{}, both(err, twice(s.unmap))
		}
		s.mapped = append(s.mapped, p.Size)
		at += Address(p.Size)
	}
	// Pieces are mapped one by one, so that an error names the one out of reach.
	at = s.Address
	for i, bytes := range s.mapped {
		err = check("cuMemSetAccess", C.gpu_access(c.handle, C.uint64_t(at), C.uint64_t(bytes), C.int(c.number)))
		if err != nil {
			err = explained(err, "device %d (%s) cannot reach piece %d of %d", c.device, c.properties.Name, i, len(s.mapped))
			return Span{}, both(err, twice(s.unmap))
		}
		at += Address(bytes)
	}
	changeSpans(func(list []Span) []Span {
		i, _ := slices.BinarySearchFunc(list, s.Address, func(s Span, a Address) int {
			if s.Address < a {
				return -1
			}
			return 1
		})
		return slices.Insert(list, i, s)
	})
	return s, nil
}

// twice tries once more what has failed.
func twice(f func() error) error {
	if f() == nil {
		return nil
	}
	return f()
}

// Device returns the device whose kernels use the span.
func (s Span) Device() int { return s.context.device }

// Close waits until the device has completed its work and releases addresses and memory. After an
// error it may be called again; without a span it does nothing.
func (s *Span) Close() error {
	if s.context == nil {
		return nil
	}
	if err := s.context.Synchronize(); err != nil {
		return err
	}
	// First, since the addresses may be another span's as soon as they are free.
	changeSpans(func(list []Span) []Span {
		return slices.DeleteFunc(list, func(known Span) bool { return known.Size > 0 && known.Address == s.Address })
	})
	return s.unmap()
}

// unmap undoes Map, the last piece first, so that what an error leaves is a span of
// the others.
func (s *Span) unmap() error {
	handle := s.context.handle
	end := uint64(s.Address)
	for _, bytes := range s.mapped {
		end += bytes
	}
	for n := len(s.mapped); n > 0; n = len(s.mapped) {
		end -= s.mapped[n-1]
		err := check("cuMemUnmap", C.gpu_unmap(handle, C.uint64_t(end), C.uint64_t(s.mapped[n-1])))
		if err != nil {
			return err
		}
		s.mapped = s.mapped[:n-1]
	}
	if s.Size > 0 {
		if err := check("cuMemAddressFree", C.gpu_unreserve(handle, C.uint64_t(s.Address), C.uint64_t(s.Size))); err != nil {
			return err
		}
		s.Size = 0
	}
	if err := s.context.Close(); err != nil {
		return err
	}
	*s = Span{}
	return nil
}
