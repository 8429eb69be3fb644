"""``Trace``: the nodes of a program, as its function is run on stand-ins."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pygsampler._engine.checks import describe, index

_MOST_SITES = 256
# Frames of this folder's files, and of the one that runs the function, are ours and not the user's.
_OURS = (
    f"{Path(__file__).parent}{os.sep}",
    str(Path(__file__).parent.with_name("programs.py")),
)
_NODE = re.compile(r"(?:\w+: )?%(\d+): ")
# The names in programs of the engine's operators that have another name there.
_WRITTEN = {
    "individual": "individual_sample",
    "collective": "collective_sample",
    "dependent": "dependent_sample",
    "filter": "where",
    "where": "select",
    "largest": "max",
    "smallest": "min",
    "max": "maximum",
    "min": "minimum",
    "gather": "v[list]",
    "pick": "list[v]",
    "take": "X[list]",
    "union": "|",
}


def format_operator(op: str) -> str:
    """An operator as programs write it."""
    return _WRITTEN.get(op, op)


class ProgramTrace:
    """The lines of a program, and where in the user's source each comes from."""

    def __init__(self, name: str, relations: Sequence[tuple[str, str, str]] = ()) -> None:
        self.name = name
        # All that the function names, where it was run before, in that order; else those so far.
        self.known = tuple(relations)
        self.relations: dict[tuple[str, str, str], None] = {}
        self.lines: list[str] = []
        # The operator, the operands and the attributes of each line.
        self.nodes: list[tuple[str, tuple[int, ...], dict[str, Any]]] = []
        self.places: list[str] = []
        self.edge_names: dict[str, None] = {}
        self.node_names: dict[str, None] = {}
        # The sites of races, by the nodes of what they chose.
        self.races: dict[int, int] = {}
        # The nodes of random numbers of all vertices.
        self.randoms: set[int] = set()
        # The number of steps, if the function returns walks.
        self.steps: int | None = None
        # The place named by errors about the result, after the function has ended.
        self.ended: str | None = None
        self._made: dict[tuple[Any, ...], int] = {}
        self._sites = 0

    def add(self, op: str, *inputs: int, **attributes: Any) -> int:
        """Another node, by the number of which later ones take it."""
        text = f"%{len(self.lines)} = {op}"
        if inputs:
            text += " " + ", ".join(f"%{node}" for node in inputs)
        for name, value in attributes.items():
            if value is not None:
                text += f" {name}={_text(value)}"
        self.lines.append(text)
        self.nodes.append((op, inputs, attributes))
        self.places.append(_place())
        return len(self.lines) - 1

    def once(self, op: str, *inputs: int, **attributes: Any) -> int:
        """Returns the node of an earlier equal operation, or records a new one.

        Slices are recorded once, since two equal slices would not be known to have the same edges.
        """
        key = op, inputs, tuple(attributes.items())
        if key not in self._made:
            self._made[key] = self.add(op, *inputs, **attributes)
        return self._made[key]

    def relation(self, kind: tuple[str, str, str]) -> int:
        """The place of a relation among those that the function names."""
        self.relations[kind] = None
        if self.known and kind not in self.known:
            raise self.refuse(f"A[{kind}]", "expected the same relations in each run of a function")
        return list(self.known or self.relations).index(kind)

    def kind(self, name: str) -> int:
        """Returns the position of a node type among the ends of the relations."""
        ends = list(dict.fromkeys(end for src, _, dst in self.known for end in (src, dst)))
        if self.known and name not in ends:
            known = ", ".join(map(repr, ends))
            raise self.refuse(repr(name), f"expected a type of the program's relations: {known}")
        return ends.index(name) if self.known else 0

    def site(self) -> int:
        """The number of the next sampling call."""
        if self._sites == _MOST_SITES:
            raise ValueError(
                f"{self.where()}: expected at most {_MOST_SITES} sampling calls in a program, got "
                "more"
            )
        self._sites += 1
        return self._sites - 1

    def where(self) -> str:
        """The program, and the line of the user's that runs."""
        return f"program {self.name}, {self.ended or _place()}"

    def named(self, name: Any, what: str) -> str:
        """``name`` where it is one that the engine can have; ``what`` is to have it."""
        if isinstance(name, str) and name:
            try:
                name.encode()
            except UnicodeEncodeError:
                pass
            else:
                return str(name)
        raise self.refuse(describe(name), f"expected the name of {what}, a text of Unicode")

    def refuse(self, what: str, hint: str) -> TypeError:
        """The error of what cannot be traced."""
        return TypeError(f"{self.where()}: {what}: {hint}")

    def located(self, error: Exception) -> Exception:
        """An error of the engine's check, with the user's line in the place of the node."""
        match = _NODE.match(str(error))
        if match is None or int(match[1]) >= len(self.places):
            return type(error)(f"program {self.name}: {error}")
        place = self.places[int(match[1])]
        op, colon, text = str(error)[match.end() :].partition(": ")
        return type(error)(f"program {self.name}, {place}: {format_operator(op)}{colon}{text}")


def constant(value: Any, name: str) -> Any:
    """A constant of a trace: a number, a string, None, or a sequence of them."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return [constant(item, f"{name}[{i}]") for i, item in enumerate(value)]
    try:
        return index(value)
    except TypeError:
        pass
    found = number(value)
    if found is not None:
        return found
    raise TypeError(
        f"{name}: expected a number, a string, or a list of them, got {describe(value)}; arrays "
        "belong to the graph (with_data)"
    )


def number(value: Any) -> bool | int | float | None:
    """``value`` where it is a number of Python's or of NumPy's, as one of Python's; else None."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        value = value.item()
    return value if isinstance(value, (bool, int, float)) else None


def _text(value: Any) -> str:
    """Returns a value as the engine reads it: names in quotes, with the escapes that it knows."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def source_location(file: str, line: int) -> str | None:
    """A line of the user's, as errors name it; None where the file is ours."""
    return None if file.startswith(_OURS) else f"{Path(file).name}:{line}"


def _place() -> str:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def check_deterministic(
    trace: ProgramTrace, last: str, again: ProgramTrace, other_last: str
) -> None:
    """Raises TypeError if two runs of a function record different operators or results.

    The error names the first difference. Two runs reveal every random generator and every clock
    that the function reads.
    """
    if trace.lines == again.lines and last == other_last:
        return
    where = trace.where()
    if trace.lines != again.lines:
        longer = max(trace, again, key=lambda run: len(run.lines))
        pairs = zip_longest(trace.lines, again.lines)
        first = next(i for i, (one, other) in enumerate(pairs) if one != other)
        where = f"program {trace.name}, {longer.places[first]}"
    raise TypeError(
        f"{where}: a random number that is drawn while the program is traced, or a time: expected "
        "A.random() or C.random(), since it would be the same in all batches"
    )
