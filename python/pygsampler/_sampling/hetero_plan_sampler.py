"""``HeteroPlanSampler``: base class of samplers with a plan for heterogeneous graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pygsampler._batch.minibatch import MiniBatch
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import is_heterogeneous
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import HeteroEngineSampler
from pygsampler._sampling.request import HeteroRequest
from pygsampler._sampling.sampler import Sampler

if TYPE_CHECKING:
    from pygsampler._sampling.pending import PendingBatch
    from pygsampler._sampling.plan import Plan

S = TypeVar("S", bound="HeteroPlanSampler")


class HeteroPlanSampler(HeteroEngineSampler, Sampler[MiniBatch]):
    """Base class of ``HGTSampler`` and ``LaborSampler``, which bring their plans.

    Parameters
    ----------
    plan : Plan
        The options of the sampler.
    seed : int or None
        See ``PGSampler``.
    """

    __slots__ = ("__weakref__", "_numbers")

    _takes_types = True
    # The end of the error text for a homogeneous graph.
    _instead: ClassVar[str] = ""

    def __init__(self, plan: Plan, seed: int | None) -> None:
        Sampler.__init__(self, seed)
        HeteroEngineSampler.__init__(self, plan, self._numbers.seed)

    @property
    def plan(self) -> Plan:
        """The options: immutable, hashable, and picklable."""
        return self._plan

    def launch(
        self,
        graph: Any,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> PendingBatch[Any]:
        """Implements ``Sampler.launch``; TypeError for a homogeneous graph.

        Parameters
        ----------
        graph, seeds, epoch, batch, exclude, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        """
        if not is_heterogeneous(graph):
            raise TypeError(
                f"graph: expected a heterogeneous graph, got {describe(graph)}{self._instead}"
            )
        return dispatch(
            HeteroRequest(
                self,
                graph,
                seeds,
                epoch=epoch,
                batch=batch,
                exclude=exclude,
                threads=threads,
                form=form,
                asynchronous=asynchronous,
            )
        )

    def with_gpu_share(self: S, share: float) -> S:
        return self._bounded(self.with_seed(self.seed), share)
