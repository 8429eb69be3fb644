package cpu

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/request"
)

// Two maps give nodes their local numbers by first occurrence. Each serves one
// batch at a time and is reused without clearing: an entry is live while its tag
// is the batch's.

// word is an entry of a direct map: the batch's tag above the local number.
type word interface{ uint32 | uint64 }

// Numbers that fit the narrow map, which takes half the cache of the wide one.
const (
	narrowNumbers = 1 << 24
	wideNumbers   = 1 << 32
)

// directMap is a word for every node. It holds numbers below limit, and the tag
// counts batches in the bits above; when those run out the map is cleared.
type directMap[W word] struct {
	pages *memory.Pages
	words []W
	tag   W
	limit W
}

func (d *directMap[W]) begin(numNodes int64, limit W) error {
	if int64(len(d.words)) < numNodes {
		d.free()
		pages, err := memory.Map(numNodes * int64(unsafe.Sizeof(limit)))
		if err != nil {
			return err
		}
		d.pages, d.words = pages, memory.Slice[W](pages, numNodes)
	}
	d.limit = limit
	d.tag += limit
	if d.tag == 0 {
		clear(d.words)
		d.tag = limit
	}
	return nil
}

func (d *directMap[W]) free() {
	if d.pages != nil {
		d.pages.Free()
	}
	*d = directMap[W]{}
}

// ahead is the number of words of a large map that are prefetched: each read is followed by stores,
// of which the core holds a few dozen only. An id of 2.4 million took 16 to 24 ns, and takes 5 to
// 14; one of 16 thousand would take 2.3 instead of 1.8.
const (
	ahead    = 64
	largeMap = 1 << 20 // bytes
)

// claimDirect replaces the original ids in ids by local numbers and appends each
// new node to nodes[:n]; it returns the new n. nodes has room for one more than
// all nodes, since the loop stores before it knows whether a node is new:
// a branch there would be mispredicted on half of all edges.
func claimDirect[I csc.Index, W word](d *directMap[W], ids, nodes []I, n int64) int64 {
	if len(d.words)*int(unsafe.Sizeof(d.tag)) <= largeMap {
		return claimNear(d, ids, nodes, n)
	}
	prefetch.Elements(d.words, ids[:min(ahead, len(ids))])
	for len(ids) > 0 {
		now := min(ahead, len(ids))
		prefetch.Elements(d.words, ids[now:min(now+ahead, len(ids))])
		n = claimNear(d, ids[:now], nodes, n)
		ids = ids[now:]
	}
	return n
}

// claimNear is claimDirect for words that the cache has.
func claimNear[I csc.Index, W word](d *directMap[W], ids, nodes []I, n int64) int64 {
	words, tag, limit := d.words, d.tag, d.limit
	next := W(n)
	for k, v := range ids {
		number := words[v] ^ tag
		isNew := W(0)
		if number >= limit {
			isNew = 1
		}
		if isNew != 0 {
			number = next
		}
		nodes[next] = v
		words[v] = tag | number
		ids[k] = I(number)
		next += isNew
	}
	return int64(next)
}

// hashTable is open addressing with linear probing, sized to the batch: at most half full, 16 bytes
// an entry. Nodes have at most 48 bits, which leaves the upper 16 of the key for the tag.
type hashTable struct {
	pages   *memory.Pages
	entries []uint64 // key and number, in turns, each below the tag
	shift   uint     // 64 - log2(number of entries)
	tag     uint64   // 1..65535
}

const (
	keyBits    = request.KeyBits
	minEntries = 1 << 10
)

func (h *hashTable) begin() {
	h.tag++
	if h.tag == 1<<16 {
		clear(h.entries)
		h.tag = 1
	}
}

