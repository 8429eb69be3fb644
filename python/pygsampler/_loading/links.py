"""``LinkLoader``: mini-batches around edges, for link prediction."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._core.checks import boolean, describe, integer
from pygsampler._loading.epochs import shuffled
from pygsampler._loading.given import chosen_sampler, graph_on
from pygsampler._loading.negatives import Negatives
from pygsampler._loading.prefetch import close_at_exit, in_order
from pygsampler._loading.resumed import Pass, Resumed, checked_deal
from pygsampler._loading.rows import Rows
from pygsampler._loading.shards import Part, Shards
from pygsampler._sampling.base import Pending, Sampler, check_blocks, check_graph
from pygsampler._sampling.seed import chosen_seed
from pygsampler.converted import TorchBatch, as_torch
from pygsampler.graph import Graph

__all__ = ["LinkBatch", "LinkLoader"]

_EXCLUDED = "self", "reverse_id"
# The engine has buffers and streams for so many batches of a GPU at once.
_MOST_ON_GPU = 8


class LinkBatch(NamedTuple):
    """Links, and what was sampled around their vertices.

    Indices are int64, and count the rows that a model gives for ``sampled.output_nodes``.
    """

    sampled: TorchBatch
    """What the sampler makes of the vertices, each once, with rows of features if asked for."""
    input_id: torch.Tensor
    """The place of each edge among those of the loader: shape [edges], on the CPU."""
    edge_label_index: torch.Tensor | None
    """Sources and destinations of the edges, then of their negatives, all of one edge before those
    of the next: shape [2, links]. None with triplets."""
    edge_label: torch.Tensor | None
    """The labels of the edges, or without labels float32: 1 for edges and 0 for negatives. Shape
    [links, ...]; with triplets the labels that were given, or None."""
    src_index: torch.Tensor | None
    """With triplets the sources: shape [edges]."""
    dst_pos_index: torch.Tensor | None
    """With triplets the destinations: shape [edges]."""
    dst_neg_index: torch.Tensor | None
    """With triplets the negatives: shape [edges, amount]."""


class LinkLoader(Resumed):
    """Iterate over edges in mini-batches of blocks around their vertices, as torch tensors.

    Negatives are drawn beside the edges, and the edges of a batch, which are to be predicted, are
    not sampled:

        loader = LinkLoader(graph, train_edge_ids, [10, 10], batch_size=1024, shuffle=True,
                            negatives=Negatives("structural"))
        for batch in loader:
            h = model(batch.sampled.blocks, features[batch.sampled.input_nodes])
            src, dst = batch.edge_label_index
            scores = (h[src] * h[dst]).sum(1)
            loss = binary_cross_entropy_with_logits(scores, batch.edge_label)

    Parameters
    ----------
    graph : Graph
        The graph to sample from.
    edges : int32 or int64 edge ids, shape [E], or vertices, shape [2, E]
        Ids of edges of the graph; or sources and destinations, which need be no edges of it.
    sampler_or_fanouts : Sampler or list of int
        A sampler whose batches are blocks or subgraphs, or the fanouts to make one of, outermost
        hop first.
    batch_size : int
        Edges of a batch, at least 1, without negatives.
    negatives : Negatives, optional
        What is drawn for each edge. None at all by default.
    labels : tensor of shape [E, ...], optional
        A label for each edge, in ``edge_label``; not with negatives of mode ``"binary"``, whose
        labels are 1 and 0.
    exclude : str, optional
        Edges that a batch does not sample: ``"self"``, its own; ``"reverse_id"``, these and their
        ``reverse_eids``; None: all are sampled, as it must be for pairs of vertices, and for
        samplers that exclude nothing, such as programs.
    reverse_eids : int32 or int64 edge ids, shape [num_edges], optional
        The reverse of each edge of the graph, with ``exclude="reverse_id"``.
    shuffle, drop_last, prefetch, rank, world_size, deal, start, device, prob, mask, edge_weights
        As ``DataLoader`` has them, of edges.
    seed : int, optional
        As ``DataLoader`` has it; of the order, of negatives, and of the sampler that is made.
    features : mapping of str to Features or arrays of shape [num_nodes, ...], optional
        As ``DataLoader`` has them: ``batch.sampled`` has their rows.
    edge_features : mapping of str to Features or arrays of shape [num_edges, ...], optional
        Likewise, of blocks.

    Notes
    -----
    It yields a ``LinkBatch``. Seeds are the vertices of the links, ascending and each once; of a
    disjoint sampler they are all of them, sources before destinations: then each has a tree of its
    own, which the indices count.

    Which vertices are drawn is decided on the CPU, for a GPU too, so that no batch waits for the
    work of the one before; tensors are where the graph is.

    The batches are a pure function of the graph, the edges, the options, ``seed``, the epoch,
    ``rank`` and ``world_size``. Epochs, iterators and pickles are as those of ``DataLoader``.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument. In the loop ``ValueError`` for
        structural negatives of a vertex that has edges to all others.
    IndexError
        For edges and vertices that the graph does not have.
    NotImplementedError
        In the loop, for ``exclude`` with a sampler that cannot.
    CudaError
        For a ``device`` that is not there, or that torch cannot use.
    """

    def __init__(
        self,
        graph: Graph,
        edges: Any,
        sampler_or_fanouts: Sampler[Any] | Sequence[int],
        *,
        batch_size: int,
        negatives: Negatives | None = None,
        labels: Any = None,
        exclude: str | None = "self",
        reverse_eids: Any = None,
        shuffle: bool = False,
        drop_last: bool = False,
        prefetch: int = 4,
        seed: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        deal: str = "seeds",
        start: int = 0,
        device: Any = None,
        prob: str | None = None,
        mask: str | None = None,
        edge_weights: str | None = None,
        features: Mapping[str, Any] | None = None,
        edge_features: Mapping[str, Any] | None = None,
    ) -> None:
        check_graph(graph)
        self.batch_size = integer(batch_size, "batch_size", 1)
        if negatives is not None and not isinstance(negatives, Negatives):
            raise TypeError(f"negatives: expected Negatives or None, got {describe(negatives)}")
        self.negatives = negatives
        self.shuffle = boolean(shuffle, "shuffle")
        self.drop_last = boolean(drop_last, "drop_last")
        self.prefetch = integer(prefetch, "prefetch", 0)
        self.world_size = integer(world_size, "world_size", 1)
        self.rank = integer(rank, "rank", 0, self.world_size - 1)
        if seed is not None:
            seed = chosen_seed(seed)
        self.sampler = chosen_sampler(
            sampler_or_fanouts, seed, prob=prob, mask=mask, edge_weights=edge_weights
        )
        check_blocks(self.sampler)
        if not self.sampler.rooted:
            raise ValueError(f"sampler: expected one around its seeds, got {self.sampler!r}")
        self._follows = seed is None and self.sampler is not sampler_or_fanouts
        self._check_seed(seed is None and self.sampler._numbers.drawn)
        self.seed = self.sampler.seed if seed is None else seed
        self._epoch, self._counted = 0, True
        # Of edge ids: those, and their ends. Else the ends alone.
        self._ids, self._ends = _links(graph, edges)
        count = self._ends.shape[1]
        self.exclude = _exclusion(exclude, self._ids is not None)
        self._reverse = _reverse(graph, reverse_eids, self.exclude)
        self._labels = _labels(labels, count, negatives)
        about = count, self.batch_size, self.world_size, self.drop_last
        self._shards = Shards(*about, checked_deal(deal))
        self._from = None, integer(start, "start", 0)
        # Last, since it may copy a graph of many gigabytes.
        self.graph = graph_on(graph, device)
        self.sampler.graph_of(self.graph)
        self._rows = Rows(self.graph, features, None, edge_features)

    @property
    def device(self) -> str:
        """Where the batches are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return self.graph.device

    def __len__(self) -> int:
        """Number of batches of a whole epoch on this rank."""
        return Part(self._shards, self.rank).steps

    def __iter__(self) -> Iterator[LinkBatch]:
        going = self._begin(self._next_epoch())
        # A later set_seed must not reach a pass that goes on.
        return close_at_exit(copy.copy(self)._batches(going))

    def __repr__(self) -> str:
        ranks = f", rank={self.rank}, world_size={self.world_size}" if self.world_size > 1 else ""
        device = "" if self.device == "cpu" else f", device={self.device!r}"
        return (
            f"LinkLoader({self._ends.shape[1]} edges, {self.sampler!r}, "
            f"batch_size={self.batch_size}, negatives={self.negatives!r}, "
            f"exclude={self.exclude!r}, shuffle={self.shuffle}, drop_last={self.drop_last}, "
            f"prefetch={self.prefetch}{ranks}{device})"
        )

    def __getstate__(self) -> dict[str, Any]:
        # Torch's seed is this process's: another one keeps the seed as it is now.
        return {**self.__dict__, "_follows": False, "_pass": None}

    def _batches(self, going: Pass) -> Generator[LinkBatch, None, None]:
        epoch, part = going.epoch, going.part
        index = devices.parse(self.graph.device)
        places = torch.arange(self._ends.shape[1])
        order = shuffled(places, self.seed, epoch) if self.shuffle else places
        there: dict[str, Any] = {} if index < 0 else {"into": "torch"}
        depth = self.prefetch if index < 0 else min(self.prefetch, _MOST_ON_GPU)
        # With several batches in flight, one core for each wastes nothing on synchronisation.
        threads = int(index < 0 and self.prefetch >= 2)
        # Of the batches that are on their way.
        begun: deque[_Links] = deque()

        def submit(step: int) -> Pending[Any]:
            start, end = part.bounds(step)
            number = part.number(step)
            links = self._links(order[start:end], epoch, number)
            begun.append(links)
            return self.sampler.launch(
                self.graph,
                links.seeds,
                epoch=epoch,
                batch=number,
                exclude=self._excluded(links.places),
                threads=threads,
                beside=True,
                **there,
            )

        def read(batch: Any) -> Pending[Any]:
            return self._rows.start(batch, threads)

        then = read if self._rows and index < 0 else None
        with closing(in_order(submit, part.steps, depth, then)) as batches:
            for batch in batches:
                sampled = as_torch(batch)
                if self._rows and index >= 0:
                    self._rows.there(sampled)
                going.handed += 1
                yield self._handed(sampled, begun.popleft(), index)

    def _links(self, places: torch.Tensor, epoch: int, batch: int) -> _Links:
        """The vertices of the edges at these places, and of their negatives."""
        src, dst = self._ends[:, places]
        parts = [src, dst]
        if self.negatives is not None:
            number = {"seed": self.seed, "epoch": epoch, "batch": batch}
            parts.append(self.negatives.draw(self.graph, src, dst, **number).flatten())
        vertices = torch.cat(parts)
        if getattr(self.sampler, "disjoint", False):
            return _Links(places, vertices, torch.arange(len(vertices)))
        return _Links(places, *torch.unique(vertices, return_inverse=True))

    def _excluded(self, places: torch.Tensor) -> torch.Tensor | None:
        if self.exclude is None:
            return None
        assert self._ids is not None
        ids = self._ids[places]
        return ids if self._reverse is None else torch.cat([ids, self._reverse[ids]])

    def _handed(self, sampled: TorchBatch, links: _Links, index: int) -> LinkBatch:
        """A batch as its consumer sees it."""
        count = len(links.places)
        of = _moved(links.where, index)
        src, dst, other = of[:count], of[count : 2 * count], of[2 * count :]
        label = None if self._labels is None else _moved(self._labels[links.places], index)
        none = None, None, None
        if self.negatives is not None and self.negatives.mode == "triplet":
            rest = src, dst, other.view(count, self.negatives.amount)
            return LinkBatch(sampled, links.places, None, label, *rest)
        if self.negatives is not None:
            both = torch.stack(
                [torch.cat([src, src.repeat_interleave(self.negatives.amount)]), of[count:]]
            )
        else:
            both = torch.stack([src, dst])
        if label is None:
            label = torch.zeros(both.shape[1], device=of.device)
            label[:count] = 1
        return LinkBatch(sampled, links.places, both, label, *none)


