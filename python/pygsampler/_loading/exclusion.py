"""``Exclusion``: the edges that a batch of links is not to sample."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._core.checks import describe
from pygsampler._loading.links_of import edge_ids
from pygsampler._sampling.standing import PassEdges
from pygsampler.hetero_graph import HeteroGraph

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pygsampler._loading.links_of import LinksOf

__all__ = ["Exclusion"]

_KINDS = "self", "reverse_id", "reverse_types"


class Exclusion:
    """Edges of a batch, and their reverses, as a loader was told."""

    __slots__ = ("_links", "_reverse", "_turned", "_typed", "kind")

    def __init__(
        self,
        graph: Any,
        links: Mapping[Any, LinksOf],
        kind: str | None,
        reverse_eids: Any,
        reverse_types: Any,
    ) -> None:
        self._links = links
        self._typed = isinstance(graph, HeteroGraph)
        self.kind = _checked(kind, links, self._typed)
        self._reverse = self._ids_of(graph, reverse_eids)
        self._turned = self._types_of(graph, reverse_types)

    def of(self, places: list[torch.Tensor]) -> Any:
        """The ids of what links at these places of each relation leave out; by type with types."""
        if self.kind is None:
            return None
        found: dict[Any, list[torch.Tensor]] = {}
        for (kind, links), at in zip(self._links.items(), places, strict=True):
            assert links.ids is not None
            ids = links.ids[at]
            found.setdefault(kind, []).append(ids)
            if kind in self._reverse:
                found[kind].append(self._reverse[kind][ids])
            if kind in self._turned:
                found.setdefault(self._turned[kind], []).append(ids)
        joined = {
            kind: parts[0] if len(parts) == 1 else torch.cat(parts) for kind, parts in found.items()
        }
        return joined if self._typed else joined[None]

    def of_pass(self, graph: Any, batches: Iterable[list[torch.Tensor]]) -> PassEdges | None:
        """The same for batch after batch, of each relation of the graph in turn."""
        if self.kind is None:
            return None
        kinds = list(graph.edge_types) if self._typed else [None]
        ids, starts, at = [torch.empty(0, dtype=torch.int64)], array("q", [0]), 0
        for places in batches:
            found = self.of(places) if self._typed else {None: self.of(places)}
            for kind in kinds:
                if kind in found:
                    ids.append(found[kind].to(torch.int64))
                    at += len(found[kind])
                starts.append(at)
        return PassEdges(torch.cat(ids), starts)

    def _ids_of(self, graph: Any, given: Any) -> dict[Any, torch.Tensor]:
        """The reverse of each edge, by relation."""
        if self.kind != "reverse_id":
            _unused(given, "reverse_eids", self.kind)
            return {}
        if given is None:
            raise ValueError("reverse_eids: expected an edge id for each edge, got None")
        if not self._typed:
            return {None: edge_ids(given, "reverse_eids", graph.num_edges)}
        made = {}
        for kind, ids in _mapping(given, "reverse_eids", self._links, graph).items():
            made[kind] = edge_ids(ids, f"reverse_eids[{kind!r}]", graph[kind].num_edges)
        return made

    def _types_of(self, graph: Any, given: Any) -> dict[Any, Any]:
        """The relation of the reverses, which have the ids of their edges."""
        if self.kind != "reverse_types":
            _unused(given, "reverse_types", self.kind)
            return {}
        made = _mapping(given, "reverse_types", self._links, graph)
        for kind, turned in made.items():
            if turned not in graph.edge_types:
                raise ValueError(f"reverse_types: expected types of the graph, got {turned!r}")
            counts = graph[kind].num_edges, graph[turned].num_edges
            if counts[0] != counts[1]:
                raise ValueError(
                    f"reverse_types[{kind!r}]: expected a type of {counts[0]} edges, with the same "
                    f"ids, got {turned!r} of {counts[1]}"
                )
        return made


def _mapping(given: Any, name: str, links: Mapping[Any, Any], graph: Any) -> dict[Any, Any]:
    """By the relations of the loader's edges: all of them. As DGL's it may have others of the
    graph, which are not asked for."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{name}: expected a mapping of edge types, got {describe(given)}")
    for kind in given:
        if kind not in links and kind not in graph.edge_types:
            raise ValueError(f"{name}: expected types of the graph, got {kind!r}")
    for kind in links:
        if kind not in given:
            raise ValueError(f"{name}: expected one for each type of edges, got none for {kind!r}")
    return {kind: of for kind, of in given.items() if kind in links}


def _unused(given: Any, name: str, kind: str | None) -> None:
    if given is not None:
        raise ValueError(f"{name}: expected None with exclude={kind!r}, got one")


def _checked(exclude: Any, links: Mapping[Any, LinksOf], typed: bool) -> str | None:
    if exclude is None:
        return None
    if not isinstance(exclude, str):
        raise TypeError(f"exclude: expected a string or None, got {describe(exclude)}")
    kinds = _KINDS if typed else _KINDS[:2]
    if exclude not in kinds:
        raise ValueError(
            f"exclude: expected {', '.join(map(repr, kinds))} or None, got {exclude!r}"
        )
    if any(of.ids is None for of in links.values()):
        raise ValueError(
            f"exclude: expected None with pairs of vertices, whose edge ids are not known, got "
            f"{exclude!r}; give the ids of the edges instead"
        )
    return exclude
