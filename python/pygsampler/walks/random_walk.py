"""``RandomWalk``: walks over a graph, and their named forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph
from pygsampler._sampling.device_job import sample_many
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.pending import GroupLauncher, PendingBatch
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import SampleRequest
from pygsampler._sampling.sampler import Sampler
from pygsampler._sampling.torch_group import TorchLauncher
from pygsampler.walks.result import TorchWalks, Walks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from pygsampler._arrays.array import Array
    from pygsampler._engine.memory import Memory

__all__ = ["DeepWalk", "Node2Vec", "PersonalizedPageRank", "RandomWalk"]


def __dir__() -> list[str]:
    return sorted(__all__)


R = TypeVar("R", bound="RandomWalk")


class RandomWalk(EngineSampler, Sampler["Walks"]):
    """Walks from seeds along edges: uniform or by weight, of first or second order.

    Each walk takes one edge after another of the vertex that it is at, drawn afresh. What it draws
    belongs to the walk (its place in the call) and the step, never to the vertex: walks that meet
    are independent. The walks are a pure function of (graph, options, seed, epoch, batch, seeds),
    the same bytes on the CPU and on a GPU.

    Parameters
    ----------
    length : int
        Steps of a walk at most, 0 to 2**20; a walk has one vertex more.
    prob : str, optional
        The name of an edge array of the graph (``graph.edata``) with finite weights >= 0, one for
        each edge id: an edge is taken by its weight. One of weight 0 never is, and counts as none.
    stop : float
        The chance, in [0, 1], that a walk ends before a step, the first included: personalised
        PageRank's walks.
    restart : float
        The chance, in [0, 1], that a walk goes back to its seed before a step and takes its edge
        from there. Where there is no edge, a walk with restarts goes back too, unless it is there.
    p, q : float
        node2vec's return and in-out parameters, above 0. Having come from t to v, an edge to x has
        its weight times 1/p where x is t, 1 where an edge leads from x to t, and 1/q else. Rows are
        searched in the order of ids then, so walks with p = q = 1 are those without.
    metapath : sequence of int, optional
        The types of edges to take, step by step, again from the first on for longer walks: up to
        64. A walk ends where its vertex has no edge of the step's type.
    edge_types : str, optional
        With ``metapath``, the name of the edge array that has the types, integers from 0 on.
    direction : str
        ``"out"``: along the edges. ``"in"``: against them, as sampling of neighbours goes.
    walks_per_seed : int
        How many walks begin at each seed.
    count_jumps : bool
        Going back to the seed is a step of its own, whose edge id is -1.
    edge_ids : bool
        Make ``Walks.edge_ids`` at once. Without, they are made when they are first asked for.
    layout : str
        On a GPU: ``"packed"`` keeps 16 bytes for each edge there (32 with ``prob``) beside the
        graph, so that a step is one read; ``"csr"`` keeps 4 for each vertex; ``"auto"`` takes the
        former where that is at most half of the memory that is free. On the CPU ``"packed"`` keeps
        16 bytes an edge, made by the first call, for walks without ``prob``, stops, restarts,
        metapath, ``p`` and ``q``; ``"auto"``, and all other walks, are ``"csr"``. The walks are
        the same.
    execution : str
        On a GPU: ``"sample"`` walks a walk a thread; ``"transit"`` groups walks, step by step, by
        the vertex that they are at, which needs a ``layout`` other than ``"packed"``
        (docs/research/nextdoor.md); ``"auto"`` is ``"sample"``. The walks are the same.
    seed : int, optional
        As for ``PGSampler``.

    Notes
    -----
    A walk along out-edges needs the graph by its out-edges, which is made at the first use, on all
    cores, and kept with the graph (docs/guide/walks.md). With ``p`` and ``q`` edges are proposed by
    weight and accepted with a chance, for up to 64 tries; what is open then is drawn exactly.
    Sources: DeepWalk (Perozzi et al., 2014), node2vec (Grover and Leskovec, 2016, section 3.2);
    executions by sample and by transit are NextDoor's (Jangda et al., 2021, section 5).
    docs/concepts/randomness.md has the rules.

    One sampler may be used from many threads at once.
    """

    __slots__ = ("__weakref__", "_numbers")

    # What a named form calls a plan's fields, for errors.
    _called: ClassVar[Mapping[str, str]] = {}
    # Attributes beside the plan that samplers made of this one, and its pickles, have too.
    _beside: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        length: int,
        *,
        prob: str | None = None,
        stop: float = 0.0,
        restart: float = 0.0,
        p: float = 1.0,
        q: float = 1.0,
        metapath: Sequence[int] | None = None,
        edge_types: str | None = None,
        direction: str = "out",
        walks_per_seed: int = 1,
        count_jumps: bool = False,
        edge_ids: bool = False,
        layout: str = "auto",
        execution: str = "auto",
        seed: int | None = None,
    ) -> None:
        self._begin(
            seed,
            length=length,
            prob=prob,
            stop=stop,
            restart=restart,
            p=p,
            q=q,
            metapath=metapath,
            edge_types=edge_types,
            direction=direction,
            walks_per_seed=walks_per_seed,
            count_jumps=count_jumps,
            edge_ids=edge_ids,
            layout=layout,
            execution=execution,
        )

    def _begin(self, seed: int | None, **fields: Any) -> None:
        """Takes a plan's fields: those of the walks, and those that a named form adds."""
        Sampler.__init__(self, seed)
        try:
            plan = Plan(family="walk", **fields)
        except (TypeError, ValueError) as error:
            field, _, rest = str(error).partition(":")
            raise type(error)(f"{self._called.get(field, field)}:{rest}") from None
        EngineSampler.__init__(self, plan, self._numbers.seed)

    @property
    def plan(self) -> Plan:
        """The options: immutable, hashable, and picklable."""
        return self._plan

    @property
    def length(self) -> int:
        """Steps of a walk at most."""
        value: int = self._plan["length"]
        return value

    @property
    def walks_per_seed(self) -> int:
        """How many walks begin at each seed."""
        value: int = self._plan["walks_per_seed"] or 1
        return value

    @property
    def drawn_by(self) -> tuple[str, str] | None:
        """``"prob"`` and the name of the weights; None: edges are equal."""
        return self._plan.drawn_by

    @property
    def result(self) -> str:
        """``"walks"``."""
        return "walks"

    def graph_of(self, graph: Graph) -> Graph:
        """The graph by the edges that walks take, made once and kept with ``graph``."""
        plan = self._plan
        second = (plan["p"], plan["q"]) != (1, 1)
        return graph._walked(plan["direction"], plan["prob"], plan["edge_types"], second=second)

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
    ) -> PendingBatch[Any]:
        """As ``Sampler.launch``; NotImplementedError for ``exclude``."""
        if exclude is not None:
            raise NotImplementedError(
                f"exclude: expected None for walks, got {describe(exclude)}; weights of 0 "
                "(prob=) leave edges out"
            )
        return dispatch(
            SampleRequest(
                self,
                self.graph_of(graph),
                seeds,
                epoch=epoch,
                batch=batch,
                threads=threads,
                into=into,
                asynchronous=beside,
            )
        )

    def launcher(
        self, graph: Graph, *, epoch: int, into: str | None = None
    ) -> GroupLauncher | None:
        """As ``Sampler.launcher``: on a GPU, for results in torch's memory."""
        return TorchLauncher.of(self, RandomWalk, graph, epoch, into)

    def within(self, share: float) -> RandomWalk:
        """As ``Sampler.within``."""
        return self._bounded(self.with_seed(self.seed), share)

    def with_seed(self: R, seed: int | None) -> R:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        other = object.__new__(type(self))
        other._begin(seed, **self._fields())
        for name in self._beside:
            setattr(other, name, getattr(self, name))
        return other

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> Walks:
        def again(roots: Array) -> Walks:
            job = dispatch(
                SampleRequest(self._with_edges(), graph, roots, epoch=epoch, batch=batch)
            )
            walks: Walks = job.result()
            return walks

        numbers = epoch, batch, self.seed
        return Walks._of(memory, *numbers, again if self._repeats() else None)

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> TorchWalks:
        def again(roots: torch.Tensor) -> TorchWalks:
            if not self._repeats():
                raise ValueError("edge_ids: expected a sampler with edge_ids=True, got one without")
            how: dict[str, Any] = {"epoch": epoch, "batch": batch, "into": "torch"}
            job = dispatch(SampleRequest(self._with_edges(), graph, roots, **how))
            walks: TorchWalks = job.result()
            return walks

        return TorchWalks._of_region(region, words, epoch, batch, self.seed, again)

    def _repeats(self) -> bool:
        """Whether walks follow from their roots alone."""
        return self._plan["roots"] is None

    def _with_edges(self) -> RandomWalk:
        """The sampler that walks once more from each walk's root, and notes the edges."""
        other = object.__new__(RandomWalk)
        other._begin(self.seed, **{**self._fields(), "edge_ids": True, "walks_per_seed": 1})
        return other

    def _many(self, graph: Graph, many: list[Any], epoch: int, batch: int) -> list[Any]:
        if graph._device >= 0 and isinstance(graph, Graph):
            return sample_many(self.graph_of(graph), self, many, epoch, batch)
        return super()._many(graph, many, epoch, batch)

    def __repr__(self) -> str:
        """The plan's fields, but for what is as by default."""
        usual = {**_USUAL, **(type(self).__init__.__kwdefaults__ or {})}
        fields = self._fields()
        length = fields.pop("length")
        options = [
            f"{name}={value!r}"
            for name, value in fields.items()
            if value is not None and value != usual.get(name)
        ]
        given = ", ".join([f"length={length}", *options])
        return f"{type(self).__name__}({given}, seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        beside = {name: getattr(self, name) for name in self._beside}
        numbers = self.seed, self.epoch, self._numbers.next
        return _restored, (type(self), self._fields(), *numbers, beside)


