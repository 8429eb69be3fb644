"""``WalkProgram``: programs that return walks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._sampling.pending import GroupLauncher, PendingBatch
from pygsampler.programs._language.reports import Explanation
from pygsampler.programs.program_sampler import ProgramSamplerWithInputs
from pygsampler.walks.random_walk import RandomWalk
from pygsampler.walks.result import Walks

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.plan import Plan

__all__ = ["WalkProgram"]


def __dir__() -> list[str]:
    return sorted(__all__)


class WalkProgram(ProgramSamplerWithInputs[Walks[Any]]):
    """A sampler of walks, from a program that returns ``A.walk(seeds, length)``.

    It runs as ``RandomWalk(length, direction="in")`` and returns the same batches: a ``Walks``
    whose rows are the walks of the seeds, with -1 behind the last node of a walk that found no
    edge. If other operators use the list of ``A.walk``, such a walk stays at its node instead.
    ``explain``, ``profile`` and ``tuned`` run the program that returns a list of the walks' nodes;
    the walks are the same.
    """

    def __init__(self, program: Any, length: int) -> None:
        # The program returns the list.
        super().__init__(program)
        self._walk = RandomWalk(length, direction="in", seed=program.seed)

    @property
    def plan(self) -> Plan:
        """The walk's options: immutable, hashable, and picklable."""
        return self._walk.plan

    @property
    def result_kind(self) -> str:
        """``"walks"``."""
        return self._walk.result_kind

    def sampled_graph(self, graph: Graph) -> Graph:
        """Returns the graph by its in-edges, as ``RandomWalk.sampled_graph`` does."""
        return self._walk.sampled_graph(graph)

    def explain(self, graph: Graph, seeds: int = 1024, *, batches: int = 0) -> Explanation:
        """Explains the program of the walks' nodes, as ``Program.explain`` does.

        Parameters
        ----------
        graph, seeds, batches
            The arguments of ``Program.explain``.
        """
        text = super().explain(graph, seeds, batches=batches)
        return Explanation(f"walks of {self._walk!r}\n{text}")

    def launch(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> PendingBatch[Walks[Any]]:
        """Starts walks, as ``RandomWalk.launch`` does.

        Parameters
        ----------
        graph, seeds, epoch, batch, exclude, threads, form, asynchronous
            The arguments of ``RandomWalk.launch``.
        """
        return self._walk.launch(
            graph,
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            form=form,
            asynchronous=asynchronous,
        )

    def group_launcher(
        self, graph: Graph, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        return self._walk.group_launcher(graph, epoch=epoch, form=form)

    def with_gpu_share(self, share: float) -> WalkProgram:
        other = super().with_gpu_share(share)
        other._walk = other._walk.with_gpu_share(share)
        return other

    def _around(self, program: Any) -> WalkProgram:
        return WalkProgram(program, self._walk.length)

    def _many(
        self, graph: Graph, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[Walks[Any]]:
        return self._walk._many(graph, many, epoch, batch, memory)

    def __repr__(self) -> str:
        return repr(self._program)
