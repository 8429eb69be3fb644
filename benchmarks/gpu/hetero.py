"""Graphs with types: one launch a batch, beside the CPU engine and a graph without types.

A graph of ogbn-mag's counts (that of ``benchmarks.hetero``): eight types of edges over papers,
authors, institutions and fields; 1024 papers a batch, (10, 10) for each type of edges.

- mag          the whole graph
- one type     its citations, as a graph with types
- without      the same as a graph without types: what types cost where there is one of each
- many types   each type of edges cut into sixteen: 128 relations
- weights      the whole graph, by weights of the edges
- trees        the whole graph, a tree for each seed
- times        the same, along edges that are not later than the seed, which none is
- LABOR-...    the whole graph by LABOR, which looks at all edges of its rows
- plain trees, plain times   the same of the citations as a graph without types
- hgt          the whole graph by ``HGTSampler``, which chooses 1024 of each type, and as many again

Batches of the GPU are compared with the CPU engine's before a clock starts, every array of them.
``us`` are calls of ``sample`` one by one, with the seeds on the host; the batch is complete when a
call returns. The CPU makes a batch of ``hgt`` and of LABOR on one core.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError

from .. import hetero as mag

SIZE, FANOUTS = mag.SIZE, list(mag.FANOUTS)
_ROUNDS = 60
_CHECKED = 3
_PIECES = 16
_LATEST = 1000
_CHOSEN = [1024, 1024]
# The rounds of the CPU's LABOR, whose batches take a core a hundred times as long.
_FEW_ROUNDS = 6


def pieces(of: mag.Typed, count: int) -> tuple[dict[Any, Any], dict[str, int]]:
    """The graph with each type of edges cut into so many; and its nodes."""
    edges: dict[Any, Any] = {}
    for (src, name, dst), (indptr, indices) in of.relations.items():
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        for piece in range(count):
            own = np.arange(piece, len(indices), count)
            ends = np.bincount(rows[own], minlength=len(indptr) - 1)
            kind = src, f"{name}_{piece}", dst
            edges[kind] = np.concatenate([[0], np.cumsum(ends)]), indices[own]
    return edges, of.nodes


def prove(sampler: Any, here: Any, there: Any, seeds: Any, batch: int, more: dict[str, Any]) -> int:
    """The number of a batch's edges; CheckError unless the GPU's is the CPU's."""
    want = sampler.sample(here, seeds, epoch=0, batch=batch, **more)
    got = sampler.sample(there, seeds, epoch=0, batch=batch, **more).cpu()
    pairs = zip(_arrays(got), _arrays(want), strict=True)
    if not all(np.array_equal(mine.numpy(), other.numpy()) for mine, other in pairs):
        raise CheckError(f"{sampler!r}: batch {batch} of the GPU differs from the CPU's")
    edges: int = want.num_edges
    return edges


def _arrays(batch: Any) -> Any:
    """All of a batch but its seeds."""
    nodes = batch.input_nodes
    typed = isinstance(nodes, Mapping)
    yield from nodes.values() if typed else [nodes]
    for hop in batch.blocks:
        for block in hop.values() if typed else [hop]:
            yield from (block.indptr, block.indices, block.edge_ids)
            if block.edge_weights is not None:
                yield block.edge_weights


def timed(
    sampler: Any, graph: Any, sets: list[Any], rounds: int, more: dict[str, Any]
) -> dict[str, float]:
    """Microseconds of a call, after some that make room."""
    times = []
    for batch in range(rounds + 4):
        begin = time.perf_counter()
        made = sampler.sample(graph, sets[batch % len(sets)], epoch=0, batch=batch, **more)
        times.append(1e6 * (time.perf_counter() - begin))
        del made
    low, middle, high = np.percentile(times[4:], [25, 50, 75])
    return {"low": round(low, 1), "median": round(middle, 1), "high": round(high, 1)}


