from __future__ import annotations

import collections
import ctypes
from array import array
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
import torch

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import IdView, as_ids, as_int64

VALUES = [5, 0, -3, 7]


def values(view: IdView) -> list[int]:
    return Array._of_view(view).tolist()


class Dlpack:
    """An array of another library: DLPack and nothing else."""

    def __init__(self, inner, *, versions=True):
        self.inner = inner
        self.versions = versions

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("unexpected keyword argument")
        return self.inner.__dlpack__(**options)


class Arrow:
    """An array of another library: Arrow's PyCapsule interface and nothing else."""

    def __init__(self, inner):
        self.inner = inner

    def __arrow_c_array__(self, requested_schema=None):
        return self.inner.__arrow_c_array__(requested_schema)


class HasArray:
    """A column of a data frame, say: it gives a NumPy array when asked."""

    def __init__(self, inner):
        self.inner = inner

    def __array__(self, dtype=None, copy=None):
        return self.inner


def address_of_arrow(values: pa.Array) -> int:
    return values.buffers()[1].address + values.offset * values.type.bit_width // 8


@pytest.mark.parametrize("bits", [32, 64])
def test_memory_is_taken_where_it_lies(bits):
    code = {32: "i", 64: "q"}[bits]
    numbers = np.array(VALUES, dtype=f"int{bits}")
    tensor = torch.tensor(VALUES, dtype=getattr(torch, f"int{bits}"))
    python = array(code, VALUES)
    arrow = pa.array([9, *VALUES, 9], type=f"int{bits}")[1:5]
    c_array = ({32: ctypes.c_int32, 64: ctypes.c_int64}[bits] * 4)(*VALUES)
    sources = [
        (numbers, numbers.ctypes.data),
        (HasArray(numbers), numbers.ctypes.data),
        (Dlpack(numbers), numbers.ctypes.data),
        (Dlpack(tensor, versions=False), tensor.data_ptr()),
        (tensor, tensor.data_ptr()),
        (tensor[1:], tensor.data_ptr() + bits // 8),
        (python, python.buffer_info()[0]),
        (memoryview(python)[2:], python.buffer_info()[0] + bits // 4),
        (arrow, address_of_arrow(arrow)),
        (Arrow(arrow), address_of_arrow(arrow)),
        (c_array, ctypes.addressof(c_array)),
        (Array._of_view(as_ids(python, "x")), python.buffer_info()[0]),
    ]
    for source, address in sources:
        view = as_ids(source, "x")
        assert (view.address, view.bits) == (address, bits), source
        assert values(view) == VALUES[len(VALUES) - view.length :]


@pytest.mark.parametrize("format", ["i", "l", "q", "n"])
def test_native_buffer_formats_are_integers(format):
    size = {"i": 4}.get(format, 8)
    raw = b"".join(value.to_bytes(size, "little", signed=True) for value in VALUES)
    view = as_ids(memoryview(raw).cast(format), "x")
    assert (values(view), view.bits, view.readonly) == (VALUES, 8 * size, True)


@pytest.mark.parametrize(
    "sequence",
    [
        [5, 0, -3, 7],
        (5, 0, -3, 7),
        range(3, 11, 2),
        collections.deque([1, 2]),
        dict.fromkeys([4, 2]).values(),
        [np.int64(3), np.int32(4), torch.tensor(5)],
        [],
        (),
        range(0),
    ],
    ids=str,
)
def test_sequences_of_integers_become_int64(sequence):
    if isinstance(sequence, type({}.values())):
        sequence = {"a": 4, "b": 2}.values()
    view = as_ids(sequence, "x")
    assert values(view) == [int(item) for item in sequence]
    assert view.bits == 64


def test_a_read_only_source_is_known():
    numbers = np.array(VALUES)
    assert not as_ids(numbers, "x").readonly
    numbers.flags.writeable = False
    assert as_ids(numbers, "x").readonly
    assert as_ids(pa.array(VALUES), "x").readonly
    assert as_ids(memoryview(bytes(16)).cast("q"), "x").readonly
    assert not as_ids(torch.tensor(VALUES), "x").readonly
    # A legacy capsule cannot say.
    assert as_ids(Dlpack(torch.tensor(VALUES), versions=False), "x").readonly


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.arange(10)[::2],
        lambda: np.arange(20).reshape(10, 2)[:, 0],
        lambda: np.frombuffer(bytes(33), dtype=np.int32, offset=1),
        lambda: torch.arange(10)[::2],
        lambda: torch.arange(20).reshape(10, 2)[:, 0],
        lambda: memoryview(array("q", range(10)))[::2],
        lambda: np.arange(10)[::-1],
    ],
)
def test_arrays_that_are_not_contiguous_are_copied_with_a_warning(make):
    source = make()
    with pytest.warns(UserWarning, match=r"x: not contiguous, so .* bytes were copied") as caught:
        view = as_ids(source, "x")
    assert values(view) == list(map(int, source))
    assert caught[0].filename == __file__


