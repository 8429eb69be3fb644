"""``Quantization``: how rows of floats are stored in fewer bits, and the scales of them."""

from __future__ import annotations

import ctypes
import json
import math
import os
from array import array
from mmap import mmap
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from pygsampler._arrays.array import Array, _copy_to_device, _from_bytes, as_array
from pygsampler._arrays.dtypes import KINDS, ArrayRegion
from pygsampler._engine import library
from pygsampler._engine.checks import describe
from pygsampler._engine.memory import address_of
from pygsampler._engine.progress import progress_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pygsampler._engine.progress import Progress

__all__ = ["Quantization", "at_lines", "file_room", "quantize_rows", "read_scheme", "scheme_arrays"]

# Numbers of the engine's, and the dtype of an array that has the stored values.
_KINDS = {
    "float16": (1, "float16"),
    "bfloat16": (2, "bfloat16"),
    "float8_e4m3": (3, "uint8"),
    "int8": (4, "int8"),
    "int4": (5, "uint8"),
}
_READ_AS = {"float32": 0, "float16": 1, "bfloat16": 2}
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_PER = ("row", "column")
# Bytes of the source that are stored by one call, after which Ctrl-C is heard.
_CALL_BYTES = 1 << 25
# Bytes that a device reads of the host at a time, a multiple of a CPU's line; and of a vector.
_LINE = 128
_VECTOR = 16
NOT_QUANTIZED = (0, 0, 0, 0, 0)


