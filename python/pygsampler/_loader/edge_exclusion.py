"""``EdgeExclusion``: the edges that a batch of links is not to sample."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import is_heterogeneous
from pygsampler._graph.schema import ByEdgeType, check_by_type, edge_type_of, listed
from pygsampler._loader.seed_edges import edge_ids, ids_below
from pygsampler._sampling.static_buffers import EpochExclusions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pygsampler._loader.seed_edges import SeedEdges

__all__ = ["EdgeExclusion"]

_KINDS = "self", "reverse_id", "reverse_types"


class _Reverses(NamedTuple):
    """The edge type and the ids of the reverses of a relation's edges."""

    kind: Any
    """The relation that they are of."""
    ids: torch.Tensor | None
    """For each edge the id of its reverse there, -1 for none; None: it has the edge's own id."""
    some: bool
    """True if an edge has none."""


class EdgeExclusion:
    """The edges that a batch excludes, and their reverses, by the options of a loader."""

    __slots__ = ("_counts", "_links", "_reverses", "_typed", "kind")

    def __init__(
        self,
        graph: Any,
        links: Mapping[Any, SeedEdges],
        kind: str | Callable[[Any], Any] | None,
        reverse_eids: Any,
        reverse_etypes: Any,
    ) -> None:
        self._links = links
        self._typed = is_heterogeneous(graph)
        self.kind = _checked(kind, links, self._typed)
        # The number of edges of each relation, which checks the ids that a callable returns.
        self._counts = dict(graph.num_edges) if self._typed else {None: graph.num_edges}
        if self.kind not in ("reverse_id", "reverse_types"):
            _unused(reverse_eids, "reverse_eids", self.kind)
            _unused(reverse_etypes, "reverse_etypes", self.kind)
            self._reverses: dict[Any, _Reverses] = {}
        elif self._typed:
            self._reverses = self._of_types(graph, reverse_eids, reverse_etypes)
        else:
            _unused(reverse_etypes, "reverse_etypes", self.kind)
            self._reverses = {None: _by_id(graph, None, None, reverse_eids, "reverse_eids")}

    def excluded_ids(self, places: list[torch.Tensor]) -> Any:
        """The ids of what links at these places of each relation leave out; by type with types."""
        if self.kind is None:
            return None
        found: dict[Any, list[torch.Tensor]] = {}
        for (kind, links), at in zip(self._links.items(), places, strict=True):
            assert links.ids is not None
            ids = links.ids[at]
            found.setdefault(kind, []).append(ids)
            if kind in self._reverses:
                reverses = self._reverses[kind]
                back = ids if reverses.ids is None else reverses.ids[ids]
                back = back[back >= 0] if reverses.some else back
                found.setdefault(reverses.kind, []).append(back)
        joined = {
            kind: parts[0] if len(parts) == 1 else torch.cat(parts) for kind, parts in found.items()
        }
        if callable(self.kind):
            return self._chosen(joined)
        return joined if self._typed else joined[None]

    def _chosen(self, ids: dict[Any, torch.Tensor]) -> Any:
        """Returns the checked edge ids that the callable returns for the edges of a batch."""
        assert callable(self.kind)
        returned = self.kind(ByEdgeType(ids) if self._typed else ids[None])
        if not self._typed:
            return None if returned is None else ids_below(returned, "exclude", self._counts[None])
        return {
            kind: ids_below(values, f"exclude[{kind!r}]", self._counts[kind])
            for kind, values in check_by_type(returned, "exclude", self._counts).items()
        } or None

    def of_pass(self, graph: Any, batches: Iterable[list[torch.Tensor]]) -> EpochExclusions | None:
        """The same for batch after batch, of each relation of the graph in turn."""
        if self.kind is None:
            return None
        kinds = list(graph.edge_types) if self._typed else [None]
        ids, starts, at = [torch.empty(0, dtype=torch.int64)], array("q", [0]), 0
        for places in batches:
            found = self.excluded_ids(places)
            if found is None:
                found = {}
            elif not self._typed:
                found = {None: found}
            for kind in kinds:
                if kind in found:
                    ids.append(found[kind].to(torch.int64))
                    at += len(found[kind])
                starts.append(at)
        return EpochExclusions(torch.cat(ids), starts)

    def _of_types(self, graph: Any, reverse_eids: Any, reverse_etypes: Any) -> dict[Any, _Reverses]:
        """The reverses of each relation of the loader's edges that has some."""
        by_id = self.kind == "reverse_id"
        known = [*dict.fromkeys([*graph.edge_types, *self._links])]
        ids = check_by_type(reverse_eids, "reverse_eids", known)
        types: dict[Any, Any] = {}
        if not by_id or reverse_etypes is not None:
            if reverse_etypes is None:
                raise TypeError("reverse_etypes: expected a mapping of edge types, got None")
            types = {
                kind: edge_type_of(of, graph.edge_types, "reverse_etypes")
                for kind, of in check_by_type(reverse_etypes, "reverse_etypes", known).items()
            }
            if self._links and types.keys().isdisjoint(self._links):
                raise ValueError(
                    "reverse_etypes: expected the reverse of some type of the loader's edges "
                    f"({listed(self._links)}), got {listed(types)}"
                )
        return {
            kind: _reverses_of(graph, kind, types.get(kind, kind), ids.get(kind), by_id)
            for kind in self._links
            if by_id or kind in types
        }


