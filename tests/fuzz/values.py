"""Right and wrong arguments: every container that ids may come in, and everything that is none."""

from __future__ import annotations

import ctypes
import importlib
import math
import sys
import types
import warnings
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np

CODES = {32: "i", 64: "q"}
NUMPY = {32: np.dtype(np.int32), 64: np.dtype(np.int64)}

Maker = Callable[[list[int], int], Any]


def optional(name: str) -> Any:
    """A partner package, or None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None


class OnlyArray:
    """Something with ``__array__`` and nothing else."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values


class OnlyDlpack:
    """Something that speaks DLPack and nothing else."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


class OnlyArrow:
    """Something that speaks Arrow's PyCapsule protocol and nothing else."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.values.__arrow_c_array__(requested_schema)


class Liar:
    """A sequence whose length is not that of what it gives."""

    def __init__(self, length: int, items: list[Any]) -> None:
        self.length = length
        self.items = items

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


class Answers:
    """Has each attribute that it was given, whatever that is."""

    def __init__(self, **answers: Any) -> None:
        self.__dict__.update(answers)


def _unaligned(values: list[int], bits: int) -> Any:
    raw = np.zeros(len(values) * bits // 8 + 1, np.uint8)
    view = raw[1:].view(np.uint8)
    shifted = np.frombuffer(view, NUMPY[bits], len(values)) if values else np.empty(0, NUMPY[bits])
    if values:
        view[:] = np.frombuffer(np.array(values, NUMPY[bits]).tobytes(), np.uint8)
    return shifted


def _readonly(values: list[int], bits: int) -> Any:
    made = np.array(values, NUMPY[bits])
    made.flags.writeable = False
    return made


def _strided(values: list[int], bits: int, step: int = 2) -> Any:
    wide = np.full((len(values), abs(step)), -7, NUMPY[bits])
    wide[:, 0] = values if step > 0 else values[::-1]
    return wide[:, 0] if step > 0 else wide[::-1, 0]


def _ctypes(values: list[int], bits: int) -> Any:
    kind = ctypes.c_int64 if bits == 64 else ctypes.c_int32
    return (kind * len(values))(*values)


def _array(values: list[int], bits: int) -> Any:
    return array(CODES[bits], values)


def _numpy(values: list[int], bits: int) -> Any:
    return np.array(values, NUMPY[bits])


# Of either width.
TYPED: list[Maker] = [
    _array,
    _numpy,
    _numpy,
    _readonly,
    _strided,
    lambda values, bits: _strided(values, bits, -3),
    _unaligned,
    _ctypes,
    lambda values, bits: memoryview(_array(values, bits)),
    lambda values, bits: memoryview(_strided(values, bits)),
    lambda values, bits: OnlyArray(_numpy(values, bits)),
    lambda values, bits: OnlyDlpack(_numpy(values, bits)),
    lambda values, bits: _numpy([9, *values, 9], bits)[1:-1],
    lambda values, bits: np.asfortranarray(_numpy(values, bits)),
]
# Python's own integers: 64 bits.
PLAIN: list[Callable[[list[int]], Any]] = [
    list,
    tuple,
    deque,
    lambda values: [np.int32(v) if abs(v) < 1 << 31 else v for v in values],
    lambda values: Liar(len(values), [*values, 1, 2, 3]),
]

torch = optional("torch")
pyarrow = optional("pyarrow")
if torch is not None:
    _torch_types = {32: torch.int32, 64: torch.int64}
    TYPED += [
        lambda values, bits: torch.tensor(values, dtype=_torch_types[bits]),
        lambda values, bits: torch.from_numpy(_strided(values, bits)),
        lambda values, bits: torch.tensor([5, *values], dtype=_torch_types[bits])[1:],
        lambda values, bits: OnlyDlpack(torch.tensor(values, dtype=_torch_types[bits])),
    ]
if pyarrow is not None:
    _arrow_types = {32: pyarrow.int32(), 64: pyarrow.int64()}
    TYPED += [
        lambda values, bits: pyarrow.array(values, _arrow_types[bits]),
        lambda values, bits: pyarrow.array([0, 0, *values], _arrow_types[bits])[2:],
        lambda values, bits: OnlyArrow(pyarrow.array(values, _arrow_types[bits])),
    ]


def right(random: Random, values: list[int], bits: int) -> Any:
    """``values`` in some container of the given width."""
    if bits == 64 and random.random() < 0.35:
        return random.choice(PLAIN)(values)
    return random.choice(TYPED)(values, bits)


def _raises(kind: type[Exception]) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise kind("no")

    return fail


class _Hostile:
    """Fails wherever it is asked; its ``repr`` too long for a message."""

    __len__ = _raises(ValueError)
    __iter__ = _raises(TypeError)

    def __repr__(self) -> str:
        return "x" * 100_000


def _wrong_arrays() -> list[Callable[[], Any]]:
    return [
        lambda: np.zeros(3),
        lambda: np.zeros(3, np.uint64),
        lambda: np.zeros(3, np.uint32),
        lambda: np.zeros(3, np.int16),
        lambda: np.zeros(3, np.int8),
        lambda: np.zeros(3, np.bool_),
        lambda: np.zeros(3, complex),
        lambda: np.full(3, None),
        lambda: np.zeros(3, ">i8"),
        lambda: np.zeros(3, ">i4"),
        lambda: np.zeros(3, "M8[ns]"),
        lambda: np.zeros(3, "m8[s]"),
        lambda: np.zeros(3, "i4,i8"),
        lambda: np.zeros(3, "S8"),
        lambda: np.zeros(3, "U2"),
        lambda: np.zeros((3, 1), np.int64),
        lambda: np.zeros((0, 4), np.int64),
        lambda: np.zeros((), np.int64),
        lambda: np.int64(3),
        lambda: np.ma.masked_array([1, 0, 1], [1, 0, 1]),
        lambda: np.array([np.nan, 1.0]),
        lambda: memoryview(b"12345678"),
        lambda: memoryview(np.zeros((2, 2), np.int64)),
        lambda: memoryview(np.zeros(3, ">i8")),
        lambda: memoryview(np.zeros((), np.int64)),
        lambda: array("d", [0.0]),
        lambda: array("Q", [0]),
        lambda: array("h", [0]),
        lambda: OnlyArray(np.zeros(3)),
        lambda: OnlyArray([0, 1]),
        lambda: OnlyArray(None),
        lambda: OnlyDlpack(np.zeros(3)),
        lambda: OnlyDlpack(np.zeros((2, 2), np.int64)),
        lambda: OnlyDlpack(np.zeros(8, np.int64)[::2]),
        lambda: Answers(__dlpack__=1, __dlpack_device__=2),
    ]


def _wrong_speakers() -> list[Callable[[], Any]]:
    def type_with(**methods: Any) -> Callable[[], Any]:
        return lambda: type("Odd", (), methods)()

    def device(*_: Any) -> tuple[int, int]:
        return (1, 0)

    def gives(value: Any) -> Callable[..., Any]:
        return lambda *_, **__: value

    return [
        type_with(__dlpack__=gives(None), __dlpack_device__=device),
        type_with(__dlpack__=gives(object()), __dlpack_device__=device),
        type_with(__dlpack__=_raises(BufferError), __dlpack_device__=device),
        type_with(__dlpack__=_raises(TypeError), __dlpack_device__=_raises(RuntimeError)),
        type_with(__dlpack__=gives(None), __dlpack_device__=gives((2, 0))),
        type_with(__dlpack__=gives(None), __dlpack_device__=gives((99, 0))),
        type_with(__dlpack__=gives(None), __dlpack_device__=gives((-1, 1 << 80))),
        type_with(__dlpack__=gives(None), __dlpack_device__=gives(None)),
        type_with(__dlpack__=gives(None), __dlpack_device__=gives("cpu")),
        type_with(__arrow_c_array__=gives((None, None))),
        type_with(__arrow_c_array__=gives(None)),
        type_with(__arrow_c_array__=gives((1, 2, 3))),
        type_with(__arrow_c_array__=_raises(ValueError)),
        type_with(__cuda_array_interface__={}),
        type_with(__cuda_array_interface__=None),
        type_with(
            __cuda_array_interface__={"typestr": "<f4", "shape": (1,), "data": (0, False)},
        ),
        type_with(__len__=gives(3)),
        lambda: Liar(3, ["a", 1, 2]),
        lambda: Liar(1 << 40, [1]),
        _Hostile,
    ]


def _wrong_partners() -> list[Callable[[], Any]]:
    made: list[Callable[[], Any]] = []
    if torch is not None:
        made += [
            lambda: torch.zeros(3),
            lambda: torch.zeros(3, dtype=torch.bool),
            lambda: torch.zeros(3, dtype=torch.int16),
            lambda: torch.zeros(3, dtype=torch.bfloat16),
            lambda: torch.zeros(3, 1, dtype=torch.int64),
            lambda: torch.tensor(3),
            lambda: torch.eye(3).to_sparse(),
            lambda: torch.zeros(3, dtype=torch.int64, device="meta"),
        ]
    if pyarrow is not None:
        made += [
            lambda: pyarrow.array([1, None], pyarrow.int64()),
            lambda: pyarrow.array([1.5]),
            lambda: pyarrow.array(["a"]),
            lambda: pyarrow.array([[1]]),
            lambda: pyarrow.array([1], pyarrow.uint64()),
            lambda: pyarrow.nulls(3),
            lambda: OnlyArrow(pyarrow.array([1, None], pyarrow.int64())),
            lambda: OnlyArrow(pyarrow.array([True])),
        ]
    return made


WRONG_OBJECTS: list[Callable[[], Any]] = [
    lambda: None,
    lambda: 3,
    lambda: 3.5,
    lambda: True,
    lambda: "012",
    lambda: b"12345678",
    lambda: bytearray(8),
    lambda: {},
    lambda: {1: 2},
    lambda: {1, 2},
    lambda: frozenset((1,)),
    lambda: (v for v in [1]),
    lambda: iter([1, 2]),
    lambda: map(int, []),
    lambda: [1.0],
    lambda: [math.nan],
    lambda: [None],
    lambda: ["0"],
    lambda: [True],
    lambda: [[0]],
    lambda: [1 << 63],
    lambda: [-(1 << 63) - 1],
    lambda: [1 << 70, "a"],
    lambda: [np.float64(1)],
    lambda: [np.bool_(True)],
    lambda: range(1 << 40),
    lambda: range(-(1 << 62), 1 << 62),
    lambda: object(),
    lambda: object,
    lambda: len,
    lambda: types,
    lambda: Ellipsis,
    lambda: NotImplemented,
    lambda: sys.stdin,
    lambda: 1j,
    lambda: Liar(3, [1, None, 2]),
    *_wrong_arrays(),
    *_wrong_speakers(),
    *_wrong_partners(),
]


def wrong(random: Random) -> Any:
    """Something that is no array of ids."""
    return random.choice(WRONG_OBJECTS)()


NO_INTEGERS: list[Any] = [None, 1.0, math.nan, "1", b"1", [], (1,), True, False, 1j, object(), {}]
NO_INTEGERS += [np.float32(1), np.bool_(True), np.array([1, 2]), Ellipsis, len]
HUGE = [1 << 63, 1 << 64, -(1 << 63) - 1, 1 << 200, -(1 << 200)]


def no_integer(random: Random) -> Any:
    return random.choice(NO_INTEGERS)


def not_from(random: Random, low: int, high: int) -> int:
    """An integer outside [low, high]."""
    near = [low - 1, high + 1, low - (1 << 40), high + (1 << 40)]
    return random.choice([v for v in near + HUGE if not low <= v <= high])
