"""Edges among lists of nodes, found by torch: ``induced``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._arrays.array import Array
from pygsampler._batch.edge_values import NO_VALUES
from pygsampler._engine import memory as memories

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph

__all__ = ["FEW", "InducedEdges", "edge_rows", "in_edges", "induced_edges", "unique_edges"]

# The candidates of an induced subgraph are looked at so many at a time: 100 MB of tensors.
_AT_ONCE = 1 << 21
# Below so many edges one core has written their rows before others know of it.
FEW = 1 << 13
# The most entries of a table of positions, 64 MB, and how many of them may be cleared for each
# candidate: a binary search for it takes longer.
_TABLE, _OF_TABLE = 1 << 24, 16


class InducedEdges(NamedTuple):
    """Edges ``row[i] -> col[i]``, positions in the nodes of the batch, with ids and values.

    ``weight`` has factors, if the sampler computes them; ``ordered`` is True if ``col`` does not
    fall; ``named`` has values by name.
    """

    row: torch.Tensor
    col: torch.Tensor
    edge: torch.Tensor
    weight: torch.Tensor | None = None
    ordered: bool = True
    named: Mapping[str, torch.Tensor] = NO_VALUES


def induced_edges(
    graph: Graph,
    node: torch.Tensor,
    subgraph_ids: torch.Tensor | None,
    sources: tuple[torch.Tensor, torch.Tensor | None] | None = None,
) -> InducedEdges:
    """All edges of ``graph`` between the nodes ``node``, ordered by their target.

    With ``subgraph_ids``, one per node, only edges between nodes of one subgraph are returned. If a
    node is in ``node`` twice, each occurrence has the in-edges, and edges out of it come from the
    first. ``sources`` are the nodes that edges come from and their subgraphs, if they have another
    type.
    """
    # First: a graph in parts has none.
    indptr, indices, edge_ids = graph.indptr, graph.indices, graph.edge_ids
    if subgraph_ids is not None and graph._device < 0 and sources is None:
        return _of_trees(graph, node, subgraph_ids)
    # A pinned graph's arrays are on the host, the nodes on the GPU.
    device = indptr[:1].torch().device
    at_home = node.to(device).long()
    out_of, of = (node, subgraph_ids) if sources is None else sources
    keys, span, moved = out_of.to(device).long(), graph.num_nodes, None
    if subgraph_ids is not None and of is not None:
        moved = subgraph_ids.to(device).long() * graph.num_nodes
        keys = keys + of.to(device).long() * graph.num_nodes
        span *= max(int(each.max()) + 1 if len(each) else 0 for each in (subgraph_ids, of))
    # Nodes behind the last row have no in-edges.
    rows = len(indptr) - 1
    starts = _select(indptr, at_home.clamp(max=rows))
    degrees = _select(indptr, (at_home + 1).clamp(max=rows)) - starts
    find = _finder(keys, span, int(degrees.sum()))
    parts: list[InducedEdges] = []
    for begin, end in _pieces(degrees):
        width = degrees[begin:end]
        col = edge_rows(width)
        before = width.cumsum(0) - width
        place = torch.arange(len(col), device=device)
        place += (starts[begin:end] - before).index_select(0, col)
        col += begin
        wanted = _select(indices, place)
        if moved is not None:
            wanted += moved.index_select(0, col)
        kept, row = find(wanted)
        place = place.index_select(0, kept)
        edge = place if edge_ids is None else _select(edge_ids, place)
        parts.append(InducedEdges(row, col.index_select(0, kept), edge))
    row, col, edge = (
        unique_edges(list(tensors)).to(node.device, node.dtype)
        for tensors in zip(*((part.row, part.col, part.edge) for part in parts), strict=True)
    )
    return InducedEdges(row, col, edge)


def _of_trees(graph: Graph, node: torch.Tensor, subgraph_ids: torch.Tensor) -> InducedEdges:
    """The same by the engine, which has a small table for each tree."""
    count, node, subgraph_ids = len(node), node.contiguous(), subgraph_ids.contiguous()
    about = [(8 * ids.element_size(), ids.data_ptr()) for ids in (node, subgraph_ids)]
    (node_bits, nodes_at), (tree_bits, trees_at) = about
    memory = memories.new(
        "InducedEdges", graph._handle(), nodes_at, trees_at, count, node_bits, tree_bits
    )
    (total,) = memories.read_int64(memory.data + 8 * count, 1)
    starts = Array._from_address(memory.data, count + 1, 64, memory).torch()
    place = memory.data + 8 * (count + 1)
    sources, edges = (
        Array._from_address(at, total, 64, memory).torch().to(node.dtype)
        for at in (place, place + 8 * total)
    )
    return InducedEdges(sources, edge_rows(starts.diff(), total).to(node.dtype), edges)


def in_edges(graph: Graph, node: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """All in-edges of nodes, int64: where each one's begin, their sources, and their ids."""
    indptr, indices, edge_ids = graph.indptr, graph.indices, graph.edge_ids
    # A pinned graph's arrays are on the host, the nodes on the GPU.
    device = indptr[:1].torch().device
    at_home = node.to(device).long()
    # Nodes behind the last row have no in-edges.
    last = len(indptr) - 1
    starts = _select(indptr, at_home.clamp(max=last))
    degrees = _select(indptr, (at_home + 1).clamp(max=last)) - starts
    ends = degrees.cumsum(0)
    col = edge_rows(degrees)
    place = torch.arange(len(col), device=device)
    place += (starts - ends + degrees).index_select(0, col)
    edge = place if edge_ids is None else _select(edge_ids, place)
    begins = torch.cat([ends.new_zeros(1), ends])
    return begins.to(node.device), _select(indices, place).to(node.device), edge.to(node.device)


