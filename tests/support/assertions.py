"""Equality of results: every array by its dtype, shape and bytes, every number as it is.

It needs neither pytest nor torch, so that short programs and machines with a GPU can use it. Arrays
may be of the engine, NumPy or torch, in any memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

# Results are compared by the attributes of these names that they have.
_ATTRIBUTES = (
    *("epoch", "batch", "seed", "length", "walks_per_seed", "widths", "num_edges", "edge_type"),
    *("node_types", "edge_types", "num_sampled_nodes", "num_sampled_edges", "num_src_nodes"),
    *("num_dst_nodes", "dst_offset", "input_nodes", "output_nodes", "output_index", "root_index"),
    *("subgraph_ids", "nodes", "types", "hops", "parents", "mask", "cells", "lengths", "slots"),
    *("seeds", "steps", "counts", "importance", "neighbor_index", "extra", "features", "blocks"),
    *("src_nodes", "dst_nodes", "indptr", "indices", "edge_ids", "edge_weights", "edge_data"),
)


def content(result: Any) -> dict[str, Any]:
    """Returns all that a result holds, by name, as something to compare or to put aside.

    Arrays are (dtype, shape, bytes). Two results whose contents are equal may be of different
    libraries, and in different memory.
    """
    return {
        name: (str(value.dtype), value.shape, value.tobytes())
        if isinstance(value, np.ndarray)
        else value
        for name, value in fields(result)
    }


def contents(results: Any) -> list[dict[str, Any]]:
    """Returns the content of each of the results, which may be those of a loader."""
    return [content(result) for result in results]


def assert_equal(got: Any, expected: Any, where: object = "") -> None:
    """Fails unless two results hold the same fields, with the same dtypes, shapes and bytes."""
    mine, theirs = dict(fields(got)), dict(fields(expected))
    where = f"{where}: " if where != "" else ""
    assert list(mine) == list(theirs), f"{where}expected {list(theirs)}, got {list(mine)}"
    for name, want in theirs.items():
        assert_equal_values(mine[name], want, f"{where}{name or 'result'}")


def assert_equal_values(got: Any, expected: Any, where: str) -> None:
    """Fails unless two arrays, or two numbers, are equal to the bit."""
    if not (isinstance(got, np.ndarray) and isinstance(expected, np.ndarray)):
        assert type(got) is type(expected) and got == expected, (
            f"{where}: expected {expected!r}, got {got!r}"
        )
        return
    kinds = [f"{values.dtype}{list(values.shape)}" for values in (got, expected)]
    assert kinds[0] == kinds[1], f"{where}: expected {kinds[1]}, got {kinds[0]}"
    if got.tobytes() != expected.tobytes():
        differ = np.argwhere((got != expected) | (np.signbit(got) != np.signbit(expected)))
        first = tuple(differ[0].tolist()) if len(differ) else "the bits of a NaN"
        raise AssertionError(f"{where}: {len(differ)} of {got.size} differ, the first at {first}")


def fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the arrays and numbers of a result, in NumPy's arrays, with their names.

    A field that is None is left out: a result that has an array there has one more name.
    """
    if value is None:
        return
    if isinstance(value, (bool, int, float, str)):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from fields(item, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None) or map("[{}]".format, range(len(value)))
        for place, item in zip(names, value, strict=True):
            yield from fields(item, f"{name}{'' if place[0] == '[' else '.'}{place}")
    elif hasattr(value, "dtype") and hasattr(value, "tolist"):
        yield name, as_numpy(value)
    elif hasattr(value, "to_dict"):
        yield from fields(value.to_dict(), name)
    else:
        yield f"{name}.class", type(value).__name__
        for attribute in _ATTRIBUTES:
            try:
                item = getattr(value, attribute)
            except (AttributeError, TypeError, ValueError):
                # Walks without edges raise a ValueError; some visits are in torch tensors alone.
                continue
            yield from fields(item, f"{name}.{attribute}")


def as_numpy(array: Any) -> np.ndarray[Any, Any]:
    """Returns an array of any library, in any memory, as one of NumPy."""
    if isinstance(array, np.ndarray):
        return array
    array = array.cpu()
    if hasattr(array, "detach"):
        array = array.detach()
        if str(array.dtype) == "torch.bfloat16":  # NumPy has no such numbers
            import torch

            array = array.view(torch.int16)
    return np.asarray(array.numpy())
