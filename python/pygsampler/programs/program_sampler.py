"""``ProgramSampler``: base class of samplers that run a program, and their shared methods."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any, TypeVar

from pygsampler._sampling.sampler import Sampler
from pygsampler.programs._language.reports import Explanation, Profile

__all__ = ["ProgramSampler", "ProgramSamplerWithInputs"]


def __dir__() -> list[str]:
    return sorted(__all__)


T_co = TypeVar("T_co", covariant=True)
S = TypeVar("S", bound="ProgramSampler[Any]")


class ProgramSampler(Sampler[T_co]):
    """A sampler whose batches a ``Program`` samples.

    Its seed is the program's. A subclass has ``launch``; if the program samples another graph or
    other seeds than the arguments, ``_graph`` and ``_program_inputs`` return these.

    Parameters
    ----------
    program : Program
        The program.
    """

    def __init__(self, program: Any) -> None:
        # A Program, whose module is above this one.
        self._seeded_as(program)
        self._program = program

    def _graph(self, graph: Any) -> Any:
        """The graph that the program samples."""
        return graph

    def _program_inputs(self, graph: Any, seeds: Any) -> tuple[Any, Any]:
        """The graph and the seeds of a batch that the program samples."""
        return self._graph(graph), seeds

    def _around(self: S, program: Any) -> S:
        """Another sampler around a program of the same function, which counts for itself."""
        other = copy.copy(self)
        ProgramSampler.__init__(other, program)
        return other

    @property
    def _row_names(self) -> tuple[str, ...]:  # type: ignore[override]
        names: tuple[str, ...] = self._program._row_names
        return names

    @property
    def plan(self) -> Hashable:
        """The program's plan: immutable, hashable, and picklable."""
        plan: Hashable = self._program.plan
        return plan

    @property
    def name(self) -> str:
        """The name of the program's function."""
        name: str = self._program.name
        return name

    @property
    def code(self) -> str:
        """The program's text, a line for each operator."""
        code: str = self._program.code
        return code

    @property
    def result_kind(self) -> str:
        """The kind of the program's batches."""
        result: str = self._program.result_kind
        return result

    def with_seed(self: S, seed: int | None) -> S:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        return self._around(self._program.with_seed(seed))

    def with_gpu_share(self: S, share: float) -> S:
        return self._around(self._program.with_gpu_share(share))

    def explain(self, graph: Any, seeds: int = 1024, *, batches: int = 0) -> Explanation:
        """Explains the program on the graph that it samples, as ``Program.explain`` does.

        Parameters
        ----------
        graph : Graph or HeteroGraph
            The graph that ``sample`` takes.
        seeds, batches
            The arguments of ``Program.explain``.
        """
        text: Explanation = self._program.explain(self._graph(graph), seeds, batches=batches)
        return text

    def profile(self, graph: Any, seeds: Any, *, epoch: int = 0, batches: int = 10) -> Profile:
        """Measures batches, as ``Program.profile`` does.

        Parameters
        ----------
        graph, seeds
            The arguments of ``sample``.
        epoch, batches
            The arguments of ``Program.profile``.
        """
        about = self._program_inputs(graph, seeds)
        found: Profile = self._program.profile(*about, epoch=epoch, batches=batches)
        return found

    def tuned(self: S, graph: Any, seeds: Any, *, epoch: int = 0, batches: int = 5) -> S:
        """Returns the same sampler with tuned passes, as ``Program.tuned`` does.

        Parameters
        ----------
        graph, seeds
            The arguments of ``sample``.
        epoch, batches
            The arguments of ``Program.tuned``.
        """
        about = self._program_inputs(graph, seeds)
        return self._around(self._program.tuned(*about, epoch=epoch, batches=batches))


class ProgramSamplerWithInputs(ProgramSampler[T_co]):
    """A program sampler that may read tensors that change from batch to batch."""

    @property
    def version(self) -> int:
        """The number of times that ``update`` has changed the inputs."""
        version: int = self._program.version
        return version

    @property
    def _changes(self) -> bool:
        return bool(self._program._changes)

    @property
    def inputs(self) -> dict[str, Any]:
        """The tensors that it reads, as they are now: float32 copies, by name."""
        inputs: dict[str, Any] = self._program.inputs
        return inputs

    def update(self, **tensors: Any) -> int:
        """Changes inputs from the next batch on, as ``Program.update``; returns the version."""
        version: int = self._program.update(**tensors)
        return version
