package csc

import (
	"cmp"
	"slices"
	"sort"
)

// Exclusions are the edges that a batch must not sample: for each row that has any, their offsets
// within the row, in ascending order. The zero value excludes nothing.
type Exclusions struct {
	rows map[int64][]int64
}

// Offsets returns the excluded offsets of row v.
func (x *Exclusions) Offsets(v int64) []int64 {
	if x == nil {
		return nil
	}
	return x.rows[v]
}

// Exclude finds the rows and positions of original edge ids. Ids may repeat; an id that the graph
// does not have is an error.
func (g *Relation) Exclude(ids []int64) (*Exclusions, error) {
	positions, err := g.Positions(ids)
	if err != nil {
		return nil, err
	}
	return g.exclusionsAt(positions), nil
}

// ExcludeOf returns the exclusions of a partition of a larger graph, whose edge ids begin at first
// there; it ignores ids of other partitions.
func (g *Relation) ExcludeOf(ids []int64, first int64) *Exclusions {
	if len(ids) == 0 {
		return nil
	}
	g.lookup.Do(g.buildLookup)
	var positions []int64
	for _, id := range ids {
		positions = g.appendPositions(positions, id-first)
	}
	slices.Sort(positions)
	return g.exclusionsAt(slices.Compact(positions))
}

// exclusionsAt are the edges at CSC positions, ascending; nil: none.
func (g *Relation) exclusionsAt(positions []int64) *Exclusions {
	if len(positions) == 0 {
		return nil
	}
	x := &Exclusions{rows: make(map[int64][]int64)}
	for lo := 0; lo < len(positions); {
		// The row of a position is the last whose indptr is at or below it.
		p := positions[lo]
		v := int64(sort.Search(int(g.NumRows()), func(r int) bool { return g.Indptr.Element(int64(r)+1) > p }))
		start, end := g.Indptr.Element(v), g.Indptr.Element(v+1)
		hi := lo
		for hi < len(positions) && positions[hi] < end {
			positions[hi] -= start
			hi++
		}
		x.rows[v] = positions[lo:hi]
		lo = hi
	}
	return x
}

// Positions returns the CSC positions of original edge ids, in ascending order, each once. Ids may
// repeat; an id that the graph, or the graph whose edges these are, does not have is an error.
func (g *Relation) Positions(ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if g.Whole != nil {
		if _, err := g.Whole.Positions(ids); err != nil {
			return nil, err
		}
	}
	g.lookup.Do(g.buildLookup)
	var positions []int64
	for i, id := range ids {
		before := len(positions)
		positions = g.appendPositions(positions, id)
		if len(positions) == before && g.Whole == nil {
			return nil, valueError("exclude[%d]: expected the id of an edge of the graph, got %d", i, id)
		}
	}
	slices.Sort(positions)
	return slices.Compact(positions), nil
}

// Skip returns the offset of the p-th edge of a row that is not excluded.
func Skip(excluded []int64, p int64) int64 {
	// Before excluded[i] there are excluded[i]-i edges that are not excluded.
	return p + int64(sort.Search(len(excluded), func(i int) bool { return excluded[i]-int64(i) > p }))
}

// buildLookup makes the way from an edge id to its position, once per graph: the
// inverse permutation where ids are dense and distinct, a sorted index otherwise.
func (g *Relation) buildLookup() {
	n := g.NumEdges()
	if g.EdgeIDs.Bits == 0 {
		g.identityID = true
		return
	}
	limit := n
	if g.Whole != nil {
		limit = g.Whole.NumEdges()
	}
	inverse := make([]int64, limit)
	for i := range inverse {
		inverse[i] = -1
	}
	for p := range n {
		id := g.EdgeIDs.Element(p)
		if uint64(id) >= uint64(limit) || inverse[id] >= 0 {
			g.sortByID()
			return
		}
		inverse[id] = p
	}
	g.inverse = inverse
}

func (g *Relation) sortByID() {
	g.byID = make([]int64, g.NumEdges())
	for i := range g.byID {
		g.byID[i] = int64(i)
	}
	slices.SortStableFunc(g.byID, func(a, b int64) int { return cmp.Compare(g.EdgeIDs.Element(a), g.EdgeIDs.Element(b)) })
}

func (g *Relation) appendPositions(positions []int64, id int64) []int64 {
	switch {
	case g.identityID:
		if uint64(id) < uint64(g.NumEdges()) {
			positions = append(positions, id)
		}
	case g.inverse != nil:
		if uint64(id) < uint64(len(g.inverse)) && g.inverse[id] >= 0 {
			positions = append(positions, g.inverse[id])
		}
	default:
		i := sort.Search(len(g.byID), func(i int) bool { return g.EdgeIDs.Element(g.byID[i]) >= id })
		for ; i < len(g.byID) && g.EdgeIDs.Element(g.byID[i]) == id; i++ {
			positions = append(positions, g.byID[i])
		}
	}
	return positions
}
