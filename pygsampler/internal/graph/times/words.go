package times

// The constants here are Python's, too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words at the beginning of rows in the order of time. Offsets are in bytes.
const (
	TimesNumEdges = iota
	TimesNumGiven // number of times as the caller passed them
	TimesIDBits
	TimesEdgeIDBits
	TimesFloat // 1 where they are float64
	TimesIndices
	TimesEdgeIDs
	TimesKeys
	TimesGiven // the keys of the times as the caller passed them
	TimesWords
)
