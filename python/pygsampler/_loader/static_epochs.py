"""``StaticEpochs``: the batches of a loader's passes, one after the other in the same memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._features.gather import gather_on_device
from pygsampler.errors import Error

if TYPE_CHECKING:
    from pygsampler._features.features import Features
    from pygsampler._features.gather import GatherPart
    from pygsampler._graph.graph import Graph
    from pygsampler._loader.feature_fetcher import FeatureFetcher
    from pygsampler._loader.shards import Shards
    from pygsampler._loader.static_layouts import StaticLayout
    from pygsampler._sampling.static_buffers import EpochSeeds, StaticBuffers
    from pygsampler.samplers.neighbor import PGSampler

__all__ = ["StaticEpochs", "padding_label"]

# So many batches are sampled ahead: the host looks at one while the next is used.
AHEAD = 2
# What cross_entropy and others ignore.
_IGNORED = -100

_log = logging.getLogger("pygsampler")


class StaticEpochs:
    """Passes over seeds with batches in memory that stays where it is.

    ``begin`` begins one; for each batch in turn ``ready`` waits until it is sampled, and ``turn``
    puts it into ``batch``, its rows too, and has a later one sampled: launches alone, which may be
    captured. A batch that is larger than there is room for is found by ``ready``: it makes more
    room, in other memory, and counts ``remade`` up.
    """

    def __init__(
        self,
        graph: Graph,
        shards: Shards,
        rank: int,
        rows: FeatureFetcher,
        form: StaticLayout,
        given: list[Any] | None,
    ) -> None:
        self.capacities = given
        self.remade = 0
        self._form = form
        self._graph = graph
        self._shards = shards
        self._rank = rank
        self._rows = rows
        self._standing: StaticBuffers | None = None
        self._sampler: PGSampler | None = None
        self._seeds: EpochSeeds | None = None
        # What is gathered for each batch, and of which features.
        self._parts: list[GatherPart] = []
        self._tables: list[Features] = []
        self._begun = 0
        self._side = SideStream(graph._device)

    @property
    def batch(self) -> Any:
        """The memory of batches."""
        assert self._standing is not None
        return self._standing.batch

    @property
    def num_edges(self) -> int:
        """Edges of the batch that was waited for."""
        assert self._standing is not None
        return self._standing.num_edges

    def begin(
        self,
        sampler: PGSampler,
        seeds: EpochSeeds,
        epoch: int,
        sampled: Callable[[], Iterator[Any]],
        again: Callable[[int, int], Any],
    ) -> int:
        """Begins a pass over seeds on the GPU, and gives it a number; ``sampled`` makes its batches
        in the usual way, from which the first pass knows their sizes, and ``again`` one, by its
        place in the pass and its number."""
        self._begun += 1
        if self.capacities is None:
            self.capacities = self._form.needed(sampled())
        if self._standing is None or sampler is not self._sampler:
            self._make(sampler, seeds)
        self._seeds, self._epoch, self._again = seeds, epoch, again
        self._start(0)
        return self._begun

    def ready(self, begun: int, step: int) -> None:
        """Waits until a batch of the pass is sampled."""
        self._check(begun)
        assert self._standing is not None
        if self._standing.wait(step - self._first):
            self._count()
            return
        assert self._sampler is not None
        assert self.capacities is not None
        needed = self._form.needed([self._again(step, self._number(step))])
        self.capacities = self._form.grown(self.capacities, needed)
        _log.info("static: batch %d needs more room: %s", step, self.capacities)
        assert self._seeds is not None
        self._make(self._sampler, self._seeds)
        self._start(step)
        if not self._standing.wait(0):
            raise Error("static: a batch does not fit into what it needs: a fault of pygsampler")
        self._count()

    def advance(self, begun: int, step: int) -> Any:
        """Puts the batch that is ready into ``batch``, and has the one after the next sampled."""
        self._check(begun)
        standing = self._standing
        assert standing is not None
        # The slot that it goes to was read by the batch before this one.
        self._side.launch(standing.sample)
        standing.fill()
        gather_on_device(self._graph._device, self._parts)
        batch = standing.batch
        labels = batch.features.get("y")
        if isinstance(labels, dict):
            masks = batch.seed_mask
            for kind, of_type in labels.items():
                _ignore(of_type, masks[kind])
        elif labels is not None:
            _ignore(labels, batch.seed_mask)
        self.note(step)
        return batch

    def note(self, step: int) -> None:
        """Gives ``batch`` the numbers of a batch of the pass."""
        known = self.batch.__dict__
        known["epoch"], known["batch"] = self._epoch, self._number(step)

    def join(self) -> None:
        """Lets torch's current stream wait for what is sampled beside it."""
        self._side.join()

    def batches(self, begun: int) -> Iterator[Any]:
        """The batches of a pass."""
        for step in range(self._shards.steps):
            self.ready(begun, step)
            batch = self.advance(begun, step)
            self.join()
            yield batch

    def __reduce__(self) -> tuple[Any, ...]:
        about = self._graph, self._shards, self._rank, self._rows, self._form, self.capacities
        return StaticEpochs, about

    def _check(self, begun: int) -> None:
        if begun != self._begun:
            raise Error(
                "static: expected one pass at a time, since all have one memory; got a batch of a "
                "pass after another began"
            )

    def _number(self, step: int) -> int:
        return step * self._shards.world_size + self._rank

    def _start(self, step: int) -> None:
        """Begins with batch ``step`` of the pass."""
        standing, seeds = self._standing, self._seeds
        assert standing is not None
        assert seeds is not None
        self._first = step
        standing.begin(seeds, step, self._epoch, self._number(step), self._shards.world_size)
        for _ in range(AHEAD):
            standing.sample()

    def _make(self, sampler: PGSampler, seeds: EpochSeeds) -> None:
        """Makes memory for batches of the capacities."""
        if self._standing is not None:
            self._standing.close()
            self._standing = None
            self.remade += 1
        assert self.capacities is not None
        bits = 8 * seeds.ids.element_size()
        standing = self._form.make(self._graph, sampler, self.capacities, bits)
        # First, since features may refuse: then there is no memory, and the next pass asks again.
        read = self._rows.attach_static(standing.batch)
        self._tables, self._parts = [table for table, _ in read], [part for _, part in read]
        self._standing, self._sampler = standing, sampler

    def _count(self) -> None:
        """Counts the rows that are read for a batch: who replays a graph does not ask for them."""
        for table, part in zip(self._tables, self._parts, strict=True):
            table._count(part.ids.length)


class SideStream:
    """A stream beside torch's current one on a device."""

    __slots__ = ("_device", "_stream")

    def __init__(self, device: int) -> None:
        self._device = device
        self._stream: Any = None

    def launch(self, work: Callable[[], None]) -> None:
        """Has what ``work`` launches run after all that is in the current stream now."""
        side = self._stream
        if side is None:
            side = self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(side):
            work()

    def join(self) -> None:
        """Lets the current stream wait for it."""
        torch.cuda.current_stream(self._device).wait_stream(self._stream)


def padding_label(dtype: torch.dtype) -> int:
    """The label of what fills up."""
    return _IGNORED if dtype in _WHOLE else 0


def _ignore(labels: torch.Tensor, seeds: torch.Tensor) -> None:
    """Has labels of what fills seeds up be ignored."""
    rest = (~seeds).reshape(-1, *[1] * (labels.dim() - 1))
    labels.masked_fill_(rest, padding_label(labels.dtype))


_WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64)
