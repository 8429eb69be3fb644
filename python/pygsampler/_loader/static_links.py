"""``StaticLinks``: the links of static batches, in memory that stays where it is."""

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

__all__ = ["StaticLinks", "copy_rows", "epoch_seeds", "most_seeds", "padding_label"]

# A label that cross_entropy and others ignore.
_IGNORED = -100
_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64)


def padding_label(dtype: torch.dtype) -> int:
    """Returns the label that fills labels up."""
    return _IGNORED if dtype in _WHOLE else 0


def most_seeds(
    links: Mapping[Any, SeedEdges], size: int, num_nodes: Mapping[str, int], disjoint: bool
) -> dict[str, int]:
    """Returns how many seeds of each type a batch of ``size`` edges may have."""
    each: dict[str, list[tuple[int, int]]] = {}
    for of in links.values():
        weights: dict[str, int] = {}
        for kind, count in of.sizes(1):
            weights[kind] = weights.get(kind, 0) + count
        for kind, count in weights.items():
            each.setdefault(kind, []).append((count, len(of)))
    result = {}
    for kind, pairs in each.items():
        rest, most = size, 0
        # At most, a batch is of the relations whose edges have most nodes of the type.
        for count, edges in sorted(pairs, reverse=True):
            most += count * min(rest, edges)
            rest -= min(rest, edges)
        result[kind] = most if disjoint else min(most, num_nodes[kind])
    return result


def epoch_seeds(
    batches: Sequence[BatchSeeds],
    kinds: Sequence[str],
    sorted_rows: TimeSortedRelation | TimeSortedGraph | None,
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
                if sorted_rows is not None:
                    times.append(batch.times[kind])
        parts.extend((first, at - first))
    bounds = None if sorted_rows is None else seed_times(torch.cat(times), at, sorted_rows)
    return EpochSeeds(copied(torch.cat(ids)), parts, counts, bounds, excluded)


class StaticLinks:
    """The links of a loader's batches, of which each begins with at most ``size`` edges.

    A batch has at most ``seeds`` of each type. The tensors stay the same, so that a captured step
    finds the batches of each epoch in them; ``begin`` takes those of an epoch, ``put`` copies one
    of them to the tensors.
    """

    def __init__(
        self, links: Mapping[Any, SeedEdges], size: int, seeds: Mapping[str, int], is_hetero: bool
    ) -> None:
        self._is_hetero = is_hetero
        self._buffers = {
            kind: _LinkBuffers(of, min(size, len(of)), seeds) for kind, of in links.items()
        }

    def begin(self, batches: Sequence[tuple[list[SampledEdges], BatchSeeds]], device: int) -> None:
        """Takes the edges and seeds of the batches of an epoch, for a device."""
        rows = [iter(seeds.where) for _, seeds in batches]
        for place, buffers in enumerate(self._buffers.values()):
            mine = [edges[place] for edges, _ in batches]
            where = [[next(of) for _ in one.lists] for one, of in zip(mine, rows, strict=True)]
            buffers.begin(mine, where, device)

    def put(self, step: int) -> None:
        """Copies a batch of the epoch, after the work in torch's current stream."""
        for buffers in self._buffers.values():
            buffers.put(step)

    def batch(self, minibatch: Any) -> LinkBatch:
        """Returns the batch around a mini-batch."""
        fields = {kind: buffers.fields() for kind, buffers in self._buffers.items()}
        return link_batch(minibatch, fields if self._is_hetero else fields[None])


class _Field(NamedTuple):
    """A field of ``LinkBatch``: its beginning among the numbers, and its shape."""

    start: int
    shape: tuple[int, ...]


class _LinkBuffers:
    """The links of one relation.

    All int64 fields but labels are one tensor, so that a batch is a copy or two.
    """

    def __init__(self, links: SeedEdges, edges: int, seeds: Mapping[str, int]) -> None:
        self._links = links
        where = [_rest(seeds[kind], count) for kind, count in links.sizes(edges)]
        # The fields of a batch of the most edges, of rows that no batch uses: they give shapes, and
        # fill smaller batches up.
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
        # On the GPU; and of an epoch, batch by batch, on the host.
        self._on_device: tuple[torch.Tensor, torch.Tensor | None] | None = None
        self._rows: tuple[torch.Tensor, torch.Tensor | None] | None = None

    def begin(
        self, batches: list[SampledEdges], where: list[list[torch.Tensor]], device: int
    ) -> None:
        if self._on_device is None:
            target = static_buffers.place_of(device)
            label = None if self._label is None else self._label.to(target, copy=True)
            self._on_device = self._numbers.to(target, copy=True), label
        steps = len(batches)
        numbers = self._numbers.repeat(steps, 1)
        label = self._label
        labels = None if label is None else label.repeat(steps, *[1] * label.dim())
        for step, (of, rows) in enumerate(zip(batches, where, strict=True)):
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
        assert self._on_device is not None
        assert self._rows is not None
        for tensor, rows in zip(self._on_device, self._rows, strict=True):
            if tensor is not None and rows is not None:
                copy_rows(tensor, rows[step])

    def fields(self) -> list[torch.Tensor | None]:
        """Returns the fields of ``LinkBatch`` behind ``minibatch``."""
        assert self._on_device is not None
        numbers, label = self._on_device
        fields = [None if field is None else _view(numbers, field) for field in self._fields]
        fields[_LABEL] = label
        return fields

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_on_device": None, "_rows": None}


# Places of edge_label_index and edge_label among what SeedEdges.handed gives.
_INDEX, _LABEL = 1, 2


def _view(buffer: torch.Tensor, field: _Field) -> torch.Tensor:
    size = 1
    for of in field.shape:
        size *= of
    return buffer[field.start : field.start + size].view(field.shape)


def _rest(seeds: int, count: int) -> torch.Tensor:
    """Returns rows behind those of the seeds, spread over all that there are."""
    return seeds + torch.arange(count) % (padded_rows(seeds) - seeds)


def copy_rows(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Copies values on the CPU to a tensor, after the work in torch's current stream."""
    # Out of page-locked memory, which torch keeps until the copy is done: nobody waits.
    tensor.copy_(values.pin_memory() if tensor.is_cuda else values, non_blocking=True)
