"""``ProgramArrays``: the named arrays of a graph that the engine reads for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import has_moved


class ProgramArrayNames(NamedTuple):
    """The names of the arrays that a program reads, each kind in one order.

    ``weight`` is the edge array that the argument ``weight=`` names, if any.
    """

    edges: tuple[str, ...] = ()
    vertices: tuple[str, ...] = ()
    weight: str | None = None
    rows: tuple[str, ...] = ()

    @classmethod
    def from_names(
        cls,
        edge_names: Iterable[str],
        node_names: Iterable[str],
        weight: str | None = None,
        row_names: Iterable[str] = (),
    ) -> ProgramArrayNames:
        """Names in any order, and as often as they like."""
        edges = sorted({*edge_names} - {weight})
        return cls(tuple(edges), tuple(sorted({*node_names})), weight, tuple(sorted({*row_names})))


NONE_NAMED = ProgramArrayNames()


class ProgramArrays(NamedTuple):
    """Arrays by name: a value for each edge id, one for each node, and a row for each."""

    edges: Mapping[str, Array] = {}
    vertices: Mapping[str, Array] = {}
    rows: Mapping[str, Array] = {}

    @classmethod
    def from_mappings(
        cls,
        edge_names: Iterable[str],
        node_names: Iterable[str],
        weight: str | None,
        edata: Mapping[str, Array],
        ndata: Mapping[str, Array],
        row_names: Iterable[str] = (),
    ) -> ProgramArrays:
        """Returns the arrays of these names; ValueError for a missing array, or another shape."""
        edges, vertices = {}, {}
        if weight is not None:
            edges[weight] = _one("weight", "an edge array", weight, edata)
        for name in edge_names:
            if name not in edges:
                edges[name] = _one("edata", "an edge array", name, edata)
        for name in node_names:
            vertices[name] = _one("ndata", "a node array", name, ndata)
        rows = {name: _one("features", "a node array", name, ndata, 2) for name in row_names}
        return cls(edges, vertices, rows)

    def now(self, edata: Mapping[str, Array], ndata: Mapping[str, Array]) -> ProgramArrays:
        """The same ones where they are now."""
        return ProgramArrays.from_mappings(self.edges, self.vertices, None, edata, ndata, self.rows)

    def moved(self) -> bool:
        """True if torch has moved the memory of one of the arrays."""
        if not (self.edges or self.vertices or self.rows):
            return False
        arrays = (*self.edges.values(), *self.vertices.values(), *self.rows.values())
        return any(has_moved(array._owner, array._address) for array in arrays)

    def text(self) -> str:
        """Returns the addresses of the arrays as JSON for the engine, empty without arrays."""
        if not self.edges and not self.vertices and not self.rows:
            return ""
        kinds = {"edges": self.edges, "vertices": {**self.vertices, **self.rows}}
        return json.dumps(
            {
                kind: {
                    name: {"dtype": a.dtype, "address": a._address, "length": prod(a.shape)}
                    for name, a in arrays.items()
                }
                for kind, arrays in kinds.items()
            }
        )


NONE_LENT = ProgramArrays()


def _one(kind: str, what: str, name: str, arrays: Mapping[str, Array], most: int = 1) -> Array:
    array = arrays.get(name)
    if array is None:
        have = f"one of {tuple(arrays)}" if arrays else "which has none"
        raise ValueError(f"{kind}: expected {what} of the graph, {have}, got {name!r}")
    if most == 2 and len(array.shape) != 2:
        raise ValueError(
            f"{kind}: expected a row for each node, got ndata[{name!r}] of shape {array.shape}"
        )
    if most == 1 and len(array.shape) != 1:
        where = f"{kind}[{name!r}]" if kind != "weight" else f"edata[{name!r}]"
        each = "edge" if what == "an edge array" else "node"
        raise ValueError(
            f"{kind}: expected a value for each {each}, got {where} of shape {array.shape}"
        )
    return array
