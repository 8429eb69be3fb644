package times

// The constants here are Python's, too: `go generate ./pygsampler/internal/constants`
// writes them down there. This file imports nothing.

// Words at the beginning of rows in the order of time. Offsets are in bytes.
const (
	TimesNumEdges = iota
	TimesNumGiven // times that were given
	TimesIDBits
	TimesEdgeIDBits
	TimesFloat // 1 where they are float64
	TimesIndices
	TimesEdgeIDs
	TimesKeys
	TimesGiven // the keys of the times as they were given
	TimesWords
)
