"""LABOR on graphs with types once more, slowly and in plain Python, from the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reference import GAMMA, MASK64, row_state, splitmix64
from reference_hgt import CANDIDATES, Edges, EdgeType, salt

# The edges (source, edge id, weight) of each row, by edge type.
Rows = dict[EdgeType, list[list[tuple[int, int, float]]]]


def number(seed: int, batch: int, site: int, kind: str | None, v: int, draw: int = 0) -> float:
    """A vertex's uniform number; of a graph with one type of either kind none is named."""
    state = row_state(seed, 0, batch, site, v, CANDIDATES)
    if kind is not None:
        state = splitmix64(state ^ salt(kind))
    return (2 * (splitmix64((state + (draw + 1) * GAMMA) & MASK64) >> 12) + 1) / 2**53


def factor(a: Sequence[float], q: Sequence[float], fanout: int) -> float:
    """The c for which the sum of a^2 / min(1, c q) is what uniform draws give, by bisection."""
    d, total = len(a), sum(a)
    if d <= fanout:
        return 1 / min(q, default=1)
    goal = total**2 * (1 / fanout - 1 / d) + sum(x * x for x in a)

    def above(c: float) -> bool:
        return sum(x * x / min(1, c * y) for x, y in zip(a, q, strict=True)) > goal

    low, high = 0.0, 1 / min(q)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


def chances(
    rows: Sequence[Sequence[tuple[int, float]]], fanout: int, rounds: int
) -> list[list[float]]:
    """Returns the chance of each edge of ``rows``, whose edges are (source, weight)."""
    if fanout < 0:
        return [[1.0] * len(row) for row in rows]
    a = [[w for _, w in row] for row in rows]
    c = [factor(each, each, fanout) for each in a]
    if not rounds:
        return [[min(1, k * w) for w in each] for k, each in zip(c, a, strict=True)]

    def largest(value: Callable[[int, float], float]) -> dict[int, float]:
        found: dict[int, float] = {}
        for i, row in enumerate(rows):
            for u, w in row:
                found[u] = max(found.get(u, 0), value(i, w))
        return found

    pi = largest(lambda i, w: c[i] * w)
    for further in range(rounds):
        if further:
            most = largest(lambda i, _, of=c: of[i])
            pi = {u: value * most[u] for u, value in pi.items()}
        c = [
            factor(each, [pi[u] for u, _ in row], fanout) for row, each in zip(rows, a, strict=True)
        ]
    return [[min(1, k * pi[u]) for u, _ in row] for k, row in zip(c, rows, strict=True)]


def sample(
    edges: Edges,
    seeds: Mapping[str, Sequence[int]],
    nodes: Sequence[str],
    fanouts: Sequence[Mapping[EdgeType, int]],
    *,
    rounds: int = 0,
    exact: bool = False,
    same_layers: bool = False,
    weights: Mapping[EdgeType, Sequence[float]] | None = None,
    exclude: Mapping[EdgeType, Sequence[int]] | None = None,
    seed: int,
    batch: int,
) -> tuple[dict[str, list[int]], list[Rows]]:
    """The vertices of each type, and of each hop, outermost first, the rows; weights 1 / chance."""
    mixed = len(nodes) > 1 or len(edges) > 1
    found = {kind: list(dict.fromkeys(seeds.get(kind, ()))) for kind in nodes}
    hops: list[Rows] = []
    for hop, fanout in enumerate(reversed(fanouts)):
        site = 0 if same_layers else hop
        expanded = {kind: list(ids) for kind, ids in found.items()}
        rows: Rows = {}
        for kind, (src, dst) in edges.items():
            out = set((exclude or {}).get(kind, ()))
            w = (weights or {}).get(kind, [1.0] * len(src))
            full = [
                [
                    (int(src[e]), e)
                    for e in range(len(src))
                    if dst[e] == v and e not in out and w[e] > 0
                ]
                for v in expanded[kind[2]]
            ]
            of_type = kind[0] if mixed else None
            plain = [[(u, w[e]) for u, e in row] for row in full]
            k = fanout[kind]
            rows[kind] = [[] for _ in full]
            if k == 0:
                continue
            ps = [] if exact else chances(plain, k, rounds)
            for i, row in enumerate(full):
                r = [number(seed, batch, site, of_type, u) for u, _ in row]
                if exact:
                    met: set[int] = set()
                    for j, (u, e) in enumerate(row):
                        if u in met:
                            r[j] = number(seed, batch, site, of_type, u, 1 + e)
                        met.add(u)
                    late = sorted((r[j] / w[e], j) for j, (_, e) in enumerate(row))
                    chosen = late if k < 0 else late[:k]
                    last = late[k][0] if 0 <= k < len(late) else float("inf")
                    for _, j in sorted(chosen, key=lambda each: each[1]):
                        u, e = row[j]
                        rows[kind][i].append((u, e, 1 / min(1, w[e] * last)))
                else:
                    for j, (u, e) in enumerate(row):
                        if r[j] <= ps[i][j]:
                            rows[kind][i].append((u, e, 1 / ps[i][j]))
            for row in rows[kind]:
                for u, _, _ in row:
                    if u not in found[kind[0]]:
                        found[kind[0]].append(u)
        hops.insert(0, rows)
    return found, hops
