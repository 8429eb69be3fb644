"""``WalkProgram``: programs that return walks."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pygsampler._sampling.base import Launcher, Pending, Sampler
from pygsampler.random_walk import RandomWalk
from pygsampler.walks import Walks

if TYPE_CHECKING:
    from pygsampler._sampling.plan import Plan
    from pygsampler.graph import Graph

__all__ = ["WalkProgram"]


class WalkProgram(Sampler[Walks]):
    """A sampler of walks, which a program makes that returns ``A.walk(seeds, length)``.

    It runs as ``RandomWalk(length, direction="in")``, whose batches these are: a ``Walks``, of
    which a row is the walk of a seed, with -1 behind the last vertex of one that found no edge.
    Where the list of ``A.walk`` is taken by other operators such a walk stays where it is instead.
    """

    def __init__(self, program: Any, length: int) -> None:
        # A Program that returns the list, whose module is above this one.
        super().__init__(program.seed)
        self._program = program
        self._walk = RandomWalk(length, direction="in", seed=program.seed)

    @property
    def plan(self) -> Plan:
        """The walk's options: immutable, hashable, and picklable."""
        return self._walk.plan

    @property
    def name(self) -> str:
        """What its function is called."""
        name: str = self._program.name
        return name

    @property
    def code(self) -> str:
        """The program's text, a line for each operator."""
        code: str = self._program.code
        return code

    @property
    def result(self) -> str:
        """``"walks"``."""
        return self._walk.result

    def graph_of(self, graph: Graph) -> Graph:
        """As ``RandomWalk.graph_of``: the graph by its in-edges."""
        return self._walk.graph_of(graph)

    def explain(self, graph: Graph, seeds: int = 1024, *, batches: int = 0) -> str:
        """As ``Program.explain``, of the program that makes a list of the walks' vertices."""
        text: str = self._program.explain(graph, seeds, batches=batches)
        return type(text)(f"walks, made by {self._walk!r}\n{text}")

    def profile(self, graph: Graph, seeds: Any, *, epoch: int = 0, batches: int = 10) -> str:
        """As ``Program.profile``, of the program that makes a list of the walks' vertices."""
        profile: str = self._program.profile(graph, seeds, epoch=epoch, batches=batches)
        return profile

    def launch(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        into: str | None = None,
        beside: bool = False,
    ) -> Pending[Walks]:
        """As ``RandomWalk.launch``."""
        return self._walk.launch(
            graph,
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            into=into,
            beside=beside,
        )

    def launcher(self, graph: Graph, *, epoch: int, into: str | None = None) -> Launcher | None:
        """As ``Sampler.launcher``."""
        return self._walk.launcher(graph, epoch=epoch, into=into)

    def with_seed(self, seed: int | None) -> WalkProgram:
        """Another sampler of this program, with that seed."""
        return WalkProgram(self._program.with_seed(seed), self._walk.length)

    def within(self, share: float) -> WalkProgram:
        """As ``Sampler.within``."""
        other = copy.copy(self)
        other._walk = self._walk.within(share)
        return other

    def _many(self, graph: Graph, many: list[Any], epoch: int, batch: int) -> list[Walks]:
        return self._walk._many(graph, many, epoch, batch)

    def __repr__(self) -> str:
        return repr(self._program)