// reserve makes room for count nodes; the n that are numbered already are
// entered again, by their keys, when the table has to grow.
func (h *hashTable) reserve(count, n int64, key func(i int64) uint64) error {
	size := int64(minEntries)
	for size < 2*count {
		size *= 2
	}
	if int64(len(h.entries)) >= 2*size {
		return nil
	}
	pages, err := memory.Map(size * 16)
	if err != nil {
		return err
	}
	if h.pages != nil {
		h.pages.Free()
	}
	h.pages, h.entries, h.tag = pages, memory.Slice[uint64](pages, 2*size), 1
	h.shift = uint(64 - bits.TrailingZeros64(uint64(size)))
	for i := range n {
		v := key(i)
		slot, _ := h.find(v)
		h.enter(slot, v, i)
	}
	return nil
}

// home returns the slot of v in an empty table.
func (h *hashTable) home(v uint64) int { return int(v*0x9E3779B97F4A7C15>>h.shift) * 2 }

// homes returns the slots of the first of ids, and prefetches them.
func homes[I csc.Index](h *hashTable, ids []I, slots *[ahead]int64) []int64 {
	ids = ids[:min(ahead, len(ids))]
	for k, v := range ids {
		slots[k] = int64(h.home(uint64(v)))
	}
	prefetch.Elements(h.entries, slots[:len(ids)])
	return slots[:len(ids)]
}

// find returns the slot of v, and whether v is there already.
func (h *hashTable) find(v uint64) (slot int, found bool) { return h.findFrom(h.home(v), v) }

// findFrom is find for one whose home is known.
func (h *hashTable) findFrom(slot int, v uint64) (_ int, found bool) {
	mask := len(h.entries) - 1
	for {
		key := h.entries[slot]
		if key>>keyBits != h.tag {
			return slot, false
		}
		if key&(1<<keyBits-1) == v {
			return slot, true
		}
		slot = (slot + 2) & mask
	}
}

// enter gives the key at a free slot its number.
func (h *hashTable) enter(slot int, key uint64, number int64) {
	h.entries[slot] = h.tag<<keyBits | key
	h.entries[slot+1] = h.tag<<keyBits | uint64(number)
}

// number returns the number of the key at a slot.
func (h *hashTable) number(slot int) int64 { return int64(h.entries[slot+1] & (1<<keyBits - 1)) }

// share enters v, whose home slot the caller passes, and returns its slot; other workers may enter
// nodes meanwhile. Its number has the tag once one of them has stored it. If another thread has
// changed the graph's arrays, there may be no room: claims detect that by their list of nodes,
// which is unknown here.
func (h *hashTable) share(slot int, v uint64) int {
	mask, tagged := len(h.entries)-1, h.tag<<keyBits|v
	for last := (slot - 2) & mask; ; {
		key := atomic.LoadUint64(&h.entries[slot])
		if key>>keyBits != h.tag {
			if atomic.CompareAndSwapUint64(&h.entries[slot], key, tagged) {
				return slot
			}
			continue
		}
		if key == tagged {
			return slot
		}
		if slot == last {
			panic("more nodes than the graph has")
		}
		slot = (slot + 2) & mask
	}
}

// largeTable is from how many bytes on the table's entries are asked for before they are read: an id of 420,000 takes an
// eighth less time then, and one of 5,000 would take a fifth more.
const largeTable = 8 << 20

// claimHashed is claimDirect over the table.
func claimHashed[I csc.Index](h *hashTable, ids, nodes []I, n int64) int64 {
	if len(h.entries)*8 < largeTable {
		for k, v := range ids {
			slot, found := h.find(uint64(v))
			if !found {
				h.enter(slot, uint64(v), n)
				nodes[n] = v
				n++
			}
			ids[k] = I(h.number(slot))
		}
		return n
	}
	var slots [2][ahead]int64
	next := homes(h, ids, &slots[0])
	for lo := 0; lo < len(ids); lo += ahead {
		now := next
		next = homes(h, ids[min(lo+ahead, len(ids)):], &slots[(lo/ahead+1)%2])
		for k, home := range now {
			v := ids[lo+k]
			slot, found := h.findFrom(int(home), uint64(v))
			if !found {
				h.enter(slot, uint64(v), n)
				nodes[n] = v
				n++
			}
			ids[lo+k] = I(h.number(slot))
		}
	}
	return n
}
