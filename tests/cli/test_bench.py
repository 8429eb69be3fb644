"""``bench``: who takes part, what is checked, and what is printed."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from partners import partner

from pygsampler import Graph, PGSampler
from pygsampler._cli.commands import bench as command

check = importlib.import_module("pygsampler._cli.bench.check")
compare = importlib.import_module("pygsampler._cli.bench.compare")
contenders = importlib.import_module("pygsampler._cli.bench.contenders")
fields = importlib.import_module("pygsampler._cli.bench.fields")
libraries = importlib.import_module("pygsampler._cli.bench.libraries")
FAST = ("--seconds", "0", "--batch-size", "50", "--fanouts", "4,3")


@pytest.fixture(autouse=True)
def _short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "_ROUND_BATCHES", (4, 4))


@pytest.fixture
def compare_alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Lets one contender take part alone."""

    def alone(contender: Any) -> None:
        field = fields.Field("sampling", [contender])
        monkeypatch.setattr(command, "_fields", lambda *arguments: ([field], [], ["so"]))

    return alone


@pytest.fixture
def ours_alone(compare_alone: Callable[[Any], None]) -> None:
    compare_alone(contenders.OneBatch())


@pytest.mark.usefixtures("ours_alone")
def test_document(ask: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "speed.png"
    found = ask("bench", file, *FAST, "--plot", picture)
    (row,) = found["rows"]
    assert (row["contender"], row["baseline"], row["frontier"]) == ("sample", "sample", "all")
    assert (row["measure"], found["absent"]) == ("sampling", [])
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
    refused: Callable[..., str], file: Path, compare_alone: Callable[[Any], None]
) -> None:
    compare_alone(Losing())
    said = refused("bench", file, *FAST)
    assert said.startswith("refused: graph.pgs 50x(4,3): sample: blocks[0]: expected")


def names_of(found: Sequence[Any]) -> list[list[str]]:
    return [[one.name for one in field.contenders] for field in found]


def test_who_takes_part_is_what_is_installed() -> None:
    partner("torch")
    found, absent, _ = command._fields("cpu")
    here = {name for name in libraries.LIBRARIES if name not in {each.name for each in absent}}
    dgl, cluster = "dgl" in here, "torch-cluster" in here
    first = ["dgl"] * dgl + ["torch-cluster"] * cluster + ["sample", "loader"] + ["adapter"] * dgl
    assert names_of(found)[0] == first
    assert [field.measure for field in found] == ["sampling"] * (
        1 + ("pyg" in here) + ("kumo" in here)
    )
    assert dgl is (importlib.util.find_spec("dgl") is not None)
    assert any("cuGraph (sampling)" in str(each) for each in absent)
    found, _, _ = command._fields("cuda:1")
    on_gpu = {"sample:cuda:1", "loader:cuda:1", "sample:cuda:1:page-locked"}
    assert {"sample", "loader"} | on_gpu <= set(names_of(found)[0])


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
    monkeypatch.setattr("torch_geometric.typing.WITH_PYG_LIB", True)
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
        ("pyg", "torch_geometric", "PyG", "pip install torch torch_geometric"),
        ("torch-cluster", "torch_cluster", "torch-cluster", "pip install torch, then pip install "),
        ("kumo", "diskgraph", "Kumo Engine", "pip install kumo-engine"),
    ],
)
def test_a_library_that_is_not_installed_is_an_error_when_named(
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
        f"--against {peer}: expected {package} for sampling, got none: "
        f"{package} is not installed; {remedy}"
    )
    for against in ((), ("all",)):
        _, absent, _ = command._fields("cpu", against)
        (one,) = (each for each in absent if each.name == peer)
        assert one.reason == f"{package} is not installed"
        assert one.remedy.startswith(remedy)
        assert "sampling" in one.measures


