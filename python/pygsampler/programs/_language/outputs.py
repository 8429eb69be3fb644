"""``returned``: the last line of a program's text, which says what its batches are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler.programs._language.expressions import DenseRows, Matrix, NodeList, Vector
from pygsampler.programs._language.graph_matrix import GraphMatrix, InducedMatrix
from pygsampler.programs._language.trace import ProgramTrace

# The permitted results of a function.
_RESULTS = (
    "expected matrices, A.induce(V), (V, matrix), (matrix, V), a dictionary of matrices of the "
    "same edges in the place of one, a dictionary of vectors, or A.walk(seeds, length)"
)
# The name of a list that is returned behind matrices.
_FRONTIERS = "next_frontiers"


def output_line(trace: ProgramTrace, result: Any) -> tuple[str, tuple[str, ...]]:
    """The last line of a program's text, and the names of the lists in it."""
    extras: Mapping[str, Any] = {}
    if result is None or (isinstance(result, (list, tuple, Mapping)) and not result):
        raise trace.refuse(f"return: {describe(result)}", _RESULTS)
    pair = isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], NodeList)
    if isinstance(result, tuple) and result and isinstance(result[-1], Mapping) and not pair:
        *rest, extras = result
        result = rest[0] if len(rest) == 1 else tuple(rest)
    elif isinstance(result, Mapping):
        extras, result = result, None
    elif (
        isinstance(result, tuple)
        and len(result) > 1
        and not pair
        and isinstance(result[-1], NodeList)
    ):
        # A function of one layer, as gSampler's paper has them.
        *rest, frontiers = result
        extras, result = {_FRONTIERS: frontiers}, rest[0] if len(rest) == 1 else tuple(rest)
    for name, value in extras.items():
        trace.named(name, "what is returned")
        if not isinstance(value, (DenseRows, Vector, NodeList)):
            raise trace.refuse(
                f"return: {name}: {describe(value)}",
                "expected a vector, dense rows or a list of nodes",
            )
    if result is None:
        kind, nodes = "vectors", []
    elif isinstance(result, InducedMatrix):
        kind, nodes = "subgraph", [result.vertices, result]
    elif isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], NodeList):
        kind, nodes = "subgraph", list(result)
    elif isinstance(result, NodeList):
        trace.steps = _steps(trace, result, extras)
        kind, nodes, extras = "vectors", [], {"nodes": result}
    else:
        kind, nodes = "blocks", list(result) if isinstance(result, (list, tuple)) else [result]
    texts, named = [f"%{node._node}" for node in nodes[: kind == "subgraph"]], ""
    for place, node in enumerate(nodes[kind == "subgraph" :]):
        own, others = _values(trace, node)
        texts.append(own)
        for name, value in others.items():
            named += f" {json.dumps(name, ensure_ascii=False)}[{place}]=%{value._node}"
    text = f"return {kind}" + (" " + ", ".join(texts) if texts else "") + named
    for name, value in extras.items():
        text += f" {json.dumps(name, ensure_ascii=False)}=%{value._node}"
    return text, tuple(name for name, value in extras.items() if isinstance(value, NodeList))


def _steps(trace: ProgramTrace, nodes: NodeList, extras: Mapping[str, Any]) -> int:
    """Returns the number of steps of the walks in a list, with a walker from each seed."""
    _, _, *walk = trace.lines[nodes._node].split(" ")
    if walk[:2] != ["walk", "%0"] or walk[-1] != "site=0" or extras or trace.relations:
        raise trace.refuse(
            "return: a list of nodes",
            'expected A.walk(seeds, length), the first that draws, alone, or {"name": list}',
        )
    return int(walk[2].removeprefix("k="))


def _values(trace: ProgramTrace, node: Any) -> tuple[str, dict[str, Matrix]]:
    """The matrix of a block as the last line has it, and other values of its edges by name."""
    given = dict(node) if isinstance(node, Mapping) else {"w": node}
    for name, value in given.items():
        trace.named(name, "values of edges")
        if not isinstance(value, Matrix):
            raise trace.refuse(f"return: {describe(value)}", _RESULTS)
        if type(value) is GraphMatrix:
            raise trace.refuse("return: A, all edges of the graph", _RESULTS)
    if not given:
        raise trace.refuse("return: an empty dictionary", "expected values of edges by name")
    first = given.pop("w", None)
    if first is None:
        # Its edges count, and its values stand under another name.
        return f"~%{next(iter(given.values()))._node}", given
    return f"%{first._node}", given
