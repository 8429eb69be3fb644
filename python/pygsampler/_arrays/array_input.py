"""Reads arrays of any dtype and shape, for the named arrays of a graph, from any library."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from pygsampler._arrays import dlpack
from pygsampler._arrays.dtypes import KINDS, ArrayRegion
from pygsampler._arrays.ids import HasIdView, IdView, as_ids
from pygsampler._engine import memory
from pygsampler._engine.checks import describe

_EXPECTED = "an array of bool, integers or floats in CPU memory"
# Torch writes them into a pickle, and cannot read that again.
_NOT_PICKLED = ("uint16", "uint32", "uint64")
_SIGNED, _UNSIGNED, _FLOATS = "bhilqn", "BHILQN", "efd"


def as_region(value: Any, where: str) -> ArrayRegion:
    """``value`` as an array in C order, without a copy where that can be.

    Taken: our own arrays, torch tensors (from a GPU by a copy), NumPy arrays, what has the buffer
    protocol, DLPack on the CPU, Arrow or ``__array__``, and, with NumPy, numbers and sequences.
    TypeError and ValueError name ``where``.
    """
    if isinstance(value, HasIdView):
        return value._region()
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _of_torch(torch, value, where)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _of_numpy(numpy, value, where)
    try:
        buffer = memoryview(value)
    except (TypeError, BufferError, ValueError):
        return _of_protocol(value, where)
    return _of_buffer(value, buffer, where)


def _of_torch(torch: Any, tensor: Any, where: str) -> ArrayRegion:
    if tensor.layout is not torch.strided:
        _refuse(where, f"a {tensor.layout} tensor")
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in KINDS:
        _refuse(where, str(tensor.dtype))
    tensor = tensor.detach().cpu().contiguous()
    try:
        address = int(tensor.data_ptr())
    except RuntimeError as error:
        raise TypeError(f"{where}: expected {_EXPECTED}, got {error}") from None
    if not address and tensor.numel():
        _refuse(where, f"a {type(tensor).__name__} without memory")
    source = None if dtype in _NOT_PICKLED else tensor
    return ArrayRegion(address, dtype, tuple(tensor.shape), tensor, False, source)


def _of_numpy(numpy: Any, value: Any, where: str) -> ArrayRegion:
    if hasattr(value, "mask"):
        _refuse(where, "a masked array")
    values = numpy.asarray(value, order="C")
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.name not in KINDS:
        _refuse(where, f"dtype {values.dtype}")
    address = int(values.__array_interface__["data"][0])
    readonly = not values.flags.writeable
    return ArrayRegion(address, values.dtype.name, tuple(values.shape), values, readonly)


def _of_buffer(value: Any, buffer: memoryview, where: str) -> ArrayRegion:
    order, kind = buffer.format[:-1], buffer.format[-1:]
    dtype = None
    if order in ("", "@", "=", "<"):
        bits = 8 * buffer.itemsize
        if kind == "?":
            dtype = "bool"
        elif kind in _SIGNED:
            dtype = f"int{bits}"
        elif kind in _UNSIGNED:
            dtype = f"uint{bits}"
        elif kind in _FLOATS:
            dtype = f"float{bits}"
    if dtype is None:
        _refuse(where, f"{type(value).__name__} of format {buffer.format!r}")
    shape = tuple(buffer.shape or ())
    readonly = buffer.readonly
    if not buffer.c_contiguous:
        buffer, readonly = memoryview(bytearray(buffer.tobytes())), False
    address = memory.address_of(buffer) if buffer.nbytes else 0
    return ArrayRegion(address, dtype, shape, buffer, readonly)


def _of_protocol(value: Any, where: str) -> ArrayRegion:
    nulls = getattr(value, "null_count", 0)
    nulls = nulls() if callable(nulls) else nulls
    if nulls:
        raise ValueError(f"{where}: expected no nulls, got {nulls}")
    # Arrow's own arrays show themselves through NumPy, with no copy for numbers.
    arrow = hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__")
    if not arrow and hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        found = _of_dlpack(value, where)
        if found is not None:
            return found
    if hasattr(value, "__array__"):
        converted = value.__array__()
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(converted, numpy.ndarray):
            return _of_numpy(numpy, converted, where)
    if hasattr(value, "__arrow_c_array__"):
        return _of_ids(as_ids(value, where))
    if isinstance(value, (list, tuple, range, bool, int, float)):
        try:
            import numpy as np
        except ImportError:
            return _of_ids(as_ids(value, where))
        try:
            values = np.asarray(value)
        except (ValueError, OverflowError) as error:
            raise TypeError(f"{where}: expected {_EXPECTED}, got {error}") from None
        return _of_numpy(np, values, where)
    _refuse(where, describe(value))


def _of_ids(view: IdView) -> ArrayRegion:
    return ArrayRegion(view.address, f"int{view.bits}", (view.length,), view.owner, view.readonly)


def _of_dlpack(value: Any, where: str) -> ArrayRegion | None:
    """The tensor that ``value`` exports; None where it has another way of showing itself."""
    try:
        kind, number = value.__dlpack_device__()
        if int(kind) not in dlpack.CPU_DEVICES:
            name = dlpack.device_name(int(kind), int(number))
            raise ValueError(f"{where}: expected {_EXPECTED}, got one on {name}; copy it first")
        tensor = dlpack.borrow(value)
    except (BufferError, TypeError, AttributeError, RuntimeError) as error:
        if hasattr(value, "__array__"):
            return None
        raise TypeError(
            f"{where}: expected {_EXPECTED}, got {type(value).__name__}: {error}"
        ) from error
    dtype = "bool" if tensor.type_name == "bool8" else tensor.type_name
    if dtype not in KINDS:
        _refuse(where, tensor.type_name)
    if not _contiguous(tensor.shape, tensor.strides):
        if hasattr(value, "__array__"):
            return None
        raise ValueError(f"{where}: expected a contiguous array, got strides {tensor.strides}")
    return ArrayRegion(tensor.address, dtype, tensor.shape, tensor.capsule, tensor.readonly)


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=False):
        if size > 1 and stride != expected:
            return False
        expected *= size
    return True


def _refuse(where: str, got: str) -> NoReturn:
    raise TypeError(f"{where}: expected {_EXPECTED}, got {got}")


def to_numpy(part: Any) -> Any:
    """An array or tensor as one of NumPy: of the CPU without a copy."""
    import numpy as np

    return np.from_dlpack(part.cpu() if hasattr(part, "cpu") else part)
