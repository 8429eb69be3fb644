"""``EngineSampler``: the plan of a sampler, and its handle in the engine; its kinds by graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pygsampler._batch.minibatch import MiniBatch
from pygsampler._engine import library
from pygsampler._engine.handle import EngineHandle
from pygsampler._sampling.batch_counter import signed_seed
from pygsampler._sampling.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.batch_counter import BatchCounter


S = TypeVar("S", bound="EngineSampler")

# The engine takes shares of a GPU in thousandths.
_WHOLE = 1000


class EngineSampler(EngineHandle):
    """A sampler's handle in the engine, and the views of its results.

    The handle is created when it is first needed, and created anew in a forked child, which has
    another engine.

    Parameters
    ----------
    plan : Plan
        The options of the sampler.
    seed : int
        The seed of the sampler.
    """

    __slots__ = ("_plan", "_seed", "_share")

    _close_function: ClassVar[str] = "SamplerClose"

    _plan: Plan
    _seed: int
    # The numbers of batches, as each `Sampler` has them.
    _numbers: BatchCounter
    # The most thousandths of a GPU that a launch takes; 0: no bound.
    _share: int

    def __init__(self, plan: Plan, seed: int) -> None:
        EngineHandle.__init__(self)
        self._plan = plan
        self._seed = seed
        self._share = 0

    def _fields(self) -> dict[str, Any]:
        """Returns the options of the plan, without its family."""
        return {name: value for name, value in self._plan.items() if name != "family"}

    def _handle(self) -> int:
        """The handle in this process's engine."""
        number = self._current()
        if number:
            return number
        with library.handle_lock():
            if not self._current():
                self._release()
                about = self._plan.document, signed_seed(self._seed), self._share
                self._create("SamplerNew", *about)
            return self._number

    def _bounded(self, other: S, share: float) -> S:
        """Returns ``other``, whose launches take at most the part ``share`` of a GPU, above 0 to 1.

        ``other`` is a copy of this sampler that has no handle yet. If no seed was chosen here, none
        counts as chosen there.
        """
        other._share = max(round(share * _WHOLE), 1)
        other._numbers.is_drawn = self._numbers.is_drawn
        return other

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> Any:
        """Returns the result for callers, on memory that the engine has filled."""
        raise NotImplementedError

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> Any:
        """Returns the result for callers, on a tensor on the graph's device that words describe."""
        raise NotImplementedError

    def _part_view(
        self, graph: Graph, region: torch.Tensor, requested_kinds: set[int]
    ) -> Callable[[Sequence[int], int, int, int], Any]:
        """Returns a function that makes the results of batches in one tensor.

        Its arguments are the words of the batch, its first byte in the tensor, epoch, and batch.

        ``requested_kinds`` is what was asked of earlier batches, for samplers that make it for all
        at once.
        """
        width = region.element_size()

        def view(words: Sequence[int], first: int, epoch: int, batch: int) -> Any:
            # So that torch counts writes to a batch apart from those to the others.
            own = region.data[first // width :]
            return self._torch_view(graph, own, words, epoch, batch)

        return view


class TemporalEngineSampler(EngineSampler):
    """A plan of temporal neighbors, and its handle in the engine."""

    __slots__ = ()

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> MiniBatch:
        return MiniBatch._from_memory(memory, epoch, batch)


class HeteroEngineSampler(EngineSampler):
    """A plan for heterogeneous graphs, and its handle in the engine."""

    __slots__ = ()

    @property
    def _by_time(self) -> str | None:
        """The name of the times; None: edges have none."""
        name: str | None = self._plan.get("time")
        return name

    def _rows_of_parts(self) -> Plan | None:
        """The plan by which partitions are asked for rows; None: this one."""
        return None

    def _view(self, graph: Any, memory: Memory, epoch: int, batch: int) -> Any:
        return MiniBatch._from_memory(memory, epoch, batch, schema=graph._schema)
