"""Facts in a program's lines: names of arrays and results, and what follows from what."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from pygsampler._batch.edge_values import EdgeValueName

__all__ = [
    "ParsedNode",
    "ParsedResult",
    "arrays",
    "extras",
    "nodes_follow_seeds",
    "operator_arrays",
    "parse_node",
    "parse_result",
]

# A name in the last line; behind it the place of the matrix whose edges have the values.
_EXTRA = re.compile(r'("(?:[^"\\]|\\.)*")(?:\[(\d+)\])?=%(\d+)')
# A node that another takes; names, which may look so, stand behind those.
_INPUT = re.compile(r"%(\d+)")


# An attribute of a node, whose value may be a quoted name.
_ATTRIBUTE = re.compile(r' (\w+)=("(?:[^"\\]|\\.)*"|\S+)')


class ParsedNode(NamedTuple):
    """A line: its operator, the nodes that it takes, and the attributes that it may have."""

    op: str
    inputs: tuple[int, ...]
    axis: int | None
    k: int
    name: str
    value: float


class ParsedResult(NamedTuple):
    """The last line: the nodes of each block's values by name, and of the other values."""

    blocks: list[dict[str, int]]
    extras: dict[str, int]


def parse_node(line: str) -> ParsedNode:
    """Returns a line but the last one."""
    _, _, op, *rest = line.split(" ")
    inputs = itertools.takewhile(lambda text: text.startswith("%"), rest)
    attributes = dict(_ATTRIBUTE.findall(line))
    axis = attributes.get("axis")
    return ParsedNode(
        op,
        tuple(int(text.strip("%,")) for text in inputs),
        None if axis is None else int(axis),
        int(attributes.get("k", 0)),
        unquoted(attributes.get("name", '""')),
        float(attributes.get("value", 0)),
    )


def parse_result(line: str) -> ParsedResult:
    """Returns the last line; the nodes of a subgraph are not among its values."""
    kind, own = line.split(" ")[1], line.partition('"')[0].split(" ")[2:]
    matrices = [text.strip(",") for text in own if text][kind == "subgraph" :]
    blocks = [{} if text.startswith("~") else {"w": int(text.strip("%"))} for text in matrices]
    others: dict[str, int] = {}
    for text, place, node in _EXTRA.findall(line):
        of = blocks[int(place)] if place else others
        of[unquoted(text)] = int(node)
    return ParsedResult(blocks, others)


def extras(lines: Sequence[str]) -> tuple[str | EdgeValueName, ...]:
    """Names of the vectors and lists that lines return, and of the values of edges."""
    return tuple(
        EdgeValueName(int(place), unquoted(text)) if place else unquoted(text)
        for text, place, _ in _EXTRA.findall(lines[-1])
    )


def arrays(lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of the edge and of the node arrays that lines read."""
    return operator_arrays(lines, "data"), operator_arrays(lines, "vertices")


def operator_arrays(lines: Sequence[str], op: str) -> tuple[str, ...]:
    """The names of arrays that an operator of lines reads."""
    found = [
        unquoted(line[line.index(" name=") + len(" name=") :])
        for line in lines[:-1]
        if line.split(" ")[2] == op
    ]
    return tuple(dict.fromkeys(found))


def nodes_follow_seeds(lines: Sequence[str]) -> bool:
    """True if the nodes of a subgraph, the first value returned, follow from the seeds."""
    pending, seen = {int(_INPUT.findall(lines[-1])[0])}, set[int]()
    while pending:
        node = pending.pop()
        seen.add(node)
        _, _, op, *rest = lines[node].split(" ")
        if op == "seeds":
            return True
        inputs = [_INPUT.match(each) for each in rest]
        pending |= {int(found[1]) for found in inputs if found} - seen
    return False


def unquoted(text: str) -> str:
    """A name as it stands in a line: Go's escapes of a text are some of Python's."""
    return str(ast.literal_eval(text))
