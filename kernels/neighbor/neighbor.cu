// The L-hop uniform sampler in one cooperative persistent launch.
//
// Source: PGSampler, sections III-B and III-C: all hops in one kernel, persistent blocks. Unlike the
// paper's queue (research/queue.cu) the hops stay in phases here, since canonical numbering needs an order.
//
// Numbering by first occurrence without a sort. Every edge of a batch has a rank: the edges of earlier
// hops (the seeds count as a hop of their own), then the edge's position in its hop. A map of all
// vertices holds, under the launch's tag, the smallest rank at which a vertex occurred, found by
// atomicMin, and later the vertex's number. Ranks grow from hop to hop and numbers stay below them, so
// a claim of a later hop never displaces an earlier one.
//
// A map that no cache holds costs a read and a write of device memory for each claim and a read for
// each look. So large hops of large graphs are binned instead: each edge puts (vertex, rank) into one
// of some thousand bins, a hash of the vertex says which; then each bin is small enough for a table in
// shared memory, which answers every edge of the bin with its vertex's lowest rank. Vertices that have
// numbers go into the bins too. The map knows nothing of a binned hop, hence all later hops are binned.
//
// Phases of a hop, and what separates them:
//   draw    rows: choose, gather, claim                                              meeting
//   (answer bins                                                                     meeting)
//   check   edges, in equal slices: a first occurrence when the lowest rank is its
//           own, else the edge's number or the edge to ask for it; rows of the new
//           vertices are read                                                        sums
//   number  first occurrences get their numbers, in order
//   settle  (a hop later) edges that asked another edge get its number
// The sums tell each block its first new number and the place of its next rows' edges. A large hop
// reads the new rows only when it numbers them, and then needs sums of its own for the edges.
// Rows may be drawn once instead, at the hop after the one that found them (PyG); and each seed may have
// a tree of its own, whose pairs of tree and vertex have their map in a table (disjoint_map.cuh).
// The seeds are claimed as if they were distinct, as they nearly always are: then their numbers are
// their positions. Else they are numbered like a hop.
//
// Who draws which rows. The rows that a block has just numbered are the only ones whose place among
// the edges it knows without another exchange, so it draws them and an equal slice of the older rows.
// First occurrences are more frequent at the front of a hop, which makes these parts unequal: a large
// hop deals all rows anew, which costs one more exchange.
//
// Tags fall from launch to launch: an old entry is larger than any new one, so the map is never
// cleared. When they run out the host fills it with ones. A word of the map has 32 bits, of which ranks
// take as many as the batch needs, or 64 (hop.cuh, Go: internal/engine/cuda/node_map.go).
//
// Several batches in one launch, as gSampler's super-batches: each row of the grid makes one, in memory
// of its own, and knows nothing of the others. What says blocks of all here are those of the row.
//
// Parts: hop.cuh, draw.cuh, renumber.cuh, disjoint_map.cuh, phases.cuh; weighted.cu has the same for weights.
// Go callers: internal/engine/cuda/neighbor.go and many.go. Go twin: internal/engine/cpu/neighbor.go and rows.go.
#include "neighbor/phases.cuh"

KERNEL(neighbor32, int, PLAIN)
KERNEL(neighbor64, long long, PLAIN)
KERNEL(neighbor32_bins, int, WITH_BINS)
KERNEL(neighbor64_bins, long long, WITH_BINS)
KERNEL(neighbor32_any, int, WITH_ALL)
KERNEL(neighbor64_any, long long, WITH_ALL)
KERNEL(neighbor32_trees, int, WITH_TREES)
KERNEL(neighbor64_trees, long long, WITH_TREES)
KERNEL_OF_MANY(neighbor32_many, int, PLAIN)
KERNEL_OF_MANY(neighbor64_many, long long, PLAIN)
