"""Programs on a GPU: the CPU's batches, byte for byte."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from program_graphs import graphs, larger, seeds_of
from program_parity import PASSES, TextProgram, difference, parse
from random_programs import program

import pygsampler as pgs
from pygsampler import samplers
from pygsampler._engine import library
from pygsampler.programs import Program
from pygsampler.samplers import layer_wise
from tests.support.assertions import assert_equal, content
from tests.support.parity import Csc, awkward, random_graph, scaled, with_degrees
from tests.support.research import HAS_RESEARCH


@pgs.program
def products(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    out = A[seeds, :]
    into, chances = out.sum(axis=0), C.softmax(axis=0)
    extra = {"rows": C @ C.sum(axis=0), "columns": C.sum(axis=1) @ C, "into": into}
    return chances, {**extra, "sources": out.row(), "shares": into.softmax()}


@pgs.program
def dense_products(A: Any, seeds: Any, *, W: Any, v: Any) -> Any:
    # Along both axes, of rows of all vertices and of lists; with the values of edges, and of maps.
    C, X = A[:, seeds], A.features("rows")
    B = C.individual_sample(40, (C * (X @ W @ (X @ W).T)).abs())
    heard = B.T @ X
    back = B.sqrt() @ (heard @ W)
    extra = {"heard": heard, "back": back, "first": back[:, 1], "scores": X[C.row()] @ v}
    return B.mul(back[:, 0].abs() + 1, axis=1), extra | {"all": C.T @ X[C.row()], "whole": A @ X}


@pgs.program
def named_values(A: Any, seeds: Any) -> Any:
    """Values by names: of columns in another order than the vertices', and of nested ones."""
    B = A[:, seeds].individual_sample(3)
    C = A[:, B.row()].individual_sample(2)
    return [{"twice": C * 2, "root": C.sqrt()}, {"w": B, "p": B * B}], {"rows": B.row()}


@pgs.program
def nested_values(A: Any, seeds: Any) -> Any:
    B = A[:, seeds].individual_sample(3)
    C = A[:, seeds | B.row()]
    return [{"w": C, "u": C.random()}, {"p": B * 2}]


@pgs.program
def subgraph_values(A: Any, seeds: Any) -> Any:
    V = A[:, seeds].individual_sample(4).row() | seeds
    G = A[V, V]
    return V, {"p": G * 2, "q": G * 3}


@pgs.program
def drawn_of_all(A: Any, seeds: Any) -> Any:
    heavy = A.where(A < 3)
    B = heavy.individual_sample(2, heavy.mul(A.degree(), axis=0))
    return B, {"sums": A.sum(axis=0)}


@pgs.program
def smoothed(A: Any, seeds: Any) -> Any:
    """Rows that are made once for a graph, of which some are made of others."""
    X = A.features("rows")
    once, C = A.T @ X, A[:, seeds]
    twice = A @ once
    extra = {"own": once[C.row()], "back": twice, "first": (A.T @ twice)[:, 0]}
    return C.dot(once, twice), extra


def with_rows(graph: pgs.Graph, width: int) -> pgs.Graph:
    rows = np.random.default_rng(7).normal(size=(graph.num_nodes, width))
    return graph.with_data(node_data={"rows": rows.astype(np.float32)})


@pgs.program
def slices(A: Any, seeds: Any) -> Any:
    """Rows and columns of what was drawn and computed; lists repeat vertices and have others."""
    C = A[:, seeds | A[:, seeds].individual_sample(5).row()]
    B = C.individual_sample(6).div(C.count(axis=0), axis=0)
    V = B.row()[B.row().isin(seeds) | (A.random()[B.row()] < 0.3)]
    D = B[seeds.concat(V), V.concat(seeds)]
    inner = (D[:, seeds] * 2).individual_sample(2, D[:, seeds])
    every = A.column().isin(V)
    extra = {"every": every, "columns": D.column(), "sums": D.sum(axis=0), "in": seeds.isin(V)}
    return [{"w": D[seeds, :], "u": D[seeds, :].random()}, inner], extra


@pgs.program
def slices_of_all(A: Any, seeds: Any) -> Any:
    """A subgraph of what was computed of the whole graph."""
    V = seeds | A[:, seeds].individual_sample(4).row()
    return V, (A * A)[V, V]


