package batch

// Python uses these constants, too (see words.go). This file imports nothing.

// Words of the edge lists of a batch. For each type they are followed by the number of seeds, and of
// the nodes that each hop found, and by the number of its nodes; for each relation by the number of
// edges of each hop, the width of its edge ids, and the number of factors, -1 for none. A batch of a
// homogeneous graph has one type and one relation. The lengths of the pieces of the memory come last:
// first of 64-bit integers, then of 32-bit ones.
//
// The first piece of either width is not used. The pieces of the width of the ids continue with the
// nodes of all types, followed by their trees if there are any; the sources of each relation's edges;
// and the targets of each. Another unused piece follows in both widths, and the edge ids of that
// width; in 32 bits another unused one, and the factors. The last piece is not used.
const (
	HopsNumWords     = iota
	HopsSize         // in bytes, a multiple of 8
	HopsIDBits       //
	HopsNumHops      //
	HopsNumTypes     //
	HopsNumRelations //
	HopsTrees        // 1 if nodes have trees
	HopsInOrder      // 1 if the targets of each relation are in ascending order
	HopsWide         // number of pieces of 64 bits
	HopsNarrow       // and of 32; 0 if none is used
	HopsWords        = 16
)

// HopsRoom is the number of words that may be read at once: the memory is not smaller.
const HopsRoom = 64
