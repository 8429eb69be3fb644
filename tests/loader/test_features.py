"""DataLoader(features=, labels=, edge_features=): the rows of what was sampled, with each batch."""

from __future__ import annotations

import copy
import gc
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from engine_usage import held
from torch.nn import functional

import pygsampler as pgs
from pygsampler._features.gather import GatherJob
from pygsampler.samplers import CompletedJob, PendingBatch
from pygsampler.torch import DataLoader

NODES = 800
RANDOM = torch.Generator().manual_seed(3)
DEGREES = torch.randint(0, 21, (NODES,), generator=RANDOM)
EDGES = int(DEGREES.sum())
SEEDS = torch.randint(0, NODES, (300,), generator=RANDOM)

# Rows of 20, 2, 6 and 8 bytes, for vertices and edges.
X = torch.rand(NODES, 5, generator=RANDOM)
H = torch.rand(NODES, generator=RANDOM).half()
B = torch.rand(NODES, 3, generator=RANDOM).bfloat16()
Y = torch.randint(0, 7, (NODES,), generator=RANDOM)
E = torch.rand(EDGES, 2, 2, generator=RANDOM).double()
T = torch.arange(EDGES)

ALL: dict[str, Any] = {
    "features": {"x": X, "h": H, "b": B},
    "labels": Y,
    "edge_features": {"e": E.numpy(), "t": pgs.Features.from_tensor(T)},
}


def make_graph(**more: Any) -> pgs.Graph:
    """Edge i of the CSC is not edge i of the table: a permutation of ids."""
    indptr = torch.zeros(NODES + 1, dtype=torch.int64)
    indptr[1:] = DEGREES.cumsum(0)
    random = torch.Generator().manual_seed(4)
    indices = torch.randint(0, NODES, (EDGES,), generator=random)
    ids = torch.randperm(EDGES, generator=random)
    return pgs.Graph.from_csc(indptr, indices, **{"edge_ids": ids, **more})


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return make_graph(edge_data={"w": torch.rand(EDGES, generator=RANDOM)})


def check(batch: Any) -> None:
    """The rows are those of the ids, and there are no others."""
    assert set(batch.features) == {"x", "h", "b", "y"}
    for name, rows in (("x", X), ("h", H), ("b", B)):
        assert getattr(batch, name) is batch.features[name]
        assert batch.features[name].equal(rows[batch.input_nodes])
    assert batch.y is batch.features["y"]
    assert batch.y.equal(Y[batch.output_nodes])
    for block in batch.blocks:
        assert set(block.features) == {"e", "t"}
        assert block.e is block.features["e"]
        assert block.e.equal(E[block.edge_ids])
        assert block.t.equal(T[block.edge_ids])


def ids(batch: Any) -> list[list[int]]:
    """What was sampled."""
    found = [batch.input_nodes.tolist(), batch.output_nodes.tolist()]
    for block in batch.blocks:
        found += [block.edge_ids.tolist(), block.indices.tolist(), block.indptr.tolist()]
    return found


SAMPLERS = {
    "uniform": pgs.PGSampler([5, 3], seed=1),
    "three hops": pgs.PGSampler([3, 2, 2], seed=1, replace=True),
    "new": pgs.PGSampler([5, 3], seed=1, frontier="new"),
    "disjoint": pgs.PGSampler([3, 3], seed=1, disjoint=True),
    "weights": pgs.PGSampler([5, 3], seed=1, prob="w", edge_weights="ht"),
    "no edges": pgs.PGSampler([0], seed=1),
    "all": pgs.PGSampler([-1], seed=1),
}


