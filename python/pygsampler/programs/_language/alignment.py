"""``along_columns``: a value along a list of nodes, for the columns of a matrix of that list."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygsampler.programs._language.trace import ProgramTrace

__all__ = ["along_columns"]

# Lists whose nodes are distinct: the columns of a matrix of one are its nodes, one by one.
_DISTINCT = ("unique", "union", "column", "row")
# Operators of values, element by element.
_MAPS = {
    *("neg", "abs", "sqrt", "exp", "log", "relu", "not", "add", "sub", "mul", "div", "pow"),
    *("min", "max", "lt", "le", "eq", "ne", "where"),
}
# Operators whose result has the columns of the matrix that they take first.
_SAME_COLUMNS = {
    *("individual", "collective", "dependent", "filter", "top_k", "merge", "data", "random"),
    *("independent", "spread", "dot"),
}


def along_columns(trace: ProgramTrace, value: int, matrix: int) -> int:
    """Returns the node of a value that goes with the columns of a matrix.

    The columns of ``A[:, S]`` are the distinct nodes of S, by first occurrence. A value along a
    list S with repeated nodes has equal elements for equal nodes, since each is computed of its
    node alone: it is computed again, along the columns. Any other value is returned as it is.
    """
    nodes = _columns(trace, matrix, {})
    lists: dict[int, int | None] = {}
    if nodes is None or _is_distinct(trace, nodes) or _along(trace, value, lists) != nodes:
        return value
    return _rebuilt(trace, value, nodes, trace.once("column", matrix), lists, {})


def _columns(trace: ProgramTrace, node: int, memo: dict[int, int | None]) -> int | None:
    """Returns the list that a matrix was sliced by; None of another value, or of all nodes."""
    if node in memo:
        return memo[node]
    op, inputs, _ = trace.nodes[node]
    found: int | None = None
    if op == "slice":
        found = inputs[0]
    elif op in ("cross", "extract"):
        found = inputs[1]
    elif op in _SAME_COLUMNS and inputs:
        found = _columns(trace, inputs[0], memo)
    elif op in _MAPS:
        each = (_columns(trace, place, memo) for place in inputs)
        found = next((place for place in each if place is not None), None)
    memo[node] = found
    return found


def _is_distinct(trace: ProgramTrace, node: int) -> bool:
    op, inputs, attributes = trace.nodes[node]
    if op == "pick":
        return _is_distinct(trace, inputs[0])
    return op in _DISTINCT or (op == "draw" and not attributes["replace"])


def _along(trace: ProgramTrace, node: int, memo: dict[int, int | None]) -> int | None:
    """Returns the list that a vector or dense rows run along; None: all nodes, or something else.

    Reductions and chances that depend on all elements of the list are something else.
    """
    if node in memo:
        return memo[node]
    op, inputs, _ = trace.nodes[node]
    found: int | None = None
    if op in ("gather", "take"):
        found = inputs[1]
    elif op == "isin":
        found = inputs[0]
    elif op in _MAPS or op in ("project", "entry"):
        each = (_along(trace, place, memo) for place in inputs)
        found = next((place for place in each if place is not None), None)
    memo[node] = found
    return found


def _rebuilt(
    trace: ProgramTrace,
    node: int,
    nodes: int,
    columns: int,
    lists: dict[int, int | None],
    done: dict[int, int],
) -> int:
    """Returns the node that computes a value along the columns instead of along the list."""
    if node in done or _along(trace, node, lists) != nodes:
        return done.get(node, node)
    op, inputs, attributes = trace.nodes[node]
    made: tuple[int, ...]
    if op == "isin":
        made = columns, inputs[1]
    elif op in ("gather", "take"):
        made = _rebuilt(trace, inputs[0], nodes, columns, lists, done), columns
    else:
        made = tuple(_rebuilt(trace, each, nodes, columns, lists, done) for each in inputs)
    done[node] = trace.once(op, *made, **attributes)
    return done[node]
