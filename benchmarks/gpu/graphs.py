"""Power-law graphs with the counts of the papers' data sets, made on the GPU in seconds.

The recipe is the one that reference.csv and dgl_grid.csv were measured with, so its numbers, and
the order in which it asks for random ones, stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

import pygsampler as pgs

# nodes, edges, exponent of the in-degrees, power of the neighbours' popularity
SHAPES = {
    "physics": (34_493, 495_924, 2.4, 2.0),
    "flickr": (89_250, 899_756, 2.4, 2.0),
    "yelp": (716_847, 13_954_819, 2.3, 2.0),
    "arxiv": (169_343, 1_166_243, 2.4, 2.0),
    "reddit": (232_965, 114_615_892, 2.2, 2.0),
    "products": (2_449_029, 123_718_280, 2.2, 2.0),
    "livejournal": (4_847_571, 68_993_773, 2.4, 2.0),
    "papers100m": (111_059_956, 1_615_685_872, 2.4, 2.0),
    # Each of its edges once.
    "friendster": (65_608_366, 1_806_067_135, 2.4, 2.0),
    # Not of a paper: for trying these benchmarks out.
    "tiny": (3_000, 30_000, 2.4, 2.0),
}
_CHUNK = 1 << 28


@dataclass
class Made:
    """A graph on the device, by the tensors that hold it."""

    name: str
    indptr: torch.Tensor
    indices: torch.Tensor
    graph: pgs.Graph

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    def on_cpu(self) -> pgs.Graph:
        """A copy for the CPU engine."""
        return pgs.Graph.from_csc(self.indptr.cpu(), self.indices.cpu())

    def seeds(self, size: int, count: int, dtype: Any, seed: int = 5) -> list[torch.Tensor]:
        """``count`` batches of ``size`` distinct vertices, fresh ones while the graph has any."""
        random = torch.Generator(device=self.indptr.device).manual_seed(seed)
        size = min(size, self.num_nodes)
        device, nodes = self.indptr.device, self.num_nodes
        found: list[torch.Tensor] = []
        if nodes > 100 * size:
            # A permutation of all would take longer than the batches.
            for _ in range(count):
                some = torch.randint(nodes, (2 * size,), generator=random, device=device).unique()
                order = torch.randperm(len(some), generator=random, device=device)
                found.append(some[order[:size]].to(dtype))
            return found
        batches: list[torch.Tensor] = []
        while len(batches) < count:
            order = torch.randperm(nodes, generator=random, device=device).to(dtype)
            batches += order[: len(order) // size * size].split(size)
        return [part.contiguous() for part in batches[:count]]


def make(
    name: str,
    dtype: Any = torch.int32,
    *,
    seed: int = 1,
    device: str = "cuda",
    hot_first: bool = False,
) -> Made:
    """The graph ``name``: int64 indptr [V + 1], indices of ``dtype`` [E].

    With ``hot_first`` vertices are numbered by how often they are neighbours; else at random.
    """
    nodes, edges, exponent, popularity = SHAPES[name]
    random = torch.Generator(device=device).manual_seed(seed)
    weights = torch.rand(nodes, generator=random, device=device, dtype=torch.float64)
    weights = weights.clamp_(1e-12).pow_(-1.0 / (exponent - 1)).clamp_(max=nodes / 20)
    degrees = (weights * (edges / weights.sum())).floor_().to(torch.int64)
    degrees.clamp_(min=1, max=nodes - 1)
    missing = edges - int(degrees.sum())
    if missing > 0:
        more = torch.randint(nodes, (missing,), generator=random, device=device)
        degrees += torch.bincount(more, minlength=nodes)
    indptr = torch.zeros(nodes + 1, dtype=torch.int64, device=device)
    torch.cumsum(degrees, 0, out=indptr[1:])
    total = int(indptr[-1])
    del weights, degrees
    by_rank = torch.randperm(nodes, generator=random, device=device, dtype=torch.int32)
    if hot_first:
        by_rank = torch.arange(nodes, dtype=torch.int32, device=device)
    indices = torch.empty(total, dtype=dtype, device=device)
    for start in range(0, total, _CHUNK):
        count = min(_CHUNK, total - start)
        rank = torch.rand(count, generator=random, device=device).pow_(popularity).mul_(nodes)
        places = rank.to(torch.int32).clamp_(max=nodes - 1).long()
        indices[start : start + count] = by_rank[places].to(dtype)
        del rank, places
    torch.cuda.empty_cache()
    return Made(name, indptr, indices, pgs.Graph.from_csc(indptr, indices))
