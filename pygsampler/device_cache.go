package pygsampler

import (
	"errors"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/engine/cuda"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
)

// Words of a cache and of the ids that something is to be done for, in the lists of
// DeviceCachePut and DeviceCacheAdmit.
const (
	cacheIDs = iota
	cacheCount
	cacheIDBits
	cacheSource
	cacheRows
	cacheRowBytes
	cacheCached
	cacheSlots
	cacheKeys
	cachePlaces
	deviceCacheWords
)

// DeviceCachePut enqueues the copying of rows of a table into a cache; with places 0 it rewrites
// the rows that are cached already, as cuda.Engine.CachePut does. The address list holds 10
// integers: the address, number and bits of the ids; the address of the table, its rows, and the
// bytes of a row; the addresses of the cached rows, the slots and the keys; the number of places.
func DeviceCachePut(device, list, places, stream int64) error {
	c, ids, source, err := deviceCache(list)
	if err != nil {
		return err
	}
	if places%4 != 0 {
		return Errorf(KindValue, "places: expected an address that 4 divides, got %#x", places)
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.CachePut(c, ids, gpu.Address(places), source, s))
}

// DeviceCacheAdmit enqueues the admission of rows that a gather has just written to a cache, as
// cuda.Engine.CacheAdmit does. The list is the one of DeviceCachePut, with the rows of the gather
// as the table; now is the number of the gather, modulo 2^32.
func DeviceCacheAdmit(device, list, stamps, bids, now, stream int64) error {
	c, ids, source, err := deviceCache(list)
	if err != nil {
		return err
	}
	for name, at := range map[string]int64{"stamps": stamps, "bids": bids} {
		if at == 0 && c.Places > 0 || at%4 != 0 {
			return Errorf(KindValue, "%s: expected an address that 4 divides, got %#x", name, at)
		}
	}
	c.Stamps, c.Bids = gpu.Address(stamps), gpu.Address(bids)
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.CacheAdmit(c, ids, source, uint32(now), s))
}

// DeviceCountIDs enqueues the counting of ids: it adds one to the 32-bit count of each id at
// counts, which has rows counts.
func DeviceCountIDs(device, at, count, bits, counts, rows, stream int64) error {
	ids, err := deviceIDs(at, count, bits)
	if err != nil {
		return err
	}
	if rows < 0 || counts == 0 && rows > 0 || counts%4 != 0 {
		return Errorf(KindValue, "counts: expected an address that 4 divides and rows >= 0, got %#x and %d", counts, rows)
	}
	e, s, err := streamOf(device, stream)
	if err != nil {
		return err
	}
	return onDevice(e.Tally(ids, gpu.Address(counts), uint64(rows), s))
}

// DeviceFill returns the address of a device memory of 32-bit words that all have the same value,
// like DeviceAlloc.
func DeviceFill(device, words, value, stream int64) (int64, error) {
	if words < 0 || words > 1<<60 {
		return 0, Errorf(KindValue, "words: expected at least 0, got %d", words)
	}
	_, s, m, err := block(device, 4*words, stream)
	if err != nil {
		return 0, err
	}
	var owned memory.Memory
	if words > 0 {
		err = s.Fill32(m.Address, uint32(value), uint64(words))
	}
	if err == nil {
		owned, err = memory.FromDevice(int(device), &m, nil)
	}
	if err != nil {
		return 0, errors.Join(err, m.Free(s))
	}
	owned.FilledIn(uintptr(stream))
	return owned.Address(), nil
}

// deviceIDs are ids at an address of a device. A kernel that meets a wrong address ends all work
// of the process on that device, so what can be seen here is refused.
func deviceIDs(at, count, bits int64) (cuda.IDs, error) {
	switch {
	case bits != 32 && bits != 64:
		return cuda.IDs{}, Errorf(KindValue, "ids: expected 32 or 64 bits, got %d", bits)
	case count < 0 || count >= 1<<32-1:
		return cuda.IDs{}, Errorf(KindValue, "ids: expected 0 to 2^32 - 2 of them, got %d", count)
	case count > 0 && (at == 0 || at%(bits/8) != 0):
		return cuda.IDs{}, Errorf(KindValue, "ids: expected an address that %d divides, got %#x", bits/8, at)
	}
	return cuda.IDs{At: gpu.Address(at), Count: uint64(count), Bits: int(bits)}, nil
}

// deviceCache reads the cache, the ids and the address of the rows from a list at an address.
func deviceCache(list int64) (*cuda.Cache, cuda.IDs, gpu.Address, error) {
	none := cuda.IDs{}
	if list == 0 {
		return nil, none, 0, Errorf(KindValue, "list: expected an address, got 0")
	}
	w := memory.View[[deviceCacheWords]int64](list, 1)[0]
	ids, err := deviceIDs(w[cacheIDs], w[cacheCount], w[cacheIDBits])
	if err != nil {
		return nil, none, 0, err
	}
	places, rows, row := w[cachePlaces], w[cacheRows], w[cacheRowBytes]
	switch {
	case rows < 0:
		return nil, none, 0, Errorf(KindValue, "rows: expected an integer >= 0, got %d", rows)
	case row < 1 || row > cuda.MostRow:
		return nil, none, 0, Errorf(KindValue, "row_bytes: expected 1 to %d, got %d", cuda.MostRow, row)
	case places < 0 || places > cuda.MostPlaces:
		return nil, none, 0, Errorf(KindValue, "places: expected 0 to %d, got %d", cuda.MostPlaces, places)
	}
	if places > 0 && ids.Count > 0 {
		for _, one := range []struct {
			name     string
			word, to int64
		}{{"source", cacheSource, 1}, {"cached", cacheCached, 1}, {"slots", cacheSlots, 4}, {"keys", cacheKeys, 8}} {
			if at := w[one.word]; at == 0 || at%one.to != 0 {
				return nil, none, 0, Errorf(KindValue, "%s: expected an address that %d divides, got %#x", one.name, one.to, at)
			}
		}
	}
	return &cuda.Cache{
		Cached: gpu.Address(w[cacheCached]), Slots: gpu.Address(w[cacheSlots]), Keys: gpu.Address(w[cacheKeys]),
		Places: uint64(places), Rows: uint64(rows), Row: uint64(row),
	}, ids, gpu.Address(w[cacheSource]), nil
}
