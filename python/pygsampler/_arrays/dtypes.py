"""The dtypes of arrays, and what array libraries call them."""

from __future__ import annotations

from typing import Any, NamedTuple


class DTypeInfo(NamedTuple):
    """A dtype: bytes of an element, DLPack's code, NumPy's typestr and struct's format."""

    size: int
    code: int
    typestr: str
    format: str


INT, UINT, FLOAT, BFLOAT, BOOL = 0, 1, 2, 4, 6

KINDS = {
    "bool": DTypeInfo(1, BOOL, "|b1", "?"),
    "int8": DTypeInfo(1, INT, "|i1", "b"),
    "int16": DTypeInfo(2, INT, "<i2", "h"),
    "int32": DTypeInfo(4, INT, "<i4", "i"),
    "int64": DTypeInfo(8, INT, "<i8", "q"),
    "uint8": DTypeInfo(1, UINT, "|u1", "B"),
    "uint16": DTypeInfo(2, UINT, "<u2", "H"),
    "uint32": DTypeInfo(4, UINT, "<u4", "I"),
    "uint64": DTypeInfo(8, UINT, "<u8", "Q"),
    "float16": DTypeInfo(2, FLOAT, "<f2", "e"),
    "float32": DTypeInfo(4, FLOAT, "<f4", "f"),
    "float64": DTypeInfo(8, FLOAT, "<f8", "d"),
    "bfloat16": DTypeInfo(2, BFLOAT, "", "H"),
}


class ArrayRegion(NamedTuple):
    """Values of one dtype in C order in CPU memory, and what keeps them there.

    ``source`` is what pickling should store in their place: a torch tensor, which travels through
    shared memory.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    owner: Any
    readonly: bool
    source: Any = None
