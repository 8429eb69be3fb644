package cuda

import (
	"errors"

	"github.com/pygsampler/pygsampler/gpu"
)

// cacheArgs mirrors CacheArgs in kernels/features/cache.cu.
type cacheArgs struct {
	IDs, Source, Cached, Slots, Keys, Stamps, Bids, Chosen, Counts gpu.Address
	Count, Rows, Places                                            uint64
	Row, IDBits, Width, ByPlace, Now                               uint32
}

// cacheKernels are those of kernels/features/cache.cu.
type cacheKernels struct {
	tally, touch, bid, put gpu.Kernel[cacheArgs]
}

func loadCache(e *Engine) (*cacheKernels, error) {
	var k cacheKernels
	for name, to := range map[string]*gpu.Kernel[cacheArgs]{
		"cache_tally": &k.tally, "cache_touch": &k.touch, "cache_bid": &k.bid, "cache_put": &k.put,
	} {
		var err error
		if *to, err = KernelOf[cacheArgs](e, "cache", name, 0); err != nil {
			return nil, err
		}
	}
	return &k, nil
}

// MostPlaces is the most rows that a cache has.
const MostPlaces = 1<<31 - 1

// Cache is copies of some rows of a table in the device's memory, which Gather reads. All
// addresses are the device's. Slots and Keys say the same: what is cached where. The zero value
// has no places.
type Cache struct {
	Cached gpu.Address // Places rows of Row bytes, 1 to MostRow, without gaps
	Slots  gpu.Address // Rows integers of 32 bits: the row's place, or -1
	Keys   gpu.Address // Places integers of 64 bits: the place's row, or -1
	Stamps gpu.Address // Places words of 32 bits, for Admit: when it was used last
	Bids   gpu.Address // Places words of 32 bits, for Admit: all ones
	Places uint64      // at most MostPlaces
	Rows   uint64      // of the table
	Row    uint64
}

// IDs are row numbers in the device's memory: Count signed integers of Bits, 32 or 64. Those that
// are no rows are passed over.
type IDs struct {
	At    gpu.Address
	Count uint64 // below 2^32
	Bits  int
}

func (c *Cache) args(ids IDs, source gpu.Address) cacheArgs {
	return cacheArgs{
		IDs: ids.At, Source: source, Cached: c.Cached, Slots: c.Slots, Keys: c.Keys, Count: ids.Count,
		Rows: c.Rows, Places: c.Places, Row: uint32(c.Row), IDBits: uint32(ids.Bits),
		Width: uint32(lowest(uint64(source|c.Cached)|c.Row, 16)),
	}
}

// CachePut brings rows of the table into the cache, each to its place of the 32-bit ones at
// places, where it is not yet; who was there is turned out. With 0 for places the rows that are
// there are written anew.
func (e *Engine) CachePut(c *Cache, ids IDs, places, table gpu.Address, s gpu.Stream) error {
	k, err := Cached(e, "cache", loadCache)
	if err != nil || ids.Count == 0 || c.Places == 0 {
		return err
	}
	a := c.args(ids, table)
	a.Chosen = places
	return e.launchCache(&k.put, &a, 32, s)
}

// CacheAdmit follows a Gather of these ids, number now, in the same stream: those places are
// stamped that it has read, and rows that were not there come in from its Out for some that
// were not used for long.
func (e *Engine) CacheAdmit(c *Cache, ids IDs, out gpu.Address, now uint32, s gpu.Stream) (err error) {
	k, err := Cached(e, "cache", loadCache)
	if err != nil || ids.Count == 0 || c.Places == 0 {
		return err
	}
	chosen, err := e.pool.Alloc(s, 4*ids.Count)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chosen.Free(s)) }()
	a := c.args(ids, out)
	a.Stamps, a.Bids, a.Chosen, a.ByPlace, a.Now = c.Stamps, c.Bids, chosen.Address, 1, now
	return errors.Join(e.launchCache(&k.touch, &a, 1, s), e.launchCache(&k.bid, &a, 1, s), e.launchCache(&k.put, &a, 32, s))
}

// Tally adds one to the 32-bit count of each of the ids that is below rows.
func (e *Engine) Tally(ids IDs, counts gpu.Address, rows uint64, s gpu.Stream) error {
	k, err := Cached(e, "cache", loadCache)
	if err != nil || ids.Count == 0 {
		return err
	}
	a := cacheArgs{IDs: ids.At, Counts: counts, Count: ids.Count, Rows: rows, IDBits: uint32(ids.Bits)}
	return e.launchCache(&k.tally, &a, 1, s)
}

// launchCache is a launch of so many threads an id, as far as the device runs them at a time.
func (e *Engine) launchCache(k *gpu.Kernel[cacheArgs], a *cacheArgs, threads uint64, s gpu.Stream) error {
	most := uint64(e.context.Properties().Multiprocessors) * 2048 / cacheThreads
	blocks := min((a.Count*threads+cacheThreads-1)/cacheThreads, most)
	return k.Launch(s, gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{cacheThreads}}, a)
}