@pytest.mark.parametrize("prefetch", range(6))
@pytest.mark.parametrize("name", SAMPLERS)
def test_each_batch_has_its_rows(graph: pgs.Graph, name: str, prefetch: int) -> None:
    options: dict[str, Any] = {"batch_size": 64, "shuffle": True, "seed": 2, "prefetch": prefetch}
    loader = DataLoader(graph, SEEDS, SAMPLERS[name], **options, **ALL)
    plain = DataLoader(graph, SEEDS, SAMPLERS[name], **options)
    for _ in range(2):
        count = 0
        for batch, alone in zip(loader, plain, strict=True):
            check(batch)
            assert ids(batch) == ids(alone)
            assert (batch.epoch, batch.batch) == (alone.epoch, alone.batch)
            assert alone.features == {} and not hasattr(alone, "x")
            count += 1
        assert count == len(loader) == 5


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_as_many_threads_as_one_likes(graph: pgs.Graph, threads: int, prefetch: int) -> None:
    before = pgs.set_num_threads(threads)
    try:
        loader = DataLoader(graph, SEEDS, [5, 5], batch_size=50, seed=2, prefetch=prefetch, **ALL)
        for batch in loader:
            check(batch)
    finally:
        pgs.set_num_threads(before)


@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks(graph: pgs.Graph, drop_last: bool) -> None:
    seen: list[int] = []
    for rank in range(3):
        loader = DataLoader(
            graph,
            range(100),
            [3, 3],
            batch_size=16,
            shuffle=True,
            drop_last=drop_last,
            seed=7,
            rank=rank,
            world_size=3,
            **ALL,
        )
        for batch in loader:
            check(batch)
            seen += batch.output_nodes.tolist()
    assert len(seen) == len(set(seen)) == (96 if drop_last else 100)


def test_each_of_them_alone(graph: pgs.Graph) -> None:
    for name in ALL:
        batch = next(iter(DataLoader(graph, SEEDS, [3, 3], batch_size=40, **{name: ALL[name]})))
        assert hasattr(batch, "x") == (name == "features")
        assert hasattr(batch, "y") == (name == "labels")
        assert all(hasattr(block, "e") == (name == "edge_features") for block in batch.blocks)
    for nothing in ({"features": {}}, {"features": None, "labels": None, "edge_features": {}}):
        batch = next(iter(DataLoader(graph, SEEDS, [3], batch_size=40, **nothing)))
        assert batch.features == {} == batch.blocks[0].features
    with pytest.raises(TypeError):
        batch.features["x"] = X
    # Without labels the name is free.
    batch = next(iter(DataLoader(graph, SEEDS, [3], batch_size=40, features={"y": X})))
    assert batch.y.equal(X[batch.input_nodes])


def test_labels_of_seeds_that_are_there_twice(graph: pgs.Graph) -> None:
    (batch,) = DataLoader(graph, [5, 7, 5], [2], batch_size=8, features={"x": X}, labels=X)
    assert batch.y.equal(X[[5, 7, 5]])
    assert batch.x[batch.output_index].equal(batch.y)


def test_empty_rows_and_no_seeds(graph: pgs.Graph) -> None:
    nothing = torch.zeros(NODES, 0)
    features = {"n": nothing, "x": X, "m": np.zeros((NODES, 2, 0))}
    loader = DataLoader(
        graph, SEEDS, [3], batch_size=99, features=features, labels=nothing,
        edge_features={"e": torch.zeros(EDGES, 0)},
    )  # fmt: skip
    for batch in loader:
        count = len(batch.input_nodes)
        assert batch.x.equal(X[batch.input_nodes])
        assert (batch.n.shape, batch.m.shape) == ((count, 0), (count, 2, 0))
        assert batch.y.shape == (len(batch.output_nodes), 0)
        assert batch.blocks[0].e.shape == (batch.blocks[0].num_edges, 0)
    assert list(DataLoader(graph, [], [3], batch_size=99, **ALL)) == []


@pytest.mark.parametrize("name", ["features", "labels"])
def test_more_rows_than_nodes_are_an_error(graph: pgs.Graph, name: str) -> None:
    rows = torch.zeros(NODES + 5)
    given = {name: {"x": rows} if name == "features" else rows}
    with pytest.raises(ValueError, match=rf"of {NODES} nodes, got {NODES + 5}; num_nodes="):
        DataLoader(graph, SEEDS, [3], batch_size=99, **given)


