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


def make(dtype: str) -> pgs.Graph:
    """A graph with every kind of array, a relation without edges and a type without relations."""
    random = np.random.default_rng(3)
    sizes = {"p": 70, "a": 30, "venue": 90, "alone": 2}

    def edges(kind: tuple[str, str, str], count: int) -> tuple[Any, Any]:
        ends = (random.integers(0, sizes[kind[side]], count) for side in (0, 2))
        src, dst = (ids.astype(dtype) for ids in ends)
        return src, dst

    return pgs.Graph.from_coo(
        {WRITES: edges(WRITES, 300), CITES: edges(CITES, 500), IN: edges(IN, 0)},
        num_nodes=sizes,
        edge_data={CITES: {"w": random.random(500), "m": random.random(500) < 0.5}},
        node_data={"p": {"x": random.random((70, 4), np.float32)}, "alone": {"y": [[1], [2]]}},
    )


def as_lists(graph: pgs.Graph, **options: Any) -> list[Any]:
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
    with pgs.Graph.open(path, verify=True) as opened:
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
    opened = pgs.Graph.open(path)
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


def test_open_decides_by_the_file(path: Path) -> None:
    graph = make("int32")
    graph.save(path)
    assert not pgs.Graph.open(path).is_homogeneous
    with pytest.raises(ValueError, match=r"expected a homogeneous graph.*Graph\.open"):
        pgs.Features.open(path, "x")
    for option in ({"arrays": {}}, {"tables": ["w"]}, {"out_edges": True}):
        with pytest.raises(ValueError, match="expected None in save of a heterogeneous graph"):
            graph.save(path, **option)
    graph[CITES].save(path)
    assert pgs.Graph.open(path).is_homogeneous
    with pytest.raises(FileNotFoundError):
        pgs.Graph.open(path.parent / "none")
    with pytest.raises(ValueError, match="1 to 63 bytes"):
        long = {CITES: {"w" * 53: graph.edata[CITES]["w"]}}
        pgs.HeteroGraph({CITES: graph[CITES]}, edge_data=long).save(path)
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_damage_is_found(path: Path) -> None:
    make("int64").save(path)
    whole = path.read_bytes()
    opened = pgs.Graph.open(path)
    at = {each["name"]: each["offset"] for each in opened._source._file.header["sections"]}

    def spoil(place: int, value: bytes) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(whole[:place] + value + whole[place + len(value) :])

    spoil(at["types"] + 3, b"?")
    with pytest.raises(ValueError, match="section 'types': expected another checksum"):
        pgs.Graph.open(path)
    # A vertex that the smaller source type does not have, but the destination type does.
    spoil(at["0.indices"], (60).to_bytes(8, "little"))
    with pytest.raises(ValueError, match=r"indices\[0\].*\[0, 30\), got 60"):
        pgs.Graph.open(path)
    spoil(at["1.indptr"], b"\1")
    with pytest.raises(ValueError, match="indptr"):
        pgs.Graph.open(path)
    spoil(at["1.edge_data.w"], b"\xff")
    with pytest.raises(ValueError, match=r"section '1\.edge_data\.w': expected the checksum"):
        pgs.Graph.open(path, verify=True)
    spoil(len(whole) - 1, b"")
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="cut short"):
        pgs.Graph.open(path)
