"""Edge types by the name of their relation, and errors that list what there is."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import content

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
WRITTEN, READS = ("paper", "by", "author"), ("author", "reads", "paper")
RATES = ("author", "rates", "author"), ("author", "rates", "paper")
NODES = {"author": 20, "paper": 30}


def graph(*more: Any) -> pgs.Graph:
    edges, data = {}, {}
    for kind in (WRITES, CITES, WRITTEN, *more):
        random = np.random.default_rng(len(edges))
        edges[kind] = tuple(random.integers(0, NODES[of], 150) for of in kind[::2])
        data[kind] = {"w": random.random(150)}
    return pgs.Graph.from_coo(edges, num_nodes=NODES, edge_data=data)


SEEDS = {"paper": [1, 2, 3], "author": [4]}
NAMED = {"writes": 3, "paper__cites__paper": 2, WRITTEN: 1}


@pytest.mark.parametrize("make", [pgs.PGSampler, pgs.LaborSampler], ids=lambda each: each.__name__)
def test_fanouts(make: Any) -> None:
    of, plain = graph(), {WRITES: 3, CITES: 2, WRITTEN: 1}
    named, full = make([NAMED, 2], seed=1), make([plain, 2], seed=1)
    want = content(full.sample(of, SEEDS, batch=0))
    assert content(named.sample(of, SEEDS, batch=0)) == want
    assert content(pickle.loads(pickle.dumps(named)).sample(of, SEEDS, batch=0)) == want
    # Others by default, and a relation that the engine could take for a refusal.
    got = graph(("author", "got", "paper"))
    for key in ("got", ("author", "got", "paper")):
        (hop,) = make([{key: -1}], default_fanout=0, seed=1).sample(got, SEEDS, batch=0).blocks
        assert hop["got"].num_edges and not hop["writes"].num_edges


@pytest.mark.parametrize(
    ("fanouts", "kind", "text"),
    [
        (
            {"sells": 1},
            ValueError,
            r"fanouts\[0\]: expected edge types of the graph, got \"sells\"; there are "
            r"\('author', 'writes', 'paper'\), ",
        ),
        (
            {"rates": 1},
            ValueError,
            r"fanouts\[0\]: expected a name that only one edge type has, got \"rates\"; it can be "
            r"any of \('author', 'rates', 'author'\), \('author', 'rates', 'paper'\)",
        ),
        ({"cites": 1, CITES: 2}, ValueError, r"fanouts\[0\]: expected one number .* two for \('p"),
        ({"paper__cites__paper": 1, CITES: 2}, ValueError, r"fanouts\[0\]: expected one number"),
        ({5: 1}, TypeError, r"fanouts\[0\]: expected \(source type, relation, .* got 5"),
        ({("a", "b"): 1}, TypeError, r"fanouts\[0\]: expected \(source type, relation"),
    ],
)
def test_wrong_fanouts(fanouts: Any, kind: type[Exception], text: str) -> None:
    of = graph(*RATES)
    with pytest.raises(kind, match=text):
        pgs.PGSampler([fanouts], default_fanout=1).sample(of, SEEDS)
    with pytest.raises(kind, match=text):
        pgs.LaborSampler([fanouts], default_fanout=1, edge_weights="ht").sample(of, SEEDS)


def test_missing_fanouts_are_named_as_edge_types() -> None:
    with pytest.raises(ValueError, match=r"got none for \('paper', 'by', 'author'\)"):
        pgs.PGSampler([{"writes": 1, "cites": 2}]).sample(graph(), SEEDS)


def test_graphs_and_batches() -> None:
    of = graph(*RATES)
    assert of["writes"] is of[WRITES] and of["author__writes__paper"] is of[WRITES]
    assert of.edata["writes"]["w"].tolist() == of.edata[WRITES]["w"].tolist()
    assert of.num_edges["cites"] == 150 and list(of.num_edges) == list(of.edge_types)
    assert "cites" in of.edata and "sells" not in of.edata and "rates" not in of.edata
    assert of.edata.get("sells") is None
    batch = pgs.PGSampler([2, 3], seed=1).sample(of, SEEDS)
    for each in (batch, batch.torch(), pickle.loads(pickle.dumps(batch))):
        assert each.blocks[0]["by"].num_edges == each.blocks[0][WRITTEN].num_edges > 0
        assert each.num_sampled_edges["by"] == each.num_sampled_edges[WRITTEN]
        with pytest.raises(KeyError, match=r"got 'sells'; there are .*'writes'"):
            each.blocks[0]["sells"]
        with pytest.raises(KeyError, match=r"only one edge type has, got 'rates'"):
            each.blocks[0]["rates"]
        with pytest.raises(KeyError, match=r"got \('author', 'writes', 'author'\); there are"):
            each.blocks[0]["author", "writes", "author"]
        with pytest.raises(KeyError, match=r"expected one of 'author', 'paper', got 'venue'"):
            each.input_nodes["venue"]
    for values in (of.num_nodes, of.ndata, batch.output_nodes, batch.num_sampled_nodes):
        with pytest.raises(KeyError, match="expected one of 'author', 'paper', got 'venue'"):
            values["venue"]
    for wrong in ("sells", "rates", ("paper", "writes", "author"), 3):
        with pytest.raises(KeyError):
            of[wrong]  # type: ignore[index]


def test_arrays_and_excluded_edges() -> None:
    of, sampler = graph(), pgs.PGSampler([4], seed=1)
    data = {"writes": {"w": np.arange(150.0)}, "paper__cites__paper": {"x": np.arange(150)}}
    made = pgs.HeteroGraph(
        {kind: of[kind] for kind in of.edge_types},
        NODES,
        edge_data=data,  # type: ignore[arg-type]
    )
    assert made.edata[WRITES]["w"].tolist() == list(range(150))
    assert made.edata[CITES]["x"].tolist() == list(range(150))
    gone = {"writes": range(0, 150, 2), "paper__cites__paper": range(50)}
    full = {WRITES: range(0, 150, 2), CITES: range(50)}
    for each in (gone, {"writes": gone["writes"]}):
        want = {kind: full[kind] for kind in (WRITES, CITES)[: len(each)]}
        assert content(sampler.sample(of, SEEDS, batch=0, exclude=each)) == content(
            sampler.sample(of, SEEDS, batch=0, exclude=want)
        )
    with pytest.raises(
        ValueError, match="exclude: expected types of the graph, got 'sells'; there"
    ):
        sampler.sample(of, SEEDS, exclude={"sells": [1]})
    with pytest.raises(ValueError, match="exclude: expected each edge type once"):
        sampler.sample(of, SEEDS, exclude={"writes": [1], WRITES: [2]})
    with pytest.raises(
        ValueError, match=r"seeds: expected types of the graph, got 'venue'; there "
    ):
        sampler.sample(of, {"venue": [1]})
    with pytest.raises(ValueError, match="edge_data: expected types of the graph, got 'sells'"):
        pgs.HeteroGraph(
            {WRITES: of[WRITES]},
            NODES,
            edge_data={"sells": {}},  # type: ignore[dict-item]
        )


@pytest.mark.parametrize("direction", ["out", "in"])
def test_metapaths(direction: str) -> None:
    of = graph(*RATES)
    full = [WRITES, WRITTEN] if direction == "out" else [WRITTEN, WRITES]
    path = [kind[1] for kind in full]
    first = "author"
    options: Any = {"direction": direction, "seed": 3}
    named, plain = (pgs.walks.MetaPathWalk(each, 4, **options) for each in (path, full))
    for seeds in ({first: range(9)}, range(9)):
        want = plain.sample(of, seeds, batch=0)
        for walker in (named, pickle.loads(pickle.dumps(named)), named.with_seed(3)):
            walks = walker.sample(of, seeds, batch=0)
            assert walks.nodes.tolist() == want.nodes.tolist()
            assert walks.node_types == want.node_types == plain.node_types
            assert walks.edge_types == want.edge_types
    assert named.metapath == tuple(path)
    with pytest.raises(ValueError, match="node_types: expected a metapath of"):
        _ = named.node_types
    near = [
        pgs.walks.PinSAGE(2, 0.5, 5, 3, metapath=each, **options).sample(
            of, {first: [1, 2]}, batch=0
        )
        for each in (path, [list(kind) for kind in full], full)
    ]
    found = [{kind: ids.tolist() for kind, ids in each.nodes.items()} for each in near]
    assert found[0] == found[1] == found[2]
    for wrong, text in (
        (["sells"], r"metapath\[0\]: expected types of the graph, got 'sells'; there are"),
        (["rates"], r"metapath\[0\]: expected a name that only one edge type has, got 'rates'"),
        (["writes", WRITES], "metapath: expected each edge type by one name"),
        (
            ["writes", "writes"],
            r"metapath\[1\]: expected a type of edges from 'paper'|"
            r"metapath\[1\]: expected a type of edges from 'author'",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            pgs.walks.MetaPathWalk(wrong, **options).sample(of, [1])
        with pytest.raises(ValueError, match=text):
            pgs.walks.PinSAGE(1, 0.5, 5, 3, metapath=wrong, **options).sample(of, {first: [1]})


def test_programs() -> None:
    @pgs.program
    def wrote(A: Any, seeds: Any, K: int) -> Any:
        return A["author", "writes", "paper"][:, seeds["paper"]].individual_sample(K)

    of, sampler = graph(), wrote(K=2, seed=1)
    batch = sampler.sample(of, {"paper": [1, 2]}, batch=0, exclude={"writes": range(75)})
    assert batch.blocks[0]["writes"].edge_ids.numpy().min() >= 75


def test_names_that_collide_are_refused() -> None:
    """Of two types that would be one in plans and random numbers."""
    nodes = {"a": 2, "a__b": 2, "d": 2}
    text = r"\('a', 'b__c', 'd'\) and \('a__b', 'c', 'd'\), which are both 'a__b__c__d'; call one"
    with pytest.raises(ValueError, match=text):
        pgs.Graph.from_coo(
            {("a", "b__c", "d"): ([0], [1]), ("a__b", "c", "d"): ([1], [0])}, num_nodes=nodes
        )
    # Two underscores by themselves are fine, in files too.
    kind = "a__b", "has__two", "d"
    of = pgs.Graph.from_coo({kind: ([0, 1], [1, 1])}, num_nodes=nodes)
    for key in (kind, "has__two", "a__b__has__two__d"):
        batch = pgs.PGSampler([{key: -1}]).sample(of, {"d": [1]})
        assert batch.blocks[0]["has__two"].num_edges == 2


def test_files(tmp_path: Any) -> None:
    kind = "a__b", "has__two", "d"
    of = pgs.Graph.from_coo({kind: ([0, 1], [1, 1])}, num_nodes={"a__b": 2, "d": 2})
    of.save(tmp_path / "names.pgs")
    with pgs.Graph.open(tmp_path / "names.pgs") as opened:
        assert opened.edge_types == (kind,) and opened["has__two"].num_edges == 2


def test_every_graph_names_its_types() -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 2])
    assert graph.is_homogeneous
    assert (graph.node_types, graph.edge_types) == (("_N",), (("_N", "_E", "_N"),))
    assert graph["_N", "_E", "_N"] is graph["_E"] is graph
    with pytest.raises(KeyError, match="_E"):
        graph["writes"]
    typed = pgs.HeteroGraph({("a", "e", "a"): graph})
    assert not typed.is_homogeneous
    assert typed["e"].is_homogeneous
    assert typed["e"].indices.tolist() == graph.indices.tolist()
    graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        graph["_E"]


def test_a_graph_is_no_sequence() -> None:
    graph = pgs.Graph.from_coo([0], [1])
    with pytest.raises(TypeError, match="not iterable"):
        list(graph)
