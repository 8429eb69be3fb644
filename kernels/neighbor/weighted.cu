// neighbor.cu for rows that draw by weight; the rest of a batch is the same. Rows have positive
// weights only, since edges without are removed from the graph (Go: internal/graph/weights).
//
// Source: M. Vose's alias tables; successive sampling, as in weighted.cuh.
// Go callers: internal/engine/cuda/neighbor.go and multi_batch.go. Go twin: internal/rng/weighted.go.
#include "neighbor/phases.cuh"

KERNEL(weighted32, int, WEIGHTED)
KERNEL(weighted64, long long, WEIGHTED)
KERNEL(weighted32_bins, int, WEIGHTED_BINS)
KERNEL(weighted64_bins, long long, WEIGHTED_BINS)
KERNEL(weighted32_any, int, WEIGHTED_ALL)
KERNEL(weighted64_any, long long, WEIGHTED_ALL)
KERNEL(weighted32_trees, int, WEIGHTED_TREES)
KERNEL(weighted64_trees, long long, WEIGHTED_TREES)
KERNEL_OF_MANY(weighted32_many, int, WEIGHTED)
KERNEL_OF_MANY(weighted64_many, long long, WEIGHTED)
