package walk

import (
	"sort"

	"github.com/pygsampler/pygsampler/pygsampler/internal/prefetch"
	"github.com/pygsampler/pygsampler/pygsampler/internal/rng"
)

// chooseSecond is choose for node2vec (Grover and Leskovec): an edge to x has its weight times 1/p
// if x is the previous node t of the walk, times 1 if an edge leads from x to t, and times 1/q
// otherwise. Edges are proposed by weight only, for a number of tries, and accepted with a
// probability; the excess of 1/p above the bound of the others is a separate area, in which a try
// takes an edge back. If all tries fail, the edge is drawn by the sums of the row, which is the
// same law, since failures carry no information about the row.
//
// Walks advance independently: a walk that refuses an edge tries another while others go on, so
// that many reads are always in flight.
func (u *unit[P, I]) chooseSecond() {
	first, moving := u.asking[:0], u.moving[:0]
	for _, i := range u.moving {
		switch {
		case u.degree[i] == 1:
			u.pos[i] = u.start[i]
			moving = append(moving, i)
		case u.last[i] < 0:
			first = append(first, i)
		default:
			u.tried[i], u.begun[i] = 0, u.draws[i]
			if u.chance.Extra > 0 {
				u.backs[i], u.most[i] = unknown, u.mostArea(i)
			}
			u.open = append(u.open, i)
		}
	}
	u.propose(first)
	u.moving = append(moving, first...)
	u.try()
}

// unknown marks edges back that have not been looked up.
const unknown = -1

// mostArea is a bound of the area that the edges back have. Few coins fall below it, and most walks need
// not look for such edges.
func (u *unit[P, I]) mostArea(i int32) uint64 {
	if u.Relation.Sums != nil || u.joined == nil {
		return one
	}
	return u.chance.Area(uint64(min(u.joined.parallel, u.degree[i])), uint64(u.degree[i]))
}

// findBack finds the edges that lead back, and how large the area is that they have.
func (u *unit[P, I]) findBack(walks []int32) {
	for _, i := range walks {
		u.proposed[i] = u.at[i]
		u.backs[i], u.area[i] = 0, 0
	}
	walks = u.perhaps(walks)
	for _, i := range walks {
		u.lo[i], u.hi[i], u.proposed[i] = u.start[i], u.start[i]+u.degree[i], u.last[i]
	}
	u.search(u.indices, walks)
	for _, i := range walks {
		end, n, t := u.start[i]+u.degree[i], int64(0), u.last[i]
		for at := u.lo[i]; at+n < end && u.indices[at+n] == t; n++ {
			if n == fewBack {
				// A row of parallel edges, perhaps.
				n += int64(sort.Search(int(end-at-n), func(j int) bool { return u.indices[at+n+int64(j)] > t }))
				break
			}
		}
		if u.back[i], u.backs[i] = u.lo[i], n; n > 0 {
			u.area[i] = u.chance.Area(u.weight(i, u.back[i], n), u.weight(i, u.start[i], u.degree[i]))
		}
	}
}

// perhaps returns the walks for which an edge may lead from the proposed node to the previous one.
func (u *unit[P, I]) perhaps(walks []int32) []int32 {
	if u.joined == nil {
		return walks
	}
	words := u.joined.words
	at := u.scratch[:0]
	for _, i := range walks {
		word, mask := pairAt(uint64(u.last[i]), uint64(u.proposed[i]), uint64(len(words)))
		at, u.mask[i] = append(at, word), mask
	}
	prefetch.Elements(words, at)
	found := u.lists[5][:0]
	for j, i := range walks {
		if words[at[j]]&u.mask[i] == u.mask[i] {
			found = append(found, i)
		}
	}
	return found
}

// fewBack is up to how many edges between two nodes are looked at one after the other.
const fewBack = 8

// search moves lo of each walk to the first place in [lo, hi) of sorted ids that is not below what is
// proposed to it, or to hi. All search side by side, so that their reads do.
func (u *unit[P, I]) search(ids []I, walks []int32) {
	left := u.lists[4][:0]
	for _, i := range walks {
		if u.lo[i] < u.hi[i] {
			left = append(left, i)
		}
	}
	for len(left) > 0 {
		middle := u.scratch[:0]
		for _, i := range left {
			middle = append(middle, (u.lo[i]+u.hi[i])/2)
		}
		prefetch.Elements(ids, middle)
		searching := left
		left = left[:0]
		for j, i := range searching {
			if at := middle[j]; ids[at] < u.proposed[i] {
				u.lo[i] = at + 1
			} else {
				u.hi[i] = at
			}
			if u.lo[i] < u.hi[i] {
				left = append(left, i)
			}
		}
	}
}

// weight returns the weight of n edges from a position on, in the row of a walk; for uniform walks
// their number.
func (u *unit[P, I]) weight(i int32, at, n int64) uint64 {
	return weightOf(u.Relation.Sums, u.start[i], at, n)
}

// weightOf returns the weight of n edges from a position on, in the row that begins at start.
func weightOf(sums []uint64, start, at, n int64) uint64 {
	if sums == nil || n == 0 {
		return uint64(n)
	}
	if at == start {
		return sums[at+n-1]
	}
	return sums[at+n-1] - sums[at-1]
}

