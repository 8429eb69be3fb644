"""``KHop`` and ``LayerSample``: sampling by steps from transits, as NextDoor has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pygsampler._engine.checks import describe
from pygsampler._sampling.device_job import sample_many
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.pending import GroupLauncher
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import SampleRequest
from pygsampler._sampling.sampler import Sampler
from pygsampler._sampling.torch_group import TorchLauncher
from pygsampler.research.step_samples import StepSamples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from pygsampler._arrays.array import Array
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.job import SampleJob

__all__ = ["KHop", "LayerSample"]


def __dir__() -> list[str]:
    return sorted(__all__)


S = TypeVar("S", bound="_StepSampler")


class _StepSampler(EngineSampler, Sampler["StepSamples[Array]"]):
    """Base of ``KHop`` and ``LayerSample``."""

    __slots__ = ("__weakref__", "_numbers")

    def _begin(self, seed: int | None, **fields: Any) -> None:
        Sampler.__init__(self, seed)
        EngineSampler.__init__(self, Plan(family="khop", **fields), self._numbers.seed)

    @property
    def plan(self) -> Plan:
        """The options: immutable, hashable, and picklable."""
        return self._plan

    @property
    def result_kind(self) -> str:
        """``"steps"``."""
        return "steps"

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
    ) -> SampleJob:
        """Starts a batch as ``Sampler.launch`` does.

        Parameters
        ----------
        graph, seeds, epoch, batch, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        exclude
            Not supported: NotImplementedError unless it is None.
        """
        if exclude is not None:
            raise NotImplementedError(
                f"exclude: expected None for {type(self).__name__}, got {describe(exclude)}"
            )
        return dispatch(
            SampleRequest(
                self,
                graph._source,
                seeds,
                epoch=epoch,
                batch=batch,
                threads=threads,
                form=form,
                asynchronous=asynchronous,
            )
        )

    def group_launcher(
        self, graph: Graph, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        return TorchLauncher.for_sampler(self, _StepSampler, graph, epoch, form)

    def with_gpu_share(self: S, share: float) -> S:
        return self._bounded(self.with_seed(self.seed), share)

    def with_seed(self: S, seed: int | None) -> S:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        return _from_fields(type(self), self._fields(), seed)

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> StepSamples[Array]:
        return StepSamples._from_memory(memory, epoch, batch, self.seed)

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> StepSamples[torch.Tensor]:
        return StepSamples._of_region(
            region, words, {"epoch": epoch, "batch": batch, "seed": self.seed}
        )

    def _many(
        self, graph: Graph, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[StepSamples[Array]]:
        if graph._device >= 0:
            return sample_many(graph._source, self, many, epoch, batch, memory)
        return super()._many(graph, many, epoch, batch, memory)

    def __repr__(self) -> str:
        """The plan's fields, but for what is as by default."""
        fields = self._fields()
        name = "fanouts" if fields["fanouts"] is not None else "sizes"
        usual = {"unique": False, "edge_ids": False, "execution": "auto"}
        options = [f"{k}={fields[k]!r}" for k, value in usual.items() if fields[k] != value]
        given = ", ".join([f"{list(fields[name])}", *options])
        return f"{type(self).__name__}({given}, seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._fields(), self.seed, self.epoch, self._numbers.next)


def _from_fields(kind: type[S], fields: dict[str, Any], seed: int | None) -> S:
    sampler = object.__new__(kind)
    sampler._begin(seed, **fields)
    return sampler


def _restored(kind: type[S], fields: dict[str, Any], seed: int, epoch: int, number: int) -> S:
    sampler = _from_fields(kind, fields, seed)
    sampler._numbers.go_on(epoch, number)
    return sampler


def num_edges(plan: Mapping[str, Any], seeds: int) -> int:
    """Returns the number of edges that a plan draws from ``seeds`` nodes."""
    if plan["sizes"] is not None:
        return int(seeds * sum(plan["sizes"]))
    edges, width = 0, seeds
    for fanout in plan["fanouts"]:
        width *= fanout
        edges += width
    return edges


