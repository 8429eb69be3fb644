"""Rows of values, their bytes, and an engine that has no time for reading them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from graphs import circulant

import pygsampler as pgs
from pygsampler._arrays.dtypes import KINDS

ROWS = 9
IDS = [3, 0, 8, 3, 7]


def points() -> np.ndarray[Any, Any]:
    """Row i is [3 i, 3 i + 1, 3 i + 2]."""
    return np.arange(ROWS * 3, dtype=np.float32).reshape(ROWS, 3)


def raw(values: Any) -> np.ndarray[Any, Any]:
    """The bytes of an array of ours or of torch's, a row each."""
    if isinstance(values, pgs.Array):
        values = values.torch() if values.dtype == "bfloat16" else values.numpy()
    if isinstance(values, torch.Tensor):
        bits = getattr(torch, f"int{8 * values.element_size()}")
        values = values.detach().contiguous().view(bits).numpy()
    values = np.ascontiguousarray(values)
    return np.frombuffer(values.tobytes(), np.uint8).reshape(len(values), -1 if values.size else 0)


def noise(dtype: str, shape: tuple[int, ...]) -> Any:
    """Any bytes at all, NaNs of every payload among them; NumPy's, or torch's of bfloat16."""
    size = KINDS[dtype].size
    values = np.random.default_rng(len(dtype)).integers(0, 256, (*shape, size), dtype=np.uint8)
    if dtype == "bool":
        return values[..., 0] > 127
    if dtype == "bfloat16":
        return torch.from_numpy(values.view("int16")[..., 0]).view(torch.bfloat16)
    return values.view(dtype)[..., 0]


class Exported:
    """Speaks DLPack, and nothing else."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, **how: Any) -> Any:
        return self._tensor.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


@functools.cache
def large() -> pgs.Graph:
    return circulant(100_000, 20, 32)


@contextmanager
def busy() -> Iterator[None]:
    """The engine has one thread, which samples until the end of the block: readings wait."""
    # Seconds, where a test takes parts of one: other work may keep a test from its turn.
    graph, sampler = large(), pgs.PGSampler([15] * 250, seed=0)
    before = pgs.set_num_threads(1)
    job = sampler.submit(graph, range(graph.num_nodes))
    try:
        yield
        assert not job.done()
    finally:
        job.cancel()
        pgs.set_num_threads(before)


def saved(path: Path) -> np.ndarray[Any, Any]:
    """A file with 2 MB of rows, which stand beside others of the same name."""
    x = np.random.default_rng(1).random((ROWS, 30_000))
    graph = pgs.Graph.from_csc(
        range(ROWS + 1),
        [0] * ROWS,
        edge_data={"e": np.arange(ROWS), "both": np.zeros(ROWS)},
        node_data={"x": x, "both": np.ones(ROWS)},
    )
    graph.save(path, arrays={"more": np.arange(20.0).reshape(5, 4)})
    return x
