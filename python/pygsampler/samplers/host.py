"""``on_host``: arrays of a batch, whatever they are of, as NumPy's."""

from __future__ import annotations

from typing import Any

__all__ = ["on_host"]


def on_host(part: Any) -> Any:
    """An array or tensor as one of NumPy: of the CPU without a copy."""
    import numpy as np

    return np.from_dlpack(part.cpu() if hasattr(part, "cpu") else part)
