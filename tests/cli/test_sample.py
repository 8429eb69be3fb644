"""``sample``: the table holds the batches of PGSampler, in original ids, as a whole or not."""

from __future__ import annotations

import json
import os
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

from pygsampler import Graph, PGSampler
from pygsampler._cli import edge_table as table_of_edges
from pygsampler._cli.atomic_file import atomic_write

pa = partner("pyarrow")
partner("pyarrow.parquet")


def read(path: Path) -> Any:
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path)
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def expected(graph: Graph, seeds: np.ndarray, size: int, sampler: PGSampler) -> list[np.ndarray]:
    """Columns from the arrays of the batches, one by one."""
    rows = []
    for number, first in enumerate(range(0, len(seeds), size)):
        batch = sampler.sample(graph, seeds[first : first + size], epoch=2, batch=number)
        nodes = batch.input_nodes.numpy()
        for hop, block in enumerate(reversed(batch.blocks)):
            src, dst = (nodes[ids.numpy()] for ids in block.coo())
            same = np.full(len(src), number), np.full(len(src), hop)
            rows.append(np.stack([*same, src, dst, block.edge_ids.numpy()]))
    return list(np.concatenate(rows, axis=1))


@pytest.mark.parametrize(("suffix", "frontier"), [(".parquet", "all"), (".arrow", "new")])
def test_table_is_the_batches(
    ask: Callable[..., Any],
    graph: Graph,
    file: Path,
    tmp_path: Path,
    suffix: str,
    frontier: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_of_edges, "_ROWS", 700)
    out = tmp_path / f"sample{suffix}"
    out.write_text("what was there before")
    options = ["--fanouts", "3,2,4", "--batch-size", "150", "--seed", "9", "--epoch", "2"]
    options += ["--frontier", frontier, "--out", str(out)]
    found = ask("sample", file, "--seeds", "all", *options)
    sampler = PGSampler([3, 2, 4], seed=9, frontier=frontier)
    columns = expected(graph, np.arange(NODES), 150, sampler)
    table = read(out)
    assert table.schema.names == ["batch", "hop", "src", "dst", "edge_id"]
    assert [str(kind) for kind in table.schema.types] == ["int64", "int16", *["int64"] * 3]
    for name, values in zip(table.schema.names, columns, strict=True):
        np.testing.assert_array_equal(table[name].to_numpy(), values)
    assert (found["seeds"], found["batches"]) == (NODES, 4)
    assert found["edges"] == len(columns[0]) == sum(found["edges_by_hop"])
    assert found["edges_by_hop"] == np.bincount(columns[1]).tolist()
    assert found["bytes"] == out.stat().st_size
    about = json.loads(table.schema.metadata[b"pygsampler"])
    assert about["fanouts"] == [3, 2, 4] and about["seed"] == 9 and about["batches"] == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph.pgs", out.name]


def test_edges_are_those_of_the_graph(run: Callable[..., Any], graph: Graph, file: Path) -> None:
    """Read back by their ids, sources and destinations are the graph's."""
    out = file.with_name("s.parquet")
    run("sample", file, "--seeds", "0,7,30", "--fanouts", "-1,5", "--replace", "--out", out)
    table = read(out)
    src, dst, ids = (table[name].to_numpy() for name in ("src", "dst", "edge_id"))
    owner = np.repeat(np.arange(NODES), np.diff(graph.indptr.numpy()))
    by_id = np.argsort(graph.edge_ids.numpy())[ids]
    np.testing.assert_array_equal(graph.indices.numpy()[by_id], src)
    np.testing.assert_array_equal(owner[by_id], dst)


def test_without_out_they_are_counted(run: Callable[..., Any], file: Path) -> None:
    shown = run("sample", file, "--seeds", "1,2,3").stdout
    assert "seeds  3 in 1 batches\n" in shown
    assert "written" not in shown
    assert [path.name for path in file.parent.iterdir()] == ["graph.pgs"]


def test_no_seeds_make_an_empty_table(ask: Callable[..., Any], tmp_path: Path) -> None:
    Graph.from_csc([0], []).save(tmp_path / "none.pgs")
    out = tmp_path / "s.arrow"
    found = ask("sample", tmp_path / "none.pgs", "--seeds", "all", "--out", out)
    assert (found["batches"], found["edges"], read(out).num_rows) == (0, 0, 0)


