"""The graph by its out-edges in graph files: mapped, and used for the edges that it was made of."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import in_child

import pygsampler as pgs
from pygsampler._arrays.array import as_array
from pygsampler._graph import file_writer as graph_save
from pygsampler._graph import relation as relation_module

NODES, EDGES = 100, 1500
RANDOM = np.random.default_rng(8)
SRC, DST = RANDOM.integers(0, NODES - 3, (2, EDGES))
WEIGHTS = RANDOM.exponential(size=EDGES) * (RANDOM.random(EDGES) > 0.3)
WIDTHS = [("int32", False), ("int64", False), ("int64", True)]


def in_memory(dtype: str = "int64", plain: bool = False, dst: Any = DST) -> pgs.Graph:
    graph = pgs.Graph.from_coo(SRC.astype(dtype), dst.astype(dtype), num_nodes=NODES)
    ids = None if plain else graph.edge_ids
    return pgs.Graph.from_csc(
        graph.indptr, graph.indices, edge_ids=ids, num_nodes=NODES, edge_data={"w": WEIGHTS}
    )


def arrays(graph: pgs.Graph) -> list[Any]:
    return [part and part.tolist() for part in graph._source._open()]


def forms(graph: pgs.Graph) -> list[Any]:
    """All forms that walk along out-edges, and what is behind them."""
    walked = graph._source._walked
    found = [walked("out", prob, second=second) for prob in (None, "w") for second in (0, 1)]
    return [arrays(form) for form in found] + [arrays(form._back) for form in found[1::2]]  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "graph"
    in_memory().save(path, out_edges=True, tables=["w"])
    return path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of edges of the graphs that are transposed from now on."""
    edges: list[int] = []
    make = relation_module.transpose

    def spy(graph: Any, *more: Any, **options: Any) -> Any:
        edges.append(graph.num_edges)
        return make(graph, *more, **options)

    monkeypatch.setattr(relation_module, "transpose", spy)
    return edges


@pytest.mark.parametrize(("dtype", "plain"), WIDTHS)
def test_nothing_is_made(path: Path, made: list[int], dtype: str, plain: bool) -> None:
    graph = in_memory(dtype, plain)
    want = forms(graph)
    graph.save(path, out_edges=True)
    made.clear()
    opened = pgs.Graph.open(path, verify=True)
    held = pgs.engine.memory_stats()["live_bytes"]
    out = opened._source._walked("out")
    assert pgs.engine.memory_stats()["live_bytes"] == held
    assert out._handle() > 0
    again = pickle.loads(pickle.dumps(opened))
    for one in (opened, again, opened.with_data({"more": WEIGHTS})):
        assert arrays(one._source._walked("out")) == want[0]
    assert in_child(lambda: arrays(pgs.Graph.open(path)._source._walked("out"))) == want[0]
    assert not made
    # Tables and what is behind are those of the out-edges, not those that the file has.
    assert forms(opened) == want
    assert opened.file_arrays == {}


def test_it_stays_when_an_opened_graph_is_saved(path: Path, made: list[int]) -> None:
    before = path.read_bytes()
    pgs.Graph.open(path).save(path)
    assert path.read_bytes() == before
    assert not made
    pgs.Graph.open(path).save(path, out_edges=False)
    assert len(path.read_bytes()) < len(before) - 16 * EDGES
    pgs.Graph.open(path)._source._walked("out")
    assert made == [EDGES]
    pgs.Graph.open(path).save(path, out_edges=True)
    assert path.read_bytes() == before
    in_memory().save(path)
    assert len(path.read_bytes()) < len(before) - 16 * EDGES


def section(path: Path) -> bytes:
    """As a reader has it who knows nothing of it."""
    pages = pgs.Graph.open(path)._source._file
    assert pages is not None
    found = {one["name"]: one for one in pages.header["sections"]}["out_edges"]
    return path.read_bytes()[found["offset"] :][: found["bytes"]]


