package request

// MaxFanout is the largest fanout. Python checks arguments by the same: `go generate
// ./pygsampler/internal/constants` writes it down there.
const MaxFanout = 1<<31 - 1
