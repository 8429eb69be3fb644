"""Graphs from files and from other people's collections, and one that comes with the package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._engine.public_home import set_public_module
from pygsampler.datasets._files import convert, read, snap
from pygsampler.datasets._ogb import Ogb, ogb
from pygsampler.datasets._ogbn_mag import ogbn_mag
from pygsampler.datasets._relbench import from_relbench

if TYPE_CHECKING:
    from pygsampler.datasets._debian import Debian, debian

__all__ = [
    "Debian",
    "Ogb",
    "convert",
    "debian",
    "from_relbench",
    "ogb",
    "ogbn_mag",
    "read",
    "snap",
]

set_public_module(globals())


def __getattr__(name: str) -> Any:
    # NumPy is for the data sets alone: files of edges need none.
    if name in ("Debian", "debian"):
        from pygsampler.datasets import _debian

        set_public_module({**vars(_debian), "__name__": __name__, "__all__": [name]})
        return getattr(_debian, name)
    raise AttributeError(f"module 'pygsampler.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
