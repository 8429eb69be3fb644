"""``partition``: a graph file in parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygsampler import Graph, HeteroGraph
from pygsampler.distributed import Partition


def test_parts_of_a_file(ask: Callable[..., Any], file: Path, graph: Graph) -> None:
    found = ask("partition", file, "--parts", "3")
    folder = file.with_suffix(".parts")
    assert found["folder"] == str(folder)
    made = Partition.open(folder)
    assert (made.num_parts, made.num_nodes, made.num_edges) == (3, graph.num_nodes, 6000)
    assert found["bounds"] == list(made.bounds)
    assert sum(found["edges"]) == 6000
    assert 0 < found["edges_inside"] < 6000
    assert sum(path.stat().st_size for path in folder.iterdir()) == found["bytes"]


def test_a_graph_with_types(
    ask: Callable[..., Any], run: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "types.pgs"
    edges = {("a", "to", "b"): ([0, 2, 3], [1, 2, 0]), ("b", "to", "a"): ([0, 1, 1, 1], [1])}
    HeteroGraph(edges, node_data={"a": {"age": [1, 2, 3]}}).save(path)
    found = ask("partition", path, "--parts", "2")
    assert found["num_nodes"] == {"a": 3, "b": 2}
    assert found["num_edges"] == {"a__to__b": 3, "b__to__a": 1}
    made = Partition.open(found["folder"])
    assert (made.num_parts, made.edge_types) == (2, tuple(edges))
    assert "nodes" in run("partition", path, "--parts", "3", "--replace").stdout
    assert not made.out
    run("partition", path, "--parts", "3", "--replace", "--out-edges", "--times", "age")
    again = Partition.open(found["folder"])
    assert (len(again.out), [list(of.times) for of in again.relations]) == (2, [["age"], []])
    refused = run("partition", path, "--parts", "2", "--replace", "--reorder", "rcm", ends_with=2)
    assert "expected none for a heterogeneous graph" in refused.stderr
    refused = run("partition", path, "--parts", "2", "--replace", "--node-data", "x", ends_with=2)
    assert "all of whose arrays are written" in refused.stderr


def test_arrays_beside_the_graph(
    ask: Callable[..., Any], run: Callable[..., Any], tmp_path: Path, graph: Graph
) -> None:
    """convert puts labels and features there."""
    path = tmp_path / "labelled.pgs"
    labels = [7 * v for v in range(graph.num_nodes)]
    graph.save(path, arrays={"labels": labels, "train": [1, 2]})
    ask("partition", path, "--parts", "3", "--node-data", "labels")
    made = Partition.open(path.with_suffix(".parts"))
    shards = [made.shard(rank) for rank in range(3)]
    assert [x for shard in shards for x in shard.ndata["labels"].tolist()] == labels
    again = ["partition", path, "--parts", "2", "--replace", "--node-data"]
    refused = run(*again, "y", ends_with=2)
    assert "expected an array of the file, one of labels, train, got y" in refused.stderr
    assert "'train'" in run(*again, "train", ends_with=1).stderr
    assert made.num_parts == Partition.open(path.with_suffix(".parts")).num_parts == 3


def test_another_order(ask: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    out = tmp_path / "there"
    ask("partition", file, "--parts", "2", "--out", out, "--reorder", "rcm")
    assert "node_ids" in Partition.open(out).shard(1).ndata


def test_a_folder_that_is_there(
    run: Callable[..., Any], ask: Callable[..., Any], file: Path
) -> None:
    shown = run("partition", file, "--parts", "2").stdout
    assert "edges within a part" in shown
    again = run("partition", file, "--parts", "2", ends_with=2)
    assert "--replace" in again.stderr
    assert ask("partition", file, "--parts", "5", "--replace")["parts"] == 5
