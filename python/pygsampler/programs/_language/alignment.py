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
    nodes = _columns(trace, matrix)
    if nodes is None or _is_distinct(trace, nodes) or _along(trace, value) != nodes:
        return value
    return _rebuilt(trace, value, nodes, trace.once("column", matrix), {})


def _columns(trace: ProgramTrace, node: int) -> int | None:
    """Returns the list that a matrix was sliced by; None of another value, or of all nodes."""
    op, inputs, _ = trace.nodes[node]
    if op == "slice":
        return inputs[0]
    if op in ("cross", "extract"):
        return inputs[1]
    if op in _SAME_COLUMNS and inputs:
        return _columns(trace, inputs[0])
    found = (_columns(trace, each) for each in inputs) if op in _MAPS else iter(())
    return next((each for each in found if each is not None), None)


def _is_distinct(trace: ProgramTrace, node: int) -> bool:
    op, inputs, attributes = trace.nodes[node]
    if op == "pick":
        return _is_distinct(trace, inputs[0])
    return op in _DISTINCT or (op == "draw" and not attributes["replace"])


def _along(trace: ProgramTrace, node: int) -> int | None:
    """Returns the list that a vector or dense rows run along; None: all nodes, or something else.

    Reductions and chances that depend on all elements of the list are something else.
    """
    op, inputs, _ = trace.nodes[node]
    if op in ("gather", "take"):
        return inputs[1]
    if op == "isin":
        return inputs[0]
    if op in _MAPS or op in ("project", "entry"):
        return next((x for x in (_along(trace, each) for each in inputs) if x is not None), None)
    return None


def _rebuilt(trace: ProgramTrace, node: int, nodes: int, columns: int, done: dict[int, int]) -> int:
    if node in done or _along(trace, node) != nodes:
        return done.get(node, node)
    op, inputs, attributes = trace.nodes[node]
    made: tuple[int, ...]
    if op == "isin":
        made = columns, inputs[1]
    elif op in ("gather", "take"):
        made = _rebuilt(trace, inputs[0], nodes, columns, done), columns
    else:
        made = tuple(_rebuilt(trace, each, nodes, columns, done) for each in inputs)
    done[node] = trace.once(op, *made, **attributes)
    return done[node]
