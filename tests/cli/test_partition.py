"""``partition``: a graph file in parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygsampler import Graph
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