_USUAL: dict[str, Any] = dict(RandomWalk.__init__.__kwdefaults__ or {})


def _restored(
    kind: type[R],
    fields: dict[str, Any],
    seed: int,
    epoch: int,
    number: int,
    beside: dict[str, Any],
) -> R:
    sampler = object.__new__(kind)
    sampler._begin(seed, **fields)
    sampler._numbers.go_on(epoch, number)
    for name, value in beside.items():
        setattr(sampler, name, value)
    return sampler


class DeepWalk(RandomWalk):
    """Uniform walks, or by weight (Perozzi et al., 2014): ``RandomWalk(length, prob=)``.

    Parameters
    ----------
    length : int
        Steps of a walk; the paper's 40 vertices are 39 steps.
    walks_per_seed : int
        The paper has 80.
    prob, direction, edge_ids, layout, seed
        As for ``RandomWalk``.
    """

    __slots__ = ()

    def __init__(
        self,
        length: int = 79,
        *,
        walks_per_seed: int = 10,
        prob: str | None = None,
        direction: str = "out",
        edge_ids: bool = False,
        layout: str = "auto",
        seed: int | None = None,
    ) -> None:
        super().__init__(
            length,
            walks_per_seed=walks_per_seed,
            prob=prob,
            direction=direction,
            edge_ids=edge_ids,
            layout=layout,
            seed=seed,
        )


