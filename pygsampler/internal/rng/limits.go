package rng

// Limits of the counter's fields. Python checks arguments by the same: `go generate
// ./pygsampler/internal/constants` writes them down there.
const (
	MaxVertex = 1<<48 - 1
	MaxBatch  = 1<<40 - 1
	MaxEpoch  = 1<<24 - 1
	MaxHops   = 1 << 8
)
