"""``ShapedArray``: an array of any dtype and shape, as those beside a graph are."""

from __future__ import annotations

import ctypes
import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler import _engine, _memory
from pygsampler._check import describe, index
from pygsampler._graph import pages as graph_pages
from pygsampler.array import Array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from pygsampler._input import View


class Kind(NamedTuple):
    """A dtype: bytes of an element, DLPack's code, NumPy's typestr and struct's format."""

    size: int
    code: int
    typestr: str
    format: str


_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6

KINDS = {
    "bool": Kind(1, _BOOL, "|b1", "?"),
    "int8": Kind(1, _INT, "|i1", "b"),
    "int16": Kind(2, _INT, "<i2", "h"),
    "int32": Kind(4, _INT, "<i4", "i"),
    "int64": Kind(8, _INT, "<i8", "q"),
    "uint8": Kind(1, _UINT, "|u1", "B"),
    "uint16": Kind(2, _UINT, "<u2", "H"),
    "uint32": Kind(4, _UINT, "<u4", "I"),
    "uint64": Kind(8, _UINT, "<u8", "Q"),
    "float16": Kind(2, _FLOAT, "<f2", "e"),
    "float32": Kind(4, _FLOAT, "<f4", "f"),
    "float64": Kind(8, _FLOAT, "<f8", "d"),
    "bfloat16": Kind(2, _BFLOAT, "", "H"),
}


