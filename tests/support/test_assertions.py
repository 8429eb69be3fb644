"""The assertions of results fail where results differ, and say where."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal, content, fields

GRAPH = pgs.Graph.from_coo([0, 1, 2, 3, 0], [1, 2, 3, 0, 2], edge_data={"w": np.arange(5.0)})
BATCH = pgs.PGSampler([2, 2], seed=1).sample(GRAPH, [0, 2], epoch=0, batch=0)


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        (
            np.arange(3),
            np.arange(3, dtype="int32"),
            r"expected int32\[3\], got int64\[3\]",
        ),
        (np.arange(3), np.arange(4), r"here: result: expected int64\[4\], got int64\[3\]"),
        ([1, {"a": np.ones(2)}], [1, {"b": np.ones(2)}], r"here: expected \['\[0\]', \"\[1\]\['b'"),
        ({"a": [0, 1, 2]}, {"a": [0, 1, 3]}, r"here: \['a'\]\[2\]: expected 3, got 2"),
        (np.array([0, 1, 5]), np.array([0, 1, 2]), r"1 of 3 differ, the first at \(2,\)"),
        (np.array([0.0]), np.array([-0.0]), "1 of 1 differ"),
        (np.array([True, False]), np.array([True, True]), "1 of 2 differ"),
        (None, 1, r"expected \[''\], got \[\]"),
    ],
)
def test_a_difference_is_named(got: Any, expected: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_equal(got, expected, "here")
    assert content(got) != content(expected)
    assert_equal(copy.deepcopy(got), got)


def test_the_bits_of_nans_are_compared() -> None:
    bits = np.array([0x7FC00000, 0x7FC00001], np.uint32)
    assert_equal(bits.view(np.float32), bits.view(np.float32).copy())
    with pytest.raises(AssertionError, match="differ"):
        assert_equal(bits[:1].view(np.float32), bits[1:].view(np.float32))


def test_results_of_all_libraries_have_the_same_content() -> None:
    torch = pytest.importorskip("torch")
    for other in (BATCH.numpy(), BATCH.torch()):
        assert_equal(other, BATCH)
    other = copy.deepcopy(BATCH.torch())
    other.blocks[0].indices[0] += 1
    with pytest.raises(AssertionError, match=r"\.blocks\[0\]\.indices: 1 of \d+ differ"):
        assert_equal(other, BATCH)
    assert isinstance(other.input_nodes, torch.Tensor)


def test_every_array_of_a_batch_is_compared() -> None:
    sampler = pgs.PGSampler([2, 2], seed=1, prob="w", edge_weights="ht")
    names = dict(fields(sampler.sample(GRAPH, [0, 2], epoch=0, batch=0)))
    arrays = ("indptr", "indices", "edge_ids", "edge_weights", "src_nodes", "dst_nodes")
    for name in (*(f"blocks[{i}].{array}" for i in (0, 1) for array in arrays), "input_nodes"):
        assert isinstance(names[f".{name}"], np.ndarray), name
