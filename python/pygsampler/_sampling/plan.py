"""``Plan``: what a sampler samples, and how."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Set, Sized
from contextlib import suppress
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any

from pygsampler._batch.layout import num_words
from pygsampler._core import library
from pygsampler._core.checks import describe, index

if TYPE_CHECKING:
    from pygsampler.graph import Graph


class Plan(Mapping[str, Any]):
    """The options of a sampler: immutable, hashable, picklable.

    A plan is one JSON document, which the engine has read and checked, and completed by what is
    usual; as a mapping it has the document's fields.
    """

    __slots__ = ("_fields", "document", "drawn_by", "fanouts", "num_words")

    document: str
    """The text; two plans are equal where their texts are."""
    fanouts: tuple[int, ...]
    """Edges that each hop takes of a vertex, outermost hop first; -1: all."""
    num_words: int
    """How many words describe a batch."""
    drawn_by: tuple[str, str] | None
    """``"prob"`` or ``"mask"``, and the name of that edge array; None: edges are equal."""

    def __init__(self, **fields: Any) -> None:
        """TypeError or ValueError says which field is wrong: ``fanouts[1]: expected ...``."""
        text = json.dumps({name: _as_json(value) for name, value in fields.items()})
        self._set(library.call("PlanRead", text))

    def _set(self, document: str) -> None:
        self.document = document
        known = self._fields = json.loads(document)
        self.fanouts = tuple(known["fanouts"])
        self.num_words = num_words(len(self.fanouts))
        named = [(how, known[how]) for how in ("prob", "mask") if known[how] is not None]
        self.drawn_by = named[0] if named else None

    def graph_of(self, graph: Graph) -> Graph:
        """The graph that the engine samples: of the edges with weights, or that the mask leaves."""
        return graph if self.drawn_by is None else graph._drawn_by(*self.drawn_by)

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and other.document == self.document

    def __hash__(self) -> int:
        return hash(self.document)

    def __repr__(self) -> str:
        return f"Plan({', '.join(f'{name}={value!r}' for name, value in self.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.document,)


def _restored(document: str) -> Plan:
    plan = Plan.__new__(Plan)
    plan._set(document)
    return plan


# No option is a longer sequence, or one of sequences of sequences.
_LONGEST = 1 << 16
_DEEPEST = 2


def _as_json(value: Any, depth: int = 0) -> Any:
    """``value`` in JSON's terms: integers and sequences of any kind are Python's.

    What has no such form goes as a description, which the engine refuses.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, Sized) and isinstance(value, Iterable) and depth < _DEEPEST:
        if isinstance(value, (bytes, bytearray, Mapping, Set)):
            return {"got": describe(value)}
        with suppress(TypeError):  # an array without dimensions
            length = len(value)
            if length > _LONGEST:
                return {"got": describe(value)}
            # As many as there are said to be: what is given may have no end.
            return [_as_json(item, depth + 1) for item in islice(value, length)]
    try:
        return index(value)
    except TypeError:
        return {"got": describe(value)}
