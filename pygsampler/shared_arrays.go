package pygsampler

import (
	"errors"
	"sync"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/access"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// An array may consist of pieces on several devices, each of which maps all pieces to consecutive
// addresses: kernels read it like any other array, and pieces of other devices are read over the
// link. A layout says which device has which piece; pieces without an owner are copied to each.
// Places number the devices of a layout, some of which may be the same one.

// everyones is the place of pieces of which each device has its own copy.
const everyones = -1

// mostPieces bounds a layout.
const mostPieces = 1 << 16

// ArrayPiece is a piece of a layout: its size, a multiple of the device's granularity, and the
// index of its owner.
type ArrayPiece struct{ Bytes, Place int64 }

// SharedArray is the view of a shared array from one device. It holds its own pieces and the copies
// from the start, pieces of other devices once they are forwarded or imported, and a memory by Map when
// all are complete. Close releases what it holds; a mapped memory remains. Any goroutine may use
// it; calls are serialized.
type SharedArray struct {
	engine *cuda.Engine
	device int64
	place  int64
	layout []ArrayPiece

	mu     sync.Mutex
	pieces []gpu.Piece
	mine   []bool // whether the piece is this one's to close
	closed bool
}

// PeerLayoutAt reads pieces from an address, 2 integers each.
func PeerLayoutAt(address, count int64) ([]ArrayPiece, error) {
	if address == 0 || count < 1 || count > mostPieces {
		return nil, Errorf(KindValue, "pieces: expected 1 to %d at an address, got %d at %#x", mostPieces, count, address)
	}
	layout := make([]ArrayPiece, count)
	for i, w := range memory.View[[2]int64](address, count) {
		if w[0] < 1 || w[1] < everyones {
			return nil, Errorf(KindValue, "pieces[%d]: expected a size and a place, got %d and %d", i, w[0], w[1])
		}
		layout[i] = ArrayPiece{w[0], w[1]}
	}
	return layout, nil
}

// PeerUnit returns the number of bytes that sizes of a device's pieces are multiples of.
func PeerUnit(device int64, shared bool) (int64, error) {
	e, err := openDevice(device)
	if err != nil {
		return 0, err
	}
	bytes, err := e.Context().Granularity(shared)
	return int64(bytes), onDevice(err)
}

// PeerReaches reports whether kernels of a device can read memory of another.
func PeerReaches(device, peer int64) (bool, error) {
	if device == peer {
		_, err := gpu.DeviceProperties(int(device))
		return true, err
	}
	can, err := gpu.CanAccessPeer(int(device), int(peer))
	return can, onDevice(err)
}

// PeerUUID returns the name of a device that is the same in all processes.
func PeerUUID(device int64) (string, error) {
	name, err := gpu.DeviceUUID(int(device))
	return name, onDevice(err)
}

// NewPeerArray allocates the own pieces of a device; shared pieces can be exported.
func NewPeerArray(device, place int64, layout []ArrayPiece, shared bool) (*SharedArray, error) {
	e, err := openDevice(device)
	if err != nil {
		return nil, err
	}
	a := &SharedArray{
		engine: e, device: device, place: place, layout: layout,
		pieces: make([]gpu.Piece, len(layout)), mine: make([]bool, len(layout)),
	}
	for i, p := range layout {
		if p.Place != place && p.Place != everyones {
			continue
		}
		if a.pieces[i], err = e.Context().NewPiece(uint64(p.Bytes), shared && p.Place == place); err != nil {
			return nil, onDevice(errors.Join(err, a.Close()))
		}
		a.mine[i] = true
	}
	return a, nil
}

// ShareWith shares this array's own pieces with an array of the same process, which must be mapped
// before this one is closed.
func (a *SharedArray) ShareWith(to *SharedArray) error {
	if a == to {
		return nil
	}
	own, err := a.own()
	if err != nil {
		return err
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for i, p := range own {
		if p.Size == 0 {
			continue
		}
		if err := to.lacks(i, int64(p.Size)); err != nil {
			return err
		}
		to.pieces[i] = p
	}
	return nil
}

// own returns the pieces that belong to this place only; others have no size.
func (a *SharedArray) own() ([]gpu.Piece, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, errClosedArray
	}
	own := make([]gpu.Piece, len(a.pieces))
	for i, p := range a.layout {
		if p.Place == a.place {
			own[i] = a.pieces[i]
		}
	}
	return own, nil
}

var errClosedArray = Errorf(KindClosed, "array: expected one in the making, got one that was closed")

// lacks returns an error unless piece i is missing and has bytes bytes.
func (a *SharedArray) lacks(i int, bytes int64) error {
	switch {
	case a.closed:
		return errClosedArray
	case i < 0 || i >= len(a.layout):
		return Errorf(KindValue, "piece: expected a number in [0, %d), got %d", len(a.layout), i)
	case a.pieces[i].Size > 0:
		return Errorf(KindValue, "piece %d: expected one that is lacking, got one that is there", i)
	case a.layout[i].Bytes != bytes:
		return Errorf(KindValue, "piece %d: expected %d bytes, got %d", i, a.layout[i].Bytes, bytes)
	}
	return nil
}

// Export returns a file descriptor of one of its own pieces, which the caller closes.
func (a *SharedArray) Export(piece int64) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, errClosedArray
	}
	if piece < 0 || piece >= int64(len(a.layout)) || a.layout[piece].Place != a.place {
		return 0, Errorf(KindValue, "piece: expected one of place %d, got %d", a.place, piece)
	}
	descriptor, err := a.pieces[piece].Export()
	return int64(descriptor), onDevice(err)
}