def test_a_slice_that_is_contiguous_is_not_copied(recwarn):
    whole = np.arange(10)
    assert as_ids(whole[3:7], "x").address == whole.ctypes.data + 24
    assert as_ids(np.arange(3)[::3], "x").length == 1
    assert not recwarn.list


def test_other_libraries_arrays_are_not_copied_but_refused_when_strided():
    with pytest.raises(ValueError, match="x: expected a contiguous array, got a stride of 2"):
        as_ids(Dlpack(np.arange(10)[::2]), "x")


EXPECTED = "x: expected a one-dimensional array of int32 or int64 in CPU memory"


@pytest.mark.parametrize(
    ("source", "got"),
    [
        (np.zeros(3, "uint64"), "got uint64"),
        (np.zeros(3, "float32"), "got float32"),
        (np.array([1.0, float("nan")]), "got float64"),
        (np.zeros(3, "bool"), "got bool"),
        (np.zeros(3, "int16"), "got int16"),
        (np.zeros(3, "uint8"), "got uint8"),
        (np.zeros(3, ">i8"), "got >i8"),
        (np.ma.array([1, 2], mask=[0, 1]), "got a masked array"),
        (np.array(["a"]), "got <U1"),
        (torch.zeros(3), "got torch.float32"),
        (torch.zeros(3, requires_grad=True), "got torch.float32"),
        (torch.zeros(3, dtype=torch.bool), "got torch.bool"),
        (torch.zeros(3, dtype=torch.int16), "got torch.int16"),
        (torch.zeros(3, dtype=torch.int64).to_sparse(), "got a torch.sparse_coo tensor"),
        (array("d", [1.0]), "got array of format 'd'"),
        (array("H", [1]), "got array of format 'H'"),
        (array("Q", [1]), "got array of format 'Q'"),
        (b"abcdefgh", "got bytes of format 'B'"),
        (pa.array([1.0, 2.0]), "got Arrow data"),
        (pa.array(["a"]), "got Arrow data"),
        (pa.array([1], type="uint64"), "got Arrow data"),
        (pa.record_batch({"a": [1]}), "got Arrow data"),
        (Dlpack(np.zeros(3, "float32")), "got float32"),
        (Dlpack(np.zeros(3, "uint64")), "got uint64"),
        (Dlpack(np.zeros(3, "int8")), "got int8"),
        ("abc", "got str 'abc'"),
        ({1: 2}, "got dict"),
        ({1, 2}, "got set"),
        (None, "got NoneType None"),
        (3, "got int 3"),
        (object, "got type"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_other_types_are_refused(source, got):
    with pytest.raises(TypeError) as caught:
        as_ids(source, "x")
    assert str(caught.value).startswith(EXPECTED)
    assert got in str(caught.value)


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        (np.zeros((2, 3), "int64"), r"\(2, 3\)"),
        (np.zeros((), "int64"), r"\(\)"),
        (torch.zeros(2, 3, dtype=torch.int64), r"\(2, 3\)"),
        (torch.tensor(3), r"\(\)"),
        (memoryview(bytes(48)).cast("q", (2, 3)), r"\(2, 3\)"),
        (Dlpack(np.zeros((2, 3), "int64")), r"\(2, 3\)"),
    ],
)
def test_other_shapes_are_refused(source, shape):
    with pytest.raises(ValueError, match=f"x: expected a one-dimensional .* got shape {shape}"):
        as_ids(source, "x")


class OnGpu:
    def __dlpack_device__(self):
        return (2, 1)

    def __dlpack__(self, **options):
        raise AssertionError("nothing is to be exported for a wrong device")


class Numba:
    __cuda_array_interface__: ClassVar[dict[str, object]] = {}


@pytest.mark.parametrize(
    ("source", "device"),
    [
        (torch.zeros(3, dtype=torch.int64, device="meta"), "meta"),
        (OnGpu(), "cuda:1"),
        (Numba(), "a CUDA device"),
    ],
)
def test_other_devices_are_refused(source, device):
    with pytest.raises(ValueError, match=f"x: expected .* got one on {device}; .* first"):
        as_ids(source, "x")


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ([1, 2.0], r"x\[1\]: expected an integer, got float 2.0"),
        ([float("nan")], r"x\[0\]: expected an integer, got float nan"),
        ([1, True], r"x\[1\]: expected an integer, got bool True"),
        ([1, "2"], r"x\[1\]: expected an integer, got str '2'"),
        ([1, None], r"x\[1\]: expected an integer, got NoneType None"),
        ([[1, 2]], r"x\[0\]: expected an integer, got list \[1, 2\]"),
        ([np.float32(1)], r"x\[0\]: expected an integer, got float32"),
        ([np.bool_(True)], r"x\[0\]: expected an integer, got bool"),
    ],
)
def test_sequences_of_other_things_name_the_place(sequence, message):
    with pytest.raises(TypeError, match=message):
        as_ids(sequence, "x")


