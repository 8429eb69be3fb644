"""Several values of a block's edges, by names."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from graphs import circulant

import pygsampler as pgs
from pygsampler.torch import DataLoader


def hop(A: Any, seeds: Any) -> tuple[Any, Any]:
    C = A[:, seeds]
    return C.individual_sample(3), C.sum(axis=0)


@pgs.program
def named(A: Any, seeds: Any) -> Any:
    """Two blocks: of one the weights stand under names alone, and columns are in another order."""
    B, total = hop(A, seeds)
    outer = A[:, B.row()].individual_sample(2)
    first = {"twice": outer * 2, "thrice": outer * 3}
    return [first, {"p": B.div(total, axis=0), "w": B}], {"rows": B.row()}


@pgs.program
def around(A: Any, seeds: Any) -> Any:
    V = A[:, seeds].row() | seeds
    G = A[V, V]
    return V, {"t": G.edata["t"], "half": G / 2}


@pytest.fixture
def graph() -> pgs.Graph:
    made = circulant(50, 5)
    edges = np.arange(made.num_edges)
    return made.with_data(edge_data={"t": edges % 3 + 1.0, "v": edges % 7 + 1.0})


def check(batch: Any, graph: pgs.Graph) -> None:
    """Of NumPy's arrays."""
    v, outer, inner = graph.edata["v"].numpy(), *batch.blocks
    assert list(outer.edge_data) == ["twice", "thrice"] and list(inner.edge_data) == ["w", "p"]
    assert (outer.edge_data["twice"] == 2 * v[outer.edge_ids]).all()
    assert (outer.edge_data["thrice"] == 3 * v[outer.edge_ids]).all()
    assert (inner.edge_data["w"] == v[inner.edge_ids]).all()
    indptr = graph.indptr.numpy()
    _, dst = inner.coo()
    totals = np.array([v[indptr[u] : indptr[u + 1]].sum() for u in inner.dst_nodes[dst]])
    assert inner.edge_data["p"] == pytest.approx(v[inner.edge_ids] / totals)
    assert list(batch.extra) == ["rows"]


def test_each_name_is_of_its_block(graph: pgs.Graph) -> None:
    sampler = named(weight="v", seed=3)
    last = 'return blocks ~%8, %2 "twice"[0]=%8 "thrice"[0]=%10 "p"[1]=%11 "rows"=%12'
    assert sampler.code.split("\n")[-1] == last
    batch = sampler.sample(graph, [7, 3, 3, 9])
    assert set(batch.blocks[0].edge_data) == {"twice", "thrice"}
    check(batch.numpy(), graph)
    check(pickle.loads(pickle.dumps(batch)).numpy(), graph)
    as_torch = batch.torch()
    for made in (as_torch, pickle.loads(pickle.dumps(as_torch)), as_torch.to("cpu")):
        for block, own in zip(made.blocks, batch.numpy().blocks, strict=True):
            assert {k: v.tolist() for k, v in block.edge_data.items()} == {
                k: v.tolist() for k, v in own.edge_data.items()
            }
    arrow = batch.arrow()
    assert arrow.blocks[0].edge_data["twice"].to_pylist() == (
        batch.blocks[0].edge_data["twice"].numpy().tolist()
    )
    for made in DataLoader(graph, torch.arange(20), sampler, batch_size=8):
        v = torch.from_numpy(graph.edata["v"].numpy())
        assert torch.equal(
            made.blocks[0].edge_data["twice"], 2 * v[made.blocks[0].edge_ids].float()
        )


def test_subgraphs(graph: pgs.Graph) -> None:
    made = around(weight="v", seed=1).sample(graph, [5, 9]).numpy()
    assert set(made.edge_data) == {"t", "half"}
    for name, factor, of in (("t", 1, "t"), ("half", 0.5, "v")):
        array = graph.edata[of].numpy()
        assert (made.edge_data[name] == factor * array[made.edge_ids]).all()


def test_ones_that_are_left_out(graph: pgs.Graph) -> None:
    """Without weights the edges alone have values by names, and a sampler of ones has none."""

    @pgs.program
    def shares(A: Any, seeds: Any) -> Any:
        B, total = hop(A, seeds)
        return [{"p": B.div(total, axis=0)}]

    block = shares(seed=1).sample(graph, [1, 2]).blocks[0]
    assert set(block.edge_data) == {"p"} and block.edge_weights is None
    assert set(block.edge_data["p"].numpy().tolist()) == {float(np.float32(0.2))}


def test_what_is_refused() -> None:
    def other(A: Any, seeds: Any) -> Any:
        return [{"w": A[:, seeds], "p": A[:, seeds].individual_sample(1)}]

    def vector(A: Any, seeds: Any) -> Any:
        return [{"w": A[:, seeds], "p": A.degree()}]

    def none(A: Any, seeds: Any) -> Any:
        return [{}]

    for body, message in (
        (other, "expected values of the same edges as %1 has, got others"),
        (vector, "expected matrices"),
        (none, "an empty dictionary: expected values of edges by name"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            pgs.program(body)()


def test_over_relations() -> None:
    likes = ("user", "likes", "item")
    relation = pgs.Graph.from_coo([0, 1, 1], [0, 0, 2], num_nodes=3)
    graph = pgs.HeteroGraph({likes: relation}, {"user": 2})

    @pgs.program
    def liked(A: Any, seeds: Any) -> Any:
        C = A[likes][:, seeds["item"]]
        return [{"p": C.div(C.sum(axis=0), axis=0)}]

    batch = liked(seed=1).sample(graph, {"item": [2, 0]})
    block = batch.blocks[0][likes]
    assert block.edge_weights is None and list(block.edge_data) == ["p"]
    assert block.edge_data["p"].tolist() == [1, 0.5, 0.5]
