"""Seeds of a loader, and their times, as tensors: of one type, or of several in one order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.dlpack import from_dlpack

from pygsampler._arrays import devices
from pygsampler._arrays.datetimes import as_nanoseconds, as_numpy_dates, check_datetime_kind
from pygsampler._arrays.ids import check_node_ids
from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import check_by_type
from pygsampler._sampling.seed_times import is_scalar_time

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph


class HeteroSeeds:
    """The seeds of a loader, by type.

    ``order`` has all seeds, type after type in the graph's order. Seeds of one type are its ids;
    with several types each seed is its id plus the number of nodes of the types before its type.
    """

    __slots__ = ("_counts", "_ends", "_kinds", "kinds", "order")

    def __init__(self, graph: Graph, seeds: Any) -> None:
        types, counts = graph.node_types, graph.num_nodes
        if not isinstance(seeds, Mapping) and len(types) == 1:
            seeds = {types[0]: seeds}
        if not isinstance(seeds, Mapping):
            raise TypeError(
                f"seeds: expected a mapping of types to ids, got {describe(seeds)}; "
                f"{{{types[0]!r}: ids}} are some"
            )
        seeds = check_by_type(seeds, "seeds", types)
        # All of the graph, and those that have seeds.
        self.kinds = list(types)
        self._kinds = [kind for kind in types if kind in seeds]
        parts = []
        for kind in self._kinds:
            try:
                parts.append(seed_tensor(seeds[kind], counts[kind]))
            except (TypeError, ValueError, IndexError) as error:
                text = str(error).removeprefix("seeds")
                raise type(error)(f"seeds[{kind!r}]{text}") from None
        self._counts = list(map(len, parts))
        ends = list(itertools.accumulate(counts[kind] for kind in self._kinds))
        self._ends = torch.tensor(ends)
        if len(parts) > 1:
            parts = [part.long() + first for part, first in zip(parts, [0, *ends], strict=False)]
        self.order = torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)

    @property
    def counts(self) -> dict[str, int]:
        """The number of seeds of each node type."""
        return dict(zip(self._kinds, self._counts, strict=True))

    def most(self, size: int, again: bool = False) -> dict[str, int]:
        """Returns how many of each type a batch of so many has at most.

        With ``again`` a seed may be in a batch more than once.
        """
        return {
            kind: size if again and count else min(size, count)
            for kind, count in self.counts.items()
        }

    def part(self, order: torch.Tensor, start: int, end: int) -> dict[str, torch.Tensor]:
        """Some of them, put into an order, by type."""
        part = order[start:end]
        ends = self._ends.tolist()
        firsts = dict(zip(self._kinds, [0, *ends], strict=False))
        found = self._split(part, part)
        return {kind: ids - firsts[kind] if firsts[kind] else ids for kind, ids in found.items()}

    def times(self, value: Any) -> torch.Tensor | None:
        """A time for each, in their order, of a mapping of types; None for None."""
        if value is None:
            return None
        if not isinstance(value, Mapping):
            if len(self._kinds) != 1 and not is_scalar_time(value):
                raise TypeError(
                    "seed_time: expected a mapping of types to times, or one for all, got "
                    f"{describe(value)}"
                )
            value = dict.fromkeys(self._kinds, value)
        value = check_by_type(value, "seed_time", self._kinds, "the seeds")
        parts = []
        for kind, count in zip(self._kinds, self._counts, strict=True):
            times = seed_times_tensor(value.get(kind), f"seed_time[{kind!r}]", count, "seeds")
            if times is None:
                raise ValueError(f"seed_time: expected times of {kind!r} too, got none")
            parts.append(times)
        if len({times.dtype for times in parts}) > 1:
            raise TypeError(
                "seed_time: expected integers for all types, or floating-point numbers, got both"
            )
        return torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)

    def part_times(
        self, order: torch.Tensor, times: torch.Tensor, start: int, end: int
    ) -> dict[str, torch.Tensor]:
        """The times of some, in that order too, by type."""
        return self._split(order[start:end], times[start:end])

    def labels(self, value: Any) -> dict[str, torch.Tensor]:
        """Labels for each, by type, of a mapping of types."""
        if not isinstance(value, Mapping):
            if len(self._kinds) != 1:
                raise TypeError(
                    f"seed_labels: expected a mapping of types to labels, got {describe(value)}"
                )
            value = dict.fromkeys(self._kinds, value)
        value = check_by_type(value, "seed_labels", self._kinds, "the seeds")
        labels = {}
        for kind, count in self.counts.items():
            if value.get(kind) is None:
                raise ValueError(f"seed_labels: expected labels of {kind!r} too, got none")
            labels[kind] = label_tensor(value[kind], f"seed_labels[{kind!r}]", count)
        return labels

    def part_places(
        self, order: torch.Tensor, places: torch.Tensor, start: int, end: int
    ) -> dict[str, torch.Tensor]:
        """The places of some among the seeds of their type; ``places`` are those among all."""
        firsts = [0, *itertools.accumulate(self._counts)]
        found = self._split(order[start:end], places[start:end])
        return {kind: of - first for (kind, of), first in zip(found.items(), firsts, strict=False)}

    def _split(self, part: torch.Tensor, values: torch.Tensor) -> dict[str, torch.Tensor]:
        """The values of some seeds by their types."""
        if len(self._kinds) <= 1:
            return dict.fromkeys(self._kinds, values)
        place = torch.bucketize(part, self._ends, right=True)
        return {kind: values[place == i] for i, kind in enumerate(self._kinds)}


def seed_tensor(seeds: Any, num_nodes: int) -> torch.Tensor:
    """A contiguous copy on the CPU of the node ids, int32 or int64, in ``[0, num_nodes)``."""
    if seeds is None:
        raise TypeError(
            f"seeds: expected a 1-D array of node ids, got None; torch.arange({num_nodes}) are all"
        )
    if isinstance(seeds, torch.Tensor):
        tensor = seeds
    elif hasattr(seeds, "__dlpack__") and not hasattr(seeds, "__array__"):
        tensor = from_dlpack(seeds)
    else:
        try:
            tensor = as_tensor(seeds)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"seeds: expected a 1-D array of int32 or int64 node ids, "
                f"got {describe(seeds)}: {error}"
            ) from None
        if tensor.numel() == 0 and isinstance(seeds, (list, tuple)):
            tensor = tensor.to(torch.int64)
    if tensor.dtype == torch.bool:
        raise TypeError(
            "seeds: expected node ids, got a boolean mask; "
            "mask.nonzero().squeeze(1) gives the ids that it selects"
        )
    if tensor.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"seeds: expected int32 or int64 node ids, got {tensor.dtype}")
    if tensor.dim() != 1:
        raise ValueError(f"seeds: expected a 1-D array, got shape {tuple(tensor.shape)}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(f"seeds: expected an array on the CPU, got {tensor.device}")
    tensor = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    check_node_ids(tensor, "seeds", num_nodes)
    return tensor


def check_dates(value: Any, graph: Any, *names: str | None, where: str = "seed_time") -> None:
    """Raises TypeError if a loader's ``where`` has dates and the graph's times of that name do not.

    Dates become tensors of numbers afterwards, so a later check is impossible. For a partitioned
    graph the kind of times is not known, and nothing is raised.
    """
    if value is None or graph._service is not None:
        return
    for name in names:
        if name is None:
            continue
        of = graph._source._kind_of_times(name)
        if not isinstance(value, Mapping):
            check_datetime_kind(as_numpy_dates(value, where), of, name, where)
            continue
        for kind, values in value.items():
            at = f"{where}[{kind!r}]"
            check_datetime_kind(as_numpy_dates(values, at), of, name, at)


def seed_times_tensor(value: Any, name: str, count: int, seed_noun: str) -> torch.Tensor | None:
    """A time for each on the CPU, int64 or float64, of those or of one for all; None for None."""
    if value is None:
        return None
    values = as_nanoseconds(as_numpy_dates(value, name), name)
    expected = f"{name}: expected numbers of 64 bits or dates, shape [N], or one, got"
    try:
        times = as_tensor(values).detach().cpu()
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise TypeError(f"{expected} {describe(value)}") from None
    if times.dtype == torch.bool or times.is_complex() or times.dim() > 1:
        raise TypeError(f"{expected} {describe(value)}")
    if times.dim() == 0:
        times = times.repeat(count)
    if len(times) != count:
        raise ValueError(
            f"{name}: expected a time for each of {count} {seed_noun}, got {len(times)}"
        )
    if not times.is_floating_point():
        return times.long()
    # NaN is neither before nor after another time: no comparison would notice it.
    missing = times.isnan().nonzero()
    if len(missing):
        raise ValueError(f"{name}[{int(missing[0])}]: expected a time, got nan")
    return times.double()


# Says of names among labels the way out.
_NAMES = "names are no numbers; np.unique(names, return_inverse=True)[1] numbers them"


def label_tensor(value: Any, name: str, count: int) -> torch.Tensor:
    """Returns labels on the CPU, shape [count, ...]."""
    if getattr(value, "requires_grad", False) is True:
        raise ValueError(
            f"{name}: expected a tensor without a gradient, got one with "
            f"requires_grad=True; give {name.partition('[')[0]}.detach()"
        )
    try:
        labels = as_tensor(value, of_names=_NAMES).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name}: expected a tensor, got {describe(value)}: {error}") from None
    if not labels.dim() or len(labels) != count:
        raise ValueError(f"{name}: expected shape [{count}, ...], got {tuple(labels.shape)}")
    return labels


def to_device(values: torch.Tensor, index: int) -> torch.Tensor:
    """Returns values on a device, without waiting for what is in torch's current stream."""
    if index == devices.CPU:
        return values
    # From page-locked memory the copy is asynchronous. Torch keeps that memory until it is done.
    return values.pin_memory().to(torch.device("cuda", index), non_blocking=True)
