"""``Joint``: several edge types of a DGL graph, and the node types between them, as one graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch

from pygsampler._graph.graph import Graph

__all__ = ["TYPES", "HomogeneousIds", "endpoints"]

# The edge array that has the types, by their places in ``Joint.types``.
TYPES = "types"
# Ids below this fit in int32.
_NARROW = 1 << 31


class HomogeneousIds:
    """Ids of all types in one space: those of the first type, then of the next.

    ``types`` are ids of edge types of ``g``, ascending. Nodes are in the order of their types'
    ids, and edges in that of ``types``.
    """

    def __init__(self, g: Any, types: Sequence[int]) -> None:
        self.types = tuple(types)
        triples = [g.canonical_etypes[t] for t in self.types]
        self.ends = [(g.get_ntype_id(u), g.get_ntype_id(v)) for u, _, v in triples]
        nodes = sorted({t for pair in self.ends for t in pair})
        *first, self.num_nodes = accumulate((g.num_nodes(g.ntypes[t]) for t in nodes), initial=0)
        # The first id of each type, by the type's id.
        self.first_node = dict(zip(nodes, first, strict=True))
        *first, self.num_edges = accumulate((g.num_edges(e) for e in triples), initial=0)
        self.first_edge = dict(zip(self.types, first, strict=True))

    def graph_of(self, g: Any) -> Graph:
        """Returns the edges as a graph on the CPU, whose types are the edge array ``TYPES``."""
        wide = max(self.num_nodes, self.num_edges) >= _NARROW
        dtype = torch.int64 if wide else g.idtype
        src, dst, kinds = [], [], []
        for kind, (etype, (u, v)) in enumerate(zip(self.types, self.ends, strict=True)):
            here, there = (ids.cpu().to(dtype) for ids in endpoints(g, g.canonical_etypes[etype]))
            src.append(here + self.first_node[u])
            dst.append(there + self.first_node[v])
            kinds.append(torch.full((len(here),), kind, dtype=torch.int16))
        data = {TYPES: torch.cat(kinds)}
        return Graph.from_coo(
            torch.cat(src), torch.cat(dst), num_nodes=self.num_nodes, edge_data=data
        )


def endpoints(g: Any, etype: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """The sources and destinations of the edges of a type, by their ids."""
    # Not ordered by DGL, which not every format can do.
    u, v, eid = g.edges(form="all", order=None, etype=etype)
    src, dst = torch.empty_like(u), torch.empty_like(v)
    src[eid.long()], dst[eid.long()] = u, v
    return src, dst
