"""Real graphs to try a sampler on, without a download."""

from __future__ import annotations

from pygsampler.datasets._debian import Debian, debian

__all__ = ["Debian", "debian"]
