"""Random graphs made by torch, and a batch of one whose blocks have all that reductions meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import pygsampler as pgs


def regular(nodes: int, degree: int) -> pgs.Graph:
    """Each vertex has so many in-edges."""
    random = torch.Generator().manual_seed(3)
    indptr = torch.arange(0, nodes * degree + 1, degree)
    return pgs.Graph.from_csc(indptr, torch.randint(0, nodes, (nodes * degree,), generator=random))


def csc(
    nodes: int,
    most: int,
    random: torch.Generator | None = None,
    dtype: torch.dtype = torch.int64,
) -> tuple[torch.Tensor, torch.Tensor]:
    """indptr and indices of vertices that have 0 to ``most`` in-edges, parallel ones among them."""
    random = torch.Generator().manual_seed(7) if random is None else random
    indptr = torch.zeros(nodes + 1, dtype=dtype)
    indptr[1:] = torch.randint(0, most + 1, (nodes,), generator=random).cumsum(0)
    edges = int(indptr[-1])
    return indptr, torch.randint(0, nodes, (edges,), generator=random).to(dtype)


def sampled(
    dtype: Any = np.int64, fanouts: tuple[int, ...] = (7, 5), seeds: int = 65, **options: Any
) -> Any:
    """A batch in torch's tensors, of 900 vertices: parallel edges, self loops, and vertices without
    edges, five of the seeds among them."""
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 900, (2, 4000)).astype(dtype)
    src[:50] = dst[:50]
    src[1000:1400], dst[1000:1400] = src[:400], dst[:400]
    graph = pgs.Graph.from_coo(src, dst % 700, num_nodes=900)
    ids = np.concatenate([np.arange(seeds - 5), np.arange(890, 895)]).astype(dtype)
    return pgs.PGSampler(list(fanouts), seed=1, **options).sample(graph, ids).torch()