def test_integers_beyond_64_bits_name_the_place():
    with pytest.raises(
        IndexError, match=rf"x\[1\]: expected an integer of 64 bits, got int {2**63}"
    ):
        as_ids([0, 2**63], "x")


def test_what_never_ends_is_refused():
    with pytest.raises(TypeError, match=r"got generator.*; list\(...\) makes a sequence"):
        as_ids((i for i in range(3)), "x")
    with pytest.raises(ValueError, match="x: expected an array for so many values"):
        as_ids(range(10**12), "x")

    class Endless:
        def __len__(self):
            return 3

        def __iter__(self):
            while True:
                yield 1

    assert values(as_ids(Endless(), "x")) == [1, 1, 1]


def test_nulls_are_refused():
    with pytest.raises(ValueError, match="x: expected no nulls, got 1"):
        as_ids(pa.array([1, None, 3]), "x")


def test_broken_capsules_are_refused():
    class Broken:
        def __init__(self, capsule):
            self.capsule = capsule

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self):
            return self.capsule

    used = np.arange(3).__dlpack__()
    torch.utils.dlpack.from_dlpack(used)
    for capsule in (None, 3, used, np.arange(3).__array_struct__):
        with pytest.raises(TypeError, match=r"x: expected .* got Broken"):
            as_ids(Broken(capsule), "x")

    class BrokenArrow:
        def __arrow_c_array__(self, requested_schema=None):
            return used, used

    with pytest.raises(TypeError, match=r"x: expected .* got Arrow data"):
        as_ids(BrokenArrow(), "x")


def test_a_capsule_that_is_looked_at_stays_whole():
    numbers = np.arange(5)
    view = as_ids(Dlpack(numbers), "x")
    del numbers
    assert values(view) == [0, 1, 2, 3, 4]
    assert "dltensor" in repr(view.owner)


def test_widening_keeps_values_and_leaves_wide_ones_alone():
    wide = as_ids(np.arange(3), "x")
    assert as_int64(wide) is wide
    widened = as_int64(as_ids(np.array(VALUES, "int32"), "x"))
    assert (values(widened), widened.bits) == (VALUES, 64)


@pytest.mark.parametrize("bits", [32, 64])
def test_a_part_of_a_view_is_taken_as_it_is(bits):
    whole = as_ids(np.array(VALUES, f"int{bits}"), "seeds")
    for start in range(5):
        for end in range(start, 5):
            part = whole.part(start, end)
            assert values(part) == VALUES[start:end]
            assert as_ids(part, "seeds") is part
            assert part.owner is whole.owner


def test_who_allocated_a_view_is_known_of_its_parts_too():
    """Of seeds on a GPU the driver is not asked then."""
    assert as_ids(torch.arange(4), "seeds").part(1, 3).known
    assert not as_ids(np.array(VALUES), "seeds").part(1, 3).known
