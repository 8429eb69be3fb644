package cpu

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
	"github.com/pygsampler/pygsampler/pygsampler/internal/memory"
	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
)

// Many workers number the neighbors of a hop by rank, which is a neighbor's position in the hop's
// list: every new node gets the least rank at which it occurs, independent of the order of the
// workers, and the nodes with a rank are numbered in the order of ranks. The numbers equal those of
// claims in order. The list is read four times instead of once, so that claims in order are faster
// for few workers.

const (
	// rankedWorkers is from how many workers on ranks are faster. On 16 cores a batch of 1024 seeds and three hops took 5.1 ms
	// by ranks and 4.1 by claims with four workers, 3.0 and 3.9 with eight, 2.2 and 4.0 with sixteen.
	rankedWorkers = 6
	// rankedEdges is the number of edges from which on a hop is numbered by rank: its three further
	// phases take as long as some thousand claims.
	rankedEdges = 1 << 14
	// roundEdges is the number of edges that are numbered at a time, which bounds the working
	// memory to 16 MiB.
	roundEdges = 1 << 22
)

// byRank reports whether a hop of edges edges is numbered by rank.
func (t *team) byRank(edges int64) bool { return t.size >= rankedWorkers && edges >= rankedEdges }

// rankScratch is reused between batches. One batch uses it at a time.
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
	// In the round:
	edges int64
	found int64
	// By rank: the rank itself if it is the rank of its node, else a lower rank of the same node.
	// Then numbers replace the ranks of nodes, as ^number, counted from n.
	places []int32
}

// room returns the number of ranks that fit in addition to the numbers.
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

// rankedTiles describes tiles that are numbered by rank.
type rankedTiles[I csc.Index] struct {
	count int64
	last  bool // nobody asks for the numbers of nodes once all tiles have theirs
	lists []*ranked[I]
	// list numbers a tile's nodes, size is the number of its edges, ids its part of the block once
	// it is drawn.
	list func(tile int64) *ranked[I]
	size func(tile int64) int64
	ids  func(tile int64) []I
	draw func(worker int, tile int64)
}

// number draws tiles on all workers and numbers their neighbors in place, with the same result as
// claims in the order of tiles. It returns early if stop is set.
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
		r.won[i] = a.list(i).count(r.firsts[i], len(a.ids(i)))
	}) {
		return err
	}
	for i := lo; i < hi; i++ {
		l := a.list(i)
		r.before[i] = l.found
		l.found += r.won[i]
	}
	if !phase(func(_ int, i int64) {
		a.list(i).enter(a.ids(i), r.firsts[i], r.before[i], a.last && hi == a.count)
	}) || !phase(func(_ int, i int64) {
		a.list(i).resolve(a.ids(i), r.firsts[i])
	}) {
		return err
	}
	for _, l := range a.lists {
		l.n += l.found
	}
	return nil
}

// mark gives nodes without a number the least of their ranks, which begin at first. Ids of nodes
// with a number become numbers.
func (l *ranked[I]) mark(ids []I, first int64) {
	switch l.by {
	case narrowMap:
		markDirect(l.narrow, ids, l.places, uint32(l.n), first)
	case wideMap:
		markDirect(l.wide, ids, l.places, uint64(l.n), first)
	default:
		markHashed(l.table, ids, l.places, uint64(l.n), first)
	}
}

// count returns the number of nodes whose rank is one of the size ranks of a tile from first on.
func (l *ranked[I]) count(first int64, size int) (won int64) {
	for k, place := range l.places[first : first+int64(size)] {
		mine := int64(0)
		if place == int32(first)+int32(k) {
			mine = 1
		}
		won += mine
	}
	return won
}

// enter numbers the nodes that have ranks of a tile; before is the number of nodes with ranks of
// earlier tiles. After the last round the map still holds ranks.
func (l *ranked[I]) enter(ids []I, first, before int64, last bool) {
	places := l.places[first : first+int64(len(ids))]
	var mine [ahead]int32
	for lo := 0; lo < len(ids); lo += ahead {
		now := places[lo:min(lo+ahead, len(ids))]
		// Half of all places are nodes' ranks in no order: a branch there would be mispredicted.
		won := 0
		for k, place := range now {
			mine[won&(ahead-1)] = int32(k)
			one := 0
			if place == int32(first)+int32(lo+k) {
				one = 1
			}
			won += one
		}
		number := l.n + before
		nodes := l.nodes[number : number+int64(won)]
		for j, k := range mine[:won] {
			nodes[j] = ids[lo+int(k)]
			ids[lo+int(k)] = I(number + int64(j))
			now[k] = ^int32(before + int64(j))
		}
		before += int64(won)
		if !last {
			l.store(nodes, number)
		}
	}
}

