"""Numbers of vertices by their first occurrence, found by torch: ``distinct``."""

from __future__ import annotations

import torch

__all__ = ["unique_by_first"]


def unique_by_first(nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The vertices by first occurrence, and where each one is among them."""
    _, number = torch.unique(nodes, return_inverse=True)
    count = int(number.max()) + 1 if len(nodes) else 0
    at = torch.arange(len(nodes), device=nodes.device)
    first = torch.full((count,), len(nodes), device=nodes.device)
    first.scatter_reduce_(0, number, at, "amin")
    order = first.argsort()
    place = torch.empty_like(order)
    place[order] = torch.arange(count, device=nodes.device)
    return nodes[first[order]], place[number]
