// The L-hop uniform sampler in one cooperative persistent launch.
//
// Source: PGSampler, sections III-B and III-C: all hops in one kernel, persistent blocks. Unlike the
// paper's queue (research/queue.cu) the hops remain separate phases here, since canonical numbering
// needs an order.
//
// Numbering by first occurrence without a sort. Every edge of a batch has a rank: the number of
// edges of earlier hops (the seeds count as a separate hop), plus the edge's position in its hop. A
// map of all nodes holds, under the launch's tag, the smallest rank at which a node occurred, found
// by atomicMin, and later the node's number. Ranks grow from hop to hop and numbers stay below them,
// so a claim of a later hop never displaces an earlier one.
//
// A map that exceeds the caches costs a read and a write of device memory for each claim and a read
// for each lookup. So large hops of large graphs are binned instead: each edge writes (node, rank)
// into one of some thousand bins, by a hash of the node; then each bin is small enough for a table in
// shared memory, which returns the lowest rank of the node to every edge of the bin. Nodes that have
// numbers are written to the bins, too. The map does not contain the nodes of a binned hop, hence all
// later hops are binned.
//
// Phases of a hop, and the synchronization after each:
//   draw    rows: choose, gather, claim                                              barrier
//   (answer bins                                                                     barrier)
//   check   edges, in equal slices: a first occurrence if the lowest rank is its
//           own, else the edge's number or the edge that will have it; rows of the
//           new nodes are read                                                       sums
//   number  first occurrences get their numbers, in order
//   settle  (a hop later) edges that refer to another edge get its number
// The sums tell each block its first new number and the position of its next rows' edges. A large
// hop reads the new rows only when it numbers them, and then needs separate sums for the edges.
// Rows may be drawn only once, at the hop after the one that found them (PyG); and each seed may have
// its own tree, whose pairs of tree and node have their map in a table (disjoint_map.cuh).
// The seeds are claimed as if they were distinct, as they nearly always are: then their numbers are
// their positions. Otherwise they are numbered like a hop.
//
// Distribution of rows. The rows that a block has just numbered are the only ones whose position
// among the edges it knows without another exchange, so it draws them and an equal slice of the
// older rows. First occurrences are more frequent at the front of a hop, which makes these parts
// unequal: a large hop redistributes all rows, which costs one more exchange.
//
// Tags decrease from launch to launch: an old entry is larger than any new one, so the map is never
// cleared. When they run out the host fills it with ones. A word of the map has 32 bits, of which
// ranks take as many as the batch needs, or 64 (hop.cuh, Go: internal/engine/cuda/node_map.go).
//
// Several batches in one launch, like gSampler's super-batches: each row of the grid samples one, in
// its own memory and independently of the others. "All blocks" then means those of the row.
//
// Parts: hop.cuh, draw.cuh, renumber.cuh, disjoint_map.cuh, phases.cuh; weighted.cu has the same for
// weights. Go callers: internal/engine/cuda/neighbor.go and multi_batch.go. Go twin:
// internal/engine/cpu/neighbor.go and row_tiles.go.
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
