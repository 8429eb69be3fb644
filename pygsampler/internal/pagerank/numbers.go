package pagerank

import (
	"math/bits"
	"runtime"
)

func workers() int { return runtime.GOMAXPROCS(0) }

// numbers gives vertices numbers from 0 on, in the order in which they are met. The zero
// value has none.
type numbers struct {
	vertices []int64
	slots    []int32 // a number and one, by the vertex; 0: none. At least half are 0.
	places   []int32 // the slot of each number, to clear it
	shift    int
}

// clear forgets all of them.
func (t *numbers) clear() {
	for _, place := range t.places {
		t.slots[place] = 0
	}
	t.vertices, t.places = t.vertices[:0], t.places[:0]
}

// of is a vertex's number, and whether it is a new one.
func (t *numbers) of(v int64) (number int32, fresh bool) {
	if 2*(len(t.vertices)+1) > len(t.slots) {
		t.grow()
	}
	place := t.place(v)
	if at := t.slots[place]; at > 0 {
		return at - 1, false
	}
	t.vertices, t.places = append(t.vertices, v), append(t.places, int32(place))
	t.slots[place] = int32(len(t.vertices))
	return int32(len(t.vertices) - 1), true
}

// place is the slot of a vertex, or where it is to be.
func (t *numbers) place(v int64) int {
	place := int(uint64(v) * 0x9E3779B97F4A7C15 >> t.shift)
	for t.slots[place] > 0 && t.vertices[t.slots[place]-1] != v {
		place = (place + 1) & (len(t.slots) - 1)
	}
	return place
}

func (t *numbers) grow() {
	size := max(2*len(t.slots), 1<<10)
	t.slots, t.shift = make([]int32, size), 64-bits.TrailingZeros(uint(size))
	for n, v := range t.vertices {
		place := t.place(v)
		t.slots[place], t.places[n] = int32(n+1), int32(place)
	}
}
