"""``bench``: who takes part, what is checked, and what is printed."""

from __future__ import annotations

import importlib
import sys
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
    field = [contenders.OneBatch()]
    monkeypatch.setattr(command, "_contenders", lambda device, against: ([field], ["so"]))


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
    assert "expected a graph with nodes" in refused("bench", tmp_path / "g.pgs")


def test_a_graph_with_types_is_refused_with_the_way_out(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    graph = Graph.from_coo({("a", "to", "b"): ([0, 1], [1, 0])}, num_nodes={"a": 2, "b": 2})
    path = tmp_path / "g.pgs"
    graph.save(path)
    said = refused("bench", path, "--against", "kumo")
    assert "expected a homogeneous graph" in said and "to_homogeneous().save(other)" in said
    Graph.open(path).to_homogeneous().save(path.with_name("other.pgs"))


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
    monkeypatch.setattr(command, "_contenders", lambda device, against: ([[Losing()]], []))
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


@pytest.mark.parametrize(
    ("peer", "module", "package", "remedy"),
    [
        ("dgl", "dgl", "DGL", "pip install torch dgl"),
        ("pyg", "torch_geometric", "PyG", "pip install torch torch_geometric, and pyg-lib from "),
        ("kumo", "diskgraph", "Kumo Engine", "pip install kumo-engine"),
    ],
)
def test_a_peer_that_is_not_installed_is_an_error_when_named(
    refused: Callable[..., str],
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    peer: str,
    module: str,
    package: str,
    remedy: str,
) -> None:
    partner("torch")
    monkeypatch.setitem(sys.modules, module, None)
    said = refused("bench", file, *FAST, "--against", peer)
    assert said.startswith(
        f"--against {peer}: expected {package}, which is not installed; {remedy}"
    )
    assert f"{package} is not installed" in command._contenders("cpu")[1]


def test_a_peer_that_is_unknown_is_a_mistake(refused: Callable[..., str], file: Path) -> None:
    said = refused("bench", file, "--against", "quiver", ends_with=2)
    assert "'quiver' is not one of 'dgl', 'pyg', 'kumo'" in said


def test_peers_that_are_named_take_part_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    partner("torch")
    monkeypatch.setattr(command, "_missing", lambda peer: None)

    def names(device: str, *against: str) -> list[list[str]]:
        return [[one.name for one in field] for field in command._contenders(device, against)[0]]

    kumo = ["kumo", "tables", "sample"]
    assert names("cpu", "kumo") == [kumo]
    assert names("cpu", "kumo", "pyg") == [["pyg", "sample", "pyg_adapter"], kumo]
    # A GPU takes part among ours alone, where DGL is not asked for.
    assert names("cuda", "kumo") == [["sample", "loader", "sample:cuda", "loader:cuda"], kumo]


def test_kumo_engine_is_compared_by_its_own_contract(ask: Callable[..., Any], file: Path) -> None:
    partner("diskgraph")
    rows = ask("bench", file, *FAST[:-1], "4,3,5", "--against", "kumo")["rows"]
    assert [row["contender"] for row in rows] == ["kumo", "tables", "sample"]
    assert {(row["baseline"], row["frontier"]) for row in rows} == {("kumo", "trees")}
    # A tree of each seed has edges that trees share.
    (shared,) = compare.compare(
        csc_graph(Graph.open(file)),
        compare.Setting(50, (4, 3, 5)),
        [contenders.OneBatch(frontier="new")],
        rounds=3,
        baseline="sample",
    )
    assert all(row["edges_per_batch"] > shared.edges_per_batch for row in rows)


def csc_graph(graph: Graph) -> Any:
    csc = importlib.import_module("pygsampler._cli.bench.csc")
    return csc.CscGraph("g", graph.indptr.numpy(), graph.indices.numpy())


def blocks(graph: Graph, frontier: str) -> tuple[Any, np.ndarray, list[Any]]:
    csc = csc_graph(graph)
    contender = contenders.OneBatch(frontier=frontier)
    if frontier == "trees of tables":
        contender = importlib.import_module("pygsampler._cli.bench.kumo").TableSampler()
    session = contender.open(csc, [3, 3], 1)
    seeds = np.arange(40)
    batches: Iterator[Any] = session.run([seeds], 0)
    return csc, seeds, session.views(next(batches))


@pytest.mark.parametrize(
    ("frontier", "other"), [("all", "new"), ("new", "all"), ("new", "trees"), ("trees", "new")]
)
def test_each_contract_refuses_the_other(graph: Graph, frontier: str, other: str) -> None:
    csc, seeds, found = blocks(graph, frontier)
    check.check_batch(csc, [3, 3], seeds, found, "ours", frontier=frontier)
    with pytest.raises(check.CheckError, match="dst nodes are not the frontier"):
        check.check_batch(csc, [3, 3], seeds, found, "ours", frontier=other)


@pytest.mark.parametrize("frontier", ["trees", "trees of tables"])
def test_trees_are_checked_edge_by_edge(graph: Graph, frontier: str) -> None:
    partner("pyarrow")
    csc, seeds, found = blocks(graph, frontier)
    check.check_batch(csc, [3, 3], seeds, found, "ours", frontier="trees")
    outer, inner = found
    last = len(inner.eid) - 1
    for change, said in (
        ({"eid": inner.eid + csc.num_edges}, "eid: ids outside the graph"),
        ({"col": np.where(np.arange(last + 1) == last, 0, inner.col)}, "an edge from another"),
    ):
        spoilt = check.CheckedBlock(**{**vars(inner), **change})
        with pytest.raises(check.CheckError, match=said):
            check.check_batch(csc, [3, 3], seeds, [outer, spoilt], "ours", frontier="trees")
