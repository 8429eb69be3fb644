"""Walks along metapaths of graphs with types, and the graph without types that they are made on."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pygsampler as pgs
from tests.support.hetero_graphs import random_edges

WRITES = ("author", "writes", "paper")
WRITTEN = ("paper", "written", "author")
TOPIC = ("paper", "has", "field")
CITES = ("paper", "cites", "paper")
NODES = {"field": 7, "author": 30, "paper": 50, "venue": 3}


@pytest.fixture(scope="module")
def edges() -> dict[Any, Any]:
    return random_edges(NODES, {WRITES: 150, TOPIC: 120, WRITTEN: 110, CITES: 200}, 2)


@pytest.fixture(scope="module")
def graph(edges: dict[Any, Any]) -> pgs.Graph:
    weights = {kind: {"w": np.arange(len(ends[0])) % 4 + 0.0} for kind, ends in edges.items()}
    return pgs.Graph.from_coo(edges, num_nodes=NODES, edge_data=weights)


def test_the_graph_without_types_has_all_edges(graph: pgs.Graph, edges: dict[Any, Any]) -> None:
    joint = graph.to_homogeneous(edge_data=["w"])
    assert joint.num_nodes == sum(NODES.values())
    assert joint.num_edges == sum(len(ends[0]) for ends in edges.values())
    starts = dict(zip(NODES, np.cumsum([0, *NODES.values()]), strict=False))
    types, own = (np.asarray(joint.ndata[name]) for name in ("_TYPE", "_ID"))
    for place, (kind, count) in enumerate(NODES.items()):
        assert (types[starts[kind] :][:count] == place).all()
        assert (own[starts[kind] :][:count] == np.arange(count)).all()
    rows = np.repeat(np.arange(joint.num_nodes), np.diff(np.asarray(joint.indptr)))
    found = []
    ids = np.asarray(joint.edge_ids)
    etypes, eids, w = (np.asarray(joint.edata[name]) for name in ("_TYPE", "_ID", "w"))
    for src, dst, e in zip(np.asarray(joint.indices), rows, ids, strict=True):
        found.append((etypes[e], eids[e], src, dst))
        assert w[e] == eids[e] % 4
    expected = [
        (place, i, starts[kind[0]] + src, starts[kind[2]] + dst)
        for place, (kind, ends) in enumerate(edges.items())
        for i, (src, dst) in enumerate(zip(*ends, strict=True))
    ]
    assert sorted(found) == sorted(expected)


def test_arrays_that_some_type_lacks_are_refused(graph: pgs.Graph) -> None:
    with pytest.raises(ValueError, match="edge_data: expected arrays of all types, got 'x'"):
        graph.to_homogeneous(edge_data=["x"])
    small = pgs.Graph.from_coo(
        {CITES: ([0, 1], [1, 0]), TOPIC: ([0], [0])},
        num_nodes={"paper": 2, "field": 1},
        edge_data={CITES: {"w": np.ones(2)}, TOPIC: {"w": np.ones(1, "float32")}},
    )
    with pytest.raises(ValueError, match="of one dtype and shape of a row, got 'w'"):
        small.to_homogeneous(edge_data=["w"])
    beyond = pgs.HeteroGraph({CITES: ([0, 1, 2], [1, 0], [5, 7])})
    with pytest.raises(ValueError, match=r"paper__cites__paper: expected edge ids in \[0, 2\)"):
        beyond.to_homogeneous()


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("length", [0, 1, 3, 8])
def test_walks_take_edges_of_the_types(
    graph: pgs.Graph, edges: dict[Any, Any], direction: str, length: int
) -> None:
    # Against the edges from an author to the papers that WRITTEN leads from, and so on.
    path = [WRITES, CITES, WRITTEN] if direction == "out" else [WRITTEN, CITES, WRITES]
    walk = pgs.walks.MetaPathWalk(
        path, length, direction=direction, walks_per_seed=3, edge_ids=True, seed=4
    )
    walks = walk.sample(graph, {"author": range(30)})
    assert walks.node_types is not None
    types = ["author", "paper", "paper", "author", "paper", "paper", "author", "paper", "paper"]
    assert list(walks.node_types) == types[: length + 1]
    assert list(walks.edge_types) == (path * 3)[:length]
    nodes, ids, lengths = (
        np.asarray(array) for array in (walks.nodes, walks.edge_ids, walks.lengths)
    )
    assert nodes.shape == (90, length + 1)
    assert nodes[:, 0].tolist() == [v for v in range(30) for _ in range(3)]
    ends = 0
    for row, taken, steps in zip(nodes, ids, lengths, strict=True):
        assert (row[steps + 1 :] == -1).all()
        assert (taken[steps:] == -1).all()
        for i in range(steps):
            src, dst = edges[walks.edge_types[i]]
            pair = src[taken[i]], dst[taken[i]]
            assert pair == ((row[i], row[i + 1]) if direction == "out" else (row[i + 1], row[i]))
        if steps < length:
            ends += 1
            src, dst = edges[walks.edge_types[steps]]
            assert row[steps] not in (src if direction == "out" else dst)
    assert ends < 90 or length == 0


def test_steps_are_uniform_or_by_weight(graph: pgs.Graph, edges: dict[Any, Any]) -> None:
    for prob in (None, "w"):
        walk = pgs.walks.MetaPathWalk(
            [WRITES], prob=prob, walks_per_seed=20_000, edge_ids=True, seed=1
        )
        taken = Counter(np.asarray(walk.sample(graph, [4]).edge_ids)[:, 0].tolist())
        own = np.flatnonzero(edges[WRITES][0] == 4)
        weights = np.ones(len(own)) if prob is None else own % 4 + 0.0
        own, weights = own[weights > 0], weights[weights > 0]
        assert set(taken) <= set(own.tolist())
        expected = 20_000 * weights / weights.sum()
        assert stats.chisquare([taken[e] for e in own.tolist()], expected).pvalue > 1e-6


def test_walks_are_those_of_the_graph_without_types(graph: pgs.Graph) -> None:
    """But for other types that a graph has, which change nothing."""
    part = pgs.HeteroGraph(
        {kind: graph[kind] for kind in (WRITES, CITES)}, {"author": 30, "paper": 50}
    )
    walk = pgs.walks.MetaPathWalk([WRITES, CITES], seed=6)
    plain = pgs.RandomWalk(2, metapath=[0, 1], edge_types="_TYPE", seed=6)
    typed = np.asarray(walk.sample(graph, range(30), epoch=1, batch=2).nodes)
    joint = np.asarray(plain.sample(part.to_homogeneous(), range(30), epoch=1, batch=2).nodes)
    joint[:, 1:] -= np.where(joint[:, 1:] < 0, 0, 30)
    assert (typed == joint).all()


def test_it_is_a_sampler(graph: pgs.Graph) -> None:
    walk = pgs.walks.MetaPathWalk([WRITES, WRITTEN], 6, seed=3)
    first = walk.sample(graph, range(30)).nodes.tolist()
    other = pickle.loads(pickle.dumps(walk))
    assert other.metapath == walk.metapath
    assert repr(other) == repr(walk)
    assert other.sample(graph, range(30)).nodes.tolist() != first
    assert walk.with_seed(3).sample(graph, range(30)).nodes.tolist() == first
    assert copy.copy(walk).sample(graph, range(30), batch=0).nodes.tolist() == first
    walks = walk.sample(graph, range(30), batch=0)
    again = pickle.loads(pickle.dumps(walks))
    assert type(again) is pgs.Walks
    assert again.nodes.tolist() == first
    assert again.node_types == walks.node_types
    many = walk.sample_many(graph, [range(10), range(10, 30)], batch=4)
    assert [len(each) for each in many] == [10, 20]
    job = walk.submit(graph, {"author": range(30)}, batch=0)
    assert job.result().nodes.tolist() == job.result().nodes.tolist() == first


def test_loaders_take_it(graph: pgs.Graph) -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    walk = pgs.walks.MetaPathWalk([WRITES, WRITTEN], 4, seed=3)
    loader = DataLoader(graph, {"author": torch.arange(30)}, walk, batch_size=8)
    walked = list(loader)
    assert [len(each.nodes) for each in walked] == [8, 8, 8, 6]
    expected = walk.sample(graph, range(8), epoch=0, batch=0).nodes.tolist()
    assert walked[0].nodes.tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (([],), ValueError, "metapath: expected at least one edge type"),
        (("writes",), TypeError, "metapath: expected a list of edge types, got str"),
        (([2],), TypeError, r"metapath\[0\]: expected \(source, relation, destination\)"),
        (([("a", "b")],), TypeError, r"metapath\[0\]: expected \(source, relation, destination\)"),
        (([WRITES, WRITES],), ValueError, r"metapath\[1\]: .* from 'paper', where metapath\[0\]"),
        (([WRITES, CITES], 3), ValueError, r"metapath\[0\]: .* from 'paper', where metapath\[1\]"),
        (([WRITES], -1), ValueError, "length: expected an integer >= 0, got -1"),
    ],
)
def test_wrong_arguments(arguments: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        pgs.walks.MetaPathWalk(*arguments)


def test_wrong_calls(graph: pgs.Graph) -> None:
    walk = pgs.walks.MetaPathWalk([WRITES])
    with pytest.raises(ValueError, match="seeds: expected ids of 'author', where the metapath"):
        walk.sample(graph, {"paper": [1]})
    with pytest.raises(IndexError, match=r"seeds\[1\]: expected an id in \[0, 30\), got 30"):
        walk.sample(graph, [2, 30])
    with pytest.raises(IndexError, match=r"seeds\[0\]"):
        walk.sample(graph, [-1])
    with pytest.raises(TypeError, match="graph: expected a heterogeneous graph"):
        walk.sample(pgs.Graph.from_csc([0, 1], [0]), [0])
    text = r"metapath: expected types of the graph, got .*likes.*; there are .*writes"
    with pytest.raises(ValueError, match=text):
        pgs.walks.MetaPathWalk([("author", "likes", "paper")]).sample(graph, [0])
    with pytest.raises(ValueError, match="edge_data: expected arrays of all types, got 'x'"):
        pgs.walks.MetaPathWalk([WRITES], prob="x").sample(graph, [0])
    with pytest.raises(ValueError, match="edge_ids: expected walks of a sampler with edge_ids"):
        _ = walk.sample(graph, [0]).edge_ids


def test_a_closed_graph_says_so(edges: dict[Any, Any]) -> None:
    graph = pgs.Graph.from_coo(edges, num_nodes=NODES)
    walk = pgs.walks.MetaPathWalk([WRITES])
    walk.sample(graph, [0])
    graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        walk.sample(graph, [0])


@pytest.mark.parametrize("direction", ["out", "in"])
def test_random_walk_takes_edge_types(graph: pgs.Graph, direction: str) -> None:
    path = [WRITES, WRITTEN]
    options: dict[str, Any] = {"direction": direction, "walks_per_seed": 2, "seed": 3}
    expected = pgs.walks.MetaPathWalk(path, 6, edge_ids=True, **options)
    seeds = [0, 3, 3, 5]
    want = expected.sample(graph, seeds, epoch=1, batch=2)
    for named in (path, [kind[1] for kind in path]):
        walk = pgs.RandomWalk(6, metapath=named, edge_ids=True, **options)
        assert isinstance(walk, pgs.RandomWalk) and not isinstance(walk, pgs.walks.MetaPathWalk)
        assert repr(walk).startswith("RandomWalk(length=6, ") and repr(named) in repr(walk)
        for same in (walk, pickle.loads(pickle.dumps(walk)), walk.with_seed(3)):
            found = same.sample(graph, seeds, epoch=1, batch=2)
            assert found.nodes.tolist() == want.nodes.tolist()
            assert found.edge_ids.tolist() == want.edge_ids.tolist()
            assert found.node_types == want.node_types
        packed = pgs.RandomWalk(6, metapath=named, mode_options={"layout": "csr"}, **options)
        assert packed.sample(graph, seeds, epoch=1, batch=2).nodes.tolist() == want.nodes.tolist()
    streamed = next(pgs.stream(graph, walk, {want.node_types[0]: seeds}, epoch=1))
    assert streamed.node_types == want.node_types


def test_random_walk_along_edge_types_may_stop(graph: pgs.Graph) -> None:
    walk = pgs.RandomWalk(8, metapath=[WRITES, WRITTEN], stop=0.5, walks_per_seed=50, seed=3)
    lengths = walk.sample(graph, [0, 1]).lengths.numpy()
    assert lengths.min() == 0 and 0.3 < lengths.mean() < 1.7


@pytest.mark.parametrize(
    "options",
    [{"restart": 0.1}, {"p": 2.0}, {"q": 2.0}, {"num_roots": 2}, {"count_jumps": True}],
)
def test_random_walk_along_edge_types_refuses_other_options(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}: expected the default with edge types"):
        pgs.RandomWalk(4, metapath=[WRITES], **options)
    with pytest.raises(TypeError, match=r"metapath\[1\]: expected \(source, relation"):
        pgs.RandomWalk(4, metapath=[WRITES, 3])
