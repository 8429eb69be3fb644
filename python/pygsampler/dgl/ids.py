"""Ids as DGL's users give them."""

from __future__ import annotations

from typing import Any

import torch

from pygsampler._arrays.tensors import as_tensor

__all__ = ["as_ids"]


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
