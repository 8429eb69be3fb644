"""Tables of weights in graph files: the samples of those that are made, and nothing is made."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import in_child
from graphs import as_lists, circulant

import pygsampler as pgs
from pygsampler._arrays.array import as_array
from pygsampler._graph import file_writer as graph_save
from pygsampler._graph import relation as relation_module
from pygsampler._graph.csc_arrays import CscArrays

NODES, EDGES = 100, 1500
RANDOM = np.random.default_rng(8)
SRC, DST = RANDOM.integers(0, NODES, (2, EDGES))
POSITIVE = RANDOM.exponential(size=EDGES)
# A third is never drawn, and neither are the edges of rows 0 to 9.
ZEROS = (POSITIVE * (RANDOM.random(EDGES) > 0.3) * (DST > 9)).astype("float32")
HEAD = 16


def in_memory(src: Any = SRC, dst: Any = DST) -> pgs.Graph:
    edges = {"p": POSITIVE, "z": ZEROS}
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data=edges)


def samples(graph: pgs.Graph, name: str, replace: bool = False, exclude: Any = None) -> Any:
    sampler = pgs.PGSampler([5, 20], seed=3, prob=name, replace=replace)
    batch = sampler.sample(graph, range(NODES), epoch=0, batch=0, exclude=exclude)
    return as_lists(batch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "graph"
    in_memory().save(path, tables=["p", "z"])
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arrays that tables are made of from now on."""
    names: list[str] = []
    make = relation_module.weight_tables

    def spy(graph: Any, name: str, *more: Any) -> CscArrays | None:
        names.append(name)
        return make(graph, name, *more)

    monkeypatch.setattr(relation_module, "weight_tables", spy)
    return names


@pytest.mark.parametrize("name", ["p", "z"])
def test_nothing_is_made_and_samples_are_the_same(path: Path, made: list[str], name: str) -> None:
    want = [samples(in_memory(), name), samples(in_memory(), name, replace=True)]
    exclude = samples(in_memory(), name, exclude=range(0, EDGES, 3))
    made.clear()
    opened = pgs.Graph.open(path, verify=True)
    again = pickle.loads(pickle.dumps(opened))
    held = pgs.engine.memory_stats()["live_bytes"]
    derived = opened._source._sampled_edges("prob", name)
    assert pgs.engine.memory_stats()["live_bytes"] == held
    for graph in (opened, again, opened.with_data({"more": POSITIVE})):
        assert [samples(graph, name), samples(graph, name, replace=True)] == want
        assert samples(graph, name, exclude=range(0, EDGES, 3)) == exclude
    assert in_child(lambda: samples(pgs.Graph.open(path), name)) == want[0]
    assert not made
    expected = in_memory()._source._sampled_edges("prob", name)._open()
    assert [part and part.tolist() for part in derived._source._open()] == [
        part and part.tolist() for part in expected
    ]
    assert opened.file_arrays == {}


def test_ids_of_both_widths(tmp_path: Path, made: list[str]) -> None:
    for dtype in ("int32", "int64"):
        graph = in_memory(SRC.astype(dtype), DST.astype(dtype))
        plain = pgs.Graph.from_csc(
            graph.indptr, graph.indices, num_nodes=NODES, edge_data={"z": ZEROS, "p": POSITIVE}
        )
        for source in (graph, plain):
            source.save(tmp_path / "graph", tables=["z", "p", "z"])
            want = [samples(source, name) for name in "pz"]
            made.clear()
            opened = pgs.Graph.open(tmp_path / "graph")
            assert [samples(opened, name) for name in "pz"] == want
            assert not made


def test_a_graph_without_edges(path: Path, made: list[str]) -> None:
    empty = pgs.Graph.from_csc([0, 0], [], edge_data={"w": np.zeros(0)})
    zeros = pgs.Graph.from_csc([0, 2], [0, 0], edge_data={"w": np.zeros(2)})
    for graph in (empty, zeros):
        graph.save(path, tables=["w"])
        made.clear()
        batch = pgs.PGSampler([3], seed=1, prob="w").sample(pgs.Graph.open(path), [0])
        assert len(batch.blocks[0].indices) == 0
        assert not made


def test_they_stay_when_an_opened_graph_is_saved(path: Path, made: list[str]) -> None:
    before = path.read_bytes()
    pgs.Graph.open(path).save(path)
    assert path.read_bytes() == before
    assert not made
    pgs.Graph.open(path).save(path, tables=[])
    assert len(path.read_bytes()) < len(before) - 16 * EDGES
    samples(pgs.Graph.open(path), "p")
    assert made == ["edata['p']"]


def test_other_weights_have_other_tables(path: Path, made: list[str]) -> None:
    other = pgs.Graph.open(path).with_data({"p": POSITIVE[::-1].copy()})
    want = samples(in_memory().with_data({"p": POSITIVE[::-1].copy()}), "p")
    made.clear()
    assert samples(other, "p") == want
    assert made == ["edata['p']"]
    other.save(path)
    assert samples(pgs.Graph.open(path), "p") == want


