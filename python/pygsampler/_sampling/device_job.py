"""Batches on their way on a CUDA device."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sized
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays import devices
from pygsampler._arrays.ids import IdView, as_ids
from pygsampler._batch import layout as at
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine import request_layout as at_request
from pygsampler._engine.handle import SLICE_MS, EngineHandle
from pygsampler._engine.library import call
from pygsampler._sampling.job import SampleJob
from pygsampler._sampling.request import PLACE_FLAGS, SampleRequest, empty_request
from pygsampler._sampling.sampler import with_set_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from pygsampler._sampling.engine_sampler import EngineSampler

# Each batch in flight has tables of the size of the graph's nodes on the device, and what it
# works in: of large ones fewer fit.
_MOST_AT_ONCE = 16
# While the device makes one launch, the host prepares the next: few batches are halved for that.
_LEAST_AT_ONCE = 8
_LAUNCHES = 2
ZERO = array("q", [0])


class DeviceJob(SampleJob):
    """A batch on its way on a device, in memory that the engine allocates there."""

    __slots__ = ()

    _timed: ClassVar[bool] = False

    def __init__(self, request: SampleRequest) -> None:
        super().__init__(request)
        stream = request.seeds.stream
        request.on_device(
            devices.current_stream(request.graph._device) if stream is None else stream
        )

    def _wrap_result(self, engine_result: Any) -> Any:
        # The device may read them until the batch is done.
        del self._request.seeds
        return super()._wrap_result(engine_result)


class TorchJob(SampleJob):
    """A batch in memory that torch allocates.

    ``result()`` returns a MiniBatch, or another result of the sampler.

    The tensor belongs to torch's current stream, where it comes after all that used its memory
    before. Its size is what the engine says would do, by such batches so far; a batch that needs
    more says so, and is sampled once more into a larger one.
    """

    __slots__ = ("_header", "_key", "_region")

    _timed: ClassVar[bool] = False

    def begin(self) -> TorchJob:
        """Puts the batch into a stream."""
        request = self._request
        graph, plan, length = request.graph, request.sampler._plan, request.seeds.length
        key = self._key = (plan.document, length.bit_length())
        self._region: torch.Tensor | None = None
        # The engine writes the description of the batch here.
        self._header = ZERO * plan.num_words
        # The engine is asked of a kind's first batch; each batch that arrives tells of the next.
        handles = graph._handle(), request.sampler._handle()
        self._launch(graph._capacity.get(key) or call("DeviceCapacity", *handles, length))
        return self

    def _launch(self, size: int) -> None:
        request = self._request
        graph, ids, words = request.graph, request.seeds, request.words
        device = graph._device
        region = self._region = allocate(size, graph._device_or_host_arrays()[1]._bits, device)
        stream = devices.current_stream(device)
        if ids.stream is not None and ids.stream != stream:
            wait_for_stream(device, ids.stream)
        request.on_device(stream)
        # The tensor, and not a memory, is taken: WaitWords waits for it.
        words[at_request.FLAGS] &= ~at_request.FLAG_PROMPT
        words[at_request.OUT] = region.data_ptr()
        words[at_request.OUT_BYTES] = (size + 7) // 8 * 8
        super().begin()

    def _wait(self, timeout_ms: int) -> int:
        words = self._header
        # An exception from a signal handler may have lost the result of the call that wrote them.
        if words[at.SIGNATURE]:
            return 1
        about = self._number, timeout_ms, len(words), words.buffer_info()[0]
        given: int = call("WaitWords", *about)
        return given

    def _wrap_result(self, engine_result: Any) -> Any:
        request = self._request
        known = request.graph._capacity
        if engine_result < 0:
            known[self._key] = -engine_result
            # The old one goes first: there may be no room for both.
            self._region = None
            self._launch(-engine_result)
            if self._outcome is not None:
                # Cancelled meanwhile, by another thread, which knew the first try only.
                self._release()
            return None
        words = self._header
        known[self._key] = words[at.CAPACITY]
        region, self._region = self._region, None
        assert region is not None
        # The device may read them until the batch is done.
        del request.seeds
        return request.sampler._torch_view(
            request.graph, region, words, request.epoch, request.batch
        )


class LaunchHandle(EngineHandle):
    """Several batches on their way on a device that were submitted together."""

    __slots__ = ("__weakref__", "_graph", "_out", "_request_words", "_sampler", "_seeds")

    _close_function: ClassVar[str] = "Cancel"

    def __init__(self, graph: Any, sampler: EngineSampler, views: list[IdView]) -> None:
        super().__init__()
        self._graph = graph
        self._sampler = sampler
        # The device may read them until the batches are done.
        self._seeds = views

    def _submit(self, calls: array[int], stream: int) -> None:
        """Submits the batches, by the 8 words in ``calls`` that the engine reads for each."""
        words = self._request_words = empty_request(at_request.SIZE_DEVICE)
        words[at_request.FLAGS] = at_request.FLAG_OWN_STREAM
        words[at_request.GRAPH] = self._graph._handle()
        words[at_request.SAMPLER] = self._sampler._handle()
        words[at_request.STREAM] = stream
        address, size = words.buffer_info()
        self._out = address + 8 * at_request.RESULT
        library.call("SubmitMany", address, size, calls.buffer_info()[0], len(self._seeds))
        self._number = words[at_request.JOB]
        words[at_request.JOB] = 0


class DeviceLaunch(LaunchHandle):
    """Several batches on their way on a device, which are waited for together."""

    __slots__ = ()

    def __init__(
        self, graph: Any, sampler: EngineSampler, views: list[IdView], epoch: int, batch: int
    ) -> None:
        super().__init__(graph, sampler, views)
        calls = array("q")
        for number, ids in enumerate(views, batch):
            place = PLACE_FLAGS[ids.on_device()]
            calls.extend((ids.address, ids.length, ids.bits, place, epoch, number, 0, 0))
        self._submit(calls, devices.current_stream(graph._device))

    def result(self) -> list[memories.Memory]:
        """The memories of all batches, waiting until they are there; Failed for wrong seeds."""
        slots = ZERO * len(self._seeds)
        made: list[memories.Memory] = []
        try:
            while not (done := self._call("WaitMany", SLICE_MS, slots.buffer_info()[0])):
                pass
            if done > 0:
                made = [memories.Memory(slots, place) for place in range(len(slots))]
        except BaseException:
            # A signal handler may have raised it after the engine has handed them over.
            memories.drop(slots)
            raise
        if done < 0:
            place = -done - 1
            try:
                self._call("JobFault", place)
            except (TypeError, ValueError, IndexError) as error:
                raise BatchFailed(place, error) from None
        self._number = 0
        return made


class SeparateLaunches:
    """Batches on a device, each with a launch of its own.

    Seeds that become ready in several streams need it: a launch waits for one stream.
    """

    def __init__(
        self, graph: Any, sampler: EngineSampler, views: list[IdView], epoch: int, batch: int
    ) -> None:
        self._jobs = [
            DeviceJob(
                SampleRequest(sampler, graph, ids, epoch=epoch, batch=number, asynchronous=True)
            ).begin()
            for number, ids in enumerate(views, batch)
        ]

    def result(self) -> list[memories.Memory]:
        """Returns the memory of each batch; BatchFailed names the first that failed."""
        made: list[memories.Memory] = []
        try:
            for job in self._jobs:
                memory = job.result()._memory
                assert isinstance(memory, memories.Memory)
                made.append(memory)
            return made
        except (TypeError, ValueError, IndexError) as error:
            raise BatchFailed(len(made), error) from None

    def _release(self) -> None:
        for job in self._jobs:
            job.cancel()


class BatchFailed(Exception):
    """A batch of a launch went wrong."""

    def __init__(self, place: int, error: Exception) -> None:
        super().__init__(place, error)
        self.place = place
        self.error = error


def sample_many(
    graph: Any,
    sampler: EngineSampler,
    seeds: Sequence[Any],
    epoch: int,
    batch: int,
    budget: int | None,
) -> list[Any]:
    """A batch for each of several sets of seeds, as many to a launch as there is memory for.

    With a ``budget`` those on their way take at most so many bytes.
    """
    handle, device = graph._handle(), graph._device
    stream = devices.current_stream(device)
    size = min(max((len(seeds) + 1) // 2, _LEAST_AT_ONCE), _MOST_AT_ONCE)
    flights = min(size * _LAUNCHES, len(seeds))
    about = handle, sampler._handle(), _longest(seeds), flights
    fit = call("DeviceConcurrency", *about, budget or 0)
    if fit < flights:
        size = max(fit // _LAUNCHES, 1)
    launches = _LAUNCHES if budget is None else min(_LAUNCHES, fit)
    batches: list[Any] = []
    starts = deque(range(0, len(seeds), size))
    flying: deque[DeviceLaunch | SeparateLaunches] = deque()
    try:
        while starts or flying:
            while starts and len(flying) < launches:
                start = starts.popleft()
                views = _views(seeds, start, start + size, device)
                alike = all(ids.stream is None or ids.stream == stream for ids in views)
                kind = DeviceLaunch if alike else SeparateLaunches
                flying.append(kind(graph, sampler, views, epoch, batch + start))
            for memory in flying[0].result():
                batches.append(sampler._view(graph, memory, epoch, batch + len(batches)))
            flying.popleft()
        return batches
    except BatchFailed as failed:
        raise with_set_index(failed.error, len(batches) + failed.place) from None
    finally:
        # After an error, those that are still on their way.
        for launch in flying:
            launch._release()


def _longest(seeds: Sequence[Any]) -> int:
    """Returns the largest number of seeds; values that are no arrays raise errors later."""
    return max(
        (len(ids) for ids in seeds if isinstance(ids, Sized) and getattr(ids, "ndim", None) != 0),
        default=0,
    )


def _views(seeds: Sequence[Any], start: int, end: int, device: int) -> list[IdView]:
    views: list[IdView] = []
    try:
        for ids in seeds[start:end]:
            views.append(as_ids(ids, "seeds", device))
        return views
    except (TypeError, ValueError, IndexError) as error:
        raise with_set_index(error, start + len(views)) from None


def allocate(size: int, bits: int, device: int) -> torch.Tensor:
    """A tensor of ids of at least so many bytes, in torch's current stream on the device."""
    empty = _empty.get((device, bits))
    if empty is None:
        import torch

        dtype = torch.int64 if bits == 64 else torch.int32
        empty = partial(torch.empty, dtype=dtype, device=torch.device("cuda", device))
        _empty[device, bits] = empty
    # Whole words of 64 bits, so that it can be viewed as either dtype.
    return empty((size + 7) // 8 * (64 // bits))


# The functions that create tensors of ids, by device and width.
_empty: dict[tuple[int, int], Callable[[int], torch.Tensor]] = {}


def wait_for_stream(device: int, stream: int) -> None:
    """Lets torch's current stream wait for what is in another one."""
    import torch

    other = torch.cuda.ExternalStream(stream, device=device)  # type: ignore[no-untyped-call]
    torch.cuda.current_stream(device).wait_stream(other)
