"""Options of DGL's: those that are not offered, and checks that samplers share."""

from __future__ import annotations

from typing import Any

import torch
from dgl import DGLGraph

from pygsampler._adapters.sampler_options import SamplerOption
from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe

__all__ = ["EdgeDirection", "array_name", "as_ids", "check_direction"]


def array_name(prob: Any) -> str | None:
    """``prob``, the name of an edge array, or None."""
    if prob is not None and not isinstance(prob, str):
        raise TypeError(f"prob: expected the name of an edge array, got {describe(prob)}")
    return prob


class EdgeDirection:
    """The option ``edge_dir`` of a sampler."""

    edge_dir = SamplerOption("``'in'`` or ``'out'``.")

    def _reverses(self, g: Any) -> bool:
        """True if the sampler samples ``g`` turned round."""
        return self.edge_dir == "out" and isinstance(g, DGLGraph) and not g.is_block


def check_direction(edge_dir: Any) -> None:
    """Raises ValueError for what is no direction of edges."""
    if edge_dir not in ("in", "out"):
        raise ValueError(f"edge_dir: expected 'in' or 'out', got {edge_dir!r}")


def as_ids(values: Any, where: str) -> torch.Tensor:
    """A 1-D tensor of int32 or int64, on the device of ``values`` if they have one."""
    ids = as_tensor(values)
    if not ids.numel() and not isinstance(values, torch.Tensor):
        ids = ids.long()
    if ids.dtype not in (torch.int32, torch.int64):
        hint = "; mask.nonzero().squeeze(1) gives its ids" if ids.dtype == torch.bool else ""
        raise TypeError(f"{where}: expected int32 or int64 ids, got {ids.dtype}{hint}")
    if ids.dim() > 1:
        raise ValueError(f"{where}: expected a 1-D tensor, got shape {tuple(ids.shape)}")
    return ids.reshape(-1).contiguous()