class _Links(NamedTuple):
    """Edges of a batch by their places, the seeds around them, and where sources, destinations and
    negatives are among these."""

    places: torch.Tensor
    seeds: torch.Tensor
    where: torch.Tensor


def _links(graph: Graph, edges: Any) -> tuple[torch.Tensor | None, torch.Tensor]:
    """The ids of edges, where ids were given, and their sources and destinations."""
    given = _tensor(edges, "edges")
    dtype = getattr(torch, graph.dtype)
    if given.dim() == 1:
        _check_range(given, "edges", graph.num_edges, "an edge id")
        return given, _ends(graph._on_cpu(), given).to(dtype)
    if given.dim() != 2 or given.shape[0] != 2:
        raise ValueError(f"edges: expected shape [E] or [2, E], got {tuple(given.shape)}")
    _check_range(given, "edges", graph.num_nodes, "a vertex")
    return None, given.to(dtype).contiguous()


def _ends(graph: Graph, ids: torch.Tensor) -> torch.Tensor:
    """Sources and destinations of edges of a graph on the CPU: shape [2, E]."""
    place = ids
    if graph.edge_ids is not None:
        of = graph.edge_ids.torch().long()
        place = torch.empty_like(of)
        place[of] = torch.arange(len(of))
        place = place[ids]
    indptr, indices = graph.indptr.torch().long(), graph.indices.torch().long()
    return torch.stack([indices[place], torch.searchsorted(indptr, place, right=True) - 1])


