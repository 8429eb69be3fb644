"""``StaticLinks``: what static batches say of their links, in memory that stays where it is."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._batch.link_batch import LinkBatch, link_batch
from pygsampler._sampling import static_buffers
from pygsampler._sampling.seed_times import seed_times
from pygsampler._sampling.static_buffers import EpochExclusions, EpochSeeds, padded_rows

if TYPE_CHECKING:
    from pygsampler._graph.temporal import TimeSortedGraph, TimeSortedRelation
    from pygsampler._loader.seed_edges import BatchSeeds, SampledEdges, SeedEdges

__all__ = ["StaticLinks", "epoch_seeds", "most_seeds", "padding_label"]

# What cross_entropy and others ignore.
_IGNORED = -100
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64)


def padding_label(dtype: torch.dtype) -> int:
    """The label of what fills up."""
    return _IGNORED if dtype in _WHOLE else 0


def most_seeds(
    links: Mapping[Any, SeedEdges], size: int, num_nodes: Mapping[str, int], disjoint: bool
) -> dict[str, int]:
    """How many seeds of each type a batch of so many edges may have."""
    each: dict[str, list[tuple[int, int]]] = {}
    for of in links.values():
        weights: dict[str, int] = {}
        for kind, count in of.sizes(1):
            weights[kind] = weights.get(kind, 0) + count
        for kind, count in weights.items():
            each.setdefault(kind, []).append((count, len(of)))
    made = {}
    for kind, given in each.items():
        left, most = size, 0
        # At most, a batch is of those relations of which an edge has most vertices of the type.
        for count, edges in sorted(given, reverse=True):
            most += count * min(left, edges)
            left -= min(left, edges)
        made[kind] = most if disjoint else min(most, num_nodes[kind])
    return made


def epoch_seeds(
    batches: Sequence[BatchSeeds],
    kinds: Sequence[str],
    timed: TimeSortedRelation | TimeSortedGraph | None,
    excluded: EpochExclusions | None,
    copied: Callable[[torch.Tensor], torch.Tensor],
) -> EpochSeeds:
    """Returns the seeds of the batches of an epoch on a GPU, and what these leave out.

    Each batch has its seeds type by type. ``kinds`` are the graph's types, or ``""`` without any.
    """
    parts, counts, at = array("q"), array("q"), 0
    ids, times = [], []
    for batch in batches:
        first = at
        for kind in kinds:
            mine = batch.seeds.get(kind)
            count = 0 if mine is None else len(mine)
            counts.append(count)
            at += count
            if mine is not None:
                ids.append(mine)
                if timed is not None:
                    times.append(batch.times[kind])
        parts.extend((first, at - first))
    told = None if timed is None else seed_times(torch.cat(times), at, timed)
    return EpochSeeds(copied(torch.cat(ids)), parts, counts, told, excluded)


class StaticLinks:
    """The links of a loader's batches, of which each begins with at most so many edges.

    ``seeds`` are how many a batch may have of each type. Its tensors are made once, so that a step
    that was captured finds each pass's batches in them; ``begin`` is told what a pass has, ``put``
    copies one batch of it there.
    """

    def __init__(
        self, links: Mapping[Any, SeedEdges], size: int, seeds: Mapping[str, int], is_hetero: bool
    ) -> None:
        self._is_hetero = is_hetero
        self._memories = {
            kind: _LinkBuffers(of, min(size, len(of)), seeds) for kind, of in links.items()
        }

    def begin(self, batches: Sequence[tuple[list[SampledEdges], BatchSeeds]], device: int) -> None:
        """The batches of a pass."""
        rows = [iter(gathered.where) for _, gathered in batches]
        for place, memory in enumerate(self._memories.values()):
            mine = [drawn[place] for drawn, _ in batches]
            where = [[next(of) for _ in one.lists] for one, of in zip(mine, rows, strict=True)]
            memory.begin(mine, where, device)

    def put(self, step: int) -> None:
        """Copies a batch of the pass, after what is in torch's current stream."""
        for memory in self._memories.values():
            memory.put(step)

    def of(self, minibatch: Any) -> LinkBatch:
        """Returns the batch around a mini-batch."""
        fields = {kind: memory.fields() for kind, memory in self._memories.items()}
        return link_batch(minibatch, fields if self._is_hetero else fields[None])


