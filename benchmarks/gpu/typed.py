"""Graphs with types: one launch a batch, beside the CPU engine and a graph without types.

A graph of ogbn-mag's counts (that of ``benchmarks.typed``): eight types of edges over papers,
authors, institutions and fields; 1024 papers a batch, (10, 10) for each type of edges.

- mag          the whole graph
- one type     its citations, as a graph with types
- without      the same as a graph without types: what types cost where there is one of each
- many types   each type of edges cut into sixteen: 128 relations

Batches of the GPU are compared with the CPU engine's before a clock starts, every array and every
word that describes them. ``us`` are calls of ``PGSampler.sample`` one by one, with the seeds on the
host; the batch is complete when a call returns.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import pygsampler as pgs
from pygsampler.bench.check import CheckError

from .. import typed as mag

SIZE, FANOUTS = mag.SIZE, list(mag.FANOUTS)
_ROUNDS = 60
_CHECKED = 3
_PIECES = 16


def pieces(of: mag.Typed, count: int) -> tuple[dict[Any, Any], dict[str, int]]:
    """The graph with each type of edges cut into so many; and its vertices."""
    edges: dict[Any, Any] = {}
    for (src, name, dst), (indptr, indices) in of.relations.items():
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        for piece in range(count):
            own = np.arange(piece, len(indices), count)
            ends = np.bincount(rows[own], minlength=len(indptr) - 1)
            kind = src, f"{name}_{piece}", dst
            edges[kind] = np.concatenate([[0], np.cumsum(ends)]), indices[own]
    return edges, of.nodes


def prove(sampler: pgs.PGSampler, here: Any, there: Any, seeds: Any, batch: int) -> int:
    """The number of a batch's edges; CheckError unless the GPU's is the CPU's."""
    want = sampler.sample(here, seeds, epoch=0, batch=batch)
    got = sampler.sample(there, seeds, epoch=0, batch=batch).cpu()
    alike = got._words == want._words if isinstance(here, pgs.HeteroGraph) else True
    for mine, other in zip(_arrays(got), _arrays(want), strict=True):
        alike = alike and np.array_equal(mine.numpy(), other.numpy())
    if not alike:
        raise CheckError(f"{sampler!r}: batch {batch} of the GPU differs from the CPU's")
    edges: int = want.num_edges
    return edges


def _arrays(batch: Any) -> Any:
    """All of a batch but its seeds."""
    nodes = batch.input_nodes
    typed = isinstance(batch, pgs.HeteroBatch)
    yield from nodes.values() if typed else [nodes]
    for hop in batch.blocks:
        for block in hop.values() if typed else [hop]:
            yield from (block.indptr, block.indices, block.edge_ids)


def timed(sampler: pgs.PGSampler, graph: Any, sets: list[Any], rounds: int) -> dict[str, float]:
    """Microseconds of a call, after some that make room."""
    times = []
    for batch in range(rounds + 4):
        begin = time.perf_counter()
        made = sampler.sample(graph, sets[batch % len(sets)], epoch=0, batch=batch)
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
    graphs: dict[str, tuple[Any, list[Any]]] = {
        "mag": (
            pgs.HeteroGraph({kind: tuple(csc) for kind, csc in of.relations.items()}, of.nodes),
            by_type,
        ),
        "one type": (pgs.HeteroGraph(alone, {"paper": of.nodes["paper"]}), by_type),
        "without": (pgs.Graph.from_csc(*of.relations[cites]), sets),
        "many types": (pgs.HeteroGraph(*pieces(of, _PIECES)), by_type),
    }
    sampler = pgs.PGSampler(FANOUTS, seed=7)
    for kind, (here, seeds) in graphs.items():
        there = here.to("cuda")
        edges = [prove(sampler, here, there, seeds[i], i) for i in range(_CHECKED)]
        relations = len(here.edge_types) if isinstance(here, pgs.HeteroGraph) else 0
        us = {
            name: timed(sampler, graph, seeds, rounds)
            for name, graph in (("gpu", there), ("cpu", here))
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
    about = f"{row['kind']:10} {row['relations']:4} relations {row['edges']:9,} edges"
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
