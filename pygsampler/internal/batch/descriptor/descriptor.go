// Package descriptor describes the results of the engine: a result is one memory region that begins
// with a header of 64-bit words, and a directory of descriptors says which words locate each array
// in the region. Directories are stored next to the headers; `go generate
// ./pygsampler/internal/constants` writes both for Python and the kernels.
package descriptor

// Descriptor describes one array of a result. Its offset is in bytes from the start of the memory; an
// offset of 0 means that the result has no such array.
type Descriptor struct {
	Name   string // what views call it
	DType  string // "int64", "uint64", "float32"; "": integers as wide as the word Bits says
	Bits   int
	Length int // the word that says how many elements it has
	More   int // beyond those
	Offset int // the word that says where it begins
}