class KHop(_StepSampler):
    """k-hop sampling as NextDoor has it: every node draws, and nothing is deduplicated.

    Each node of step i - 1 draws ``fanouts[i]`` of its in-edges with replacement, uniformly, so
    that a sample has ``fanouts[0]``, then ``fanouts[0] * fanouts[1]`` nodes, and so on, in places
    that are known beforehand. A draw belongs to the sample (its place in the call), the step and
    the slot, never to the node: two samples, or two slots, that meet are independent. The samples
    are a pure function of (graph, options, seed, epoch, batch, seeds), the same bytes on the CPU
    and on a GPU. For blocks to train with, where a node is drawn once, see ``PGSampler``.

    Parameters
    ----------
    fanouts : sequence of int
        Draws of each node, step by step, the first from the seeds: 1 to 16 steps of 1 to 2**20,
        and fewer than 2**31 nodes of a sample in all.
    unique : bool or "transit"
        True: no node occurs twice in a step of a sample, whichever nodes drew it, as in NextDoor.
        An edge to a node that an earlier place of the step has is drawn again; -1 stands where
        all neighbors of a place's node are in the step already. Parallel edges lead to one node,
        and have their chance each. ``"transit"``: the draws of one node are distinct edges, in
        random order, and other nodes may draw the same; -1 stands behind all of them where the
        node has fewer edges. Costs of ``"transit"`` grow with the square of a fanout.
    edge_ids : bool
        Make ``StepSamples.edge_ids``.
    execution : str
        On a GPU: ``"sample"`` draws a slot a thread; ``"transit"`` groups the nodes that draw,
        step by step (docs/research/nextdoor.md); ``"transit_uncached"`` does so without rows in
        shared memory, and ``"transit_plain"`` without classes of nodes, too, to measure what they
        bring; ``"auto"`` is ``"sample"``. The samples are the same. With ``unique=True`` a sample's
        nodes depend on each other, and those that group are refused.
    seed : int, optional
        See ``PGSampler``.

    Raises
    ------
    TypeError, ValueError
        For an option of the wrong type or range.

    Notes
    -----
    Source: NextDoor (Jangda et al., 2021), sections 4 and 6; ``unique`` is of 4.1 and 6.3.
    docs/developer/walk-draws.md has the rules.

    One sampler may be used from many threads at once.
    """

    __slots__ = ()

    def __init__(
        self,
        fanouts: Sequence[int],
        *,
        unique: bool | Literal["transit"] = False,
        edge_ids: bool = False,
        execution: str = "auto",
        seed: int | None = None,
    ) -> None:
        if fanouts is None:
            raise TypeError("fanouts: expected a sequence of int, got None")
        self._begin(seed, fanouts=fanouts, unique=unique, edge_ids=edge_ids, execution=execution)


class LayerSample(_StepSampler):
    """Layer sampling as NextDoor has it: the nodes of a sample's step draw together.

    Step i of a sample draws ``sizes[i]`` edges, uniformly with replacement, from the in-edges of
    all nodes of its step i - 1, put one list behind another: a node that is there twice has
    its edges there twice, and one with more edges is drawn from more often. So a sample grows to
    ``sum(sizes)`` nodes. All are -1 where the list is empty. NextDoor's own program draws for
    each node apart, which is ``KHop``.

    Parameters
    ----------
    sizes : sequence of int
        Nodes of a sample's steps: 1 to 16 steps of 1 to 2**20. NextDoor's evaluation has
        ``[1000, 1000]``.
    unique : bool
        True: no node occurs twice in a step of a sample, as with ``KHop``. An edge to a node that
        an earlier place of the step has is drawn again; -1 stands in all places for which no
        neighbor is left.
    edge_ids, seed
        As for ``KHop``.

    Raises
    ------
    TypeError, ValueError
        For an option of the wrong type or range.

    Notes
    -----
    Source: NextDoor (Jangda et al., 2021), section 3; ``unique`` is of 4.1 and 6.3.
    docs/developer/walk-draws.md has the rules. On a GPU a block has a sample.

    One sampler may be used from many threads at once.
    """

    __slots__ = ()

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        unique: bool = False,
        edge_ids: bool = False,
        seed: int | None = None,
    ) -> None:
        if sizes is None:
            raise TypeError("sizes: expected a sequence of int, got None")
        self._begin(seed, sizes=sizes, unique=unique, edge_ids=edge_ids)
