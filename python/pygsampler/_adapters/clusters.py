"""Clusters of a graph for Cluster-GCN: the file that has them, and the nodes of some of them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pygsampler._adapters.engine_batch import engine_batch
from pygsampler._graph.graph import Graph
from pygsampler.samplers.subgraphs import induced

__all__ = ["cluster_places", "induced_subgraph", "stored_clusters"]


def stored_clusters(
    path: Path | None,
    where: str,
    num_clusters: int,
    num_nodes: int,
    edges: Sequence[torch.Tensor],
    make: Callable[[], Any],
) -> Any:
    """Returns the cluster of each node of a graph that the file at ``path`` has.

    Without a file ``make`` makes the clusters, which are then written there. ``edges`` are sources
    and targets, by which the file knows the graph. ValueError, with ``where`` as the name of the
    argument, for a file of another graph, or of other clusters.
    """
    if path is None:
        return make()
    digest = hashlib.blake2b(num_nodes.to_bytes(8, "little"), digest_size=16)
    for ids in edges:
        digest.update(ids.cpu().long().numpy().tobytes())
    if path.exists():
        return _read(path, where, num_clusters, num_nodes, digest.digest())
    clusters, file = make(), io.BytesIO()
    # By the handle, since np.savez would put .npz behind the name.
    np.savez(file, part=clusters, graph=np.frombuffer(digest.digest(), np.uint8))
    path.write_bytes(file.getvalue())
    return clusters


def _read(path: Path, where: str, num_clusters: int, num_nodes: int, digest: bytes) -> Any:
    remedy = f"remove it or give another {where}"
    try:
        with np.load(path, allow_pickle=False) as stored:
            clusters, graph = stored["part"], stored["graph"].tobytes()
    except (OSError, ValueError, KeyError, EOFError, AttributeError) as error:
        raise ValueError(
            f"{where}: expected parts that this class wrote, got {str(path)!r}; {remedy}"
        ) from error
    if graph != digest or clusters.shape != (num_nodes,):
        raise ValueError(f"{where}: expected parts of this graph in {str(path)!r}; {remedy}")
    if len(clusters) and not 0 <= int(clusters.min()) <= int(clusters.max()) < num_clusters:
        raise ValueError(
            f"{where}: expected {num_clusters} parts in {str(path)!r}, got others; {remedy}"
        )
    return clusters


def cluster_places(starts: torch.Tensor, clusters: torch.Tensor) -> torch.Tensor:
    """Returns the places of all nodes of some clusters, of which cluster i begins at starts[i]."""
    ends = starts.tolist()
    ranges = (torch.arange(ends[i], ends[i + 1]) for i in clusters.tolist())
    return torch.cat([torch.arange(0), *ranges])


def induced_subgraph(graph: Graph, nodes: torch.Tensor) -> Any:
    """Returns the subgraph of these nodes, in their order, and of all edges among them."""
    return engine_batch(_inducer(), graph, nodes, epoch=0, batch=0)


@cache
def _inducer() -> Any:
    # To make one for each batch would take longer than the batch.
    return induced(seed=0)