def section(path: Path, name: str) -> bytes:
    """As a reader has it who knows nothing of tables."""
    pages = pgs.Graph.open(path)._source._file
    found = {one["name"]: one for one in pages.header["sections"]}[name]
    return path.read_bytes()[found["offset"] :][: found["bytes"]]


@pytest.mark.parametrize("what", ["weights", "edges"])
def test_those_that_another_writer_left_behind(path: Path, made: list[str], what: str) -> None:
    """Older versions copy sections that they do not know beside arrays that may be others."""
    tables = np.frombuffer(section(path, "tables.p"), "int64")
    src, weights = (SRC, POSITIVE[::-1].copy()) if what == "weights" else (DST, POSITIVE)
    graph = pgs.Graph.from_coo(src, DST, num_nodes=NODES, edge_data={"p": weights})
    arrays = {"edge_data.p": graph.edata["p"], "tables.p": as_array(tables, "tables")}
    sections = graph_save.csc_sections(graph._source._open())
    graph_save.write_graph_file(str(path), {**sections, **arrays}, NODES, False)
    opened = pgs.Graph.open(path)
    assert samples(opened, "p") == samples(graph, "p")
    assert made == ["edata['p']"] * 2
    assert opened.file_arrays == {}


def test_a_newer_layout_is_not_read(path: Path, made: list[str]) -> None:
    damage(path, "tables.p", 1, 2)
    assert samples(pgs.Graph.open(path), "p") == samples(in_memory(), "p")
    assert made == ["edata['p']"] * 2


def damage(path: Path, name: str, word: int, value: int) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(section(path, name)) + 8 * word
    data[at : at + 8] = value.to_bytes(8, "little", signed=True)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "word", "value"),
    [
        ("p", 2, EDGES + 1),
        ("p", 2, -1),
        ("p", 4, 128),
        ("p", 7, 0),
        ("p", 7, 120),
        ("p", 8, 1 << 40),
        ("z", 2, EDGES),
        ("z", 3, 16),
        ("z", 4, -64),
        ("z", 5, 0),
    ],
)
def test_a_head_that_cannot_be(path: Path, name: str, word: int, value: int) -> None:
    damage(path, f"tables.{name}", word, value)
    opened = pgs.Graph.open(path)
    with pytest.raises(ValueError, match=rf"section 'tables.{name}': expected tables for the 1500"):
        samples(opened, name)
    with pytest.raises(ValueError, match="the file is damaged"):
        pgs.Graph.open(path, verify=True)


@pytest.mark.parametrize("value", [0, -1, 1 << 62])
def test_damaged_tables_do_not_end_or_hang_the_process(path: Path, value: int) -> None:
    whole = len(section(path, "tables.p")) // 8
    data = bytearray(path.read_bytes())
    at = data.index(section(path, "tables.p"))
    data[at + 8 * HEAD : at + 8 * whole] = value.to_bytes(8, "little", signed=True) * (whole - HEAD)
    path.write_bytes(data)
    for replace in (False, True):
        sampler = pgs.PGSampler([5, 20], seed=3, prob="p", replace=replace)
        try:
            sampler.sample(pgs.Graph.open(path), range(NODES))
        except Exception as error:
            assert "range" in str(error), error


def test_an_array_of_that_name(path: Path) -> None:
    mine = np.arange(40)
    in_memory().save(path, arrays={"tables.p": mine, "tables.q": [1]})
    opened = pgs.Graph.open(path)
    assert opened.file_arrays["tables.p"].tolist() == mine.tolist()
    assert samples(opened, "p") == samples(in_memory(), "p")
    with pytest.raises(
        ValueError, match=r"tables: expected a graph file without the array 'tables\.p'"
    ):
        opened.save(path, tables=["p"])


@pytest.mark.parametrize(
    ("tables", "error", "text"),
    [
        (["x"], ValueError, r"tables\[0\]: expected the name of an edge array .*'p', 'z'.*got 'x'"),
        (["p", 3], TypeError, r"tables\[1\]: expected a name of type str, got int"),
        ("p", TypeError, "tables: expected a list of names, got str"),
        (7, TypeError, "tables: expected a list of names, got int"),
        (["rows"], ValueError, "expected a value for each edge"),
        (["bad"], ValueError, r"edata\['bad'\]\[7\]: expected a finite weight"),
    ],
)
def test_names_that_are_none(path: Path, tables: Any, error: type[Exception], text: str) -> None:
    before, bad = path.read_bytes(), POSITIVE.copy()
    bad[7] = np.nan
    graph = in_memory().with_data({"rows": np.zeros((EDGES, 2)), "bad": bad})
    with pytest.raises(error, match=text):
        graph.save(path, tables=tables)
    assert path.read_bytes() == before


def test_a_graph_without_arrays(path: Path) -> None:
    with pytest.raises(ValueError, match=r"of the graph \(none\), got 'w'"):
        circulant(5, 2).save(path, tables=["w"])
