package csc

// The most nodes that a graph can have, since random numbers are drawn for a node
// by 48 bits of its id, and one of int32 ids. Python checks
// arguments by the same: `go generate ./pygsampler/internal/constants` writes them down
// there.
const (
	MaxNodes   = 1 << 48
	MaxNodes32 = 1 << 31
	MaxKinds   = 1 << 15 // types of edges that rows are split by
)
