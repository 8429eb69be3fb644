"""Graphs and numbers of the cases, made by integer arithmetic alone.

No generator of NumPy or torch is used: their numbers may change with a version.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import pygsampler as pgs

NODES = 3000
EDGES = 40_000
TYPES = {"user": 900, "item": 1500, "tag": 60}
RELATIONS = (
    *(("user", "buys", "item"), ("item", "bought", "user"), ("item", "has", "tag")),
    *(("tag", "of", "item"), ("user", "knows", "user")),
)
HOMOGENEOUS = ("homogeneous", "scored")
ONE_TYPE = ("paper", "cites", "paper")


def edges(count: int = EDGES, nodes: int = NODES) -> tuple[np.ndarray, np.ndarray]:
    """Returns sources and destinations: with hubs, nodes without edges, parallel edges, loops."""
    state = np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(29)
    src, dst = (state % np.uint64(nodes)).astype(np.int64).reshape(2, count)
    dst[: count // 8] = 7
    src[count // 8 : count // 4] = 11
    dst[dst % 13 == 5] = 8
    src[-100:], dst[-100:] = src[-200:-100], dst[-200:-100]
    return src, dst


def integers(count: int, low: int, high: int, step: int = 7919) -> np.ndarray:
    """Returns ``count`` integers from ``low`` up to ``high``, which is not among them."""
    return low + np.arange(count, dtype=np.int64) * step % (high - low)


def feature_rows(count: int, width: int) -> np.ndarray:
    """Returns float32 rows of both signs that are exact in 16 bits."""
    return integers(count * width, -90, 90, 101).astype(np.float32).reshape(count, width) / 64


def _edge_data(count: int) -> dict[str, np.ndarray]:
    weights = integers(count, 1, 900).astype(np.float32) / 64
    weights[::17] = 0
    return {
        "w": weights,
        "w64": weights.astype(np.float64) + 1 / 3,
        "mask": integers(count, 0, 4) > 0,
        "t": integers(count, 0, 1000),
        "kind": integers(count, 0, 3).astype(np.int32),
    }


def _homogeneous(bits: int) -> pgs.Graph:
    src, dst = (ids.astype(f"int{bits}") for ids in edges())
    result = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data=_edge_data(EDGES))
    return result.with_data({}, {"time": integers(NODES, 0, 1000, 6101)})


def _scored(bits: int) -> pgs.Graph:
    """Returns a graph with the arrays that programs read beside weights."""
    features = feature_rows(NODES, 8)
    nodes = {
        "x": features,
        "h_source": np.abs(features[:, 0]) + 1,
        "h_target": np.abs(features[:, 1]),
        "gradient_norm": integers(NODES, 1, 700, 4001).astype(np.float64) / 128,
        "locality": integers(NODES, 0, 65, 4003).astype(np.float32) / 64,
    }
    log_weights = integers(EDGES, -300, 300, 5003).astype(np.float64) / 128
    return _homogeneous(bits).with_data({"log_w": log_weights}, nodes)


def _one_type(bits: int) -> pgs.Graph:
    src, dst = (ids.astype(f"int{bits}") for ids in edges())
    return pgs.Graph.from_coo(
        {ONE_TYPE: (src, dst)},
        num_nodes={"paper": NODES},
        edge_data={ONE_TYPE: _edge_data(EDGES)},
        node_data={"paper": {"time": integers(NODES, 0, 1000, 6101)}},
    )


def _several_types(bits: int) -> pgs.Graph:
    ends, data = {}, {}
    for place, relation in enumerate(RELATIONS):
        count = 9000 - 900 * place
        src, dst = edges(count)
        ends[relation] = (
            ((src * 3 + place) % TYPES[relation[0]]).astype(f"int{bits}"),
            ((dst * 5 + place) % TYPES[relation[2]]).astype(f"int{bits}"),
        )
        weights = integers(count, 1, 500, 6007 + place).astype(np.float32) / 32
        data[relation] = {
            "w": weights,
            "w64": weights.astype(np.float64) + 1 / 3,
            "mask": integers(count, 0, 5, 6011 + place) > 0,
            "t": integers(count, 0, 1000, 4001 + place),
        }
    times = {kind: {"time": integers(count, 0, 1000, 6101)} for kind, count in TYPES.items()}
    return pgs.Graph.from_coo(ends, num_nodes=TYPES, edge_data=data, node_data=times)


_GRAPHS = {
    "homogeneous": _homogeneous,
    "scored": _scored,
    "one type": _one_type,
    "several types": _several_types,
}


@cache
def graph(name: str = "homogeneous", bits: int = 64, device: str = "cpu") -> Any:
    """Returns one of the graphs, with ids of 32 or 64 bits, on a device."""
    return _GRAPHS[name](bits) if device == "cpu" else graph(name, bits).to(device)
