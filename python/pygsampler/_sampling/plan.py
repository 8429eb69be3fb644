"""``Plan``: what a sampler samples, and how."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Set, Sized
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import Any

from pygsampler._engine import library
from pygsampler._engine.checks import describe, index, is_truth


class ByRelation(dict[str, Any]):
    """Numbers by the names of relations, in a plan."""


class Plan(Mapping[str, Any]):
    """The options of a sampler: immutable, hashable, picklable.

    A plan is one JSON document, which the engine has read and checked, and completed by what is
    usual; as a mapping it has the document's fields, with tuples for lists.
    """

    __slots__ = ("_fields", "document", "edge_array", "num_words")

    _fields: Mapping[str, Any]
    document: str
    """The text; two plans are equal where their texts are."""
    num_words: int
    """How many words describe a batch."""
    edge_array: tuple[str, str] | None
    """``"prob"`` or ``"mask"``, and the name of that edge array; None: edges are equal."""

    def __init__(self, **fields: Any) -> None:
        """Raises TypeError or ValueError with the wrong field: ``fanouts[1]: expected ...``."""
        text = json.dumps({name: _as_json(value) for name, value in fields.items()})
        for name, value in zip(Plan.__slots__, _read(text), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of_document(cls, document: str) -> Plan:
        """Returns the plan of a document, the text of a plan of this version or an earlier one."""
        return _restored(document)

    def sampled_graph(self, graph: Any) -> Any:
        """The edges of a graph that have weights, or that the mask leaves, where ``graph`` is."""
        source = graph._source
        return source if self.edge_array is None else source._sampled_edges(*self.edge_array)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Plan: expected no change, got a new {name}; make another plan")

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
    """Restores a plan; a newer version completes fields that an older one did not have."""
    fields = json.loads(document)
    names = {"typed": "fanouts", "labor": "fanouts", "hgt": "num_samples"}
    by_name = names.get(fields.get("family"))
    if by_name:
        fields[by_name] = [ByRelation(n) if isinstance(n, dict) else n for n in fields[by_name]]
    return Plan(**fields)


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[Mapping[str, Any], str, tuple[str, str] | None, int]:
    """Returns the fields of a plan in the order of its slots; loads the engine first."""
    words, _, document = library.call("PlanRead", text).partition(" ")
    fields = {name: _frozen(value) for name, value in json.loads(document).items()}
    named = [(how, fields[how]) for how in ("prob", "mask") if fields.get(how) is not None]
    return fields, document, named[0] if named else None, int(words)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


# No option is a longer sequence, or one of sequences of sequences.
_LONGEST = 1 << 16
_DEEPEST = 2
_HUGE = 10**100


def _as_json(value: Any, depth: int = 0) -> Any:
    """Returns ``value`` in JSON's terms: integers and sequences of any kind become Python's.

    A value without such an equivalent becomes a description, which the engine refuses.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        # Half of a surrogate pair is no text in JSON.
        return value if value.isascii() or _is_text(value) else {"got": describe(value)}
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, ByRelation):
        return {name: _as_json(number, _DEEPEST) for name, number in value.items()}
    if isinstance(value, Sized) and isinstance(value, Iterable):
        if isinstance(value, (bytes, bytearray, Mapping, Set)) or depth == _DEEPEST:
            return {"got": describe(value)}
        with suppress(TypeError):  # an array without dimensions
            length = len(value)
            if length > _LONGEST:
                return {"got": describe(value), "length": length}
            # At most `length` items: the iterable may have no end.
            return [_as_json(item, depth + 1) for item in islice(value, length)]
    if is_truth(value):
        return bool(value)
    try:
        number = index(value)
    except TypeError:
        return {"got": describe(value)}
    # Python refuses to write more than some thousand digits.
    return max(-_HUGE, min(number, _HUGE))


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