// Import imports a piece of another process by its descriptor, which the caller closes.
func (a *SharedArray) Import(piece, descriptor int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	bytes := int64(0)
	if piece >= 0 && piece < int64(len(a.layout)) {
		bytes = a.layout[piece].Bytes
	}
	if err := a.lacks(int(piece), bytes); err != nil {
		return err
	}
	p, err := a.engine.Context().ImportPiece(int(descriptor), uint64(bytes))
	if err != nil {
		return onDevice(err)
	}
	a.pieces[piece], a.mine[piece] = p, true
	return nil
}

// Map returns the memory in which the device has all pieces at consecutive addresses. It copies its
// own pieces from the host's array of bytes bytes, which fills the layout except for the end of its
// last piece, and they are complete when it returns; the pieces of others are complete when they
// have mapped theirs.
func (a *SharedArray) Map(address, bytes int64) (int64, error) {
	if err := checkBytes(address, bytes); err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, errClosedArray
	}
	total, owned := int64(0), uint64(0)
	for i, p := range a.layout {
		if a.pieces[i].Size == 0 {
			return 0, Errorf(KindValue, "piece %d of %d: expected place %d to give it first", i, len(a.layout), p.Place)
		}
		if p.Place == a.place || p.Place == everyones {
			owned += uint64(p.Bytes)
		}
		total += p.Bytes
	}
	if bytes > total {
		return 0, Errorf(KindValue, "array: expected at most %d bytes, got %d", total, bytes)
	}
	span, err := a.engine.Context().Map(a.pieces)
	if err != nil {
		return 0, onDevice(err)
	}
	err = a.fill(span, address, bytes)
	var m memory.Memory
	if err == nil {
		m, err = memory.FromSpan(span, owned)
	}
	if err != nil {
		if closed := span.Close(); closed != nil {
			err = errors.Join(err, closed, span.Close())
		}
		return 0, onDevice(err)
	}
	return m.Address(), nil
}

// fill copies what is of this place.
func (a *SharedArray) fill(span gpu.Span, address, bytes int64) (err error) {
	s, err := a.engine.Context().NewStream()
	if err != nil {
		return err
	}
	at := int64(0)
	for _, p := range a.layout {
		end := min(at+p.Bytes, bytes)
		if p.Place == a.place || p.Place == everyones {
			for done := at; done < end && err == nil; done += piece {
				err = s.Upload(span.Address+gpu.Address(done), memory.Pointer(address+done), uint64(min(piece, end-done)))
			}
		}
		at += p.Bytes
	}
	// This is needed after an error, too, since earlier copies may be running.
	err = errors.Join(err, s.Synchronize())
	if closed := s.Close(); closed != nil {
		err = errors.Join(err, closed, s.Close())
	}
	return err
}

// Close releases the pieces. After an error it may be called again.
func (a *SharedArray) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var errs []error
	for i := range a.pieces {
		if !a.mine[i] {
			continue
		}
		if err := a.pieces[i].Close(); err != nil {
			errs = append(errs, err)
			continue
		}
		a.mine[i] = false
	}
	return onDevice(errors.Join(errs...))
}

// PeerHeat estimates the read frequencies of count equal runs of a graph's edges, relative to each
// other: it writes float64 to the address out. The graph is on the host; degrees is the address of
// the out-degree of each node, int64, and perUnit is the number of edges of a run. If row is not 0,
// the runs are perUnit bytes of rows of the nodes, of row bytes each.
func PeerHeat(g *Relation, degrees, row, perUnit, count, out int64) error {
	if g.device != nil {
		return Errorf(KindValue, "graph: expected one on the CPU, got one on cuda:%d", g.device.index)
	}
	if row < 0 || perUnit < 1 || count < 1 || count > mostPieces {
		return Errorf(KindValue, "units: expected 1 to %d of at least one, got %d of %d", mostPieces, count, perUnit)
	}
	if err := g.enter(); err != nil {
		return err
	}
	defer g.leave()
	visits, heat := memory.View[int64](degrees, g.csc.NumNodes), memory.View[float64](out, count)
	if row > 0 {
		access.RowHeat(&g.csc, visits, row, perUnit, heat)
	} else {
		access.Heat(&g.csc, visits, perUnit, heat)
	}
	return nil
}
