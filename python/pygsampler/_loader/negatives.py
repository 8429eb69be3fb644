"""``NegativeSampling``: negatives of links, drawn on the device of the links."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe, integer
from pygsampler._loader.candidate_pool import BITS, CandidatePool, check_bound, check_some, scaled
from pygsampler._loader.edge_relation import EdgeRelation, edge_relation
from pygsampler._loader.non_edges import non_edges
from pygsampler._loader.rng import BatchId, DrawShape, check_power, device_of, draw
from pygsampler._sampling.batch_counter import resolve_seed

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph

__all__ = ["NegativeSampling", "checked_weights"]

_KINDS = "uniform", "degree", "in_batch", "structural"
_MODES = "binary", "triplet"
# The site of destinations in a link's state, after the sites of walks: see
# docs/developer/walk-draws.md.
_SITE = 2
# The site of sources.
_SOURCES = 3


class NegativeSampling:
    """Options of negatives of edges to predict: pairs with another node as the destination.

    An edge (u, v) gets ``amount`` pairs (u, w), by the law of w.

    Parameters
    ----------
    kind : str
        ``"uniform"``: all nodes are equally likely, as in PyG and DGL. ``"degree"``: by in-degree
        to the ``power``, counting a node without in-edges as one with one. ``"in_batch"``: the
        destination of another edge of the batch, all equally likely; a batch of one edge draws as
        ``"uniform"``. ``"structural"``: all nodes but u to which no edge leads from u, equally
        likely.
    amount : int
        Nodes for each edge, 1 or more.
    mode : str
        The fields of a ``LinkBatch`` that have them. ``"binary"``: further pairs of
        ``edge_label_index``, with label 0. ``"triplet"``: ``dst_neg_index``, in the order of the
        edges.
    power : float, optional
        Only with ``"degree"``, in [0, 1]: 0.75 by default.
    dst_weight : array of shape [destinations], optional
        With kind ``"uniform"``, the weights in proportion to which w is drawn: finite numbers, 0
        for never.
    src_weight : array of shape [sources], optional
        With mode ``"binary"`` the sources of negatives are drawn too, in proportion to these
        weights, as in PyG. ``"structural"`` draws w for the source that was drawn.
    time_attr : str, optional
        The name of a node array of times. Negatives, and sources that are drawn, are then nodes
        whose time is not later than that of the edge: int32, int64, float32 or float64. Not with
        ``"degree"``. With ``"in_batch"`` an edge draws among the other edges whose destination
        exists at its time, and if there is none as with ``"uniform"``.

    Raises
    ------
    TypeError, ValueError
        For arguments of another type or value.

    Notes
    -----
    For ``"degree"`` the graph stores a table of 8 bytes per node; for ``"structural"`` 8 bytes per
    edge and 16 per node, with ``time_attr`` 16 per edge; both with a copy on each device, built at
    the first use. Times and weights take 24 and 8 bytes per node of this object's memory.
    ``"structural"`` refuses no draw: the number of a node among those that are allowed is drawn,
    and found by binary search. The first three kinds may draw v itself, or a node that u leads to.
    """

    __slots__ = (
        "_pools",
        "amount",
        "dst_weight",
        "kind",
        "mode",
        "power",
        "src_weight",
        "time_attr",
    )

    def __init__(
        self,
        kind: str = "uniform",
        amount: int = 1,
        *,
        mode: str = "binary",
        power: float | None = None,
        dst_weight: Any = None,
        src_weight: Any = None,
        time_attr: str | None = None,
    ) -> None:
        self.kind = _one_of(kind, "kind", _KINDS)
        self.amount = integer(amount, "amount", 1)
        self.mode = _one_of(mode, "mode", _MODES)
        if power is not None and kind != "degree":
            raise ValueError(f"power: expected None with kind {kind!r}, got {power!r}")
        self.power = 0.75 if power is None else check_power(power)
        self.dst_weight = checked_weights(dst_weight, "dst_weight", "node")
        if dst_weight is not None and kind != "uniform":
            raise ValueError(f"dst_weight: expected None with kind {kind!r}, got one")
        self.src_weight = checked_weights(src_weight, "src_weight", "node")
        if src_weight is not None and mode == "triplet":
            raise ValueError(
                "src_weight: expected None with mode 'triplet', whose sources are those of the "
                "edges, got one"
            )
        if time_attr is not None and not isinstance(time_attr, str):
            raise TypeError(
                f"time_attr: expected the name of a node array, got {describe(time_attr)}"
            )
        if time_attr is not None and kind == "degree":
            raise ValueError(
                f"time_attr: expected None with kind 'degree', got {time_attr!r}; dst_weight takes "
                "degrees to a power, and times"
            )
        self.time_attr = time_attr
        self._pools: dict[tuple[Any, ...], CandidatePool] = {}

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            # Tables and loaders are made of what they were when they were made.
            if name in NegativeSampling.__slots__ and hasattr(self, "_pools"):
                raise AttributeError(
                    f"{name}: expected no assignment, since NegativeSampling does not change; "
                    f"make others, NegativeSampling({self.kind!r}, ...)"
                )
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        power = f", power={self.power}" if self.kind == "degree" else ""
        for name in ("dst_weight", "src_weight"):
            weight = getattr(self, name)
            power += "" if weight is None else f", {name}=[{len(weight)}]"
        time = "" if self.time_attr is None else f", time_attr={self.time_attr!r}"
        return f"NegativeSampling({self.kind!r}, {self.amount}, mode={self.mode!r}{power}{time})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = {name: getattr(self, name) for name in ("dst_weight", "src_weight", "time_attr")}
        if self.kind == "degree":
            options["power"] = self.power
        return partial(NegativeSampling, self.kind, self.amount, mode=self.mode, **options), ()

    def draw(
        self,
        graph: Graph,
        src: torch.Tensor,
        dst: torch.Tensor,
        *,
        seed: int,
        epoch: int = 0,
        batch: int = 0,
        edge_type: tuple[str, str, str] | None = None,
        seed_time: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The nodes of a batch of edges, on their device: shape [edges, amount].

        They are a function of the edges, of the place of each in the batch, and of the numbers:
        the same on the CPU and on a GPU. docs/developer/walk-draws.md has the rule.

        Parameters
        ----------
        graph : Graph or HeteroGraph
            On any device.
        src, dst : torch.Tensor, int32 or int64, shape [edges]
            Nodes of the graph, of one dtype and device, which the result has too. They are not
            looked at beyond that: a loader has done so.
        seed, epoch, batch : int
            As those of a sampler.
        edge_type : (str, str, str) or str, optional
            Of a ``HeteroGraph`` the relation that the edges are of, which need not be one of its;
            of its own the name is enough where no other has it.
        seed_time : torch.Tensor, shape [edges], optional
            With ``time_attr``, when the edges are; on their device.

        Raises
        ------
        TypeError
            For tensors that are none, of another dtype or on another device.
        ValueError
            Where nothing can be drawn: ``"structural"`` finds edges from a node to all others,
            which is named, or no node is there at an edge's time; on a GPU this is waited for.
            For tensors of other shapes and numbers out of range.
        """
        number = seed, epoch, batch
        return self._draw(edge_relation(graph, edge_type), src, dst, number, seed_time)[1]

    def draw_pairs(
        self,
        graph: Graph,
        src: torch.Tensor,
        dst: torch.Tensor,
        *,
        seed: int,
        epoch: int = 0,
        batch: int = 0,
        edge_type: tuple[str, str, str] | None = None,
        seed_time: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Draws sources and destinations of the negatives, each of shape [edges, amount].

        The destinations are the result of ``draw``. Sources are drawn with ``src_weight``, else
        they are ``src``.

        Parameters
        ----------
        graph, src, dst, seed, epoch, batch, edge_type, seed_time
            As for ``draw``, which says what is raised, too.
        """
        number = seed, epoch, batch
        found, made = self._draw(edge_relation(graph, edge_type), src, dst, number, seed_time)
        return src.unsqueeze(1).expand_as(made) if found is None else found, made

    def _check(self, relation: EdgeRelation) -> None:
        """Raises an error if the relation lacks something, and builds the tables."""
        for weight, count, name in (
            (self.src_weight, relation.num_src, "src_weight"),
            (self.dst_weight, relation.num_dst, "dst_weight"),
        ):
            if weight is not None and len(weight) != count:
                raise ValueError(
                    f"{name}: expected a weight for each of {count} nodes, got {len(weight)}"
                )
        if self.kind in ("degree", "structural"):
            relation.require_graph(repr(self.kind))
        if self.time_attr is not None:
            self._candidate_pool(relation, "dst")

    def _draw(
        self,
        relation: EdgeRelation,
        src: torch.Tensor,
        dst: torch.Tensor,
        batch: tuple[int, int, int],
        seed_time: torch.Tensor | None,
    ) -> tuple[torch.Tensor | None, torch.Tensor]:
        """The sources where they are drawn, and the destinations."""
        _check_links(src, dst)
        self._check(relation)
        number = BatchId(resolve_seed(batch[0]) ^ relation.salt, *batch[1:])
        pool = None if self.time_attr is None else self._candidate_pool(relation, "dst")
        float_ = pool is not None and pool.float
        bound = check_bound(seed_time, self.time_attr, len(src), float_)
        rows = DrawShape(len(src), 1, self.amount)
        sources = None
        if self.src_weight is not None:
            sources = self._candidate_pool(relation, "src").draw(dst, number, _SOURCES, rows, bound)
        if self.kind == "structural":
            among = non_edges(relation, pool)
            of = src.unsqueeze(1) if sources is None else sources
            return sources, among.draw(of, number, _SITE, rows, pool, bound)
        if self.kind == "in_batch" and len(dst) > 1:
            if pool is not None:
                assert bound is not None
                return sources, _earlier(pool, dst, number, rows, bound)
            # Counted from the place behind the edge's own, and around.
            ahead = draw(dst, number, _SITE, len(dst) - 1, rows).long() + 1
            own = torch.arange(len(dst), device=dst.device).unsqueeze(1)
            return sources, dst[(own + ahead) % len(dst)]
        if pool is None and self.dst_weight is not None:
            pool = self._candidate_pool(relation, "dst")
        if pool is not None:
            return sources, pool.draw(dst, number, _SITE, rows, bound)
        by_degree = self.kind == "degree" and self.power > 0
        table = relation.table(self.power) if by_degree else None
        return sources, draw(dst, number, _SITE, relation.num_dst, rows, table)

    def _candidate_pool(self, relation: EdgeRelation, end: str) -> CandidatePool:
        """Returns the nodes at one end, built once."""
        src = end == "src"
        data = relation.src_data if src else relation.dst_data
        count = relation.num_src if src else relation.num_dst
        array = None
        if self.time_attr is not None:
            if self.time_attr not in data:
                have = ", ".join(map(repr, data)) or "none"
                of = relation.ends[0 if src else 1]
                kind = f" of type {of!r}" if of else ""
                raise ValueError(
                    f"time_attr: expected the name of an array of nodes{kind} ({have}), got "
                    f"{self.time_attr!r}"
                )
            array = data[self.time_attr]
        key = end, count, id(array)
        found = self._pools.get(key)
        if found is None:
            weight = self.src_weight if src else self.dst_weight
            found = self._pools.setdefault(key, CandidatePool(count, weight, array))
        return found


def _earlier(
    candidates: CandidatePool,
    dst: torch.Tensor,
    number: BatchId,
    shape: DrawShape,
    bound: torch.Tensor,
) -> torch.Tensor:
    """Draws among destinations of other edges of the batch that exist at an edge's time.

    For an edge without any it draws among all nodes that exist then.
    """
    raw = candidates.tensors_on(device_of(dst)).raw
    assert raw is not None
    times, order = torch.sort(raw[dst.long()], stable=True)
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(dst), device=dst.device)
    there = torch.searchsorted(times, bound, right=True)
    own = rank < there
    others = (there - own.long()).unsqueeze(1)
    x = draw(dst.long(), number, _SITE, 1 << BITS, shape)
    at = scaled(x, others)
    at += own.unsqueeze(1) & (at >= rank.unsqueeze(1))
    found = dst[order[at.clamp(max=len(dst) - 1)]]
    alone = (others == 0).flatten()
    if not bool(alone.any()):
        return found
    among = candidates.available(dst, bound)
    check_some(among[alone], bound[alone], "nodes that are there")
    any_of = candidates.named(scaled(x, among).clamp(max=candidates.count - 1)).to(dst.dtype)
    return torch.where(alone.unsqueeze(1), any_of, found)


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
        raise ValueError(f"dst: expected {len(src)} nodes as src, got {len(dst)}")


def checked_weights(value: Any, name: str, weighted_noun: str) -> torch.Tensor | None:
    """Returns a copy of the weights of things on the CPU, float64, of finite sum above 0."""
    if value is None:
        return None
    try:
        made = as_tensor(value).detach().to("cpu", torch.float64, copy=True)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name}: expected an array of numbers, got {describe(value)}: {error}"
        ) from None
    if made.dim() != 1:
        raise ValueError(
            f"{name}: expected a weight for each {weighted_noun}, got shape {tuple(made.shape)}"
        )
    wrong = ~(made.isfinite() & (made >= 0))
    if bool(wrong.any()):
        at = int(wrong.nonzero()[0])
        raise ValueError(f"{name}[{at}]: expected a finite number >= 0, got {made[at].item()}")
    if not bool(made.any()) or not bool(made.sum().isfinite()):
        raise ValueError(f"{name}: expected a finite sum above 0, got {made.sum().item()}")
    return made
