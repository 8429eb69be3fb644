"""``Array``: a view of memory that every array library can take."""

from __future__ import annotations

import ctypes
import math
import operator
import struct
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, overload

from pygsampler._arrays import devices, exchange
from pygsampler._arrays.array_input import as_region
from pygsampler._arrays.dtypes import KINDS, ArrayRegion
from pygsampler._arrays.ids import HasIdView, IdView, as_ids, ids_on_host, is_tensor, pickle_source
from pygsampler._arrays.mmap_file import Identity, MappedFile
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import describe
from pygsampler._engine.memory import from_pickle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy import ndarray
    from torch import Tensor

    from pygsampler._engine.array_descriptor import ArrayDescriptor
    from pygsampler._engine.memory import Memory

__all__ = ["Array"]


def __dir__() -> list[str]:
    return sorted(__all__)


_CPU_DLPACK = (devices.DL_CPU, 0)
# Aligned for every dtype; nothing is read there.
_NOWHERE = 64
_SHOWN = 3


# The source of arrays of the engine's that torch puts into shared memory when they are sent to
# other processes.
BY_TORCH = object()


class Array(HasIdView):
    """A view of values in memory: of ids, offsets or positions, or of any dtype and shape.

    Arrays of a batch are one-dimensional, int32 or int64, and float32 for the factors of edges;
    arrays of a graph have any shape, in C order on the CPU, of bool, int8 to int64, uint8 to
    uint64, float16 to float64 or bfloat16.

    An array holds its memory alive by itself: the batch or graph that it came from may be deleted.
    It is zero-copy for NumPy (``numpy.asarray``, ``numpy.from_dlpack``), torch, JAX and others
    (``from_dlpack``) and, where it holds ids, pyarrow (``pyarrow.array``). ``len``, iteration, an
    integer index (gives a value, or an array where there are more dimensions) and a slice of step 1
    (gives a view) work; ``==`` and ``!=`` compare value by value, as NumPy does.

    An array of a graph file is a read-only view of the mapped file: nothing is read before it is
    used, and all processes share the pages that were read.

    On a CUDA device it is zero-copy for torch, CuPy, JAX and others (``from_dlpack``, or
    ``__cuda_array_interface__``) and Arrow (``__arrow_c_device_array__``). Single values are not
    read from the device: operations that need them raise TypeError, and ``cpu()`` returns a copy to
    read.
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "_bits",
        "_device",
        "_dtype",
        "_ids",
        "_length",
        "_owner",
        "_readonly",
        "_shape",
        "_source",
        "_turned",
    )

    _address: int
    _length: int
    _bits: int
    _dtype: str
    # None for one dimension: those of a batch are made by the dozen.
    _shape: tuple[int, ...] | None
    # True if it is one-dimensional and int32 or int64.
    _ids: bool
    _readonly: bool
    # True if it has two dimensions and the memory has the second one outermost.
    _turned: bool
    _owner: object
    # The object that it was created from, and is pickled as; BY_TORCH: a tensor on the same memory.
    _source: object | None

    def __init__(self) -> None:
        raise TypeError("Array: created by pygsampler only; numpy.asarray and others convert one")

    @classmethod
    def _from_address(
        cls,
        address: int,
        length: int,
        bits: int,
        owner: object,
        *,
        readonly: bool = False,
        device: int = -1,
    ) -> Array:
        array = object.__new__(cls)
        array._address = address
        array._length = length
        array._bits = bits
        array._dtype = "int64" if bits == 64 else "int32"
        array._shape = None
        array._ids = True
        array._readonly = readonly
        array._device = device
        array._owner = owner
        array._source = None
        array._turned = False
        return array

    @classmethod
    def _of_row(
        cls,
        descriptor: ArrayDescriptor,
        words: Sequence[int],
        widths: Sequence[int],
        base_address: int,
        owner: object,
        device: int = -1,
    ) -> Array | None:
        """An array of a result at ``base_address``; None where the result has no such array.

        ``words`` say its length and its offset, and ``widths`` how wide integers are.
        """
        _, bits, length, more, offset = descriptor
        if not words[offset]:
            return None
        width = widths[bits] if isinstance(bits, int) else 8 * KINDS[bits].size
        array = cls._from_address(
            base_address + words[offset], words[length] + more, width, owner, device=device
        )
        if isinstance(bits, str):
            array._shown_as(bits, (array._length,))
        return array

    @classmethod
    def _of_rows(
        cls, descriptors: Sequence[ArrayDescriptor], words: Sequence[int], memory: Memory
    ) -> dict[str, Array]:
        """The arrays that a result on the CPU has."""
        made = {
            row.name: cls._of_row(row, words, words, memory.data, memory) for row in descriptors
        }
        return {name: array for name, array in made.items() if array is not None}

    @classmethod
    def _room(cls, dtype: str, shape: tuple[int, ...]) -> Array:
        """Returns an array of undefined values in the engine's memory, which is reused later."""
        length, size = math.prod(shape), KINDS[dtype].size
        memory = memories.new("MemoryNew", length * size)
        array = cls._from_address(memory.data, length, 8 * size, memory)
        array._shown_as(dtype, shape)
        return array

    @classmethod
    def _of_view(cls, view: IdView) -> Array:
        array = cls._from_address(
            view.address,
            view.length,
            view.bits,
            view.owner,
            readonly=view.readonly,
            device=view.device,
        )
        array._source = view.source
        return array

    @classmethod
    def _of_region(cls, region: ArrayRegion) -> Array:
        address, dtype, shape, owner, readonly, source = region
        array = cls._from_address(
            address, math.prod(shape), 8 * KINDS[dtype].size, owner, readonly=readonly
        )
        array._shown_as(dtype, shape)
        array._source = source
        return array

    def _shown_as(self, dtype: str, shape: tuple[int, ...]) -> None:
        self._dtype = dtype
        self._shape = None if len(shape) == 1 else shape
        self._ids = self._shape is None and dtype in ("int32", "int64")

    def _transposed(self) -> Array:
        """A view of an array of two dimensions with the other one first."""
        rows, columns = self.shape
        array = self._view_at(self._address, (columns, rows))
        array._turned = not self._turned
        return array

    def _in_order(self) -> Array:
        """This array, or a copy of one whose values are not in its order in memory."""
        if not self._turned:
            return self
        if self._device >= 0:
            return _copy_to_device(self.cpu()._in_order(), self._device)
        rows = self.shape[0]
        raw = memories.integer_view(self._address, self._length, self._bits)
        values = bytearray().join(raw[row::rows].tobytes() for row in range(rows))
        return _from_bytes(values, self._dtype, self.shape)

    def _ordered_bytes(self) -> bytearray:
        """A copy of the values in their order."""
        # By a name: the bytes of a copy are there as long as the copy is.
        values = self._in_order()
        return bytearray(values._bytes())

    def _strides(self) -> tuple[int, int] | None:
        """The strides in bytes; None if the values are contiguous."""
        width = self._bits // 8
        return (width, width * self.shape[0]) if self._turned else None

    def _view(self) -> IdView:
        if not self._ids:
            raise TypeError(
                f"array: expected a one-dimensional array of int32 or int64, got {self!r}"
            )
        source = self._source
        if source is None or source is BY_TORCH:
            source = self
        return IdView(
            self._address,
            self._length,
            self._bits,
            self._readonly,
            self._owner,
            source,
            self._device,
        )

    def _region(self) -> ArrayRegion:
        host = self.cpu()._in_order()
        return ArrayRegion(host._address, host._dtype, host.shape, host, host._readonly)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return (self._length,) if self._shape is None else self._shape

    @property
    def dtype(self) -> str:
        """NumPy's name of the dtype, as ``"int64"``, or ``"bfloat16"``."""
        return self._dtype

    @property
    def device(self) -> str:
        """``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def readonly(self) -> bool:
        """True if the memory must not be written to (a view of a caller's read-only array)."""
        return self._readonly

    @property
    def nbytes(self) -> int:
        """Length times item size."""
        return self._length * self._bits // 8

    def cpu(self) -> Array:
        """This array on the CPU: itself, or a copy of an array on a device."""
        if self._device < 0:
            return self
        bits = Array._from_address(
            self._address, self._length, self._bits, self._owner, device=self._device
        )
        copy = Array._of_view(ids_on_host(bits._view()))
        copy._shown_as(self._dtype, self.shape)
        copy._turned = self._turned
        return copy

    def numpy(self) -> ndarray[Any, Any]:
        """A NumPy array on the same memory; it is writeable unless this array is read-only.

        TypeError for an array on a device, which ``cpu()`` copies, and for bfloat16.
        """
        self._need_cpu()
        if not KINDS[self._dtype].typestr:
            raise TypeError(f"Array: expected a dtype of NumPy's, got {self._dtype}; use torch()")
        try:
            import numpy
        except ImportError:
            raise ImportError(
                "Array.numpy: expected NumPy, found none; pip install numpy"
            ) from None
        return numpy.asarray(self)

    def torch(self) -> Tensor:
        """A torch tensor on the same memory; a copy when this array is read-only.

        Torch has no read-only tensors, and a write into a read-only file mapping would crash.
        Further arrays of a graph's file have a separate mapping, which is copied page by page on
        write: a change stays in this process.
        """
        try:
            from torch.utils.dlpack import from_dlpack
        except ImportError:
            raise ImportError(
                "Array.torch: expected PyTorch, found none; pip install torch"
            ) from None
        if self._device >= 0:
            self._order(devices.current_stream(self._device))
        shown = self
        if isinstance(self._owner, MappedFile) and self._owner.private:
            address = self._address - self._owner.address + self._owner.private
            shown = self._view_at(address, self.shape, readonly=False)
        elif (
            self._ids
            and not self._readonly
            and self._device < 0
            and self._address
            and (api := exchange.exchange_api())
        ):
            values = self._owner, self._address, self._length, self._bits
            return exchange.one_tensor(api, *values)
        if self._dtype == "bool":
            # Not every version takes DLPack's truth values.
            import torch

            shown = shown._view_at(shown._address, self.shape, readonly=shown._readonly)
            shown._shown_as("uint8", self.shape)
            numbers: Tensor = from_dlpack(shown._capsule(copy=shown._readonly, versioned=False))
            return numbers.view(torch.bool)
        tensor: Tensor = from_dlpack(shown._capsule(copy=shown._readonly, versioned=False))
        return tensor

    def tolist(self) -> Any:
        """The values as a list of int; of other arrays nested lists, or the only value."""
        if self._ids:
            return self._integers().tolist()
        return _nested(self._in_order()._values(), self.shape)

    def __len__(self) -> int:
        if self._shape is None:
            return self._length
        if not self._shape:
            raise TypeError("Array: expected at least one dimension, got none")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        # Not a generator's own: an array on a device raises here, not at the first value.
        if self._ids:
            return iter(self._integers())
        self._need_cpu()
        values = self._in_order()
        return (values[place] for place in range(len(self)))

    @overload
    def __getitem__(self, key: slice) -> Array: ...

    @overload
    def __getitem__(self, key: int) -> Any: ...

    def __getitem__(self, key: int | slice) -> Any:
        if self._turned:
            return self._in_order()[key]
        count = len(self)
        rest = () if self._shape is None else self._shape[1:]
        row = self._bits // 8 * math.prod(rest)
        if isinstance(key, slice):
            start, stop, step = key.indices(count)
            if step != 1:
                raise ValueError(f"Array: expected a slice of step 1, got {step}; use numpy()")
            return self._view_at(self._address + start * row, (max(0, stop - start), *rest))
        try:
            place = operator.index(key)
        except TypeError:
            text = f"Array: expected an integer or a slice as index, got {describe(key)}"
            raise TypeError(text) from None
        if not -count <= place < count:
            raise IndexError(f"Array: expected an index below {count}, got {place}")
        if self._ids:
            return self._integers()[place]
        self._need_cpu()
        part = self._view_at(self._address + place % count * row, rest)
        return part if rest else part._values()[0]

    def __eq__(self, other: object) -> Any:
        """Compares value by value, as NumPy does: a bool array; TypeError on a device.

        Use ``is`` to find an array in a list or a dict.
        """
        return self.numpy() == _values_of(other)

    def __ne__(self, other: object) -> Any:
        return self.numpy() != _values_of(other)

    # By identity: arrays are kept in sets and dicts.
    __hash__ = HasIdView.__hash__

    def __repr__(self) -> str:
        flag = ", read-only" if self._readonly else ""
        if self._device >= 0:
            return f"Array(length={self._length}, dtype={self.dtype}, device={self.device}{flag})"
        if not self._ids:
            return f"Array(shape={self.shape}, dtype={self._dtype}{flag})"
        shown = [str(value) for value in self[:_SHOWN]]
        if self._length > 2 * _SHOWN:
            shown.append("...")
        shown += [str(value) for value in self[max(_SHOWN, self._length - _SHOWN) :]]
        return f"Array([{', '.join(shown)}], length={self._length}, dtype={self.dtype}{flag})"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """The values, or their place in a file; another library's object pickles itself."""
        self._need_cpu()
        if self._source is BY_TORCH:
            self._source = self.torch()
        if self._source is not None:
            self._source = pickle_source(self, self._source)
            return _from_source if self._ids else _from_tensor, (self._source,)
        owner = self._owner
        if isinstance(owner, MappedFile):
            at = self._address - owner.address
            return _from_file, (owner.path, owner.identity, at, self._dtype, self.shape)
        if protocol < 5 or not self._ids:
            return _from_bytes, (bytes(self._ordered_bytes()), self._dtype, self.shape)
        values = PickleBuffer(memories.buffer_view(self._address, self.nbytes, owner))
        return _from_bytes, (values, self._dtype, self.shape)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU_DLPACK if self._device < 0 else (devices.DL_CUDA, self._device)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule: versioned from ``max_version`` (1, 0) on, else legacy.

        On a CUDA device the values are ready for later work in ``stream``: 1 or None is the legacy
        default stream, 2 the calling thread's, a larger number a CUstream; -1 requests no order.
        The memory is released after the work in that stream. ``dl_device`` (1, 0) copies to the
        CPU.

        BufferError for another device, and for a read-only array in a legacy capsule, which has
        no flag for it (``copy=True`` helps).
        """
        here = self.__dlpack_device__()
        versioned = max_version is not None and max_version[0] >= 1
        if dl_device is not None and tuple(dl_device) != here:
            if tuple(dl_device) != _CPU_DLPACK or copy is False:
                where = "the CPU" if self._device < 0 else self.device
                raise BufferError(f"dl_device: expected {here} ({where}), got {dl_device!r}")
            return self.cpu()._capsule(copy=False, versioned=versioned)
        if self._device < 0:
            if stream is not None and stream != -1:
                raise BufferError(f"stream: expected None on the CPU, got {describe(stream)}")
        elif stream != -1:
            self._order(devices.consumer_stream(stream))
        return self._capsule(copy=bool(copy), versioned=versioned)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Arrow's PyCapsule interface: (schema, array), without nulls and without a copy.

        A requested schema is only a wish by that interface, and is not followed.
        """
        self._need_cpu()
        self._need_ids()
        with memories.retained(self._owner) as memory:
            about = (devices.CPU, memory, self._address, self._length, self._bits)
            pair = library.call("ArrowExport", *about)
        capsules: tuple[object, object] = library.engine().arrow_export(pair)
        return capsules

    @property
    def __arrow_c_device_array__(self) -> Callable[..., tuple[object, object]]:
        """Arrow's interface for devices; there is none on the CPU, as ``__arrow_c_array__`` is.

        (schema, array) of the values where they lie; they are ready, for every stream.
        """
        if self._device < 0:
            raise AttributeError("Array on the CPU: expected a use of __arrow_c_array__")
        return self._arrow_on_device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._device < 0:
            raise AttributeError("Array on the CPU: expected a use of __array_interface__")
        typestr = KINDS[self._dtype].typestr
        if not typestr:
            raise AttributeError(f"Array: NumPy has no {self._dtype}; use torch()")
        self._order(devices.LEGACY_STREAM)
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": typestr,
            "data": (self._address if self._length else 0, self._readonly),
            "strides": self._strides(),
            "stream": devices.LEGACY_STREAM,
        }

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._device >= 0:
            raise AttributeError(f"Array on {self.device}: expected a use of cpu()")
        typestr = KINDS[self._dtype].typestr
        if not typestr:
            raise AttributeError(f"Array: NumPy has no {self._dtype}; use torch()")
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": typestr,
            # NumPy 1 takes no null, also of an array that has nothing to read.
            "data": (self._address or _NOWHERE, self._readonly),
            "strides": self._strides(),
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray[Any, Any]:
        values = self.numpy()
        if dtype is not None and dtype != values.dtype:
            if copy is False:
                raise ValueError(f"Array: expected dtype {self.dtype} without a copy, got {dtype}")
            return values.astype(dtype)
        return values.copy() if copy else values

    def _need_cpu(self) -> None:
        if self._device >= 0:
            raise TypeError(
                f"Array: expected one on the CPU, got one on {self.device}; .cpu() copies it"
            )

    def _need_ids(self) -> None:
        if not self._ids:
            raise TypeError(
                f"Array: expected one dimension of int32 or int64 for Arrow, got {self!r}; "
                "numpy() shows others"
            )

    def _order(self, stream: int) -> None:
        """Orders later work of the stream after the values, and holds the memory until its end."""
        # Another library's memory: it has been ready since it was given to us.
        if isinstance(self._owner, memories.Memory) and self._length:
            library.call("DeviceOrder", self._owner.address, stream)

    def _arrow_on_device(
        self, requested_schema: object = None, **options: object
    ) -> tuple[object, object]:
        self._need_ids()
        with memories.retained(self._owner, self._device) as memory:
            about = (self._device, memory, self._address, self._length, self._bits)
            pair = library.call("ArrowExport", *about)
        capsules: tuple[object, object] = library.engine().arrow_export_device(pair)
        return capsules

    def _integers(self) -> memoryview:
        self._need_cpu()
        return memories.integer_view(self._address, self._length, self._bits)

    def _bytes(self) -> memoryview:
        self._need_cpu()
        return memories.memory_view(self._address, self.nbytes).cast("B")

    def _values(self) -> list[Any]:
        values = list(struct.unpack(f"<{self._length}{KINDS[self._dtype].format}", self._bytes()))
        if self._dtype == "bfloat16":
            wide = struct.pack(f"<{self._length}I", *(value << 16 for value in values))
            values = list(struct.unpack(f"<{self._length}f", wide))
        return values

    def _view_at(self, address: int, shape: tuple[int, ...], readonly: bool | None = None) -> Array:
        flag = self._readonly if readonly is None else readonly
        length = math.prod(shape)
        owner: Any = self._owner
        if is_tensor(owner) and length != self._length == owner.numel():
            # A part of the tensor, which moves with it, and is where this array is.
            start = (address - self._address) // KINDS[self._dtype].size
            owner = owner.detach().reshape(-1)[start : start + length]
        array = Array._from_address(
            address,
            length,
            self._bits,
            owner,
            readonly=flag,
            device=self._device,
        )
        array._shown_as(self._dtype, shape)
        return array

    def _capsule(self, *, copy: bool, versioned: bool) -> Any:
        if copy and self._device >= 0:
            values = _copy_to_device(self.cpu()._in_order(), self._device)
            return values._capsule(copy=False, versioned=versioned)
        if copy:
            values = _from_bytes(self._ordered_bytes(), self._dtype, self.shape)
            return values._capsule(copy=False, versioned=versioned)
        if self._readonly and not versioned:
            raise BufferError(
                "Array: expected max_version (1, 0) or copy=True for a read-only array, "
                "since a legacy DLPack capsule has no read-only flag"
            )
        engine, owner = library.engine(), self._owner
        export: Any = engine.dlpack_export
        about: tuple[int, ...] = (
            self._address,
            self._length,
            self._bits,
            self._readonly,
            versioned,
        )
        if not self._ids:
            shape = self.shape
            sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
            export = engine.dlpack_export_tensor
            kind = KINDS[self._dtype].code
            place = self._address, ctypes.addressof(sizes)
            # Minus two: with the second dimension outermost.
            about = (
                *place,
                -2 if self._turned else len(shape),
                kind,
                self._bits,
                self._readonly,
                versioned,
            )
            about += self.__dlpack_device__()
        elif self._device >= 0:
            export = engine.dlpack_export_device
            about += (devices.DL_CUDA, self._device)
        # A loader does this a dozen times a batch: a context manager would cost half the time.
        if isinstance(owner, memories.Memory) and owner.is_of(library.generation()):
            return export(owner.address, *about)
        with memories.retained(owner) as memory:
            return export(memory, *about)


