"""``integers``: an array of integers in a tensor of bytes that the engine has filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def integers(region: torch.Tensor, offset: int, length: int, bits: int) -> torch.Tensor:
    """A view of so many of 32 or 64 bits, from a byte of the region on, whatever its dtype."""
    import torch

    dtype = torch.int64 if bits == 64 else torch.int32
    whole = region if region.dtype == dtype else region.view(dtype)
    first = offset * 8 // bits
    return whole[first : first + length]
