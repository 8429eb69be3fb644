"""Graphs of GNNSampler's experiments: Debian's packages, and generated communities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

import pygsampler as pgs
from pygsampler import datasets


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
    """A symmetric graph of small communities in classes, with popular nodes, ids at random.

    Six of ten edges stay in a community of some 50 nodes, three in its class, and one goes
    anywhere, by a popularity with a power law. Features are the class' own behind noise, so that
    neighbors help; one label in ten is another one.
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
    """Returns for each node one of its own group."""
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
