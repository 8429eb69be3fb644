"""``walk``: the file holds the walks of RandomWalk, in original ids, as a whole or not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from partners import partner
from skewed_graph import NODES

from pygsampler import Graph, RandomWalk
from pygsampler._cli import walk_files

pa = partner("pyarrow")
partner("pyarrow.parquet")

SUFFIXES = [".parquet", ".arrow", ".npy", ".npz", ".txt"]
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {"length": 5, "walks": 3, "stop": 0.2},
    "weighted": {"length": 4, "prob": "w", "direction": "in", "restart": 0.2},
    "jumps": {"length": 6, "restart": 0.5, "count_jumps": True, "seed": 9},
    "node2vec": {"length": 4, "walks": 2, "p": 0.5, "q": 2.0},
    "typed": {"length": 6, "metapath": "0,2", "edge_types": "t"},
}


@pytest.fixture
def graph(graph: Graph) -> Graph:
    random = np.random.default_rng(4)
    count = graph.num_edges
    return graph.with_data(
        edge_data={"w": random.choice([0.0, 1.0, 4.0], count), "t": random.integers(0, 3, count)}
    )


def read(path: Path) -> tuple[list[list[int]], list[list[int]] | None]:
    """Walks without padding, and their edges where the file has them."""
    if path.suffix == ".txt":
        return [[int(v) for v in line.split(" ")] for line in path.read_text().splitlines()], None
    if path.suffix == ".npy":
        return [row[row >= 0].tolist() for row in np.load(path)], None
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            lengths = arrays["lengths"]
            rows = zip(arrays["nodes"], lengths, strict=True)
            nodes = [row[: length + 1].tolist() for row, length in rows]
            if "edge_ids" not in arrays:
                return nodes, None
            edges = zip(arrays["edge_ids"], lengths, strict=True)
            return nodes, [row[:length].tolist() for row, length in edges]
    if path.suffix == ".parquet":
        table = pa.parquet.read_table(path)
    else:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
    edge_ids = table["edge_ids"].to_pylist() if "edge_ids" in table.column_names else None
    return table["nodes"].to_pylist(), edge_ids


def wanted(graph: Graph, options: dict[str, Any], seeds: Any, size: int, epoch: int = 0) -> Any:
    given = {"seed": 0, **options}
    given["walks_per_seed"] = given.pop("walks", 1)
    if "metapath" in given:
        given["metapath"] = [int(part) for part in given["metapath"].split(",")]
    sampler = RandomWalk(**given, edge_ids=True)
    nodes, edges = [], []
    for number, first in enumerate(range(0, len(seeds), size)):
        walks = sampler.sample(graph, seeds[first : first + size], epoch=epoch, batch=number)
        for row, ids, length in zip(
            walks.nodes.numpy(), walks.edge_ids.numpy(), walks.lengths.numpy(), strict=True
        ):
            nodes.append(row[: length + 1].tolist())
            edges.append(ids[:length].tolist())
    return nodes, edges


def flags(options: dict[str, Any]) -> list[str]:
    found = []
    for name, value in options.items():
        flag = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        found += [flag] if value is True else [flag, str(value)]
    return found


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", list(OPTIONS))
def test_walks_are_those_of_the_sampler(
    ask: Callable[..., Any], graph: Graph, file: Path, name: str, suffix: str
) -> None:
    options, out = OPTIONS[name], file.with_name(f"walks{suffix}")
    out.write_text("what was there before")
    with_edges = ["--edge-ids"] if suffix in walk_files.WITH_EDGES else []
    numbers = ["--batch-size", "150", "--epoch", "2"]
    found = ask("walk", file, *flags(options), *numbers, *with_edges, "--out", out)
    nodes, edges = wanted(graph, options, np.arange(NODES), 150, 2)
    got, got_edges = read(out)
    assert got == nodes
    assert got_edges == (edges if with_edges else None)
    assert (found["seeds"], found["batches"], found["walks"]) == (NODES, 4, len(nodes))
    assert found["steps"] == sum(map(len, edges))
    assert found["bytes"] == out.stat().st_size
    assert sorted(path.name for path in file.parent.iterdir()) == ["graph.pgs", out.name]


def test_rows_are_filled_up(run: Callable[..., Any], file: Path) -> None:
    array, archive = file.with_name("w.npy"), file.with_name("w.npz")
    for out in (array, archive):
        run("walk", file, "--length", "5", "--stop", "0.3", "--seeds", "1,2,3", "--out", out)
    nodes = np.load(array)
    assert nodes.shape == (3, 6) and nodes.dtype == np.int64
    with np.load(archive) as arrays:
        np.testing.assert_array_equal(arrays["nodes"], nodes)
        assert arrays["lengths"].dtype == np.int32
        np.testing.assert_array_equal((nodes >= 0).sum(axis=1) - 1, arrays["lengths"])


def test_a_table_knows_how_it_was_made(run: Callable[..., Any], file: Path) -> None:
    out = file.with_name("w.parquet")
    run("walk", file, *flags(OPTIONS["typed"]), "--out", out)
    about = json.loads(pa.parquet.read_schema(out).metadata[b"pygsampler"])
    assert about["metapath"] == [0, 2] and about["edge_types"] == "t" and about["length"] == 6
    assert about["file"] == str(file) and about["walks"] == NODES


def test_rows_go_in_groups(
    run: Callable[..., Any], graph: Graph, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_files, "_VALUES", 350)
    out = file.with_name("w.parquet")
    run("walk", file, "--length", "6", "--batch-size", "120", "--out", out)
    assert pa.parquet.ParquetFile(out).num_row_groups > 4
    assert read(out)[0] == wanted(graph, {"length": 6}, np.arange(NODES), 120)[0]


def test_shuffled(run: Callable[..., Any], file: Path) -> None:
    orders = []
    for epoch in ("0", "1"):
        out = file.with_name("w.txt")
        run("walk", file, "--length", "0", "--shuffle", "--epoch", epoch, "--out", out)
        orders.append([v for (v,) in read(out)[0]])
    assert orders[0] != orders[1] != list(range(NODES))
    assert all(sorted(order) == list(range(NODES)) for order in orders)


def test_without_out_steps_are_counted(run: Callable[..., Any], file: Path) -> None:
    shown = run("walk", file, "--seeds", "1,2,3", "--length", "4", "--walks", "2").stdout
    assert "seeds  3 in 1 batches\n" in shown and "walks  6\n" in shown
    assert "written" not in shown
    assert [path.name for path in file.parent.iterdir()] == ["graph.pgs"]


def test_no_seeds(ask: Callable[..., Any], tmp_path: Path) -> None:
    Graph.from_csc([0], []).save(tmp_path / "none.pgs")
    for suffix in SUFFIXES:
        out = tmp_path / f"w{suffix}"
        found = ask("walk", tmp_path / "none.pgs", "--out", out)
        assert (found["walks"], found["steps"]) == (0, 0)
        assert read(out)[0] == []


def test_ids_are_those_of_where_the_graph_came_from(
    run: Callable[..., Any], graph: Graph, tmp_path: Path
) -> None:
    ids = np.random.default_rng(1).permutation(10**12 + 7 * np.arange(NODES))
    graph.save(tmp_path / "gaps.pgs", arrays={"node_ids": ids})
    want = wanted(graph, {"length": 5, "stop": 0.2}, np.array([3, 9, 200]), 1024)[0]
    seeds = ",".join(str(seed) for seed in ids[[3, 9, 200]])
    for suffix in SUFFIXES:
        out = tmp_path / f"w{suffix}"
        options = ["--length", "5", "--stop", "0.2", "--seeds", seeds]
        run("walk", tmp_path / "gaps.pgs", *options, "--out", out)
        assert read(out)[0] == [ids[row].tolist() for row in want]


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        (["--metapath", "a,b"], 2, "expected types like 0,1,0, got 'a,b'"),
        (["--metapath", "0"], 1, "metapath, edge_types: expected both or neither"),
        (["--metapath", "9", "--edge-types", "t"], 1, "metapath[0]: expected a type of edges"),
        (["--stop", "1.5"], 1, "stop: expected a number in [0, 1], got 1.5"),
        (["-p", "0"], 1, "p: expected a number above 0"),
        (["--prob", "none"], 1, "none"),
        (["--count-jumps"], 1, "count_jumps: expected False without restart"),
        (["--direction", "up"], 2, "'up'"),
        (["--length", "-1"], 2, "-1"),
        (["--out", "w.csv"], 2, "--out: expected a suffix of .parquet, .pq, .arrow"),
        (["--out", "no/w.npy"], 2, "no: no such folder"),
        (["--out", "w.txt", "--edge-ids"], 2, "--edge-ids: expected a suffix of .parquet"),
        (["--seeds", "0,5000"], 1, "seeds[1]: expected a node in"),
    ],
)
def test_what_is_refused(
    refused: Callable[..., str],
    file: Path,
    given: list[str],
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(file.parent)
    assert words in refused("walk", file, *given, ends_with=code)
    assert [path.name for path in file.parent.iterdir()] == ["graph.pgs"]


def test_what_is_read_is_not_written_over(refused: Callable[..., str], file: Path) -> None:
    seeds = file.with_name("seeds.txt")
    seeds.write_text("1\n2\n")
    said = refused("walk", file, "--seeds", seeds, "--out", seeds, ends_with=2)
    assert "--out: expected another file than --seeds" in said
    assert seeds.read_text() == "1\n2\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".txt"])
def test_a_signal_leaves_no_half_file(tmp_path: Path, number: int, code: int, suffix: str) -> None:
    """Hundreds of long walks of every package are billions of steps."""
    out = tmp_path / f"w{suffix}"
    out.write_text("before")
    command = [sys.executable, "-m", "pygsampler", "walk", "debian", "--length", "500"]
    command += ["--walks", "300", "--batch-size", "16", "--out", out.name]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while not any(path.stat().st_size > 1 << 20 for path in tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        stdout, err = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == code, err
    assert stdout == ""
    assert err.split() == (["Aborted!"] if number == signal.SIGINT else [])
    assert list(tmp_path.iterdir()) == [out] and out.read_text() == "before"


# Prints the most memory that the process has had, after the command.
PEAK = """
import resource, sys
from pygsampler.__main__ import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
"""


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".txt"])
def test_memory_is_that_of_the_batches(tmp_path: Path, suffix: str) -> None:
    """200 MB of vertices more take no more memory than some batches have."""
    peaks = []
    for seeds in ("0,1,2", "all"):
        out = tmp_path / f"w{suffix}"
        command = ["walk", "debian", "--walks", "6", "--seeds", seeds, "--out", str(out), "--json"]
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *command], capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        document, _, peak = done.stdout.strip().rpartition("\n")
        peaks.append(int(peak))
    assert json.loads(document)["walks"] * 81 * 8 > 200 << 20
    assert peaks[1] - peaks[0] < 100 << 20