def test_rows_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "graph.pgs"
    make_graph(node_data={"x": X, "y": Y}, edge_data={"e": E}).save(path)
    graph = pgs.Graph.open(path)
    opened = {name: pgs.Features.open(path, name) for name in ("x", "y", "e")}
    for given in (opened, {**graph.ndata, **graph.edata}):
        loader = DataLoader(
            graph,
            SEEDS,
            [3, 3],
            batch_size=100,
            features={"x": given["x"]},
            labels=given["y"],
            edge_features={"e": given["e"]},
        )
        for batch in loader:
            assert batch.x.equal(X[batch.input_nodes]) and batch.y.equal(Y[batch.output_nodes])
            assert all(block.e.equal(E[block.edge_ids]) for block in batch.blocks)
    assert opened["x"].stats()["reads"] == 3
    assert opened["e"].stats()["reads"] == 6


def test_what_is_changed_is_read_from_the_next_batch_on(graph: pgs.Graph) -> None:
    x = torch.zeros(NODES, 2)
    features = pgs.Features.from_tensor(x)
    loader = DataLoader(graph, SEEDS, [2], batch_size=100, prefetch=0, features={"x": features})
    batches = iter(loader)
    first = next(batches)
    features.update(1, range(NODES))
    assert next(batches).x.eq(1).all() and first.x.eq(0).all()
    features.close()
    with pytest.raises(pgs.errors.ClosedError):
        next(batches)


class Last(pgs.Sampler):
    """One hop, of each vertex one of its last in-edges where it has one."""

    plan = ("last",)

    def __init__(self, seed: int | None = None, most: int = EDGES) -> None:
        super().__init__(seed)
        self.most = most

    def launch(
        self, graph: pgs.Graph, seeds: Any, *, epoch: int, batch: int, **how: Any
    ) -> PendingBatch[pgs.MiniBatch]:
        draw = random.Random(f"{self.seed} {epoch} {batch}")
        given = [int(seed) for seed in seeds]
        nodes, rows, sources, edges = list(dict.fromkeys(given)), [0], [], []
        index = [nodes.index(seed) for seed in given]
        for v in nodes:
            start, end = graph.indptr[v], graph.indptr[v + 1]
            if end > start:
                place = end - 1 - draw.randrange(min(3, end - start))
                sources.append(graph.indices[place])
                assert graph.edge_ids is not None
                edges.append(graph.edge_ids[place])
            rows.append(len(edges))
        nodes = list(dict.fromkeys([*nodes, *sources]))
        block = rows, [nodes.index(v) for v in sources], edges
        made = pgs.MiniBatch.from_blocks(
            given, nodes, [block], output_index=index, epoch=epoch, batch=batch
        )
        return CompletedJob(made)


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_a_sampler_of_ones_own(graph: pgs.Graph, prefetch: int) -> None:
    loader = DataLoader(
        graph, SEEDS, Last(1), batch_size=64, shuffle=True, prefetch=prefetch, **ALL
    )
    for _ in range(2):
        for batch in loader:
            check(batch)
    assert loader.epoch == 2


