"""GNNSampler's experiment: neighbours drawn by locality against uniform ones::

    python -m benchmarks.research.locality --out benchmarks/results
    python -m benchmarks.research.locality --quick

Graphs: Debian's packages, and graphs with communities that have the sizes of ogbn-arxiv and of a
tenth of ogbn-products, made from a seed; each with its ids as they come, and renumbered by reverse
Cuthill-McKee. For each way to draw, of one model: seconds to sample an epoch, to read its rows of
features, and of a whole training epoch, the ways taking turns; accuracy on vertices that were not
trained on, with uniform neighbours; the pages of features that a batch touches; and of the batches'
graphs the clustering coefficient and closed triads. docs/research/gnnsampler.md says what comes of
it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor, nn
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets, research, samplers
from pygsampler.torch import DataLoader

from .. import environment

FANOUTS = [10, 10]
BATCH = 1024
HIDDEN = 64
PAGE = 4096
# Batches whose graphs are looked at for triads, which costs some seconds each in a dense graph.
LOOKED_AT = 4


@dataclass
class Case:
    """A graph with what there is to learn: features [V, F], labels [V], and ids of three parts."""

    name: str
    src: Any
    dst: Any
    x: Any
    labels: Any
    train: Any
    val: Any

    def graph(self) -> pgs.Graph:
        return pgs.Graph.from_coo(self.src, self.dst, num_nodes=len(self.labels))

    def renumbered(self) -> Case:
        """By reverse Cuthill-McKee of the graph without directions."""
        count = len(self.labels)
        ones = np.ones(len(self.src), np.int8)
        m = sparse.csr_matrix((ones, (self.src, self.dst)), shape=(count, count))
        order = reverse_cuthill_mckee((m + m.T).tocsr(), symmetric_mode=True)
        place = np.empty(count, np.int64)
        place[order] = np.arange(count)
        return Case(
            f"{self.name}, RCM",
            place[self.src],
            place[self.dst],
            self.x[order],
            self.labels[order],
            np.sort(place[self.train]),
            np.sort(place[self.val]),
        )


def debian() -> Case:
    """Packages and what they need; features are sums of random signs, a row for each word."""
    data = datasets.debian()
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (data.num_features + 1, 128))
    signs[-1] = 0
    x = signs[data.words()].sum(axis=1).astype(np.float32)
    src, dst = np.asarray(data.src, np.int64), np.asarray(data.dst, np.int64)
    return Case("debian", src, dst, x, data.labels.astype(np.int64), data.train, data.val)


def communities(name: str, nodes: int, edges: int, classes: int, share: float, seed: int) -> Case:
    """A symmetric graph of small communities in classes, with popular vertices, ids at random.

    Of the edges 6 of 10 stay in a community of some 50, 3 in its class, and one goes anywhere, by
    a popularity with a power law. Features are the class' own behind noise, so that neighbours
    help; one label in ten is another one.
    """
    rng = np.random.default_rng(seed)
    community = np.sort(rng.integers(nodes // 50, size=nodes))
    of_class = rng.integers(classes, size=nodes // 50)
    label = of_class[community]
    half = edges // 2
    u = (nodes * rng.random(half) ** 1.5).astype(np.int64)
    u = rng.permutation(nodes)[u]
    kind = rng.random(half)
    anywhere = rng.permutation(nodes)[(nodes * rng.random(half) ** 2).astype(np.int64)]
    v = np.where(kind < 0.6, _within(community, u, rng), anywhere)
    v = np.where((kind >= 0.6) & (kind < 0.9), _within(label, u, rng), v)
    shuffled = rng.permutation(nodes)
    u, v = shuffled[u[u != v]], shuffled[v[u != v]]
    centres = rng.normal(size=(classes, 128))
    x = np.empty((nodes, 128), np.float32)
    x[shuffled] = centres[label] * 0.25 + rng.normal(size=(nodes, 128))
    labels = np.empty(nodes, np.int64)
    wrong = rng.random(nodes) < 0.1
    labels[shuffled] = np.where(wrong, rng.integers(classes, size=nodes), label)
    parts = rng.permutation(nodes)
    train, val = parts[: int(share * nodes)], parts[-nodes // 10 :]
    src, dst = np.concatenate([u, v]), np.concatenate([v, u])
    return Case(name, src, dst, x, labels, np.sort(train), np.sort(val))


def _within(group: Any, of: Any, rng: Any) -> Any:
    """For each vertex one of its own group."""
    order = np.argsort(group, kind="stable")
    count = np.bincount(group)
    first = np.cumsum(count) - count
    mine = group[of]
    return order[first[mine] + (rng.random(len(of)) * count[mine]).astype(np.int64)]


CASES: dict[str, Callable[[], Case]] = {
    "debian": debian,
    "arxiv-like": lambda: communities("arxiv-like", 169_343, 2_332_486, 40, 0.12, 1),
    "products-like/10": lambda: communities("products-like/10", 244_902, 12_371_828, 47, 0.05, 2),
    "quick": lambda: communities("quick", 5_000, 100_000, 5, 0.4, 3),
}


def ways(graph: pgs.Graph) -> Iterator[tuple[str, pgs.Graph, Any]]:
    """What each is called, the graph with its scores, and the sampler."""
    yield "uniform", graph, samplers.graphsage(fanouts=FANOUTS, seed=0)
    marked = graph.with_data(node_data={"locality": research.locality_scores(graph)})
    for beta in (1.0, 3.0, 10.0):
        made = research.locality(fanouts=FANOUTS, beta=beta, seed=0)
        yield f"repaired, beta {beta:g}", marked, made
    best = research.locality_scores(graph, share=0.25)
    hard = research.locality(fanouts=FANOUTS, hard=True, seed=0)
    yield "repaired, best quarter", graph.with_data(node_data={"locality": best}), hard
    # The paper's measure, with its threshold for GraphSAGE.
    marks = research.locality_scores(graph, measure="published", threshold=0.95)
    yield "published, 0.95", graph.with_data(node_data={"locality": marks}), hard


class Model(nn.Module):
    """GraphSAGE of two layers, with the mean of neighbours."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.own = nn.ModuleList([nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, classes)])
        self.heard = nn.ModuleList([nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, classes)])

    def forward(self, batch: Any) -> Tensor:
        x = batch.x
        for i, block in enumerate(batch.blocks):
            # Projected first: a row is read by several destinations.
            x = self.own[i](x[: block.num_dst_nodes]) + block.mean(self.heard[i](x))
            x = functional.relu(x) if i == 0 else x
        made: Tensor = x[batch.output_index]
        return made


