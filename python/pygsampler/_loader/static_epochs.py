"""``StaticPlan``: the static batches of a loader, one after the other in the same memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._features.gather import gather_on_device
from pygsampler._loader.read_ahead import SideStream, writes_of
from pygsampler._loader.static_layouts import StaticLayout
from pygsampler._loader.static_links import padding_label
from pygsampler._sampling.static_buffers import copy_all
from pygsampler.errors import Error
from pygsampler.samplers.neighbor import PGSampler
from pygsampler.samplers.neighbor_plan import NEIGHBOR

if TYPE_CHECKING:
    from pygsampler._features.gather import GatherPart
    from pygsampler._graph.graph import Graph
    from pygsampler._loader.feature_fetcher import FeatureFetcher, StaticRows
    from pygsampler._loader.seed_labels import StaticSeedLabels
    from pygsampler._loader.seed_source import SeedSource
    from pygsampler._loader.shards import Shards
    from pygsampler._loader.static_links import StaticLinks
    from pygsampler._sampling.static_buffers import Capacity, EpochSeeds, StaticBuffers

__all__ = ["StaticEpochs", "StaticPlan"]

# So many batches are sampled ahead: the host looks at one while the next is used.
AHEAD = 2

_log = logging.getLogger("pygsampler")


class StaticEpochs:
    """Epochs of batches in memory that stays where it is.

    ``begin`` begins one; for each batch in turn ``ready`` waits until it is sampled, and
    ``advance`` puts it into ``batch``, its rows too, and has a later one sampled: launches alone,
    which may be captured. ``ready`` finds a batch that is larger than the room: it allocates more,
    in other memory, and counts ``remade`` up. Rows from outside of the GPU's memory are read a
    batch ahead, during the step, as ``ReadAhead`` has it, and copied when the batch is put there.
    """

    def __init__(
        self,
        graph: Graph,
        shards: Shards,
        rank: int,
        fetcher: FeatureFetcher,
        layout: StaticLayout,
        capacities: list[Any] | None,
        links: StaticLinks | StaticSeedLabels | None = None,
    ) -> None:
        self.capacities = capacities
        self.remade = 0
        self._layout = layout
        self._links = links
        self._graph = graph
        self._shards = shards
        self._rank = rank
        self._rows = fetcher
        self._buffers: StaticBuffers | None = None
        self._sampler: PGSampler | None = None
        self._seeds: EpochSeeds | None = None
        # Rows of each batch; parts that are gathered when it is put there, and ahead of that.
        self._read: list[StaticRows] = []
        self._near: list[GatherPart] = []
        self._far: list[GatherPart] = []
        self._external_tables = fetcher.external_tables()
        self._writes: list[tuple[int, int]] = []
        self._begun = 0
        self._side = SideStream(graph._device)
        self._reading = SideStream(graph._device, priority=-1)

    @property
    def batch(self) -> Any:
        """The memory of batches."""
        assert self._buffers is not None
        return self._buffers.batch

    @property
    def num_edges(self) -> int:
        """Edges of the batch that was waited for."""
        assert self._buffers is not None
        return self._buffers.num_edges

    @property
    def num_started(self) -> int:
        """Number of epochs that were started."""
        return self._begun

    def renew(self) -> None:
        """Has the next epoch begin with other memory, since features are read from elsewhere."""
        self._sampler = None
        self._external_tables = self._rows.external_tables()

    def begin(
        self,
        sampler: PGSampler,
        seeds: EpochSeeds,
        epoch: int,
        sampled: Callable[[], Iterator[Any]],
        again: Callable[[int, int], Any],
        draws: Any,
    ) -> int:
        """Begins an epoch, and returns its number.

        The seeds are on the GPU. ``sampled`` yields its batches in the usual way, from which the
        first epoch knows their sizes, and ``again`` samples one, by its step and its number.
        ``draws`` are the edges of all batches, or the places of their seeds where labels belong to
        seeds.
        """
        self._begun += 1
        if self._links is not None:
            self._links.begin(draws, self._graph._device)
        if self.capacities is None:
            self.capacities = self._layout.needed(sampled())
        if self._buffers is None or sampler is not self._sampler:
            self._make(sampler, seeds)
        self._seeds, self._epoch, self._again = seeds, epoch, again
        self._start(0)
        if self._shards.steps:
            self._count(is_ahead=True)
        return self._begun

    def ready(self, epoch_number: int, step: int) -> None:
        """Waits until a batch of the epoch is sampled.

        The edges that it is around, or the labels that belong to its seeds, are copied, which no
        CUDA graph has to do. Rows that were written to after they were read ahead are read again.
        """
        self._wait(epoch_number, step)
        if self._writes != writes_of(self._external_tables):
            gather_on_device(self._graph._device, self._far)
            self._count(is_ahead=True)
        if step + 1 < self._shards.steps:
            # Rows of the next are read while this batch is used.
            self._count(is_ahead=True)
        if self._links is not None:
            self._links.put(step)

    def _wait(self, epoch_number: int, step: int) -> None:
        self._check(epoch_number)
        assert self._buffers is not None
        if self._buffers.wait(step - self._first):
            self._count()
            return
        assert self._sampler is not None
        assert self.capacities is not None
        needed = self._layout.needed([self._again(step, self._number(step))])
        self.capacities = self._layout.grown(self.capacities, needed)
        room = self._layout.shown(self.capacities)
        _log.info("static: batch %d needs more room: %s", step, room)
        assert self._seeds is not None
        # Nothing was read ahead for a batch that does not fit.
        self._count(is_ahead=True, times=-1)
        self._make(self._sampler, self._seeds)
        self._start(step)
        self._count(is_ahead=True)
        if not self._buffers.wait(0):
            raise Error("static: a batch does not fit into what it needs: a fault of pygsampler")
        self._count()

    def advance(self, epoch_number: int, step: int) -> Any:
        """Puts the batch that is ready into ``batch``, and has the one after the next sampled."""
        self._check(epoch_number)
        buffers = self._buffers
        assert buffers is not None
        self.note(step)
        # The slot that it goes to was read by the batch before this one.
        self._side.launch(buffers.sample)
        if self._external_tables:
            buffers.take()
            early = [(each.rows, each.ahead.rows) for each in self._read if each.ahead]
            copy_all(*map(list, zip(*early, strict=True)))
        else:
            buffers.fill()
        gather_on_device(self._graph._device, self._near)
        if self._external_tables:
            self._reading.launch(self._read_next)
        batch = buffers.batch
        labels = batch.features.get("y")
        if isinstance(labels, dict):
            masks = batch.seed_mask
            for kind, of_type in labels.items():
                _ignore(of_type, masks[kind])
        elif labels is not None:
            _ignore(labels, batch.seed_mask)
        return batch if self._links is None else self._links.batch(batch)

    def note(self, step: int) -> None:
        """Gives ``batch`` the numbers of a batch of the epoch, before it is put there."""
        known = self.batch.__dict__
        known["epoch"], known["batch"] = self._epoch, self._number(step)
        self._writes = writes_of(self._external_tables)

    def join(self) -> None:
        """Lets torch's current stream wait for the sampling and the reading in side streams."""
        self._side.join()
        self._reading.join()

    def batches(self, epoch_number: int) -> Generator[Any, None, None]:
        """Yields the batches of an epoch."""
        for step in range(self._shards.steps):
            self.ready(epoch_number, step)
            batch = self.advance(epoch_number, step)
            try:
                yield batch
            finally:
                # Not before, or the consumer's step would wait for what runs beside it.
                self.join()

    def __reduce__(self) -> tuple[Any, ...]:
        owned = self._graph, self._shards, self._rank, self._rows
        return StaticEpochs, (*owned, self._layout, self.capacities, self._links)

    def _check(self, epoch_number: int) -> None:
        if epoch_number != self._begun:
            raise Error(
                "static: expected one epoch at a time, since all use one memory, got a batch of an "
                "epoch after another began"
            )

    def _number(self, step: int) -> int:
        return step * self._shards.world_size + self._rank

    def _start(self, step: int) -> None:
        """Begins with batch ``step`` of the epoch."""
        buffers, seeds = self._buffers, self._seeds
        assert buffers is not None
        assert seeds is not None
        self._first = step
        # A step that failed may have left work there, which would write to what begins anew.
        self.join()
        buffers.begin(seeds, step, self._epoch, self._number(step), self._shards.world_size)
        for _ in range(AHEAD):
            buffers.sample()
        self._writes = writes_of(self._external_tables)
        if self._external_tables:
            self._read_next()

    def _read_next(self) -> None:
        """Reads the rows of the next batch that is sampled, as far as they are read ahead."""
        buffers = self._buffers
        assert buffers is not None
        buffers.fill()
        # Rows of padding are read, too, but no batch behind the end.
        is_over = buffers.is_over()
        for each in self._read:
            if each.ahead:
                each.ahead.wanted.copy_(each.ahead.ids).masked_fill_(is_over, -1)
        gather_on_device(self._graph._device, self._far, concurrent=True)

    def _make(self, sampler: PGSampler, seeds: EpochSeeds) -> None:
        """Allocates memory for batches of the capacities."""
        if self._buffers is not None:
            self._buffers.close()
            self._buffers = None
            self.remade += 1
        assert self.capacities is not None
        bits = 8 * seeds.ids.element_size()
        stages = bool(self._external_tables)
        buffers = self._layout.allocate(self._graph, sampler, self.capacities, bits, stages)
        # First, since features may refuse: then there is no memory, and the next epoch asks again.
        self._read = self._rows.attach_static(buffers.batch, buffers.staged)
        self._near = [each.part for each in self._read if each.ahead is None]
        self._far = [each.part for each in self._read if each.ahead is not None]
        self._buffers, self._sampler = buffers, sampler

    def _count(self, *, is_ahead: bool = False, times: int = 1) -> None:
        """Counts rows of a batch that are read, ahead or when it is put into its place.

        Who replays a graph does not ask for them.
        """
        for each in self._read:
            if (each.ahead is not None) == is_ahead:
                each.features._count(each.part.ids.length, times)


