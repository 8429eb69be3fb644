"""Measures the part of a shared graph's reads that its copies answer, by their size::

    python -m benchmarks.replication --out results

``Graph.share(replicate=)`` copies pages of the edges to each GPU, those that are read most. Batches
are sampled on the CPU and the pages of their edges looked up: no GPU is needed, and nothing is
timed. Beside it stand the hottest rows of as many bytes, by the figure that pages are chosen by.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

import pygsampler as pgs
from pygsampler._graph.degrees import out_degrees
from pygsampler._graph.shared_arrays import EVERYONE, EdgeAccessCounts, layout

from . import environment, report

FANOUTS, SEEDS = (10, 10), 100
SHARES = (0.1, 0.3, 0.5, 0.7)
# Pages of an array: as many as there are of products' edges, 2 MiB each.
_PAGES, _PAGE = 236, 4096
_VERTICES = 200_000

Float64s = npt.NDArray[np.float64]


def power_law(exponent: float, random: np.random.Generator) -> Float64s:
    """Returns the popularity of each node."""
    weights = np.minimum(random.random(_VERTICES) ** (-1 / (exponent - 1)), _VERTICES / 20)
    return np.asarray(weights / weights.sum(), np.float64)


def graph_of(
    sources: Float64s, targets: Float64s, edges: int, random: np.random.Generator
) -> pgs.Graph:
    """A graph whose edges are drawn by the popularity of their ends; symmetric for equal ones."""
    symmetric = sources is targets
    count = edges // 2 if symmetric else edges

    def drawn(popularity: Float64s) -> npt.NDArray[np.int32]:
        return np.searchsorted(np.cumsum(popularity), random.random(count)).astype(np.int32)

    src, dst = (np.minimum(drawn(of), _VERTICES - 1) for of in (sources, targets))
    if symmetric:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    return pgs.Graph.from_coo(src, dst, num_nodes=_VERTICES)


def graphs(edges: int) -> Iterator[tuple[str, pgs.Graph]]:
    """Graphs whose vertices are numbered at random, by what they are called in the table."""
    random = np.random.default_rng(1)
    for exponent in (2.2, 2.6):
        popularity = power_law(exponent, random)
        yield (
            f"symmetric, power law with exponent {exponent}",
            graph_of(popularity, popularity, edges, random),
        )
    ends = power_law(2.2, random), power_law(2.2, random)
    yield "in-degrees and out-degrees independent of each other", graph_of(*ends, edges, random)


def reads(graph: pgs.Graph, batches: int) -> npt.NDArray[np.int64]:
    """The places of the edges that batches read."""
    random = np.random.default_rng(2)
    sampler = pgs.PGSampler(FANOUTS, seed=1)
    found = []
    for number in tqdm(range(batches), unit="batch", leave=False):
        seeds = np.unique(random.integers(0, graph.num_nodes, SEEDS))
        batch = sampler.sample(graph, seeds, epoch=0, batch=number)
        found += [block.edge_ids.numpy() for block in batch.blocks]
    ids = np.concatenate(found)
    # Edges of a list keep their numbers there, and lie by their rows.
    place = np.empty(graph.num_edges, np.int64)
    place[graph.edge_ids.numpy()] = np.arange(graph.num_edges)
    return np.asarray(place[ids], np.int64)


def answered(graph: pgs.Graph, places: npt.NDArray[np.int64]) -> list[dict[str, float]]:
    """For each share that is copied: the part of the reads that pages answer, and rows would."""
    size = graph.indices.nbytes // graph.num_edges
    granularity = -(-graph.indices.nbytes // (_PAGES * _PAGE)) * _PAGE
    indptr = graph.indptr.numpy()
    degrees = np.diff(indptr)
    rows = np.searchsorted(indptr, places, "right") - 1
    # Each row counts as a page whose elements are all of the row.
    visited = -np.expm1(-(2.0**14) * (out_degrees(graph._source).numpy() + 1) / graph.num_edges)
    order = np.argsort(-visited * np.minimum(1, 10 / np.maximum(degrees, 1)), kind="stable")
    bytes_of = np.cumsum(degrees[order])
    heat, found = EdgeAccessCounts(graph._source), []
    for share in SHARES:
        pieces = layout(graph.indices.nbytes, size, granularity, 2, share, heat)
        ends = np.cumsum([piece.size for piece in pieces]) // size
        everyones = np.array([piece.place == EVERYONE for piece in pieces])
        hot = np.zeros(graph.num_nodes, bool)
        hot[order[: np.searchsorted(bytes_of, share * graph.num_edges)]] = True
        found.append(
            {
                "share": share,
                "pages": float(everyones[np.searchsorted(ends, places, "right")].mean()),
                "rows": float(hot[rows].mean()),
            }
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replication", description=__doc__)
    parser.add_argument("--batches", type=int, default=100, help="a graph (default: 100)")
    parser.add_argument("--edges", type=int, default=6_000_000, help="of each (default: 6000000)")
    parser.add_argument("--out", type=Path, help="folder for copies.json")
    options = parser.parse_args(given)
    rows: list[dict[str, Any]] = []
    for name, graph in graphs(options.edges):
        found = answered(graph, reads(graph, options.batches))
        rows.append({"graph": name, "answered": found})
        shares = ", ".join(f"{x['share']:.0%}: {x['pages']:.2f} / {x['rows']:.2f}" for x in found)
        print(f"{name}: {shares}")
    if options.out:
        about = environment.describe(given, "benchmarks.replication")
        report.write_json(options.out / "copies.json", {**about, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