def write_seeds(folder: Path, ids: list[int]) -> dict[str, Path]:
    column = pa.array(ids, pa.int32())
    files = {name: folder / f"seeds.{name}" for name in ("txt", "npy", "parquet", "arrow")}
    files["txt"].write_text("# of today\n" + "".join(f"{seed}\n" for seed in ids) + "\n")
    np.save(files["npy"], np.array(ids, np.uint16))
    pa.parquet.write_table(pa.table({"weight": [0.5] * len(ids), "node": column}), files["parquet"])
    table = pa.table({"any": column})
    with pa.ipc.new_file(str(files["arrow"]), table.schema) as writer:
        writer.write_table(table)
    for name, other in (("pq", "parquet"), ("ipc", "arrow")):
        files[name] = folder / f"seeds.{name}"
        files[name].write_bytes(files[other].read_bytes())
    return files


def test_seeds_of_every_kind(ask: Callable[..., Any], file: Path, tmp_path: Path) -> None:
    ids = [5, 17, 5, 400]
    given = ["5,17,5,400", "5, 17, 5, 400,", *write_seeds(tmp_path, ids).values()]
    found = [ask("sample", file, "--seeds", seeds)["edges_by_hop"] for seeds in given]
    assert found == [found[0]] * len(given) and found[0][0] > 10


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", b"1\n2\nthree\n", "a.txt, line 3: expected an integer of 64 bits, got 'three'"),
        ("a.txt", b"1\n99999999999999999999\n", "line 2: expected an integer of 64 bits"),
        ("a.txt", b"\xff\xfe\x00", "expected text with an id on each line, got bytes"),
        ("a.npy", b"not that", "a.npy"),
        ("a.parquet", b"not that", "a.parquet: expected a whole Parquet file, got "),
        ("a.arrow", b"not that", "a.arrow: expected a whole Arrow IPC file, got "),
        ("a.arrow", b"", "a.arrow: expected a whole Arrow IPC file, got "),
    ],
)
def test_seeds_that_are_none(
    refused: Callable[..., str], file: Path, name: str, content: bytes, words: str
) -> None:
    seeds = file.with_name(name)
    seeds.write_bytes(content)
    assert words in refused("sample", file, "--seeds", seeds)


@pytest.mark.parametrize("given", ["FILE", "--seeds"])
def test_what_is_read_is_not_written_over(
    refused: Callable[..., str], file: Path, tmp_path: Path, given: str
) -> None:
    graph = file.rename(tmp_path / "g.arrow") if given == "FILE" else file
    seeds = write_seeds(tmp_path, [1, 2])["arrow"]
    out = graph if given == "FILE" else seeds
    before = out.read_bytes()
    said = refused("sample", graph, "--seeds", seeds, "--out", out, ends_with=2)
    assert f"--out: expected another file than {given}" in said
    assert out.read_bytes() == before


def test_seeds_outside_the_graph(refused: Callable[..., str], file: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.arrow"
    said = refused("sample", file, "--seeds", f"1,{NODES}", "--out", out)
    assert said == f"seeds[1]: expected a node in [0, {NODES}), got {NODES}"
    assert not out.exists()


def test_ids_are_those_of_where_the_graph_came_from(
    ask: Callable[..., Any], refused: Callable[..., str], graph: Graph, tmp_path: Path
) -> None:
    ids = np.random.default_rng(1).permutation(10**12 + 7 * np.arange(NODES))
    graph.save(tmp_path / "gaps.pgs", arrays={"node_ids": ids})
    graph.save(tmp_path / "plain.pgs")
    tables = []
    for name, seeds in (("gaps", ids[[3, 9, 200]]), ("plain", [3, 9, 200])):
        out = tmp_path / f"{name}.parquet"
        text = ",".join(str(seed) for seed in seeds)
        ask("sample", tmp_path / f"{name}.pgs", "--seeds", text, "--out", out)
        tables.append(read(out))
    gaps, plain = tables
    assert gaps.num_rows > 20
    for name in ("src", "dst"):
        np.testing.assert_array_equal(gaps[name].to_numpy(), ids[plain[name].to_numpy()])
    assert gaps["edge_id"].equals(plain["edge_id"])
    said = refused("sample", tmp_path / "gaps.pgs", "--seeds", f"{ids[0]},12")
    assert said == "seeds[1]: expected the original id of a node, got 12"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_half_file(tmp_path: Path, number: int, code: int) -> None:
    """Three hops of all neighbours of every package are billions of edges."""
    command = [sys.executable, "-m", "pygsampler", "sample", "debian", "--seeds", "all"]
    command += ["--fanouts", "-1,-1,-1", "--batch-size", "8", "--out", "s.arrow"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        while not any(path.stat().st_size > 1 << 20 for path in tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        out, err = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == code, err
    assert out == ""
    assert err.split() == (["Aborted!"] if number == signal.SIGINT else [])
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("before")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "before"
    with atomic_write(path) as temporary:
        temporary.write_text("whole")
        assert path.read_text() == "before"
    assert path.read_text() == "whole"
    assert os.listdir(tmp_path) == ["out"]
