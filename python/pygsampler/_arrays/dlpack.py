"""Reads DLPack capsules of other libraries without consuming them.

The capsule is held instead of renamed: its own destructor gives the tensor back when it goes.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

from pygsampler._arrays import devices

# kDLCPU, and page-locked or managed memory, which the CPU reads too.
CPU_DEVICES = frozenset({1, 3, 11, 13})
_DEVICE_NAMES = {2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm", 14: "oneapi"}
_TYPE_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_READ_ONLY = 1


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class BorrowedTensor(NamedTuple):
    """A tensor as a capsule describes it; ``address`` is good while ``capsule`` is held."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    signed: bool
    bits: int
    lanes: int
    type_name: str
    readonly: bool
    capsule: object


# By subscript, which makes a function of our own: attributes are shared, types and all.
_pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer.restype = ctypes.c_void_p
_is_valid = ctypes.pythonapi["PyCapsule_IsValid"]
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def capsule_pointer(capsule: Any, name: bytes) -> int:
    """The pointer inside a capsule of that name; TypeError for anything else."""
    if not _is_valid(capsule, name):
        raise TypeError(f"expected a capsule {name.decode()!r}, got {capsule!r:.80}")
    return int(_pointer(capsule, name))


def device_name(kind: int, number: int) -> str:
    """A device as torch would write it: ``cuda:0``."""
    return f"{_DEVICE_NAMES.get(kind, f'DLPack device {kind}')}:{number}"


def borrow(value: Any, device: int = devices.CPU) -> BorrowedTensor:
    """The tensor that ``value.__dlpack__`` exports, without a copy.

    On a CUDA device its values are ready for what comes into our stream from now on. A legacy
    capsule cannot say whether it may be written to, so it counts as read-only.
    """
    options: dict[str, Any] = {}
    if device >= 0:
        # DLPack has no 0 here: it could mean two streams.
        options["stream"] = devices.current_stream(device) or devices.LEGACY_STREAM
    try:
        capsule = value.__dlpack__(**options, max_version=(1, 0), copy=False)
    except TypeError:
        capsule = value.__dlpack__(**options)
    readonly = True
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(capsule_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise BufferError(f"expected DLPack 1, got version {managed.major}.{managed.minor}")
        readonly = bool(managed.flags & _READ_ONLY)
        tensor = managed.tensor
    else:
        tensor = _Tensor.from_address(capsule_pointer(capsule, b"dltensor"))
    kind = _TYPE_NAMES.get(tensor.code, f"type {tensor.code} of ")
    dimensions = range(tensor.ndim)
    return BorrowedTensor(
        address=(tensor.data or 0) + tensor.byte_offset,
        shape=tuple(tensor.shape[i] for i in dimensions),
        strides=tuple(tensor.strides[i] for i in dimensions) if tensor.strides else (),
        signed=tensor.code == 0,
        bits=tensor.bits,
        lanes=tensor.lanes,
        type_name=f"{kind}{tensor.bits}" + (f"x{tensor.lanes}" if tensor.lanes != 1 else ""),
        readonly=readonly,
        capsule=capsule,
    )