class ShapedArray(Array):
    """An ``Array`` of any dtype of ``KINDS`` and any shape, in C order, on the CPU.

    Of a graph file it is a read-only view of the mapped file: nothing is read before it is used,
    and all processes share what was read. ``numpy()`` shows it as it is. ``torch()`` shows it by a
    mapping of its own, copied page by page where somebody writes: a change stays in this process.
    An integer index gives a value, or an array where there are more dimensions.
    """

    __slots__ = ("_dtype", "_shape")

    _dtype: str
    _shape: tuple[int, ...]

    @classmethod
    def _shaped(
        cls, address: int, dtype: str, shape: tuple[int, ...], owner: object, readonly: bool
    ) -> ShapedArray:
        array = object.__new__(cls)
        array._address = address
        array._length = math.prod(shape)
        array._bits = 8 * KINDS[dtype].size
        array._readonly = readonly
        array._device = -1
        array._owner = owner
        array._source = None
        array._dtype = dtype
        array._shape = shape
        return array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._shape

    @property
    def dtype(self) -> str:
        """NumPy's name of the dtype, or ``"bfloat16"``."""
        return self._dtype

    def torch(self) -> Tensor:
        """A torch tensor on the same memory; of a file, by a mapping that may be written to."""
        try:
            import torch
            from torch.utils.dlpack import from_dlpack
        except ImportError:
            raise ImportError(
                "Array.torch: expected PyTorch, found none; pip install 'pygsampler[torch]'"
            ) from None
        shown = self
        if isinstance(self._owner, graph_pages.Pages):
            own = self._owner.private
            if own:
                address = self._address - self._owner.address + own
                shown = self._at(address, self._shape, readonly=False)
        kind = KINDS[self._dtype].code
        if kind == _BOOL:
            # Not every version takes DLPack's truth values.
            shown = ShapedArray._shaped(
                shown._address, "uint8", self._shape, self._owner, shown._readonly
            )
        tensor: Tensor = from_dlpack(shown._capsule(copy=shown._readonly, versioned=False))
        return tensor.view(torch.bool) if kind == _BOOL else tensor

    def tolist(self) -> Any:
        """The values as nested lists; a value for an array without dimensions."""
        return _nested(self._values(), self._shape)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("Array: expected at least one dimension, got none")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        count = len(self)
        rest = self._shape[1:]
        row = math.prod(rest) * KINDS[self._dtype].size
        if isinstance(key, slice):
            start, stop, step = key.indices(count)
            if step != 1:
                raise ValueError(f"Array: expected a slice of step 1, got {step}; use numpy()")
            return self._at(self._address + start * row, (max(0, stop - start), *rest))
        try:
            place = index(key)
        except TypeError:
            text = f"Array: expected an integer or a slice as index, got {describe(key)}"
            raise TypeError(text) from None
        if not -count <= place < count:
            raise IndexError(f"Array: expected an index below {count}, got {place}")
        part = self._at(self._address + place % count * row, rest)
        return part if rest else part._values()[0]

    def __repr__(self) -> str:
        flag = ", read-only" if self._readonly else ""
        return f"Array(shape={self._shape}, dtype={self._dtype}{flag})"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """An array of a file pickles as its place there."""
        owner = self._owner
        if isinstance(owner, graph_pages.Pages):
            at = self._address - owner.address
            return _of_file, (owner.path, owner.identity, at, self._dtype, self._shape)
        return _of_bytes, (self._bytes().tobytes(), self._dtype, self._shape)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        if not self._is_ids():
            raise TypeError(
                f"Array: expected one dimension of int32 or int64 for Arrow, got {self!r}; "
                "numpy() shows others"
            )
        return super().__arrow_c_array__(requested_schema)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        typestr = KINDS[self._dtype].typestr
        if not typestr:
            raise AttributeError(f"Array: NumPy has no {self._dtype}; use torch()")
        return {
            "version": 3,
            "shape": self._shape,
            "typestr": typestr,
            "data": (self._address, self._readonly),
        }

    def numpy(self) -> Any:
        """A NumPy array on the same memory, read-only as it; TypeError for bfloat16."""
        if not KINDS[self._dtype].typestr:
            raise TypeError(f"Array: expected a dtype of NumPy's, got {self._dtype}; use torch()")
        return super().numpy()

    def _view(self) -> View:
        if not self._is_ids():
            raise TypeError(
                f"array: expected a one-dimensional array of int32 or int64, got {self!r}"
            )
        return super()._view()

    def _is_ids(self) -> bool:
        return len(self._shape) == 1 and self._dtype in ("int32", "int64")

    def _at(
        self, address: int, shape: tuple[int, ...], readonly: bool | None = None
    ) -> ShapedArray:
        flag = self._readonly if readonly is None else readonly
        return ShapedArray._shaped(address, self._dtype, shape, self._owner, flag)

    def _bytes(self) -> memoryview:
        return _memory.memory_view(self._address, self.nbytes).cast("B")

    def _memoryview(self) -> memoryview:
        return self._bytes()

    def _values(self) -> list[Any]:
        values = list(struct.unpack(f"<{self._length}{KINDS[self._dtype].format}", self._bytes()))
        if self._dtype == "bfloat16":
            wide = struct.pack(f"<{self._length}I", *(value << 16 for value in values))
            values = list(struct.unpack(f"<{self._length}f", wide))
        return values

    def _capsule(self, *, copy: bool, versioned: bool) -> Any:
        if copy:
            values = _of_bytes(self._bytes().tobytes(), self._dtype, self._shape)
            return values._capsule(copy=False, versioned=versioned)
        if self._readonly and not versioned:
            raise BufferError(
                "Array: expected max_version (1, 0) or copy=True for a read-only array, "
                "since a legacy DLPack capsule has no read-only flag"
            )
        sizes = (ctypes.c_int64 * max(1, len(self._shape)))(*self._shape)
        with _memory.counted(self._owner) as memory:
            return _engine.engine().dlpack_export_tensor(
                memory,
                self._address,
                ctypes.addressof(sizes),
                len(self._shape),
                KINDS[self._dtype].code,
                self._bits,
                self._readonly,
                versioned,
            )


def _nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return values[0]
    if len(shape) == 1:
        return values
    row = math.prod(shape[1:])
    return [_nested(values[i * row : (i + 1) * row], shape[1:]) for i in range(shape[0])]


def _of_bytes(values: bytes, dtype: str, shape: tuple[int, ...]) -> ShapedArray:
    buffer = memoryview(bytearray(values) or bytearray(8))
    return ShapedArray._shaped(_memory.address_of(buffer), dtype, shape, buffer, False)


def _of_file(
    path: str, identity: graph_pages.Identity, at: int, dtype: str, shape: tuple[int, ...]
) -> ShapedArray:
    pages = graph_pages.Pages.reopened(path, identity)
    return ShapedArray._shaped(pages.address + at, dtype, shape, pages, True)
