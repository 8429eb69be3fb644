"""Graphs in parts, as files: together they are the graph, and none is there by half."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import partitioned_graphs
import pytest

import pygsampler as pgs
from pygsampler import distributed
from pygsampler.distributed import Partition, partition, reorder


@pytest.mark.parametrize("kind", ["plain", "ids", "plain 32", "ids 32"])
@pytest.mark.parametrize("parts", [1, 2, 3, 7, 210])
def test_parts_are_the_graph(tmp_path: Path, kind: str, parts: int) -> None:
    graph = partitioned_graphs.of(kind)
    made = partition(graph, tmp_path / "g", parts, times=["born"])
    assert (made.num_parts, made.num_nodes, made.num_edges) == (
        parts,
        graph.num_nodes,
        graph.num_edges,
    )
    assert (made.dtype, made.bounds[0], made.bounds[-1]) == (graph.dtype, 0, graph.num_nodes)
    assert list(made.bounds) == sorted(made.bounds)
    whole = np.concatenate([np.diff(graph.indptr), [0, 0]])[: graph.num_nodes]
    degrees, indices, ids, w, x = [], [], [], [], []
    for rank in range(parts):
        shard = made.shard(rank)
        assert (shard.first, shard.last) == made.bounds[rank : rank + 2]
        assert (shard.first_edge, shard.graph.num_edges) == (
            made.edge_bounds[rank],
            made.edge_bounds[rank + 1] - made.edge_bounds[rank],
        )
        own = np.diff(shard.graph.indptr)
        degrees += [*own, *[0] * (shard.last - shard.first - len(own))]
        indices += shard.graph.indices.tolist()
        count = shard.graph.num_edges
        first = range(shard.first_edge, shard.first_edge + count)
        ids += list(first) if shard.edge_ids is None else shard.edge_ids.tolist()
        w += shard.graph.edata["w"].tolist()
        x += shard.ndata["x"].tolist()
        sources = np.asarray(graph.ndata["born"])[np.asarray(shard.graph.indices)]
        assert shard.times["born"].tolist() == sources.tolist()
    assert degrees == whole.tolist()
    assert indices == graph.indices.tolist()
    assert ids == (list(range(len(ids))) if graph.edge_ids is None else graph.edge_ids.tolist())
    assert w == np.asarray(graph.edata["w"])[ids].tolist()
    assert x == graph.ndata["x"].tolist()


def test_parts_have_about_as_many_edges(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    graph = pgs.Graph.from_coo(*rng.integers(0, 5000, (2, 40000)), num_nodes=5000)
    made = partition(graph, tmp_path / "g", 7)
    sizes = np.diff(made.edge_bounds)
    assert abs(sizes - 40000 / 7).max() < 30


def test_a_graph_without_edges(tmp_path: Path) -> None:
    graph = pgs.Graph.from_csc([0], [], num_nodes=10)
    made = partition(graph, tmp_path / "g", 4)
    assert made.bounds == (0, 2, 5, 7, 10)
    assert made.shard(3).graph.num_edges == 0


def test_of_a_file(tmp_path: Path) -> None:
    partitioned_graphs.of("ids").save(tmp_path / "g.pgs")
    done: list[int] = []
    made = partition(
        tmp_path / "g.pgs", tmp_path / "g", 2, progress=lambda n, total: done.append(n)
    )
    assert done[-1] == partitioned_graphs.EDGES
    assert repr(made).startswith("Partition(")
    assert repr(made.shard(1)).startswith("Shard(rank=1, nodes [")


def test_bad_arguments(tmp_path: Path) -> None:
    graph = partitioned_graphs.of("plain")
    with pytest.raises(ValueError, match="parts: expected an integer from"):
        partition(graph, tmp_path / "g", 0)
    with pytest.raises(TypeError, match="graph: expected a Graph or the path of one, got int 3"):
        partition(3, tmp_path / "g", 2)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        partition(tmp_path / "none.pgs", tmp_path / "g", 2)
    with pytest.raises(TypeError, match="times: expected names of node arrays, got one name"):
        partition(graph, tmp_path / "g", 2, times="y")
    with pytest.raises(TypeError, match=r"times\[0\]: expected a name, got int 3"):
        partition(graph, tmp_path / "g", 2, times=[3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"times\[1\]: expected the name of a node array"):
        partition(graph, tmp_path / "g", 2, times=["y", "t"])
    with pytest.raises(ValueError, match=r"times\[0\]: expected an array of times"):
        partition(graph, tmp_path / "g", 2, times=["x"])
    assert not (tmp_path / "g").exists()
    partition(graph, tmp_path / "g", 2)
    with pytest.raises(FileExistsError, match="expected a folder that is not there"):
        partition(graph, tmp_path / "g", 2)
    assert partition(graph, tmp_path / "g", 3, replace=True).num_parts == 3
    (tmp_path / "other").mkdir()
    with pytest.raises(FileExistsError):
        partition(graph, tmp_path / "other", 3, replace=True)
    with pytest.raises(ValueError, match="rank: expected an integer from"):
        Partition.open(tmp_path / "g").shard(3)


def test_nothing_is_there_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any, *given: Any, **more: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(pgs.Graph, "save", fail)
    with pytest.raises(OSError, match="no room"):
        partition(partitioned_graphs.of("plain"), tmp_path / "g", 2)
    assert list(tmp_path.iterdir()) == []


def test_damaged_descriptions(tmp_path: Path) -> None:
    made = partition(partitioned_graphs.of("plain"), tmp_path / "g", 2)
    path = made.folder / "partition.json"
    about = json.loads(path.read_text())
    for change, match in (
        ({"format": "other"}, "expected the description of a partitioned graph"),
        ({"version": 9}, "expected version 1, got 9"),
        ({"num_nodes": 4}, "a damaged one"),
        ({"num_edges": 4}, "a damaged one"),
        ({"parts": [{}]}, "a damaged one"),
        ({"parts": 3}, "a damaged one"),
        ({"dtype": "int8"}, "a damaged one"),
    ):
        path.write_text(json.dumps({**about, **change}))
        with pytest.raises(ValueError, match=match):
            Partition.open(tmp_path / "g")
    path.write_text("{")
    with pytest.raises(ValueError, match="expected JSON"):
        Partition.open(tmp_path / "g")
    path.write_text(json.dumps(about))
    first, second = (made.folder / part["file"] for part in about["parts"])
    second.write_bytes(first.read_bytes())
    with pytest.raises(ValueError, match="expected part 1 of a graph"):
        Partition.open(tmp_path / "g").shard(1)
    second.unlink()
    with pytest.raises(FileNotFoundError):
        Partition.open(tmp_path / "g").shard(1)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        Partition.open(tmp_path / "g")


@pytest.mark.parametrize("by", ["rcm", "metis"])
def test_reordered(by: str) -> None:
    pytest.importorskip("scipy" if by == "rcm" else "pymetis")
    graph = partitioned_graphs.of("ids")
    made = reorder(graph, by, parts=3)
    old = np.asarray(made.file_arrays["node_ids"])
    assert sorted(old) == list(range(graph.num_nodes))
    assert made.ndata["x"].tolist() == np.asarray(graph.ndata["x"])[old].tolist()
    indptr, was = np.asarray(made.indptr), np.asarray(graph.indptr)
    rows = len(was) - 1
    for v, name in enumerate(old):
        own = slice(indptr[v], indptr[v + 1])
        before = slice(was[min(name, rows)], was[min(name + 1, rows)])
        assert old[np.asarray(made.indices)[own]].tolist() == graph.indices[before].tolist()
        assert (
            np.asarray(made.edge_ids)[own].tolist() == np.asarray(graph.edge_ids)[before].tolist()
        )


def test_reordering_brings_neighbours_together(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    rng = np.random.default_rng(0)
    name = rng.permutation(2000)
    src = rng.integers(0, 2000, 12000)
    dst = (src + rng.integers(1, 20, 12000)) % 2000
    graph = pgs.Graph.from_coo(name[src], name[dst], num_nodes=2000)

    def inside(made: Partition) -> int:
        shards = [made.shard(rank) for rank in range(made.num_parts)]
        return sum(
            int(
                (
                    (s.first <= np.asarray(s.graph.indices))
                    & (np.asarray(s.graph.indices) < s.last)
                ).sum()
            )
            for s in shards
        )

    before = inside(partition(graph, tmp_path / "a", 4))
    after = inside(partition(reorder(graph, "rcm"), tmp_path / "b", 4))
    assert before < 0.3 * 12000
    assert after > 0.9 * 12000
    again = reorder(reorder(graph, "rcm"), "rcm")
    assert sorted(again.file_arrays["node_ids"]) == list(range(2000))


def test_reorder_refuses() -> None:
    graph = partitioned_graphs.of("plain")
    with pytest.raises(ValueError, match="by: expected one of"):
        distributed.reorder(graph, "degree")
    with pytest.raises(TypeError, match="graph: expected a Graph"):
        distributed.reorder(3, "rcm")  # type: ignore[arg-type]
