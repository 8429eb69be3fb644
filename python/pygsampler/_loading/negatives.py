"""``Negatives``: vertices that are drawn beside links, where they are."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from pygsampler._core.checks import describe, integer
from pygsampler._loading.draws import Number, Rows, checked_power, device_of, drawn
from pygsampler._sampling.seed import chosen_seed
from pygsampler.graph import Graph

__all__ = ["Negatives"]

_KINDS = "uniform", "degree", "in_batch", "structural"
_MODES = "binary", "triplet"
# Which draws of a link's state: docs/randomness.md, after those of walks.
_SITE = 2
# The key in what a graph keeps.
_OTHERS = ("non-edges",)
# Numbers of 62 bits, in two halves whose products with a count of vertices fit into 64.
_HALF = 31


class Negatives:
    """What links are told from: vertices in the place of their destination.

    An edge (u, v) gets ``amount`` pairs (u, w), by the law of w.

    Parameters
    ----------
    kind : str
        ``"uniform"``: all vertices are equally likely, as in PyG and DGL. ``"degree"``: by
        in-degree to the ``power``, counting a vertex without in-edges as one with one.
        ``"in_batch"``: the destination of another edge of the batch, all equally likely; a batch of
        one edge draws as ``"uniform"``. ``"structural"``: all vertices equally likely to which no
        edge leads from u, but for u itself.
    amount : int
        Vertices for each edge, 1 or more.
    mode : str
        How ``LinkLoader`` gives them. ``"binary"``: as further pairs of ``edge_label_index``, with
        label 0. ``"triplet"``: beside each edge, in ``dst_neg_index``.
    power : float, optional
        Of ``"degree"`` alone, in [0, 1]: 0.75 by default.

    Raises
    ------
    TypeError, ValueError
        For arguments of another type or value.

    Notes
    -----
    For ``"degree"`` the graph keeps a table of 8 bytes a vertex; for ``"structural"`` 8 bytes an
    edge and 16 a vertex; both with a copy on each device, made at the first use. ``"structural"``
    refuses no draw: the number of a vertex among those that are allowed is drawn, and found by
    binary search. The first three kinds may draw v itself, or a vertex that u leads to.
    """

    __slots__ = ("amount", "kind", "mode", "power")

    def __init__(
        self,
        kind: str = "uniform",
        amount: int = 1,
        *,
        mode: str = "binary",
        power: float | None = None,
    ) -> None:
        self.kind = _one_of(kind, "kind", _KINDS)
        self.amount = integer(amount, "amount", 1)
        self.mode = _one_of(mode, "mode", _MODES)
        if power is not None and kind != "degree":
            raise ValueError(f"power: expected None with kind {kind!r}, got {power!r}")
        self.power = 0.75 if power is None else checked_power(power)

    def __repr__(self) -> str:
        power = f", power={self.power}" if self.kind == "degree" else ""
        return f"Negatives({self.kind!r}, {self.amount}, mode={self.mode!r}{power})"

    def draw(
        self,
        graph: Graph,
        src: torch.Tensor,
        dst: torch.Tensor,
        *,
        seed: int,
        epoch: int = 0,
        batch: int = 0,
    ) -> torch.Tensor:
        """The vertices of a batch of edges, on their device: shape [edges, amount].

        They are a function of the edges, of the place of each in the batch, and of the numbers:
        the same on the CPU and on a GPU. docs/randomness.md has the rule.

        Parameters
        ----------
        graph : Graph
            On any device.
        src, dst : torch.Tensor, int32 or int64, shape [edges]
            Vertices of the graph, of one dtype and device, which the result has too. They are not
            looked at beyond that: a loader has done so.
        seed, epoch, batch : int
            As those of a sampler.

        Raises
        ------
        TypeError
            For tensors that are none, of another dtype or on another device.
        ValueError
            Where ``"structural"`` finds edges from a vertex to all others, naming the vertex; on
            a GPU this is waited for. For tensors of other shapes and numbers out of range.
        """
        if not isinstance(graph, Graph):
            raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
        _check_links(src, dst)
        number = Number(chosen_seed(seed), epoch, batch)
        rows = Rows(len(src), 1, self.amount)
        if self.kind == "structural":
            return _others_of(graph).draw(src, number, rows)
        if self.kind == "in_batch" and len(dst) > 1:
            # Counted from the place behind the edge's own, and around.
            ahead = drawn(dst, number, _SITE, len(dst) - 1, rows).long() + 1
            own = torch.arange(len(dst), device=dst.device).unsqueeze(1)
            return dst[(own + ahead) % len(dst)]
        by_degree = self.kind == "degree" and self.power > 0
        table = graph._negatives(self.power) if by_degree else None
        return drawn(dst, number, _SITE, graph.num_nodes, rows, table)


class _Search(NamedTuple):
    """What non-neighbours are found by, on one device."""

    keys: torch.Tensor
    """For neighbour i (from 0) of u, in ascending order, without repetition and u among them: u n,
    and how many vertices below it are allowed."""
    start: torch.Tensor
    """Where the neighbours of a vertex begin: shape [num_nodes + 1]."""


class _Others:
    """The vertices that a vertex has no edge to, of a graph that keeps this; it is not among them
    itself."""

    def __init__(self, graph: Graph) -> None:
        self.num_nodes = n = graph.num_nodes
        if n >= 1 << _HALF:
            raise ValueError(f"negatives: expected fewer than 2^31 vertices to draw from, got {n}")
        own = torch.arange(n + 1)
        degrees = graph.indptr.torch().long().diff()
        dst = torch.repeat_interleave(own[: len(degrees)], degrees)
        edges = graph.indices.torch().long() * n + dst
        keys = torch.unique(torch.cat([edges, own[:n] * (n + 1)]))
        start = torch.searchsorted(keys, own * n)
        src = torch.div(keys, n, rounding_mode="floor") if n else keys
        keys -= torch.arange(len(keys)) - start[src]
        self._on = {-1: _Search(keys, start)}

    def close(self) -> None:
        """Lets go of the tensors."""
        self._on.clear()

    def draw(self, src: torch.Tensor, number: Number, rows: Rows) -> torch.Tensor:
        """Vertices for each of ``src``, all that are allowed equally likely."""
        n, index = self.num_nodes, device_of(src)
        if index not in self._on:
            # The host waits for the copies, so they are there for every stream.
            self._on[index] = _Search(*(of.to(src.device) for of in self._on[-1]))
        keys, start = self._on[index]
        at = src.long().unsqueeze(1)
        first = start[at]
        allowed = n - (start[at + 1] - first)
        if bool((allowed <= 0).any()):
            vertex = int(at[allowed <= 0][0])
            raise ValueError(
                f"negatives: expected vertices that lack an edge to another, got {vertex}, from "
                f"which edges lead to all {n - 1} others"
            )
        x = drawn(at, number, _SITE, 1 << 2 * _HALF, rows)
        low = (x & ((1 << _HALF) - 1)) * allowed >> _HALF
        rank = (x >> _HALF) * allowed + low >> _HALF
        return (rank + torch.searchsorted(keys, at * n + rank, right=True) - first).to(src.dtype)


def _others_of(graph: Graph) -> _Others:
    """Those of the graph, which keeps them; of one on a GPU those of the one on the CPU."""
    host = graph._on_cpu()
    kept: _Others = host._kept(_OTHERS, lambda: _Others(host))
    return kept


def _one_of(value: Any, name: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {describe(value)}")
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
    return value


def _check_links(src: Any, dst: Any) -> None:
    for name, of in (("src", src), ("dst", dst)):
        if not isinstance(of, torch.Tensor) or of.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"{name}: expected an int32 or int64 tensor, got {describe(of)}")
        if of.dim() != 1:
            raise ValueError(f"{name}: expected shape [edges], got {tuple(of.shape)}")
    if src.dtype != dst.dtype or src.device != dst.device:
        raise TypeError(
            f"dst: expected {src.dtype} on {src.device} as src, got {dst.dtype} on {dst.device}"
        )
    if len(src) != len(dst):
        raise ValueError(f"dst: expected {len(src)} vertices as src, got {len(dst)}")
