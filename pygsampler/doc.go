// Package pygsampler samples L-hop neighborhoods of graphs for GNN training. It is the Go core that
// the bridge to Python calls: a Graph borrows the caller's CSC, a Sampler is pure options, a Job
// computes one batch into a Memory.
//
// The sample is a pure function of graph, options, seed, epoch, batch and seeds.
package pygsampler
