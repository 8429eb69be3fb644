"""Laws of static batches, of graphs with node types and without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.torch_graphs import csc

# The node type and the edge type of a graph that has no types.
NONE = "", "", ""
FEW_NODES = {"a": 300, "b": 200, "none": 0, "alone": 40}


def make_graph(
    dtype: torch.dtype = torch.int64, nodes: int = 1000, degree: int = 29, ids: bool = False
) -> pgs.Graph:
    """Returns a graph with weights, and with ids of edges in another order if ``ids`` is true."""
    random = torch.Generator().manual_seed(7)
    indptr, indices = csc(nodes, degree, random, dtype)
    edge_ids = torch.randperm(len(indices), generator=random) if ids else None
    weights = torch.rand(len(indices), generator=random)
    return pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids, edge_data={"w": weights})


def small_hetero_graph(dtype: torch.dtype = torch.int64) -> pgs.Graph:
    """Returns a graph with weights, a mask and times; a node type and an edge type are empty."""
    random = torch.Generator().manual_seed(7)
    edges, data = {}, {}
    for src, name, dst, count in (
        *(("a", "r", "b", 2000), ("b", "s", "a", 1500)),
        *(("a", "t", "a", 900), ("b", "e", "alone", 0)),
    ):
        kind = src, name, dst
        edges[kind] = tuple(
            torch.randint(0, FEW_NODES[end], (count,), generator=random).to(dtype)
            for end in (src, dst)
        )
        data[kind] = {
            "w": torch.rand(count, generator=random),
            "m": torch.rand(count, generator=random) < 0.7,
            "t": torch.randint(0, 50, (count,), generator=random),
            "f": torch.rand(count, generator=random, dtype=torch.float64) - 0.5,
        }
    return pgs.Graph.from_coo(edges, num_nodes=FEW_NODES, edge_data=data)


def by_type(values: Any) -> Mapping[Any, Any]:
    """Returns values by node type."""
    return values if isinstance(values, Mapping) else {"": values}


def by_edge_type(hop: Any) -> Mapping[Any, Any]:
    """Returns the blocks of a hop by edge type."""
    return hop if isinstance(hop, Mapping) else {NONE: hop}


def lengths(values: Any) -> dict[str, int]:
    """Returns the number of values of each node type."""
    return {kind: len(of_type) for kind, of_type in by_type(values).items()}


def assert_static(batch: Any, expected: Any, frontier: str = "all") -> Any:
    """Fails unless a static batch is the batch of a plain loader, and changes no result.

    Its first nodes and edges are those of the plain batch. The edges that fill it up are between
    rows that the batch does not use. Returns the trimmed batch.
    """
    trimmed = batch.trimmed()
    assert_equal(trimmed, expected)
    used, room = lengths(expected.input_nodes), lengths(batch.input_nodes)
    seeds = lengths(expected.output_nodes)
    for kind, mask in by_type(batch.node_mask).items():
        assert int(mask.sum()) == used[kind]
    for kind, mask in by_type(batch.seed_mask).items():
        assert int(mask.sum()) == seeds[kind]
    if batch.subgraph_ids is not None:
        for kind, ids in by_type(batch.subgraph_ids).items():
            assert (ids[used[kind] :] >= sum(seeds.values())).all()
    for hops in zip(batch.blocks, expected.blocks, trimmed.blocks, strict=True):
        blocks, plain, own = map(by_edge_type, hops)
        for kind, block in blocks.items():
            ends = kind[0], kind[2]
            limits = [used[end] for end in ends], [room[end] for end in ends]
            _assert_block(block, plain[kind], own[kind], limits if frontier == "new" else None)
    return trimmed


def _assert_block(block: Any, plain: Any, own: Any, limits: Any) -> None:
    counts = [plain.num_src_nodes, plain.num_dst_nodes, plain.num_edges]
    src, dst, edges = counts
    assert block.counts.tolist() == counts
    masks = block.src_mask, block.dst_mask, block.edge_mask
    assert [int(mask.sum()) for mask in masks] == counts
    assert block.edge_mask[:edges].all()
    assert int(block.dst_offset) == plain.dst_offset == own.dst_offset
    if block.edge_weights is not None:
        assert not block.edge_weights[edges:].any()
    index = block.edge_index
    assert torch.equal(index[:, :edges], plain.edge_index)
    assert torch.equal(torch.stack(block.coo()).long(), index)
    assert block.coo()[1].dtype == block.indices.dtype
    if limits is None:
        limits = (src, dst), (block.num_src_nodes, block.num_dst_nodes)
    else:
        # The blocks of a batch have one numbering, and the room of the outermost.
        assert block.num_src_nodes == limits[1][0]
        places = block.dst_index
        assert torch.equal(places[:dst], plain.dst_index)
        assert_between(places[dst:], limits[0][1], limits[1][1])
    for rest, used, room in zip(index[:, edges:], *limits, strict=True):
        assert_between(rest, used, room)


def assert_between(values: torch.Tensor, low: int, high: int) -> None:
    """Fails unless all values are at least ``low`` and less than ``high``."""
    assert (values >= low).all() and (values < high).all()
