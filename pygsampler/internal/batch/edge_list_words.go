package batch

// The constants here are those of Python too, as words.go says. This file imports nothing.

// Words of the hops of a batch, joined. Behind them come for each type the seeds, and how many
// nodes each hop found; how many of its nodes there are in all; for each relation how many edges
// each hop has; the width of its edge ids; and how many factors it has, -1 for none. A batch without
// types has one of each. Then come the lengths of the pieces that all of the memory is: as integers of
// 64 bits, and of 32.
//
// The first piece of either is not to be used. In that of the ids' width follow the nodes of all
// types, and behind them their trees where there are any; the sources of each relation's edges; and the
// targets of each. In both follow one more that is not to be used, and the ids of edges of that width;
// in that of 32 bits again one, and the factors. The last one is not to be used.
const (
	HopsNumWords     = iota
	HopsSize         // in bytes, a multiple of 8
	HopsIDBits       //
	HopsNumHops      //
	HopsNumTypes     //
	HopsNumRelations //
	HopsTrees        // whether nodes have trees
	HopsInOrder      // whether the targets of each relation do not fall
	HopsWide         // how many pieces there are of 64 bits
	HopsNarrow       // and of 32; 0 where none is used
	HopsWords        = 16
)

// HopsRoom is the number of words that may be read at once: the memory is not smaller.
const HopsRoom = 64
