package csc

// widen32 writes n numbers of 32 bits as doubles, in an assembler's loop since Go has none of several numbers at a time, and
// in Go's text since a file behind the graph's arrays may have lost its end, which is a panic there.
//
//go:noescape
func widen32(to *float64, from *float32, n int)
