"""``StaticOption``: loaders whose batches may have fixed sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._loader.assignable_options import Adjustable
from pygsampler._loader.counted_loader import record_events
from pygsampler._loader.static_layouts import static_layout
from pygsampler.samplers.neighbor import PGSampler
from pygsampler.samplers.neighbor_plan import NEIGHBOR

if TYPE_CHECKING:
    from pygsampler._loader.static_epochs import StaticEpochs
    from pygsampler._loader.static_layouts import StaticLayout
    from pygsampler._loader.stats import EpochStats

__all__ = ["StaticOption"]


class StaticOption(Adjustable):
    """A loader that may have ``static=True``, for which it knows how a pass begins."""

    graph: Any
    _passes: StaticEpochs | None

    @property
    def static(self) -> bool:
        """Whether all batches are one, of fixed sizes."""
        return self._passes is not None

    @property
    def capacities(self) -> list[tuple[Any, Any]] | None:
        """How many sources and edges each block of static batches may have; None before that is
        known. Of a ``HeteroGraph`` by type."""
        known = None if self._passes is None else self._passes.capacities
        return None if known is None else [(src, edges) for src, edges in known]

    @property
    def device(self) -> str:
        """Where the batches are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        device: str = self.graph.device
        return device

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """As ``ResumableLoader.load_state_dict``; static batches begin with an epoch."""
        if self.static and isinstance(state, Mapping) and state.get("start"):
            raise ValueError(
                f"state: expected one between epochs with static=True, got one after "
                f"{state['start']} batches"
            )
        super().load_state_dict(state)

    def _form(self, seeds: int | Mapping[str, int], excludes: bool = False) -> StaticLayout:
        """What batches of at most so many seeds, of a graph with types by type, are, which may
        leave edges out."""
        if self.graph.device == "cpu":
            raise ValueError("static: expected a graph on a CUDA device, got one on the CPU")
        sampler: Any = self.sampler
        if not isinstance(sampler, PGSampler):
            raise TypeError(f"static: expected a PGSampler, got {sampler!r}")
        if sampler.mode not in NEIGHBOR:
            raise ValueError(
                f"static: expected a sampler of mode {' or '.join(map(repr, NEIGHBOR))}, got "
                f"{sampler.mode!r}"
            )
        return static_layout(self.graph, sampler, seeds, excludes)

    def _check_static(self, capacities: Any, start: int) -> None:
        """ValueError for options that do not go with ``static``, or without it."""
        if not self.static:
            if capacities is not None:
                raise ValueError("capacities: expected None without static=True")
            return
        if self._shards.deal != "seeds":
            raise ValueError(f"deal: expected 'seeds' with static=True, got {self._shards.deal!r}")
        if start:
            raise ValueError(f"start: expected 0 with static=True, got {start}")

    def _static_pass(self) -> tuple[StaticEpochs, int, EpochStats]:
        """Begins a pass for ``capture``: whose batches, its number, and what counts them."""
        if self._passes is None:
            raise ValueError("loader: expected a loader with static=True, got one without")
        going, meter = self._next_pass()
        # Its batches are not handed over one by one.
        self._pass = None
        index = devices.parse(self.graph.device)
        record_events(meter, index)
        return self._passes, self._begin_static(self._passes, going.epoch, index), meter

    def _begin_static(self, passes: Any, epoch: int, index: int) -> int:
        """Begins a pass whose batches have one memory, and gives its number."""
        raise NotImplementedError
