"""Rows of tables by their numbers, copied by the engine on the CPU."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pygsampler._arrays import devices
from pygsampler._engine import library, memory
from pygsampler._engine.pending import PendingMemory, is_profiling, profiled
from pygsampler._features.quantization import NOT_QUANTIZED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from pygsampler._arrays.array import Array
    from pygsampler._arrays.ids import IdView
    from pygsampler._features.quantization import Quantization

# The rows of each part begin at a multiple of this, so that each part has cache lines of its own.
_ALIGNMENT = 64
# The number of words that describe a part to the engine.
_WORDS = 12
# The number that is added to the bits of ids of a quantized table on a device.
_QUANTIZED = 1 << 8


class CacheReader(Protocol):
    """Rows of a table in a device's memory, as the engine reads them: a ``CacheTable``."""

    @property
    def cached(self) -> int: ...
    @property
    def slots(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def uses(self) -> bool: ...
    def before(self, stream: int) -> None: ...
    def after(self, ids: IdView, out: int, stream: int) -> None: ...


class GatherPart(NamedTuple):
    """A table to gather from: ``row`` bytes at ``table`` for each of ``rows``, by ``ids``.

    ``owner`` keeps the table; ``out`` is the address of a caller's memory, where there is one. On a
    device rows that ``cache`` has are read there. Rows of a ``scheme`` are stored in fewer bits;
    ``in_gpu_memory`` they are converted where they are.
    """

    ids: IdView
    table: int
    rows: int
    row: int
    owner: object
    out: int = 0
    cache: CacheReader | None = None
    scheme: Quantization | None = None
    in_gpu_memory: bool = False


def gather_on_device(
    device: int, gather_parts: Sequence[GatherPart], bad: int = 0, *, concurrent: bool = False
) -> None:
    """Copies rows on a device, in torch's current stream there; nothing is waited for.

    All of ``gather_parts`` are addresses of the device's. The least place of an id that is no row
    is put into the word at ``bad``, which must be greater before; such rows become zeros. Parts
    without ids, or with rows of no bytes, are left out. ``concurrent`` leaves most of the device to
    other work, and is nearly as fast where rows come over PCI Express.
    """
    gather_parts = [part for part in gather_parts if part.row and part.ids.length]
    if not gather_parts:
        return
    if is_profiling():
        with profiled("gather"):
            _launch(device, gather_parts, bad, concurrent)
    else:
        _launch(device, gather_parts, bad, concurrent)


def _launch(device: int, gather_parts: Sequence[GatherPart], bad: int, concurrent: bool) -> None:
    about = array("q")
    caches = []
    quantized: array[int] = array("q")
    stored = []
    for part in gather_parts:
        ids, table, rows, row, _, out, cache, scheme, in_gpu_memory = part
        bits = ids.bits
        if scheme is not None:
            room = 0
            if not in_gpu_memory:
                stored.append(_room(ids.length * row, device))
                room = stored[-1].data_ptr()
            quantized.extend((*scheme.words(device), room))
            bits += _QUANTIZED
        if cache is None:
            words = ids.address, ids.length, bits, table, rows, row, 0, 0, out, 0, bad
        else:
            near = cache.cached, cache.slots, out, cache.hits, bad
            words = ids.address, ids.length, bits, table, rows, row, *near
            # It takes rows as they are stored.
            caches.append((cache, ids, out if scheme is None else room))
        about.extend(words)
    about.extend(quantized)
    stream = devices.current_stream(device)
    launch = device, len(gather_parts), about.buffer_info()[0], int(concurrent), stream
    if not caches:
        library.call("DeviceGather", *launch)
        return
    with library.cache_lock(device):
        for cache, _, _ in caches:
            cache.before(stream)
        library.call("DeviceGather", *launch)
        for cache, ids, out in caches:
            cache.after(ids, out, stream)


def _room(size: int, device: int) -> torch.Tensor:
    """Bytes on a device, for work in torch's current stream there."""
    import torch

    return torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", device))


class GatherJob(PendingMemory):
    """Rows on their way; ``result()`` gives the memory and where in it each part's rows begin."""

    __slots__ = ("_kept", "_starts")

    def __init__(
        self, gather_parts: Sequence[GatherPart], *, threads: int = 0, prompt: bool = False
    ) -> None:
        """Begins; with ``prompt`` few rows are there at once.

        Either all parts have a memory of the caller's, or none has.
        """
        super().__init__()
        # The engine reads them until it is done.
        self._kept: Any = gather_parts
        starts = self._starts = [part.out for part in gather_parts]
        size = -1
        if not any(starts):
            size = 0
            for place, part in enumerate(gather_parts):
                starts[place] = size
                row = part.row if part.scheme is None else part.scheme.row_bytes
                size += -(-part.ids.length * row // _ALIGNMENT) * _ALIGNMENT
        about = array("q")
        for part, start in zip(gather_parts, starts, strict=True):
            ids = part.ids
            if not part.row:
                # Nothing is copied, and there may be no address to copy from.
                _check(ids, part.rows)
                continue
            words = ids.address, ids.length, ids.bits, part.table, part.rows, part.row, start
            scheme = NOT_QUANTIZED if part.scheme is None else part.scheme.words(-1)
            about.extend(words + scheme)
        numbers = about.buffer_info()[0], len(about) // _WORDS, size, threads, int(prompt)
        if is_profiling():
            with profiled("gather"):
                started = memory.call("Gather", *numbers, jobs=(self,))
        else:
            started = memory.call("Gather", *numbers, jobs=(self,))
        if isinstance(started, memory.Memory):
            self._outcome = self._wrap_result(started)

    def result(self) -> tuple[memory.Memory, list[int]]:
        """The memory and the starts, waiting until they are there.

        IndexError for ids that are no rows. Ctrl-C while waiting cancels the job.
        """
        made: tuple[memory.Memory, list[int]] = self._result()
        return made

    def _wrap_result(self, engine_result: Any) -> tuple[memory.Memory, list[int]]:
        self._kept = None
        return engine_result, self._starts


def _check(ids: IdView, num_rows: int) -> None:
    """Raises IndexError for an id that is no row."""
    for place, found in enumerate(memory.integer_view(ids.address, ids.length, ids.bits)):
        if not 0 <= found < num_rows:
            raise IndexError(f"ids[{place}]: expected an integer in [0, {num_rows}), got {found}")


class PendingRead:
    """A pending read of feature rows on the CPU, returned by ``Features.read_async``."""

    __slots__ = ("_count", "_job", "_like", "_made", "_shown")

    def __init__(
        self, shown: Callable[..., Array], job: GatherJob, count: int, like: bool, out: Any
    ) -> None:
        # A method for the memory that the job fills, bound to the features, which thereby live on.
        self._shown = shown
        self._job = job
        self._count = count
        self._like = like
        self._made = out

    def wait(self) -> Any:
        """The rows, as ``Features.read`` gives them; a second call gives the same ones.

        Raises IndexError for ids that are no rows. Ctrl-C while waiting ends the reading.
        """
        memory, (start,) = self._job.result()
        if self._made is None:
            made = self._shown(memory, start, self._count)
            self._made = made.torch() if self._like else made
        return self._made

    def done(self) -> bool:
        """True if ``wait()`` would return, or raise, at once."""
        return self._job.done()

    def cancel(self) -> None:
        """Ends it: nothing reads the features or the ids for it afterwards."""
        self._job.cancel()

    def __repr__(self) -> str:
        return f"Reading({self._count} rows, {self._job._state()})"