def _exclusion(exclude: Any, with_ids: bool) -> str | None:
    if exclude is None:
        return None
    if not isinstance(exclude, str):
        raise TypeError(f"exclude: expected a string or None, got {describe(exclude)}")
    if exclude not in _EXCLUDED:
        raise ValueError(f"exclude: expected 'self', 'reverse_id' or None, got {exclude!r}")
    if not with_ids:
        raise ValueError(
            f"exclude: expected None with pairs of vertices, whose edge ids are not known, got "
            f"{exclude!r}; give the ids of the edges instead"
        )
    return exclude


def _reverse(graph: Graph, ids: Any, exclude: str | None) -> torch.Tensor | None:
    """The reverse of each edge, where it is to be excluded."""
    if exclude != "reverse_id":
        if ids is not None:
            raise ValueError(f"reverse_eids: expected None with exclude={exclude!r}, got one")
        return None
    if ids is None:
        raise ValueError("reverse_eids: expected an edge id for each edge, got None")
    given = _tensor(ids, "reverse_eids")
    if tuple(given.shape) != (graph.num_edges,):
        raise ValueError(
            f"reverse_eids: expected shape [{graph.num_edges}], got {tuple(given.shape)}"
        )
    _check_range(given, "reverse_eids", graph.num_edges, "an edge id")
    return given