# The width of the nodes' rows.
WIDTH = 6
TENSORS = {
    "W1": np.random.default_rng(1).normal(size=(WIDTH, 4)),
    "W2": np.random.default_rng(2).normal(size=(WIDTH, 4)),
    "W3": np.array([0.3, 0.2, 1.0]),
}
# By the public name of what makes them, and what is particular.
SAMPLERS: dict[str, Any] = {
    "products": products(weight="w", seed=1),
    "of all": drawn_of_all(weight="w", seed=1),
    "named values": named_values(weight="w", seed=1),
    "nested values": nested_values(seed=1),
    "values of a subgraph": subgraph_values(weight="w", seed=1),
    "slices": slices(weight="w", seed=1),
    "slices of all": slices_of_all(weight="w", seed=1),
    "ladies": samplers.ladies(nodes=[20, 40], weight="w", seed=1),
    "ladies, conditioned": samplers.ladies(nodes=[20, 40], method="conditioned", seed=1),
    "ladies, iid": samplers.ladies(nodes=[20, 40], method="iid", weight="w", seed=1),
    "ladies, poisson": samplers.ladies(nodes=[20, 40], method="poisson", weight="w", seed=1),
    "exp3": samplers.learned.exp3(fanouts=[3, 5], eta=0.4, log_weights="w", seed=1),
    "exp3m": samplers.learned.exp3m(fanouts=[3, 5], eta=0.4, log_weights="w", seed=1),
    "fastgcn": samplers.fastgcn(nodes=[30, 30], weight="w", seed=1),
    "labor": layer_wise.labor(fanouts=[3, 4], seed=1),
    "labor, importance": layer_wise.labor(fanouts=[3, 4], importance=1, weight="w", seed=1),
    "labor, exact": layer_wise.labor(
        fanouts=[3, 4], exact=True, batch_dependency=2, weight="w", seed=1
    ),
    "shadow": samplers.shadow(fanouts=[3, 2], seed=1),
    "saint_node": samplers.saint_node(budget=50, seed=1),
    "saint_node, by weights": samplers.saint_node(budget=500, by="weights", weight="w", seed=1),
    "saint_edge": samplers.saint_edge(budget=50, seed=1),
    "saint_edge, independent": samplers.saint_edge(budget=50, method="independent", seed=1),
    "saint_walk": samplers.saint_walk(roots=20, length=3, seed=1),
    "seal": samplers.seal(fanouts=[4, 3], seed=1),
    "seal, capped": samplers.seal(fanouts=[4, -1, 3], max_nodes_per_hop=9, seed=1),
    "graphsage": samplers.graphsage(fanouts=[4, 3], seed=1),
    "kgcn": samplers.kgcn(fanouts=[4, 8], weight="w", seed=1),
    "vrgcn": samplers.vrgcn(fanouts=[2, 2], seed=1),
    "asgcn": samplers.asgcn(nodes=[20, 30], source="up", target="down", weight="w", seed=1),
    "asgcn, without weights": samplers.asgcn(nodes=[20, 30], source="up", target="down", seed=1),
    "cluster_gcn": samplers.cluster_gcn(seed=1),
    "mvs": samplers.mvs(size=20, bound="bound", seed=1),
    "mvs, two hops": samplers.mvs(size=20, fanouts=[4, -1], bound="bound", seed=1),
    "pass_sampler": samplers.learned.pass_sampler(
        fanouts=[4, 3], **TENSORS, features="rows", scope=20, weight="w", seed=1
    ),
    # More draws of a row than a warp has lanes, with and without repetitions.
    "graphsage, many": samplers.graphsage(fanouts=[33, 64], seed=1),
    "graphsage, many repeated": samplers.graphsage(fanouts=[40, 70], replace=True, seed=1),
    "kgcn, many": samplers.kgcn(fanouts=[33, 65], seed=1),
    "vrgcn, many": samplers.vrgcn(fanouts=[40, 33], seed=1),
    "exp3, many": samplers.learned.exp3(fanouts=[40, 33], eta=0.4, log_weights="w", seed=1),
    "exp3m, many": samplers.learned.exp3m(fanouts=[40, 33], eta=0.4, log_weights="w", seed=1),
    "labor, many": layer_wise.labor(fanouts=[40, 33], exact=True, weight="w", seed=1),
    "mvs, many": samplers.mvs(size=20, fanouts=[40, 33], bound="bound", seed=1),
    "pass_sampler, many": samplers.learned.pass_sampler(
        fanouts=[40, 33], **TENSORS, features="rows", scope=50, seed=1
    ),
}
if HAS_RESEARCH:
    from pygsampler import research

    SAMPLERS |= {
        "locality": research.locality(fanouts=[4, 3], score="share", beta=3.0, seed=1),
        "locality, hard": research.locality(fanouts=[4, 3], score="share", hard=True, seed=1),
        "locality_importance": research.locality_importance(nodes=[20, 30], score="share", seed=1),
        "locality_layers": research.locality_layers(nodes=[20, 30], seed=1),
        "locality_saint": research.locality_saint(budget=50, score="share", seed=1),
        "locality, many": research.locality(fanouts=[33, 40], score="share", seed=1),
    }


