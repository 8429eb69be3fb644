package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// Many workers number the neighbors of a hop by rank, which is a neighbor's place in the hop's list: every new node gets the
// least rank at which it occurs, whoever comes first, and the nodes that have one are numbered in the order of ranks. These
// are the numbers that claims in order give. The list is read four times instead of once, so that few workers are
// faster by claims in order.

const (
	// rankedWorkers is from how many workers on ranks are faster: draws take about as long as claims, which two workers
	// do at once, and ranks take about twice as long as claims.
	rankedWorkers = 4
	// rankedEdges is how many edges a hop must have: its three further phases take as long as some thousand claims.
	rankedEdges = 1 << 14
	// roundEdges is how many edges are numbered at a time, which bounds the scratch to 16 MiB.
	roundEdges = 1 << 22
)

// byRank says whether a hop of so many edges is numbered by rank.
func (t *team) byRank(edges int64) bool { return t.size >= rankedWorkers && edges >= rankedEdges }

// rankScratch is kept between batches. One batch uses it at a time.
type rankScratch struct {
	firsts []int64 // per tile: the rank of its first edge in the round
	won    []int64 // per tile: how many nodes have a rank of the tile's
	before []int64 // per tile: how many nodes have a rank of tiles before
	places *memory.Pages
}

func (r *rankScratch) free() {
	if r.places != nil {
		r.places.Free()
	}
	*r = rankScratch{}
}

// ranked is one list of nodes that a hop extends: a graph has one for each node type.
type ranked[I csc.Index] struct {
	by     numbering
	narrow *directMap[uint32]
	wide   *directMap[uint64]
	table  *hashTable
	nodes  []I   // by number, with one more than used, as claimDirect has it
	n      int64 // how many have numbers
	// Of the round:
	edges  int64
	found  int64
	places []int32 // by rank: the number of the node that has the rank, counted from n
}

// room is how many ranks fit beside the numbers.
func (l *ranked[I]) room() int64 {
	switch l.by {
	case narrowMap:
		return int64(l.narrow.limit) - l.n
	case wideMap:
		return int64(l.wide.limit) - l.n
	}
	return 1<<keyBits - l.n
}

// claim numbers ids in order, in place.
func (l *ranked[I]) claim(ids []I) {
	switch l.by {
	case narrowMap:
		l.n = claimDirect(l.narrow, ids, l.nodes, l.n)
	case wideMap:
		l.n = claimDirect(l.wide, ids, l.nodes, l.n)
	default:
		l.n = claimHashed(l.table, ids, l.nodes, l.n)
	}
}

// rankedTiles is what is to be numbered by rank.
type rankedTiles[I csc.Index] struct {
	count int64
	last  bool // nobody asks for the numbers of nodes once all tiles have theirs
	lists []*ranked[I]
	// list is where a tile's nodes are numbered, size how many edges it has, ids its part of the block once it is drawn.
	list func(tile int64) *ranked[I]
	size func(tile int64) int64
	ids  func(tile int64) []I
	draw func(worker int, tile int64)
}