def _labels(labels: Any, count: int, negatives: Negatives | None) -> torch.Tensor | None:
    if labels is None:
        return None
    if negatives is not None and negatives.mode == "binary":
        raise ValueError(
            "labels: expected None with negatives of mode 'binary', whose labels are 1 and 0"
        )
    try:
        made = torch.as_tensor(labels).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"labels: expected a tensor, got {describe(labels)}: {error}") from None
    if not made.dim() or len(made) != count:
        raise ValueError(f"labels: expected shape [{count}, ...], got {tuple(made.shape)}")
    return made


def _tensor(ids: Any, name: str) -> torch.Tensor:
    """A copy on the CPU, in 64 bits."""
    try:
        made = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name}: expected an array of int32 or int64, got {describe(ids)}: {error}"
        ) from None
    if made.dtype not in (torch.int32, torch.int64) and made.numel():
        raise TypeError(f"{name}: expected int32 or int64, got {made.dtype}")
    return made.detach().to("cpu", torch.int64, copy=True)


def _check_range(ids: torch.Tensor, name: str, below: int, what: str) -> None:
    outside = (ids < 0) | (ids >= below)
    if bool(outside.any()):
        at = tuple(outside.nonzero()[0].tolist())
        place = ", ".join(map(str, at))
        raise IndexError(f"{name}[{place}]: expected {what} in [0, {below}), got {int(ids[at])}")


def _moved(values: torch.Tensor, index: int) -> torch.Tensor:
    """On the device, without waiting for what is in torch's current stream."""
    if index < 0:
        return values
    return values.pin_memory().to(torch.device("cuda", index), non_blocking=True)
