"""The sampler of NVIDIA's Kumo Engine on tables of a graph's nodes and edges, and ours there.

Kumo Engine samples rows of tables that foreign keys connect, into a tree for each seed. So an edge
is a row here, which has two keys, and a hop of a graph is two of its hops: from nodes to the edges
that enter them, and from each edge to its source.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pygsampler._cli.bench.check import CheckedBlock, Int64s, blocks_by_hop, in_trees
from pygsampler._cli.bench.contenders import Session, int64
from pygsampler._cli.bench.csc import CscGraph

# An engine draws the same edges of a node in every batch. So engines of as many seeds take turns:
# with one, hubs whose neighbors have many edges, or few, would move the mean of all batches.
_ENGINES = 16
# Foreign keys of the table of edges.
_LINKS = {"src": "nodes", "dst": "nodes"}
# Kumo Engine's names of the relations that they make, from edges to nodes.
_INTO, _FROM = "edges_dst_to_nodes_node_id", "edges_src_to_nodes_node_id"


class KumoSampler:
    """The `SamplerEngine` of Kumo Engine, uniformly and without replacement."""

    name = "kumo"
    label = "Kumo Engine"
    overlaps = False
    frontier = "trees"

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        return _KumoSession(graph, fanouts, seed)


class TableSampler:
    """`PGSampler.sample` on the same tables, with the same hops."""

    name = "tables"
    label = "PGSampler.sample of tables"
    overlaps = False
    frontier = "trees"

    def open(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> Session:
        return _TableSession(graph, fanouts, seed)


class _TableSession:
    """Batches of pygsampler, from the graph of the tables."""

    _INTO, _FROM = ("edges", "dst", "nodes"), ("nodes", "rev_src", "edges")

    def __init__(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> None:
        import pygsampler as pgs

        self._graph = graph
        schema = {"nodes": {"key": "node_id"}, "edges": {"key": "edge_id", "links": _LINKS}}
        self._tables = pgs.Graph.from_tables(_tables(graph), schema)
        none = dict.fromkeys(self._tables.edge_types, 0)
        hops = [
            {**none, **hop} for fanout in fanouts for hop in ({self._FROM: 1}, {self._INTO: fanout})
        ]
        self._sampler = pgs.PGSampler(hops, seed=seed, frontier="new", disjoint=True)

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        for number, seeds in enumerate(batches):
            yield self._sampler.sample(self._tables, {"nodes": seeds}, epoch=epoch, batch=number)

    def edges(self, batch: Any) -> list[int]:
        return [block[self._INTO].num_edges for block in batch.blocks[1::2]]

    def views(self, batch: Any) -> list[CheckedBlock]:
        trees = int64(batch.subgraph_ids["nodes"])
        result = []
        for outer, inner in zip(batch.blocks[::2], batch.blocks[1::2], strict=True):
            block, sources = inner[self._INTO], outer[self._FROM]
            edge, row = (int64(ids) for ids in block.coo())
            col = np.empty(block.num_src_nodes, dtype=np.int64)
            node, place = (int64(ids) for ids in sources.coo())
            col[place] = node
            first, dst, src = block.dst_offset, int64(block.dst_nodes), int64(sources.src_nodes)
            eid = int64(block.src_nodes)[edge] + trees[row] * self._graph.num_edges
            dst = in_trees(dst, trees[first : first + len(dst)], self._graph)
            src = in_trees(src, trees[: len(src)], self._graph)
            result.append(CheckedBlock(dst, src, row - first, col[edge], eid))
        return result


class _KumoSession:
    """Batches of Kumo Engine, from an index in a temporary folder."""

    def __init__(self, graph: CscGraph, fanouts: Sequence[int], seed: int) -> None:
        from diskgraph import SamplerEngine

        self._graph = graph
        folder = tempfile.mkdtemp(prefix="pygsampler-kumo-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            # Its progress messages and its partners' warnings are no part of the result.
            warnings.simplefilter("ignore")
            index = _index(graph, Path(folder))
        engines = [SamplerEngine(str(index), seed + number) for number in range(_ENGINES)]
        self._engines = itertools.cycle(engines)
        types = json.loads(engines[0].get_type_mapping())
        self._types = {name: number for number, name in enumerate(types["node_types"])}
        names = [relation["name"] for relation in types["edge_relations"]]
        self._into, self._from = names.index(_INTO), names.index(f"{_FROM}_reverse")
        hops = [
            _hop(*hop)
            for fanout in reversed(fanouts)
            for hop in ((f"{_INTO}_reverse", fanout), (_FROM, 1))
        ]
        self._plan = json.dumps({"layers": hops})

    def run(self, batches: Sequence[Int64s], epoch: int) -> Iterator[Any]:
        for engine, seeds in zip(self._engines, batches, strict=False):
            yield list(engine.sample({"nodes": seeds.tolist()}, self._plan, False))

    def edges(self, batch: Any) -> list[int]:
        return self._counts(batch, "edges")[::-1]

    def views(self, batch: Any) -> list[CheckedBlock]:
        nodes, edges = (
            next(e["batch"] for e in batch if e["type"] == "node" and e["type_id"] == number)
            for number in (self._types["nodes"], self._types["edges"])
        )
        trees = int64(edges["id_a"])
        eid = int64(edges["id_b"]) + trees * self._graph.num_edges
        node = in_trees(int64(nodes["id_b"]), int64(nodes["id_a"]), self._graph)
        # Places of an edge's ends among the nodes.
        row, col = np.empty_like(eid), np.empty_like(eid)
        for event in batch:
            if event["type"] == "edge":
                first, second = int64(event["batch"]["id_a"]), int64(event["batch"]["id_b"])
                if event["rel_id"] == self._into:
                    row[first] = second
                else:
                    col[second] = first
        counts = (self._counts(batch, kind) for kind in ("nodes", "edges"))
        return blocks_by_hop(node, (row, col, eid), *counts)

    def _counts(self, batch: Any, kind: str) -> list[int]:
        """Rows of a table that each hop reached first, the innermost hop first."""
        stats = json.loads(batch[-1]["stats"])
        counts: list[int] = stats["nodes_per_type"][self._types[kind]]
        return counts[1::2] if kind == "edges" else counts[::2]


def _hop(relation: str, fanout: int) -> dict[str, Any]:
    def spec(count: int) -> dict[str, Any]:
        return {"fanout": count, "mode": "uniform", "absent_key_policy": "uniform_fallback"}

    return {"fanouts": {relation: spec(fanout)}, "default_fanout": spec(0)}


def _tables(graph: CscGraph) -> dict[str, dict[str, Int64s]]:
    """Columns of a table of nodes and one of edges, each in the order of its ids."""
    nodes, edges = np.arange(graph.num_nodes), np.arange(graph.num_edges)
    src = graph.indices.astype(np.int64, copy=False)
    dst = np.repeat(nodes, np.diff(graph.indptr))
    return {"nodes": {"node_id": nodes}, "edges": {"edge_id": edges, "src": src, "dst": dst}}


def _index(graph: CscGraph, folder: Path) -> Path:
    """Writes the tables below `folder`, builds Kumo Engine's index of them, returns its path."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from kumo.engine import Edge, FileConnector, Graph, Table, configure

    data = folder / "tables"
    data.mkdir()
    for name, columns in _tables(graph).items():
        pq.write_table(pa.table(columns), data / f"{name}.parquet")
    configure(scratch_dir=folder / "scratch")
    files = FileConnector(root_dir=str(data))
    nodes = Table.from_source_table(files["nodes"], primary_key="node_id")
    edges = Table.from_source_table(files["edges"], primary_key="edge_id")
    links = [Edge(src_table="edges", fkey=key, dst_table=table) for key, table in _LINKS.items()]
    path: Path = Graph(tables=[nodes, edges], edges=links).snapshot().index_path
    return path