// number draws tiles on all workers and numbers their neighbors in place, as claims in the order of tiles do. Where stop
// is set it returns early.
func (a *rankedTiles[I]) number(t *team, stop *atomic.Bool, r *rankScratch) error {
	r.firsts, r.won, r.before = sized(r.firsts, a.count), sized(r.won, a.count), sized(r.before, a.count)
	for lo := int64(0); lo < a.count && !stop.Load(); {
		hi := a.round(lo, r.firsts)
		if hi == lo {
			// One tile may have the whole row of a hub.
			a.draw(0, lo)
			a.list(lo).claim(a.ids(lo))
			lo++
			continue
		}
		if err := a.numberRound(t, stop, r, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// round begins one with a tile: it gives tiles their ranks as long as these fit, and returns the first tile without.
func (a *rankedTiles[I]) round(lo int64, firsts []int64) int64 {
	for _, l := range a.lists {
		l.edges, l.found = 0, 0
	}
	total := int64(0)
	for i := lo; i < a.count; i++ {
		l, size := a.list(i), a.size(i)
		if total += size; total > roundEdges || l.edges+size > l.room() {
			return i
		}
		firsts[i] = l.edges
		l.edges += size
	}
	return a.count
}

// numberRound is number of the tiles [lo, hi), which have their ranks.
func (a *rankedTiles[I]) numberRound(t *team, stop *atomic.Bool, r *rankScratch, lo, hi int64) error {
	total := int64(0)
	for _, l := range a.lists {
		total += l.edges
	}
	rest, err := longer(&r.places, []int32(nil), total)
	if err != nil {
		return err
	}
	for _, l := range a.lists {
		l.places, rest = rest[:l.edges:l.edges], rest[l.edges:]
	}
	phase := func(f func(worker int, tile int64)) bool {
		err = t.each(hi-lo, stop, func(w int, i int64) { f(w, lo+i) })
		return err == nil && !stop.Load()
	}
	if !phase(func(w int, i int64) {
		a.draw(w, i)
		a.list(i).mark(a.ids(i), r.firsts[i])
	}) || !phase(func(_ int, i int64) {
		r.won[i] = a.list(i).settle(a.ids(i), r.firsts[i])
	}) {
		return err
	}
	for i := lo; i < hi; i++ {
		l := a.list(i)
		r.before[i] = l.found
		l.found += r.won[i]
	}
	if !phase(func(_ int, i int64) {
		a.list(i).enter(a.ids(i), r.firsts[i], r.won[i], r.before[i], a.last && hi == a.count)
	}) || !phase(func(_ int, i int64) {
		a.list(i).resolve(a.ids(i))
	}) {
		return err
	}
	for _, l := range a.lists {
		l.n += l.found
	}
	return nil
}

// mark gives nodes that have no number the least of their ranks, which are those from first on.
func (l *ranked[I]) mark(ids []I, first int64) {
	switch l.by {
	case narrowMap:
		markDirect(l.narrow, ids, uint32(l.n+first))
	case wideMap:
		markDirect(l.wide, ids, uint64(l.n+first))
	default:
		markHashed(l.table, ids, uint64(l.n+first))
	}
}

// settle replaces ids by their numbers where they have one, and by ^rank where a place before has the rank of the node.
// The others have their own rank: they stay, and places says where they are. It returns how many they are.
func (l *ranked[I]) settle(ids []I, first int64) int64 {
	places := l.places[first : first+int64(len(ids))]
	switch l.by {
	case narrowMap:
		return settleDirect(l.narrow, ids, places, l.n, first)
	case wideMap:
		return settleDirect(l.wide, ids, places, l.n, first)
	}
	return settleHashed(l.table, ids, places, l.n, first)
}

// enter numbers the nodes that have ranks of a tile; before is how many have ranks of tiles before. After the last round the
// map is left with ranks.
func (l *ranked[I]) enter(ids []I, first, won, before int64, last bool) {
	places := l.places[first : first+int64(len(ids))]
	nodes := l.nodes[l.n+before : l.n+before+won]
	// From the last on: a number is written behind all places that are still to be read.
	for k := won - 1; k >= 0; k-- {
		at := places[k]
		places[at] = int32(before + k)
		nodes[k] = ids[at]
		ids[at] = I(l.n + before + k)
	}
	if last {
		return
	}
	number := l.n + before
	switch l.by {
	case narrowMap:
		enterDirect(l.narrow, nodes, uint32(number))
	case wideMap:
		enterDirect(l.wide, nodes, uint64(number))
	default:
		for k, v := range nodes {
			slot, _ := l.table.find(uint64(v))
			l.table.enter(slot, uint64(v), number+int64(k))
		}
	}
}

// resolve replaces ^rank by the number of the node that has the rank.
func (l *ranked[I]) resolve(ids []I) {
	places, n := l.places, l.n
	for k, id := range ids {
		if id < 0 {
			ids[k] = I(n + int64(places[^id]))
		}
	}
}

// load is an atomic read.
func load[W word](at *W) W {
	if unsafe.Sizeof(*at) == 4 {
		return W(atomic.LoadUint32((*uint32)(unsafe.Pointer(at))))
	}
	return W(atomic.LoadUint64((*uint64)(unsafe.Pointer(at))))
}

// lower stores a rank below a tag, unless there is a lower number below it.
func lower[W word](at *W, tag, rank W) {
	for {
		old := load(at)
		// What has another tag differs by more than any rank.
		if old^tag <= rank {
			return
		}
		if unsafe.Sizeof(*at) == 4 {
			if atomic.CompareAndSwapUint32((*uint32)(unsafe.Pointer(at)), uint32(old), uint32(tag|rank)) {
				return
			}
		} else if atomic.CompareAndSwapUint64((*uint64)(unsafe.Pointer(at)), uint64(old), uint64(tag|rank)) {
			return
		}
	}
}

func markDirect[I csc.Index, W word](d *directMap[W], ids []I, rank W) {
	words, tag := d.words, d.tag
	prefetch.At(words, ids[:min(ahead, len(ids))])
	for len(ids) > 0 {
		now := min(ahead, len(ids))
		prefetch.At(words, ids[now:min(now+ahead, len(ids))])
		for k, v := range ids[:now] {
			lower(&words[v], tag, rank+W(k))
		}
		ids, rank = ids[now:], rank+W(now)
	}
}

func settleDirect[I csc.Index, W word](d *directMap[W], ids []I, places []int32, n, first int64) (won int64) {
	words, tag := d.words, d.tag
	prefetch.At(words, ids[:min(ahead, len(ids))])
	for lo := 0; lo < len(ids); lo += ahead {
		hi := min(lo+ahead, len(ids))
		prefetch.At(words, ids[hi:min(hi+ahead, len(ids))])
		for k := lo; k < hi; k++ {
			v := ids[k]
			number := int64(words[v]^tag) - n
			result := I(number + n)
			if number >= 0 {
				result = ^I(number)
			}
			mine := int64(0)
			if number == first+int64(k) {
				mine = 1
			}
			if mine != 0 {
				result = v
			}
			places[won] = int32(k)
			ids[k] = result
			won += mine
		}
	}
	return won
}

// enterDirect writes the numbers of nodes, which are those from one on.
func enterDirect[I csc.Index, W word](d *directMap[W], nodes []I, number W) {
	words, tag := d.words, d.tag
	prefetch.At(words, nodes)
	for k, v := range nodes {
		words[v] = tag | (number + W(k))
	}
}

// markHashed is markDirect over the table, which has room for all ids.
func markHashed[I csc.Index](h *hashTable, ids []I, rank uint64) {
	for k, v := range ids {
		slot := h.share(uint64(v))
		lower(&h.entries[slot+1], h.tag<<keyBits, rank+uint64(k))
	}
}

func settleHashed[I csc.Index](h *hashTable, ids []I, places []int32, n, first int64) (won int64) {
	for k, v := range ids {
		slot, _ := h.find(uint64(v))
		switch number := h.number(slot) - n; {
		case number < 0:
			ids[k] = I(number + n)
		case number == first+int64(k):
			places[won] = int32(k)
			won++
		default:
			ids[k] = ^I(number)
		}
	}
	return won
}
