"""Small awkward graphs with arrays of several dtypes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from graphs import Case

import pygsampler as pgs

# Candidates of weight 0, weights whose quotients and sums leave the range of floats, integers
# that no double has.
WEIGHTS = [0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 0.1, 1e-3, 1e-300, 5e-324, 1e300, 7.25]
PLAIN = [0.0, 1.0, -1.0, 0.5, 3.0, -2.5, 1e-3, 40.0]
BIG = [0, 1, -5, 2**53 + 1, 2**62 + 3, -(2**53) - 1]
EDGE_ARRAYS = {"w": "float64", "t": "float32", "k": "int8", "m": "bool", "big": "int64"}
NODE_ARRAYS = {"x": "float64", "y": "float32", "c": "int16", "u": "uint8", 'a "b': "int32"}
# Arrays of values that are finite and >= 0: chances, for the most part.
CHANCES = {"w", "m", "x", "u"}
# Rows of numbers of vertices, and inputs that they are multiplied with.
ROW_ARRAYS = {"r": ("float64", 3), "s": ("uint8", 2), "long": ("float32", 35)}
INPUTS: dict[str, list[Any]] = {
    "W": [[0.5, -1.0], [2.0, 0.25], [1e-3, 3.0]],
    "V": [[1.0, -2.0, 0.1, 0.0], [0.3, 7.0, -0.5, 1e30]],
    "v": [0.75, -1.5, 2.0],
}
# The inputs in single precision, as the engine has them.
SINGLE_INPUTS = {k: np.array(v, np.float32).tolist() for k, v in INPUTS.items()}


@dataclass
class Arrays(Case):
    """A graph in lists, with arrays by name."""

    edge_data: dict[str, list[Any]] = field(default_factory=dict)
    node_data: dict[str, list[Any]] = field(default_factory=dict)
    made: dict[int, pgs.Graph] = field(default_factory=dict, repr=False)

    def graph(self, bits: int = 64, indptr_bits: int = 64) -> pgs.Graph:
        if bits not in self.made:
            ids = None if self.edge_ids is None else np.array(self.edge_ids, f"int{bits}")
            self.made[bits] = pgs.Graph.from_csc(
                np.array(self.indptr, f"int{indptr_bits}"),
                np.array(self.indices, f"int{bits}"),
                edge_ids=ids,
                num_nodes=self.num_nodes,
                edge_data={k: np.array(v, EDGE_ARRAYS[k]) for k, v in self.edge_data.items()},
                node_data={
                    k: np.array(v, NODE_ARRAYS[k])
                    if k in NODE_ARRAYS
                    else np.array(v, ROW_ARRAYS[k][0]).reshape(self.num_nodes, ROW_ARRAYS[k][1])
                    for k, v in self.node_data.items()
                },
            )
        return self.made[bits]


def values_of(dtype: str, chance: bool, count: int, rng: random.Random) -> list[Any]:
    """Values that an array of this dtype has exactly."""
    if dtype == "bool":
        return [rng.random() < 0.6 for _ in range(count)]
    if dtype == "int64":
        return [rng.choice(BIG) for _ in range(count)]
    if "int" in dtype:
        return [rng.randrange(0 if dtype[0] == "u" or chance else -4, 9) for _ in range(count)]
    some = WEIGHTS if chance else PLAIN
    found = [
        rng.choice(some) if rng.random() < 0.5 else rng.uniform(0 if chance else -3, 3)
        for _ in range(count)
    ]
    return [float(x) for x in np.array(found, dtype)]


def with_arrays(rows: list[list[int]], num_nodes: int, ids: str, seed: int) -> Arrays:
    """Row v lists the in-neighbours of v; ids are ``"none"``, ``"mixed"`` or have ``"gaps"``."""
    rng = random.Random(seed)
    indptr = [0]
    for row in rows:
        indptr.append(indptr[-1] + len(row))
    count = indptr[-1]
    given = {"none": None, "mixed": range(count), "gaps": range(2 * count)}[ids]
    edge_ids = None if given is None else rng.sample(given, count)
    top = 1 + max(edge_ids or range(count), default=-1)
    edge_data = {k: values_of(d, k in CHANCES, top, rng) for k, d in EDGE_ARRAYS.items()}
    node_data = {k: values_of(d, k in CHANCES, num_nodes, rng) for k, d in NODE_ARRAYS.items()}
    for name, (dtype, width) in ROW_ARRAYS.items():
        node_data[name] = [values_of(dtype, name == "s", width, rng) for _ in range(num_nodes)]
    indices = [u for row in rows for u in row]
    return Arrays(indptr, indices, edge_ids, num_nodes, edge_data, node_data)


def graphs(seed: int = 0) -> dict[str, Arrays]:
    """Stars, loops, parallel edges, vertices without edges and behind the last row, a hub."""
    rng = random.Random(seed)
    some = [[rng.randrange(12) for _ in range(rng.choice([0, 1, 2, 3, 8]))] for _ in range(12)]
    return {
        "alone": with_arrays([[]], 1, "none", seed),
        "loops": with_arrays([[0, 0, 1], [1], []], 3, "none", seed),
        "star": with_arrays([list(range(1, 9)), *[[0]] * 8], 9, "mixed", seed),
        "parallel": with_arrays([[1, 1, 1, 2], [0, 0], [2, 2, 1]], 6, "gaps", seed),
        "some": with_arrays(some, 12, "none", seed),
        "trailing": with_arrays([[3, 4, 1], [], [7, 2]], 8, "mixed", seed),
        "hub": with_arrays(
            [[5], [rng.randrange(30) for _ in range(97)], *[[1, v, 0] for v in range(20)]],
            30,
            "none",
            seed,
        ),
        "whole": with_arrays([list(range(7))] * 7, 7, "mixed", seed),
    }


def seeds_of(case: Arrays, rng: random.Random) -> list[int]:
    """Some vertices, some of them twice, sometimes none."""
    return [rng.randrange(case.num_nodes) for _ in range(rng.choice([0, 1, 2, 3, 4, 5, 7, 9, 12]))]


def larger(seed: int = 0) -> Arrays:
    """Some hundred vertices, one of which has more edges than a tile."""
    rng = random.Random(seed)
    rows = [[rng.randrange(400) for _ in range(rng.randrange(12))] for _ in range(390)]
    rows[7] = [rng.randrange(400) for _ in range(1300)]
    return with_arrays(rows, 400, "mixed", seed)


def large(seed: int = 0) -> Arrays:
    """Edges for several threads: the reference takes a second for a program."""
    rng = random.Random(seed)
    rows = [[rng.randrange(2000) for _ in range(rng.randrange(24))] for _ in range(1990)]
    rows[7] = [rng.randrange(2000) for _ in range(20_000)]
    return with_arrays(rows, 2000, "mixed", seed)
