"""Files of graphs with types."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import in_child

import pygsampler as pgs

WRITES, CITES, IN = ("a", "writes", "p"), ("p", "cites", "p"), ("p", "in", "venue")


def make(dtype: str) -> pgs.HeteroGraph:
    """A graph with every kind of array, a relation without edges and a type without relations."""
    random = np.random.default_rng(3)
    sizes = {"p": 70, "a": 30, "venue": 90, "alone": 2}

    def edges(kind: tuple[str, str, str], count: int) -> tuple[Any, Any]:
        ends = (random.integers(0, sizes[kind[side]], count) for side in (0, 2))
        src, dst = (ids.astype(dtype) for ids in ends)
        return src, dst

    return pgs.HeteroGraph.from_coo(
        {WRITES: edges(WRITES, 300), CITES: edges(CITES, 500), IN: edges(IN, 0)},
        sizes,
        edge_data={CITES: {"w": random.random(500), "m": random.random(500) < 0.5}},
        node_data={"p": {"x": random.random((70, 4), np.float32)}, "alone": {"y": [[1], [2]]}},
    )


def as_lists(graph: pgs.HeteroGraph, **options: Any) -> list[Any]:
    """What two hops are, from two types."""
    sampler = pgs.PGSampler([4, 3], seed=5, **options)
    batch = sampler.sample(graph, {"p": [1, 5, 7], "venue": [0, 89]}, batch=2)
    blocks = [
        [array.tolist() for array in (block.indptr, block.indices, block.edge_ids)]
        for hop in batch.blocks
        for block in hop.values()
    ]
    return [{kind: ids.tolist() for kind, ids in batch.input_nodes.items()}, blocks]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "typed.pgs"


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_graph_comes_back_as_it_was(path: Path, dtype: str) -> None:
    graph = make(dtype)
    graph.save(path)
    with pgs.HeteroGraph.open(path, verify=True) as opened:
        assert repr(opened) == repr(graph)
        assert (opened.node_types, opened.edge_types) == (graph.node_types, graph.edge_types)
        assert opened.path == path
        assert graph.path is None
        for plan in ({}, {"prob": "w"}, {"mask": "m"}):
            assert as_lists(opened, **plan) == as_lists(graph, **plan)
        for mine, theirs in ((opened.edata, graph.edata), (opened.ndata, graph.ndata)):
            found, expected = (
                {
                    kind: {name: each.tolist() for name, each in of.items()}
                    for kind, of in data.items()
                }
                for data in (mine, theirs)
            )
            assert found == expected
        assert opened[CITES].indices.readonly
        # Over the file that it is mapped from.
        opened.save(path)
        assert as_lists(opened) == as_lists(graph)
    with pytest.raises(pgs.errors.ClosedError):
        opened.save(path)


def test_an_opened_graph_is_pickled_by_its_path(path: Path) -> None:
    make("int64").save(path)
    opened = pgs.HeteroGraph.open(path)
    sent = pickle.dumps(opened)
    assert len(sent) < 300
    expected = as_lists(opened)
    assert in_child(lambda: as_lists(opened)) == expected
    assert as_lists(pickle.loads(sent)) == expected
    relation = pickle.loads(pickle.dumps(opened[CITES]))
    assert relation.indices.tolist() == opened[CITES].indices.tolist()
    assert relation.edata["w"].tolist() == opened.edata[CITES]["w"].tolist()
    rows = pickle.loads(pickle.dumps(opened.ndata["p"]["x"]))
    assert rows.tolist() == opened.ndata["p"]["x"].tolist()
    # And by its arrays where it is made of relations of a file.
    some = pgs.HeteroGraph({CITES: opened[CITES]})
    assert pickle.loads(pickle.dumps(some)).num_edges == {CITES: 500}
    pgs.HeteroGraph({CITES: opened[CITES]}, {"p": 71}).save(path)
    with pytest.raises(ValueError, match="got another one of that name"):
        pickle.loads(sent)


def test_each_kind_of_file_has_its_own_open(path: Path) -> None:
    graph = make("int32")
    graph.save(path)
    with pytest.raises(ValueError, match=r"expected a graph without types.*HeteroGraph\.open"):
        pgs.Graph.open(path)
    with pytest.raises(ValueError, match=r"expected a graph without types.*HeteroGraph\.open"):
        pgs.Features.open(path, "x")
    graph[CITES].save(path)
    with pytest.raises(ValueError, match=r"expected a graph with types.*Graph\.open"):
        pgs.HeteroGraph.open(path)
    with pytest.raises(FileNotFoundError):
        pgs.HeteroGraph.open(path.parent / "none")
    with pytest.raises(ValueError, match="1 to 63 bytes"):
        long = {CITES: {"w" * 53: graph.edata[CITES]["w"]}}
        pgs.HeteroGraph({CITES: graph[CITES]}, edge_data=long).save(path)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_damage_is_found(path: Path) -> None:
    make("int64").save(path)
    whole = path.read_bytes()
    opened = pgs.HeteroGraph.open(path)
    at = {each["name"]: each["offset"] for each in opened._file.header["sections"]}

    def spoil(place: int, value: bytes) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(whole[:place] + value + whole[place + len(value) :])

    spoil(at["types"] + 3, b"?")
    with pytest.raises(ValueError, match="section 'types': expected another checksum"):
        pgs.HeteroGraph.open(path)
    # A vertex that the smaller source type does not have, but the destination type does.
    spoil(at["0.indices"], (60).to_bytes(8, "little"))
    with pytest.raises(ValueError, match=r"indices\[0\].*\[0, 30\), got 60"):
        pgs.HeteroGraph.open(path)
    spoil(at["1.indptr"], b"\1")
    with pytest.raises(ValueError, match="indptr"):
        pgs.HeteroGraph.open(path)
    spoil(at["1.edge_data.w"], b"\xff")
    with pytest.raises(ValueError, match=r"section '1\.edge_data\.w': expected the checksum"):
        pgs.HeteroGraph.open(path, verify=True)
    spoil(len(whole) - 1, b"")
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="cut short"):
        pgs.HeteroGraph.open(path)
