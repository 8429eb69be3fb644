package request

// MaxFanout is the largest fanout. Python checks arguments by the same number: `go generate
// ./pygsampler/internal/constants` writes it there.
const MaxFanout = 1<<31 - 1
