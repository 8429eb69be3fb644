"""What programs return, and that every loader takes them."""

from __future__ import annotations

import html
import pickle
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from graphs import circulant
from program_functions import ladies

import pygsampler as pgs
from pygsampler._batch.subgraph import Subgraph
from pygsampler.programs import Program
from pygsampler.torch import DataLoader


@pgs.program
def hops(A: Any, seeds: Any, fanouts: Any) -> Any:
    blocks: list[Any] = []
    for K in reversed(fanouts):
        C = A[:, seeds]
        B = C.individual_sample(K, C.edata["t"])
        blocks.insert(0, B.mul(A.ndata["x"], axis=1))
        seeds = seeds | B.row()
    return blocks, {"reached": seeds, "x": A.ndata["x"][seeds]}


@pgs.program
def around(A: Any, seeds: Any) -> Any:
    V = A[:, seeds].row() | seeds
    return A.induce(V)


@pgs.program
def numbers(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    return {"degree": C.count(axis=0), "sum": C.sum(axis=0), "rows": C.row()}


@pgs.program
def quotients(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    return C.div(C.sum(axis=0), axis=0).div(A.ndata["x"], axis=1)


@pytest.fixture(params=[32, 64])
def graph(request: pytest.FixtureRequest) -> pgs.Graph:
    made = circulant(50, 5, bits=request.param)
    edges = np.arange(made.num_edges)
    return made.with_data(
        edge_data={"t": edges % 3 + 1.0, "w": (edges % 7).astype(np.int16)},
        node_data={"x": np.arange(50, dtype=np.uint8)},
    )


def lists(batch: Any) -> Any:
    return [
        [getattr(b, name).tolist() for name in ("indptr", "indices", "edge_ids", "edge_weights")]
        for b in batch.blocks
    ]


def test_div_divides(graph: pgs.Graph) -> None:
    """By a number of each column, and by one of each row: once each, and not by their inverses."""
    seeds = np.arange(7, 19)
    batch = quotients(weight="t").sample(graph, seeds).numpy()
    (block,) = batch.blocks
    t, x = graph.edata["t"].numpy(), graph.ndata["x"].numpy().astype(float)
    columns = np.repeat(np.arange(len(seeds)), np.diff(block.indptr))
    sums = np.bincount(columns, t[block.edge_ids])
    rows = batch.input_nodes[block.indices]
    assert (x[rows] > 0).all()
    want = t[block.edge_ids] / sums[columns] / x[rows]
    assert np.allclose(block.edge_weights, want, rtol=1e-6)


def test_blocks_with_values_and_more(graph: pgs.Graph) -> None:
    sampler = hops(fanouts=[2, 3], weight="w", seed=4)
    batch = sampler.sample(graph, [7, 3, 7], epoch=0, batch=0)
    assert isinstance(batch, pgs.MiniBatch)
    inner, outer = batch.blocks[1], batch.blocks[0]
    assert inner.num_dst_nodes == 2
    assert np.diff(inner.indptr.numpy()).tolist() == [3, 3]
    assert (np.diff(outer.indptr.numpy()) == 2).all()
    assert batch.output_nodes.tolist() == [7, 3, 7]
    assert batch.output_index.tolist() == [0, 1, 0]
    for block in batch.blocks:
        ids = np.asarray(block.edge_ids)
        sources = block.src_nodes.numpy()[block.indices.numpy()]
        values = block.edge_data["w"].numpy()
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, (ids % 7) * sources)
    reached = batch.extra["reached"]
    assert reached.dtype == graph.indices.dtype
    np.testing.assert_array_equal(reached.numpy(), batch.input_nodes.numpy())
    np.testing.assert_array_equal(batch.extra["x"].numpy(), batch.input_nodes.numpy())


def test_conversions_and_pickles_have_all(graph: pgs.Graph) -> None:
    batch = hops(fanouts=[2, 3], weight="w", seed=4).sample(graph, [7, 3], epoch=0, batch=0)
    want = lists(batch)
    for made in (batch.numpy(), batch.torch(), batch.arrow(), pickle.loads(pickle.dumps(batch))):
        assert lists(made) == want
        assert list(made.extra) == ["reached", "x"]
        assert made.extra["x"].tolist() == batch.extra["x"].tolist()
    tensors = pickle.loads(pickle.dumps(batch.torch().to("cpu")))
    assert lists(tensors) == want
    assert tensors.extra["reached"].tolist() == batch.extra["reached"].tolist()
    assert tensors.blocks[0].edge_data["w"].dtype == torch.float32


def test_subgraphs(graph: pgs.Graph) -> None:
    made = around(seed=0).sample(graph, [7, 3, 7])
    assert isinstance(made, pgs.samplers.Subgraph)
    vertices = made.nodes.tolist()
    assert vertices[-2:] in ([7, 3], [3, 7]) or {7, 3} <= set(vertices)
    src, dst = (np.asarray(part) for part in made.coo())
    indptr, indices = graph.indptr.numpy(), graph.indices.numpy()
    inside = set(vertices)
    want = {
        (int(u), v) for v in vertices for u in indices[indptr[v] : indptr[v + 1]] if u in inside
    }
    assert {(vertices[u], vertices[v]) for u, v in zip(src, dst, strict=True)} == want
    assert [vertices[i] for i in made.root_index] == [7, 3, 7]
    assert made.num_nodes == len(vertices)
    again = pickle.loads(pickle.dumps(made))
    assert isinstance(again, pgs.samplers.Subgraph)
    assert again.nodes.tolist() == vertices
    tensors = pickle.loads(pickle.dumps(made.torch().to("cpu")))
    assert isinstance(tensors, Subgraph)
    assert tensors.edge_index.tolist() == [src.tolist(), dst.tolist()]
    for kind, other in (
        (pgs._batch.subgraph.Subgraph, made.numpy()),
        (pgs._batch.subgraph.Subgraph, made.arrow()),
    ):
        assert isinstance(other, kind)
        assert other.nodes.tolist() == vertices
        assert other.indices.tolist() == src.tolist()
    assert "Subgraph(nodes=" in repr(made)
    assert "Subgraph" in made._repr_html_()


def test_vectors_alone(graph: pgs.Graph) -> None:
    made = numbers(weight="w", seed=0).sample(graph, [4, 9])
    assert made.blocks == ()
    assert made.extra["degree"].tolist() == [5, 5]
    indptr = graph.indptr.numpy()
    want = [sum(e % 7 for e in range(indptr[v], indptr[v + 1])) for v in (4, 9)]
    assert made.extra["sum"].tolist() == want
    assert made.numpy().extra["rows"].shape == (10,)


def test_the_numbers_of_a_race(graph: pgs.Graph) -> None:
    """The rows with the smallest keys were chosen; and these are there without the rows."""

    @pgs.program
    def raced(A: Any, seeds: Any, chosen: bool) -> Any:
        C = A[:, seeds]
        p = C.sum(axis=1)
        B = C.collective_sample(3, p)
        extra = {"rows": C.row(), "r": B.race()[C.row()], "again": B.race()[C.row()], "p": p}
        return (extra | {"chosen": B.row()}) if chosen else extra

    with_v = graph.with_data(edge_data={"v": np.arange(graph.num_edges) % 7 + 1.0})
    for number in range(20):
        made = raced(chosen=True, weight="v", seed=5).sample(with_v, [4, 9], epoch=0, batch=number)
        found = made.numpy().extra
        smallest = np.argsort(-np.log(found["r"]) / found["p"])[:3]
        assert set(found["rows"][smallest]) == set(found["chosen"]) and len(found["rows"]) > 3
        assert found["again"].tolist() == found["r"].tolist()
        alone = raced(chosen=False, weight="v", seed=5).sample(with_v, [4, 9], batch=number)
        assert alone.numpy().extra["r"].tolist() == found["r"].tolist()


def test_ladies_weights_of_a_column_sum_to_one(graph: pgs.Graph) -> None:
    positive = graph.with_data(edge_data={"v": np.arange(graph.num_edges) % 7 + 1.0})
    batch = ladies(K=6, hops=2, weight="v", seed=1).sample(positive, [4, 9, 30])
    kept = [np.unique(block.indices.numpy()) for block in batch.blocks]
    assert [len(rows) for rows in kept] == [6, 6]
    for block, rows in zip(batch.blocks, kept, strict=True):
        sources = block.src_nodes.numpy()
        chosen, ids = set(sources[rows].tolist()), block.edge_ids.numpy()
        columns = block.dst_nodes.tolist()
        at, indices = graph.indptr.numpy(), graph.indices.numpy()
        # All edges of the columns from the chosen rows, and no other.
        want = [e for v in columns for e in range(at[v], at[v + 1]) if int(indices[e]) in chosen]
        assert ids.tolist() == want
        # p of the paper: by row, over all edges into the columns.
        every = np.concatenate([np.arange(at[v], at[v + 1]) for v in columns])
        weight = np.arange(graph.num_edges) % 7 + 1.0
        p = np.bincount(indices[every].astype(int), weight[every] ** 2, graph.num_nodes)
        values = weight[ids] / p[indices[ids]]
        column = np.repeat(np.arange(len(columns)), np.diff(block.indptr.numpy()))
        values /= np.bincount(column, values, len(columns))[column]
        np.testing.assert_allclose(block.edge_data["w"].numpy(), values, rtol=1e-6)


def test_explained(graph: pgs.Graph) -> None:
    sampler = hops(fanouts=[2, 3], weight="w", seed=4)
    made = sampler.explain(graph, seeds=10)
    assert made.startswith("as traced\n")
    assert all(f"  {line}\n" in made for line in sampler.code.split("\n"))
    assert "a batch of 10 seeds on a graph of 50 nodes and 250 edges" in made
    assert repr(made) == str(made)
    page = made._repr_html_()
    assert page == f"{made.svg}<pre>{html.escape(made)}</pre>"
    drawn = ElementTree.fromstring(made.svg)
    texts = [each.text or "" for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    plan = made.partition("\n\nruns as ")[0].split("\n\n")[-1]
    assert len(texts) == sum(line.startswith(("  %", "  return")) for line in plan.split("\n"))
    assert "0: seeds" in texts
    assert texts[-1].startswith("return blocks")
    assert "measured" not in made
    measured = sampler.explain(graph, seeds=10, batches=2)
    assert measured.startswith(made)
    assert "measured, the median of 2 batches:" in measured
    assert measured.rstrip().endswith("in all")
    assert measured.svg == made.svg
    hostile = "</text><script>%0 %1\n\nruns as "
    named = graph.with_data(edge_data={hostile: np.ones(graph.num_edges)})
    page = pgs.program(lambda A, seeds: A[:, seeds].edata[hostile])().explain(named)._repr_html_()
    assert "<script" not in page
    assert len(list(ElementTree.fromstring(page.partition("<pre>")[0]))) == 4 * 2 + 3
    with pytest.raises(TypeError, match="graph: expected"):
        sampler.explain(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seeds: expected an integer"):
        sampler.explain(graph, seeds="many")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'nothing'"):
        hops(fanouts=[2], weight="nothing", seed=0).explain(graph)


def test_tuned_by_the_time_of_batches(graph: pgs.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock by which each batch of a plan with edge_map takes a second, and of others half, and
    # half of that with a layout.
    now = [0.0]
    make = Program.sample

    def sample(self: Program, *args: Any, **how: Any) -> Any:
        laid = self.plan.get("layouts") or ()
        now[0] += (0.5 if "edge_map" in self.plan["passes"] else 1.0) / (1 + ("all_rows" in laid))
        return make(self, *args, **how)

    monkeypatch.setattr(Program, "sample", sample)
    monkeypatch.setattr(
        import_module("pygsampler.programs.program"), "perf_counter", lambda: now[0]
    )
    sampler = hops(fanouts=[2, 3], weight="w", seed=4, passes=["cse"])
    tuned = sampler.tuned(graph, [1, 2, 3], batches=2)
    assert tuned.plan["passes"] == ("cse", "edge_map") and tuned.seed == 4
    assert tuned.plan["layouts"] == ("all_rows",) and "layouts" not in sampler.plan
    assert sampler.plan["passes"] == ("cse",)
    one, other = (each.sample(graph, [1, 2], epoch=0, batch=1) for each in (sampler, tuned))
    assert lists(one) == lists(other)
    with pytest.raises(ValueError, match="batches: expected"):
        sampler.tuned(graph, [1], batches=0)


def test_many_and_submitted_batches_are_those_of_sample(graph: pgs.Graph) -> None:
    sampler = hops(fanouts=[2, 3], weight="w", seed=4)
    seeds = [[1, 2], [3], [], [4, 4, 5]]
    one = [lists(sampler.sample(graph, ids, epoch=1, batch=i)) for i, ids in enumerate(seeds)]
    many = sampler.sample_many(graph, seeds, epoch=1, batch=0)
    assert [lists(batch) for batch in many] == one
    jobs = [sampler.submit(graph, ids, epoch=1, batch=i) for i, ids in enumerate(seeds)]
    assert [lists(job.result()) for job in jobs] == one


def test_arrays_are_read_when_a_batch_is_sampled(graph: pgs.Graph) -> None:
    values = np.zeros(50)
    changing = graph.with_data(node_data={"x": values})
    sampler = hops(fanouts=[2], seed=4)
    assert not sampler.sample(changing, [7]).extra["x"].numpy().any()
    values[:] = np.arange(50)
    batch = sampler.sample(changing, [7])
    np.testing.assert_array_equal(batch.extra["x"].numpy(), batch.input_nodes.numpy())


def test_draws_of_the_whole_graph_leave_edges_out(graph: pgs.Graph) -> None:
    """By number, by values of all edges, by rows and by a mask; sums over A have all edges."""

    @pgs.program
    def drawn(A: Any, seeds: Any, how: str) -> Any:
        heavy = A.where(A > 1)
        B = {
            "uniform": lambda: A.individual_sample(3),
            "weighted": lambda: A.individual_sample(3, A * A),
            "rows": lambda: A.collective_sample(20, A.sum(axis=1)),
            "mask": lambda: A.where(A.spread(A.random(), axis=1) < 0.7),
            "alone": lambda: heavy,
        }[how]()
        return [{"w": B, "t": B.edata["t"]}], {"sums": A.sum(axis=0), "degree": heavy.count(axis=0)}

    out = np.arange(0, graph.num_edges, 3)
    v, t = graph.edata["w"].numpy(), graph.edata["t"].numpy()
    for how in ("uniform", "weighted", "rows", "mask", "alone"):
        sampler = drawn(how=how, weight="w", seed=2)
        whole = sampler.sample(graph, [1, 2], batch=0).numpy()
        fewer = sampler.sample(graph, [1, 2], batch=0, exclude=out).numpy()
        assert set(whole.blocks[0].edge_ids.tolist()) & set(out.tolist())
        edges = fewer.blocks[0].edge_ids
        assert len(edges) > 20 and not set(edges.tolist()) & set(out.tolist())
        assert (fewer.blocks[0].edge_data["w"] == v[edges]).all()
        assert (fewer.blocks[0].edge_data["t"] == t[edges]).all()
        for name in ("sums", "degree"):
            assert (fewer.extra[name] == whole.extra[name]).all()


def test_wrong_arrays_and_seeds(graph: pgs.Graph) -> None:
    with pytest.raises(ValueError, match=r"weight: expected an edge array.*got 'nothing'"):
        hops(fanouts=[2], weight="nothing", seed=0).sample(graph, [1])
    with pytest.raises(IndexError, match=r"seeds\[1\]"):
        hops(fanouts=[2], seed=0).sample(graph, [1, 50])
    with pytest.raises(ValueError, match=r"exclude\[0\]: expected the id of an edge of the graph"):
        hops(fanouts=[2], seed=0).sample(graph, [1], exclude=[graph.num_edges])
    walk = pgs.program(lambda A, seeds: {"x": A.walk(seeds, 2)})
    with pytest.raises(ValueError, match=r"exclude: expected a program that .* with walk"):
        walk().sample(graph, [1], exclude=[3])
    negative = graph.with_data(edge_data={"t": -np.ones(graph.num_edges)})
    with pytest.raises(ValueError, match=r"individual_sample: expected .*got -1"):
        hops(fanouts=[2], seed=0).sample(negative, [1])


def test_the_loader_of_torch(graph: pgs.Graph) -> None:
    sampler = hops(fanouts=[2, 3], weight="w", seed=4)
    x = torch.arange(50.0)[:, None]
    loader = DataLoader(graph, torch.arange(20), sampler, batch_size=8, features={"x": x})
    batches = list(loader)
    assert [len(batch.output_nodes) for batch in batches] == [8, 8, 4]
    for number, batch in enumerate(batches):
        alone = sampler.sample(graph, batch.output_nodes, epoch=0, batch=number)
        assert lists(batch) == lists(alone)
        assert batch.x[:, 0].long().tolist() == batch.input_nodes.tolist()
        block = batch.blocks[-1]
        h = block.weighted_sum(batch.x[: block.num_src_nodes], block.edge_data["w"])
        assert h.shape == (block.num_dst_nodes, 1)


def test_subgraphs_in_the_loader_of_torch(graph: pgs.Graph) -> None:
    x = torch.arange(50.0)[:, None]
    sampler = around(seed=0)
    loader = DataLoader(graph, torch.arange(20), sampler, batch_size=8, features={"x": x})
    for number, batch in enumerate(loader):
        assert isinstance(batch, Subgraph)
        alone = sampler.sample(graph, batch.output_nodes, epoch=0, batch=number)
        assert batch.nodes.tolist() == alone.nodes.tolist()
        assert batch.edge_index.tolist() == [part.tolist() for part in alone.coo()]
        assert torch.equal(batch.nodes[batch.root_index], batch.output_nodes)
        assert batch.x[:, 0].long().tolist() == batch.nodes.tolist()


def test_vectors_in_the_loader_of_torch(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, torch.arange(20), numbers(weight="w", seed=0), batch_size=8)
    found = [batch.extra for batch in loader]
    assert [len(extra["degree"]) for extra in found] == [8, 8, 4]
    assert all(extra["rows"].dtype == torch.int64 for extra in found) == (
        graph.indices.dtype == "int64"
    )


def test_which_subgraphs_are_around_their_seeds() -> None:
    def apart(A: Any, seeds: Any) -> Any:
        V = A.degree().draw(3).unique()
        return A.induce(V), {"%0 = seeds": A[:, seeds].count(axis=0)}

    assert (around(seed=0).is_rooted, around(seed=0).result_kind) == (True, "subgraph")
    assert not pgs.program(apart)().is_rooted
    assert (numbers(seed=0).is_rooted, numbers(seed=0).result_kind) == (True, "vectors")
    assert hops(fanouts=[2]).result_kind == pgs.PGSampler([2]).result_kind == "blocks"
    assert pgs.RandomWalk(2).result_kind == "walks"


@pytest.mark.parametrize("fanouts", [[2], [3, 2]])
def test_profiled(graph: pgs.Graph, fanouts: list[int]) -> None:
    sampler = hops(fanouts=fanouts, weight="w", seed=1)
    profile = sampler.profile(graph, [1, 2, 3], batches=3)
    times = profile.microseconds
    # A line for each operator, as it runs, and one for what is returned.
    assert next(iter(times)) == "%0 = seeds"
    assert list(times)[-1].startswith("return blocks")
    assert all(us >= 0 for us in times.values())
    assert sum(times.values()) > 0
    assert profile.splitlines()[-1].split()[1:] == ["in", "all"]
    assert f"{max(times.values()):.1f}" in profile
    assert profile._repr_html_().startswith("<pre>")
    with pytest.raises(ValueError, match="batches: expected an integer >= 1, got 0"):
        sampler.profile(graph, [1], batches=0)
    with pytest.raises(TypeError, match="graph"):
        sampler.profile(3, [1])  # type: ignore[arg-type]
    # One that PGSampler's kernels run is timed as a program.
    plain = hops(fanouts=fanouts, seed=1)
    assert sum(plain.profile(graph, [1, 2, 3]).microseconds.values()) > 0


@pgs.program
def whole_extremes(A: Any, seeds: Any) -> Any:
    return {"least": A.min(axis=1), "largest": A.max(axis=1)}


@pgs.program
def sevens(A: Any, seeds: Any, count: int) -> Any:
    return {f"v{i}": A.ndata["x"] * i + 7 for i in range(count)}


def test_extremes_of_rows_without_edges() -> None:
    # What batches before have left in the engine's memory is not seen.
    graph = pgs.Graph.from_coo([2, 2], [0, 1], num_nodes=64, node_data={"x": np.zeros(64)})
    for _ in range(3):
        assert (sevens(count=20, seed=0).sample(graph, [0]).extra["v3"].numpy() == 7).all()
        found = whole_extremes(seed=0).sample(graph, [0]).numpy().extra
        for name in ("least", "largest"):
            assert np.flatnonzero(found[name]).tolist() == [2]


@pgs.program
def products(A: Any, seeds: Any, W: Any) -> Any:
    C = A[:, seeds]
    out = A[seeds, :]
    chances = C.softmax(axis=0)
    return {
        "rows": C.row(),
        "by_row": C @ C.sum(axis=0),
        "by_column": C.sum(axis=1) @ C,
        "whole": A @ A.number(),
        "sums": chances.sum(axis=0),
        "largest": chances.max(axis=0),
        "shares": C.sum(axis=0).softmax(),
        "weighted": C.sum(axis=0) * W.softmax()[1],
        "sources": out.row(),
        "into": out.sum(axis=0),
        "all": out.column(),
    }


def test_products_and_slices_of_rows(graph: pgs.Graph) -> None:
    at, indices = np.array(graph.indptr), np.array(graph.indices).astype(int)
    weight, n = np.arange(graph.num_edges) % 7 * 1.0, graph.num_nodes
    dense = np.zeros((n, n))
    np.add.at(dense, (indices, np.repeat(np.arange(n), np.diff(at))), weight)
    columns = [4, 9, 2]
    W = np.array([0.5, 1.5], np.float32)
    sampler = products(W=W, weight="w", seed=0)
    found = sampler.sample(graph, [*columns, 4]).numpy().extra
    C = dense[:, columns]
    totals = C.sum(axis=0)
    shares = np.exp(totals - totals.max())
    near = {
        "by_row": (C @ totals)[found["rows"]],
        "by_column": C.sum(axis=1) @ C,
        "whole": dense @ np.arange(n),
        "sums": np.ones(3),
        "shares": shares / shares.sum(),
        "weighted": totals / (1 + np.exp(-1)),
        "into": dense[columns].sum(axis=0),
    }
    for name, want in near.items():
        np.testing.assert_allclose(found[name], want, rtol=1e-6, err_msg=name)
    for v, largest in zip(columns, found["largest"], strict=True):
        raised = np.exp(weight[at[v] : at[v + 1]] - weight[at[v] : at[v + 1]].max())
        assert largest == pytest.approx(raised.max() / raised.sum())
    assert sorted(found["sources"]) == sorted(columns)
    assert found["all"].tolist() == list(range(n))
    with pytest.raises(TypeError, match=r"@ of Vector .* expected a matrix"):
        pgs.program(lambda A, seeds: A.number() @ A.number())()
