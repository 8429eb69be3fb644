"""Features that are written to, and those that cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from feature_bytes import ROWS, noise, raw

import pygsampler as pgs
from pygsampler._arrays.dtypes import KINDS


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_update_writes_where_they_lie(kind: str) -> None:
    values = np.zeros((ROWS, 2), np.float32)
    source: Any = values if kind == "numpy" else torch.from_numpy(values)
    features = pgs.Features.from_tensor(source)
    features.update([[1, 2], [3, 4]], [8, 0])
    features.update(torch.tensor([[5.0, 6.0]]), torch.tensor([4], dtype=torch.int32))
    features.update(np.array([7, 8]), np.array([1, 2]))
    features.update(9, range(5, 7))
    features.update(np.zeros((0, 2)), [])
    expected = [[3, 4], [7, 8], [7, 8], [0, 0], [5, 6], [9, 9], [9, 9], [0, 0], [1, 2]]
    assert values.tolist() == features[range(ROWS)].tolist() == expected
    features.update([[1, 1], [2, 2], [2, 2]], [3, 3, 3])
    assert values[3].tolist() in ([1, 1], [2, 2])


@pytest.mark.parametrize("dtype", KINDS)
def test_update_of_every_dtype(dtype: str) -> None:
    values = noise(dtype, (ROWS, 3))
    expected = raw(values).copy()
    if dtype != "bfloat16":
        features = pgs.Features.from_tensor(values.copy())
        features.update(values[[4, 5]], [0, 1])
        expected[[0, 1]] = expected[[4, 5]]
        assert (raw(features[range(ROWS)]) == expected).all()
    if hasattr(torch, dtype):
        tensor = values if dtype == "bfloat16" else torch.from_numpy(values.copy())
        expected = raw(tensor).copy()
        features = pgs.Features.from_tensor(tensor)
        features.update(tensor[4:6].clone(), [0, 1])
        expected[[0, 1]] = expected[[4, 5]]
        assert (raw(tensor) == expected).all()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_update_that_is_refused_changes_nothing(kind: str) -> None:
    values = np.arange(ROWS * 2.0).reshape(ROWS, 2)
    features = pgs.Features.from_tensor(values if kind == "numpy" else torch.from_numpy(values))
    for new, ids, error, text in (
        (1, [0, 9], IndexError, r"^ids\[1\]: expected an integer in \[0, 9\), got 9"),
        (1, torch.tensor([-1]), IndexError, r"^ids\[0\]: .* got -1"),
        (np.ones((3, 2)), [0, 1], ValueError, r"^values: expected shape \(2, 2\) or that of one"),
        (torch.ones(2, 3), [0, 1], ValueError, r"^values: .* got \(2, 3\)"),
        (np.ones((1, 2, 2)), [0, 1], ValueError, r"^values: .* got \(1, 2, 2\)"),
        ("a", [0], (TypeError, ValueError), "."),
    ):
        with pytest.raises(error, match=text):
            features.update(new, ids)
    assert values.tolist() == np.arange(ROWS * 2.0).reshape(ROWS, 2).tolist()


def test_read_only_ones_are_not_written_to(points, path) -> None:
    pgs.Graph.from_csc([0] * (ROWS + 1), [], node_data={"x": points}).save(path)
    points.flags.writeable = False
    for features in (pgs.Features.from_tensor(points), pgs.Features.open(path, "x")):
        with pytest.raises(ValueError, match=r"update: .* got read-only ones"):
            features.update(0, [0])
        assert features[[1]].tolist() == [[3, 4, 5]]


def test_without_torch_numpy_writes(run_python) -> None:
    script = """
        import sys
        import numpy
        import pygsampler as pgs
        values = numpy.zeros((3, 2), "uint16")
        features = pgs.Features.from_tensor(values)
        features.update([[1, 65535]], [2])
        assert values[2].tolist() == features[[2]].tolist()[0] == [1, 65535]
        for new, ids, error in (([1, 2, 3], [0], ValueError), (1, [3], IndexError)):
            try:
                features.update(new, ids)
            except error as caught:
                print(caught)
        assert "torch" not in sys.modules
    """
    assert run_python(script) == (
        "values: expected shape (1, 2) or that of one row, got (3,)\n"
        "ids[0]: expected an integer in [0, 3), got 3\n"
    )
