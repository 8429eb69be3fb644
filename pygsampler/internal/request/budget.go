package request

// The constant here is the kernels', too: `go generate ./pygsampler/internal/constants` writes it down there. This file
// imports nothing.

// BudgetUnit is what a row shares out among its nodes, by which HGT's subgraphs are chosen. Shares
// are integers, so that what a node has does not depend on the order in which its rows come.
const BudgetUnit = 1 << 40
