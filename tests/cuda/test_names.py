"""Graphs on a GPU keep names and ids, and answer as the graph on the CPU that they were made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pygsampler as pgs

BUYS, SOLD = ("user", "buys", "item"), ("item", "sold", "user")


@pytest.mark.parametrize("put", ["to", "pin"])
def test_names_and_edges_stay_with_the_graph(put: str) -> None:
    graph = pgs.Graph.from_coo(
        ["a", "b", "b", "a"],
        ["b", "b", "a", "c"],
        renumber=True,
        edge_data={"weight": [1, 2, 3, 4]},
    )
    there = getattr(graph, put)("cuda")
    for each in (there, there.with_data({"v": [0] * 4}), pickle.loads(pickle.dumps(there))):
        assert each.node_names == ["a", "b", "c"]
        seeds = each.index_of(["c", "b"])
        assert seeds.tolist() == [2, 1]
        batch = pgs.PGSampler([-1]).sample(each, seeds)
        assert each.node_names[batch.output_nodes] == ["c", "b"]
        assert each.in_degrees().tolist() == graph.in_degrees().tolist() == [1, 2, 1]
        assert each.out_degrees([1]).tolist() == [2]
        assert each.in_degrees(batch.output_nodes).tolist() == [1, 2]
    both = pgs.Graph.from_coo([0, 1], [1, 0])
    assert getattr(both, put)("cuda").reverse_edge_ids().tolist() == [1, 0]
    pytest.importorskip("scipy")
    assert there.to_scipy().toarray().tolist() == graph.to_scipy().toarray().tolist()


@pytest.mark.parametrize("put", ["to", "pin"])
def test_labels_of_types_stay_with_the_graph(put: str) -> None:
    edges = {BUYS: (["a", "b"], [10**12, 7]), SOLD: ([7, 10**12], ["b", "a"])}
    graph = getattr(pgs.Graph.from_coo(edges, renumber=True), put)("cuda")
    for each in (graph, pickle.loads(pickle.dumps(graph)), graph.to("cpu")):
        assert each.node_names == {"user": ["a", "b"]}
        assert each.node_ids["item"].tolist() == [7, 10**12]
        found = each.index_of({"user": ["b"], "item": [10**12, 7]})
        assert {kind: ids.tolist() for kind, ids in found.items()} == {"user": [1], "item": [1, 0]}
        assert each.reverse_edge_ids(BUYS, SOLD).tolist() == [1, 0]
        assert each.in_degrees(edge_type=BUYS).tolist() == [1, 1]


def test_arrays_on_a_device_are_not_compared() -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 0]).to("cuda")
    with pytest.raises(TypeError, match=r"Array: expected one on the CPU, .*; .cpu\(\) copies it"):
        graph.indices == graph.indices  # noqa: B015
    assert (graph.indices.cpu() == np.array([1, 0])).all()


def test_batches_on_a_device_convert() -> None:
    graph = pgs.Graph.from_coo([0, 1, 2], [1, 2, 0])
    own = pgs.PGSampler([2, 2], seed=1)
    here, there = own.sample(graph, [0, 1]), own.sample(graph.to("cuda"), [0, 1])
    pytest.importorskip("scipy")
    for a, b in zip(here.to_scipy(), there.to_scipy(), strict=True):
        assert a.toarray().tolist() == b.toarray().tolist()
    pytest.importorskip("networkx")
    edges = [sorted(batch.to_networkx().edges(data="edge_id")) for batch in (here, there)]
    assert edges[0] == edges[1]
