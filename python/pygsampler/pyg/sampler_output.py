"""Sampled batches as PyG writes a subgraph: nodes by hop, and edges in local ids by hop."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import torch

from pygsampler._batch.induced_edges import InducedEdges, edge_rows, unique_edges
from pygsampler._batch.repeated_seeds import index_with_repeats, rows_with_repeats, select_rows

if TYPE_CHECKING:
    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._batch.subgraph import Subgraph

__all__ = ["output_edges", "output_nodes", "subgraph_output"]


def output_nodes(batch: MiniBatch) -> tuple[torch.Tensor, list[int]]:
    """All nodes, each seed with a row of its own at the front, and how many a hop.

    The batch knows a node that is among the seeds twice once; PyG has it twice.
    """
    blocks = batch.blocks[::-1]
    known = [batch._distinct_seeds(), *[block.num_src_nodes for block in blocks]]
    reached = [after - before for before, after in pairwise(known)]
    node, seeds = batch.input_nodes, batch.output_nodes
    if len(seeds) != known[0]:
        node = torch.cat([seeds.to(node.dtype), node[known[0] :]])
    return node, [len(seeds), *reached]


def output_edges(batch: MiniBatch) -> tuple[InducedEdges, list[int]]:
    """The sampled edges, those into the seeds first, and how many of them each hop has.

    If each node is expanded once, the destinations of the hops follow each other in the numbering,
    and all rows together are one CSC.
    """
    blocks = batch.blocks[::-1]
    counts = [block.num_edges for block in blocks]
    row = unique_edges([block.indices for block in blocks])
    edge = unique_edges([block.edge_ids for block in blocks])
    ends = accumulate((block.num_dst_nodes for block in blocks), initial=0)
    ordered = all(block.dst_offset == end for block, end in zip(blocks, ends, strict=False))
    # On a GPU the batch writes them all in one launch.
    if ordered and not row.is_cuda:
        degrees = unique_edges([block.indptr.diff() for block in blocks])
        col = edge_rows(degrees, sum(counts)).to(row.dtype)
    else:
        col = unique_edges([block.coo()[1] for block in blocks])
    factors = [block.edge_weights for block in blocks if block.edge_weights is not None]
    names = {name for block in blocks for name in block.edge_values}
    for name in names:
        if not all(name in block.edge_values for block in blocks):
            raise ValueError(
                f"sampler: expected values {name!r} of the edges of all blocks, which PyG has in "
                "one array, got blocks without"
            )
    named = {name: unique_edges([block.edge_values[name] for block in blocks]) for name in names}
    found = InducedEdges(row, col, edge, unique_edges(factors) if factors else None, ordered, named)
    if len(batch.output_nodes) != batch._distinct_seeds():
        return _repeated(batch, found, counts)
    return found, counts


def _repeated(
    batch: MiniBatch, induced: InducedEdges, counts: list[int]
) -> tuple[InducedEdges, list[int]]:
    """The edges where each seed has a row of its own, and how many of them each hop has.

    Each occurrence of a seed gets the edges that were sampled for it, in every hop that expands it.
    Edges out of it come from its first occurrence.
    """
    blocks = batch.blocks[::-1]
    distinct, device = batch._distinct_seeds(), induced.row.device
    more = len(batch.output_nodes) - distinct
    row_of_seed = batch.output_index.long()
    # The present place of each node.
    place = index_with_repeats(row_of_seed, distinct, len(batch.input_nodes))
    kept, into, numbers, first = [], [], [], 0
    for block, count in zip(blocks, counts, strict=True):
        if block.dst_offset:
            # The seeds have been expanded before.
            edges = torch.arange(first, first + count, device=device)
            cols = induced.col[first : first + count].long() + more
        else:
            rows = rows_with_repeats(row_of_seed, distinct, block.num_dst_nodes)
            indptr, edges = select_rows(block.indptr.long(), rows)
            cols, edges = edge_rows(indptr.diff(), len(edges)), edges + first
        kept.append(edges)
        into.append(cols)
        numbers.append(len(edges))
        first += count
    edges = unique_edges(kept)
    return (
        InducedEdges(
            place[induced.row[edges].long()].to(induced.row.dtype),
            unique_edges(into).to(induced.col.dtype),
            induced.edge[edges],
            None if induced.weight is None else induced.weight[edges],
            induced.ordered,
            {name: values[edges] for name, values in induced.named.items()},
        ),
        numbers,
    )


def subgraph_output(
    batch: Subgraph, rooted: bool
) -> tuple[torch.Tensor, InducedEdges, torch.Tensor | None]:
    """The nodes of a subgraph, each seed with a row of its own at the front, and its edges.

    The last says where the nodes were before, None: where they are.
    """
    made = batch._rooted(rooted)
    col = edge_rows(made.indptr.diff(), len(made.indices)).to(made.indices.dtype)
    edges = made.indices, col, made.edge_ids, made.edge_weights
    return made.nodes, InducedEdges(*edges, named=made.edge_values), made.old
