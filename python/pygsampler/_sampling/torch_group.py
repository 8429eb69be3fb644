"""Several batches on their way on a CUDA device, into one tensor of torch's."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.ids import IdView, as_ids
from pygsampler._batch import layout as at
from pygsampler._engine.handle import SLICE_MS
from pygsampler._engine.library import call
from pygsampler._sampling import device_job
from pygsampler._sampling.device_job import ZERO, LaunchHandle, TorchJob
from pygsampler._sampling.request import PLACE_FLAGS, SampleRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.engine_sampler import EngineSampler

# Batches begin at multiples of this in the region, in bytes, as torch's own allocations do.
_APART = 512


class TorchLauncher:
    """A ``GroupLauncher`` that puts the batches of each group into one tensor on a GPU."""

    __slots__ = ("_asked", "_bits", "_epoch", "_graph", "_sampler")

    @classmethod
    def for_sampler(
        cls, sampler: Any, kind: type[Any], graph: Graph, epoch: int, form: str
    ) -> TorchLauncher | None:
        """Returns the launcher of a sampler of the class ``kind``.

        None where no batches in torch's memory on a GPU are asked for, or where a subclass launches
        in a way of its own, as it then does for loaders, too.
        """
        if form != "torch" or type(sampler).launch is not kind.launch:
            return None
        graph = sampler.sampled_graph(graph)._source
        return None if graph._device < 0 else cls(graph, sampler, epoch)

    def __init__(self, graph: Any, sampler: EngineSampler, epoch: int) -> None:
        self._graph = graph
        self._sampler = sampler
        self._epoch = epoch
        self._bits = graph._device_or_host_arrays()[1]._bits
        # The kinds of edge arrays that its batches were asked for.
        self._asked: set[int] = set()

    def concurrency(self, num_seeds: int, most: int, budget: int) -> int:
        """Returns how many batches of so many seeds, at most ``most``, a budget has room for."""
        handles = self._graph._handle(), self._sampler._handle()
        fit: int = call("DeviceConcurrency", *handles, num_seeds, most, budget)
        return fit

    def __call__(self, seeds: Sequence[Any], batches: Sequence[int]) -> TorchGroup:
        """Puts the batches into streams of the engine's."""
        device = self._graph._device
        views = [as_ids(ids, "seeds", device) for ids in seeds]
        about = self._epoch, batches, self._bits, self._asked
        return TorchGroup(self._graph, self._sampler, views, *about)


class TorchGroup(LaunchHandle):
    """Batches in memory that torch allocates, one piece for all.

    ``result()`` gives what the sampler makes of each.

    The tensor belongs to torch's current stream, as that of a ``TorchJob``. A batch that needs more
    room than those so far is sampled once more, alone, into a tensor of its own.
    """

    __slots__ = (
        "_asked",
        "_batches",
        "_epoch",
        "_failure",
        "_places",
        "_region",
        "_words",
    )

    def __init__(
        self,
        graph: Any,
        sampler: EngineSampler,
        views: list[IdView],
        epoch: int,
        batches: Sequence[int],
        bits: int,
        requested_kinds: set[int],
    ) -> None:
        super().__init__(graph, sampler, views)
        # Before anything of CUDA: in a forked child this raises.
        handles = graph._handle(), sampler._handle()
        self._epoch = epoch
        self._batches = batches
        self._asked = requested_kinds
        self._failure: Exception | None = None
        plan, known, device = sampler._plan, graph._capacity, graph._device
        stream = devices.current_stream(device)
        rooms: list[int] = []
        length = -1
        for ids in views:
            # Most often all have one length.
            if ids.length != length:
                length = ids.length
                # The engine is asked of a kind's first batch; each that arrives tells of the next.
                size = known.get(self._key(length)) or call("DeviceCapacity", *handles, length)
                size = -(-size // _APART) * _APART
            rooms.append(size)
            if ids.stream is not None and ids.stream != stream:
                device_job.wait_for_stream(device, ids.stream)
        self._region: torch.Tensor | None = device_job.allocate(sum(rooms), bits, device)
        out = self._region.data_ptr()
        calls = array("q")
        places = self._places = array("q")
        place = 0
        for ids, number, size in zip(views, batches, rooms, strict=True):
            on_device = PLACE_FLAGS[ids.on_device()]
            calls.extend((ids.address, ids.length, ids.bits, on_device, epoch, number))
            calls.extend((out + place, size))
            places.append(place)
            place += size
        # The engine writes the descriptions of the batches here.
        self._words = ZERO * (plan.num_words * len(views))
        self._submit(calls, stream)

    def _key(self, length: int) -> tuple[str, int]:
        return self._sampler._plan.document, length.bit_length()

    def result(self) -> list[Any]:
        """The batches, waiting until all are there; where one failed, its error is the last.

        It can be had once. Ctrl-C while waiting cancels all of them.
        """
        self._require_current_process()
        try:
            while not self._arrived(SLICE_MS):
                pass
        finally:
            # Also where a signal handler raised it, and the batches are on their way.
            if self._number:
                self._release()
        return self._results(self._failure)

    def done(self) -> bool:
        """True if ``result()`` would return at once."""
        self._require_current_process()
        return self._arrived(0)

    def _arrived(self, timeout_ms: int) -> bool:
        """Waits a moment; whether the words of all of them are there."""
        if self._number and self._failure is None:
            about = self._sampler._plan.num_words, self._words.buffer_info()[0]
            try:
                if not self._call("WaitWords", timeout_ms, *about):
                    return False
                self._number = 0
            except Exception as error:
                self._failure = error
        return True

    def cancel(self) -> None:
        """Ends all of them; returns once the device no longer works on them."""
        self._release()

    def _results(self, failure: Exception | None) -> list[Any]:
        region, self._region = self._region, None
        assert region is not None
        known, sampler = self._graph._capacity, self._sampler
        every, count = self._words, sampler._plan.num_words
        view = sampler._part_view(self._graph, region, self._asked)
        made: list[Any] = []
        for place, (number, ids) in enumerate(zip(self._batches, self._seeds, strict=True)):
            words = every[count * place : count * (place + 1)]
            size = words[at.CAPACITY]
            if size:
                known[self._key(ids.length)] = size
            if words[at.SIGNATURE]:
                made.append(view(words, self._places[place], self._epoch, number))
            elif size:
                try:
                    # Once more, into a tensor of its own.
                    request = SampleRequest(
                        sampler,
                        self._graph,
                        ids,
                        epoch=self._epoch,
                        batch=number,
                        form="torch",
                        asynchronous=True,
                    )
                    made.append(TorchJob(request).begin().result())
                except Exception as error:
                    return [*made, error]
            else:
                # It failed, or has not ended: so says the failure.
                assert failure is not None
                break
        if failure is not None:
            made.append(failure)
        return made
