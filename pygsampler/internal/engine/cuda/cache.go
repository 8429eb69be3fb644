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

// cacheKernels are the kernels of kernels/features/cache.cu.
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

// MostPlaces is the maximal number of rows of a cache.
const MostPlaces = 1<<31 - 1

// Cache holds copies of some rows of a table in device memory, which Gather reads. All addresses
// are on the device. Slots and Keys are inverse to each other: the slot of each row, and the row of
// each slot. The zero value has no slots.
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

// IDs are row numbers in device memory: Count signed integers of Bits, 32 or 64. Numbers that are
// no rows are ignored.
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

// CachePut copies rows of the table into the cache, each to its slot in the 32-bit integers at
// places, unless it is cached already; it evicts the previous row of the slot. With places 0 it
// rewrites the rows that are cached.
func (e *Engine) CachePut(c *Cache, ids IDs, places, table gpu.Address, s gpu.Stream) error {
	k, err := Cached(e, "cache", loadCache)
	if err != nil || ids.Count == 0 || c.Places == 0 {
		return err
	}
	a := c.args(ids, table)
	a.Chosen = places
	return e.launchCache(&k.put, &a, 32, s)
}

// CacheAdmit follows a Gather of these ids, number now, in the same stream: it stamps the slots
// that the gather has read, and copies missing rows from its Out into slots that were not used for
// long.
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

// Tally adds one to the 32-bit count of each id below rows.
func (e *Engine) Tally(ids IDs, counts gpu.Address, rows uint64, s gpu.Stream) error {
	k, err := Cached(e, "cache", loadCache)
	if err != nil || ids.Count == 0 {
		return err
	}
	a := cacheArgs{IDs: ids.At, Counts: counts, Count: ids.Count, Rows: rows, IDBits: uint32(ids.Bits)}
	return e.launchCache(&k.tally, &a, 1, s)
}

// launchCache launches threads threads per id, as far as the device runs them at a time.
func (e *Engine) launchCache(k *gpu.Kernel[cacheArgs], a *cacheArgs, threads uint64, s gpu.Stream) error {
	most := uint64(e.context.Properties().Multiprocessors) * 2048 / cacheThreads
	blocks := min((a.Count*threads+cacheThreads-1)/cacheThreads, most)
	return k.Launch(s, gpu.Shape{Grid: [3]uint32{uint32(blocks)}, Block: [3]uint32{cacheThreads}}, a)
}
