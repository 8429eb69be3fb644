package run

import (
	"testing"
	"unsafe"
)

// A batch's arrays are apart, and all take what they have added to the pages again: once there are enough, nothing is mapped.
func TestArena(t *testing.T) {
	var a arena
	defer a.free()
	sizes := []int64{1, 1000, firstPages / 8, 3 * firstPages / 8, 7, firstPages, 50}
	var before []unsafe.Pointer
	for batch := range 4 {
		var at []unsafe.Pointer
		var all [][]int64
		for i, n := range sizes {
			array := take[int64](&a, n)
			for k := range array {
				array[k] = int64(i)
			}
			all, at = append(all, array), append(at, unsafe.Pointer(&array[0]))
		}
		for i, array := range all {
			if int64(len(array)) != sizes[i] || array[0] != int64(i) || array[len(array)-1] != int64(i) {
				t.Fatalf("batch %d: array %d has something of another", batch, i)
			}
		}
		// The first batches add pages, and the small ones that came first go.
		if batch == 3 {
			for i := range at {
				if at[i] != before[i] {
					t.Errorf("array %d was elsewhere in the batch before", i)
				}
			}
		}
		before = at
		a.reset()
	}
	// An array of half of what is kept, and what comes behind it, stay.
	for range 2 {
		take[byte](&a, mostKept/2)
		take[byte](&a, firstPages)
		a.reset()
	}
	if len(a.pages) == 0 {
		t.Error("pages that are less than the most are not kept")
	}
	// More than is kept goes whole.
	take[byte](&a, mostKept+1)
	a.reset()
	if len(a.pages) != 0 || len(a.last) != 0 {
		t.Errorf("%d pages are kept", len(a.pages))
	}
}
