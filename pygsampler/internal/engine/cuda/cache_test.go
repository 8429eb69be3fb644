package cuda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pygsampler/pygsampler/gpu"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// cacheModel is a cache on the host, as kernels/features/cache.cu keeps it.
type cacheModel struct {
	row           int
	table, cached []byte
	slots         []int32
	keys          []int64
	stamps, bids  []uint32
	hits          uint64
	now           uint32
	rows          int
}

func newCacheModel(rows, row, places int) *cacheModel {
	m := &cacheModel{
		row: row, rows: rows, table: randomBytes(rows * row), cached: bytes.Repeat([]byte{0xFF}, places*row),
		slots: make([]int32, rows), keys: make([]int64, places), stamps: make([]uint32, places), bids: make([]uint32, places),
	}
	for i := range m.slots {
		m.slots[i] = -1
	}
	for p := range m.keys {
		m.keys[p], m.stamps[p], m.bids[p] = -1, math.MaxUint32, math.MaxUint32
	}
	return m
}

func (m *cacheModel) has(id int64) bool { return id >= 0 && id < int64(m.rows) }

func (m *cacheModel) source(id int64) []byte { return m.table[int(id)*m.row:][:m.row] }

// place puts a row where another may be.
func (m *cacheModel) place(id int64, p uint32) {
	if before := m.keys[p]; before >= 0 && m.slots[before] == int32(p) {
		m.slots[before] = -1
	}
	m.keys[p], m.slots[id] = id, int32(p)
	copy(m.cached[int(p)*m.row:][:m.row], m.source(id))
}

func (m *cacheModel) put(ids []int64, places []uint32) {
	for i, id := range ids {
		if m.has(id) && int(places[i]) < len(m.keys) {
			m.place(id, places[i])
		}
	}
}

func (m *cacheModel) refresh(ids []int64) {
	for _, id := range ids {
		if m.has(id) && m.slots[id] >= 0 {
			copy(m.cached[int(m.slots[id])*m.row:][:m.row], m.source(id))
		}
	}
}

// admit reads rows, and lets those in that were not there.
func (m *cacheModel) admit(ids []int64) {
	for _, id := range ids {
		if m.has(id) && m.slots[id] >= 0 {
			m.hits++
			m.stamps[m.slots[id]] = m.now
		}
	}
	want := map[uint32]int64{}
	for _, id := range ids {
		if !m.has(id) || m.slots[id] >= 0 {
			continue
		}
		state, most, best := rng.Mix(uint64(id)^uint64(m.now)<<32), uint64(0), uint32(0)
		for c := range cacheChoices {
			p := uint32(rng.Below(rng.Draw(state, c), uint64(len(m.keys))))
			age := uint64(m.now - m.stamps[p])
			if m.keys[p] < 0 {
				age = 1 << 32
			}
			if age > most {
				most, best = age, p
			}
		}
		if _, taken := want[best]; most > 0 && !taken {
			want[best] = id
		}
	}
	for p, id := range want {
		m.place(id, p)
		m.stamps[p] = m.now
	}
}

// cacheOnDevice is a model's cache there.
type cacheOnDevice struct {
	Cache
	table, hits gpu.Address
	memory      deviceMemory
}

func (m *cacheModel) upload(t *testing.T, e *Engine, s gpu.Stream, off int) *cacheOnDevice {
	t.Helper()
	d := &cacheOnDevice{}
	at := func(content []byte, off int) gpu.Address { return d.memory.at(t, e, s, content, off) }
	d.Cache = Cache{
		Cached: at(m.cached, off), Slots: at(packed(m.slots), 0), Keys: at(packed(m.keys), 0), Stamps: at(packed32(m.stamps), 0),
		Bids: at(packed32(m.bids), 0), Places: uint64(len(m.keys)), Rows: uint64(m.rows), Row: uint64(m.row),
	}
	d.table, d.hits = at(m.table, off), at(make([]byte, 8), 0)
	return d
}

func packed32(values []uint32) []byte {
	signed := make([]int32, len(values))
	for i, v := range values {
		signed[i] = int32(v)
	}
	return packed(signed)
}

// check compares all that the device has with the model.
func (m *cacheModel) check(t *testing.T, s gpu.Stream, d *cacheOnDevice, about string) {
	t.Helper()
	for _, one := range []struct {
		name string
		at   gpu.Address
		want []byte
	}{
		{"slots", d.Slots, packed(m.slots)}, {"keys", d.Keys, packed(m.keys)}, {"rows", d.Cached, m.cached},
		{"stamps", d.Stamps, packed32(m.stamps)}, {"bids", d.Bids, packed32(m.bids)}, {"hits", d.hits, packed([]uint64{m.hits})},
	} {
		if got := download(t, s, one.at, len(one.want)); !bytes.Equal(got, one.want) {
			at := 0
			for got[at] == one.want[at] {
				at++
			}
			t.Fatalf("%s: byte %d of the %s is %#x, want %#x", about, at, one.name, got[at], one.want[at])
		}
	}
}

// uploadIDs are ids in memory of the device.
func (d *cacheOnDevice) uploadIDs(t *testing.T, e *Engine, s gpu.Stream, ids []int64, bits int) IDs {
	t.Helper()
	g := gathered{ids: ids, bits: bits}
	return IDs{d.memory.at(t, e, s, g.packedIDs(), 0), uint64(len(ids)), bits}
}