class Quantization:
    """A scheme of stored rows: the kind of values, what they are read as, and float32 scales.

    ``per`` is ``"row"`` or ``"column"``, or ``""`` for kinds that have no scales. ``shape`` is the
    shape of one row as it is read. The engine expects that rows ``in_file`` may vanish.
    """

    __slots__ = ("_there", "dtype", "in_file", "per", "read_as", "scales", "shape")

    def __init__(
        self,
        dtype: str,
        per: str,
        read_as: str,
        shape: tuple[int, ...],
        scales: Array | None,
        in_file: bool = False,
    ) -> None:
        self.dtype = dtype
        self.per = per
        self.read_as = read_as
        self.shape = shape
        self.scales = scales
        self.in_file = in_file
        # Copies of the scales by device, which go with the features that are read there.
        self._there: WeakValueDictionary[int, Array] = WeakValueDictionary()

    @property
    def columns(self) -> int:
        """Values of a row."""
        return math.prod(self.shape)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row as it is read."""
        return KINDS[self.read_as].size * self.columns

    def words(self, device: int) -> tuple[int, int, int, int, int]:
        """Returns the scheme as the engine reads it on a device, -1 for the CPU."""
        scales = self.scales_on(device)
        address = 0 if scales is None else scales._address
        flags = (self.per == "column") + 2 * self.in_file
        return _KINDS[self.dtype][0], _READ_AS[self.read_as], flags, self.columns, address

    def scales_on(self, device: int) -> Array | None:
        """Returns the scales where a device reads them: it has a copy of its own."""
        if device < 0 or self.scales is None:
            return self.scales
        found = self._there.get(device)
        if found is None:
            found = self._there[device] = _copy_to_device(self.scales, device)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        about = self.dtype, self.per, self.read_as, self.shape, self.scales, self.in_file
        return Quantization, about

    def __repr__(self) -> str:
        per = f", per={self.per!r}" if self.per else ""
        return f"Quantization({self.dtype!r}{per}, read_as={self.read_as!r})"


def check_choices(dtype: Any, per: Any, read_as: Any) -> str:
    """Returns what scales are of, ``""`` for a kind without; ValueError for what there is not."""
    for name, value, known in (
        ("dtype", dtype, _KINDS),
        ("per", per, _PER),
        ("read_as", read_as, _READ_AS),
    ):
        if value not in known:
            raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
    return "" if dtype in ("float16", "bfloat16") else str(per)


def stored_width(dtype: str, columns: int) -> int:
    """Returns how many elements the values of a row take, of the dtype of the stored array."""
    return (columns + 1) // 2 if dtype == "int4" else columns


def stored_dtype(dtype: str) -> str:
    """Returns the dtype of the array of stored values."""
    return _KINDS[dtype][1]


def row_stride(size: int) -> int:
    """Returns the bytes from one stored row to the next, for rows of ``size`` bytes.

    Rows that fit into a line of memory touch one line if they begin at multiples of a power of two:
    100 bytes at multiples of 128. Over a link the line is what is paid for. Rows are padded to that
    if it adds at most a third, and all to a multiple of vectors, by which they are copied, if that
    adds at most an eighth. Longer rows gain nothing by it, since what is added comes over the link,
    too.
    """
    stride = 1 << (size - 1).bit_length() if size <= _LINE else size
    if 3 * (stride - size) > size:
        stride = size
    wide = _padded(stride, _VECTOR)
    return wide if 8 * (wide - size) <= size else stride


def _padded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def quantize_rows(
    values: Array,
    dtype: str,
    per: str,
    read_as: str,
    progress: Progress = False,
    room: Callable[[str, tuple[int, ...]], Array] = Array._room,
) -> tuple[Array, Quantization]:
    """Stores rows of floats on the CPU, a piece at a time, and returns them and their scheme.

    ``room`` gives the memory of what is stored, in which rows begin as ``row_stride`` says and are
    followed by zeros. ValueError for a value that has no place in the kind, TypeError for rows that
    are no floats.
    """
    per = check_choices(dtype, per, read_as)
    if values.dtype not in _FLOATS:
        raise TypeError(f"quantize: expected rows of floats, got {values.dtype}")
    count, shape = len(values), values.shape[1:]
    columns = math.prod(shape)
    if not columns:
        raise ValueError(f"quantize: expected rows of one value or more, got shape {values.shape}")
    scales = None
    if per:
        number = columns if per == "column" else count
        scales = _from_bytes(bytearray(4 * number), "float32", (number,))
    made = Quantization(dtype, per, read_as, shape, scales)
    element = KINDS[stored_dtype(dtype)].size
    stride = row_stride(element * stored_width(dtype, columns))
    out = room(stored_dtype(dtype), (count, stride // element))
    store = _Storing(values, made, out, stride)
    passes = 2 if per == "column" else 1
    with progress_counter(progress, passes * count, "quantizing", " rows") as report:
        if per == "column":
            store.run(report, greatest=True)
            store.scale()
        store.run(report)
    return out, made


def at_lines(stored: Array) -> Array:
    """Returns stored rows in memory that begins at a line, a copy where theirs does not."""
    if stored._address % _LINE == 0:
        return stored
    copy = Array._room(stored.dtype, stored.shape)
    ctypes.memmove(copy._address, stored._address, stored.nbytes)
    return copy


def scheme_arrays(scheme: Quantization | None, name: str) -> dict[str, Array]:
    """Returns what a graph file has for the array of stored rows of that name."""
    if scheme is None:
        return {}
    about = {field: getattr(scheme, field) for field in ("dtype", "per", "read_as", "shape")}
    found = {f"{name}.quantized": as_array(json.dumps(about).encode(), "quantized")}
    if scheme.scales is not None:
        found[f"{name}.scales"] = scheme.scales
    return found


def read_scheme(arrays: Mapping[str, Array], name: str) -> Quantization | None:
    """Returns the scheme of stored rows of a graph file by their name; None of plain ones.

    Raises ValueError for arrays that are no scheme of these rows.
    """
    given = arrays.get(f"{name}.quantized")
    if given is None:
        return None
    stored, scales = arrays[name], arrays.get(f"{name}.scales")
    about = (
        f"{name}.quantized: expected the scheme of {stored.shape[0]} rows of {stored.dtype}, "
        f"shape {stored.shape}"
    )
    try:
        found = json.loads(bytes(given.tolist()))
        dtype, per, read_as = found["dtype"], found["per"], found["read_as"]
        shape = tuple(map(int, found["shape"]))
        scaled = check_choices(dtype, per or "row", read_as)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{about}, got {describe(given)}: {error}") from None
    columns = math.prod(shape)
    number = {"": 0, "row": len(stored), "column": columns}[scaled]
    # Rows may be longer, by padding, which older files do not have.
    fits = (
        all(size > 0 for size in shape)
        and stored.dtype == stored_dtype(dtype)
        and len(stored.shape) == 2
        and stored.shape[1] >= stored_width(dtype, columns)
    )
    if not fits or scaled != per or (0 if scales is None else len(scales)) != number:
        raise ValueError(f"{about}, got {found}")
    return Quantization(dtype, per, read_as, shape, scales, in_file=True)


def file_room(folder: Path) -> Callable[[str, tuple[int, ...]], Array]:
    """Returns a function that makes room in a file without a name, for more than there is memory.

    The file goes with the array that has its pages.
    """

    def room(dtype: str, shape: tuple[int, ...]) -> Array:
        size = math.prod(shape) * KINDS[dtype].size
        if not size:
            return Array._room(dtype, shape)
        with TemporaryFile(dir=folder) as file:
            # A page that has no place on the disk would end the process.
            os.posix_fallocate(file.fileno(), 0, size)
            pages = mmap(file.fileno(), size)
        region = ArrayRegion(address_of(memoryview(pages)), dtype, shape, pages, False)
        return Array._of_region(region)

    return room


class _Storing:
    """Rows on their way into fewer bits, a piece with each call of the engine."""

    def __init__(self, values: Array, scheme: Quantization, out: Array, stride: int) -> None:
        self._values = values
        self._scheme = scheme
        self._out = out
        self._stride = stride

    def run(self, report: Callable[[int], object], greatest: bool = False) -> None:
        """Stores all rows, or finds the greatest sizes of columns."""
        values, scheme = self._values, self._scheme
        count = len(values)
        row = values.nbytes // count if count else 0
        step = max(1, _CALL_BYTES // max(row, 1))
        for first in range(0, count, step):
            rows = min(step, count - first)
            words = list(scheme.words(-1))
            if scheme.per == "row":
                words[4] += 4 * first
            target = 0 if greatest else self._out._address + first * self._stride
            place = self._call(values._address + first * row, rows, words, target)
            if place >= 0:
                self._refuse(first, place)
            report(rows)

    def scale(self) -> None:
        """Makes scales of the greatest sizes."""
        self._call(0, 0, list(self._scheme.words(-1)), 0)

    def _call(self, address: int, count: int, scheme: list[int], target: int) -> int:
        bits, brain = 8 * KINDS[self._values.dtype].size, int(self._values.dtype == "bfloat16")
        about = array("q", (address, bits, brain, count, *scheme, target, self._stride))
        return int(library.call("Quantize", about.buffer_info()[0]))

    def _refuse(self, first: int, place: int) -> None:
        row, column = divmod(place, self._scheme.columns)
        row += first
        found = self._values[row : row + 1].tolist()
        while isinstance(found[0], list):
            found = [value for part in found for value in part]
        finite = "finite values or NaN" if self._scheme.dtype == "float8_e4m3" else "finite values"
        raise ValueError(
            f"quantize: expected {finite} for {self._scheme.dtype}, got {found[column]} in row "
            f"{row}, column {column}; torch.nan_to_num replaces them, and float16 and bfloat16 "
            "store them"
        )
