"""Seeds as a loader's caller gave them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.dlpack import from_dlpack

from pygsampler._arrays.ids import check_node_ids
from pygsampler._arrays.tensors import as_tensor
from pygsampler._engine.checks import describe

__all__ = ["seed_tensor"]


def seed_tensor(seeds: Any, num_nodes: int) -> torch.Tensor:
    """A contiguous copy on the CPU of the vertex ids, int32 or int64, in ``[0, num_nodes)``."""
    if seeds is None:
        raise TypeError(
            f"seeds: expected a 1-D array of node ids, got None; torch.arange({num_nodes}) are all"
        )
    if isinstance(seeds, torch.Tensor):
        tensor = seeds
    elif hasattr(seeds, "__dlpack__") and not hasattr(seeds, "__array__"):
        tensor = from_dlpack(seeds)
    else:
        try:
            tensor = as_tensor(seeds)
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(
                f"seeds: expected a 1-D array of int32 or int64 vertex ids, "
                f"got {describe(seeds)}: {error}"
            ) from None
        if tensor.numel() == 0 and isinstance(seeds, (list, tuple)):
            tensor = tensor.to(torch.int64)
    if tensor.dtype == torch.bool:
        raise TypeError(
            "seeds: expected vertex ids, got a boolean mask; "
            "mask.nonzero().squeeze(1) gives the ids that it selects"
        )
    if tensor.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"seeds: expected int32 or int64 vertex ids, got {tensor.dtype}")
    if tensor.dim() != 1:
        raise ValueError(f"seeds: expected a 1-D array, got shape {tuple(tensor.shape)}")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(f"seeds: expected an array on the CPU, got {tensor.device}")
    tensor = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    check_node_ids(tensor, "seeds", num_nodes)
    return tensor