// Rows enter the cache, replace others and are written anew, for any size, alignment and ids.
// Gathered rows equal the table's, and rows from the cache are counted.
func TestCacheHoldsWhatIsPut(t *testing.T) {
	e, s := device(t)
	for _, row := range []int{1, 2, 3, 4, 8, 12, 16, 100, 400, 528, 2408} {
		for _, bits := range []int{32, 64} {
			const rows, places = 90, 40
			m := newCacheModel(rows, row, places)
			d := m.upload(t, e, s, row%5)
			random := rand.New(rand.NewPCG(uint64(row), uint64(bits)))
			for round := range 4 {
				about := fmt.Sprintf("rows of %d bytes, ids of %d bits, round %d", row, bits, round)
				var ids []int64
				var chosen []uint32
				free := random.Perm(places)
				for _, id := range random.Perm(rows) {
					if m.slots[id] < 0 && len(ids) < 5+10*round && len(ids) < places {
						ids, chosen = append(ids, int64(id)), append(chosen, uint32(free[len(ids)]))
					}
				}
				// Ids that are no rows, and places that are none.
				ids, chosen = append(ids, -1, rows), append(chosen, 0, 1)
				if unused := slices.Index(m.slots, -1); !slices.Contains(ids, int64(unused)) {
					ids, chosen = append(ids, int64(unused)), append(chosen, places)
				}
				at := d.memory.at(t, e, s, packed32(chosen), 0)
				if err := e.CachePut(&d.Cache, d.uploadIDs(t, e, s, ids, bits), at, d.table, s); err != nil {
					t.Fatal(err)
				}
				m.put(ids, chosen)
				m.check(t, s, d, about)
				// Some rows of the table change.
				changed := someIDs(30, rows)
				for _, id := range changed {
					copy(m.source(id), randomBytes(row+round))
				}
				d.table = d.memory.at(t, e, s, m.table, row%5)
				changed = append(changed, -5, math.MaxInt32)
				if err := e.CachePut(&d.Cache, d.uploadIDs(t, e, s, changed, bits), 0, d.table, s); err != nil {
					t.Fatal(err)
				}
				m.refresh(changed)
				m.check(t, s, d, about+", refreshed")
				g := &gathered{row: row, rows: rows, bits: bits, ids: someIDs(100, rows), table: m.table, cached: m.cached, slots: m.slots, told: true}
				checkGathers(t, e, s, g)
			}
			d.memory.free(t, s)
		}
	}
}

// Rows that were used last stay: the cache equals the model's after each gather, also if ids
// repeat, exceed the places, or are no rows, and when the number of gathers wraps around. A
// cached row equals the table's.
func TestCacheAdmitsWhatIsRead(t *testing.T) {
	e, s := device(t)
	for _, places := range []int{1, 3, 64, 200} {
		for _, row := range []int{4, 6, 400} {
			const rows = 200
			m := newCacheModel(rows, row, places)
			m.now = math.MaxUint32 - 5
			d := m.upload(t, e, s, 0)
			for round := range 12 {
				count := []int{0, 1, 33, 150, 700}[round%5]
				ids := someIDs(count+round, rows/(1+round%2))
				if round == 7 {
					ids = append(ids, -1, rows, math.MinInt32)
				}
				bits := 32 << (round % 2)
				on := d.uploadIDs(t, e, s, ids, bits)
				out := d.memory.at(t, e, s, make([]byte, len(ids)*row), 0)
				g := Gather{
					IDs: on.At, Count: on.Count, Bits: bits, Table: d.table, Rows: rows, Row: uint64(row),
					Cached: d.Cached, Slots: d.Slots, Out: out, Counts: d.hits,
				}
				m.now++
				if err := e.Gather([]Gather{g}, false, s); err != nil {
					t.Fatal(err)
				}
				if err := e.CacheAdmit(&d.Cache, on, out, m.now, s); err != nil {
					t.Fatal(err)
				}
				m.admit(ids)
				m.check(t, s, d, fmt.Sprintf("%d places, rows of %d bytes, round %d", places, row, round))
			}
			if held := slices.IndexFunc(m.keys, func(k int64) bool { return k >= 0 }); held < 0 {
				t.Fatal("nothing was admitted")
			}
			d.memory.free(t, s)
		}
	}
}

// Each id counts, those that are no rows do not.
func TestCacheTally(t *testing.T) {
	e, s := device(t)
	for _, bits := range []int{32, 64} {
		var memory deviceMemory
		const rows = 77
		want := make([]int32, rows)
		counts := memory.at(t, e, s, packed(want), 0)
		for _, n := range []int{0, 1, 500, 4000} {
			ids := append(someIDs(n, rows), -1, rows, math.MinInt32)
			for _, id := range ids {
				if id >= 0 && id < rows {
					want[id]++
				}
			}
			d := &cacheOnDevice{}
			if err := e.Tally(d.uploadIDs(t, e, s, ids, bits), counts, rows, s); err != nil {
				t.Fatal(err)
			}
			d.memory.free(t, s)
		}
		if got := download(t, s, counts, 4*rows); !bytes.Equal(got, packed(want)) {
			t.Errorf("ids of %d bits: counts differ", bits)
		}
		memory.free(t, s)
	}
}
