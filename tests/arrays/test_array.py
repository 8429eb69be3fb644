from __future__ import annotations

from array import array

import numpy as np
import pyarrow as pa
import pytest
import torch
from graphs import circulant

import pygsampler as pgs
from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import _from_dlpack, as_ids

NUMPY2 = int(np.__version__.split(".")[0]) >= 2


def of(source) -> Array:
    return Array._of_view(as_ids(source, "x"))


@pytest.fixture(params=["int32", "int64"])
def dtype(request) -> str:
    return request.param


def in_the_engines_memory(dtype: str) -> Array:
    graph = circulant(50, 5, int(dtype[3:]))
    return pgs.PGSampler([3], seed=0).sample(graph, range(50)).blocks[0].indices


def in_a_callers_memory(dtype: str) -> Array:
    return of(np.arange(10, dtype=dtype))


def in_read_only_memory(dtype: str) -> Array:
    values = np.arange(10, dtype=dtype)
    values.flags.writeable = False
    return of(values)


@pytest.fixture
def engines(dtype) -> Array:
    return in_the_engines_memory(dtype)


@pytest.fixture
def callers(dtype) -> Array:
    return in_a_callers_memory(dtype)


@pytest.fixture
def readonly(dtype) -> Array:
    return in_read_only_memory(dtype)


@pytest.fixture(params=[in_the_engines_memory, in_a_callers_memory, in_read_only_memory])
def any_array(request, dtype) -> Array:
    return request.param(dtype)


def test_it_says_what_it_is(any_array, dtype):
    assert any_array.dtype == dtype == np.dtype(dtype)
    assert any_array.shape == (len(any_array),)
    assert any_array.device == "cpu"
    assert any_array.nbytes == len(any_array) * np.dtype(dtype).itemsize
    assert getattr(torch, any_array.dtype) is any_array.torch().dtype


def test_values_are_the_same_everywhere(any_array, dtype):
    values = any_array.tolist()
    assert all(type(value) is int for value in values)
    assert list(any_array) == values
    assert [any_array[i] for i in range(len(any_array))] == values
    assert any_array.numpy().tolist() == values
    assert any_array.torch().tolist() == values
    assert np.asarray(any_array).tolist() == values
    assert np.array(any_array).dtype == dtype
    assert pa.array(any_array).to_pylist() == values
    assert pa.array(any_array).type == dtype
    assert array("q", any_array).tolist() == values


def test_numpy_shares_the_memory(any_array):
    for view in (any_array.numpy(), np.asarray(any_array), np.array(any_array, copy=False)):
        assert view.ctypes.data == any_array._address
        assert view.flags.writeable is not any_array.readonly
    assert np.array(any_array, copy=True).ctypes.data != any_array._address
    if not any_array.readonly:
        assert np.from_dlpack(any_array).ctypes.data == any_array._address


def test_array_protocol_converts_and_refuses(callers, dtype):
    assert callers.__array__().ctypes.data == callers._address
    assert callers.__array__(dtype).ctypes.data == callers._address
    assert callers.__array__("float32").dtype == "float32"
    assert callers.__array__(copy=True).ctypes.data != callers._address
    with pytest.raises(ValueError, match=f"Array: expected dtype {dtype} without a copy, got int8"):
        callers.__array__("int8", copy=False)


def test_torch_shares_memory_that_may_be_written(engines, callers):
    for values in (engines, callers):
        tensor = values.torch()
        assert tensor.data_ptr() == values._address
        tensor[0] = 7
        assert values[0] == 7
        assert torch.from_dlpack(values).data_ptr() == values._address


def test_torch_copies_what_must_not_be_written(readonly):
    tensor = readonly.torch()
    assert tensor.data_ptr() != readonly._address
    tensor[0] = 7
    assert readonly[0] == 0


def test_arrow_shares_the_memory(any_array):
    converted = pa.array(any_array)
    assert converted.buffers()[1].address == any_array._address
    assert converted.null_count == 0
    converted.validate(full=True)


def test_legacy_and_versioned_capsules(callers, readonly):
    assert '"dltensor"' in repr(callers.__dlpack__())
    assert '"dltensor"' in repr(callers.__dlpack__(max_version=(0, 8)))
    assert '"dltensor_versioned"' in repr(callers.__dlpack__(max_version=(1, 0)))
    assert '"dltensor_versioned"' in repr(callers.__dlpack__(max_version=(2, 0), copy=True))
    assert callers.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match=r"expected max_version .1, 0. or copy=True for a read-"):
        readonly.__dlpack__()
    assert '"dltensor"' in repr(readonly.__dlpack__(copy=True))
    for values in (callers, readonly):
        view = _from_dlpack(values, "x")
        assert (view.address, view.length) == (values._address, len(values))
        assert view.readonly is values.readonly
        assert _from_dlpack(Copied(values), "x").address != values._address


class Copied:
    def __init__(self, inner):
        self.inner = inner

    def __dlpack_device__(self):
        return self.inner.__dlpack_device__()

    def __dlpack__(self, **options):
        return self.inner.__dlpack__(max_version=(1, 0), copy=True)


