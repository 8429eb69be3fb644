"""Batches on their way on a CUDA device."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sized
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays import devices
from pygsampler._arrays.ids import IdView, as_ids, as_int64, ids_on_host
from pygsampler._batch import layout as at
from pygsampler._engine import memory as memories
from pygsampler._engine.handle import SLICE_MS, EngineHandle
from pygsampler._engine.library import call
from pygsampler._sampling.job import SampleJob
from pygsampler._sampling.sampler import with_set_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.engine_sampler import EngineSampler

# Each batch in flight has tables of the size of the graph's vertices on the device, and what it
# works in: of large ones fewer fit.
_MOST_AT_ONCE = 16
# While the device makes one launch, the host prepares the next: few batches are halved for that.
_LEAST_AT_ONCE = 8
_LAUNCHES = 2
ZERO = array("q", [0])


class DeviceJob(SampleJob):
    """A batch on its way on a device, in memory that the engine allocates there."""

    __slots__ = ("_seeds",)

    _close_function: ClassVar[str] = "DeviceCancel"
    _timed: ClassVar[bool] = False

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
        """Puts a batch into a stream of the engine's own, or into the caller's.

        Of the latter the caller asks for the result at once: so it is waited for here.
        """
        handle, device = graph._handle(), graph._device
        job = cls(graph, sampler, epoch, batch)
        ids = job._seeds = as_ids(seeds, "seeds", device)
        without, length = 0, 0
        if exclude is not None:
            taken = as_int64(ids_on_host(as_ids(exclude, "exclude", device)))
            without, length = taken.address, taken.length
        stream = devices.current_stream(device) if ids.stream is None else ids.stream
        about = handle, sampler._handle(), ids.address, ids.length, ids.bits, ids.on_device()
        numbers = epoch, batch, without, length, stream
        if own:
            memories.call("DeviceSubmit", *about, *numbers, 1, 0, 0, jobs=(job,))
            return job
        # One call of the engine in the place of two, each of which takes and gives the GIL.
        given = memories.call("DeviceSample", *about, *numbers, 0, 0, SLICE_MS, jobs=(job,))
        if isinstance(given, memories.Memory):
            job._outcome = job._wrap_result(given)
        return job

    def _wait(self, timeout_ms: int) -> int | memories.Memory:
        return memories.call("DeviceWait", self._number, timeout_ms)

    def _wrap_result(self, given: Any) -> Any:
        self._seeds = None
        return super()._wrap_result(given)


class TorchJob(SampleJob):
    """A batch in memory that torch allocates; ``result()`` gives a TorchMiniBatch, or what else the
    sampler makes of it.

    The tensor belongs to torch's current stream, where it comes after all that used its memory
    before. Its size is what the engine says would do, by such batches so far; a batch that needs
    more says so, and is sampled once more into a larger one.
    """

    __slots__ = ("_key", "_own", "_region", "_seeds", "_words")

    _close_function: ClassVar[str] = "DeviceCancel"
    _timed: ClassVar[bool] = False

    def __init__(
        self, graph: Graph, sampler: EngineSampler, seeds: Any, epoch: int, batch: int, own: bool
    ) -> None:
        SampleJob.__init__(self, graph, sampler, epoch, batch)
        # The graph's before anything of CUDA: in a forked child it raises.
        handles = graph._handle(), sampler._handle()
        ids = self._seeds = as_ids(seeds, "seeds", graph._device)
        self._own = own
        plan, length = sampler._plan, ids.length
        key = self._key = (plan.document, length.bit_length())
        self._region: torch.Tensor | None = None
        # Where the engine writes what describes the batch.
        self._words = ZERO * plan.num_words
        # The engine is asked of a kind's first batch; each batch that arrives tells of the next.
        size = graph._capacity.get(key) or call("DeviceCapacity", *handles, length)
        self._launch(handles, size)

    def _launch(self, handles: tuple[int, int], size: int) -> None:
        graph = self._graph
        ids, device = self._seeds, graph._device
        region = self._region = allocate(size, graph._known()[1]._bits, device)
        stream = devices.current_stream(device)
        if ids.stream is not None and ids.stream != stream:
            wait_for_stream(device, ids.stream)
        seeds = ids.address, ids.length, ids.bits, ids.on_device(), self.epoch, self.batch, 0, 0
        to = stream, self._own, region.data_ptr(), (size + 7) // 8 * 8
        memories.call("DeviceSubmit", *handles, *seeds, *to, jobs=(self,))

    def _wait(self, timeout_ms: int) -> int:
        words = self._words
        # Of a signal handler, an exception may have lost that they are written.
        if words[at.SIGNATURE]:
            return 1
        about = self._number, timeout_ms, len(words), words.buffer_info()[0]
        given: int = call("DeviceWaitInto", *about)
        return given

    def _wrap_result(self, given: Any) -> Any:
        known = self._graph._capacity
        if given < 0:
            known[self._key] = -given
            # The old one goes first: there may be no room for both.
            self._region = None
            self._launch((self._graph._handle(), self._sampler._handle()), -given)
            if self._outcome is not None:
                # Cancelled meanwhile, by another thread, which knew the first try only.
                self._release()
            return None
        words = self._words
        known[self._key] = words[at.CAPACITY]
        region, self._region = self._region, None
        assert region is not None
        return self._sampler._torch_view(self._graph, region, words, self.epoch, self.batch)


class DeviceLaunch(EngineHandle):
    """Several batches on their way on a device, which are waited for together."""

    __slots__ = ("__weakref__", "_count", "_graph", "_seeds")

    _close_function: ClassVar[str] = "DeviceCancelMany"

    def __init__(
        self, graph: Graph, sampler: EngineSampler, views: list[IdView], epoch: int, batch: int
    ) -> None:
        super().__init__()
        self._graph = graph
        # The device may read them until the batches are done.
        self._seeds = views
        self._count = len(views)
        words = array("q")
        for number, ids in enumerate(views, batch):
            words.extend((ids.address, ids.length, ids.bits, ids.on_device(), epoch, number, 0, 0))
        stream = devices.current_stream(graph._device)
        about = graph._handle(), sampler._handle(), len(views), words.buffer_info()[0], stream, 1
        self._create("DeviceSubmitMany", *about)

    def result(self) -> list[memories.Memory]:
        """The memories of all batches, waiting until they are there; Failed for wrong seeds."""
        slots = ZERO * self._count
        made: list[memories.Memory] = []
        try:
            while not (done := self._call("DeviceWaitMany", SLICE_MS, slots.buffer_info()[0])):
                pass
            if done > 0:
                made = [memories.Memory(slots, place) for place in range(self._count)]
        except BaseException:
            # Of a signal handler, after the engine has handed them over.
            memories.drop(slots)
            raise
        if done < 0:
            place = -done - 1
            try:
                self._call("DeviceFault", place)
            except (TypeError, ValueError, IndexError) as error:
                raise BatchFailed(place, error) from None
        self._number = 0
        return made


class SeparateLaunches:
    """Likewise, where seeds become ready in several streams: a launch waits for one."""

    def __init__(
        self, graph: Graph, sampler: EngineSampler, views: list[IdView], epoch: int, batch: int
    ) -> None:
        self._jobs = [
            DeviceJob.submit(graph, sampler, ids, epoch=epoch, batch=number, own=True)
            for number, ids in enumerate(views, batch)
        ]

    def result(self) -> list[memories.Memory]:
        """As a launch's."""
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
    graph: Graph, sampler: EngineSampler, seeds: Sequence[Any], epoch: int, batch: int
) -> list[Any]:
    """A batch for each of several sets of seeds, as many to a launch as there is memory for."""
    handle, device = graph._handle(), graph._device
    stream = devices.current_stream(device)
    size = min(max((len(seeds) + 1) // 2, _LEAST_AT_ONCE), _MOST_AT_ONCE)
    flights = min(size * _LAUNCHES, len(seeds))
    fit = call("DeviceTogether", handle, sampler._handle(), _longest(seeds), flights)
    if fit < flights:
        size = max(fit // _LAUNCHES, 1)
    batches: list[Any] = []
    starts = deque(range(0, len(seeds), size))
    flying: deque[DeviceLaunch | SeparateLaunches] = deque()
    try:
        while starts or flying:
            while starts and len(flying) < _LAUNCHES:
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
    """Of what is no array, which has an error of its own, nothing."""
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


# What makes tensors of ids, by their device and width.
_empty: dict[tuple[int, int], Callable[[int], torch.Tensor]] = {}


def wait_for_stream(device: int, stream: int) -> None:
    """Lets torch's current stream wait for what is in another one."""
    import torch

    other = torch.cuda.ExternalStream(stream, device=device)  # type: ignore[no-untyped-call]
    torch.cuda.current_stream(device).wait_stream(other)