def test_a_library_whose_import_fails_is_listed_with_the_error(
    ask: Callable[..., Any],
    refused: Callable[..., str],
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    partner("torch")
    folder = tmp_path / "site"
    folder.mkdir()
    text = "import sys\nprint('loading', file=sys.stderr)\nraise OSError('libso.1: no\\nmore')\n"
    for module in ("torch_cluster", "diskgraph"):
        (folder / f"{module}.py").write_text(text)
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(str(folder))
    (first, *_), absent, _ = command._fields("cpu")
    assert "torch-cluster" not in names_of([first])[0]
    reasons = {each.name: each.reason for each in absent}
    assert reasons["kumo"] == "Kumo Engine fails at its import with OSError: libso.1: no"
    said = refused("bench", file, *FAST, "--against", "torch-cluster")
    assert "torch-cluster fails at its import with OSError: libso.1: no; pip install" in said
    found = ask("bench", file, *FAST)
    assert {"kumo", "torch-cluster"} <= {each["name"] for each in found["absent"]}
    assert all(row["measure"] == "sampling" for row in found["rows"])


def neighbor_sampler(start: Any, rowptr: Any, size: float) -> Any:
    """torch-cluster's law, by loops: up to 1 a share of the edges, above it a number of them."""
    import torch

    edges = []
    for node in start.tolist():
        first, last = int(rowptr[node]), int(rowptr[node + 1])
        count = math.ceil(size * (last - first)) if size <= 1 else min(int(size), last - first)
        edges += sorted((torch.randperm(last - first)[:count] + first).tolist())
    return torch.tensor(edges, dtype=torch.int64)


@pytest.mark.parametrize("fanouts", ["4,3", "1,-1", "3,0", "2"])
def test_torch_cluster_is_compared_by_the_rule_of_dgl(
    ask: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch, fanouts: str
) -> None:
    partner("torch")
    if importlib.util.find_spec("torch_cluster") is None:
        # Wheels of torch-cluster are not to be had for every PyTorch.
        module = SimpleNamespace(neighbor_sampler=neighbor_sampler)
        monkeypatch.setitem(sys.modules, "torch_cluster", module)
    rows = ask("bench", file, *FAST[:-1], fanouts, "--against", "torch-cluster")["rows"]
    assert [row["contender"] for row in rows] == ["torch-cluster", "sample", "loader"]
    assert {(row["baseline"], row["frontier"]) for row in rows} == {("torch-cluster", "all")}


def failing_later() -> Callable[..., Any]:
    """A sampler that fails once it is timed."""
    calls = itertools.count()

    def sample(start: Any, rowptr: Any, size: float) -> Any:
        if next(calls) > 20:
            raise RuntimeError("out of luck\nat kernel.cu:7")
        return neighbor_sampler(start, rowptr, size)

    return sample


@pytest.mark.parametrize(
    ("functions", "reason"),
    [
        (lambda: {}, "AttributeError: "),
        (lambda: {"neighbor_sampler": failing_later()}, "RuntimeError: out of luck"),
    ],
)
def test_a_library_that_fails_is_listed_with_the_error(
    ask: Callable[..., Any],
    refused: Callable[..., str],
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    functions: Callable[[], dict[str, Any]],
    reason: str,
) -> None:
    partner("torch")
    monkeypatch.setitem(sys.modules, "torch_cluster", SimpleNamespace(**functions()))
    found = ask("bench", file, *FAST)
    (one,) = (each for each in found["absent"] if each["name"] == "torch-cluster")
    assert one["reason"].startswith(f"torch_cluster, numbered by torch fails with {reason}")
    assert "kernel.cu" not in one["reason"] and one["measures"] == ["sampling"]
    assert {"sample", "loader"} <= {row["contender"] for row in found["rows"]}
    assert "torch-cluster" not in {row["contender"] for row in found["rows"]}
    monkeypatch.setitem(sys.modules, "torch_cluster", SimpleNamespace(**functions()))
    said = refused("bench", file, *FAST, "--against", "torch-cluster")
    assert said.startswith(f"--against torch-cluster: sampling: torch-cluster: {reason}")


def test_a_contender_that_fails_takes_no_others_along() -> None:
    named = [SimpleNamespace(name=name) for name in ("dgl", "dgl:cuda", "adapter", "sample")]
    field = fields.Field("sampling")
    field.peer("dgl", *named[:2])
    field.adapter("dgl", named[2])
    field.contenders.append(named[3])
    field.drop("dgl")
    assert (names_of([field]), field.baselines) == (
        [["dgl:cuda", "adapter", "sample"]],
        ["dgl:cuda"],
    )
    field.drop("dgl:cuda")
    assert (names_of([field]), field.baselines) == ([["sample"]], ["sample"])


class Pylibcugraph:
    """What cuGraph's sampler returns, by ours: cuGraph runs on GPUs alone."""

    ResourceHandle = GraphProperties = staticmethod(lambda **options: None)

    @staticmethod
    def SGGraph(handle: Any, form: Any, dst: Any, src: Any, **arrays: Any) -> Any:
        assert set(arrays) == {"vertices_array", "edge_id_array", "edge_type_array"}
        return Graph.from_coo(src, dst, num_nodes=len(arrays["vertices_array"]))

    @staticmethod
    def neighbor_sample(
        *,
        input_graph: Any,
        start_vertex_list: Any,
        h_fan_out: Any,
        random_state: int,
        **options: Any,
    ) -> dict[str, Any]:
        assert options["prior_sources_behavior"] == "exclude" and options["renumber"]
        hops = h_fan_out[::-1].tolist()
        sampler = PGSampler(hops, seed=random_state, frontier="new")
        batch = sampler.sample(input_graph, start_vertex_list)
        blocks = [block.coo() for block in reversed(batch.blocks)]
        src, dst = (np.concatenate([np.asarray(ends[side]) for ends in blocks]) for side in (0, 1))
        edges = np.concatenate([np.asarray(block.edge_ids) for block in reversed(batch.blocks)])
        counts = [0, *(len(ends[0]) for ends in blocks)]
        # Its own order of nodes, which is not ours.
        order = np.random.default_rng(0).permutation(len(batch.input_nodes))
        place = np.argsort(order)
        return {
            "renumber_map": np.asarray(batch.input_nodes)[order],
            "majors": place[dst],
            "minors": place[src],
            "edge_id": edges,
            "label_hop_offsets": np.cumsum(counts),
        }


def test_cugraph_is_checked_and_timed_like_the_others(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner("torch")
    device = SimpleNamespace(Device=lambda index: SimpleNamespace(use=lambda: None))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(asarray=np.asarray, cuda=device))
    monkeypatch.setitem(sys.modules, "pylibcugraph", Pylibcugraph)
    cugraph = importlib.import_module("pygsampler._cli.bench.cugraph")
    peer, ours = cugraph.CugraphSampler("cpu"), contenders.OneBatch(frontier="new")
    rows = compare.compare(
        csc_graph(graph), compare.Setting(50, (4, 3, 5)), [peer, ours], rounds=3, baseline="cugraph"
    )
    assert [row.baseline for row in rows] == ["cugraph", "cugraph"]
    found, absent, _ = command._fields("cuda", ("cugraph",))
    assert names_of(found[1:]) == [["cugraph:cuda", "sample", "sample:cuda"]]
    assert not absent
    monkeypatch.setitem(sys.modules, "pylibcugraph", SimpleNamespace())
    with pytest.raises(compare.ContenderError, match="neighbor_sample or homogeneous_"):
        compare.compare(csc_graph(graph), compare.Setting(50, (4,)), [peer], rounds=3)


def test_without_torch_our_sampler_is_timed(
    refused: Callable[..., str], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    found, absent, _ = command._fields("cpu", ("all",))
    assert names_of(found) == [["sample"]]
    assert "PyTorch is not installed" in {each.reason for each in absent}
    said = refused("bench", file, "--measure", "loader,step")
    assert said == (
        "--measure loader,step: expected PyTorch, got none: PyTorch is not installed; "
        "pip install torch"
    )


def test_cugraph_takes_part_with_a_gpu_alone(refused: Callable[..., str], file: Path) -> None:
    said = refused("bench", file, "--against", "cugraph")
    assert said.endswith("got none: it samples on a GPU alone; --device cuda")


def test_a_library_that_is_unknown_is_a_mistake(refused: Callable[..., str], file: Path) -> None:
    said = refused("bench", file, "--against", "quiver", ends_with=2)
    assert "'quiver' is not one of 'all', 'dgl', 'pyg', 'torch-cluster', 'cugraph', 'kumo'" in said


@pytest.mark.parametrize("text", ["sample", "", "loader,accuracy"])
def test_a_measure_that_is_unknown_is_a_mistake(
    refused: Callable[..., str], file: Path, text: str
) -> None:
    said = refused("bench", file, "--measure", text, ends_with=2)
    assert f"expected some of sampling,loader,step, got {text!r}" in said


def test_libraries_that_are_named_take_part_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    partner("torch")
    monkeypatch.setattr(libraries, "absences", lambda *arguments: [])

    def names(device: str, *against: str) -> list[list[str]]:
        return names_of(command._fields(device, against)[0])

    kumo = ["kumo", "tables", "sample"]
    assert names("cpu", "kumo") == [kumo]
    assert names("cpu", "kumo", "pyg") == [["pyg", "sample", "pyg_adapter"], kumo]
    # A GPU takes part among ours alone, where DGL is not asked for.
    on_gpu = ["sample:cuda", "loader:cuda", "sample:cuda:page-locked"]
    assert names("cuda", "kumo") == [["sample", "loader", *on_gpu], kumo]


def test_a_library_without_the_measure_is_an_error_when_named(
    refused: Callable[..., str], file: Path
) -> None:
    said = refused("bench", file, "--against", "kumo", "--measure", "step")
    assert said.endswith("expected Kumo Engine for step, got none: it takes part in sampling alone")


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_all_compares_loaders_and_steps_too(
    ask: Callable[..., Any], graph: Graph, tmp_path: Path, dtype: str
) -> None:
    partner("torch")
    picture, file = tmp_path / "all.png", tmp_path / "graph.pgs"
    indices = graph.indices.numpy().astype(dtype)
    Graph.from_csc(graph.indptr.numpy(), indices, num_nodes=graph.num_nodes).save(file)
    found = ask("bench", file, *FAST, "--against", "all", "--width", "8", "--plot", picture)
    rows = found["rows"]
    assert {row["measure"] for row in rows} == {"sampling", "loader", "step"}
    assert {f"int{row['id_bits']}" for row in rows} == {dtype}
    here = {(row["measure"], row["contender"]) for row in rows}
    assert {("sampling", "sample"), ("loader", "loader"), ("step", "torch")} <= here
    if importlib.util.find_spec("dgl") is not None:
        assert {("loader", "dgl"), ("loader", "dgl_adapter")} <= here
        assert {("step", "dgl"), ("step", "dgl_adapter")} <= here
    if importlib.util.find_spec("torch_geometric") is not None:
        assert {("step", name) for name in ("pyg", "pyg_trimmed", "pyg_adapter")} <= here
    for measure, frontier in {(row["measure"], row["frontier"]) for row in rows}:
        one = [r for r in rows if (r["measure"], r["frontier"]) == (measure, frontier)]
        (base,) = {row["baseline"] for row in one}
        (fastest,) = (row for row in one if row["contender"] == base)
        assert fastest["ratio"]["median"] == 1
        edges = [row["edges_per_batch"] for row in one]
        assert max(edges) == pytest.approx(min(edges), rel=0.2)
    assert all(
        {"name", "library", "measures", "reason", "remedy"} <= set(a) for a in found["absent"]
    )
    assert "commit" in found
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_markdown_is_a_table_to_paste(
    run: Callable[..., Any], refused: Callable[..., str], file: Path
) -> None:
    partner("torch")
    options = ("--measure", "sampling,step", "--width", "8", "--markdown")
    head, *lines = (
        line for line in run("bench", file, *FAST, *options).stdout.splitlines() if "|" in line
    )
    assert head.startswith("| measure | expands | by | ms a batch |")
    assert {line.count("|") for line in (head, *lines)} == {head.count("|")}
    assert any(
        line.startswith("| step | all nodes | torch, with pygsampler's blocks |") for line in lines
    )
    refused("bench", file, "--markdown", "--json", ends_with=2)


class Swapped(contenders.OneBatch):
    """Reads the features of other nodes."""

    name = "swapped"

    def open(self, graph: Any, fanouts: Sequence[int], seed: int) -> Any:
        session = super().open(graph, fanouts, seed)
        session.feature_rows = lambda batch: graph.features[np.asarray(batch.input_nodes)][::-1]
        return session


def test_rows_of_other_nodes_end_it(graph: Graph) -> None:
    csc = dataclasses.replace(
        csc_graph(graph),
        features=np.random.default_rng(1).random((graph.num_nodes, 3), np.float32),
    )
    with pytest.raises(check.CheckError, match="features: row 0 is not that of node"):
        compare.compare(csc, compare.Setting(50, (3, 3)), [Swapped()], rounds=3)
    with pytest.raises(check.CheckError, match=r"expected the shape \(2, 3\), got \(2, 2\)"):
        check.check_rows(csc.features, np.arange(2), csc.features[:2, :2], "ours")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda loss: loss * float("nan"), "expected finite losses"),
        (lambda loss: loss * 0 + 1, "expected a loss below 1.0000 after"),
        (lambda loss: loss * 1.1, "expected the first loss of torch"),
    ],
)
def test_steps_with_other_losses_end_it(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Any], Any], said: str
) -> None:
    partner("torch")
    steps = importlib.import_module("pygsampler._cli.bench.steps")

    class Spoilt(steps.TorchStep):
        def __init__(self) -> None:
            super().__init__()
            self.name = "spoilt"

        def open(self, graph: Any, fanouts: Sequence[int], seed: int) -> Any:
            session = super().open(graph, fanouts, seed)
            right = session.step
            session.step = lambda batch: spoil(right(batch))
            return session

    csc = dataclasses.replace(
        csc_graph(graph), features=np.eye(graph.num_nodes, 8, dtype=np.float32)
    )
    with pytest.raises(check.CheckError, match=said):
        steps.compare_steps(
            csc,
            compare.Setting(50, (3, 3)),
            [steps.TorchStep(), Spoilt()],
            baseline="torch",
            rounds=3,
        )