@pytest.mark.parametrize("what", ["edges", "vertices"])
def test_one_that_another_writer_left_behind(path: Path, made: list[int], what: str) -> None:
    """Older versions copy sections that they do not know beside a graph that may be another."""
    words = np.frombuffer(section(path), "int64")
    graph = in_memory(dst=DST[::-1].copy()) if what == "edges" else in_memory()
    nodes = NODES if what == "edges" else NODES + 1
    beside = {"out_edges": as_array(words, "out_edges")}
    sections = graph_save.csc_sections(graph._source._open())
    graph_save.write_graph_file(str(path), {**sections, **beside}, nodes, False)
    opened = pgs.Graph.open(path)
    out = opened._source._walked("out")
    assert made == [EDGES]
    assert opened.file_arrays == {}
    assert len(out.indptr) == nodes + 1
    assert arrays(out)[1:] == arrays(graph._source._walked("out"))[1:]


def damage(path: Path, word: int, value: int) -> None:
    data = bytearray(path.read_bytes())
    at = data.index(section(path)) + 8 * word
    data[at : at + 8] = value.to_bytes(8, "little", signed=True)
    path.write_bytes(data)


@pytest.mark.parametrize(("word", "value"), [(1, 2), (2, NODES + 1), (8, 0), (9, 0), (10, 0)])
def test_one_of_a_newer_layout_or_other_edges(
    path: Path, made: list[int], word: int, value: int
) -> None:
    damage(path, word, value)
    opened = pgs.Graph.open(path)._source._walked("out")
    assert arrays(opened) == arrays(in_memory()._source._walked("out"))
    assert made == [EDGES] * 2


@pytest.mark.parametrize(
    ("word", "value"),
    [(3, EDGES - 1), (3, -1), (4, 16), (5, 0), (5, -64), (6, 120), (6, 1 << 40), (7, 1 << 40)],
)
def test_a_head_that_cannot_be(path: Path, word: int, value: int) -> None:
    damage(path, word, value)
    with pytest.raises(ValueError, match=r"section 'out_edges': expected out-edges for the 1500"):
        pgs.Graph.open(path)._source._walked("out")
    with pytest.raises(ValueError, match="the file is damaged"):
        pgs.Graph.open(path, verify=True)


@pytest.mark.parametrize("value", [-1, 1 << 40])
def test_damaged_arrays_do_not_end_the_process(path: Path, value: int) -> None:
    whole = len(section(path)) // 8
    data = bytearray(path.read_bytes())
    at = data.index(section(path))
    # All but the head and the ends of indptr, which are looked at.
    rows = 16 + -(-(NODES + 1) // 8) * 8
    data[at + 8 * rows : at + 8 * whole] = value.to_bytes(8, "little", signed=True) * (whole - rows)
    path.write_bytes(data)
    graph = pgs.Graph.open(path)
    assert graph._source._walked("out")._handle() > 0
    for about in ({"prob": "w"}, {"second": True}, {"second": True, "prob": "w"}):
        with pytest.raises((pgs.Error, ValueError), match=r"range|expected"):
            pgs.Graph.open(path)._source._walked("out", **about)  # type: ignore[arg-type]


def test_an_array_of_that_name(path: Path, made: list[int]) -> None:
    in_memory().save(path, arrays={"out_edges": [1, 2, 3]})
    opened = pgs.Graph.open(path)
    assert opened.file_arrays["out_edges"].tolist() == [1, 2, 3]
    assert arrays(opened._source._walked("out")) == arrays(in_memory()._source._walked("out"))
    assert len(made) == 2
    with pytest.raises(
        ValueError, match="out_edges: expected a graph file without the array 'out_edges'"
    ):
        opened.save(path, out_edges=True)
    opened.save(path)
    assert list(pgs.Graph.open(path).file_arrays) == ["out_edges"]


def test_what_is_no_bool(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(TypeError, match=r"out_edges: expected True or False, got str .yes"):
        in_memory().save(path, out_edges="yes")  # type: ignore[arg-type]
    assert path.read_bytes() == before


def test_a_graph_without_edges(path: Path, made: list[int]) -> None:
    for graph in (pgs.Graph.from_csc([0], []), pgs.Graph.from_csc([0, 0], [], num_nodes=3)):
        graph.save(path, out_edges=True)
        made.clear()
        out = pgs.Graph.open(path)._source._walked("out")
        assert out.indptr.tolist() == [0] * (graph.num_nodes + 1)
        assert out._handle() > 0
        assert not made
