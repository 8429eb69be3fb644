"""Blocks of ours, each beside the one that DGL makes itself of the same edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import dgl
import pytest
import torch

from pygsampler.dgl import PGSampler, sampled_block
from tests.dgl.graphs import random_graph


class Pair(NamedTuple):
    """Two blocks of the same edges, with the same ids and features, that nobody has asked yet.

    DGL makes the formats of a graph when they are first needed, so what a block answers may depend
    on what it was asked before.
    """

    ours: Any
    theirs: Any


class Kind(NamedTuple):
    """The sampling of a pair's block from a graph of 60 nodes, of which 54 have in-edges."""

    seeds: list[int]
    fanouts: list[int]
    hop: int = 0
    replace: bool = False


SEEDS = [57, 3, 0, 17, 55, 8, 30, 2, 44, 21]
KINDS = {
    "outer": Kind(SEEDS, [4, 3]),
    "inner": Kind(SEEDS, [4, 3], hop=1),
    # Vertices with fewer in-edges than the fanout have some of them twice.
    "parallel": Kind(SEEDS, [7], replace=True),
    "repeated seeds": Kind([3, 17, 3, 57, 3, 8], [3]),
    "square": Kind(list(range(60)), [3]),
    # DGL's layers refuse destinations without edges, unless told otherwise.
    "all have edges": Kind([3, 0, 17, 8], [3]),
    "no edges": Kind([57, 54], [3]),
}
# Every kind with one of the two types of ids, and one kind with both.
BLOCKS = [
    ("outer", torch.int64),
    ("outer", torch.int32),
    ("inner", torch.int32),
    ("parallel", torch.int64),
    ("repeated seeds", torch.int32),
    ("square", torch.int64),
    ("all have edges", torch.int32),
    ("no edges", torch.int64),
]


def pair_of(kind: str, dtype: torch.dtype = torch.int64) -> Pair:
    """Made anew by every call."""
    ours, twin = _sampled(KINDS[kind], dtype), _sampled(KINDS[kind], dtype)
    indptr, indices, _ = twin.adj_tensors("csc")
    rows = torch.arange(twin.num_dst_nodes()).repeat_interleave(indptr.diff().long())
    theirs = dgl.create_block(
        (indices, rows.to(dtype)),
        num_src_nodes=twin.num_src_nodes(),
        num_dst_nodes=twin.num_dst_nodes(),
        idtype=dtype,
    )
    for mine, other in (
        (twin.srcdata, theirs.srcdata),
        (twin.dstdata, theirs.dstdata),
        (twin.edata, theirs.edata),
    ):
        for name, value in mine.items():
            other[name] = value.clone()
    return Pair(ours, theirs)


@cache
def _graph(dtype: torch.dtype) -> Any:
    return random_graph(60, 240, dtype=dtype)


def _sampled(kind: Kind, dtype: torch.dtype) -> Any:
    """One sample: the same for every call."""
    sampler = PGSampler(kind.fanouts, replace=kind.replace, seed=5)
    sampler.set_epoch(0)
    return sampler.sample(_graph(dtype), torch.tensor(kind.seeds, dtype=dtype))[2][kind.hop]


class Features:
    """Values for a block's vertices and edges, the same for every block of the same sizes.

    ``leaves`` are those that a gradient is wanted of.
    """

    def __init__(self, block: Any, dtype: torch.dtype = torch.float32) -> None:
        self.leaves: list[torch.Tensor] = []
        self._random = torch.Generator().manual_seed(7)
        self._dtype = dtype
        self._sources = block.num_src_nodes()
        self._destinations = block.num_dst_nodes()
        self._edges = block.num_edges()

    def sources(self, *shape: int) -> torch.Tensor:
        return self.matrix(self._sources, *shape)

    def destinations(self, *shape: int) -> torch.Tensor:
        return self.matrix(self._destinations, *shape)

    def edges(self, *shape: int) -> torch.Tensor:
        return self.matrix(self._edges, *shape)

    def matrix(self, *shape: int) -> torch.Tensor:
        return self._leaf(torch.randn(*shape, generator=self._random, dtype=self._dtype))

    def weights(self, *shape: int) -> torch.Tensor:
        """Positive values for the edges."""
        weights = torch.rand(self._edges, *shape, generator=self._random, dtype=self._dtype)
        return self._leaf(weights + 0.1)

    def source_types(self, count: int) -> torch.Tensor:
        return torch.randint(count, (self._sources,), generator=self._random)

    def edge_types(self, count: int) -> torch.Tensor:
        return torch.randint(count, (self._edges,), generator=self._random)

    def _leaf(self, value: torch.Tensor) -> torch.Tensor:
        self.leaves.append(value.requires_grad_())
        return value


def with_gradients(output: Any, leaves: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """The tensors of ``output``, and the gradients of ``leaves``, each element having its own part
    in them."""
    values = list(_tensors(output))
    # A copy: DGL's reversible layer frees the memory of its output when it goes back.
    result = [value.detach().clone() for value in values]
    wanted = [value for value in values if value.requires_grad]
    for leaf in leaves:
        leaf.grad = None
    if wanted:
        random = torch.Generator().manual_seed(9)
        torch.autograd.backward(
            wanted,
            [torch.randn(x.shape, generator=random, dtype=x.dtype) for x in wanted],
        )
    return [*result, *(leaf.grad for leaf in leaves)]


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        yield output
        return
    for value in output.values() if isinstance(output, dict) else output:
        yield from _tensors(value)


def outcome(call: Callable[[], Any]) -> Any:
    """Returns the result of ``call``, or the class of the error that it raises."""
    try:
        return call()
    except Exception as error:
        return type(error)


def reduce_by_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the engine reduce on our blocks from the first byte on, as it does for large tensors."""
    monkeypatch.setattr(sampled_block, "_LEAST_ROWS", 0)
    monkeypatch.setattr(sampled_block, "_LEAST_MESSAGES", 0)
