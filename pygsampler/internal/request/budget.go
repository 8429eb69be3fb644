package request

// The constant here is the kernels', too: `go generate ./pygsampler/internal/constants` writes it down there. This file
// imports nothing.

// BudgetUnit is the budget that a row distributes among its nodes, by which HGT's subgraphs are
// chosen. Shares are integers, so that the budget of a node does not depend on the order of its
// rows.
const BudgetUnit = 1 << 40
