"""GNNSampler's experiments: samplers by locality against their vanilla forms::

    python -m benchmarks.research.locality --out benchmarks/results
    python -m benchmarks.research.locality --parts training sweep --graph debian
    python -m benchmarks.research.locality --quick

Graphs: Debian's packages, and graphs with communities that have the sizes of ogbn-arxiv and of a
tenth of ogbn-products, made from a seed. The parts, of each graph:

- ``graphs``: the paper's Table 1: sizes, degrees, how often neighbors are reused; and the seconds
  that the scores of a graph take, once.
- ``neighbors``: ways to draw neighbors for one model, also of the graph renumbered by reverse
  Cuthill-McKee: seconds to sample an epoch, to read its rows, and of a training epoch, the ways
  in turns; accuracy; rows and pages of features that a batch touches; its triads.
- ``training``: the paper's section 5.2: GraphSAGE, FastGCN and GraphSAINT, trained for as many
  epochs by locality as in their vanilla form, in turns.
- ``sweep``: the paper's Figure 10 (a): the same of GraphSAGE and GraphSAINT for values of n and s.
- ``subgraphs``: the paper's Figure 11: clustering coefficient and closed triads of GraphSAINT's
  subgraphs, by their number.
- ``cache``: the paper's Figure 10 (b): cache misses of sampling, by ``perf stat``; where the
  machine has no such counters, the record says so.

docs/research/gnnsampler.md says what comes of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import pygsampler as pgs
from pygsampler import research, samplers

from .. import environment
from .locality_graphs import CASES, Case
from .locality_training import (
    SAINT_BUDGET,
    SAINT_MARKS,
    Training,
    all_marked,
    at_random,
    best_quarter,
    in_turns,
    marked_share,
    marks,
    saint,
    sweep,
    training,
)

FANOUTS = [10, 10]
BATCH = 1024
PAGE = 4096
# Batches whose graphs are looked at for triads, which costs some seconds each in a dense graph.
LOOKED_AT = 4
# Numbers of subgraphs.
COUNTS = (1, 2, 5, 10, 20)
# Loads that the second and the third level of the caches do not have, by perf's names.
EVENTS = ("L1-dcache-load-misses", "LLC-loads", "LLC-load-misses")
PARTS = ("graphs", "neighbors", "training", "sweep", "subgraphs", "cache")


def graphs(case: Case) -> Iterator[dict[str, Any]]:
    """Yields the paper's Table 1 for a graph, and seconds of its scores by each measure.

    The neighbor reusing rate (NRR) is 1 - distinct neighbors / neighbors of all nodes, which gives
    the paper's 77.76 % for Pubmed's 19,717 nodes and 44,338 edges in both directions.
    """
    graph = case.graph()
    degrees = np.diff(graph.indptr.numpy())
    row: dict[str, Any] = {
        "graph": case.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "average_neighbors": float(degrees.mean()),
        "most_neighbors_of_90_percent": int(np.quantile(degrees, 0.9, method="inverted_cdf")),
        "reusing_rate": 1 - len(np.unique(graph.indices.numpy())) / graph.num_edges,
    }
    for measure in ("published", "repaired"):
        begin = time.perf_counter()
        research.locality_scores(graph, measure=measure)
        row[f"{measure}_s"] = time.perf_counter() - begin
    yield row


def ways(graph: pgs.Graph) -> Iterator[tuple[str, pgs.Graph, Any]]:
    """Yields the name of a way to draw neighbors, the graph with its scores, and the sampler."""
    yield "uniform", graph, samplers.graphsage(fanouts=FANOUTS, seed=0)
    scored = graph.with_data(node_data={"locality": research.locality_scores(graph)})
    for beta in (1.0, 3.0, 10.0):
        yield (
            f"repaired, beta {beta:g}",
            scored,
            research.locality(fanouts=FANOUTS, beta=beta, seed=0),
        )
    hard = research.locality(fanouts=FANOUTS, hard=True, seed=0)
    yield "repaired, best quarter", best_quarter(graph), hard
    # The paper's measure, with its threshold for GraphSAGE.
    yield "published, 0.95", marks(graph, 4, 0.95), hard


def triads(u: Any, v: Any) -> dict[str, float]:
    """Returns the closed triads and the mean clustering coefficient of a graph without directions.

    Parameters
    ----------
    u, v : ndarray of int, shape [E]
        The ends of its edges; loops and repeated edges count for nothing.
    """
    ids, place = np.unique(np.concatenate([u, v]), return_inverse=True)
    u, v = np.split(place, 2)
    m = sparse.csr_matrix((np.ones(len(u)), (u, v)), shape=(len(ids), len(ids)))
    m = ((m + m.T) > 0).astype(np.float64)
    m.setdiag(0)
    m.eliminate_zeros()
    degree = np.asarray(m.sum(axis=1)).ravel()
    # Twice the triangles at each node.
    around = np.asarray((m @ m).multiply(m).sum(axis=1)).ravel()
    pairs = degree * (degree - 1)
    some = pairs > 0
    return {
        "closed_triads": float(around.sum() / 2),
        # The coefficient is 0 without nodes, or without nodes of two neighbors.
        "clustering": float(around[some] @ (1 / pairs[some])) / max(len(ids), 1),
    }


def shape_of(batch: Any, row_bytes: int) -> dict[str, float]:
    """Returns rows and pages of features of one batch, and the triads of its graph."""
    arrays = batch.numpy()
    rows = np.asarray(arrays.input_nodes)
    ends = [
        (block.src_nodes[block.indices], np.repeat(block.dst_nodes, np.diff(block.indptr)))
        for block in arrays.blocks
    ]
    u, v = (np.concatenate(side) for side in zip(*ends, strict=True))
    return {
        "rows": len(rows),
        "pages": len(np.unique(rows * row_bytes // PAGE)),
        "edges": arrays.num_edges,
        **triads(u, v),
    }


def neighbors(case: Case, epochs: int) -> Iterator[dict[str, Any]]:
    """Yields a row for each way, of the graph as it comes and renumbered."""
    for each in (case, case.renumbered()):
        graph = each.graph()
        count = -(-len(each.train) // BATCH)
        found = [
            (way, marked, sampler, Training(each, marked, sampler, count))
            for way, marked, sampler in ways(graph)
        ]
        size = {"nodes": graph.num_nodes, "edges_all": graph.num_edges}
        rows = in_turns([contender for *_, contender in found], epochs)
        for (way, marked, sampler, contender), row in zip(found, rows, strict=True):
            shapes = [
                shape_of(sampler.sample(marked, seeds, epoch=0, batch=i), contender.x[0].nbytes)
                for i, seeds in enumerate(contender.seeds[:LOOKED_AT])
            ]
            means = {what: float(np.mean([shape[what] for shape in shapes])) for what in shapes[0]}
            scored = 1.0 if marked is graph else marked_share(marked)
            yield {"graph": each.name, **size, "way": way, "scored": scored, **row, **means}


def subgraph_ways(graph: pgs.Graph) -> Iterator[tuple[str, pgs.Graph, Any]]:
    """Yields GraphSAINT's vanilla form and those by marks: way, graph and sampler."""
    uniform, by_marks = saint()
    published = marks(graph, *SAINT_MARKS)
    yield "vanilla", all_marked(graph), uniform
    yield "published", published, by_marks
    yield "as many at random", at_random(published), by_marks
    yield "best quarter", best_quarter(graph), by_marks