class StaticPlan:
    """The static batches of a loader; ValueError or TypeError for one that cannot have any."""

    __slots__ = ("epochs", "layout")

    def __init__(
        self,
        graph: Any,
        sampler: Any,
        shards: Shards,
        rank: int,
        source: SeedSource,
        fetcher: FeatureFetcher,
        capacities: Any,
    ) -> None:
        if graph.device == "cpu":
            raise ValueError("static: expected a graph on a CUDA device, got one on the CPU")
        if not isinstance(sampler, PGSampler):
            raise TypeError(f"static: expected a PGSampler, got {sampler!r}")
        if sampler.mode not in NEIGHBOR:
            raise ValueError(
                f"static: expected a sampler of mode {' or '.join(map(repr, NEIGHBOR))}, got "
                f"{sampler.mode!r}"
            )
        size = min(shards.batch_size, shards.num_seeds)
        self.layout = StaticLayout(graph, sampler, source.most(size, graph), source.excludes)
        room = self.layout.checked(capacities, sampler)
        if shards.shard_by != "seeds":
            raise ValueError(f"shard_by: expected 'seeds' with static, got {shards.shard_by!r}")
        links = source.static_links(size, graph)
        self.epochs = StaticEpochs(graph, shards, rank, fetcher, self.layout, room, links)

    @property
    def capacities(self) -> list[Capacity] | None:
        """The sizes of each block; None before the first epoch has shown them."""
        sizes = self.epochs.capacities
        return None if sizes is None else self.layout.shown(sizes)


def _ignore(labels: torch.Tensor, seeds: torch.Tensor) -> None:
    """Has labels of what fills seeds up be ignored."""
    rest = (~seeds).reshape(-1, *[1] * (labels.dim() - 1))
    labels.masked_fill_(rest, padding_label(labels.dtype))
