package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/pygsampler/pygsampler/gpu"
)

// gathered is a table with its cache on the host, and ids of its rows.
type gathered struct {
	row, rows, bits int
	ids             []int64
	table, cached   []byte
	slots           []int32 // nil: nothing is cached
	told            bool    // whether rows from the cache are counted, and bad ids noted
	// The offsets of the table, the cache and the written rows from a multiple of 16 bytes.
	tableOff, cachedOff, outOff int
}

// guard is what stands before and behind rows that are written.
const guard, guarded = 0x5A, 64

// newGathered is a table of random bytes, of which the rows that cache names are cached, in an
// order of their own and with other bytes, so that it shows where a row is from.
func newGathered(row, rows, bits int, ids []int64, cache func(i int) bool) *gathered {
	g := &gathered{row: row, rows: rows, bits: bits, ids: ids, table: randomBytes(row * rows), told: true}
	if cache == nil {
		return g
	}
	var keep []int
	g.slots = make([]int32, rows)
	for i := range g.slots {
		if g.slots[i] = -1; cache(i) {
			keep = append(keep, i)
		}
	}
	for place, i := range keep {
		g.slots[i] = int32(len(keep) - 1 - place)
	}
	g.cached = randomBytes(row * len(keep))
	return g
}

func randomBytes(n int) []byte {
	random := rand.New(rand.NewPCG(uint64(n), 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// someIDs are n ids of rows, with repetitions.
func someIDs(n, rows int) []int64 {
	random := rand.New(rand.NewPCG(uint64(n), uint64(rows)))
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = random.Int64N(int64(rows))
	}
	return ids
}

// want is the rows, how many were cached, and the first bad id's place, or all ones.
func (g *gathered) want() (out []byte, hits, bad uint64) {
	out, bad = make([]byte, len(g.ids)*g.row), math.MaxUint64
	for i, id := range g.ids {
		switch {
		case id < 0 || id >= int64(g.rows):
			bad = min(bad, uint64(i))
		case g.slots != nil && g.slots[id] >= 0:
			copy(out[i*g.row:][:g.row], g.cached[int(g.slots[id])*g.row:])
			hits++
		default:
			copy(out[i*g.row:][:g.row], g.table[int(id)*g.row:])
		}
	}
	return out, hits, bad
}

// about is what tells a case from others.
func (g *gathered) about() string {
	return fmt.Sprintf("%d ids of %d bits, %d rows of %d bytes, %d of them cached, offsets %d, %d, %d",
		len(g.ids), g.bits, g.rows, g.row, len(g.cached)/g.row, g.tableOff, g.cachedOff, g.outOff)
}

// deviceMemory is what a check has put there.
type deviceMemory []gpu.Memory

// at is where a content is put, so far from a multiple of 16 bytes.
func (p *deviceMemory) at(t *testing.T, e *Engine, s gpu.Stream, content []byte, off int) gpu.Address {
	t.Helper()
	m, err := e.pool.Alloc(s, uint64(len(content)+off+16))
	if err != nil {
		t.Fatal(err)
	}
	*p = append(*p, m)
	to := m.Address + gpu.Address(off)
	if len(content) > 0 {
		if err := s.Upload(to, unsafe.Pointer(&content[0]), uint64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

func (p *deviceMemory) free(t *testing.T, s gpu.Stream) {
	for i := range *p {
		if err := (*p)[i].Free(s); err != nil {
			t.Error(err)
		}
	}
}

// download is the content of device memory.
func download(t *testing.T, s gpu.Stream, from gpu.Address, n int) []byte {
	t.Helper()
	content := make([]byte, n)
	if err := s.Download(unsafe.Pointer(&content[0]), from, uint64(n)); err != nil {
		t.Fatal(err)
	}
	if err := s.Synchronize(); err != nil {
		t.Fatal(err)
	}
	return content
}

// packed is integers as they stand in memory.
func packed[T int32 | int64 | uint64](values []T) []byte {
	content, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return content
}

// packedIDs is the ids of a case in their width.
func (g *gathered) packedIDs() []byte {
	if g.bits == 64 {
		return packed(g.ids)
	}
	narrow := make([]int32, len(g.ids))
	for i, id := range g.ids {
		narrow[i] = int32(id)
	}
	return packed(narrow)
}

// checkGathers compares what one call writes for all with a loop's.
func checkGathers(t *testing.T, e *Engine, s gpu.Stream, all ...*gathered) {
	t.Helper()
	var memory deviceMemory
	defer memory.free(t, s)
	parts := make([]Gather, len(all))
	for i, g := range all {
		p := &parts[i]
		*p = Gather{Count: uint64(len(g.ids)), Bits: g.bits, Rows: uint64(g.rows), Row: uint64(g.row)}
		p.IDs = memory.at(t, e, s, g.packedIDs(), 0)
		p.Table = memory.at(t, e, s, g.table, g.tableOff)
		if g.slots != nil {
			p.Cached, p.Slots = memory.at(t, e, s, g.cached, g.cachedOff), memory.at(t, e, s, packed(g.slots), 0)
		}
		p.Out = memory.at(t, e, s, bytes.Repeat([]byte{guard}, len(g.ids)*g.row+2*guarded), g.outOff) + guarded
		if g.told {
			// Earlier counts stay.
			p.Counts = memory.at(t, e, s, packed([]uint64{1000, math.MaxUint64}), 0)
			p.Bad = p.Counts + 8
		}
	}
	if err := e.Gather(parts, len(all) > 0 && len(all[0].ids)%2 == 1, s); err != nil {
		t.Fatal(err)
	}
	for i, g := range all {
		want, hits, bad := g.want()
		got := download(t, s, parts[i].Out-guarded, len(want)+2*guarded)
		for j, b := range got {
			expected := byte(guard)
			if at := j - guarded; at >= 0 && at < len(want) {
				expected = want[at]
			}
			if b != expected {
				t.Fatalf("%s: byte %d of row %d is %#x, want %#x", g.about(), (j-guarded)%g.row, (j-guarded)/g.row, b, expected)
			}
		}
		if !g.told {
			continue
		}
		if words := download(t, s, parts[i].Counts, 16); !bytes.Equal(words, packed([]uint64{1000 + hits, bad})) {
			t.Fatalf("%s: the words of cached rows and of the first bad id are %x, want 1000 + %d and %d", g.about(), words, hits, int64(bad))
		}
	}
}

func thirds(i int) bool { return i%3 == 0 }
func every(int) bool    { return true }
func never(int) bool    { return false }

// Rows of every small size, and of some that are several steps of a warp in each width of a
// vector.
func TestGatherEveryRow(t *testing.T) {
	e, s := device(t)
	rows := []int{400, 401, 402, 404, 512, 528, 1024, 1028, 2408, 4096, 4096 + 4}
	for row := 1; row <= 70; row++ {
		rows = append(rows, row)
	}
	for _, row := range rows {
		ids := someIDs(75, 50)
		checkGathers(t, e, s, newGathered(row, 50, 32, ids, thirds), newGathered(row, 50, 64, ids, nil))
	}
}

// Tables, caches and rows that are written at every place among 16 bytes.
func TestGatherEveryMisalignment(t *testing.T) {
	e, s := device(t)
	for _, row := range []int{4, 16, 48, 528} {
		for tableOff := range 16 {
			var all []*gathered
			for outOff := range 16 {
				g := newGathered(row, 40, 32, someIDs(9+outOff, 40), thirds)
				g.tableOff, g.outOff = tableOff, outOff
				all = append(all, g)
				if outOff == tableOff {
					for cachedOff := range 16 {
						g := *g
						g.cachedOff = cachedOff
						all = append(all, &g)
					}
				}
			}
			checkGathers(t, e, s, all...)
		}
	}
}

// No ids, one, those of a warp and one less and more, several for each warp of the grid; of a
// table of which nothing, something, everything is cached, or of which the cache is empty.
func TestGatherEveryCount(t *testing.T) {
	e, s := device(t)
	for _, row := range []int{4, 12, 64, 400} {
		for _, count := range []int{0, 1, 2, 31, 32, 33, 1000, 6000} {
			if count > 1000 && row > 64 {
				continue
			}
			ids := someIDs(count, 300)
			for i, cache := range []func(int) bool{nil, never, thirds, every} {
				g := newGathered(row, 300, 32<<(i&1), ids, cache)
				g.told = count != 31
				checkGathers(t, e, s, g)
			}
		}
	}
}

// A row whose id is outside of the table is zeros, and nothing is read for it: neither a slot
// nor a row. The lowest place among the ids is noted, wherever the others are.
func TestGatherOutside(t *testing.T) {
	e, s := device(t)
	wide := []int64{-1, 77, 78, math.MaxInt64, math.MinInt64, 1 << 32, -1 << 32, 1 << 62, 76 + 1<<32}
	narrow := []int64{-1, 77, 78, math.MaxInt32, math.MinInt32}
	for bits, bad := range map[int][]int64{32: narrow, 64: wide} {
		for _, row := range []int{4, 7, 400, 2408} {
			var all []*gathered
			for _, id := range bad {
				for _, places := range [][]int{{0}, {31}, {32}, {499}, {450, 3, 77}} {
					ids := someIDs(500, 77)
					for _, at := range places {
						ids[at] = id
					}
					if row > 100 {
						ids = ids[places[0]/2:]
					}
					all = append(all, newGathered(row, 77, bits, ids, thirds))
				}
			}
			all = append(all, newGathered(row, 77, bits, append(bad, bad...), every), newGathered(row, 0, bits, someIDs(40, 5), nil))
			// Nobody is told, and the rows are zeros all the same.
			quiet := newGathered(row, 77, bits, bad, thirds)
			quiet.told = false
			checkGathers(t, e, s, append(all, quiet)...)
		}
	}
}

// One call has any number of tables, of which some are empty, each of its own kind.
func TestGatherSeveralAtOnce(t *testing.T) {
	e, s := device(t)
	for _, count := range []int{0, 1, 2, 7, 8, 9, 16, 21} {
		var all []*gathered
		for i := range count {
			n := []int{100, 0, 1, 2000, 33}[i%5]
			all = append(all, newGathered([]int{1, 400, 6, 16, 100, 72}[i%6], 90, 32<<(i%2), someIDs(n, 90), []func(int) bool{nil, thirds, every}[i%3]))
		}
		checkGathers(t, e, s, all...)
	}
}

// Parts that share the grid use it up, none of it is left out, and it is no larger than what
// runs at a time, where that is as many as there are parts.
func TestGatherShares(t *testing.T) {
	for _, c := range []struct {
		needs, want []uint32
		resident    uint32
	}{
		{[]uint32{5}, []uint32{5}, 100},
		{[]uint32{100}, []uint32{100}, 100},
		{[]uint32{100, 1}, []uint32{99, 1}, 100},
		{[]uint32{1, 60, 100}, []uint32{1, 49, 49}, 100},
		{[]uint32{10, 20, 60}, []uint32{10, 20, 60}, 100},
		{[]uint32{50, 50, 50, 1}, []uint32{33, 33, 33, 1}, 100},
		{[]uint32{6, 6, 6, 6, 6, 6, 6, 1}, []uint32{1, 1, 1, 1, 1, 1, 1, 1}, 6},
	} {
		parts := make([]gatherPart, len(c.needs))
		for i, n := range c.needs {
			parts[i].Blocks = n
		}
		most, found := share(parts, c.resident), uint32(0)
		for i, p := range parts {
			found = max(found, p.Blocks)
			if p.Blocks != c.want[i] {
				t.Errorf("%v of %d: part %d has %d blocks, want %d", c.needs, c.resident, i, p.Blocks, c.want[i])
			}
		}
		if most != found {
			t.Errorf("%v of %d: a grid of %d, want %d", c.needs, c.resident, most, found)
		}
	}
}

// Bytes stay as they are, also those that are signalling NaNs of some dtype.
func TestGatherOfNaNs(t *testing.T) {
	e, s := device(t)
	for _, row := range []int{4, 8, 24, 100} {
		g := newGathered(row, 64, 64, someIDs(200, 64), thirds)
		for _, b := range [][]byte{g.table, g.cached} {
			for i := 0; i+4 <= len(b); i += 4 {
				binary.LittleEndian.PutUint32(b[i:], []uint32{0x7F800001, 0xFFBFFFFF, 0x7FC12345, 0x7FF00001}[i/4%4])
			}
		}
		checkGathers(t, e, s, g)
	}
}
