"""``PinSAGE`` and ``RestartNeighbors`` on graphs with types: those of the graph without types."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler.torch import DataLoader

BUYS = ("user", "buys", "item")
BOUGHT = ("item", "bought", "user")
IN = ("item", "in", "shop")
NODES = {"user": 30, "item": 50, "shop": 4}
AT: dict[str, Any] = {"epoch": 1, "batch": 2}


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    random = np.random.default_rng(5)
    edges, weights = {}, {}
    for kind in (BUYS, BOUGHT, IN):
        edges[kind] = tuple(random.integers(0, NODES[kind[end]], 200) for end in (0, 2))
        weights[kind] = {"w": random.random(200) + 0.1}
    return pgs.Graph.from_coo(edges, num_nodes={**NODES, "alone": 3}, edge_data=weights)


@pytest.mark.parametrize("options", [{}, {"prob": "w"}, {"direction": "in"}])
def test_pinsage_along_edge_types(graph: pgs.Graph, options: dict[str, Any]) -> None:
    against = options.get("direction") == "in"
    first, second = (BOUGHT, BUYS) if against else (BUYS, BOUGHT)
    sampler = pgs.walks.PinSAGE(3, 0.3, 8, 4, metapath=[first, second], seed=9, **options)
    seeds = [3, 0, 29, 3]
    found = sampler.sample(graph, {"user": seeds}, **AT)
    # The metapath's relations alone, users first.
    kinds = (first, second)
    nodes = {kind: NODES[kind] for kind in ("user", "item")}
    weights = {kind: {"w": graph.edata[kind]["w"]} for kind in kinds}
    alone = pgs.HeteroGraph({kind: graph[kind] for kind in kinds}, nodes, edge_data=weights)
    flat = alone.to_homogeneous(edge_data=["w"])
    plain = pgs.walks.PinSAGE(3, 0.3, 8, 4, metapath=[0, 1], edge_types="_TYPE", seed=9, **options)
    want = plain.sample(flat, seeds, **AT)
    assert list(found.nodes) == list(found.counts) == list(found.output_nodes) == ["user"]
    assert found.nodes["user"].tolist() == want.nodes.tolist()
    assert found.counts["user"].tolist() == want.counts.tolist()
    assert found.output_nodes["user"].tolist() == seeds
    assert 0 <= np.asarray(found.nodes["user"]).max() < NODES["user"]
    for other in (
        pickle.loads(pickle.dumps(sampler)).sample(graph, {"user": seeds}, **AT),
        sampler.with_seed(9).submit(graph, {"user": seeds}, **AT).result(),
        sampler.sample_many(graph, [{"user": seeds}], **AT)[0],
    ):
        assert other.nodes["user"].tolist() == want.nodes.tolist()
    assert "'buys'" in repr(sampler)


def test_neighbours_by_names_of_types(graph: pgs.Graph) -> None:
    top, caps = {"user": 4, "item": 6, "shop": 2}, {"user": 20, "item": 30, "shop": 5}
    how: dict[str, Any] = {"collect": 40, "max_steps": 150, "seed": 5}
    seeds = {"item": [7, 49, 0], "user": [2]}
    found = pgs.walks.RestartNeighbors(None, top, caps=caps, **how).sample(graph, seeds, **AT)
    # Types stand in the order of the relations' ends there; "alone" has none.
    whole = pgs.HeteroGraph({kind: graph[kind] for kind in graph.edge_types}, NODES)
    flat = whole.to_homogeneous()
    starts = {"user": 0, "item": 30, "shop": 80}
    place = {kind: i for i, kind in enumerate(NODES)}
    joined = [starts[kind] + v for kind, ids in seeds.items() for v in ids]
    want = pgs.walks.RestartNeighbors(
        "_TYPE",
        {place[kind]: count for kind, count in top.items()},
        caps={place[kind]: count for kind, count in caps.items()},
        **how,
    ).sample(flat, joined, **AT)
    assert list(found.nodes) == list(top)
    for kind in top:
        nodes = want.nodes[place[kind]]
        expected = nodes.where(nodes < 0, nodes - starts[kind])
        assert found.nodes[kind].tolist() == expected.tolist()
        assert found.counts[kind].tolist() == want.counts[place[kind]].tolist()
        assert 0 <= found.nodes[kind].max() < NODES[kind]


def test_a_loader_reads_rows_by_types(graph: pgs.Graph) -> None:
    counts = {**NODES, "alone": 3}
    x = {kind: torch.randn(count, 3) for kind, count in counts.items()}
    y = {kind: torch.arange(counts[kind]) for kind in ("item", "user")}
    seeds = {"item": torch.arange(50), "user": torch.arange(5, 30)}
    sampler = pgs.walks.RestartNeighbors(None, {"user": 4, "shop": 2, "alone": 1}, seed=5)
    loader = DataLoader(
        graph, seeds, sampler, batch_size=20, shuffle=True, features={"x": x}, labels=y
    )
    seen: dict[str, list[int]] = {"user": [], "item": []}
    for number, batch in enumerate(loader):
        own = {kind: batch.output_nodes[kind] for kind in seen}
        # In the order of the graph's types, as the rows stand.
        again = sampler.sample(graph, own, epoch=0, batch=number)
        assert list(batch.nodes) == ["user", "shop", "alone"]
        assert set(batch.input_nodes) == set(batch.output_nodes) == set(counts)
        for kind, ids in batch.input_nodes.items():
            assert torch.equal(batch.x[kind], x[kind][ids]) and len(ids.unique()) == len(ids)
            assert torch.equal(ids[batch.output_index[kind]], batch.output_nodes[kind])
        for kind, ids in own.items():
            assert torch.equal(batch.y[kind], ids)
            seen[kind] += ids.tolist()
        assert len(batch) == 20 or number == 3
        rows = batch.neighbor_rows(batch.x)
        for kind, nodes in batch.nodes.items():
            assert torch.equal(nodes, again.nodes[kind])
            near, there = rows[kind], nodes >= 0
            assert torch.equal(near[there], x[kind][nodes[there]])
            assert not near[~there].any()
        assert not len(batch.input_nodes["alone"]) and batch.nodes["shop"].max() >= 0
        other = pickle.loads(pickle.dumps(batch))
        assert torch.equal(other.x["shop"], batch.x["shop"]) and repr(other) == repr(batch)
    assert sorted(seen["item"]) == list(range(50)) and sorted(seen["user"]) == list(range(5, 30))


def test_a_loader_reads_rows_along_a_metapath(graph: pgs.Graph) -> None:
    """Of the type where it begins; features of other types stay where they are."""
    x = {kind: torch.randn(count, 3) for kind, count in {**NODES, "alone": 3}.items()}
    sampler = pgs.walks.PinSAGE(3, 0.2, 8, 4, metapath=[BUYS, BOUGHT], seed=5)
    labels = {"user": torch.arange(NODES["user"])}
    seeds = {"user": torch.arange(5, 30)}
    loader = DataLoader(
        graph, seeds, sampler, batch_size=10, shuffle=True, features={"x": x}, labels=labels
    )
    seen: list[int] = []
    for number, batch in enumerate(loader):
        again = sampler.sample(graph, dict(batch.output_nodes), epoch=0, batch=number)
        assert batch.nodes["user"].tolist() == again.nodes["user"].tolist()
        assert again.output_nodes["user"].tolist() == batch.output_nodes["user"].tolist()
        for got in (batch, pickle.loads(pickle.dumps(batch))):
            assert list(got.input_nodes) == list(got.x) == list(got.y) == ["user"]
            ids, rows = got.input_nodes["user"], got.x["user"]
            assert torch.equal(rows, x["user"][ids]) and len(ids.unique()) == len(ids)
            assert torch.equal(got.y["user"], got.output_nodes["user"])
            assert torch.equal(ids[got.output_index["user"]], got.output_nodes["user"])
            nodes, near = got.nodes["user"], got.neighbor_rows(got.x)["user"]
            assert torch.equal(near[nodes >= 0], x["user"][nodes[nodes >= 0]])
        seen += batch.output_nodes["user"].tolist()
    assert sorted(seen) == list(range(5, 30))


def test_a_type_without_edges_is_no_neighbour(graph: pgs.Graph) -> None:
    sampler = pgs.walks.RestartNeighbors(None, {"alone": 2, "item": 2}, max_steps=30, seed=5)
    found = sampler.sample(graph, {"user": [0, 1]})
    assert found.nodes["alone"].tolist() == [[-1, -1], [-1, -1]]
    assert found.nodes["item"].max() >= 0


def test_what_does_not_fit_is_refused(graph: pgs.Graph) -> None:
    path = [BUYS, BOUGHT]
    for make, error, text in (
        (lambda: pgs.walks.PinSAGE(metapath=[BUYS]), ValueError, "from 'item', where"),
        (lambda: pgs.walks.PinSAGE(metapath=[BUYS, 1]), TypeError, "expected .source, relation"),
        (
            lambda: pgs.walks.PinSAGE(metapath=path, edge_types="t"),
            ValueError,
            "edge_types: expected",
        ),
        (
            lambda: pgs.walks.RestartNeighbors(None, {0: 2}),
            TypeError,
            "top: expected names of types",
        ),
        (
            lambda: pgs.walks.PinSAGE().sample(graph, [0]),
            TypeError,
            "expected a Graph, got a Hetero",
        ),
        (
            lambda: pgs.walks.RestartNeighbors("kind", {0: 2}).sample(graph, [0]),
            TypeError,
            "expected a Graph, got a Hetero",
        ),
        (
            lambda: pgs.walks.RestartNeighbors(None, {"x": 2}).sample(graph, {"user": [0]}),
            ValueError,
            "top: expected types of nodes among .*'alone', got 'x'",
        ),
        (
            lambda: pgs.walks.RestartNeighbors(None, {"user": 2}).sample(graph[BUYS], [0]),
            TypeError,
            "expected a heterogeneous graph",
        ),
        (
            lambda: pgs.walks.PinSAGE(metapath=path).sample(graph, {"item": [0]}),
            ValueError,
            "seeds: expected a mapping of 'user'",
        ),
        (
            lambda: pgs.walks.PinSAGE(metapath=path).sample(graph, {"user": [30]}),
            IndexError,
            "from 0 to 29, got 30",
        ),
        (
            lambda: pgs.walks.PinSAGE(metapath=path).sample(graph[BUYS], {"user": [0]}),
            TypeError,
            "expected a heterogeneous graph",
        ),
    ):
        with pytest.raises(error, match=text):
            make()
