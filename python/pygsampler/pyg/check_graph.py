"""A check that a loader's data and its sampler's graph are one graph, by their sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Data, HeteroData

from pygsampler._arrays.tensor_frames import is_tensor_frame
from pygsampler._graph.graph import is_heterogeneous
from pygsampler.pyg.base_sampler import Sampler

__all__ = ["check_graph_matches"]

# By which PyG tells the number of nodes, beside names with "node" in them.
_OF_NODES = {"x", "feat", "pos", "batch", "n_id", "tf", "adj", "adj_t"}


def check_graph_matches(data: Any, sampler: Any) -> None:
    """Raises ValueError where ``data`` has other nodes or edges than the graph of our ``sampler``.

    Features would be looked up by the ids of another graph. Called for each batch: takes
    microseconds. Edges of data without any, which has the features alone, are not compared, nor are
    those of an ``adj_t`` of torch-sparse.
    """
    typed = isinstance(sampler, Sampler) and is_heterogeneous(sampler.graph)
    if typed and isinstance(data, HeteroData):
        for kind, count in sampler.num_nodes.items():
            _require_equal(f"data[{kind!r}]", "nodes", _num_nodes(data[kind]), count)
        for edge_type, count in sampler.num_edges.items():
            edges = getattr(data[edge_type], "edge_index", None)
            got = None if edges is None else edges.shape[1]
            _require_equal(f"data[{edge_type!r}]", "edges", got, count)
        return
    if not isinstance(data, Data) or not isinstance(sampler, Sampler):
        return
    edges = data.edge_index
    for name, got, expected in (
        ("nodes", _num_nodes(data), sampler.num_nodes),
        ("edges", None if edges is None else edges.shape[1] or None, sampler.num_edges),
    ):
        _require_equal("data", name, got, expected)


def _require_equal(where: str, name: str, got: int | None, expected: int) -> None:
    if got is not None and got != expected:
        raise ValueError(
            f"{where}: expected {expected} {name} as in the sampler's graph, got {got}; a sampler "
            "uses the graph that it was created with: create the loader, or its neighbor_sampler, "
            "from this data"
        )


def _num_nodes(data: Any) -> int | None:
    """Returns the number of nodes, or None if PyG would guess it from all edges, and warn."""
    for key in data.keys():  # noqa: SIM118
        if key in _OF_NODES or "node" in key:
            value = data[key]
            known = hasattr(value, "shape") or is_tensor_frame(value)
            if isinstance(value, (int, torch.Tensor)) or known:
                return data.num_nodes  # type: ignore[no-any-return]
    return None