def _reverses_of(graph: Any, kind: Any, turned: Any, ids: Any, by_id: bool) -> _Reverses:
    """The reverses of a relation's edges, among those of ``turned``."""
    if (kind[0], kind[2]) != (turned[2], turned[0]):
        way = f"the type of edges from {kind[2]!r} to {kind[0]!r} that has its reverses"
        if kind == turned:
            raise ValueError(
                f"reverse_etypes: expected {way} with exclude='reverse_id', got none; "
                f"reverse_etypes={{{kind!r}: ...}} names it"
            )
        raise ValueError(f"reverse_etypes[{kind!r}]: expected {way}, got {turned!r}")
    if by_id or ids is not None:
        return _by_id(graph, kind, turned, ids, f"reverse_eids[{kind!r}]")
    counts = graph[kind].num_edges, graph[turned].num_edges
    if counts[0] != counts[1]:
        raise ValueError(
            f"reverse_etypes[{kind!r}]: expected a type of {counts[0]} edges, with the same "
            f"ids, got {turned!r} of {counts[1]}; reverse_eids= names other ids"
        )
    return _Reverses(turned, None, False)


def _by_id(graph: Any, kind: Any, turned: Any, ids: Any, where: str) -> _Reverses:
    """Returns the reverses of a relation's edges by their ids, by default those of the graph.

    ``kind`` and ``turned`` are the edge types of both, None for a homogeneous graph.
    """
    if ids is None:
        try:
            pair = () if kind is None else (kind, turned)
            return _Reverses(turned, graph.reverse_edge_ids(*pair).torch(), False)
        except ValueError as error:
            raise ValueError(
                f"{where}: expected an edge id for each edge, got None; {error}"
            ) from None
    edges, others = (graph, graph) if kind is None else (graph[kind], graph[turned])
    back = edge_ids(ids, where, edges.num_edges, others.num_edges)
    return _Reverses(turned, back, bool((back < 0).any()))


def _unused(value: Any, name: str, kind: str | None) -> None:
    if value is not None:
        raise ValueError(f"{name}: expected None with exclude={kind!r}, got one")


def _checked(exclude: Any, links: Mapping[Any, SeedEdges], heterogeneous: bool) -> Any:
    if exclude is None:
        return None
    if not isinstance(exclude, str) and not callable(exclude):
        raise TypeError(f"exclude: expected a string, a callable or None, got {describe(exclude)}")
    kinds = _KINDS if heterogeneous else _KINDS[:2]
    if not callable(exclude) and exclude not in kinds:
        raise ValueError(
            f"exclude: expected {', '.join(map(repr, kinds))}, a callable or None, got {exclude!r}"
        )
    if any(of.ids is None for of in links.values()):
        raise ValueError(
            f"exclude: expected None with pairs of nodes, whose edge ids are not known, got "
            f"{exclude!r}; give the ids of the edges instead"
        )
    return exclude