def as_array(value: Any, where: str) -> Array:
    """``value`` as an array of any dtype on the CPU; the error names ``where``."""
    if isinstance(value, Array) and value._device < 0:
        return value._in_order()
    return Array._of_region(as_region(value, where))


def _values_of(other: Any) -> Any:
    """Returns the other side of a comparison as an object that NumPy takes."""
    if not hasattr(other, "__array__"):
        return other
    # NumPy leaves the comparison to torch, which has none.
    import numpy

    return numpy.asarray(other)


def _copy_to_device(values: Array, device: int) -> Array:
    """A copy of an array of the CPU on a device."""
    if not values._length:
        none = Array._from_address(0, 0, values._bits, None, device=device)
        none._shown_as(values._dtype, values.shape)
        return none
    stream = devices.current_stream(device)
    memory = memories.new("DeviceUpload", device, values._address, values.nbytes, stream)
    copy = Array._from_address(memory.data, values._length, values._bits, memory, device=device)
    copy._shown_as(values._dtype, values.shape)
    return copy


def _nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return values[0]
    if len(shape) == 1:
        return values
    row = math.prod(shape[1:])
    return [_nested(values[i * row : (i + 1) * row], shape[1:]) for i in range(shape[0])]


def _from_source(source: object) -> Array:
    return Array._of_view(as_ids(source, "array"))


def _from_tensor(tensor: object) -> Array:
    return as_array(tensor, "array")


def _from_file(
    path: str, identity: Identity, offset: int, dtype: str, shape: tuple[int, ...]
) -> Array:
    pages = MappedFile.reopened(path, identity)
    return Array._of_region(ArrayRegion(pages.address + offset, dtype, shape, pages, True))


def _from_bytes(
    values: bytes | bytearray | memoryview | PickleBuffer, dtype: str, shape: tuple[int, ...]
) -> Array:
    """An array on a buffer of bytes, as pickle gives it back."""
    buffer, address = from_pickle(values)
    return Array._of_region(ArrayRegion(address, dtype, shape, buffer, False))
