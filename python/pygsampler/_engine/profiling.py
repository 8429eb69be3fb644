"""Names for the engine's work in profiles of torch, which sees no work but its own."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

__all__ = ["is_profiling", "profiled"]

# Stands for torch's module where torch is not loaded.
_OFF: Any = SimpleNamespace(_is_profiler_enabled=False)
_loaded: Any = sys.modules.get


def is_profiling() -> bool:
    """Returns True if torch is loaded, and a profiler of its is on in this process.

    It is asked before each batch, and so is no more than two look-ups.
    """
    try:
        on: bool = _loaded("torch.autograd.profiler", _OFF)._is_profiler_enabled
    except AttributeError:
        # A torch that has no such flag.
        return False
    return on


def profiled(name: str) -> Any:
    """Returns a context manager for a range ``pygsampler::name`` of a profile that is on.

    It is one of NVTX, too, under ``torch.autograd.profiler.emit_nvtx``.
    """
    import torch

    return torch.profiler.record_function(f"pygsampler::{name}")
