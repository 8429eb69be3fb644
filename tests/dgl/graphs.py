"""Graphs and invariants that the DGL tests share."""

from __future__ import annotations

from typing import Any

import dgl
import torch

DTYPES = [torch.int32, torch.int64]
COUNTS = {"author": 40, "paper": 70, "topic": 9, "lonely": 3}
WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
HAS, NEVER = ("paper", "has", "topic"), ("topic", "never", "author")


def random_graph(
    nodes: int = 500, edges: int = 4000, dtype: torch.dtype = torch.int64, seed: int = 0
) -> Any:
    """A multigraph with hubs, parallel edges, self loops, and a tenth of the vertices isolated."""
    random = torch.Generator().manual_seed(seed)
    src = torch.randint(0, nodes, (edges,), generator=random)
    hubs = (torch.rand(edges, generator=random) ** 3 * nodes * 0.9).long()
    g = dgl.graph((src, hubs), num_nodes=nodes, idtype=dtype)
    g.ndata["feat"] = torch.randn(nodes, 4, generator=random)
    g.ndata["label"] = torch.arange(nodes)
    g.edata["weight"] = torch.rand(edges, generator=random)
    return g


def heterograph(idtype: torch.dtype = torch.int64) -> Any:
    """Relations between three types and within one, one without edges, and a type without any."""
    torch.manual_seed(0)
    sizes = {WRITES: 300, CITES: 400, HAS: 150, NEVER: 0}
    g = dgl.heterograph(
        {
            (src, of, dst): (torch.randint(COUNTS[src], (n,)), torch.randint(COUNTS[dst], (n,)))
            for (src, of, dst), n in sizes.items()
        },
        num_nodes_dict=COUNTS,
    )
    for kind in g.ntypes:
        g.nodes[kind].data["x"] = torch.rand(g.num_nodes(kind), 5)
    for kind in g.canonical_etypes:
        g.edges[kind].data["y"] = torch.arange(g.num_edges(kind))
    g.edges[WRITES].data["w"] = torch.rand(300) * (torch.rand(300) > 0.3)
    return g.int() if idtype == torch.int32 else g


def check_blocks(
    g: Any,
    fanouts: list[int],
    seeds: torch.Tensor,
    result: tuple[Any, Any, Any],
    replace: bool = False,
    excluded: torch.Tensor | None = None,
    fewer: bool = False,
) -> None:
    """Everything that DGL promises of a sampled batch; ``fewer`` where excluded edges are removed
    after sampling, as DGL does."""
    input_nodes, output_nodes, blocks = result
    assert output_nodes is seeds or output_nodes.equal(seeds)
    assert len(blocks) == len(fanouts)
    assert input_nodes.equal(blocks[0].srcdata[dgl.NID])
    assert blocks[-1].dstdata[dgl.NID].equal(seeds.to(g.idtype))
    gone = torch.zeros(g.num_edges(), dtype=torch.bool)
    if excluded is not None:
        gone[excluded.long()] = True
    u, v = g.edges(order="eid")
    left = torch.bincount(v.long()[~gone], minlength=g.num_nodes())
    for after, block in zip([*blocks[1:], None], blocks, strict=True):
        if after is not None:
            assert block.dstdata[dgl.NID].equal(after.srcdata[dgl.NID])
    for fanout, block in zip(fanouts, blocks, strict=True):
        assert block.is_block
        assert block.idtype == g.idtype
        src, dst = block.srcdata[dgl.NID], block.dstdata[dgl.NID]
        eid = block.edata[dgl.EID]
        assert src.dtype == dst.dtype == eid.dtype == g.idtype
        assert src[: dst.numel()].equal(dst)
        assert block.num_src_nodes() == src.numel()
        assert block.num_dst_nodes() == dst.numel()
        rows, cols = block.edges(order="eid")
        assert u[eid.long()].equal(src[rows.long()])
        assert v[eid.long()].equal(dst[cols.long()])
        assert bool((cols[1:] >= cols[:-1]).all()), "edges are grouped by destination"
        assert not gone[eid.long()].any()
        degree = left[dst.long()]
        expected = degree if fanout < 0 else degree.clamp(max=fanout)
        if replace and fanout >= 0:
            expected = torch.where(degree > 0, fanout, 0)
        got = block.in_degrees().long()
        assert bool((got <= expected).all()) if fewer else got.equal(expected)
        if not replace or fanout < 0:
            pairs = cols.long() * g.num_edges() + eid.long()
            assert pairs.unique().numel() == pairs.numel(), "no edge twice at one destination"
        extra = src[dst.numel() :]
        assert extra.unique().numel() == extra.numel()
        assert set(extra.tolist()) <= set(src[rows.long()].tolist())


def content(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """A batch of (input_nodes, output_nodes, blocks) as something to compare."""
    input_nodes, output_nodes, blocks = result
    return (
        tuple(input_nodes.tolist()),
        tuple(output_nodes.tolist()),
        tuple(
            (
                tuple(block.edata[dgl.EID].tolist()),
                tuple(block.edges()[0].tolist()),
                tuple(block.edges()[1].tolist()),
            )
            for block in blocks
        ),
    )
