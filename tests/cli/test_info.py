"""``info``: what it counts is what NumPy counts; damage is found; a bare file is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skewed_graph import NODES, edges

from pygsampler import Graph
from pygsampler._graph import degrees


def spread(degree: np.ndarray) -> dict[str, Any]:
    ordered = np.sort(degree)
    tail = [[0, 0, int((degree == 0).sum())]]
    low = 1
    while low <= ordered[-1]:
        inside = (degree >= low) & (degree < 2 * low)
        tail.append([low, 2 * low - 1, int(inside.sum())])
        low *= 2
    return {
        "min": int(ordered[0]),
        "median": int(ordered[(len(degree) + 1) // 2 - 1]),
        "p99": int(ordered[-(len(degree) // 100) - 1]),
        "max": int(ordered[-1]),
        "zero": int((degree == 0).sum()),
        "mean": degree.mean(),
        "histogram": [{"from": a, "to": b, "nodes": n} for a, b, n in tail],
    }


def test_counts_are_those_of_numpy(ask: Callable[..., Any], file: Path) -> None:
    src, dst = edges()
    found = ask("info", file, "--parallel-edges", "--check")
    assert found["ok"] is True
    assert found["bytes"] == file.stat().st_size
    assert (found["num_nodes"], found["num_edges"]) == (NODES, len(src))
    assert found["dtypes"] == {"indptr": "int64", "indices": "int64", "edge_ids": "int64"}
    assert found["arrays"] == {"features": {"dtype": "float32", "shape": [NODES, 4]}}
    incoming, outgoing = np.bincount(dst, minlength=NODES), np.bincount(src, minlength=NODES)
    assert found["in_degree"] == spread(incoming)
    assert found["out_degree"] == spread(outgoing)
    assert found["self_loops"] == (src == dst).sum() > 0
    assert found["isolated"] == (incoming + outgoing == 0).sum() >= 20
    pairs = np.unique(np.stack([src, dst]), axis=1)
    assert found["parallel_edges"] == len(src) - pairs.shape[1] > 0
    assert found["checks"] == {"checksums": "ok", "offsets and ids": "ok"}


def test_named_arrays_are_told_by_their_sections(ask: Callable[..., Any], tmp_path: Path) -> None:
    graph = Graph.from_csc([0, 1], [0], edge_data={"w": [0.5]}, node_data={"x": b"1"})
    graph.save(tmp_path / "graph", arrays={"more": [1, 2]}, tables=["w"])
    found = ask("info", tmp_path / "graph")["arrays"]
    assert {name: about["shape"] for name, about in found.items()} == {
        "edge_data.w": [1],
        "more": [2],
        "node_data.x": [1],
        "tables.w": [16 + 2 * 8],
    }


def test_text_is_for_people(run: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "degrees.png"
    shown = run("info", file, "--plot", picture).stdout
    assert "\x1b" not in shown
    assert "nodes       500\n" in shown
    assert "features  float32 [500, 4]\n" in shown
    assert "parallel edges" not in shown
    assert "nodes by in-degree\n" in shown
    assert "█" in shown
    assert f"plot  {picture}\n" in shown
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_damage_is_a_check_that_fails(
    ask: Callable[..., Any], run: Callable[..., Any], graph: Graph, file: Path
) -> None:
    whole = bytearray(file.read_bytes())
    # The row of a hub, in place.
    at = whole.index(bytes(memoryview(graph.indices.numpy()[:8])))
    whole[at : at + 8] = (1 << 40).to_bytes(8, "little")
    file.write_bytes(whole)
    found = ask("info", file, "--check", ends_with=1)
    assert found["ok"] is False
    assert "section 'indices'" in found["checks"]["checksums"]
    assert "indices[0]: expected an id in [0, 500)" in found["checks"]["offsets and ids"]
    assert "in_degree" not in found
    assert "the file is damaged" in run("info", file, "--check", ends_with=1).stdout


def test_what_is_no_graph_file(refused: Callable[..., str], tmp_path: Path, file: Path) -> None:
    text = tmp_path / "edges.txt"
    text.write_text("1 2\n")
    assert refused("info", tmp_path / "none") == f"{tmp_path / 'none'}: No such file or directory"
    assert "expected a graph file" in refused("info", text)
    file.write_bytes(file.read_bytes()[:-100])
    assert "it is cut short" in refused("info", file)


def test_unchecked_damage_is_an_error(
    refused: Callable[..., str], graph: Graph, file: Path
) -> None:
    whole = bytearray(file.read_bytes())
    at = whole.index(bytes(memoryview(graph.indices.numpy()[:8])))
    whole[at : at + 8] = (1 << 40).to_bytes(8, "little")
    file.write_bytes(whole)
    assert "a damaged file" in refused("info", file)


def test_a_file_that_becomes_shorter_is_an_error(file: Path) -> None:
    with Graph.open(file) as opened:
        os.truncate(file, 4096)
        with pytest.raises(ValueError, match="the file became shorter"):
            degrees.profile(opened._source, parallel=True, progress=lambda done, total: None)


@pytest.mark.parametrize("rows", [0, 1])
def test_smallest_graphs(ask: Callable[..., Any], tmp_path: Path, rows: int) -> None:
    Graph.from_csc([0] * (rows + 1), []).save(tmp_path / "g.pgs")
    picture = tmp_path / "degrees.png"
    found = ask("info", tmp_path / "g.pgs", "--check", "--parallel-edges", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (found["num_nodes"], found["isolated"], found["in_degree"]["max"]) == (rows, rows, 0)


def test_degrees_come_in_steps(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = degrees.profile(graph._source, parallel=True)
    monkeypatch.setattr(degrees, "_STEP", 100)
    told: list[tuple[int, int | None]] = []
    again = degrees.profile(graph._source, parallel=True, progress=lambda *at: told.append(at))
    assert again == whole
    assert len(told) > 20
    assert told == sorted(told) and told[-1] == (NODES, NODES)

    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        degrees.profile(graph._source, progress=stop)
    graph.close()
