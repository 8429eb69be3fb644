"""``bench``: who takes part, what is checked, and what is printed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner

from pygsampler import Graph
from pygsampler._cli.commands import bench as command

check = importlib.import_module("pygsampler._cli.bench.check")
compare = importlib.import_module("pygsampler._cli.bench.compare")
contenders = importlib.import_module("pygsampler._cli.bench.contenders")
FAST = ("--seconds", "0", "--batch-size", "50", "--fanouts", "4,3")


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_ROUND_BATCHES", (4, 4))


@pytest.fixture
def ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_contenders", lambda device: ([[contenders.OneBatch()]], ["so"]))


@pytest.mark.usefixtures("ours_alone")
def test_document(ask: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "speed.png"
    found = ask("bench", file, *FAST, "--plot", picture)
    (row,) = found["rows"]
    assert (row["contender"], row["baseline"], row["frontier"]) == ("sample", "sample", "all")
    assert (row["graph"], row["setting"], row["nodes"]) == ("graph.pgs", "50x(4,3)", 500)
    assert row["rounds"] == 3 and row["milliseconds"]["median"] > 0
    assert row["ratio"]["median"] == 1
    assert row["edges_per_second"] > 0
    assert found["notes"] == ["so"]
    assert found["hardware"]["cores"] > 0 and found["versions"]["numpy"]
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("ours_alone")
def test_table_is_for_people(run: Callable[..., Any], file: Path) -> None:
    shown = run("bench", file, *FAST).stdout
    assert shown.startswith("graph.pgs 50x(4,3)\n")
    assert "PGSampler.sample" in shown and "1.00x" in shown
    assert "note     so\n" in shown


@pytest.mark.usefixtures("ours_alone")
def test_small_graphs_have_small_batches(ask: Callable[..., Any], tmp_path: Path) -> None:
    Graph.from_csc([0, 1, 1], [1], num_nodes=4).save(tmp_path / "g.pgs")
    (row,) = ask("bench", tmp_path / "g.pgs", "--seconds", "0")["rows"]
    assert (row["setting"], row["nodes"]) == ("4x(10,10)", 4)


@pytest.mark.usefixtures("ours_alone")
def test_a_graph_without_vertices(refused: Callable[..., str], tmp_path: Path) -> None:
    Graph.from_csc([0], []).save(tmp_path / "g.pgs")
    assert "expected a graph with vertices" in refused("bench", tmp_path / "g.pgs")


class Losing(contenders.OneBatch):
    """Loses the last edge of every batch while it is looked at."""

    def open(self, graph: Any, fanouts: Sequence[int], seed: int) -> Any:
        session = super().open(graph, fanouts, seed)
        views = session.views

        def short(batch: Any) -> list[Any]:
            first, *others = views(batch)
            ends = {name: getattr(first, name)[:-1] for name in ("row", "col", "eid")}
            return [check.CheckedBlock(dst=first.dst, src=first.src, **ends), *others]

        session.views = short
        return session


def test_lost_edges_end_it(
    refused: Callable[..., str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_contenders", lambda device: ([[Losing()]], []))
    said = refused("bench", file, *FAST)
    assert said.startswith("refused: graph.pgs 50x(4,3): sample: blocks[0]: expected")


def test_who_takes_part_is_what_is_installed() -> None:
    partner("torch")
    peers = importlib.import_module("pygsampler._cli.bench.frameworks")
    fields, notes = command._contenders("cpu")
    names = [one.name for one in fields[0]]
    have_dgl = importlib.util.find_spec("dgl") is not None
    assert names == (["dgl"] if have_dgl else []) + ["sample", "loader"] + ["adapter"] * have_dgl
    assert any("DGL is not installed" in note for note in notes) is not have_dgl
    if importlib.util.find_spec("torch_geometric") is not None:
        assert any("pyg-lib" in note for note in notes) is not peers.pyg_lib()
    fields, _ = command._contenders("cuda:1")
    assert {"sample", "loader", "sample:cuda:1", "loader:cuda:1"} <= {f.name for f in fields[0]}


class Reference:
    """What PyG's own sampler returns, by ours: pyg-lib is not to be had everywhere."""

    def __init__(self, data: Any, num_neighbors: list[int], is_sorted: bool) -> None:
        from pygsampler.pyg import PGSampler

        self.sample_from_nodes = PGSampler(data, num_neighbors, is_sorted=is_sorted, seed=5)
        self.sample_from_nodes = self.sample_from_nodes.sample_from_nodes


def test_pyg_is_compared_by_its_own_contract(
    ask: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner("torch_geometric")
    peers = importlib.import_module("pygsampler._cli.bench.frameworks")
    monkeypatch.setattr(peers, "pyg_lib", lambda: True)
    monkeypatch.setattr("torch_geometric.sampler.NeighborSampler", Reference)
    rows = ask("bench", file, *FAST[:-1], "4,3,5")["rows"]
    by_pyg = [row for row in rows if row["frontier"] == "new"]
    assert [row["contender"] for row in by_pyg] == ["pyg", "sample", "pyg_adapter"]
    assert {row["baseline"] for row in by_pyg} == {"pyg"}
    most = next(row for row in rows if row["contender"] == "sample")
    assert by_pyg[0]["edges_per_batch"] < most["edges_per_batch"]


def blocks(graph: Graph, frontier: str) -> tuple[Any, np.ndarray, list[Any]]:
    csc = importlib.import_module("pygsampler._cli.bench.csc").CscGraph(
        "g", graph.indptr.numpy(), graph.indices.numpy()
    )
    session = contenders.OneBatch(frontier=frontier).open(csc, [3, 3], 1)
    seeds = np.arange(40)
    batches: Iterator[Any] = session.run([seeds], 0)
    return csc, seeds, session.views(next(batches))


def test_each_contract_refuses_the_other(graph: Graph) -> None:
    for frontier, other in (("all", "new"), ("new", "all")):
        csc, seeds, found = blocks(graph, frontier)
        check.check_batch(csc, [3, 3], seeds, found, "ours", frontier=frontier)
        with pytest.raises(check.CheckError, match="dst nodes are not the frontier"):
            check.check_batch(csc, [3, 3], seeds, found, "ours", frontier=other)
