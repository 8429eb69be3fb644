"""Finds the reverse of each edge, and the edges of a graph in the order of their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array, as_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pygsampler._graph.relation_state import RelationState


def by_id(graph: RelationState, where: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Sources and destinations of the edges, by edge id; needs NumPy.

    ValueError where ids of edges are not the numbers below the number of edges, each once.
    """
    import numpy as np

    indptr, indices, edge_ids, *_ = graph._open()
    src = indices.cpu().numpy()
    starts = indptr.cpu().numpy()
    dst = np.repeat(np.arange(len(starts) - 1, dtype=src.dtype), np.diff(starts))
    if edge_ids is None:
        return src, dst
    ids = check_ids(graph, where)
    ends = np.empty_like(src), np.empty_like(dst)
    ends[0][ids], ends[1][ids] = src, dst
    return ends


def check_ids(graph: RelationState, where: str) -> NDArray[Any] | None:
    """Returns the edge ids of a graph, None if an edge's id is its place.

    ValueError unless they are the numbers below the number of edges, each once.
    """
    import numpy as np

    edge_ids = graph._open()[2]
    if edge_ids is None:
        return None
    ids: NDArray[Any] = edge_ids.cpu().numpy()
    count = len(ids)
    fits = not count or (ids.min() >= 0 and ids.max() < count)
    if not fits or (count and np.bincount(ids, minlength=count).min() < 1):
        raise ValueError(
            f"{where}: expected edge ids that number the {count} edges from 0, each once, got "
            "others; Graph.from_csc(graph.indptr, graph.indices) numbers them by their places"
        )
    return ids


def reverse_edge_ids(graph: RelationState, other: RelationState, names: tuple[str, str]) -> Array:
    """Returns for each edge of ``graph``, by id, the id of its reverse in ``other``, int64.

    If both are one graph, a self loop is its own reverse. Edges that have the same order in
    ``other``, or in the second half of the graph the order of the first half, belong together; else
    the i-th edge from u to v belongs to the i-th from v to u. Raises ValueError for an edge without
    a reverse.
    """
    import numpy as np

    where = "reverse_edge_ids"
    src, dst = by_id(graph, where)
    if other is graph:
        found = _halves(src, dst)
        back = dst, src
        others = src, dst
    else:
        others = by_id(other, where)
        back = dst, src
        same = len(src) == len(others[0])
        same = same and all(np.array_equal(a, b) for a, b in zip(back, others, strict=True))
        found = np.arange(len(src)) if same else None
    if found is None:
        found = _matched(back, others, names)
    return as_array(found, where)


def _halves(src: NDArray[Any], dst: NDArray[Any]) -> NDArray[Any] | None:
    """Returns the reverses of edges in a graph that consists of two halves, else None.

    The first edges, without self-loops, follow once more, backwards and in the same order.
    """
    import numpy as np

    loops = int((src == dst).sum())
    if (len(src) + loops) % 2:
        return None
    half = (len(src) + loops) // 2
    forward = np.flatnonzero(src[:half] != dst[:half])
    backward = np.arange(half, len(src))
    if len(forward) != len(backward) or not (
        np.array_equal(src[forward], dst[backward]) and np.array_equal(dst[forward], src[backward])
    ):
        return None
    found = np.arange(len(src))
    found[forward], found[backward] = backward, forward
    return found


def _matched(
    back: tuple[NDArray[Any], NDArray[Any]],
    others: tuple[NDArray[Any], NDArray[Any]],
    names: tuple[str, str],
) -> NDArray[Any]:
    """The reverses by the ends of edges: both sides in the order of their ends, then of ids."""
    import numpy as np

    # lexsort is stable: parallel edges stay in the order of their ids.
    order, of_others = np.lexsort(back), np.lexsort(others)
    if len(order) == len(of_others) and all(
        np.array_equal(a[order], b[of_others]) for a, b in zip(back, others, strict=True)
    ):
        found = np.empty(len(order), np.int64)
        found[order] = of_others
        return found
    lone = _lone(back, others)
    if lone is None:
        text = f"{len(order)} edges, got {len(of_others)}"
        raise ValueError(f"reverse_edge_ids: expected {names[1]} to have the reverses of {text}")
    dst, src = (int(ends[lone]) for ends in back)
    raise ValueError(
        f"reverse_edge_ids: expected {names[1]} to have the reverse of each edge of {names[0]}, "
        f"got none of edge {lone} ({src} -> {dst})"
    )


def _lone(back: Any, others: Any) -> int | None:
    """The first edge without a reverse."""
    there: dict[tuple[int, int], int] = {}
    for ends in zip(*(each.tolist() for each in others), strict=True):
        there[ends] = there.get(ends, 0) + 1
    for place, ends in enumerate(zip(*(each.tolist() for each in back), strict=True)):
        if not there.get(ends):
            return place
        there[ends] -= 1
    return None
