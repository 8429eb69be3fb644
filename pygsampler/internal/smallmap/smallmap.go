// Package smallmap numbers the nodes of small sets in the order of their first occurrence.
package smallmap

import "math/bits"

// Table holds the numbers of nodes, from 0 on in the order of their first occurrence. The zero
// value is empty. One goroutine may use it at a time.
type Table struct {
	Vertices []int64 // by their numbers; not to be changed

	slots  []int32 // a number and one, by the node; 0: none. At least half are 0.
	places []int32 // the slot of each number, to clear it
	shift  int
}

// Clear forgets all nodes.
func (t *Table) Clear() {
	for _, place := range t.places {
		t.slots[place] = 0
	}
	t.Vertices, t.places = t.Vertices[:0], t.places[:0]
}

// Number returns the number of a node, and whether it is new.
func (t *Table) Number(v int64) (number int32, fresh bool) {
	if 2*(len(t.Vertices)+1) > len(t.slots) {
		t.grow()
	}
	place := t.place(v)
	if at := t.slots[place]; at > 0 {
		return at - 1, false
	}
	t.Vertices, t.places = append(t.Vertices, v), append(t.places, int32(place))
	t.slots[place] = int32(len(t.Vertices))
	return int32(len(t.Vertices) - 1), true
}

// Find returns the number of a node, -1 if it has none.
func (t *Table) Find(v int64) int32 {
	if len(t.Vertices) == 0 {
		return -1
	}
	return t.slots[t.place(v)] - 1
}

// place returns the slot of a node, or its future slot.
func (t *Table) place(v int64) int {
	place := int(uint64(v) * 0x9E3779B97F4A7C15 >> t.shift)
	for t.slots[place] > 0 && t.Vertices[t.slots[place]-1] != v {
		place = (place + 1) & (len(t.slots) - 1)
	}
	return place
}

func (t *Table) grow() {
	size := max(2*len(t.slots), 1<<8)
	t.slots, t.shift = make([]int32, size), 64-bits.TrailingZeros(uint(size))
	for n, v := range t.Vertices {
		place := t.place(v)
		t.slots[place], t.places[n] = int32(n+1), int32(place)
	}
}
