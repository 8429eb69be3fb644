package cpu

import (
	"github.com/pygsampler/pygsampler/pygsampler/internal/graph/csc"
)

// NodeMap assigns local numbers to nodes by first occurrence, for other engines than this one. It
// serves one numbering at a time, and is reused without clearing; the zero value is ready. Free
// releases its memory.
type NodeMap struct {
	// Limit bounds the bytes of a map of all nodes; 0: DefaultMapBytes.
	Limit  int64
	narrow directMap[uint32]
	wide   directMap[uint64]
	table  hashTable
	nodes  int64
	by     numbering
}

// Begin starts a numbering of at most most of nodes nodes.
func (m *NodeMap) Begin(nodes, most int64) error {
	most = min(most, nodes)
	m.nodes = nodes
	limit := m.Limit
	if limit == 0 {
		limit = DefaultMapBytes
	}
	switch {
	case most < narrowNumbers && nodes*4 <= limit:
		m.by = narrowMap
		return m.narrow.begin(nodes, m.fewest(most))
	case most >= narrowNumbers && most < wideNumbers && nodes*8 <= limit:
		m.by = wideMap
		return m.wide.begin(nodes, wideNumbers)
	}
	m.by = hashed
	m.table.begin()
	return nil
}

// fewNumbers exceeds the size of most numberings: with fewer bits per number there are more tags.
// With eight bits of tags a map was cleared every forty batches of LADIES, which took as long as
// one of them.
const fewNumbers = 1 << 20

// fewest returns a limit of the narrow map's numbers: the limit of the last numbering, if it is
// sufficient, since tags above another limit are meaningless.
func (m *NodeMap) fewest(most int64) uint32 {
	limit := max(m.narrow.limit, fewNumbers)
	if most >= int64(limit) {
		limit = narrowNumbers
	}
	if limit != m.narrow.limit {
		clear(m.narrow.words)
		m.narrow.tag = 0
	}
	return limit
}

// Narrow returns the words of the map of a numbering: the number of a node is the difference of its
// word and the tag, if that is below the limit. ok is false if the numbering uses another map.
func (m *NodeMap) Narrow() (words []uint32, tag, limit uint32, ok bool) {
	if m.by != narrowMap {
		return nil, 0, 0, false
	}
	return m.narrow.words[:m.nodes], m.narrow.tag, m.narrow.limit, true
}

// Claim replaces ids by their numbers, of which n exist so far, and appends new nodes to nodes[:n];
// it returns the new n. nodes has room for one more than all nodes of the numbering.
func Claim[I csc.Index](m *NodeMap, ids, nodes []I, n int64) (int64, error) {
	switch m.by {
	case narrowMap:
		return claimDirect(&m.narrow, ids, nodes, n), nil
	case wideMap:
		return claimDirect(&m.wide, ids, nodes, n), nil
	}
	if err := Reserve(m, int64(len(ids)), nodes, n); err != nil {
		return n, err
	}
	return claimHashed(&m.table, ids, nodes, n), nil
}

// Reserve makes room for up to more new nodes after the first n of nodes, so that Claim has it.
func Reserve[I csc.Index](m *NodeMap, more int64, nodes []I, n int64) error {
	if m.by == narrowMap || m.by == wideMap {
		return nil
	}
	return m.table.reserve(min(n+more, m.nodes), n, func(i int64) uint64 { return uint64(nodes[i]) })
}

// Find replaces ids by their numbers, or by -1 if they have none.
func Find[I csc.Index](m *NodeMap, ids []I) {
	switch m.by {
	case narrowMap:
		findDirect(&m.narrow, ids)
	case wideMap:
		findDirect(&m.wide, ids)
	default:
		for k, v := range ids {
			ids[k] = -1
			if len(m.table.entries) == 0 {
				continue
			}
			if slot, found := m.table.find(uint64(v)); found {
				ids[k] = I(m.table.number(slot))
			}
		}
	}
}

func findDirect[I csc.Index, W word](d *directMap[W], ids []I) {
	for k, v := range ids {
		number := d.words[v] ^ d.tag
		at := I(number)
		if number >= d.limit {
			at = -1
		}
		ids[k] = at
	}
}

// Free releases the memory.
func (m *NodeMap) Free() {
	m.narrow.free()
	m.wide.free()
	if m.table.pages != nil {
		m.table.pages.Free()
	}
	*m = NodeMap{}
}

// Bytes returns the size of the memory.
func (m *NodeMap) Bytes() int64 {
	return int64(len(m.narrow.words))*4 + int64(len(m.wide.words)+len(m.table.entries))*8
}
