"""Lists of layers on the blocks of a heterogeneous graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._engine.checks import describe
from pygsampler._graph.schema import ByEdgeType
from pygsampler._inference.block_layers import apply_functions, layer_name, widest
from pygsampler._inference.ranges import number_sources
from pygsampler._inference.tables import NodeTable

if TYPE_CHECKING:
    from torch import Tensor

    from pygsampler._batch.block import Block
    from pygsampler._graph.schema import EdgeType
    from pygsampler._inference.layer_runs import InferenceRun
    from pygsampler._inference.ranges import InEdges, NodeRange
    from pygsampler._inference.tables import Output

__all__ = ["HeteroLayer", "run_hetero_layer"]


class HeteroLayer(NamedTuple):
    """A function ``f(blocks, x)`` of mappings, and functions of its rows.

    Without a function it is the functions of rows alone.
    """

    function: Any
    functions: list[Any]

    def rows_of(self, blocks: Mapping[EdgeType, Block], x: dict[str, Tensor]) -> Any:
        """Returns the rows of all destinations by node type."""
        if self.function is None:
            # Functions may overwrite their rows, which are the caller's.
            result: Any = {kind: rows.clone() for kind, rows in x.items()}
        else:
            result = self.function(blocks, x)
        result = apply_functions(self.functions, result)
        if not isinstance(result, Mapping):
            name = layer_name(self.function or self.functions[-1])
            raise TypeError(
                f"{name}: expected a mapping of node types from the layer, got {describe(result)}"
            )
        return result


class _NodeSpan(NamedTuple):
    """Nodes [first, last) of a type, all nodes of all types for the type None."""

    node_type: str | None
    first: int
    last: int


def run_hetero_layer(
    run: InferenceRun,
    layer: HeteroLayer,
    cscs: Mapping[EdgeType, InEdges],
    tables: Mapping[str, NodeTable],
    outputs: Mapping[str, Output] | None,
) -> dict[str, NodeTable]:
    """Returns the rows of a layer for the nodes of all types that it gives rows of."""
    if layer.function is None:
        # Functions of rows have no sources.
        cscs = {}
    counts = _counts(cscs, tables)
    results: dict[str, Tensor] = {}
    # Later ranges read what the first ones would overwrite.
    late = {
        kind: out
        for kind, out in (outputs or {}).items()
        if any(map(out.overlaps, tables.values()))
    }
    for part in _spans(run, layer, cscs, tables, counts):
        x, blocks = _inputs(run, part, cscs, tables)
        rows = layer.rows_of(blocks, x)
        for node_type in counts if part.node_type is None else [part.node_type]:
            # A layer may have no rows for a type without in-edges.
            if node_type not in rows:
                continue
            size = counts[node_type] if part.node_type is None else part.last - part.first
            found = rows[node_type]
            if not isinstance(found, torch.Tensor) or found.shape[:1] != (size,):
                raise ValueError(
                    f"model: expected a row for each of {size} nodes of {node_type!r} from the "
                    f"layer, got {describe(getattr(found, 'shape', found))}"
                )
            if node_type not in results:
                shape = counts[node_type], *found.shape[1:]
                out = None if outputs is None or node_type in late else outputs[node_type]
                results[node_type] = run.allocate(shape, found.dtype, out)
            results[node_type][part.first : part.first + size].copy_(found)
        run.advance(part.last - part.first)
    for node_type, out in late.items():
        if node_type in results:
            rows = results[node_type]
            results[node_type] = out.allocate(tuple(rows.shape), rows.dtype).copy_(rows)
    return {node_type: NodeTable(each) for node_type, each in results.items()}


def _counts(cscs: Mapping[EdgeType, InEdges], tables: Mapping[str, NodeTable]) -> dict[str, int]:
    """Returns the number of nodes of the types with rows, and of those with in-edges."""
    counts = {node_type: each.shape[0] for node_type, each in tables.items()}
    for (_, _, node_type), csc in cscs.items():
        counts.setdefault(node_type, csc.num_dst)
    return counts


def _spans(
    run: InferenceRun,
    layer: HeteroLayer,
    cscs: Mapping[EdgeType, InEdges],
    tables: Mapping[str, NodeTable],
    counts: Mapping[str, int],
) -> Iterator[_NodeSpan]:
    rows = [3 * widest([layer.function, *layer.functions], each) for each in tables.values()]
    row_cost = max(rows)
    # A layer of somebody's own may write a row for each edge.
    edge_cost = row_cost // 3 + 16
    nodes = sum(counts.values())
    size = nodes * row_cost + sum(each.num_edges for each in cscs.values()) * edge_cost
    if run.batch_size is None and size <= run.free // 2:
        yield _NodeSpan(None, 0, nodes)
        return
    for node_type, count in counts.items():
        into = [csc for kind, csc in cscs.items() if kind[2] == node_type]
        # A range has the same nodes in all relations, so each has its part of the room.
        room = run.free // 2 // max(len(into), 1)
        cuts = {0, count}
        for csc in into:
            cuts |= {*csc.ranges(run.batch_size, row_cost, edge_cost + row_cost, room)}
        if not into:
            cuts |= {*range(0, count, run.batch_size or max(1, room // row_cost))}
        # A type without nodes has a range, too: its rows are of the result.
        ordered = sorted(cuts) if count else [0, 0]
        yield from (_NodeSpan(node_type, *ends) for ends in itertools.pairwise(ordered))


def _inputs(
    run: InferenceRun,
    part: _NodeSpan,
    cscs: Mapping[EdgeType, InEdges],
    tables: Mapping[str, NodeTable],
) -> tuple[dict[str, Tensor], ByEdgeType[Block]]:
    """Returns the rows of sources by node type, destinations first, and the blocks."""
    if part.node_type is None:
        x = {node_type: each.read_all(run.device) for node_type, each in tables.items()}
        ranges = {kind: csc.range(0, csc.num_dst) for kind, csc in cscs.items()}
        return x, ByEdgeType((kind, each.block()) for kind, each in ranges.items())
    ends = {kind: (part.first, part.last) if kind[2] == part.node_type else (0, 0) for kind in cscs}
    ranges = {kind: csc.range(*ends[kind]) for kind, csc in cscs.items()}
    x = {}
    for node_type, table in tables.items():
        inside = (part.first, part.last) if node_type == part.node_type else (0, 0)
        parts = [table.read_range(*inside, run.device)]
        group: list[NodeRange] = [each for kind, each in ranges.items() if kind[0] == node_type]
        if group:
            others = number_sources(group, inside if inside[1] else None)
            parts.append(table.gather(others, run.device))
        x[node_type] = torch.cat(parts)
    return x, ByEdgeType((kind, each.block()) for kind, each in ranges.items())
