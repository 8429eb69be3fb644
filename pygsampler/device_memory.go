package pygsampler

import (
	"errors"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory/arrow"
)

// piece is the maximal number of bytes of one copy: the driver holds a stream and a bounce buffer
// for its duration.
const piece = 64 << 20

func checkBytes(address, bytes int64) error {
	if bytes < 0 || address == 0 && bytes > 0 {
		return Errorf(KindValue, "array: expected an address and bytes >= 0, got %#x and %d", address, bytes)
	}
	return nil
}

// block is new memory of a device in the order of a caller's stream.
func block(device, bytes, stream int64) (e *cuda.Engine, s gpu.Stream, m gpu.Memory, err error) {
	if e, err = openDevice(device); err != nil {
		return nil, s, m, err
	}
	if s, err = e.Context().Wrap(uintptr(stream)); err != nil {
		return nil, s, m, err
	}
	m, err = e.MemoryPool().Alloc(s, uint64(bytes))
	return e, s, m, err
}

// DeviceAlloc returns the address of a device memory, with arbitrary content, for work that is
// enqueued from now on.
func DeviceAlloc(device, bytes, stream int64) (int64, error) {
	if bytes < 0 {
		return 0, Errorf(KindValue, "bytes: expected at least 0, got %d", bytes)
	}
	_, s, m, err := block(device, bytes, stream)
	if err != nil {
		return 0, err
	}
	owned, err := memory.FromDevice(int(device), &m, nil)
	if err != nil {
		return 0, errors.Join(err, m.Free(s))
	}
	owned.FilledIn(uintptr(stream))
	return owned.Address(), nil
}

// DeviceUpload copies host memory to a device, after the present work of the stream, and returns
// the memory when it is complete.
func DeviceUpload(device, address, bytes, stream int64) (int64, error) {
	if err := checkBytes(address, bytes); err != nil {
		return 0, err
	}
	_, s, m, err := block(device, bytes, stream)
	if err != nil {
		return 0, err
	}
	for done := int64(0); done < bytes && err == nil; done += piece {
		err = s.Upload(m.Address+gpu.Address(done), memory.Pointer(address+done), uint64(min(piece, bytes-done)))
	}
	// This is needed after an error, too, since earlier copies may be running.
	err = errors.Join(err, s.Synchronize())
	var owned memory.Memory
	if err == nil {
		owned, err = memory.FromDevice(int(device), &m, nil)
	}
	if err != nil {
		return 0, errors.Join(err, m.Free(s))
	}
	return owned.Address(), nil
}

// DeviceDownload copies device memory to the host, after the present work of the stream, and
// returns the memory when it is complete.
func DeviceDownload(device, address, bytes, stream int64) (int64, error) {
	if err := checkBytes(address, bytes); err != nil {
		return 0, err
	}
	if err := memory.Affordable(bytes); err != nil {
		return 0, err
	}
	e, err := openDevice(device)
	if err != nil {
		return 0, err
	}
	s, err := e.Context().Wrap(uintptr(stream))
	if err != nil {
		return 0, err
	}
	m, err := memory.New(max(bytes, 1))
	if err != nil {
		return 0, err
	}
	m.SetSize(bytes)
	for done := int64(0); done < bytes && err == nil; {
		from := gpu.Address(address + done)
		some := gpu.Unbroken(from, uint64(min(piece, bytes-done)))
		err = s.Download(unsafe.Add(m.Pointer(), done), from, some)
		done += int64(some)
	}
	if err = errors.Join(err, s.Synchronize()); err != nil {
		m.Release()
		return 0, err
	}
	return m.Address(), nil
}

// DeviceRegister page-locks host memory, so that a device can read it in place. The returned memory
// has the address that the device uses, and its release unlocks the pages.
func DeviceRegister(device, address, bytes int64) (int64, error) {
	if err := checkBytes(address, bytes); err != nil {
		return 0, err
	}
	e, err := openDevice(device)
	if err != nil {
		return 0, err
	}
	r, err := e.Context().Register(memory.Pointer(address), uint64(bytes))
	if err != nil {
		return 0, err
	}
	m, err := memory.FromRegistered(int(device), r)
	if err != nil {
		return 0, errors.Join(err, r.Close())
	}
	return m.Address(), nil
}

// DeviceOrder lets later work of a stream use a device memory: the work runs after the memory is
// filled, and the memory is freed after the work.
func DeviceOrder(mem, stream int64) error {
	if mem == 0 {
		return Errorf(KindValue, "array: expected a memory, got 0")
	}
	m := memory.FromAddress(mem)
	if m.Device() < 0 {
		return nil
	}
	e, err := openDevice(int64(m.Device()))
	if err != nil {
		return err
	}
	s, err := e.Context().Wrap(uintptr(stream))
	if err != nil {
		return err
	}
	if from, ok := m.Filler(); ok && from != uintptr(stream) {
		if err := after(e.Context(), s, from); err != nil {
			return err
		}
	}
	m.Consumed(uintptr(stream))
	return nil
}

// DeviceAfter orders later work of a stream after the present work of another stream of the device.
func DeviceAfter(device, stream, other int64) error {
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(after(e.Context(), s, uintptr(other)))
}

// after lets s wait for what is in another stream of the context now.
func after(c *gpu.Context, s gpu.Stream, other uintptr) (err error) {
	from, err := c.Wrap(other)
	if err != nil {
		return err
	}
	event, err := c.NewEvent()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, event.Close()) }()
	if err := event.Record(from); err != nil {
		return err
	}
	return s.Wait(event)
}

// DeviceArrowExport returns the address of an Arrow C pair over length ids at data in device
// memory.
func DeviceArrowExport(mem, data, length int64, bits int) (int64, error) {
	if mem == 0 || length < 0 || bits != 32 && bits != 64 {
		return 0, Errorf(KindValue, "array: expected a memory of ids of 32 or 64 bits, got length %d of %d bits", length, bits)
	}
	pair, err := arrow.ExportDevice(memory.FromAddress(mem), data, length, bits)
	if err != nil {
		return 0, err
	}
	return pair.Address(), nil
}

// DeviceStats returns the memory that this process holds on a device.
func DeviceStats(device int64) (cuda.Stats, error) {
	e, err := inUse(device)
	if e == nil {
		return cuda.Stats{}, err
	}
	s, err := e.Stats()
	s.Used += memory.DeviceBytes(int(device))
	// A device without pools has nothing in reserve.
	s.Reserved = max(s.Reserved, s.Used)
	return s, err
}

// DeviceTrim returns unused memory to a device.
func DeviceTrim(device int64) error {
	e, err := inUse(device)
	if e == nil {
		return err
	}
	// Released memory returns to the pool once the streams that used it have passed its release.
	return errors.Join(memory.SettleDevice(int(device)), e.Trim())
}

// inUse is the engine of a device, nil where nothing has used it so far.
func inUse(device int64) (*cuda.Engine, error) {
	if _, err := gpu.DeviceProperties(int(device)); err != nil {
		return nil, err
	}
	return openedDevice(device), nil
}
