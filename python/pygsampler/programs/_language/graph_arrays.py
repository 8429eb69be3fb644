"""``GraphArrays``: arrays of the graph, as a program's function asks for them."""

from __future__ import annotations

from typing import Any

from pygsampler._engine.checks import describe
from pygsampler.programs._language.trace import ProgramTrace


class GraphArrays:
    """Arrays of the graph by their names."""

    __slots__ = ("_get", "_trace")

    def __init__(self, trace: ProgramTrace, get: Any) -> None:
        self._trace = trace
        self._get = get

    def __getitem__(self, name: str) -> Any:
        return self._get(self._trace.named(name, "an array"))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self._trace.where()}: {name} of the graph's arrays: expected [{name!r}]"
        )

    def __setitem__(self, name: Any, value: Any) -> None:
        raise self._trace.refuse(
            f"{describe(name)} as an array of a matrix",
            "expected to be read, since a program's values are what its operators make",
        )
