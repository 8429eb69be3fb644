"""Sampled batches of heterogeneous graphs in the layout of a PyG subgraph."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch_geometric.sampler import HeteroSamplerOutput

from pygsampler._batch.induced_edges import edge_rows, unique_edges
from pygsampler._engine.memory import Memory
from pygsampler.pyg.engine_output import EdgeLists, hetero_edge_lists
from pygsampler.pyg.tensor_slices import TensorSlicer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._batch.block import Block
    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._graph.schema import EdgeType, Schema

__all__ = ["hetero_output"]


def hetero_output(
    batch: MiniBatch | Memory,
    schema: Schema,
    kind: str,
    edge_types: Sequence[EdgeType],
    hops: int,
) -> HeteroSamplerOutput:
    """A batch of a graph with those types, whose seeds are of the type ``kind``, as PyG has it.

    It may be the memory of its hops.

    The batch knows a node that is among the seeds twice once. PyG has it twice, each with the edges
    that were sampled for it; edges out of it come from its first occurrence.
    """
    if isinstance(batch, Memory) or batch.device == "cpu":
        return _of_engine(hetero_edge_lists(batch), schema, edge_types, hops)
    return _of_tensors(batch, kind, edge_types, hops)


def _of_tensors(
    batch: MiniBatch, kind: str, edge_types: Sequence[EdgeType], hops: int
) -> HeteroSamplerOutput:
    """Returns the output of a batch anywhere, by torch."""
    cut = TensorSlicer(batch)
    seeds, seed_row = cut(batch.output_nodes[kind]), cut(batch.output_index[kind]).long()
    counts = batch.num_sampled_nodes
    distinct = counts[kind][0]
    more = len(seeds) - distinct
    # Copies: a batch's arrays are views of one memory, which a part of them would keep.
    node = {of: cut(ids).clone() for of, ids in batch.input_nodes.items()}
    place = torch.empty(0, dtype=torch.int64)
    if more:
        found, where = node[kind], seeds.device
        node[kind] = torch.cat([seeds.to(found.dtype), found[distinct:]])
        place = torch.arange(len(found), device=where) + more
        order = torch.arange(len(seeds), device=where)
        place.scatter_reduce_(0, seed_row, order, "amin", include_self=False)
        counts[kind][0] = len(seeds)
    row, col, edge, numbers = {}, {}, {}, {}
    weights: dict[EdgeType, torch.Tensor] = {}
    for edge_type in edge_types:
        src, _, dst = edge_type
        blocks = [by_type[edge_type] for by_type in reversed(batch.blocks)]
        ends = accumulate((block.num_dst_nodes for block in blocks), initial=0)
        if not (more and dst == kind) and all(
            block.dst_offset == end for block, end in zip(blocks, ends, strict=False)
        ):
            found_edges = _as_one(blocks, cut)
        else:
            repeated = _Repeated(seed_row, distinct, more) if more and dst == kind else None
            found_edges = _by_hop(blocks, cut, repeated)
        from_ = found_edges.source
        if more and src == kind:
            from_ = place[from_.long()]
        dtype = node[src].dtype
        row[edge_type] = from_.to(dtype)
        col[edge_type] = found_edges.target.to(dtype)
        edge[edge_type] = found_edges.ids
        numbers[edge_type] = found_edges.of_hops[:hops]
        if found_edges.factors is not None:
            weights[edge_type] = found_edges.factors
    subgraph_ids = batch.subgraph_ids
    out = HeteroSamplerOutput(
        node,
        row,
        col,
        edge,
        batch=None
        if subgraph_ids is None
        else {of: cut(subgraph_ids[of]).to(ids.dtype, copy=True) for of, ids in node.items()},
        num_sampled_nodes={of: numbers_[: hops + 1] for of, numbers_ in counts.items()},
        num_sampled_edges=numbers,
    )
    if weights:
        # PyG's class has no place for these; our loaders look for them.
        out.edge_weights = weights
    return out


def _of_engine(
    lists: EdgeLists, schema: Schema, edge_types: Sequence[EdgeType], hops: int
) -> HeteroSamplerOutput:
    """Returns the output of a batch on the CPU, by the engine."""
    node_types, all_edge_types = schema
    row, col, edge, numbers = {}, {}, {}, {}
    weights: dict[EdgeType, torch.Tensor] = {}
    for place, edge_type in enumerate(all_edge_types):
        if edge_type in edge_types:
            row[edge_type], col[edge_type] = lists.rows[place], lists.cols[place]
            edge[edge_type] = lists.ids[place]
            numbers[edge_type] = lists.num_edges[place][:hops]
            factors = lists.weights[place]
            if factors is not None:
                weights[edge_type] = factors
    out = HeteroSamplerOutput(
        dict(zip(node_types, lists.nodes, strict=True)),
        row,
        col,
        edge,
        batch=None
        if lists.subgraph_ids is None
        else dict(zip(node_types, lists.subgraph_ids, strict=True)),
        num_sampled_nodes={
            kind: numbers_[: hops + 1]
            for kind, numbers_ in zip(node_types, lists.num_nodes, strict=True)
        },
        num_sampled_edges=numbers,
    )
    if weights:
        # PyG's class has no place for these; our loaders look for them.
        out.edge_weights = weights
    return out


class _RelationEdges(NamedTuple):
    """The edges of one type: of all hops, the seeds' first, and how many each hop has."""

    source: torch.Tensor
    target: torch.Tensor
    ids: torch.Tensor
    factors: torch.Tensor | None
    of_hops: list[int]


