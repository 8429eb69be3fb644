"""The laws that a sampled batch obeys, checked before any time of it is shown.

DGL's fused sampler has once lost half of its edges without an error (int32 ids, from the second
batch on), and a sampler that loses edges looks fast. So every contender is checked twice: whole
batches edge by edge outside the clock, and the number of edges of every timed batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pygsampler._cli.bench.csc import CscGraph

Int64s = npt.NDArray[np.int64]

# Two right samplers differ by noise alone; a paired mean beyond 6 standard errors is a lost edge.
_ERRORS = 6.0
# Below this relative difference no lost edge is suspected, however small the noise.
_SLACK = 1e-3


class CheckError(Exception):
    """A contender broke a law of sampling; its times mean nothing."""


@dataclass(frozen=True)
class CheckedBlock:
    """A hop as int64 arrays: original ids `dst` and `src`; per edge local `row`, `col`; `eid`.

    With disjoint subgraphs, node v of the subgraph of seed t is `t * num_nodes + v`, and edge e is
    `t * num_edges + e`.
    """

    dst: Int64s
    src: Int64s
    row: Int64s
    col: Int64s
    eid: Int64s


def blocks_by_hop(
    node: Int64s,
    edges: tuple[Int64s, Int64s, Int64s],
    new_nodes: Sequence[int],
    new_edges: Sequence[int],
) -> list[CheckedBlock]:
    """The blocks of a batch, outermost first, whose hops stand one behind another.

    `node` has the nodes as they were reached, so many new ones by hop, the seeds first; `edges` are
    the local ends of edges among these, `dst` and `src`, and their ids, so many of each hop.
    """
    dst, src, eid = edges
    result: list[CheckedBlock] = []
    # A hop's destinations are node[before:known], and `first` is its first edge.
    before, known, first = 0, new_nodes[0], 0
    for more, count in zip(new_nodes[1:], new_edges, strict=True):
        end, these = known + more, slice(first, first + count)
        ends = dst[these] - before, src[these], eid[these]
        result.insert(0, CheckedBlock(node[before:known], node[:end], *ends))
        before, known, first = known, end, these.stop
    return result


def in_trees(nodes: Int64s, trees: Int64s, graph: CscGraph) -> Int64s:
    """The ids of nodes in trees, as `CheckedBlock` has them."""
    return trees * graph.num_nodes + nodes


def expected_edges(graph: CscGraph, fanout: int, dst: npt.NDArray[Any]) -> int:
    """Edges of a hop that samples `fanout` in-edges without replacement around `dst`."""
    return int(_row_sizes(graph, fanout, dst).sum())


def check_batch(
    graph: CscGraph,
    fanouts: Sequence[int],
    seeds: Int64s,
    blocks: Sequence[CheckedBlock],
    who: str,
    *,
    frontier: str = "all",
) -> None:
    """Raises CheckError unless `blocks` (outermost first) is a sample of `graph` around `seeds`.

    With `frontier` "all" a hop expands every node that is known, with "new" those alone that the
    hop before it was the first to reach, and with "trees" the same, but in a tree for each seed.
    """
    _expect(
        len(blocks) == len(fanouts), f"{who}: expected {len(fanouts)} blocks, got {len(blocks)}"
    )
    known = turn = in_trees(seeds, np.arange(len(seeds)), graph) if frontier == "trees" else seeds
    for hop in range(len(fanouts) - 1, -1, -1):
        block, where = blocks[hop], f"{who}: blocks[{hop}]"
        _expect(np.array_equal(block.dst, turn), f"{where}: dst nodes are not the frontier")
        _check_block(graph, fanouts[hop], block, known, where)
        turn = block.src if frontier == "all" else block.src[len(known) :]
        known = block.src


def check_rows(
    table: npt.NDArray[np.float32], ids: Int64s, values: npt.NDArray[np.float32], who: str
) -> None:
    """Raises CheckError unless `values` [N, width] are the rows `ids` [N] of `table`."""
    shape = len(ids), table.shape[1]
    _expect(
        values.shape == shape, f"{who}: features: expected the shape {shape}, got {values.shape}"
    )
    wrong = np.flatnonzero((table[ids] != values).any(axis=1))
    if len(wrong):
        raise CheckError(f"{who}: features: row {wrong[0]} is not that of node {ids[wrong[0]]}")


def check_seed_hop(
    graph: CscGraph, fanout: int, batches: Sequence[Int64s], edges: Int64s, who: str
) -> None:
    """Raises CheckError unless `edges` [batches] of the hop at the seeds is exactly right."""
    _expect(len(edges) == len(batches), f"{who}: expected {len(batches)} batches, got {len(edges)}")
    for number, (seeds, got) in enumerate(zip(batches, edges, strict=True)):
        want = expected_edges(graph, fanout, seeds)
        _expect(
            want == got, f"{who}: batch {number}: expected {want} edges at the seeds, got {got}"
        )


def check_agreement(edges: Mapping[str, Int64s]) -> None:
    """Raises CheckError unless all contenders sampled as many edges at every hop.

    `edges` has one array [batches, hops] for each contender, of the same batches. Frontiers beyond
    the seeds are random, so the means of the paired differences are compared within their noise.
    """
    first, *others = edges
    for other in others:
        difference = (edges[other] - edges[first]).astype(np.float64)
        noise = difference.std(axis=0, ddof=1) if len(difference) > 1 else abs(difference[0])
        bound = _ERRORS * noise / np.sqrt(len(difference)) + _SLACK * edges[first].mean(axis=0)
        for hop in np.flatnonzero(abs(difference.mean(axis=0)) > bound):
            raise CheckError(
                f"blocks[{hop}]: {other} has {edges[other][:, hop].mean():,.1f} edges a batch, "
                f"{first} {edges[first][:, hop].mean():,.1f}: "
                f"expected a difference below {bound[hop]:,.1f}"
            )


def _check_block(
    graph: CscGraph, fanout: int, block: CheckedBlock, destinations: Int64s, where: str
) -> None:
    count = len(block.dst)
    want = _row_sizes(graph, fanout, block.dst)
    lengths = len(block.row), len(block.col), len(block.eid)
    _expect(len(set(lengths)) == 1, f"{where}: row, col and eid have {lengths} edges")
    _expect(
        len(block.row) == want.sum(),
        f"{where}: expected {want.sum()} edges for {count} rows, got {len(block.row)}",
    )
    _expect(_in_range(block.row, count), f"{where}: row: ids outside [0, {count})")
    _expect(_in_range(block.col, len(block.src)), f"{where}: col: ids outside the src nodes")
    tree, owner = np.divmod(block.dst[block.row], graph.num_nodes)
    eid = block.eid - tree * graph.num_edges
    _expect(_in_range(eid, graph.num_edges), f"{where}: eid: ids outside the graph")
    got = np.bincount(block.row, minlength=count)
    wrong = np.flatnonzero(got != want)
    if len(wrong):
        row = wrong[0]
        raise CheckError(f"{where}: row {row}: expected {want[row]} edges, got {got[row]}")
    _expect(
        np.array_equal(block.src[: len(destinations)], destinations),
        f"{where}: src does not begin with dst",
    )
    _expect(len(np.unique(block.src)) == len(block.src), f"{where}: a src node stands twice")
    _expect(len(np.unique(block.eid)) == len(block.eid), f"{where}: an edge stands twice")
    inside = (graph.indptr[owner] <= eid) & (eid < graph.indptr[owner + 1])
    _expect(bool(inside.all()), f"{where}: an edge of another row")
    _expect(
        np.array_equal(in_trees(graph.indices[eid], tree, graph), block.src[block.col]),
        f"{where}: an edge from another node",
    )


def _row_sizes(graph: CscGraph, fanout: int, dst: npt.NDArray[Any]) -> Int64s:
    node = dst % graph.num_nodes
    degree: Int64s = graph.indptr[node + 1] - graph.indptr[node]
    return degree if fanout == -1 else np.minimum(degree, np.int64(fanout))


def _in_range(ids: Int64s, end: int) -> bool:
    return len(ids) == 0 or (int(np.min(ids)) >= 0 and int(np.max(ids)) < end)


def _expect(law: bool, message: str) -> None:
    if not law:
        raise CheckError(message)