def shape_of(batch: Any, row_bytes: int) -> dict[str, float]:
    """Of one batch: rows and pages of features, and the triads of its graph without directions."""
    made = batch.numpy()
    rows = np.asarray(made.input_nodes)
    ends = [
        (block.src_nodes[block.indices], np.repeat(block.dst_nodes, np.diff(block.indptr)))
        for block in made.blocks
    ]
    u, v = (np.concatenate(side) for side in zip(*ends, strict=True))
    ids, place = np.unique(np.concatenate([u, v]), return_inverse=True)
    u, v = np.split(place, 2)
    m = sparse.csr_matrix((np.ones(len(u)), (u, v)), shape=(len(ids), len(ids)))
    m = ((m + m.T) > 0).astype(np.float64)
    m.setdiag(0)
    m.eliminate_zeros()
    degree = np.asarray(m.sum(axis=1)).ravel()
    # Twice the triangles at each vertex.
    around = np.asarray((m @ m).multiply(m).sum(axis=1)).ravel()
    pairs = degree * (degree - 1)
    some = pairs > 0
    return {
        "rows": len(rows),
        "pages": len(np.unique(rows * row_bytes // PAGE)),
        "edges": made.num_edges,
        "closed_triads": float(around.sum() / 2),
        # Of no vertex with two neighbours it is 0, as of no vertex at all.
        "clustering": float(around[some] @ (1 / pairs[some])) / max(len(ids), 1),
    }


class Way:
    """One way to draw, with the model that is trained by it."""

    def __init__(self, case: Case, graph: pgs.Graph, sampler: Any) -> None:
        self.graph, self.sampler = graph, sampler
        self.x, self.labels = torch.from_numpy(case.x), torch.from_numpy(case.labels)
        self.val = case.val
        order = np.random.default_rng(0).permutation(case.train)
        self.batches = np.array_split(order, -(-len(order) // BATCH))
        self.shapes = [
            shape_of(sampler.sample(graph, seeds, epoch=0, batch=i), self.x[0].nbytes)
            for i, seeds in enumerate(self.batches[:LOOKED_AT])
        ]
        torch.manual_seed(0)
        self.model = Model(self.x.shape[1], int(self.labels.max()) + 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.options: dict[str, Any] = {"features": {"x": self.x}, "device": "cpu"}
        self.loader = DataLoader(
            graph, case.train, sampler, batch_size=BATCH, shuffle=True, **self.options
        )

    def timed(self, number: int) -> dict[str, float]:
        """Seconds of one epoch: sampled alone, its features read alone, and trained on."""
        begin = time.perf_counter()
        many = list(self.sampler.sample_many(self.graph, self.batches, epoch=number))
        sampled = time.perf_counter()
        rows = [batch.torch().input_nodes.long() for batch in many]
        ready = time.perf_counter()
        for ids in rows:
            self.x[ids]
        read = time.perf_counter()
        self.train()
        end = time.perf_counter()
        return {"sample": sampled - begin, "gather": read - ready, "epoch": end - read}

    def train(self) -> None:
        for batch in self.loader:
            expected = self.labels[batch.output_nodes.long()]
            loss = functional.cross_entropy(self.model(batch), expected)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def accuracy(self) -> float:
        """On vertices that were not trained on, with uniform neighbours."""
        right = 0
        options = {"batch_size": 4096, "seed": 0, **self.options}
        with torch.no_grad():
            for batch in DataLoader(self.graph, self.val, FANOUTS, **options):
                expected = self.labels[batch.output_nodes.long()]
                right += int((self.model(batch).argmax(1) == expected).sum())
        return right / len(self.val)


def measured(case: Case, made: Sequence[tuple[str, Way]], epochs: int) -> list[dict[str, Any]]:
    """The ways take turns, so that other work on the machine meets all; the first is the base."""
    rounds = []
    for number in range(1, epochs + 1):
        # In another order each time.
        turns = list(range(len(made)))
        turns = turns[number % len(made) :] + turns[: number % len(made)]
        rounds.append({i: made[i][1].timed(number) for i in turns})
    rows = []
    for i, (name, way) in enumerate(made):
        row: dict[str, Any] = {"way": name, "accuracy": way.accuracy()}
        for what in ("sample", "gather", "epoch"):
            row[f"{what}_s"] = median(found[i][what] for found in rounds)
            row[f"{what}_ratio"] = median(found[i][what] / found[0][what] for found in rounds)
        for what in way.shapes[0]:
            row[what] = float(np.mean([shape[what] for shape in way.shapes]))
        rows.append(row)
    return rows


def run(names: Sequence[str], epochs: int) -> Iterator[dict[str, Any]]:
    for name in names:
        given = CASES[name]()
        for case in (given, given.renumbered()):
            graph = case.graph()
            size = {"nodes": graph.num_nodes, "edges_all": graph.num_edges}
            made, scored = [], {}
            for way, marked, sampler in ways(graph):
                made.append((way, Way(case, marked, sampler)))
                scored[way] = 1.0
                if marked is not graph:
                    scored[way] = float((np.asarray(marked.ndata["locality"]) > 0).mean())
            for row in measured(case, made, epochs):
                yield {"graph": case.name, **size, "scored": scored[row["way"]], **row}


def line_of(row: dict[str, Any]) -> str:
    seconds = [
        f"{what} {row[f'{what}_s']:6.3f} s ({row[f'{what}_ratio']:.2f})"
        for what in ("sample", "gather", "epoch")
    ]
    counts = f"rows {row['rows']:8,.0f}, pages {row['pages']:7,.0f}"
    triads = f"clustering {row['clustering']:.3f}, closed triads {row['closed_triads']:9,.0f}"
    found = ", ".join([*seconds, f"accuracy {row['accuracy']:6.1%}", counts, triads])
    return f"{row['graph']:22} {row['way']:22} {found}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--graph", action="append", choices=tuple(CASES))
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="a small graph, one epoch")
    parser.add_argument("--out", type=Path, help="folder for locality.json")
    parser.add_argument("--note", help="a remark for the JSON")
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(given)
    names = ["quick"] if options.quick else options.graph or [n for n in CASES if n != "quick"]
    rows = []
    for row in run(names, 1 if options.quick else options.epochs):
        print(line_of(row), flush=True)
        rows.append(row)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        about = environment.describe(given, "benchmarks.research.locality", note=options.note)
        made = {**about, "fanouts": FANOUTS, "batch": BATCH, "rows": rows}
        (options.out / "locality.json").write_text(json.dumps(made, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