// store writes the numbers of nodes, which begin at number, to the map.
func (l *ranked[I]) store(nodes []I, number int64) {
	switch l.by {
	case narrowMap:
		storeDirect(l.narrow, nodes, uint32(number))
	case wideMap:
		storeDirect(l.wide, nodes, uint64(number))
	default:
		for k, v := range nodes {
			slot, _ := l.table.find(uint64(v))
			l.table.enter(slot, uint64(v), number+int64(k))
		}
	}
}

// resolve numbers the neighbors that are the same nodes as others with lower ranks.
func (l *ranked[I]) resolve(ids []I, first int64) {
	places, n := l.places, l.n
	for k, place := range places[first : first+int64(len(ids))] {
		if place < 0 {
			continue
		}
		for place >= 0 {
			place = places[place]
		}
		ids[k] = I(n + int64(^place))
	}
}

// load is an atomic read.
func load[W word](at *W) W {
	if unsafe.Sizeof(*at) == 4 {
		return W(atomic.LoadUint32((*uint32)(unsafe.Pointer(at))))
	}
	return W(atomic.LoadUint64((*uint64)(unsafe.Pointer(at))))
}

// exchange stores a word if the old word is still there.
func exchange[W word](at *W, old, word W) bool {
	if unsafe.Sizeof(*at) == 4 {
		return atomic.CompareAndSwapUint32((*uint32)(unsafe.Pointer(at)), uint32(old), uint32(word))
	}
	return atomic.CompareAndSwapUint64((*uint64)(unsafe.Pointer(at)), uint64(old), uint64(word))
}

// known is the place of a neighbor that had a number before the round.
const known = math.MinInt32

// replace gives the node of a word the rank r, unless the node has a lower rank by now. Places then
// holds the rank that the node was found with, or r; a rank that r replaces gets r as its place. So
// places lead from every rank to lower ranks of the same node, down to its least.
func replace[W word](at *W, tag, limit, n W, rank int64, places []int32) {
	for {
		old := load(at)
		number := old ^ tag
		if number < n+W(rank) {
			places[rank] = int32(number - n)
			return
		}
		// The exchange shows it to those who replace this rank.
		places[rank] = int32(rank)
		if exchange(at, old, tag|(n+W(rank))) {
			if number < limit {
				places[number-n] = int32(rank)
			}
			return
		}
	}
}

// markDirect takes two loops for some ids at a time: exchanges wait for all that is before them, and the first, without
// any, has no branches that would be mispredicted.
func markDirect[I csc.Index, W word](d *directMap[W], ids []I, places []int32, n W, first int64) {
	words, tag, limit := d.words, d.tag, d.limit
	var open [ahead]uint8
	prefetch.Elements(words, ids[:min(ahead, len(ids))])
	for lo := 0; lo < len(ids); lo += ahead {
		hi := min(lo+ahead, len(ids))
		prefetch.Elements(words, ids[hi:min(hi+ahead, len(ids))])
		now, rank := ids[lo:hi], first+int64(lo)
		mine := places[rank : rank+int64(len(now))]
		count := 0
		for k, v := range now {
			number := load(&words[v]) ^ tag
			place := int32(number - n)
			if number < n {
				place = known
			}
			mine[k] = place
			result := v
			if number < n {
				result = I(number)
			}
			ids[lo+k] = result
			open[count&(ahead-1)] = uint8(k)
			one := 0
			if number > n+W(rank)+W(k) {
				one = 1
			}
			count += one
		}
		for _, k := range open[:count] {
			replace(&words[now[k]], tag, limit, n, rank+int64(k), places)
		}
	}
}

// storeDirect writes the numbers of nodes, which begin at number.
func storeDirect[I csc.Index, W word](d *directMap[W], nodes []I, number W) {
	words, tag := d.words, d.tag
	prefetch.Elements(words, nodes)
	for k, v := range nodes {
		words[v] = tag | (number + W(k))
	}
}

// markHashed is markDirect over the table, which has room for all ids.
func markHashed[I csc.Index](h *hashTable, ids []I, places []int32, n uint64, first int64) {
	tag, limit := h.tag<<keyBits, uint64(1)<<keyBits
	var slots [2][ahead]int64
	next := homes(h, ids, &slots[0])
	for lo := 0; lo < len(ids); lo += ahead {
		now := next
		next = homes(h, ids[min(lo+ahead, len(ids)):], &slots[(lo/ahead+1)%2])
		for k, slot := range now {
			at := &h.entries[h.share(int(slot), uint64(ids[lo+k]))+1]
			rank := first + int64(lo+k)
			if number := load(at) ^ tag; number < n {
				ids[lo+k], places[rank] = I(number), known
				continue
			}
			replace(at, tag, limit, n, rank, places)
		}
	}
}
