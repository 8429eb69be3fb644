"""Facts in a program's lines: names of arrays and results, and what follows from what."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from pygsampler._batch.edge_values import EdgeValueName

__all__ = ["arrays", "extras", "nodes_follow_seeds", "operator_arrays"]

# A name in the last line; behind it the place of the matrix whose edges have the values.
_EXTRA = re.compile(r'("(?:[^"\\]|\\.)*")(?:\[(\d+)\])?=%\d+')
# A node that another takes; names, which may look so, stand behind those.
_INPUT = re.compile(r"%(\d+)")


def extras(lines: Sequence[str]) -> tuple[str | EdgeValueName, ...]:
    """Names of the vectors and lists that lines return, and of the values of edges."""
    return tuple(
        EdgeValueName(int(place), unquoted(text)) if place else unquoted(text)
        for text, place in _EXTRA.findall(lines[-1])
    )


def arrays(lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the edge and of the vertex arrays that lines read."""
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