class _Repeated(NamedTuple):
    """Seeds of which some are there twice: each one's row, how many rows, how many seeds more."""

    row: torch.Tensor
    distinct: int
    more: int


def _factors(block: Block) -> torch.Tensor | None:
    return None if block.edge_weights is None else block.edge_weights.torch()


def _as_one(blocks: Sequence[Block], slicer: TensorSlicer) -> _RelationEdges:
    """Returns one CSC of all rows, where the destinations of the hops follow each other."""
    of_hops = [block.num_edges for block in blocks]
    factors = [each for each in map(_factors, blocks) if each is not None]
    degrees = unique_edges([slicer(block.indptr).diff() for block in blocks])
    return _RelationEdges(
        torch.cat([slicer(block.indices) for block in blocks]),
        edge_rows(degrees, sum(of_hops)),
        torch.cat([slicer(block.edge_ids) for block in blocks]),
        torch.cat(factors) if factors else None,
        of_hops,
    )


def _by_hop(
    blocks: Sequence[Block], slicer: TensorSlicer, repeated: _Repeated | None
) -> _RelationEdges:
    """Hop by hop, where destinations do not follow each other, or some are seeds twice."""
    sources, targets, ids, factors, of_hops = [], [], [], [], []
    for block in blocks:
        from_, edge_ids, weights = slicer(block.indices), slicer(block.edge_ids), _factors(block)
        indptr = slicer(block.indptr)
        to = edge_rows(indptr.diff(), block.num_edges)
        to += block.dst_offset
        if repeated is not None:
            if block.dst_offset or not block.num_dst_nodes:
                to += repeated.more
            else:
                # HGT's only block has rows of other nodes, too.
                others = torch.arange(repeated.distinct, block.num_dst_nodes, device=to.device)
                drawn, to = _each(indptr.long(), torch.cat([repeated.row, others]))
                from_, edge_ids = from_[drawn], edge_ids[drawn]
                weights = None if weights is None else weights[drawn]
        sources.append(from_)
        targets.append(to)
        ids.append(edge_ids)
        of_hops.append(len(to))
        if weights is not None:
            factors.append(weights)
    return _RelationEdges(
        torch.cat(sources),
        torch.cat(targets),
        torch.cat(ids),
        torch.cat(factors) if factors else None,
        of_hops,
    )


def _each(indptr: torch.Tensor, row_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The edges of some rows, row after row, and which of these each is of."""
    starts = indptr[row_ids]
    degrees = indptr[row_ids + 1] - starts
    of = torch.repeat_interleave(degrees)
    before = degrees.cumsum(0) - degrees
    return torch.arange(len(of), device=of.device) + (starts - before)[of], of