def subgraphs(case: Case, counts: Sequence[int] = COUNTS) -> Iterator[dict[str, Any]]:
    """Yields a row for each way and number of subgraphs: the mean coefficient, and all triads."""
    for way, graph, sampler in subgraph_ways(case.graph()):
        found = []
        for i in range(max(counts)):
            sampled = sampler.sample(graph, case.train[:1], epoch=0, batch=i).numpy()
            block = sampled.blocks[0]
            v = np.repeat(block.dst_nodes, np.diff(block.indptr))
            found.append({"edges": len(v), **triads(block.src_nodes[block.indices], v)})
        for count in counts:
            yield {
                "graph": case.name,
                "way": way,
                "subgraphs": count,
                "edges": sum(each["edges"] for each in found[:count]),
                "clustering": float(np.mean([each["clustering"] for each in found[:count]])),
                "closed_triads": sum(each["closed_triads"] for each in found[:count]),
            }


def counted(text: str) -> tuple[dict[str, int], str]:
    """Returns the counts of ``perf stat -x,``, and the reason why there are none, or nothing."""
    counts, missing = {}, []
    for line in text.splitlines():
        value, _, rest = line.partition(",")
        event = rest.partition(",")[2].partition(",")[0]
        if value.isdigit():
            counts[event] = int(value)
        elif value.startswith("<"):
            missing.append(f"{event} {value}")
    return (counts, "") if counts and not missing else ({}, f"perf: {', '.join(missing) or text}")