class _Field(NamedTuple):
    """One of the fields of ``LinkBatch``: where it begins among the numbers, and its shape, of
    which the dimension before last or the last counts what a batch has."""

    start: int
    shape: tuple[int, ...]


class _LinkBuffers:
    """Of one relation. All that is int64 but labels is one tensor, so a batch is a copy or two."""

    def __init__(self, links: SeedEdges, edges: int, seeds: Mapping[str, int]) -> None:
        self._links = links
        where = [_rest(seeds[kind], count) for kind, count in links.sizes(edges)]
        # What a batch of the most edges would say, in rows that no batch uses: shapes, and what
        # fills up.
        places = torch.zeros(edges, dtype=torch.int64)
        fields = links.handed(places, where, devices.CPU)
        label = fields[_LABEL]
        self._label = None if label is None else label.fill_(padding_label(label.dtype))
        self._fields: list[_Field | None] = []
        numbers, at = [], 0
        for place, of in enumerate([*fields, torch.zeros(2, dtype=torch.int64)]):
            if of is None or place == _LABEL:
                self._fields.append(None)
                continue
            self._fields.append(_Field(at, tuple(of.shape)))
            numbers.append(of.flatten())
            at += of.numel()
        self._numbers = torch.cat(numbers)
        # On the GPU; and of a pass, batch by batch, on the host.
        self._there: tuple[torch.Tensor, torch.Tensor | None] | None = None
        self._rows: tuple[torch.Tensor, torch.Tensor | None] | None = None

    def begin(
        self, drawn: list[SampledEdges], where: list[list[torch.Tensor]], device: int
    ) -> None:
        if self._there is None:
            there = static_buffers.place_of(device)
            label = None if self._label is None else self._label.to(there, copy=True)
            self._there = self._numbers.to(there, copy=True), label
        steps = len(drawn)
        numbers = self._numbers.repeat(steps, 1)
        label = self._label
        labels = None if label is None else label.repeat(steps, *[1] * label.dim())
        for step, (of, rows) in enumerate(zip(drawn, where, strict=True)):
            fields = self._links.handed(of.places, rows, devices.CPU)
            index = fields[_INDEX]
            links = len(of.places) if index is None else index.shape[1]
            counts = torch.tensor([len(of.places), links])
            for place, (known, value) in enumerate(
                zip(self._fields, [*fields, counts], strict=True)
            ):
                if known is None:
                    continue
                mine = _view(numbers[step], known)
                if place == _INDEX:
                    mine[:, :links] = value
                else:
                    mine[: len(value)] = value
            if labels is not None:
                labels[step, : len(fields[_LABEL])] = fields[_LABEL]
        self._rows = numbers, labels

    def put(self, step: int) -> None:
        assert self._there is not None
        assert self._rows is not None
        for there, rows in zip(self._there, self._rows, strict=True):
            if there is not None and rows is not None:
                _copy(there, rows[step])

    def fields(self) -> list[torch.Tensor | None]:
        """Returns the fields of ``LinkBatch`` behind ``minibatch``."""
        assert self._there is not None
        numbers, label = self._there
        made = [None if known is None else _view(numbers, known) for known in self._fields]
        made[_LABEL] = label
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_there": None, "_rows": None}


# Places of edge_label_index and edge_label among what SeedEdges.handed gives.
_INDEX, _LABEL = 1, 2


def _view(numbers: torch.Tensor, field: _Field) -> torch.Tensor:
    size = 1
    for of in field.shape:
        size *= of
    return numbers[field.start : field.start + size].view(field.shape)


def _rest(seeds: int, count: int) -> torch.Tensor:
    """Rows behind those of so many seeds, dealt out."""
    return seeds + torch.arange(count) % (padded_rows(seeds) - seeds)


def _copy(there: torch.Tensor, row: torch.Tensor) -> None:
    # Out of page-locked memory, which torch keeps until the copy is done: nobody waits.
    there.copy_(row.pin_memory() if there.is_cuda else row, non_blocking=True)
