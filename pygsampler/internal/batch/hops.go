package batch

// The constants here are those of Python too, as words.go says. This file imports nothing.

// Words of the hops of a batch, joined. Behind them come how many vertices each type has; of each
// how many each hop found, the seeds first; how many edges each relation has; of each how many each
// hop has; the width of each one's edge ids; and how many factors each has, -1 for none. A batch
// without types has one of each.
//
// At the first offset are the vertices of each type, one behind another, their trees where there are
// any, the sources of each relation's edges, and the targets; at the next two the ids of edges that
// have 64 bits, and those of 32; at the last one factors, each relation after the one before.
const (
	HopsNumWords     = iota
	HopsSize         // in bytes, a multiple of 8
	HopsIDBits       //
	HopsNumHops      //
	HopsNumTypes     //
	HopsNumRelations //
	HopsTrees        // whether vertices have trees
	HopsInOrder      // whether the targets of each relation do not fall
	HopsIDs          //
	HopsWideIDs      //
	HopsNarrowIDs    //
	HopsEdgeWeights  //
	HopsWords        = 16
)