def counters(command: Sequence[str]) -> tuple[dict[str, int], str]:
    """Returns the cache misses of a command, or why they are not known."""
    if shutil.which("perf") is None:
        return {}, "perf is not installed"
    events = [f"--event={event}" for event in EVENTS]
    with tempfile.NamedTemporaryFile("r") as file:
        whole = ["perf", "stat", "-x,", *events, "-o", file.name, "--", *command]
        done = subprocess.run(whole, capture_output=True, text=True)
        lines = [line for line in file.read().splitlines() if line and line[0] != "#"]
    if done.returncode:
        return {}, f"perf: exit status {done.returncode}: {done.stderr.strip()[-200:]}"
    return counted("\n".join(lines))


def cache(name: str, epochs: int) -> dict[str, Any]:
    """Returns the misses of sampling by each way, less those of a process that samples nothing.

    If the machine does not count them, the record has a ``reason``.
    """
    row: dict[str, Any] = {"graph": name}
    # First of nothing, which takes no time where there are no counters.
    _, reason = counters(["true"])
    for way in () if reason else ("vanilla", "published", "best quarter"):
        mine = [sys.executable, "-m", "benchmarks.research.locality", "--sample", name, way]
        (base, before), (full, after) = (counters([*mine, str(n)]) for n in (0, epochs))
        reason = reason or before or after
        row[way] = {event: count - base.get(event, 0) for event, count in full.items()}
    return {"graph": name, "reason": reason} if reason else row


def sample(name: str, way: str, epochs: int) -> None:
    """Samples GraphSAINT's epochs by a way, for ``perf`` to count."""
    case = CASES[name]()
    found = {each: (graph, sampler) for each, graph, sampler in subgraph_ways(case.graph())}
    graph, sampler = found[way]
    for epoch in range(epochs):
        for batch in range(-(-graph.num_nodes // SAINT_BUDGET)):
            sampler.sample(graph, case.train[:1], epoch=epoch, batch=batch)


def run(part: str, name: str, epochs: int) -> Iterable[dict[str, Any]]:
    """Yields the rows of a part of one graph."""
    if part == "cache":
        return [cache(name, epochs)]
    case = CASES[name]()
    if part in ("graphs", "subgraphs"):
        return {"graphs": graphs, "subgraphs": subgraphs}[part](case)
    return {"neighbors": neighbors, "training": training, "sweep": sweep}[part](case, epochs)


def line_of(row: dict[str, Any]) -> str:
    """Returns a row as a line for the terminal."""
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in row.items()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts and writes locality.json."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--graph", action="append", choices=tuple(CASES))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="a small graph, one epoch")
    parser.add_argument("--out", type=Path, help="folder for locality.json")
    parser.add_argument("--note", help="a remark for the JSON")
    parser.add_argument("--sample", nargs=3, help=argparse.SUPPRESS)
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(given)
    if options.sample:
        name, way, epochs = options.sample
        sample(name, way, int(epochs))
        return 0
    names = ["quick"] if options.quick else options.graph or ["debian", "arxiv-like"]
    epochs = 1 if options.quick else options.epochs
    parts: dict[str, list[dict[str, Any]]] = {}
    for part in options.parts:
        for name in names:
            for row in run(part, name, epochs):
                print(f"{part}: {line_of(row)}", flush=True)
                parts.setdefault(part, []).append(row)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        about = environment.describe(given, "benchmarks.research.locality", note=options.note)
        record = {**about, "fanouts": FANOUTS, "batch": BATCH, "epochs": epochs, **parts}
        (options.out / "locality.json").write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
