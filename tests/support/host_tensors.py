"""Tensors on the host that stand in for those that torch would make on a device.

For tests on the emulator, whose memory is the host's: torch does not take it for a GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

import pygsampler as pgs
from pygsampler._arrays import devices

if TYPE_CHECKING:
    import pytest


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


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces what makes tensors on a device, and what refuses one that torch does not see."""
    from pygsampler._loader import arguments, edge_seeds, node_seeds, pipeline
    from pygsampler._sampling import device_job

    monkeypatch.setattr(pgs.Array, "torch", torch_of_host)
    monkeypatch.setattr(device_job, "allocate", allocate)
    monkeypatch.setattr(arguments, "_check", lambda index: None)
    # Batches with excluded edges come in memory of the engine's.
    as_torch = pipeline.as_torch
    monkeypatch.setattr(
        pipeline,
        "as_torch",
        lambda batch: as_torch(batch.cpu() if isinstance(batch, pgs.MiniBatch) else batch),
    )
    for seeds in (edge_seeds, node_seeds):
        monkeypatch.setattr(seeds, "to_device", lambda values, index: values.clone())