# ---- wrong arguments ----


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"features": X}, TypeError, r"^features: expected a mapping .* \{'x': x\}, got Tensor"),
        ({"features": [X]}, TypeError, "^features: expected a mapping of names to arrays"),
        ({"edge_features": E}, TypeError, "^edge_features: expected a mapping of names"),
        ({"features": {1: X}}, ValueError, "^features: expected names of attributes, got 1"),
        ({"features": {"": X}}, ValueError, "^features: expected names of attributes, got ''"),
        ({"features": {"a b": X}}, ValueError, "^features: expected names of attributes"),
        ({"features": {"_x": X}}, ValueError, "^features: expected names of attributes"),
        (
            {"features": {"x": X[:-1]}},
            ValueError,
            r"^features\['x'\]: expected a row for each of 800 nodes, got 799",
        ),
        ({"labels": Y[:5]}, ValueError, "^labels: expected a row for each of 800 nodes, got 5"),
        (
            {"edge_features": {"e": E[1:]}},
            ValueError,
            rf"^edge_features\['e'\]: expected a row for each of {EDGES} edges, got {EDGES - 1}",
        ),
        (
            {"features": {"x": None}},
            TypeError,
            r"^features\['x'\]: expected an array of bool, .* got NoneType",
        ),
        ({"labels": "y"}, TypeError, "^labels: expected an array of bool"),
        ({"labels": 3}, ValueError, "^labels: expected an array of one dimension or more"),
        ({"features": {"x": X.to_sparse()}}, TypeError, r"^features\['x'\]: .*sparse"),
        (
            {"features": {"y": X}, "labels": Y},
            ValueError,
            "^features: expected another name, since labels= uses it, got 'y'",
        ),
    ],
)
def test_what_is_refused(
    graph: pgs.Graph, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        DataLoader(graph, SEEDS, [2], batch_size=8, **options)


def test_names_that_batches_have(graph: pgs.Graph) -> None:
    """All their attributes, those of the instance among them: nothing is hidden."""
    batch = pgs.PGSampler([2]).sample(graph, [0]).torch()
    of = {"features": (batch, X), "edge_features": (batch.blocks[0], E)}
    for kind, (owner, rows) in of.items():
        names = {name for name in dir(owner) if not name.startswith("_")}
        assert {"features", "num_edges", "epoch" if kind == "features" else "dst_offset"} <= names
        for name in sorted(names):
            text = f"^{kind}: expected names that batches do not have, got {name!r}"
            with pytest.raises(ValueError, match=text):
                DataLoader(graph, SEEDS, [2], batch_size=8, **{kind: {name: rows}})


def test_closed_features_are_refused(graph: pgs.Graph) -> None:
    closed = pgs.Features.from_tensor(X)
    closed.close()
    with pytest.raises(pgs.errors.ClosedError):
        DataLoader(graph, SEEDS, [2], batch_size=8, features={"x": closed})


# ---- ends ----


@pytest.mark.parametrize("prefetch", range(6))
def test_an_edge_without_a_row_raises_at_its_place(prefetch: int) -> None:
    # The last edge of vertex 75, which is a seed of batch 7; its in-edges alone are sampled.
    edges = torch.arange(EDGES)
    end = int(DEGREES[:76].sum())
    assert DEGREES[75] > 0
    edges[end - 1] = EDGES + 5
    graph = make_graph(edge_ids=edges)
    before = held()
    wrong = DataLoader(
        graph, range(200), [-1], batch_size=10, prefetch=prefetch,
        features={"x": X}, edge_features={"t": T},
    )  # fmt: skip
    text = rf"^t: ids\[\d+\]: expected an integer in \[0, {EDGES}\), got {EDGES + 5}$"
    for _ in range(2):
        good = 0
        with pytest.raises(IndexError, match=text):
            for batch in wrong:
                assert batch.output_nodes.tolist() == list(range(10 * good, 10 * good + 10))
                assert batch.blocks[0].t.equal(T[batch.blocks[0].edge_ids])
                good += 1
        assert good == 7
        assert held()[1] == 0
    del batch
    assert held() == before


def test_leaving_early_cancels_and_keeps_nothing(graph: pgs.Graph) -> None:
    before = held()
    loader = DataLoader(graph, range(NODES), [5, 5], batch_size=20, prefetch=5, **ALL)
    for stop in range(10):
        for step, batch in enumerate(loader):
            check(batch)
            if step == stop:
                break
        batches = iter(loader)
        next(batches)
        batches.close()
        with pytest.raises(ZeroDivisionError):
            for batch in loader:
                batch.epoch / 0
    del batch, batches
    assert held() == before
    assert sum(1 for _ in loader) == 40


def test_leaving_early_ends_the_readings_that_somebody_else_holds(
    graph: pgs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []

    class Kept(GatherJob):
        __slots__ = ()

        def __init__(self, *parts: Any, **how: Any) -> None:
            super().__init__(*parts, **how)
            begun.append(self)

    monkeypatch.setattr("pygsampler._loader.feature_fetcher.GatherJob", Kept)
    # A look at the queue takes the results that are there, which stay.
    monkeypatch.setattr("pygsampler._loader.prefetch.LOOK", float("inf"))
    batches = iter(DataLoader(graph, SEEDS, Last(1), batch_size=20, prefetch=5, **ALL))
    next(batches)
    batches.close()
    assert len(begun) == 5
    begun[0].result()
    for job in begun[1:]:
        with pytest.raises(pgs.Error, match="got one that was cancelled"):
            job.result()


def test_rows_outlive_everything() -> None:
    loader = DataLoader(make_graph(), SEEDS, [3, 3], batch_size=100, seed=1, **ALL)
    kept = [(batch.x, batch.input_nodes, batch.blocks[0].e) for batch in loader]
    expected = [[tensor.tolist() for tensor in tensors] for tensors in kept]
    loader.set_epoch(0)
    list(loader)
    del loader
    gc.collect()
    assert [[tensor.tolist() for tensor in tensors] for tensors in kept] == expected
    assert kept[0][0].equal(X[kept[0][1]])


def test_two_iterators_at_once(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5], batch_size=50, shuffle=True, seed=2, **ALL)
    for pair in zip(loader, loader, strict=True):
        for batch in pair:
            check(batch)


# ---- copies ----


def test_a_loader_can_be_pickled(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=100, seed=2, **ALL)
    expected = [ids(batch) for batch in loader]
    for again in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader)):
        again.set_epoch(0)
        found = []
        for batch in again:
            check(batch)
            found.append(ids(batch))
        assert found == expected