def test_batches_of_torch_sparse_are_counted_by_their_edges(graph: Graph) -> None:
    partner("torch_geometric")
    torch = partner("torch")
    peers = importlib.import_module("pygsampler._cli.bench.frameworks")
    session = peers.PygAdapter().open(csc_graph(graph), [4, 3, 5], 1)
    seeds = np.arange(40)
    for batch in session.run([seeds, seeds[::-1].copy(), np.array([3])], 0):
        counted = batch.counts()
        batch._sampled = None
        assert batch.counts() == counted
        check.check_batch(
            csc_graph(graph),
            [4, 3, 5],
            batch.node[: counted[0][0]].numpy(),
            batch.views(),
            "ours",
            frontier="new",
        )
    assert torch.is_tensor(batch.node)


class ReferenceLoader:
    """PyG's loader, by ours: pyg-lib is not to be had everywhere."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        from pygsampler.pyg import NeighborLoader

        return NeighborLoader(*arguments, **options, seed=7)


def test_loaders_of_pyg_are_compared(
    ask: Callable[..., Any], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner("torch_geometric")
    monkeypatch.setattr("torch_geometric.typing.WITH_PYG_LIB", True)
    monkeypatch.setattr("torch_geometric.loader.NeighborLoader", ReferenceLoader)
    options = ("--against", "pyg", "--measure", "loader", "--width", "8")
    rows = ask("bench", file, *FAST, *options)["rows"]
    assert [row["contender"] for row in rows] == ["pyg", "pyg_adapter"]
    assert {(row["baseline"], row["frontier"]) for row in rows} == {("pyg", "new")}
    assert rows[0]["label"] == "PyG NeighborLoader (pyg-lib)"


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
