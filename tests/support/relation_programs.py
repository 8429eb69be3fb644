"""A graph of several types, and a program over its relations."""

from __future__ import annotations

from typing import Any

import numpy as np

import pygsampler as pgs

WRITES = ("author", "writes", "paper")
CITES = ("paper", "cites", "paper")
EMPLOYS = ("place", "employs", "author")
NODES = {"place": 5, "author": 40, "paper": 60}
EDGES = 220


def make_graph(dtype: str = "int64", edge_ids: str | None = None) -> pgs.Graph:
    relations = {}
    for kind in (EMPLOYS, WRITES, CITES):
        random = np.random.default_rng(sum(map(len, kind)))
        ids = (random.permutation(EDGES).astype(edge_ids),) if edge_ids else ()
        degrees = np.bincount(random.integers(0, NODES[kind[2]], EDGES), minlength=NODES[kind[2]])
        indptr = np.concatenate([[0], degrees.cumsum()]).astype(dtype)
        indices = random.integers(0, NODES[kind[0]], EDGES).astype(dtype)
        relations[kind] = (indptr, indices, *ids)
    weights = {kind: {"w": np.arange(EDGES) % 5 + 0.5} for kind in relations}
    scores = {kind: {"score": np.arange(count) + 1.0} for kind, count in NODES.items()}
    return pgs.Graph.from_csc(relations, num_nodes=NODES, edge_data=weights, node_data=scores)


@pgs.program
def cited_and_written(A: Any, seeds: Any, K: int) -> Any:
    """Papers that papers cite, then the authors of all of them: values, lists and vectors too."""
    papers = seeds["paper"]
    cited = A[CITES][:, papers].individual_sample(K)
    written = A[WRITES][:, papers | cited.row()].individual_sample(K)
    outer = {"w": written, "halved": written * 0.5}
    return [outer, cited], {
        "authors": written.row(),
        "degrees": A[WRITES].degree()[written.row() | papers],
    }
