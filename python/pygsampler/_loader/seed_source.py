"""``SeedSource``: the seeds of a loader's batches, for all ways in which batches are sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from pygsampler._loader.epoch_state import EpochRun
    from pygsampler._loader.seed_labels import StaticSeedLabels
    from pygsampler._loader.static_links import StaticLinks
    from pygsampler._sampling.static_buffers import EpochSeeds

__all__ = ["EpochDraws", "SeedSource"]


class EpochDraws(NamedTuple):
    """The seeds of the batches of one epoch."""

    draw: Callable[[int], tuple[Any, dict[str, Any]]]
    """Returns the seeds of a step, and the arguments of ``launch`` that go with them."""
    finish: Callable[[Any], Any] | None
    """Returns the loader's batch around a sampled one, step after step; None: it is that one."""


class SeedSource(Protocol):
    """Nodes or edges that a loader iterates over, and all that belongs to each."""

    fills_caches: ClassVar[bool]
    """True if caches of features are filled by sampling epochs, and batches come in groups."""
    excludes: bool
    """True if batches leave edges out."""
    digest: str | None
    """A digest of the weights by which seeds are drawn, if any."""

    def __len__(self) -> int:
        """Number of seeds of an epoch, on all ranks."""
        ...

    def begin(self, run: EpochRun, index: int) -> EpochDraws:
        """Returns the seeds of an epoch, for a device."""
        ...

    def most(self, size: int, graph: Any) -> int | Mapping[str, int]:
        """Returns how many seeds a batch of ``size`` has at most, by type as the graph has them."""
        ...

    def static_links(self, size: int, graph: Any) -> StaticLinks | StaticSeedLabels | None:
        """Returns the memory for the seeds of static batches of ``size``, or None.

        It has the edges, if the seeds are edges, and labels that belong to seeds.
        """
        ...

    def static_seeds(self, run: EpochRun, graph: Any, times: Any, index: int) -> EpochSeeds:
        """Returns the seeds of all batches of an epoch on a GPU; ``times`` are those of edges."""
        ...