class Node2Vec(RandomWalk):
    """node2vec's walks (Grover and Leskovec, 2016): ``RandomWalk(length, p=, q=)``.

    Parameters
    ----------
    length : int
        Steps of a walk; the authors' code counts vertices, one more.
    p, q : float
        Return and in-out; the paper searches {0.25, 0.5, 1, 2, 4}.
    walks_per_seed : int
        The paper has 10.
    prob, direction, edge_ids, layout, seed
        As for ``RandomWalk``.
    """

    __slots__ = ()

    def __init__(
        self,
        length: int = 79,
        *,
        p: float = 1.0,
        q: float = 1.0,
        walks_per_seed: int = 10,
        prob: str | None = None,
        direction: str = "out",
        edge_ids: bool = False,
        layout: str = "auto",
        seed: int | None = None,
    ) -> None:
        super().__init__(
            length,
            p=p,
            q=q,
            walks_per_seed=walks_per_seed,
            prob=prob,
            direction=direction,
            edge_ids=edge_ids,
            layout=layout,
            seed=seed,
        )


class PersonalizedPageRank(RandomWalk):
    """Walks that end with a chance before each step: their ends are drawn by personalised PageRank.

    Parameters
    ----------
    stop : float
        The chance, PageRank's teleport.
    walks_per_seed : int
        More give finer estimates.
    length : int
        Walks are cut after so many steps; ``(1 - stop) ** length`` of them are.
    prob, direction, edge_ids, layout, seed
        As for ``RandomWalk``.
    """

    __slots__ = ()

    def __init__(
        self,
        stop: float = 0.15,
        *,
        walks_per_seed: int = 1,
        length: int = 80,
        prob: str | None = None,
        direction: str = "out",
        edge_ids: bool = False,
        layout: str = "auto",
        seed: int | None = None,
    ) -> None:
        super().__init__(
            length,
            stop=stop,
            walks_per_seed=walks_per_seed,
            prob=prob,
            direction=direction,
            edge_ids=edge_ids,
            layout=layout,
            seed=seed,
        )
