"""``convert``: edges become a graph file, as a whole or not at all."""

from __future__ import annotations

import gzip
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skewed_graph import edges

from pygsampler import Features, Graph
from pygsampler._cli.commands.convert import QUANTIZED
from pygsampler._features import quantization
from pygsampler.datasets import Ogb, debian


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "edges.csv"
    lines = [f"{u},{v},0.5" for u, v in zip(*edges(), strict=True)]
    path.write_text("\n".join(["from,to,weight", *lines]) + "\n")
    return path


def same(graph: Graph, other: Graph) -> None:
    for name in ("indptr", "indices", "edge_ids"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(other, name))


def test_a_list_of_edges(ask: Callable[..., Any], graph: Graph, csv: Path) -> None:
    out = csv.with_name("g.pgs")
    options = ["--src", "from", "--dst", "to", "--num-nodes", "500"]
    found = ask("convert", csv, out, *options)
    assert (found["num_nodes"], found["num_edges"]) == (500, 6000)
    assert found["bytes"] == out.stat().st_size
    with Graph.open(out, verify=True) as opened:
        same(opened, graph)


def test_columns_are_kept(ask: Callable[..., Any], csv: Path) -> None:
    out = csv.with_name("g.pgs")
    found = ask("convert", csv, out, "--edge-data", "weight", "--edge-data", "0")
    assert found["arrays"] == ["edge_data.0", "edge_data.weight"]
    with Graph.open(out, verify=True) as opened:
        assert opened.edata["weight"].tolist() == [0.5] * 6000
        assert opened.edata["0"].tolist() == edges()[0].tolist()


def test_columns_by_number_and_both_directions(
    run: Callable[..., Any], csv: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "edges.txt.gz"
    lines = csv.read_text().replace(",", "\t").splitlines()[1:]
    packed.write_bytes(gzip.compress("\n".join(["# from to", *lines]).encode()))
    out = tmp_path / "g.pgs"
    shown = run("convert", packed, out, "--format", "snap", "--undirected", "--no-renumber").stdout
    assert shown.splitlines()[0] == str(out)
    src, dst = edges()
    # A self loop is its own reverse.
    count = 12000 - (src == dst).sum()
    assert re.search(rf"edges +{count:,}\n", shown)
    with Graph.open(out) as opened:
        assert opened.num_edges == count


def test_gaps_are_kept_as_a_map(ask: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("# two\n7 900\n900 12\n")
    found = ask("convert", tmp_path / "edges.txt", tmp_path / "g.pgs", "--dtype", "int32")
    assert (found["num_nodes"], found["dtype"], found["arrays"]) == (3, "int32", ["node_ids"])
    sampled = ask("sample", tmp_path / "g.pgs", "--seeds", "900,12")
    assert sampled["edges_by_hop"] == [2, 2]


def test_no_edges_are_told(run: Callable[..., Any], tmp_path: Path) -> None:
    source = tmp_path / "edges.csv"
    source.write_text("src,dst\n")
    told = run("convert", source, tmp_path / "g.pgs", "--json")
    assert told.stderr == f"Note: {source} has no edges\n"
    assert json.loads(told.stdout)["num_edges"] == 0


def test_errors_and_notes_name_options(
    run: Callable[..., Any], refused: Callable[..., str], tmp_path: Path
) -> None:
    source, out = tmp_path / "e.csv", tmp_path / "g.pgs"
    source.write_text("at,a,b\n9,0,1000000\n")
    assert refused("convert", source, out) == (
        "e.csv: expected --src and --dst, as no pair of columns has a usual name; "
        "the columns are at, a, b"
    )
    assert "expected --dst in addition to --src, since no" in refused(
        "convert", source, out, "--src", "a"
    )
    told = run("convert", source, out, "--src", "a", "--dst", "b", "--json")
    assert told.stderr == (
        "Note: e.csv: 1,000,001 nodes for 1 edge; --renumber numbers those that have edges\n"
    )
    assert json.loads(told.stdout)["num_nodes"] == 1_000_001
    (tmp_path / "e.txt").write_text("0,1\n")
    assert refused("convert", tmp_path / "e.txt", out).endswith(
        "; --format csv reads fields between commas"
    )


def test_data_sets_of_ogb(
    ask: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: Graph
) -> None:
    asked = []

    def ogb(name: str, *, root: Path) -> Any:
        asked.append((name, root))
        return Ogb(name, graph, labels=np.arange(500), train=np.arange(9))

    monkeypatch.setattr("pygsampler.datasets.ogb", ogb)
    found = ask("convert", "ogbn-small", tmp_path / "g.pgs", "--root", tmp_path)
    assert asked == [("ogbn-small", tmp_path)]
    assert (found["num_edges"], found["arrays"]) == (6000, ["labels", "train"])


def test_debian(ask: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "debian.pgs"
    found = ask("convert", "debian", out)
    data = debian()
    with Graph.open(out) as opened:
        same(opened, data.graph())
        np.testing.assert_array_equal(opened.file_arrays["labels"], data.labels)
        offsets = np.asarray(opened.file_arrays["node_names.offsets"])
        names = bytes(np.asarray(opened.file_arrays["node_names.bytes"]))
        assert names[offsets[7] : offsets[8]].decode() == data.names[7]
        assert found["arrays"] == sorted(opened.file_arrays)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"from,to\n1,2\n3,x\n", "edges.csv:3"), (b"from,to\n1,-2\n", "got '-2'")],
)
def test_an_error_leaves_what_was_there(
    refused: Callable[..., str], tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "edges.csv").write_bytes(content)
    out = tmp_path / "g.pgs"
    Graph.from_csc([0, 1], [0]).save(out)
    before = out.read_bytes()
    assert words in refused("convert", tmp_path / "edges.csv", out)
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "g.pgs"]