@pytest.mark.skipif(not NUMPY2, reason="NumPy 1 takes legacy capsules only")
def test_numpy_sees_the_read_only_flag(callers, readonly):
    assert np.from_dlpack(callers).flags.writeable
    assert not np.from_dlpack(readonly).flags.writeable
    assert np.from_dlpack(readonly).ctypes.data == readonly._address


def test_dlpack_arguments_are_checked(callers):
    assert callers.__dlpack__(stream=None, dl_device=(1, 0), copy=False) is not None
    with pytest.raises(BufferError, match="stream: expected None on the CPU, got int 3"):
        callers.__dlpack__(stream=3)
    with pytest.raises(BufferError, match=r"dl_device: expected .1, 0. .the CPU., got .2, 0."):
        callers.__dlpack__(dl_device=(2, 0))


def test_indices_and_slices(any_array):
    values = any_array.tolist()
    for i in (0, 3, -1, -len(values), np.int64(2)):
        assert any_array[i] == values[i]
    for place in (len(values), -len(values) - 1, 10**30):
        with pytest.raises(IndexError, match="Array: expected an index below"):
            any_array[place]
    for part in (slice(None), slice(2, 5), slice(-3, None), slice(4, 2), slice(0, 10**9)):
        view = any_array[part]
        assert view.tolist() == values[part]
        assert view.readonly is any_array.readonly
    assert any_array[2:]._address == any_array._address + 2 * any_array.nbytes // len(values)
    with pytest.raises(ValueError, match="Array: expected a slice of step 1, got 2"):
        any_array[::2]
    for index in (1.0, "1", None, (1, 2)):
        with pytest.raises(TypeError, match="Array: expected an integer or a slice as index"):
            any_array[index]


def test_empty_arrays_go_everywhere(dtype):
    empty = of(np.zeros(0, dtype))
    slices = of(np.zeros(3, dtype))[3:]
    graph = circulant(5, 2, int(dtype[3:]))
    batch = pgs.PGSampler([2], seed=0).sample(graph, [])
    null = Array._from_address(0, 0, int(dtype[3:]), None)
    for values in (empty, slices, null, batch.input_nodes, batch.blocks[0].edge_ids):
        assert len(values) == 0
        assert values.tolist() == list(values) == []
        assert values.numpy().shape == values.torch().shape == (0,)
        assert np.from_dlpack(values).shape == torch.from_dlpack(values).shape == (0,)
        assert pa.array(values).to_pylist() == []
        assert values.numpy().dtype == dtype
        assert repr(values) == f"Array([], length=0, dtype={dtype})"


def test_repr_shows_both_ends(dtype):
    assert repr(of(np.arange(3, dtype=dtype))) == f"Array([0, 1, 2], length=3, dtype={dtype})"
    assert repr(of(np.arange(4, dtype=dtype))) == f"Array([0, 1, 2, 3], length=4, dtype={dtype})"
    long = of(np.arange(1000, dtype=dtype))
    assert repr(long) == f"Array([0, 1, 2, ..., 997, 998, 999], length=1000, dtype={dtype})"
    frozen = np.arange(1, dtype=dtype)
    frozen.flags.writeable = False
    assert repr(of(frozen)) == f"Array([0], length=1, dtype={dtype}, read-only)"


def test_it_is_made_by_the_package_only():
    with pytest.raises(TypeError, match="Array: created by pygsampler only"):
        Array()


def test_missing_libraries_are_named(run_python):
    script = """
        import sys
        for name in ("numpy", "torch", "pyarrow"):
            sys.modules[name] = None
        import pygsampler as pgs
        batch = pgs.PGSampler([2], seed=0).sample(pgs.Graph.from_csc([0, 2], [0, 0]), [0])
        for convert in (batch.numpy, batch.torch, batch.arrow):
            try:
                convert()
            except ImportError as error:
                print(error)
    """
    assert run_python(script).splitlines() == [
        "Array.numpy: expected NumPy, found none; pip install numpy",
        "Array.torch: expected PyTorch, found none; pip install torch",
        "MiniBatch.arrow: expected pyarrow, found none; pip install pyarrow",
    ]


def test_arrays_compare_value_by_value() -> None:
    values = pgs.Graph.from_coo([0, 1, 1], [1, 0, 0]).indices
    assert (values == values).tolist() == [True] * 3
    assert (values == [1, 1, 7]).tolist() == [True, True, False]
    assert (values != np.array([1, 0, 0])).tolist() == [False, True, False]
    assert (np.array([1, 1, 0]) == values).all()
    assert (values == torch.tensor([1, 1, 0])).all()
    assert (values == 1).tolist() == [True, True, False]
    assert not (values == None).any()  # noqa: E711
    with pytest.raises(ValueError, match="truth value of an array"):
        bool(values == values)
    # Sets and dicts go by identity.
    other = values[:]
    assert {values: 1}[values] == 1
    assert len({values, other}) == 2
    rows = pgs.Graph.from_coo([0], [1], edge_data={"w": [[1.0, 2.0]]}).edata["w"]
    assert (rows == [[1, 3]]).tolist() == [[True, False]]