def test_a_batch_takes_its_rows_along(graph: pgs.Graph) -> None:
    for sampler in (SAMPLERS["uniform"], SAMPLERS["disjoint"], Last(1)):
        batch = next(iter(DataLoader(graph, SEEDS, sampler, batch_size=50, **ALL)))
        for again in (
            pickle.loads(pickle.dumps(batch)),
            copy.copy(batch),
            copy.deepcopy(batch),
            batch.to("cpu"),
            pickle.loads(pickle.dumps(batch)).to(torch.device("cpu")).to("cpu"),
        ):
            check(again)
            assert ids(again) == ids(batch)
        assert batch.to("cpu").x.data_ptr() == batch.x.data_ptr()
        block = pickle.loads(pickle.dumps(batch.blocks[0]))
        assert block.e.equal(batch.blocks[0].e) and set(block.features) == {"e", "t"}
        # What one has does not come to another.
        copy.copy(batch)._attach("z", X)
        assert "z" not in batch.features and not hasattr(batch, "z")


# ---- training ----


class SAGE(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (X.shape[1], 8, 7)
        self.own = torch.nn.ModuleList(map(torch.nn.Linear, widths, widths[1:]))
        self.others = torch.nn.ModuleList(map(torch.nn.Linear, widths, widths[1:]))

    def forward(self, batch: Any, h: torch.Tensor) -> torch.Tensor:
        for place, block in enumerate(batch.blocks):
            src, dst = block.coo()
            count = block.num_dst_nodes
            sums = h.new_zeros(count, h.shape[1]).index_add_(0, dst, h[src])
            mean = sums / block.indptr.diff().clamp(min=1).unsqueeze(1)
            h = self.own[place](h[:count]) + self.others[place](mean)
            h = functional.relu(h) if place == 0 else h
        return h[batch.output_index]


def test_training_is_what_it_is_with_rows_by_hand(graph: pgs.Graph) -> None:
    def losses(rows: bool) -> list[float]:
        torch.manual_seed(0)
        model = SAGE()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
        more: dict[str, Any] = {"features": {"x": X}, "labels": Y} if rows else {}
        loader = DataLoader(graph, SEEDS, [5, 5], batch_size=60, shuffle=True, seed=1, **more)
        found = []
        for _ in range(4):
            for batch in loader:
                x, y = (batch.x, batch.y) if rows else (X[batch.input_nodes], Y[batch.output_nodes])
                loss = functional.cross_entropy(model(batch, x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        return found

    by_loader = losses(True)
    assert by_loader == losses(False)
    assert len(set(by_loader)) == len(by_loader) == 20
    assert sum(by_loader[-5:]) < sum(by_loader[:5])
