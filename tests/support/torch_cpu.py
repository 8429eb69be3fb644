"""Importing it lets tensors on the host stand in for those that torch would allocate on a device.

For scripts on the emulator, whose memory is the host's: torch does not take it for a GPU.
"""

from __future__ import annotations

import torch

from pygsampler._sampling import device_job


def allocate(size: int, bits: int, device: int) -> torch.Tensor:
    kind = torch.int64 if bits == 64 else torch.int32
    return torch.empty((size + 7) // 8 * (64 // bits), dtype=kind)


device_job.allocate = allocate
