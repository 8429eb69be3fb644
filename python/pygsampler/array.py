"""``Array``: a one-dimensional view of integers that every array library can take."""

from __future__ import annotations

import operator
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, overload

from pygsampler import _device, _engine, _input, _memory
from pygsampler._check import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy import ndarray
    from torch import Tensor

_CPU_DLPACK = (_device.DL_CPU, 0)
_SHOWN = 3


class Array:
    """Vertex ids, edge ids, offsets or positions: a view of int32 or int64 values.

    An array keeps the memory that it shows alive, on its own: the batch or graph that it came
    from may go. It is zero-copy for NumPy (``numpy.asarray``, ``numpy.from_dlpack``), torch, JAX
    and others (``from_dlpack``) and pyarrow (``pyarrow.array``). ``len``, iteration, an integer
    index (gives an int) and a slice of step 1 (gives a view) work; ``==`` compares identity.

    On a CUDA device it is zero-copy for torch, CuPy, JAX and others (``from_dlpack``, or
    ``__cuda_array_interface__``) and Arrow (``__arrow_c_device_array__``). Values are not read
    from there one by one: what shows them raises TypeError, and ``cpu()`` makes a copy to read.
    """

    __slots__ = (
        "__weakref__",
        "_address",
        "_bits",
        "_device",
        "_length",
        "_owner",
        "_readonly",
        "_source",
    )

    _address: int
    _length: int
    _bits: int
    _readonly: bool
    # -1, or the index of the CUDA device.
    _device: int
    _owner: object
    _source: object | None

    def __init__(self) -> None:
        raise TypeError("Array: made by pygsampler only; numpy.asarray and others take one")

    @classmethod
    def _of(
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
        array._readonly = readonly
        array._device = device
        array._owner = owner
        array._source = None
        return array

    @classmethod
    def _of_view(cls, view: _input.View) -> Array:
        array = cls._of(
            view.address,
            view.length,
            view.bits,
            view.owner,
            readonly=view.readonly,
            device=view.device,
        )
        array._source = view.source
        return array

    def _view(self) -> _input.View:
        source = self if self._source is None else self._source
        return _input.View(
            self._address,
            self._length,
            self._bits,
            self._readonly,
            self._owner,
            source,
            self._device,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """``(length,)``."""
        return (self._length,)

    @property
    def dtype(self) -> str:
        """``"int32"`` or ``"int64"``: equal to the NumPy dtype of that name, and its argument."""
        return f"int{self._bits}"

    @property
    def device(self) -> str:
        """``"cpu"`` or, for one, ``"cuda:0"``."""
        return _device.name(self._device)

    @property
    def readonly(self) -> bool:
        """Whether the memory must not be written to (a view of a caller's read-only array)."""
        return self._readonly

    @property
    def nbytes(self) -> int:
        """Length times item size."""
        return self._length * self._bits // 8

    def cpu(self) -> Array:
        """This array on the CPU: itself, or a copy of an array on a device."""
        if self._device < 0:
            return self
        return Array._of_view(_input.on_host(self._view()))

    def numpy(self) -> ndarray[Any, Any]:
        """A NumPy array on the same memory; it is writeable unless this array is read-only.

        TypeError for an array on a device, which ``cpu()`` copies.
        """
        self._need_cpu()
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
        """
        try:
            from torch.utils.dlpack import from_dlpack
        except ImportError:
            raise ImportError(
                "Array.torch: expected PyTorch, found none; pip install 'pygsampler[torch]'"
            ) from None
        if self._device >= 0:
            self._order(_device.current_stream(self._device))
        tensor: Tensor = from_dlpack(self._capsule(copy=self._readonly, versioned=False))
        return tensor

    def tolist(self) -> list[int]:
        """The values as a list of int."""
        return self._memoryview().tolist()

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[int]:
        # Not a generator's own: an array on a device raises here, not at the first value.
        return iter(self._memoryview())

    @overload
    def __getitem__(self, key: int) -> int: ...

    @overload
    def __getitem__(self, key: slice) -> Array: ...

    def __getitem__(self, key: int | slice) -> int | Array:
        if isinstance(key, slice):
            start, stop, step = key.indices(self._length)
            if step != 1:
                raise ValueError(f"Array: expected a slice of step 1, got {step}; use numpy()")
            address = self._address + start * self._bits // 8
            length = max(0, stop - start)
            return Array._of(
                address,
                length,
                self._bits,
                self._owner,
                readonly=self._readonly,
                device=self._device,
            )
        try:
            place = operator.index(key)
        except TypeError:
            text = f"Array: expected an integer or a slice as index, got {describe(key)}"
            raise TypeError(text) from None
        if not -self._length <= place < self._length:
            raise IndexError(f"Array: expected an index below {self._length}, got {place}")
        return self._memoryview()[place]

    def __repr__(self) -> str:
        flag = ", read-only" if self._readonly else ""
        if self._device >= 0:
            return f"Array(length={self._length}, dtype={self.dtype}, device={self.device}{flag})"
        shown = [str(value) for value in self[:_SHOWN]]
        if self._length > 2 * _SHOWN:
            shown.append("...")
        shown += [str(value) for value in self[max(_SHOWN, self._length - _SHOWN) :]]
        return f"Array([{', '.join(shown)}], length={self._length}, dtype={self.dtype}{flag})"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Pickles the values; an object of another library that is shown pickles itself."""
        self._need_cpu()
        if self._source is not None:
            self._source = _input.without_moving(self, self._source)
            return _from_source, (self._source,)
        if protocol < 5:
            return _from_bytes, (bytes(self._memoryview().cast("B")), self._bits)
        values = PickleBuffer(_memory.owned_view(self._address, self.nbytes, self._owner))
        return _from_bytes, (values, self._bits)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU_DLPACK if self._device < 0 else (_device.DL_CUDA, self._device)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule: versioned from ``max_version`` (1, 0) on, else legacy.

        On a CUDA device the values are ready for what the consumer puts into ``stream``: 1 or
        None the legacy default stream, 2 the calling thread's, more a CUstream; -1 asks for no
        order. The memory is given back after the work in that stream. ``dl_device`` (1, 0) makes
        a copy on the CPU.

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
            self._order(_device.consumer_stream(stream))
        return self._capsule(copy=bool(copy), versioned=versioned)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Arrow's PyCapsule interface: (schema, array), without nulls and without a copy.

        A requested schema is only a wish by that interface, and is not followed.
        """
        self._need_cpu()
        with _memory.counted(self._owner) as memory:
            pair = _engine.call("ArrowExport", memory, self._address, self._length, self._bits)
        capsules: tuple[object, object] = _engine.engine().arrow_export(pair)
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
        self._order(_device.LEGACY_STREAM)
        return {
            "version": 3,
            "shape": (self._length,),
            "typestr": f"<i{self._bits // 8}",
            "data": (self._address if self._length else 0, self._readonly),
            "strides": None,
            "stream": _device.LEGACY_STREAM,
        }

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._device >= 0:
            raise AttributeError(f"Array on {self.device}: expected a use of cpu()")
        return {
            "version": 3,
            "shape": (self._length,),
            "typestr": f"<i{self._bits // 8}",
            "data": (self._address, self._readonly),
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

    def _order(self, stream: int) -> None:
        """Work that is put into the stream from now on finds the values, and the memory stays
        until it is done."""
        # Another library's memory: it has been ready since it was given to us.
        if isinstance(self._owner, _memory.Memory) and self._length:
            _engine.call("DeviceOrder", self._owner.address, stream)

    def _arrow_on_device(
        self, requested_schema: object = None, **options: object
    ) -> tuple[object, object]:
        with _memory.counted(self._owner, self._device) as memory:
            about = (memory, self._address, self._length, self._bits)
            pair = _engine.call("DeviceArrowExport", *about)
        capsules: tuple[object, object] = _engine.engine().arrow_export_device(pair)
        return capsules

    def _memoryview(self) -> memoryview:
        self._need_cpu()
        return _memory.integer_view(self._address, self._length, self._bits)

    def _capsule(self, *, copy: bool, versioned: bool) -> Any:
        if copy and self._device >= 0:
            return _on_device(self.cpu(), self._device)._capsule(copy=False, versioned=versioned)
        if copy:
            values = _from_bytes(bytearray(self._memoryview().cast("B")), self._bits)
            return values._capsule(copy=False, versioned=versioned)
        if self._readonly and not versioned:
            raise BufferError(
                "Array: expected max_version (1, 0) or copy=True for a read-only array, "
                "since a legacy DLPack capsule has no read-only flag"
            )
        engine, owner = _engine.engine(), self._owner
        export: Any = engine.dlpack_export
        about: tuple[int, ...] = (
            self._address,
            self._length,
            self._bits,
            self._readonly,
            versioned,
        )
        if self._device >= 0:
            export = engine.dlpack_export_device
            about += (_device.DL_CUDA, self._device)
        # A loader does this a dozen times a batch: a context manager would cost half the time.
        if isinstance(owner, _memory.Memory) and owner.is_of(_engine.generation()):
            return export(owner.address, *about)
        with _memory.counted(owner) as memory:
            return export(memory, *about)


def _on_device(values: Array, device: int) -> Array:
    """A copy of an array of the CPU on a device."""
    if not values._length:
        return Array._of(0, 0, values._bits, None, device=device)
    stream = _device.current_stream(device)
    memory = _memory.new("DeviceUpload", device, values._address, values.nbytes, stream)
    return Array._of(memory.data, values._length, values._bits, memory, device=device)


def _from_source(source: object) -> Array:
    return Array._of_view(_input.take(source, "array"))


def _from_bytes(values: bytes | bytearray | memoryview | PickleBuffer, bits: int) -> Array:
    """An array on a buffer of bytes, as pickle gives it back."""
    buffer = memoryview(values)
    if not buffer.nbytes:
        return Array._of(0, 0, bits, None)
    address = _memory.address_of(buffer)
    if buffer.readonly or address % 8:
        # A copy may be written to; and bytes handed over out of band may lie anywhere.
        buffer = memoryview(bytearray(buffer))
        address = _memory.address_of(buffer)
    return Array._of(address, buffer.nbytes * 8 // bits, bits, buffer)
