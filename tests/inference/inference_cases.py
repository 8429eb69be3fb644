"""Graphs, layers and a plain run over all nodes, which the tests of ``inference`` share."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402

NODES, EDGES, WIDTH = 120, 900, 5
# None: one range where the layer needs its sources numbered, else as large as caches.
SIZES = (None, 1, 7, NODES, NODES + 1)


def random_edges(nodes: int = NODES, edges: int = EDGES, dtype: Any = torch.int64) -> Any:
    """Edges with hubs, parallel edges, self loops, and isolated nodes at the end: [2, edges]."""
    random = torch.Generator().manual_seed(0)
    src = torch.randint(0, nodes, (edges,), generator=random)
    dst = (torch.rand(edges, generator=random) ** 3 * nodes * 0.9).long()
    src[:9], dst[:9] = src[0], dst[0]
    src[9:19] = dst[9:19]
    return torch.stack([src, dst]).to(dtype)


def random_graph(dtype: Any = torch.int64) -> Any:
    """The graph of these edges, whose ids of edges are their columns."""
    return pgs.Graph.from_coo(*random_edges(dtype=dtype), num_nodes=NODES)


def random_rows(width: int = WIDTH, nodes: int = NODES, dtype: Any = torch.float32) -> Any:
    return torch.randn(nodes, width, generator=torch.Generator().manual_seed(1)).to(dtype)


class SAGEConv(torch.nn.Module):
    """The layer of docs/guide/layers.md."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = torch.nn.Linear(inputs, outputs)
        self.others = torch.nn.Linear(inputs, outputs, bias=False)

    def forward(self, block: Any, h: Any) -> Any:
        return self.own(h[: block.num_dst_nodes]) + block.mean(self.others(h))


class PairConv(SAGEConv):
    """The same, of the rows of sources and, apart from them, of destinations."""

    def forward(self, block: Any, x_src: Any, x_dst: Any) -> Any:  # type: ignore[override]
        return self.own(x_dst) + block.mean(self.others(x_src))


def mean_of_sources(x: Any, edges: Any) -> Any:
    """The mean over in-neighbors by a matrix of the graph."""
    matrix = torch.zeros(len(x), len(x), dtype=x.dtype)
    matrix.index_put_((edges[1].long(), edges[0].long()), torch.ones(1).to(x.dtype), True)
    return matrix @ x / matrix.sum(1, keepdim=True).clamp(min=1)


def plain(layers: Any, x: Any, edges: Any) -> Any:
    """The outputs of two such layers and a ReLU, written with a matrix."""
    with torch.no_grad():
        for place, layer in enumerate(layers):
            x = layer.own(x) + mean_of_sources(layer.others(x), edges)
            x = x.relu() if place + 1 < len(layers) else x
        return x