def rows(scale: int, rounds: int) -> Any:
    """A row of each kind of graph."""
    of = mag.load(scale)
    size = min(SIZE, of.nodes["paper"] // 4)
    random = np.random.default_rng(5)
    sets = [random.choice(of.nodes["paper"], size, replace=False) for _ in range(8)]
    by_type = [{"paper": seeds} for seeds in sets]
    cites = "paper", "cites", "paper"
    alone = {cites: tuple(of.relations[cites])}
    whole = pgs.HeteroGraph({kind: tuple(csc) for kind, csc in of.relations.items()}, of.nodes)
    drawn = {
        kind: {
            "w": random.pareto(1.5, len(csc[1])).astype(np.float32) + 0.1,
            "t": random.integers(0, _LATEST, len(csc[1])),
        }
        for kind, csc in of.relations.items()
    }
    with_data = pgs.HeteroGraph(
        {kind: tuple(csc) for kind, csc in of.relations.items()}, of.nodes, edge_data=drawn
    )
    plain = pgs.Graph.from_csc(*of.relations[cites])
    plain_times = plain.with_data(edge_data={"t": drawn[cites]["t"]})
    times, tree = {"seed_time": _LATEST}, {"disjoint": True}
    cases: dict[str, tuple[Any, list[Any], dict[str, Any], dict[str, Any]]] = {
        "mag": (whole, by_type, {}, {}),
        "one type": (pgs.HeteroGraph(alone, {"paper": of.nodes["paper"]}), by_type, {}, {}),
        "without": (plain, sets, {}, {}),
        "many types": (pgs.HeteroGraph(*pieces(of, _PIECES)), by_type, {}, {}),
        "hgt": (whole, by_type, {}, {}),
        "weights": (with_data, by_type, {"prob": "w"}, {}),
        "trees": (whole, by_type, tree, {}),
        "times": (with_data, by_type, {"temporal": "t"}, times),
        "LABOR-0": (whole, by_type, {"importance": 0}, {}),
        "LABOR-1": (whole, by_type, {"importance": 1}, {}),
        "LABOR, exact": (whole, by_type, {"exact": True}, {}),
        "LABOR-0, weights": (with_data, by_type, {"prob": "w"}, {}),
        "plain trees": (plain, sets, tree, {}),
        "plain times": (plain_times, sets, {"temporal": "t"}, times),
    }
    for kind, (here, seeds, options, more) in cases.items():
        labor = kind.startswith("LABOR")
        sampler: Any
        if kind == "hgt":
            sampler = pgs.samplers.HGTSampler(_CHOSEN, seed=7)
        elif labor:
            sampler = pgs.LaborSampler(FANOUTS, edge_weights="ht", seed=7, **options)
        else:
            sampler = pgs.PGSampler(FANOUTS, seed=7, **options)
        there = here.to("cuda")
        edges = [prove(sampler, here, there, seeds[i], i, more) for i in range(_CHECKED)]
        relations = len(here.edge_types) if (not here.is_homogeneous) else 0
        few = min(rounds, _FEW_ROUNDS) if labor else rounds
        us = {
            name: timed(sampler, graph, seeds, calls, more)
            for name, graph, calls in (("gpu", there, rounds), ("cpu", here, few))
        }
        yield {
            "kind": kind,
            "relations": relations,
            "edges": round(float(np.mean(edges))),
            "us": us,
        }
        there.close()


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    gpu, cpu = (row["us"][name]["median"] for name in ("gpu", "cpu"))
    about = f"{row['kind']:16} {row['relations']:4} relations {row['edges']:9,} edges"
    return f"{about}: GPU {gpu:.0f} us, CPU {cpu:.0f} us, {cpu / gpu:.1f}x"


def run(record: Any, budget: Any, trial: bool) -> None:
    """Rows of all kinds."""
    scale, rounds = (2000, 2) if trial else (1, _ROUNDS)
    for row in rows(scale, rounds):
        print(line(row), flush=True)
        record.add(row)
        if budget.over():
            record.skip(f"what comes after {row['kind']}")
            return