def _finder(
    keys: torch.Tensor, span: int, candidates: int
) -> Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Returns a function that looks numbers up in ``keys``: if each is there, and where first.

    All numbers are in ``[0, span)``, and about ``candidates`` of them will be looked up. A table of
    all of ``span`` answers several times as fast as a binary search. It is built anew for each
    batch, so that threads and forked processes share none.
    """
    count = len(keys)
    if span <= min(_TABLE, _OF_TABLE * candidates):
        positions = torch.arange(count, dtype=torch.int32, device=keys.device)
        table = torch.full((span,), count, dtype=torch.int32, device=keys.device)
        # The smallest, also where a seed is there twice: then an assignment would take any.
        table.scatter_reduce_(0, keys, positions, "amin")

        def find(queries: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            found = table.index_select(0, queries)
            kept = (found < count).nonzero().squeeze(1)
            return kept, found.index_select(0, kept).long()

        return find
    # Stable: the first of equal nodes comes first.
    ordered, order = keys.sort(stable=True)

    def search(queries: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = torch.searchsorted(ordered, queries).clamp_(max=max(count - 1, 0))
        kept = (ordered.index_select(0, found) == queries).nonzero().squeeze(1)
        return kept, order.index_select(0, found.index_select(0, kept))

    return search


def _pieces(degrees: torch.Tensor) -> list[tuple[int, int]]:
    """Cuts rows into ranges of about ``_AT_ONCE`` edges; a larger row is a range of its own."""
    ends = degrees.cumsum(0)
    total = int(ends[-1]) if len(ends) else 0
    if total <= _AT_ONCE:
        return [(0, len(degrees))]
    goals = torch.arange(_AT_ONCE, total, _AT_ONCE, device=ends.device)
    cuts = torch.searchsorted(ends, goals, right=True).tolist()
    bounds = [0, *cuts, len(degrees)]
    return [(begin, end) for begin, end in pairwise(bounds) if end > begin]


def _select(values: Array, places: torch.Tensor) -> torch.Tensor:
    """``values[places]``, int64."""
    if values._readonly:
        # Torch has no read-only tensors, and would copy all of a mapped file.
        return torch.from_numpy(values.numpy()[places.numpy()]).long()
    # Two to three times as fast as by brackets.
    return values.torch().index_select(0, places).long()


def edge_rows(degrees: torch.Tensor, total: int | None = None) -> torch.Tensor:
    """The row of each edge of rows with so many edges, int64; ``total`` is their sum."""
    if total is not None and total < FEW and not degrees.is_cuda:
        # Torch hands so few to all cores as well, and waits for them: where these are busy, that
        # took ten times as long as the rest of a batch of 64 seeds.
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None:
            rows = numpy.arange(len(degrees)).repeat(degrees.numpy())
            made: torch.Tensor = torch.from_numpy(rows)
            return made
    return torch.repeat_interleave(degrees.long(), output_size=total)


def unique_edges(chunks: list[torch.Tensor]) -> torch.Tensor:
    return chunks[0] if len(chunks) == 1 else torch.cat(chunks)
