"""HGT's sampling once more, slowly and in plain Python, from the paper and the randomness page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from reference import GAMMA, MASK64, choose, log, row_state, splitmix64

EdgeType = tuple[str, str, str]
Edges = Mapping[EdgeType, tuple[Sequence[int], Sequence[int]]]

CANDIDATES = 3
WHOLE = 1 << 40  # what a row shares out


def salt(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode()).digest()[:8], "little")


def race_key(seed: int, batch: int, iteration: int, kind: str, v: int, budget: int) -> float:
    """The smaller, the earlier a vertex is chosen."""
    state = splitmix64(row_state(seed, 0, batch, iteration, v, CANDIDATES) ^ salt(kind))
    number = splitmix64((state + GAMMA) & MASK64)
    u = (2 * (number >> 12) + 1) / 2**53
    return -log(u) / (float(budget) * float(budget))


def sample(
    edges: Edges,
    seeds: Mapping[str, Sequence[int]],
    num_samples: Mapping[str, Sequence[int]],
    *,
    max_neighbors: int | None,
    seed: int,
    batch: int,
    exclude: Mapping[EdgeType, Sequence[int]] | None = None,
) -> tuple[dict[str, list[int]], dict[EdgeType, list[list[tuple[int, int]]]]]:
    """The vertices of each type, and of each edge type the (source, edge id) of each row."""
    kept = cut(edges, max_neighbors, seed, batch, exclude or {})
    nodes = {kind: list(dict.fromkeys(seeds.get(kind, ()))) for kind in num_samples}
    new = {kind: list(ids) for kind, ids in nodes.items()}
    budget: dict[str, dict[int, int]] = {kind: {} for kind in nodes}
    for iteration in range(len(next(iter(num_samples.values())))):
        for (src, _, dst), rows in kept.items():
            for v in new[dst]:
                row = rows.get(v, [])
                for source, _ in row:
                    if source not in nodes[src]:
                        share = max(WHOLE // len(row), 1)
                        budget[src][source] = budget[src].get(source, 0) + share
        for kind, counts in num_samples.items():
            keys = sorted(
                (race_key(seed, batch, iteration, kind, v, b), v) for v, b in budget[kind].items()
            )
            chosen = keys if counts[iteration] < 0 else keys[: counts[iteration]]
            new[kind] = [v for _, v in chosen]
        for kind, ids in new.items():
            nodes[kind] += ids
            for v in ids:
                del budget[kind][v]
    places = {kind: {v: i for i, v in enumerate(ids)} for kind, ids in nodes.items()}
    return nodes, {
        edge_type: [
            [
                (places[edge_type[0]][source], e)
                for source, e in rows.get(v, [])
                if source in places[edge_type[0]]
            ]
            for v in nodes[edge_type[2]]
        ]
        for edge_type, rows in kept.items()
    }


def cut(
    edges: Edges,
    most: int | None,
    seed: int,
    batch: int,
    exclude: Mapping[EdgeType, Sequence[int]],
) -> dict[EdgeType, dict[int, list[tuple[int, int]]]]:
    """Returns the nonempty rows of each edge type, with at most ``most`` (source, edge id) each."""
    types = {end for src, _, dst in edges for end in (src, dst)}
    mixed = len(types) > 1 or len(edges) > 1
    kept = {}
    for edge_type, (sources, targets) in edges.items():
        rows: dict[int, list[tuple[int, int]]] = {}
        for e, (source, target) in enumerate(zip(sources, targets, strict=True)):
            if e not in exclude.get(edge_type, ()):
                rows.setdefault(int(target), []).append((int(source), e))
        for v, row in rows.items():
            state = row_state(seed, 0, batch, 0, v)
            if mixed:
                state = splitmix64(state ^ salt("__".join(edge_type)))
            fanout = -1 if most is None else most
            rows[v] = [row[place] for place in choose(len(row), fanout, False, state)]
        kept[edge_type] = rows
    return kept
