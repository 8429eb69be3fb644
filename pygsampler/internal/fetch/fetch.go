// Package fetch asks the memory for what is read later.
package fetch

import "unsafe"

// Element is what tables and places are made of.
type Element interface {
	~int32 | ~int64 | ~uint32 | ~uint64
}

// most is up to how many places At looks at.
const most = 4096

// At asks the memory for the elements of a table at so many places, for a loop that
// reads them later. A loop of reads has as many under way as the core can hold
// instructions; this one, which waits for none, as many as the memory takes: weighted
// batches with replacement take about two thirds of their time with it. Places beyond the table
// do no harm.
func At[T, I Element](table []T, at []I) {
	if len(at) == 0 || len(table) == 0 {
		return
	}
	// What the first-level cache has no room for is gone before it is read.
	at = at[:min(len(at), most)]
	t, a := unsafe.Pointer(&table[0]), unsafe.Pointer(&at[0])
	switch [2]uintptr{unsafe.Sizeof(table[0]), unsafe.Sizeof(at[0])} {
	case [2]uintptr{4, 4}:
		fetch32by32(t, a, len(at))
	case [2]uintptr{4, 8}:
		fetch32by64(t, a, len(at))
	case [2]uintptr{8, 4}:
		fetch64by32(t, a, len(at))
	default:
		fetch64by64(t, a, len(at))
	}
}

// All is At of a whole table, a line at a time.
func All[T any](table []T) {
	if len(table) > 0 {
		fetchLines(unsafe.Pointer(&table[0]), len(table)*int(unsafe.Sizeof(table[0])))
	}
}
