"""Values of batches by torch: those of the engine, with gradients that NumPy or torch confirm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.programs import stack

torch = pytest.importorskip("torch")

NODES, EDGES, WIDTH = 40, 260, 4
RNG = np.random.default_rng(31)
ENDS = RNG.integers(0, NODES, (2, EDGES))
X = RNG.normal(size=(NODES, WIDTH)).astype(np.float32)
GRAPH = pgs.Graph.from_coo(
    *ENDS,
    num_nodes=NODES,
    edge_data={"w": RNG.uniform(0.5, 2, EDGES).astype(np.float32)},
    node_data={"x": X, "y": RNG.uniform(1, 2, NODES).astype(np.float32)},
)
SEEDS = np.array([3, 9, 3, 22, 31, 8])
W = {name: RNG.normal(size=(WIDTH, 3)).astype(np.float32) for name in ("W1", "W2")}
W3 = np.array([0.3, 0.1, 1.0], np.float32)


def learned(**tensors: Any) -> dict[str, Any]:
    """Returns tensors of doubles that gradients flow to."""
    return {k: torch.tensor(v, dtype=torch.float64).requires_grad_() for k, v in tensors.items()}


def same(batch: Any, values: Any) -> int:
    """Compares the values that torch has with those of the engine; returns how many."""
    edges, extra = values
    count = 0
    for block, of in zip(batch.torch().blocks, edges, strict=True):
        stored = {**block.edge_data}
        assert set(of) == set(stored)
        for name, found in of.items():
            assert found.detach().numpy() == pytest.approx(stored[name].numpy(), rel=2e-5, abs=1e-6)
            count += len(found)
    for name, found in extra.items():
        assert found.detach().numpy() == pytest.approx(
            batch.extra[name].numpy(), rel=2e-5, abs=1e-5
        )
        count += len(found)
    return count


@pytest.mark.parametrize("weight", [None, "w"])
def test_pass_learns_as_its_own_ratio_says(weight: str | None) -> None:
    sampler = samplers.learned.pass_sampler(
        fanouts=[3, 2], **W, W3=W3, features="x", weight=weight, seed=4
    )
    batch = sampler.sample(GRAPH, SEEDS).torch()
    mine, theirs = learned(**W, W3=W3), learned(**W, W3=W3)
    edges, _ = sampler.recompute(GRAPH, batch, mine)
    assert same(batch, (edges, {})) > 20
    factors = None if weight is None else GRAPH.edata["w"].torch().double()
    loss, other = torch.zeros(()), torch.zeros(())
    for block, of in zip(batch.blocks, edges, strict=True):
        h = torch.arange(1.0, block.num_edges + 1)
        loss = loss + (of["w"] / block.edge_data["w"] * h).sum()
        ratio = samplers.learned.pass_ratio(GRAPH, block, torch.tensor(X), **theirs, weight=factors)
        other = other + (ratio * h).sum()
    loss.backward()
    other.backward()
    for name, tensor in mine.items():
        assert tensor.grad.abs().sum() > 0
        assert tensor.grad.numpy() == pytest.approx(theirs[name].grad.numpy(), rel=1e-4, abs=1e-5)


@pgs.program
def everything(A: Any, seeds: Any, *, X: Any, V: Any, D: Any, W: Any, a: Any) -> Any:
    C = A[:, seeds]
    P, Q = X[C.row()] @ W, X[seeds] @ W
    score = stack([C * (P @ Q.T), C.add(V, axis=1), C * D]) @ a.softmax()
    score = score.div(C.count(axis=0), axis=0) + C.mul(V[seeds]).minimum(A.degree().sum() / 9)
    chance = score.sub(score.max(axis=0)).exp()
    B = C.individual_sample(3, chance, replace=True)
    inner = B.mul(V.log().abs() ** 2, axis=1).div(B.sum(axis=1), axis=1)
    heard = C.T @ X
    some = A.column().isin(seeds)
    S = seeds | B.row()
    some_edges = A[:, S].where(A[:, S].spread(V, axis=1) > 0.7)
    outer = some_edges.collective_sample(6, (some_edges.spread(V, axis=1) ** 2).sum(axis=1))
    outer = outer.select(outer.relu() + outer.sum(axis=0).mean(), 1)
    extra = {
        "heard": heard,
        "back": B @ heard,
        "all": (A @ X)[:, 1] * V * some,
        "p": score.mean(axis=1) - score.min(axis=1),
        "edges": A.ndata["y"][C.row()] + C.sum(),
    }
    return [outer, {"w": inner, "chance": B.mul(0).add(V)}], extra


TENSORS = {
    "X": X,
    "V": RNG.uniform(0.5, 2, NODES).astype(np.float32),
    "D": RNG.normal(size=(NODES, NODES)).astype(np.float32),
    "W": W["W1"],
    "a": W3,
}


@pytest.mark.parametrize("weight", [None, "w"])
def test_values_are_those_of_the_engine(weight: str | None) -> None:
    sampler = everything(**TENSORS, weight=weight, seed=5)
    exclude = np.flatnonzero(np.isin(ENDS[1], SEEDS))[::3].copy()
    for without in (None, exclude):
        batch = sampler.sample(GRAPH, SEEDS, exclude=without)
        tensors = learned(**TENSORS)
        values = sampler.recompute(GRAPH, batch, tensors, exclude=without)
        assert same(batch, values) > 120
        total = sum(v.sum() for of in values[0] for v in of.values())
        (total + sum(v.sum() for v in values[1].values())).backward()
        assert all(float(tensor.grad.abs().sum()) > 0 for tensor in tensors.values())


def test_gradients_are_those_of_finite_differences() -> None:
    sampler = everything(**TENSORS, weight="w", seed=5)
    batch = sampler.sample(GRAPH, SEEDS).torch()

    def loss(tensors: dict[str, Any]) -> Any:
        edges, extra = sampler.recompute(GRAPH, batch, tensors)
        found = [v for of in edges for v in of.values()] + list(extra.values())
        return sum((v * torch.linspace(1, 2, v.numel()).reshape(v.shape)).sum() for v in found)

    tensors = learned(**TENSORS)
    loss(tensors).backward()
    for name, tensor in tensors.items():
        way = torch.tensor(RNG.normal(size=tensor.shape)) * 1e-6
        ends = [{**tensors, name: (tensor + sign * way).detach()} for sign in (1, -1)]
        slope = float((loss(ends[0]) - loss(ends[1])).detach()) / 2
        assert slope == pytest.approx(float((tensor.grad * way).sum()), rel=1e-4, abs=1e-9)


def test_subgraphs_and_parts_of_matrices() -> None:
    @pgs.program
    def among(A: Any, seeds: Any, *, V: Any) -> Any:
        nodes = seeds.unique() | A[:, seeds].row()
        G = A[nodes, nodes]
        part = A[:, nodes][:, seeds]
        both = part.merge(part.where(part.spread(V, axis=1) > 1))
        return (
            nodes,
            G.mul(V).div(G.sum(axis=0)),
            {"sent": both @ V, "none": G[:, seeds].max(axis=0)},
        )

    sampler = among(V=TENSORS["V"], weight="w", seed=1)
    batch = sampler.sample(GRAPH, SEEDS)
    tensors = learned(V=TENSORS["V"])
    values = sampler.recompute(GRAPH, batch, tensors)
    assert same(batch, values) > 40
    values[0][0]["w"].sum().backward()
    assert float(tensors["V"].grad.abs().sum()) > 0


def test_what_cannot_be_computed_is_told() -> None:
    @pgs.program
    def hidden(A: Any, seeds: Any, *, V: Any) -> Any:
        B = A[:, seeds].individual_sample(2)
        return {"x": B.mul(V).sum(axis=0)}

    @pgs.program
    def drawn(A: Any, seeds: Any, *, V: Any) -> Any:
        return A[:, seeds].mul(A.random() * V)

    tensors = learned(V=TENSORS["V"])
    for function, message in (
        (hidden, "expected a program that returns the edges which it chooses at random, got indiv"),
        (drawn, "expected an operator that torch computes, got random"),
    ):
        sampler = function(V=TENSORS["V"], seed=1)
        batch = sampler.sample(GRAPH, SEEDS)
        with pytest.raises(ValueError, match=f"recompute: {message}"):
            sampler.recompute(GRAPH, batch, tensors)
    pairs = (
        ({}, TypeError, "drawn.recompute: expected tensors by name, got"),
        ({"U": tensors["V"]}, TypeError, r"drawn.recompute: U: expected one of its inputs \(V\)"),
        ({"V": TENSORS["V"]}, TypeError, "V: expected a torch tensor of floats, got"),
        ({"V": tensors["V"][1:]}, ValueError, r"V: expected shape \(40,\), got \(39,\)"),
    )
    for given, kind, message in pairs:
        with pytest.raises(kind, match=message):
            sampler.recompute(GRAPH, batch, given)
    own = everything(**TENSORS, seed=5)
    batch = own.sample(GRAPH, SEEDS)
    other = pgs.Graph.from_coo(*ENDS[::-1], num_nodes=NODES, node_data={"y": np.ones(NODES)})
    with pytest.raises(
        ValueError, match="expected a batch of this sampler and graph, got one with"
    ):
        own.recompute(other, batch, learned(**TENSORS))
    mixed = {**learned(V=TENSORS["V"]), "X": torch.tensor(X)}
    with pytest.raises(TypeError, match=r"of one dtype, got torch.float32, torch.float64"):
        own.recompute(GRAPH, batch, mixed)


WRITES, CITES = ("a", "writes", "p"), ("p", "cites", "p")


def test_values_of_relations() -> None:
    counts = {"p": 30, "a": 20}
    edges = {
        kind: tuple(RNG.integers(0, counts[end], size) for end in (kind[0], kind[2]))
        for kind, size in ((WRITES, 150), (CITES, 200))
    }
    own = pgs.Graph.from_coo(edges, num_nodes=counts)

    @pgs.program
    def near(A: Any, seeds: Any, *, X: Any, V: Any) -> Any:
        papers = seeds["p"]
        every = A[:, papers]
        chance = every.dot(X, X).exp()
        chance = chance.div(chance.sum(axis=0), axis=0)
        B = every.individual_sample(3, chance, replace=True)
        C = A[CITES][:, papers | B.row()["p"]].mul(V)
        return [C, {"w": B.spread(V, axis=1), "sum": B.mul(V).div(B.sum(axis=0))}], {
            "heard": A[WRITES][:, papers].T @ X
        }

    tensors = {"X": RNG.normal(size=(50, 3)), "V": RNG.uniform(0.5, 2, 50)}
    sampler = near(**tensors, seed=3)
    exclude = {CITES: np.arange(0, 200, 4)}
    for without in (None, exclude):
        batch = sampler.sample(own, {"p": [4, 9, 4, 17]}, exclude=without)
        given = learned(**tensors)
        edge_data, extra = sampler.recompute(own, batch, given, exclude=without)
        found = 0
        for blocks, values in zip(batch.torch().blocks, edge_data, strict=True):
            for kind, of in values.items():
                assert set(of) == set(blocks[kind].edge_data)
                for name, each in of.items():
                    stored = blocks[kind].edge_data[name].numpy()
                    assert each.detach().numpy() == pytest.approx(stored, rel=2e-5)
                    found += len(each)
        assert found > 40
        heard = batch.extra["heard"].numpy()
        assert extra["heard"].detach().numpy() == pytest.approx(heard, rel=2e-5, abs=1e-6)
        sum(v.sum() for of in edge_data for named in of.values() for v in named.values()).backward()
        assert float(given["V"].grad.abs().sum()) > 0


def test_a_list_of_all_nodes_is_chosen_by_values() -> None:
    @pgs.program
    def chosen(A: Any, seeds: Any, *, V: Any) -> Any:
        nodes = A.column()[V > 1]
        return {"x": A[:, nodes].mul(V).sum(axis=0)}

    sampler = chosen(V=TENSORS["V"], weight="w", seed=1)
    batch = sampler.sample(GRAPH, SEEDS)
    assert same(batch, sampler.recompute(GRAPH, batch, learned(V=TENSORS["V"]))) > 10


def test_blocks_that_are_slices_of_all_or_have_no_edges() -> None:
    @pgs.program
    def sliced(A: Any, seeds: Any, V: Any) -> Any:
        return A.mul(V, axis=1)[:, seeds]

    @pgs.program
    def empty(A: Any, seeds: Any, V: Any) -> Any:
        P = A[:, seeds].mul(V, axis=1)
        return P.where(P > 500)

    V = RNG.uniform(1, 2, NODES).astype(np.float32)
    for program, seeds in ((sliced, [1]), (sliced, [0, 2]), (sliced, SEEDS), (empty, SEEDS)):
        sampler = program(V=V, seed=1)
        batch = sampler.sample(GRAPH, seeds).torch()
        count = same(batch, sampler.recompute(GRAPH, batch, learned(V=V)))
        assert (count > 0) is (program is sliced)


def test_values_of_values_are_traced_in_time() -> None:
    @pgs.program
    def doubled(A: Any, seeds: Any, k: int) -> Any:
        v = A.degree()
        for _ in range(k):
            v = v + v
        return A[:, seeds].mul(v[seeds], axis=0)

    # By each path through the sums this would take 2**60 steps.
    assert doubled(k=60, seed=1).sample(GRAPH, SEEDS).num_edges > 0


def test_values_of_values_are_recomputed_in_time() -> None:
    @pgs.program
    def halved(A: Any, seeds: Any, k: int, *, V: Any) -> Any:
        v = V
        for _ in range(k):
            v = (v + v) * 0.5
        return A[:, seeds].mul(v, axis=1)

    sampler = halved(k=60, V=TENSORS["V"], seed=1)
    batch = sampler.sample(GRAPH, SEEDS)
    tensors = learned(V=TENSORS["V"])
    assert same(batch, sampler.recompute(GRAPH, batch, tensors)) > 0
