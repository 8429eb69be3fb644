"""Batches on their way on a CUDA device."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays import devices
from pygsampler._arrays.ids import as_ids, as_int64, on_host
from pygsampler._batch import layout as at
from pygsampler._batch.views import RegionViews
from pygsampler._core import memories
from pygsampler._core.library import call
from pygsampler._sampling.base import in_set
from pygsampler._sampling.job import Job
from pygsampler.converted import TorchBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from pygsampler._sampling.engine_sampler import EngineSampler
    from pygsampler.graph import Graph
    from pygsampler.minibatch import MiniBatch

# Each batch in flight has tables of the size of the graph's vertices on the device.
_MOST_AT_ONCE = 16
_CALL_WORDS = 8


class _FlyingJob(Job):
    """A batch on its way on a device."""

    __slots__ = ()

    _end: ClassVar[str] = "DeviceCancel"

    def _submit(self, *call: int) -> None:
        memories.call("DeviceSubmit", *call, jobs=[self])

    def _await(self, timeout_ms: int) -> int | memories.Memory:
        return memories.call("DeviceWait", self._number, timeout_ms)


class DeviceJob(_FlyingJob):
    """A batch in memory that the engine allocates on the device."""

    __slots__ = ("_seeds",)

    # The device may read them until the batch is done.
    _seeds: Any

    @classmethod
    def submit(
        cls,
        graph: Graph,
        sampler: EngineSampler,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        own: bool,
    ) -> DeviceJob:
        """Puts a batch into a stream of the engine's own, or into the caller's."""
        handle, device = graph._handle(), graph._device
        job = cls(graph, sampler, epoch, batch)
        ids = as_ids(seeds, "seeds", device)
        without = None
        if exclude is not None:
            taken = as_ids(exclude, "exclude", device)
            without = as_int64(on_host(taken))
        job._seeds = ids
        job._submit(
            handle,
            sampler._handle(),
            ids.address,
            ids.length,
            ids.bits,
            int(ids.device >= 0),
            epoch,
            batch,
            without.address if without else 0,
            without.length if without else 0,
            devices.current_stream(device) if ids.stream is None else ids.stream,
            int(own),
            0,
            0,
        )
        return job

    def _taken(self, given: Any) -> Any:
        self._seeds = None
        return super()._taken(given)


class TorchJob(_FlyingJob):
    """A batch in memory that torch allocates; ``result()`` gives a TorchBatch.

    The tensor belongs to torch's current stream, where it comes after all that used its memory
    before. Its size is what the engine says would do, by such batches so far; a batch that needs
    more says so, and is sampled once more into a larger one.
    """

    __slots__ = ("_key", "_own", "_region", "_seeds")

    def __init__(
        self, graph: Graph, sampler: EngineSampler, seeds: Any, epoch: int, batch: int, own: bool
    ) -> None:
        super().__init__(graph, sampler, epoch, batch)
        # Before anything of CUDA: in a forked child this raises.
        graph._handle()
        ids = self._seeds = as_ids(seeds, "seeds", graph._device)
        self._own = int(own)
        key = self._key = (sampler._plan.document, ids.length.bit_length())
        self._region: torch.Tensor | None = None
        # The engine is asked of a kind's first batch; each batch that arrives tells of the next.
        self._launch(graph._capacity.get(key) or self._ask(ids.length))

    def result(self) -> TorchBatch:  # type: ignore[override]
        """The batch, waiting until it is there; raises what went wrong with it."""
        batch: Any = super().result()
        taken: TorchBatch = batch
        return taken

    def _ask(self, seeds: int) -> int:
        handles = self._graph._handle(), self._sampler._handle()
        size: int = call("DeviceCapacity", *handles, seeds)
        return size

    def _launch(self, size: int) -> None:
        graph, ids = self._graph, self._seeds
        device = graph._device
        region = self._region = allocate(size, graph._known()[1]._bits, device)
        stream = devices.current_stream(device)
        if ids.stream is not None and ids.stream != stream:
            _after(device, ids.stream)
        self._submit(
            graph._handle(),
            self._sampler._handle(),
            ids.address,
            ids.length,
            ids.bits,
            int(ids.device >= 0),
            self.epoch,
            self.batch,
            0,
            0,
            stream,
            self._own,
            region.data_ptr(),
            region.numel() * region.element_size(),
        )

    def _taken(self, given: Any) -> TorchBatch | None:
        known = self._graph._capacity
        if not isinstance(given, memories.Memory):
            known[self._key] = -given
            # The old one goes first: there may be no room for both.
            self._region = None
            self._launch(-given)
            if self._outcome is not None:
                # Cancelled meanwhile, by another thread, which knew the first try only.
                self._give_back()
            return None
        words = memories.read_int64(given.header, self._sampler._plan.num_words)
        known[self._key] = words[at.CAPACITY]
        region, self._region = self._region, None
        assert region is not None
        return TorchBatch._of(
            RegionViews(region, words, self._graph._device), self.epoch, self.batch
        )


def sample_many(
    graph: Graph, sampler: EngineSampler, seeds: Sequence[Any], epoch: int, batch: int
) -> list[MiniBatch]:
    """A batch for each of several sets of seeds, several to a launch."""
    batches: list[MiniBatch] = []
    for start in range(0, len(seeds), _MOST_AT_ONCE):
        some = seeds[start : start + _MOST_AT_ONCE]
        jobs = _submit_many(graph, sampler, some, epoch, batch + start, start)
        try:
            for job in jobs:
                batches.append(job.result())
        except (TypeError, ValueError, IndexError) as error:
            raise in_set(error, len(batches)) from None
        finally:
            # After an error, those that are still on their way.
            for job in jobs:
                job.cancel()
    return batches


def _submit_many(
    graph: Graph, sampler: EngineSampler, seeds: Sequence[Any], epoch: int, batch: int, start: int
) -> list[DeviceJob]:
    """``start`` is the place of the first among all sets of seeds, for errors."""
    handle, device = graph._handle(), graph._device
    stream = devices.current_stream(device)
    views = [as_ids(ids, f"seeds[{i}]", device) for i, ids in enumerate(seeds, start)]
    words = array("q")
    for i, ids in enumerate(views):
        if ids.stream is not None and ids.stream != stream:
            # A launch waits for one stream.
            return [
                DeviceJob.submit(graph, sampler, view, epoch=epoch, batch=batch + place, own=True)
                for place, view in enumerate(views)
            ]
        words.extend(
            (ids.address, ids.length, ids.bits, int(ids.device >= 0), epoch, batch + i, 0, 0)
        )
    assert len(words) == _CALL_WORDS * len(views)
    calls = words.buffer_info()[0]
    made = [DeviceJob(graph, sampler, epoch, batch + i) for i in range(len(views))]
    for job, ids in zip(made, views, strict=True):
        job._seeds = ids
    about = handle, sampler._handle(), len(views), calls, stream, 1
    memories.call("DeviceSubmitMany", *about, jobs=made)
    return made


def allocate(size: int, bits: int, device: int) -> torch.Tensor:
    """A tensor of ids of at least so many bytes, in torch's current stream on the device."""
    import torch

    place = _devices.get(device)
    if place is None:
        place = _devices[device] = torch.device("cuda", device)
    # Whole words, so that it can be viewed as either dtype.
    words = (size + 7) // 8
    if bits == 64:
        return torch.empty(words, dtype=torch.int64, device=place)
    return torch.empty(2 * words, dtype=torch.int32, device=place)


_devices: dict[int, torch.device] = {}


def _after(device: int, stream: int) -> None:
    """Lets torch's current stream wait for what is in another one."""
    import torch

    other = torch.cuda.ExternalStream(stream, device=device)  # type: ignore[no-untyped-call]
    torch.cuda.current_stream(device).wait_stream(other)