// rank is the place of the edge in whose part of the weight of n edges a rank falls.
func (u *unit[P, I]) rank(i int32, at, n int64, rank uint64) int64 {
	return rankOf(u.Relation.Sums, u.start[i], at, n, rank)
}

// rankOf is likewise of the row that begins at start.
func rankOf(sums []uint64, start, at, n int64, rank uint64) int64 {
	if sums == nil {
		return at + int64(rank)
	}
	if at > start {
		rank += sums[at-1]
	}
	return at + int64(sort.Search(int(n), func(j int) bool { return sums[at+int64(j)] > rank }))
}

// try proposes an edge to each open walk: those that take it move, those that refuse stay open.
func (u *unit[P, I]) try() {
	left, proposing := u.open[:0], u.asking[:0]
	if u.chance.Extra > 0 {
		looking := u.lists[6][:0]
		for _, i := range u.open {
			u.coin[i] = Coin(rng.Draw(u.begun[i], firstTry+tryDraws*u.tried[i]+2))
			if u.coin[i] < u.most[i] && u.backs[i] == unknown {
				looking = append(looking, i)
			}
		}
		u.findBack(looking)
	}
	for _, i := range u.open {
		first := firstTry + tryDraws*u.tried[i]
		draw := rng.Draw(u.begun[i], first)
		if u.chance.Extra > 0 && u.coin[i] < u.most[i] && u.coin[i] < u.area[i] {
			u.pos[i] = u.rank(i, u.back[i], u.backs[i], rng.Below(draw, u.weight(i, u.back[i], u.backs[i])))
			u.moving = append(u.moving, i)
			continue
		}
		u.coin[i] = Coin(rng.Draw(u.begun[i], first+1))
		u.draws[i] = draw
		proposing = append(proposing, i)
	}
	u.propose(proposing)
	fetchAt(u.indices, u.pos[:], proposing, u.scratch[:])
	surely, never := min(u.chance.Common, u.chance.Far), max(u.chance.Common, u.chance.Far)
	asking, refused := proposing[:0], u.lists[6][:0]
	for _, i := range proposing {
		x := u.indices[u.pos[i]]
		switch {
		case x == u.last[i]:
			if u.coin[i] < u.chance.Return {
				u.moving = append(u.moving, i)
			} else {
				refused = append(refused, i)
			}
		case u.coin[i] < surely:
			u.moving = append(u.moving, i)
		case u.coin[i] >= never:
			refused = append(refused, i)
		default:
			u.proposed[i] = x
			asking = append(asking, i)
		}
	}
	u.adjacent(asking)
	for _, i := range asking {
		chance := u.chance.Far
		if u.lo[i] >= 0 {
			chance = u.chance.Common
		}
		if u.coin[i] < chance {
			u.moving = append(u.moving, i)
		} else {
			refused = append(refused, i)
		}
	}
	for _, i := range refused {
		if u.tried[i]++; u.tried[i] < tries {
			left = append(left, i)
			continue
		}
		u.finish(i)
		u.moving = append(u.moving, i)
	}
	u.open = left
}

// adjacent writes to lo, for each walk, the edge from the proposed node to the previous one: its
// position in the row of the transposed graph, or -1.
func (u *unit[P, I]) adjacent(walks []int32) {
	for _, i := range walks {
		u.lo[i] = -1
	}
	walks = u.perhaps(walks)
	back := u.Relation.Back
	rows := u.scratch[:0]
	for _, i := range walks {
		rows = append(rows, int64(u.last[i]))
	}
	if back.Indptr.Bits == 32 {
		prefetch.Elements(back.Indptr.I32, rows)
	} else {
		prefetch.Elements(back.Indptr.I64, rows)
	}
	for _, i := range walks {
		u.lo[i], u.hi[i] = 0, 0
		if t := int64(u.last[i]); t < back.NumRows() {
			u.lo[i], u.hi[i] = back.Indptr.Element(t), back.Indptr.Element(t+1)
		}
		u.edge[i] = u.hi[i]
	}
	ids := indicesOf[I](back)
	u.search(ids, walks)
	for _, i := range walks {
		if u.lo[i] == u.edge[i] || ids[u.lo[i]] != u.proposed[i] {
			u.lo[i] = -1
		}
	}
}

// finish draws an edge by what all edges of the row weigh.
func (u *unit[P, I]) finish(i int32) {
	var classes [3]uint64
	each := func(see func(at int64, class int) bool) {
		for at := u.start[i]; at < u.start[i]+u.degree[i]; at++ {
			class := 2
			if u.proposed[i] = u.indices[at]; u.proposed[i] == u.last[i] {
				class = 0
			} else if u.adjacent([]int32{i}); u.lo[i] >= 0 {
				class = 1
			}
			if see(at, class) {
				return
			}
		}
	}
	each(func(at int64, class int) bool {
		classes[class] += u.weight(i, at, 1)
		return false
	})
	chosen := u.chance.Class(rng.Draw(u.begun[i], classDraw), classes[0], classes[1], classes[2])
	rank := rng.Below(rng.Draw(u.begun[i], rankDraw), classes[chosen])
	each(func(at int64, class int) bool {
		if class != chosen {
			return false
		}
		w := u.weight(i, at, 1)
		if rank < w {
			u.pos[i] = at
			return true
		}
		rank -= w
		return false
	})
}
