"""``Memory``: owners of the bytes behind an address.

Every array names an owner: a ``Memory`` (a block of the engine's, with a reference count that C
code keeps), or any other Python object (a caller's array, a DLPack capsule, a buffer).
"""

from __future__ import annotations

import ctypes
import os
from array import array
from contextlib import contextmanager, suppress
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Literal

from pygsampler._engine import library

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pygsampler._engine.handle import EngineHandle

_FORMAT: dict[int, Literal["i", "q"]] = {32: "i", 64: "q"}
_DEVICE_AT = 32  # in bytes: the fifth word of a memory
_DESCRIBED = frozenset({"data", "size", "header", "device"})
_READ = 0x100  # PyBUF_READ
# By subscript, which makes a function of our own: attributes are shared, types and all.
_view_of = ctypes.pythonapi["PyMemoryView_FromMemory"]
_view_of.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
_view_of.restype = ctypes.py_object


class Memory:
    """A counted reference to a block of the engine's memory, released with this object.

    ``data`` and ``size`` are the address and the number of bytes; ``device`` is -1, or the index of
    the CUDA device whose address it is; ``header`` is the address of a batch's header on the host.
    The block is released through the engine copy that allocated it, which works in forked children
    and after the engine's end.
    """

    __slots__ = (
        "__weakref__",
        "_claim",
        "_generation",
        "address",
        "data",
        "device",
        "header",
        "size",
    )

    data: int
    size: int
    header: int
    device: int

    def __init__(self, slot: array[int], place: int = 0) -> None:
        """Takes the address in a place of an array, which is emptied."""
        address = slot[place]
        # A capsule's destructor is C's. In one of Python's, Ctrl-C would be lost, and the block.
        self._claim = library.engine().memory_claim(slot.buffer_info()[0] + 8 * place)
        self._generation = library.generation()
        self.address = address

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> int:
            # Looked up when they are first asked for: of many batches most never are.
            if name not in _DESCRIBED:
                raise AttributeError(f"Memory object has no attribute {name!r}")
            _, self.data, self.size, self.header, self.device = read_int64(self.address, 5)
            return getattr(self, name)

    def is_of(self, generation: int) -> bool:
        """True if the engine copy of that generation allocated the block."""
        return self._generation == generation


def call(name: str, *arguments: int, jobs: Sequence[EngineHandle] = ()) -> int | Memory:
    """Calls a function of the engine that returns a memory, or a number that is not positive.

    The number is 0, or the negated number of the first of ``jobs``, which receive their numbers. An
    exception of a signal handler, as by Ctrl-C, loses the result of a call: the result is then
    released.
    """
    slot = array("q")
    try:
        given: int = library.call(name, *arguments, into=slot)
        if given > 0:
            return Memory(slot)
        for place, job in enumerate(jobs):
            job._number = place - given
        return given
    except BaseException:
        if slot and slot[0] > 0:
            Memory(slot)
        elif slot and slot[0]:
            for place, job in enumerate(jobs):
                job._number = place - slot[0]
            for job in jobs:
                job._release()
        raise


def drop(slots: array[int]) -> None:
    """Gives back the memories whose addresses are in an array; 0 is none."""
    for place, address in enumerate(slots):
        if address:
            Memory(slots, place)


def new(name: str, *arguments: int) -> Memory:
    """A call of the engine that gives a memory."""
    memory = call(name, *arguments)
    assert isinstance(memory, Memory)
    return memory


@contextmanager
def retained(owner: object, device: int = -1) -> Iterator[int]:
    """The address of an engine memory that keeps ``owner`` alive, valid inside the block.

    Exports retain it. An owner that this process's engine did not make is wrapped in a memory
    that holds one Python reference to it; ``device`` says where its values are.
    """
    engine = library.engine()
    if isinstance(owner, Memory) and owner.is_of(library.generation()):
        yield owner.address
        return
    address = engine.memory_of_object(owner)
    if not address:
        raise MemoryError("pygsampler: no memory for a reference to the owner of an array")
    if device >= 0:
        ctypes.c_int64.from_address(address + _DEVICE_AT).value = device
    try:
        yield address
    finally:
        engine.release(address)


def capsule(memory: Memory, address: int, length: int, bits: int) -> Any:
    """DLPack's of integers in a memory on the host, of this process's engine."""
    return library.engine().dlpack_export(memory.address, address, length, bits, 0, 0)


def read_int64(address: int, count: int) -> list[int]:
    """The first ``count`` 64 bit integers at an address."""
    # Not by an array type of ctypes: to make one takes longer than all else of a small call.
    return memory_view(address, 8 * count).cast("q").tolist()


def free_memory() -> int:
    """Returns how many bytes of the host are free, or can be."""
    with suppress(OSError), open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def memory_view(address: int, size: int) -> memoryview:
    """The bytes at an address. The view does not keep them alive: use it at once."""
    return _view_of(address, size, _READ) if size else memoryview(b"")


def integer_view(address: int, length: int, bits: int) -> memoryview:
    """The signed integers at an address, likewise for use at once."""
    return memory_view(address, length * bits // 8).cast("B").cast(_FORMAT[bits])


def buffer_view(address: int, size: int, owner: object) -> memoryview:
    """The bytes at an address as a buffer that keeps ``owner`` alive."""
    raw: Any = (ctypes.c_char * size).from_address(address)
    raw.owner = owner
    return memoryview(raw).cast("B")


class _PyBuffer(ctypes.Structure):
    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


# By subscript, which makes a function of our own: attributes are shared, types and all.
_get_buffer = ctypes.pythonapi["PyObject_GetBuffer"]
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi["PyBuffer_Release"]
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]
_release_buffer.restype = None


def address_of(buffer: memoryview) -> int:
    """The address of a contiguous buffer, good for as long as the memoryview is held."""
    raw = _PyBuffer()
    _get_buffer(buffer, ctypes.byref(raw), 0)
    try:
        return raw.buf or 0
    finally:
        _release_buffer(ctypes.byref(raw))


def to_pickle(raw: memoryview | bytearray, protocol: int) -> PickleBuffer | bytes:
    """Bytes as a pickle takes them: without a copy, and out of band, where its protocol can."""
    return PickleBuffer(raw) if protocol >= 5 else bytes(raw)


def from_pickle(values: bytes | bytearray | memoryview | PickleBuffer) -> tuple[memoryview, int]:
    """The bytes that a pickle gives back as memory for arrays, and its address."""
    buffer = memoryview(values)
    if not buffer.nbytes:
        # Empty memory has no address.
        buffer = memoryview(bytearray(8))
    address = address_of(buffer)
    if buffer.readonly or address % 8:
        # A copy may be written to; and bytes handed over out of band may lie anywhere.
        buffer = memoryview(bytearray(buffer))
        address = address_of(buffer)
    return buffer, address