def trained(sampler: Any) -> Any:
    """With other arrays than those that it begins with, which are all alike."""
    draw, state = np.random.default_rng(5), sampler.state_dict()
    arrays = {name: draw.random(len(kept)) for name, kept in state.items() if name != "version"}
    sampler.load_state_dict({**state, **arrays})
    return sampler


# Samplers that are created for a graph, which they learn about or which was cut.
OF_A_GRAPH: dict[str, Callable[[pgs.Graph], Any]] = {
    "gcn_bs": lambda graph: trained(samplers.learned.gcn_bs(graph, fanouts=[3, 5], seed=1)),
    "gcn_bs, distinct": lambda graph: trained(
        samplers.learned.gcn_bs(graph, fanouts=[40, 5], method="exp3m", seed=1)
    ),
    "thanos": lambda graph: trained(samplers.learned.thanos(graph, fanouts=[40, 5], seed=1)),
    "asgcn_trained": lambda graph: samplers.learned.asgcn_trained(
        graph,
        features=graph.ndata["rows"].numpy(),
        w=np.random.default_rng(6).normal(size=(WIDTH, 2)),
        nodes=[20, 30],
        seed=1,
    ),
    "mvs_trained": lambda graph: trained(
        samplers.learned.mvs_trained(graph, size=20, fanouts=[4, -1], seed=1)
    ),
    "kgcn_static": lambda graph: samplers.kgcn_static(fanout=6, hops=2, seed=1),
    "cluster_gcn_parts": lambda graph: samplers.cluster_gcn_parts(
        np.arange(graph.num_nodes) % max(graph.num_nodes // 20, 1), seed=1
    ),
}

# Public names of pygsampler.samplers that are not compared here, and why.
NOT_HERE = {
    "Bandit": "what gcn_bs and thanos make",
    "ClusterGCN": "what cluster_gcn_parts makes",
    "Contexts": "what context returns",
    "context": "no program: test_contexts",
    "FixedNeighbors": "what kgcn_static makes",
    "GradientBounds": "what mvs_trained makes",
    "History": "no sampler: rows of torch, tests/samplers/test_history.py",
    "CompletedJob": "for samplers of one's own",
    "Temporal": "no sampler: an option of PGSampler",
    "GroupLauncher": "for samplers of one's own",
    "HGTSampler": "no program: test_hgt",
    "LearnedSampler": "the base of those that learn",
    "PendingBatch": "for samplers of one's own",
    "PendingGroup": "for samplers of one's own",
    "Subgraph": "what programs of subgraphs return",
    "ASGCNScores": "what asgcn_trained makes",
    "clusters": "no sampler: METIS' cut, on the CPU",
    "drnl": "no sampler: labels of a subgraph's vertices",
    "gradient_norms": "no sampler: of losses, by torch",
    "pass_ratio": "no sampler: of tensors, tests/samplers/test_ratios.py",
    "ppr_shadow": "batches are tensors of torch: tests/samplers/test_disjoint.py",
    "saint_norms": "no sampler: of batches on the CPU",
    "shadow_disjoint": "batches are tensors of torch: tests/samplers/test_disjoint.py",
}


def both(csc: Csc, ids: int, edge_ids: int = 0, *, pinned: bool = False) -> Any:
    count = len(csc.indices)
    graph = csc.graph(ids, ids, edge_ids, to_pin=pinned)
    draw, nodes = np.random.default_rng(3), graph.num_nodes
    cpu = graph.with_data(
        edge_data={"w": draw.pareto(1.2, count) + 0.1},
        node_data={
            "up": draw.normal(size=nodes),
            "down": draw.normal(size=nodes),
            "share": draw.random(nodes),
            "bound": draw.pareto(1.2, nodes) + 0.1,
            "rows": draw.normal(size=(nodes, WIDTH)),
        },
    )
    return cpu, cpu.pin() if pinned else cpu.to("cuda")


def test_all_that_is_shipped_is_compared() -> None:
    public = {*samplers.__all__, *samplers.learned.__all__}
    if HAS_RESEARCH:
        # Programs of research are functions; all else of it is compared by tests of its own.
        apart = {"sample_on_devices", "locality_scores"}  # The latter is an array, on the CPU.
        public |= {name for name in research.__all__ if name.islower()} - apart
    compared = {name.partition(",")[0] for name in (*SAMPLERS, *OF_A_GRAPH)} & public
    missing = public - compared - set(NOT_HERE)
    assert not missing, "expected each in SAMPLERS, in OF_A_GRAPH or, with a reason, in NOT_HERE"
    assert set(NOT_HERE) == public - compared, "expected no reasons but for what is missing"
    for name, sampler in SAMPLERS.items():
        made_by = name.partition(",")[0]
        assert made_by not in public or sampler.name == made_by


# Each kernel is compiled: of programs that differ by numbers alone one width does.
CASES = [
    (name, *widths)
    for name in (*SAMPLERS, *OF_A_GRAPH)
    for widths in ((32, 0), (64, 64))
    if widths == (32, 0) or ", many" not in name
]


@pytest.mark.parametrize(("name", "ids", "edge_ids"), CASES)
def test_as_on_the_cpu(name: str, ids: int, edge_ids: int) -> None:
    cpu, there = both(random_graph(scaled(20000, 400), 2), ids, edge_ids)
    draw = np.random.default_rng(1)
    sampler = SAMPLERS[name] if name in SAMPLERS else OF_A_GRAPH[name](cpu)
    # The seeds of a cut are its clusters.
    last = getattr(sampler, "num_parts", cpu.num_nodes)
    for batch, count in enumerate((0, 1, scaled(3000, 60))):
        seeds = draw.integers(0, last, count)
        want = sampler.sample(cpu, seeds, epoch=2, batch=batch)
        got = sampler.sample(there, seeds, epoch=2, batch=batch)
        assert got.device == "cuda:0"
        assert_equal(got, want)
    rows = [np.diff(block.indptr.numpy()).max(initial=0) for block in want.blocks]
    assert not rows or max(rows) > (32 if ", many" in name else 0)


@pytest.mark.parametrize(
    "name",
    ["ladies", "labor", "shadow", "exp3", "exp3m", "kgcn", "mvs, two hops", "of all", "slices"],
)
@pytest.mark.parametrize("edge_ids", [0, 32])
def test_excluded_edges(name: str, edge_ids: int) -> None:
    cpu, there = both(random_graph(scaled(20000, 200), 2), 32, edge_ids)
    sampler, draw = SAMPLERS[name], np.random.default_rng(1)
    for count in (1, cpu.num_edges // 3):
        seeds, ids = draw.integers(0, cpu.num_nodes, 30), draw.integers(0, cpu.num_edges, count)
        want = sampler.sample(cpu, seeds, epoch=2, batch=1, exclude=ids)
        assert_equal(sampler.sample(there, seeds, epoch=2, batch=1, exclude=ids), want)
        taken = {int(e) for block in want.numpy().blocks for e in block.edge_ids}
        assert taken and not taken & set(ids.tolist())


def test_many_batches_and_pinned_graphs() -> None:
    csc = random_graph(scaled(20000, 400), 4)
    sets = [np.arange(i, i + 30) for i in range(9)]
    for name in ("ladies", "slices"):
        sampler = SAMPLERS[name]
        for pinned in (False, True):
            cpu, there = both(csc, 32, pinned=pinned)
            want = sampler.sample_many(cpu, sets, epoch=0, batch=0)
            for mine, theirs in zip(
                sampler.sample_many(there, sets, epoch=0, batch=0), want, strict=True
            ):
                assert_equal(mine, theirs)


@pgs.program
def column_values(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    B = C.individual_sample(300, C, replace=True)
    by_column = {name: getattr(C, name)(axis=0) for name in ("sum", "mean", "max")}
    return C.individual_sample(400, C), by_column | {"chosen": B.sum(axis=0)}


def test_long_columns() -> None:
    # Columns around the lengths from which on several warps, or a block, share one.
    degrees = [
        0,
        31,
        32,
        255,
        256,
        257,
        511,
        512,
        513,
        1023,
        1025,
        2047,
        2048,
        2049,
        scaled(90000, 5003),
    ]
    cpu, there = both(with_degrees(degrees, 700, 3), 32)
    seeds = np.arange(len(degrees))
    for sampler in (
        column_values(weight="w", seed=1),
        SAMPLERS["ladies"],
        SAMPLERS["labor, importance"],
        samplers.learned.exp3m(fanouts=[40], eta=0.3, log_weights="w", seed=1),
        samplers.graphsage(fanouts=[40, 600], seed=1),
        samplers.kgcn(fanouts=[513, 40], weight="w", seed=1),
        SAMPLERS["asgcn"],
        SAMPLERS["mvs, two hops"],
        SAMPLERS["pass_sampler, many"],
        *([research.locality(fanouts=[33, 300], score="share", seed=1)] if HAS_RESEARCH else []),
    ):
        want = sampler.sample(cpu, seeds, epoch=0, batch=0)
        assert_equal(sampler.sample(there, seeds, epoch=0, batch=0), want)


@pytest.mark.parametrize("width", [1, 35])
def test_products_with_dense_rows(width: int) -> None:
    degrees = [0, 1, 31, 33, 64, 511, 512, 513, 1025, *range(20), scaled(90000, 1500)]
    cpu, _ = both(with_degrees(degrees, 700, 3), 32)
    cpu = with_rows(cpu, width)
    there, draw = cpu.to("cuda"), np.random.default_rng(5)
    inputs = {"W": draw.normal(size=(width, 3)), "v": draw.normal(size=width)}
    sampler = dense_products(**inputs, weight="w", seed=1)
    for seeds in (np.arange(len(degrees)), np.array([5, 5, 3]), np.arange(0)):
        want = sampler.sample(cpu, seeds, epoch=0, batch=0)
        assert_equal(sampler.sample(there, seeds, epoch=0, batch=0), want)
    made_once = smoothed(weight="w", seed=1)
    for seeds in (np.array([5, 5, 3]), np.arange(12)):
        want = smoothed(weight="w", seed=1, passes=["preprocess"]).sample(cpu, seeds, batch=0)
        assert_equal(made_once.sample(there, seeds, batch=0), want)
    bad = cpu.with_data(edge_data={"w": np.full(cpu.num_edges, np.inf)})
    for graph in (bad, bad.to("cuda")):
        with pytest.raises(ValueError, match=r"@: expected finite values, got -?inf"):
            refused(weight="w").sample(graph, np.arange(20))
        with pytest.raises(ValueError, match=r"\[:, 50\]: expected rows of more numbers, got"):
            beyond().sample(graph, np.arange(20))
    none = cpu.with_data(node_data={"rows": np.zeros((cpu.num_nodes, 0), np.float32)})
    for graph in (none, none.to("cuda")):
        with pytest.raises(ValueError, match=r"(features|ndata).*rows.*got (none|0)"):
            refused().sample(graph, np.arange(20))


@pgs.program
def refused(A: Any, seeds: Any) -> Any:
    return {"x": A[:, seeds] @ A.features("rows")}


@pgs.program
def beyond(A: Any, seeds: Any) -> Any:
    return {"x": A.features("rows")[seeds][:, 50]}


@pgs.program
def filtered_columns(A: Any, seeds: Any) -> Any:
    # Both slices are gone through edge by edge, and nowhere as a whole.
    C = A[:, seeds]
    B = C.where(C.mul(C.count(axis=0), axis=0) * 0.5 > C.random())
    D = A[:, seeds | B.row()]
    return [D.where(D.edata["w"] < 0.2), B]


@pytest.mark.parametrize("fanouts", [[1, 40], [7]])
def test_columns_that_are_filtered(fanouts: list[int]) -> None:
    degrees = [*range(71), scaled(90000, 5003), 0, 0]
    cases = {"degrees": with_degrees(degrees, 700, 3), **awkward()}
    labor = layer_wise.labor(fanouts=fanouts, seed=1)
    for name, csc in cases.items():
        cpu, there = both(csc, 32)
        seeds = np.random.default_rng(2).integers(0, min(cpu.num_nodes, len(degrees)), 90)
        for sampler in (labor, filtered_columns(weight="w", seed=1)):
            for ids in (seeds, np.arange(min(cpu.num_nodes, len(degrees))), seeds[:0]):
                want = sampler.sample(cpu, ids, epoch=0, batch=3)
                assert_equal(sampler.sample(there, ids, epoch=0, batch=3), want)
        if name == "degrees":
            assert labor.sample(cpu, seeds).num_edges


@pgs.program
def levels(A: Any, seeds: Any) -> Any:
    """Both searches; a third of the columns has no edges by its sum, and a third has all."""
    C = A[:, seeds]
    p = C.cap(C.count(axis=0) * (A.ndata["share"] * 3 - 1)[C.column()])
    return C.where(C.random() <= p), {"sums": p.sum(axis=0), "c": C.labor(5, C.sqrt())}


# Numbers of edges at which a search of factors changes its way: 32; as many as a warp, four warps
# and a block hold, with the parts of these; columns of pieces. They come together and alone.
LIMITS = {
    "short": [1, 31, 32, 33, 0, 0, 0, 33, 32, 1],
    "of a warp": [127, 128, 129, 0, 3, 96, 97, 64, 65],
    "of four": [129, 383, 384, 385, 511, 512, 513, 1, 512],
    "of a block": [513, 1023, 1024, 1025, 1920, 1921, 2047, 2048],
    "long": [2049, 2, 2176, 2177, 4096, 3073],
    "one long": [2049],
    "many": [2050] * 5 + [40] * 9,
    "none": [0] * 5,
}


@pytest.mark.parametrize("name", LIMITS)
def test_factors_of_columns_of_every_length(name: str) -> None:
    # Beside those of a table that is read without a GPU: a column that all of one's warps share.
    degrees = LIMITS[name] + [scaled(90000, 3073)] * (name == "long")
    csc = with_degrees(degrees, 700, 3)
    csc.indices[:] = (csc.indices / 700) ** 3 * 700  # in many columns, and parallel edges
    cpu, _ = both(csc, 32, 64 if any(degrees) else 0)
    weights = cpu.edata["w"].numpy() * (np.arange(cpu.num_edges) % 5 != 0)
    cpu = cpu.with_data(edge_data={"w": weights})
    there = cpu.to("cuda")
    by_weight = layer_wise.labor(fanouts=[9], importance=2, weight="w", seed=1)
    some: list[Any] = [levels(weight="w", seed=1), by_weight]
    for fanout in (0, 1, 9, 33, 2048):
        kind: dict[str, Any] = [{}, {"weights": False}, {"normalize": "mean"}][fanout % 3]
        some.append(layer_wise.labor(fanouts=[fanout], importance=1 + fanout % 3, seed=1, **kind))
    for sampler in some:
        seeds = np.random.default_rng(1).permutation(len(degrees))
        want = sampler.sample(cpu, seeds, epoch=0, batch=2)
        assert_equal(sampler.sample(there, seeds, epoch=0, batch=2), want)


@pgs.program
def nearly_labor(A: Any, seeds: Any, *, which: str = "") -> Any:
    """LABOR-2 of a hop, but for one thing."""
    C, most, r = A[:, seeds], 2.0**1000, A.random()
    c = C.labor(5 if which == "first" else 4).minimum(most)
    pi = C.mul(c, axis=0).max(axis=1).minimum(0.3 if which == "most" else most)
    c = C.labor(4, C.spread(pi, axis=1)).minimum(most)
    q = C.spread((pi * C.spread(c, axis=0).max(axis=1)).minimum(most), axis=1)
    c = (q if which == "weights" else C).labor(4, q).minimum(most)
    chances = q.mul(c, axis=0).minimum(1)
    r = C.random() if which == "numbers" else C.spread(r, axis=1)
    return (C / chances).where(r <= chances)


def test_what_is_nearly_labor_has_no_kernel() -> None:
    # Each other difference: TestPoisson of internal/program/passes.
    cpu, there = both(with_degrees([*range(20), 70], 40, 3), 32)
    seeds, found = np.arange(21), set()
    things = ["", "first", "most", "weights", "numbers"]
    for which in things:
        sampler = nearly_labor(which=which, seed=1)
        want = sampler.sample(cpu, seeds, epoch=0, batch=1)
        assert_equal(sampler.sample(there, seeds, epoch=0, batch=1), want)
        assert ("the kernel of LABOR-2," in str(sampler.explain(there))) == (not which)
        found.add(repr(content(want)))
    # They differ, so that a batch of the kernel would be seen.
    assert len(found) == len(things)


def test_labor_has_a_kernel() -> None:
    # Every degree and fanout; no values, of chances and of means; all rows; one number a vertex.
    degrees = [*range(71), scaled(9000, 800), 0, 0]
    cases = {"degrees": with_degrees(degrees, 700, 3), **awkward()}
    kinds: list[dict[str, Any]] = [{}, {"weights": False}, {"normalize": "mean"}]
    for i, (name, csc) in enumerate(cases.items()):
        cpu, there = both(csc, 32 if i % 2 else 64)
        some = min(cpu.num_nodes, len(degrees))
        rng = np.random.default_rng(2)
        # On the emulator a part of them, with every kind.
        every = range(scaled(1, 4), 41, scaled(1, 7))
        for k in every if name == "degrees" else (1, 4):
            kind = kinds[k % 3] | {"layer_dependency": k % 2 == 0}
            for fanouts in ([k], [3, -1, k] if k % 10 == 4 else [2, k]):
                # LABOR-i has none where a hop takes all rows.
                for rounds in (0,) if -1 in fanouts else (0, 1 + k % 3):
                    sampler = layer_wise.labor(fanouts=fanouts, importance=rounds, seed=k, **kind)
                    seeds = rng.integers(0, some, 40) if k % 2 else np.arange(some)
                    want = sampler.sample(cpu, seeds, epoch=1, batch=k)
                    assert_equal(sampler.sample(there, seeds, epoch=1, batch=k), want)
        for rounds in range(4):
            nothing = layer_wise.labor(fanouts=[2, 2], importance=rounds, seed=1)
            assert_equal(
                nothing.sample(there, seeds[:0], epoch=0, batch=1),
                nothing.sample(cpu, seeds[:0], epoch=0, batch=1),
            )
            with pytest.raises(IndexError, match=r"seeds\[1\]: expected an id in"):
                nothing.sample(there, [0, cpu.num_nodes])
            sets = [seeds, seeds[:0], seeds[1:], seeds[:3]]
            together = nothing.sample_many(there, sets, epoch=0, batch=4)
            for place, (ids, mine) in enumerate(zip(sets, together, strict=True)):
                assert_equal(mine, nothing.sample(cpu, ids, epoch=0, batch=4 + place))
    # The steps of the program make the same.
    cpu, there = both(cases["degrees"], 32)
    for rounds in range(4):
        of = layer_wise.labor(fanouts=[2, 5], importance=rounds, seed=1)
        off = layer_wise.labor(fanouts=[2, 5], importance=rounds, seed=1, passes=["recognise"])
        want = of.sample(there, np.arange(74), epoch=0, batch=4)
        assert_equal(off.sample(there, np.arange(74), epoch=0, batch=4), want)
        assert f"the kernel of LABOR-{rounds}," in str(of.explain(there))
        assert "the kernel of" not in str(off.explain(there))


@pgs.program
def long_program(A: Any, seeds: Any, *, steps: int) -> Any:
    met = seeds
    for _ in range(steps):
        met = A[:, met].individual_sample(1).row()
    B = A[:, met | seeds].individual_sample(2)
    return A[:, B.row() | seeds], {"met": met}


def test_long_programs() -> None:
    cpu, there = both(random_graph(scaled(20000, 400), 2), 32)
    # So many that a block has no shared memory for what all of them declare.
    sampler = long_program(steps=scaled(170, 66), seed=1)
    draw = np.random.default_rng(1)
    for count in (0, 1, 60):
        seeds = draw.integers(0, cpu.num_nodes, count)
        want = sampler.sample(cpu, seeds, epoch=2, batch=1)
        assert_equal(sampler.sample(there, seeds, epoch=2, batch=1), want)


@pgs.program
def never_compiled(A: Any, seeds: Any, *, number: float) -> Any:
    return A[:, seeds] * number


def test_a_wait_for_the_compiler_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter(["[]", '["the kernel program.cu was compiled in 1.2 s"]'])
    call = library.call

    def heard(name: str, *arguments: Any, **how: Any) -> Any:
        if (name, *arguments) == ("CompilerLog", 1):
            return next(told, "[]")
        return call(name, *arguments, **how)

    monkeypatch.setattr(library, "call", heard)
    _, there = both(random_graph(scaled(20000, 50), 4), 32)
    sampler = never_compiled(number=2.5, seed=1)
    with caplog.at_level("INFO", "pygsampler"):
        for _ in range(3):
            sampler.sample(there, [1])
    assert caplog.messages == ["the kernel program.cu was compiled in 1.2 s"]


def test_profile() -> None:
    cpu, there = both(random_graph(scaled(20000, 300), 4), 32)
    times = SAMPLERS["ladies"].profile(there, np.arange(40), batches=2).microseconds
    assert list(times) == list(
        SAMPLERS["ladies"].profile(cpu, np.arange(40), batches=1).microseconds
    )
    assert sum(times.values()) > 0


def test_once_a_graph() -> None:
    # The first batch computes the values that depend on the graph alone, and all batches read them.
    cpu, there = both(random_graph(scaled(20000, 300), 6), 32)
    for sampler in (SAMPLERS["fastgcn"], samplers.saint_node(budget=40, seed=2)):
        for batch in range(3):
            seeds = np.arange(batch, 30)
            want = sampler.sample(cpu, seeds, epoch=0, batch=batch).numpy()
            got = sampler.sample(there, seeds, epoch=0, batch=batch).cpu().numpy()
            blocks = zip(
                getattr(got, "blocks", [got]), getattr(want, "blocks", [want]), strict=True
            )
            for mine, theirs in blocks:
                assert np.array_equal(mine.indices, theirs.indices)
                assert np.array_equal(mine.edge_data["w"], theirs.edge_data["w"], equal_nan=True)


def test_versions_of_learned_weights_share_the_edges() -> None:
    graph = random_graph(200, 3).graph(32, 32).to("cuda")
    sampler = samplers.learned.gcn_bs(graph, fanouts=[3, 5], seed=1)
    for version in range(3):
        assert_equal(
            sampler.sample(graph, [0, 5], batch=version),
            sampler.sample(graph.to("cpu"), [0, 5], batch=version),
        )
        assert sampler.sampled_graph(graph)._open().shares(graph._source._open())
        trained(sampler)


def test_what_bandits_learn_is_written_on_the_device(monkeypatch: Any) -> None:
    """Batches of all versions are the CPU's; the values of a few edges are written, many copied."""
    graph = random_graph(2000, 3).graph(32, 32).to("cuda")
    cpu = graph.to("cpu")
    sampler = samplers.learned.thanos(graph, fanouts=[3, 5], restart=6, seed=1)
    draw, relations = np.random.default_rng(2), []
    for version in range(12):
        # Two graphs, of which one misses some changes.
        graphs = [cpu, graph] if version % 3 else [cpu]
        seeds = draw.integers(0, 2000, 3)
        batch, *others = (sampler.sample(g, seeds, batch=version) for g in graphs)
        for other in others:
            assert_equal(other, batch)
            relations.append(sampler.sampled_graph(graph))
        with monkeypatch.context() as patch:
            if version == 9:
                patch.setattr("pygsampler.samplers.learned.sampler._FEW", 1 << 40)
            assert sampler.update(batch, [draw.random(len(b.indices)) for b in batch.blocks])
    # Versions 1, 2, 4, 5, 7, 8, 10 and 11: the sixth change begins anew, the tenth counts as large.
    assert [a is b for a, b in pairwise(relations)] == [*[True] * 3, False, True, False, True]


def test_a_bandit_s_values_are_known_no_more_after_an_error(monkeypatch: Any) -> None:
    graph = random_graph(200, 3).graph(32, 32).to("cuda")
    sampler = samplers.learned.gcn_bs(graph, fanouts=[3], seed=1)
    batch = sampler.sample(graph, [0, 5])
    sampler.update(batch, [np.ones(len(batch.blocks[0].indices))])

    def fails(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(sampler.sampled_graph(graph.to("cpu"))), "_write_edges", fails)
        sampler.sample(graph, [0, 5], batch=1)
    assert_equal(
        sampler.sample(graph, [0, 5], batch=2), sampler.sample(graph.to("cpu"), [0, 5], batch=2)
    )


def test_edges_by_rows_and_by_columns() -> None:
    cpu, there = both(random_graph(scaled(20000, 400), 5), 32)
    seeds = np.random.default_rng(1).integers(0, cpu.num_nodes, 40)
    want = SAMPLERS["products"].sample(cpu, seeds, epoch=0, batch=0)
    for options in ({"passes": ["layout"]}, {"layouts": ["out_edges"]}, {}):
        sampler = Program({**SAMPLERS["products"]._fields(), **options}, 1, "products", {})
        assert_equal(sampler.sample(there, seeds, epoch=0, batch=0), want)
    told = SAMPLERS["products"].explain(there, 40)
    assert "layouts by the costs of another GPU" in told or "layouts, of which" in told
    assert "in-edges of columns" in told and "rows of its edges" not in told
    # By the clock: the batches are the same.
    tuned = SAMPLERS["products"].tuned(there, seeds, batches=1)
    assert_equal(tuned.sample(there, seeds, epoch=0, batch=0), want)


def test_errors() -> None:
    cpu, there = both(random_graph(scaled(2000, 50), 4), 64)
    with pytest.raises(IndexError, match=r"seeds\[1\]: expected an id in \[0, "):
        SAMPLERS["ladies"].sample(there, [0, cpu.num_nodes])
    bad = cpu.with_data(edge_data={"w": np.full(cpu.num_edges, np.inf)})
    for graph in (bad, bad.to("cuda")):
        with pytest.raises(ValueError, match="sum: expected finite values, got inf"):
            SAMPLERS["ladies"].sample(graph, np.arange(40))
    with pytest.raises(ValueError, match="weight: expected an edge array of the graph"):
        samplers.ladies(nodes=[3], weight="none").sample(there, [0])


def test_random_programs() -> None:
    """``PYGSAMPLER_DEVICE_PROGRAMS=1000`` tries so many: each is compiled."""
    cases = {**graphs(), "larger": larger()}
    made = 0
    for number in range(int(os.environ.get("PYGSAMPLER_DEVICE_PROGRAMS", scaled(40, 6)))):
        rng = random.Random(number)
        code, case = program(rng), cases[rng.choice(list(cases))]
        weight, width = rng.choice([None, "w", "w", "t", "m"]), rng.choice([32, 64])
        without = rng.choice([(), PASSES])
        # Each second one with the edges of A[R, S] by its rows.
        sampler = TextProgram(code, weight, number, without, ("out_edges",) * (number % 2))
        here = case.graph(width)
        there = here.to("cuda")
        for batch, ids in enumerate((seeds_of(case, rng), [])):
            seeds, found = np.array(ids, f"int{width}"), list[Any]()
            for graph in (here, there):
                try:
                    found.append(sampler.sample(graph, seeds, epoch=number, batch=batch))
                except ValueError as error:
                    found.append(error)
            want, got = found
            if isinstance(want, ValueError) or isinstance(got, ValueError):
                assert str(want) == str(got), code
                continue
            made += 1
            assert not difference(got, want, parse(code).result == "vectors"), code
    assert made
