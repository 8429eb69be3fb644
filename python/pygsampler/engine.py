"""Host memory of the engine in this process; ``pygsampler.cuda`` has that of GPUs."""

from __future__ import annotations

from pygsampler._engine.library import memory_stats, trim
from pygsampler._engine.public_home import set_public_module

__all__ = ["memory_stats", "trim"]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