@pytest.mark.parametrize("source", ["a.csv", "debian"])
def test_no_list_of_edges_is_replaced(
    refused: Callable[..., str], tmp_path: Path, source: str
) -> None:
    """As by ``convert *.csv`` in a folder with two files."""
    a, b = tmp_path / "a.csv", tmp_path / "b.csv"
    a.write_text("0,1\n")
    b.write_text("1,2\n")
    said = refused("convert", a if source == "a.csv" else source, b, ends_with=2)
    assert said.startswith(
        f"target: expected a new file or a graph file to replace, got {str(b)!r}, which is neither"
    )
    assert (a.read_text(), b.read_text()) == ("0,1\n", "1,2\n")


def test_a_folder_that_is_not_there(refused: Callable[..., str], csv: Path) -> None:
    out = csv.with_name("none") / "g.pgs"
    assert refused("convert", csv, out) == f"{out}: there is no folder {str(out.parent)!r}"


def test_a_list_of_edges_is_told_from_its_graph(refused: Callable[..., str], csv: Path) -> None:
    for command in ("info", "bench"):
        assert '"pygsampler convert", make one of a list of edges' in refused(command, csv)


@pytest.mark.parametrize("name", ["none.csv", "none"])
def test_what_is_not_there(refused: Callable[..., str], tmp_path: Path, name: str) -> None:
    said = refused("convert", tmp_path / name, tmp_path / "g.pgs")
    assert said == f"{tmp_path / name}: No such file or directory"
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_no_half_file(tmp_path: Path) -> None:
    """The file is large enough that it is interrupted before its end."""
    source = tmp_path / "edges.csv"
    numbers = np.random.default_rng(0).integers(0, 10**6, (1 << 18, 2))
    block = "\n".join(f"{u},{v}" for u, v in numbers.tolist()) + "\n"
    with open(source, "w") as file:
        file.write("src,dst\n")
        for _ in range(24):
            file.write(block)
    command = [sys.executable, "-m", "pygsampler", "convert", "edges.csv", "g.pgs"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        # Until it writes: to its own file, or to what it sorts with.
        while len(list(tmp_path.iterdir())) == 1:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130, err
    assert (out, err.split()) == ("", ["Aborted!"])
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_features_are_kept_and_quantized(ask: Callable[..., Any], csv: Path) -> None:
    out, rows = csv.with_name("g.pgs"), csv.with_name("x.npy")
    x = np.random.default_rng(1).normal(size=(500, 12)).astype(np.float32)
    np.save(rows, x)
    options = ["--num-nodes", "500", "--edge-data", "weight", "--features", f"x={rows}"]
    assert "x" in ask("convert", csv, out, *options)["arrays"]
    assert np.asarray(Features.open(out, "x")[np.arange(500)]).tobytes() == x.tobytes()
    for kind in QUANTIZED:
        found = ask("convert", csv, out, *options, "--quantize", kind)
        features = Features.open(out, "x")
        assert features.stored_dtype == kind and "edge_data.weight" in found["arrays"]
        there = Features.from_tensor(x).quantize(kind)[np.arange(500)]
        assert np.array_equal(features[np.arange(500)], there)
        with Graph.open(out, verify=True) as opened:
            assert opened.num_edges == 6000
    assert [each.name for each in csv.parent.iterdir() if each.name.startswith(".")] == []


def test_features_that_do_not_fit(run: Callable[..., Any], csv: Path) -> None:
    out, rows = csv.with_name("g.pgs"), csv.with_name("x.npy")
    np.save(rows, np.ones((7, 3), np.float32))
    given = ["--features", f"x={rows}"]
    for options, message in (
        (given, "expected a row for each of 480 nodes, got 7"),
        (["--features", "x"], "expected NAME=FILE"),
        (["--features", f"x={csv}"], "ends with .npy"),
        (["--quantize", "int8"], "expected --features"),
        (["--quantize", "int3", *given], "Invalid value for '--quantize'"),
        ([*given, "--types", "a,b,c"], "expected none for a heterogeneous graph"),
    ):
        result = run("convert", csv, out, *options, ends_with=2)
        assert message in " ".join(result.output.split())
        assert not out.exists()


def test_kinds_are_those_of_features() -> None:
    assert tuple(quantization._KINDS) == QUANTIZED
