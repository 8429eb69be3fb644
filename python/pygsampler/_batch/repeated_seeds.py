"""Batches of seeds that repeat some: the engine has a node once, DGL and PyG a row for each seed.

The rows of equal seeds are equal. Seeds stand first, and edges out of one come from its first
place.
"""

from __future__ import annotations

import torch

__all__ = ["index_with_repeats", "rows_with_repeats", "select_rows", "unique_by_first"]


def rows_with_repeats(row_of_seed: torch.Tensor, distinct: int, count: int) -> torch.Tensor:
    """Returns the rows of all seeds, which are the first ``distinct`` of ``count``, and others."""
    return torch.cat([row_of_seed, torch.arange(distinct, count, device=row_of_seed.device)])


def select_rows(indptr: torch.Tensor, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the ``indptr`` of the rows at ``index``, and the places of their edges."""
    starts = indptr.long()[index]
    degrees = indptr.long()[index + 1] - starts
    result = torch.zeros(index.numel() + 1, dtype=torch.int64, device=indptr.device)
    torch.cumsum(degrees, 0, out=result[1:])
    edges = torch.arange(int(result[-1]), device=indptr.device)
    edges += (starts - result[:-1]).repeat_interleave(degrees, output_size=len(edges))
    return result.to(indptr.dtype), edges


def index_with_repeats(row_of_seed: torch.Tensor, distinct: int, count: int) -> torch.Tensor:
    """Returns where each of ``count`` nodes is once all seeds stand first, the others behind."""
    device, seeds = row_of_seed.device, row_of_seed.numel()
    index = torch.arange(count, device=device) + (seeds - distinct)
    first = torch.arange(seeds, device=device)
    index.scatter_reduce_(0, row_of_seed, first, "amin", include_self=False)
    return index


def unique_by_first(nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The nodes by first occurrence, and where each one is among them."""
    _, number = torch.unique(nodes, return_inverse=True)
    count = int(number.max()) + 1 if len(nodes) else 0
    at = torch.arange(len(nodes), device=nodes.device)
    first = torch.full((count,), len(nodes), device=nodes.device)
    first.scatter_reduce_(0, number, at, "amin")
    order = first.argsort()
    place = torch.empty_like(order)
    place[order] = torch.arange(count, device=nodes.device)
    return nodes[first[order]], place[number]
