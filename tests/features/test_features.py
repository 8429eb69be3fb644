"""Features: rows by their ids, byte for byte, whoever made the array, the ids and the room."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from array import array
from typing import Any

import numpy as np
import pytest
import torch
from engine_usage import held
from feature_bytes import IDS, ROWS, Exported, noise, raw

import pygsampler as pgs
from pygsampler._arrays.dtypes import KINDS

# ---- what they are made of ----


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("width", [(), (1,), (4,), (2, 3), (5, 1, 7)], ids=str)
def test_every_dtype_is_copied_byte_for_byte(dtype: str, width: tuple[int, ...]) -> None:
    values = noise(dtype, (ROWS, *width))
    made = pgs.Features.from_tensor(values)
    assert (made.dtype, made.shape, len(made)) == (dtype, (ROWS, *width), ROWS)
    assert made.nbytes == raw(values).size
    found = made[IDS]
    assert isinstance(found, pgs.Array)
    assert (found.dtype, found.shape) == (dtype, (len(IDS), *width))
    assert (raw(found) == raw(values)[IDS]).all()
    # A tensor for ids that are one, where torch has the dtype.
    if hasattr(torch, dtype):
        tensor = made[torch.tensor(IDS)]
        assert (tensor.dtype, tuple(tensor.shape)) == (getattr(torch, dtype), found.shape)
        assert (raw(tensor) == raw(values)[IDS]).all()


@pytest.mark.parametrize("shape", [(ROWS, 0), (ROWS, 2, 0), (0, 4), (0,), (0, 0)], ids=str)
def test_nothing_to_copy(shape: tuple[int, ...]) -> None:
    made = pgs.Features.from_tensor(np.zeros(shape, "int16"))
    assert (made.shape, made.nbytes) == (shape, 0)
    ids = [0, 8, 8] if shape[0] else []
    for found in (made[ids], made.read_async(ids).wait(), made[torch.tensor(ids).long()]):
        assert tuple(found.shape) == (len(ids), *shape[1:])
    out = np.empty((len(ids), *shape[1:]), "int16")
    assert made.read(ids, out) is out
    for wrong in (shape[0], -1):
        with pytest.raises(IndexError, match=rf"ids\[{len(ids)}\]: .* \[0, {shape[0]}\), got"):
            made[[*ids, wrong]]


def sources() -> dict[str, Any]:
    values = np.arange(ROWS * 4, dtype=np.int32).reshape(ROWS, 4)
    readonly = values.copy()
    readonly.flags.writeable = False
    return {
        "numpy": values,
        "torch": torch.from_numpy(values.copy()),
        "list": values.tolist(),
        "array": pgs.Features.from_tensor(values)[range(ROWS)],
        "dlpack": Exported(torch.from_numpy(values.copy())),
        "memoryview": memoryview(values.tobytes()).cast("i", (ROWS, 4)),
        "fortran": np.asfortranarray(values),
        "every second": np.repeat(values, 2, axis=0)[::2],
        "backwards": values[::-1].copy()[::-1],
        "transposed": torch.from_numpy(values.T.copy()).T,
        "columns": torch.from_numpy(np.tile(values, 2))[:, 4:],
        "read-only": readonly,
        "big-endian": values.astype(">i4"),
        "features": pgs.Features.from_tensor(values),
    }


@pytest.mark.parametrize("name", sources())
def test_every_source(name: str) -> None:
    expected = np.arange(ROWS * 4).reshape(ROWS, 4)[IDS].tolist()
    made = pgs.Features.from_tensor(sources()[name])
    gc.collect()
    assert made[IDS].tolist() == expected
    assert made[torch.tensor(IDS)].tolist() == expected


def test_they_are_used_where_they_lie() -> None:
    values, tensor = np.zeros((ROWS, 2)), torch.zeros(ROWS, 2)
    of_numpy, of_torch = map(pgs.Features.from_tensor, (values, tensor))
    values[3], tensor[3] = 5, 6
    assert of_numpy[[3]].tolist() == [[5, 5]]
    assert of_torch[[3]].tolist() == [[6, 6]]
    # Torch puts it elsewhere.
    tensor.share_memory_()
    tensor[3] = 7
    assert of_torch[[3]].tolist() == [[7, 7]]
    grown = torch.zeros(ROWS, 2)
    of_grown = pgs.Features.from_tensor(grown)
    grown.resize_(1 << 16, 2)
    grown[3] = 8
    assert (of_grown[[3]].tolist(), of_grown.shape) == ([[8, 8]], (ROWS, 2))
    assert pgs.Features.from_tensor(of_torch) is of_torch


def test_what_is_read_is_a_copy(points, features) -> None:
    found = [features[[1]].numpy(), features[torch.tensor([1])], features.read_async([1]).wait()]
    for rows in found:
        np.asarray(rows)[:] = -1
    assert points[1].tolist() == [3, 4, 5]
    expected = np.asarray(found[0]).tolist()
    features.close()
    del features
    gc.collect()
    assert [np.asarray(rows).tolist() for rows in found] == [expected] * 3


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        (np.float32(1), ValueError, "^features: expected an array of one dimension or more, got a"),
        (torch.tensor(1), ValueError, "one dimension or more, got a number"),
        (5, ValueError, "one dimension or more"),
        (None, TypeError, "^features: expected an array of bool, integers or floats .* None"),
        ("abc", TypeError, "^features: expected an array"),
        (np.zeros(3, "complex64"), TypeError, "complex64"),
        (np.array(["a"]), TypeError, "dtype <U1"),
        (torch.zeros(3, dtype=torch.complex64), TypeError, "complex64"),
        (torch.eye(3).to_sparse(), TypeError, "sparse"),
        ([[1], [2, 3]], TypeError, "^features: expected an array"),
    ],
    ids=str,
)
def test_what_is_no_array(values: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pgs.Features.from_tensor(values)


def test_there_is_no_constructor() -> None:
    with pytest.raises(TypeError, match="Features: use from_tensor or open"):
        pgs.Features()


# ---- ids ----


@pytest.mark.parametrize(
    "ids",
    [
        IDS,
        tuple(IDS),
        np.array(IDS),
        np.array(IDS, np.int32),
        torch.tensor(IDS),
        torch.tensor(IDS, dtype=torch.int32),
        array("i", IDS),
        array("q", IDS),
        Exported(torch.tensor(IDS)),
        pgs.Features.from_tensor(np.array(IDS))[range(5)],
    ],
    ids=lambda ids: f"{type(ids).__name__} {getattr(ids, 'dtype', '')}",
)
def test_kinds_of_ids(points, features, ids: Any) -> None:
    is_tensor = isinstance(ids, torch.Tensor)
    for found in (features[ids], features.read(ids), features.read_async(ids).wait()):
        assert isinstance(found, torch.Tensor if is_tensor else pgs.Array)
        assert found.tolist() == points[IDS].tolist()


def test_ranges_repeats_and_nothing(points, features) -> None:
    assert features[range(8, 2, -2)].tolist() == points[8:2:-2].tolist()
    assert features[[4] * 1000].tolist() == points[[4] * 1000].tolist()
    for ids in ([], range(0), np.array([], np.int32), torch.tensor([], dtype=torch.int64)):
        assert tuple(features[ids].shape) == (0, 3)
        assert tuple(features.read_async(ids).wait().shape) == (0, 3)


def test_ids_that_are_not_contiguous(points, features) -> None:
    wide = np.repeat(IDS, 2)[::2]
    for ids in (wide, torch.from_numpy(np.repeat(IDS, 2))[::2]):
        with pytest.warns(UserWarning, match="ids: "):
            assert features[ids].tolist() == points[IDS].tolist()


def test_a_process_that_has_not_sampled_reads_into_a_callers_room(run_python) -> None:
    """The job has a memory of no bytes then, where no pool has one to give."""
    script = """
        import numpy
        import pygsampler as pgs
        features = pgs.Features.from_tensor(numpy.arange(6).reshape(3, 2))
        pgs.engine.trim()
        out = numpy.empty((1, 2), int)
        assert features.read([1], out) is out and out.tolist() == [[2, 3]]
        pgs.engine.trim()
        assert features[[]].shape == features.read_async([]).wait().shape == (0, 2)
        print(features[[2]].tolist())
    """
    assert run_python(script) == "[[4, 5]]\n"


@pytest.mark.parametrize(
    ("ids", "place", "found"),
    [
        ([9], 0, 9),
        ([0, 8, -1], 2, -1),
        (np.array([0, 1 << 31]), 1, 1 << 31),
        (np.array([0, -(1 << 31)], np.int32), 1, -(1 << 31)),
        (torch.tensor([1, (1 << 63) - 1, 9]), 1, (1 << 63) - 1),
        ([*range(9)] * 20_000 + [10] + [11] * 100_000, 180_000, 10),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_first_id_that_is_no_row_is_named(features, ids: Any, place: int, found: int) -> None:
    text = rf"^ids\[{place}\]: expected an integer in \[0, 9\), got {found}$"
    before = held()
    reading = features.read_async(ids)
    for read in (lambda: features[ids], reading.wait, reading.wait):
        with pytest.raises(IndexError, match=text):
            read()
    assert reading.done()
    assert "failed: ids[" in repr(reading)
    out = np.full((len(ids), 3), 7, np.float32)
    with pytest.raises(IndexError, match=text):
        features.read(ids, out)
    del reading
    assert held() == before


@pytest.mark.parametrize(
    ("ids", "error", "text"),
    [
        (3, TypeError, "^ids: expected a one-dimensional array of int32 or int64 .* got int 3"),
        (slice(2), TypeError, "^ids: expected"),
        (None, TypeError, "^ids: expected"),
        ("ab", TypeError, "^ids: expected"),
        ([0.5], TypeError, r"^ids\[0\]: expected an integer, got float 0.5"),
        ([True], TypeError, r"^ids\[0\]: expected an integer"),
        (np.array([True]), TypeError, "^ids: .*bool"),
        (torch.tensor([True]), TypeError, r"mask.nonzero\(\)"),
        (np.array([1], np.uint32), TypeError, "^ids: .*uint32"),
        (torch.tensor([1], dtype=torch.int16), TypeError, "^ids: .*int16"),
        (np.array([1.0]), TypeError, "^ids: .*float64"),
        (np.zeros((2, 2), int), ValueError, r"^ids: .*\(2, 2\)"),
        (torch.tensor(1), ValueError, r"^ids: .*\(\)"),
        ([1 << 64], IndexError, r"^ids\[0\]: expected an integer of 64 bits"),
    ],
    ids=str,
)
def test_what_is_no_id(features, ids: Any, error: type[Exception], text: str) -> None:
    for use in (features.read, features.read_async, lambda ids: features.update(0, ids)):
        with pytest.raises(error, match=text):
            use(ids)


# ---- the caller's room ----


def test_rows_are_written_to_what_is_given(points, features) -> None:
    room = features[range(len(IDS))]
    for out in (
        np.empty((len(IDS), 3), np.float32),
        torch.empty(len(IDS), 3),
        torch.empty(3, len(IDS) + 1).T.contiguous()[1:],
        room,
        np.empty((2, len(IDS), 3), np.float32)[1],
    ):
        for ids in (IDS, torch.tensor(IDS)):
            np.asarray(out)[:] = -1
            assert features.read(ids, out) is out
            assert np.asarray(out).tolist() == points[IDS].tolist()
    around = np.full((len(IDS) + 2, 3), -1, np.float32)
    features.read(IDS, out=around[1:-1])
    assert (around[[0, -1]] == -1).all() and (around[1:-1] == points[IDS]).all()
    none = np.empty((0, 3), np.float32)
    assert features.read([], none) is none


def readonly_rows() -> np.ndarray[Any, Any]:
    rows = np.empty((5, 3), np.float32)
    rows.flags.writeable = False
    return rows


@pytest.mark.parametrize(
    ("out", "got"),
    [
        (np.empty((4, 3), np.float32), r"float32 of shape \(4, 3\)"),
        (np.empty((5, 4), np.float32), r"float32 of shape \(5, 4\)"),
        (np.empty(15, np.float32), r"float32 of shape \(15,\)"),
        (np.empty((5, 3)), r"float64 of shape \(5, 3\)"),
        (torch.empty(5, 3, dtype=torch.int32), r"int32 of shape \(5, 3\)"),
        (readonly_rows(), "a read-only one"),
        (np.empty((10, 3), np.float32)[::2], "ndarray"),
        (np.empty((3, 5), np.float32).T, "ndarray"),
        (torch.empty(3, 5).T, "Tensor"),
        ([[0.0] * 3] * 5, "list"),
        (bytearray(60), "bytearray"),
        (7, "int 7"),
    ],
)
def test_room_that_does_not_fit(features, out: Any, got: str) -> None:
    expected = r"^out: expected a contiguous float32 array of shape \(5, 3\), got "
    kept = copy.deepcopy(out)
    with pytest.raises(ValueError, match=expected + got):
        features.read(IDS, out)
    if isinstance(out, (np.ndarray, torch.Tensor)):
        assert np.asarray(out).tobytes() == np.asarray(kept).tobytes()


# ---- the rest ----


def test_close_lets_go(features) -> None:
    values = np.ones((3, 2))
    owner = pgs.Features.from_tensor(values)
    rows = owner[[0, 1]]
    owner.close()
    owner.close()
    assert repr(owner) == "Features(closed)"
    assert rows.tolist() == [[1, 1], [1, 1]]
    names = ("shape", "dtype", "device", "pinned", "nbytes")
    uses = {name: lambda name=name: getattr(owner, name) for name in names} | {
        "len": lambda: len(owner),
        "read": lambda: owner.read([0]),
        "item": lambda: owner[[0]],
        "out": lambda: owner.read([0], np.ones((1, 2))),
        "read_async": lambda: owner.read_async([0]),
        "update": lambda: owner.update(0, [0]),
        "to": lambda: owner.to("cpu"),
        "pin": lambda: owner.pin(),
        "stats": owner.stats,
        "pickle": lambda: pickle.dumps(owner),
    }
    for name, use in uses.items():
        with pytest.raises(
            pgs.errors.ClosedError, match="features: expected open ones, got ones that"
        ):
            use()
            pytest.fail(name)
    assert features[[0]].tolist() == [[0, 1, 2]]


def test_the_array_goes_with_them() -> None:
    for end in (lambda features: features.close(), lambda features: None):
        values = np.zeros((3, 2))
        alive = weakref.ref(values)
        features = pgs.Features.from_tensor(values)
        del values
        gc.collect()
        assert alive() is not None
        end(features)
        del features
        gc.collect()
        assert alive() is None


def test_stats_count_calls_rows_and_bytes(features) -> None:
    assert features.stats() == {"reads": 0, "rows": 0, "bytes": {"cpu": 0}}
    features[IDS]
    features.read(range(2), np.empty((2, 3), np.float32))
    features.read_async(torch.tensor([1])).wait()
    features[[]]
    assert features.stats() == {"reads": 4, "rows": 8, "bytes": {"cpu": 8 * 12}}


def test_what_they_say_of_themselves(features) -> None:
    assert repr(features) == "Features(shape=(9, 3), dtype=float32, device=cpu)"
    assert (features.device, features.pinned, features.nbytes) == ("cpu", False, 108)
    assert features.to("cpu") is features is features.to(torch.device("cpu"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU, which is no error")
def test_a_device_that_is_not_there(features) -> None:
    for move in (features.to, features.pin):
        with pytest.raises(
            pgs.errors.CudaError, match="device: expected the CUDA device cuda:0, found"
        ):
            move("cuda")
    with pytest.raises(ValueError, match="device: expected a CUDA device to pin for, got 'cpu'"):
        features.pin("cpu")
    assert features[[0]].tolist() == [[0, 1, 2]]
