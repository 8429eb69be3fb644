"""Sparse matrices of SciPy: an entry [src, dst] is an edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._graph.reverse_edges import by_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pygsampler._arrays.array import Array
    from pygsampler._graph.relation_state import RelationState

_WEIGHT = "weight"


def to_scipy(graph: RelationState, shape: tuple[int, int], weight: str | None) -> Any:
    """The matrix of a graph on the CPU, of the values of an edge array, or of ones.

    CSC where the id of an edge is its place there, COO by edge id elsewhere: ``from_scipy`` gives
    the same graph again.
    """
    sparse = scipy_sparse()
    values = _values(graph._edata, weight, len(graph._open()[1]))
    if graph._open()[2] is None:
        indptr, indices, *_ = graph._open()
        parts = values, indices.numpy(), of_rows(indptr.numpy(), shape[1])
        return sparse.csc_array(parts, shape=shape)
    return sparse.coo_array((values, by_id(graph, "to_scipy")), shape=shape)


def block_matrix(
    indptr: Any, indices: Any, values: Any | None, shape: tuple[int, int], first: int
) -> Any:
    """The CSC matrix of a block of NumPy arrays, whose rows begin at column ``first``."""
    import numpy as np

    if values is None:
        values = np.ones(len(indices), np.float32)
    before = np.zeros(first, indptr.dtype)
    columns = of_rows(np.concatenate([before, indptr]) if first else indptr, shape[1])
    return scipy_sparse().csc_array((values, indices, columns), shape=shape)


def of_rows(indptr: Any, num_rows: int) -> Any:
    """``indptr`` of so many rows: rows past the last are empty."""
    import numpy as np

    missing = num_rows + 1 - len(indptr)
    if missing <= 0:
        return indptr[: num_rows + 1]
    return np.concatenate([indptr, np.full(missing, indptr[-1])])


def scipy_sparse() -> Any:
    """``scipy.sparse``; ImportError says how to get it."""
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError("to_scipy: expected SciPy, found none; pip install scipy") from None
    return scipy.sparse


def _values(edata: Mapping[str, Array], weight: str | None, count: int) -> Any:
    import numpy as np

    if weight is None:
        weights = edata.get(_WEIGHT)
        if weights is None or weights.shape != (count,):
            return np.ones(count, np.float32)
        return _scipy_values(weights)
    if weight not in edata:
        have = ", ".join(map(repr, edata)) or "none"
        raise ValueError(f"weight: expected an edge array of the graph ({have}), got {weight!r}")
    values = edata[weight]
    if values.shape != (count,):
        raise ValueError(f"weight: expected shape [{count}], got {values.shape}")
    return _scipy_values(values)


def _scipy_values(values: Array) -> Any:
    """Values in a dtype that SciPy has: those of 16-bit floats as float32, which loses nothing."""
    if values.dtype == "bfloat16":
        return values.torch().float().numpy()
    numbers = values.numpy()
    return numbers.astype("float32") if values.dtype == "float16" else numbers
