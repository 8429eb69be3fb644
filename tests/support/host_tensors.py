"""Tensors on the host that stand in for those that torch would make on a device.

For tests on the emulator, whose memory is the host's: torch does not take it for a GPU.
"""

from __future__ import annotations

from typing import Any

import torch

import pygsampler as pgs
from pygsampler._arrays import devices


def allocate(size: int, bits: int, device: int) -> torch.Tensor:
    kind = torch.int64 if bits == 64 else torch.int32
    return torch.empty((size + 7) // 8 * (64 // bits), dtype=kind)


to_torch = pgs.Array.torch


def torch_of_host(array: pgs.Array) -> Any:
    """A tensor of an array on the emulator, whose memory is the host's."""
    if array._device < 0:
        return to_torch(array)
    there, array._device = array._device, devices.CPU
    try:
        return to_torch(array)
    finally:
        array._device = there
