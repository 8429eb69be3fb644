"""``RandomWalk``: walks over a graph, and functions that return the walks of papers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler._sampling.device_job import sample_many
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.pending import GroupLauncher, PendingBatch
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import SampleRequest
from pygsampler._sampling.sampler import Sampler
from pygsampler._sampling.torch_group import TorchLauncher
from pygsampler.walks.result import Walks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from typing_extensions import Unpack

    from pygsampler._arrays.array import Array
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.schema import EdgeType

__all__ = ["DeepWalk", "MultiRW", "Node2Vec", "PersonalizedPageRank", "RandomWalk"]


def __dir__() -> list[str]:
    return sorted(__all__)


R = TypeVar("R", bound="RandomWalk")

# Options of a plan that change the speed of walks on some devices, and never the walks.
MODE_OPTIONS = ("layout", "execution")


class RandomWalk(EngineSampler, Sampler["Walks[Array]"]):
    """Walks from seeds along edges: uniform or by weight, of first or second order.

    At each step a walk takes an edge of its node, drawn afresh. A draw belongs to the walk (its
    place in the call) and the step, never to the node: walks that meet are independent. The walks
    are a pure function of (graph, options, seed, epoch, batch, seeds), the same bytes on the CPU
    and on a GPU.

    Parameters
    ----------
    length : int
        Steps of a walk at most, 0 to 2**20; a walk has one node more.
    prob : str, optional
        The name of an edge array of the graph (``graph.edata``) with finite weights >= 0, one for
        each edge id: an edge is taken by its weight. An edge of weight 0 is never taken, as if it
        did not exist.
    stop : float
        The chance, in [0, 1], that a walk ends before a step, the first included: personalised
        PageRank's walks.
    restart : float
        The chance, in [0, 1], that a walk goes back to its seed before a step and takes its edge
        from there. A walk with restarts also goes back if there is no edge, unless it is at its
        seed.
    p, q : float
        node2vec's return and in-out parameters, above 0. For a walk that came from t to v, an edge
        to x has its weight times 1/p if x is t, 1 if an edge leads from x to t, and 1/q else. Rows
        are then searched in the order of ids; walks with p = q = 1 are equal to walks without p and
        q.
    num_roots : int, optional
        Frontier sampling, 1 to 4096: a walk is at so many nodes at once, and ``sample`` takes the
        roots of one walk after another. A step takes one of all edges that leave the walk's
        nodes, each as likely as any other, and the node that it leaves moves along it.
        ``Walks.nodes`` has where each step arrived, after the first root, and ``Walks.slots`` which
        of the roots stepped. It goes with ``direction``, ``edge_ids`` and ``mode_options``.
    metapath : sequence of int, or of edge types, optional
        The types of edges to take, step by step, again from the first on for longer walks: up to
        64. A walk ends where its node has no edge of the step's type. Integers are for a
        homogeneous graph with ``edge_types``; edge types, as ``MetaPathWalk`` takes them, for a
        heterogeneous graph, without ``restart``, ``p``, ``q``, ``num_roots`` and ``count_jumps``.
    edge_types : str, optional
        With integers in ``metapath``, the name of the edge array that has the types, from 0 on.
    direction : str
        ``"out"``: along the edges. ``"in"``: against them, as neighbor sampling goes.
    walks_per_seed : int
        The number of walks that begin at each seed.
    count_jumps : bool
        Going back to the seed is a separate step, whose edge id is -1.
    edge_ids : bool
        Compute ``Walks.edge_ids`` at once. By default they are computed when they are first read;
        walks along edge types have none then.
    mode_options : mapping, optional
        Options that change the speed, and never the walks. ``layout``: on a GPU ``"packed"`` keeps
        16 bytes per edge with the graph (32 with ``prob``), and a step is one read; ``"csr"`` keeps
        4 bytes per node; ``"auto"`` takes the former if half of the free memory has room for it. On
        the CPU ``"packed"`` keeps 16 bytes per edge, built by the first call, for walks without
        ``prob``, stops, restarts, metapath, ``p`` and ``q``; ``"auto"``, and all other walks, are
        ``"csr"``. ``execution``: on a GPU ``"sample"``, which is ``"auto"``, gives each walk a
        thread; the engine has others for comparison (docs/research/modes.md).
    seed : int, optional
        As for ``PGSampler``.

    Notes
    -----
    A walk along out-edges needs the graph by its out-edges, which is built at the first use, on all
    cores, and stored with the graph (docs/guide/walks.md). With ``p`` and ``q`` edges are proposed
    by weight and accepted with a chance, for up to 64 tries; what is open then is drawn exactly.
    Sources: DeepWalk (Perozzi et al., 2014), node2vec (Grover and Leskovec, 2016, section 3.2);
    the execution by sample is one of NextDoor's (Jangda et al., 2021, section 5).
    docs/developer/walk-draws.md has the rules.

    One sampler may be used from many threads at once.
    """

    __slots__ = ("__weakref__", "_numbers")

    # The arguments that set fields of a plan with other names, for errors.
    _called: ClassVar[Mapping[str, str]] = {
        "roots": "num_roots",
        "layout": "mode_options['layout']",
        "execution": "mode_options['execution']",
    }
    # Attributes beside the plan that samplers made of this one, and its pickles, have too.
    _beside: ClassVar[tuple[str, ...]] = ()
    # The class of walks along edge types, whose module imports this one.
    _hetero: ClassVar[type[RandomWalk]]

    def __new__(
        cls, *arguments: Any, metapath: Any = None, edge_types: Any = None, **options: Any
    ) -> Any:
        """Returns an object of the class for the kind of graph that ``metapath`` is of."""
        hetero = cls is RandomWalk and edge_types is None and isinstance(metapath, (list, tuple))
        if hetero and not all(isinstance(kind, int) for kind in metapath):
            cls = cls._hetero
        return object.__new__(cls)

    def __init__(
        self,
        length: int,
        *,
        prob: str | None = None,
        stop: float = 0.0,
        restart: float = 0.0,
        p: float = 1.0,
        q: float = 1.0,
        num_roots: int | None = None,
        metapath: Sequence[int] | Sequence[EdgeType | str] | None = None,
        edge_types: str | None = None,
        direction: str = "out",
        walks_per_seed: int = 1,
        count_jumps: bool = False,
        edge_ids: bool = False,
        mode_options: Mapping[str, str] | None = None,
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
            roots=num_roots,
            metapath=metapath,
            edge_types=edge_types,
            direction=direction,
            walks_per_seed=walks_per_seed,
            count_jumps=count_jumps,
            edge_ids=edge_ids,
            **mode_fields(mode_options),
        )

    def _begin(self, seed: int | None, **fields: Any) -> None:
        """Takes the fields of a plan."""
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
        """The number of walks that begin at each seed."""
        value: int = self._plan["walks_per_seed"] or 1
        return value

    @property
    def num_roots(self) -> int | None:
        """The number of roots of a walk by frontier sampling; None for other walks."""
        value: int | None = self._plan["roots"]
        return value

    @property
    def edge_array(self) -> tuple[str, str] | None:
        """``"prob"`` and the name of the weights; None: edges are equal."""
        return self._plan.edge_array

    @property
    def result_kind(self) -> str:
        """``"walks"``."""
        return "walks"

    def sampled_graph(self, graph: Graph) -> Graph:
        """Returns the graph by the edges that walks take, which ``graph`` caches."""
        plan = self._plan
        second = (plan["p"], plan["q"]) != (1, 1)
        how = plan["direction"], plan["prob"], plan["edge_types"]
        walked: Graph = graph._source._walked(*how, second=second)
        return walked

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
    ) -> PendingBatch[Any]:
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
                f"exclude: expected None for walks, got {describe(exclude)}; weights of 0 "
                "(prob=) leave edges out"
            )
        return dispatch(
            SampleRequest(
                self,
                self.sampled_graph(graph),
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
        return TorchLauncher.for_sampler(self, RandomWalk, graph, epoch, form)

    def with_gpu_share(self, share: float) -> RandomWalk:
        return self._bounded(self.with_seed(self.seed), share)

    def with_seed(self: R, seed: int | None) -> R:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        other = object.__new__(type(self))
        other._begin(seed, **self._fields())
        for name in self._beside:
            setattr(other, name, getattr(self, name))
        return other

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> Walks[Array]:
        def again(roots: Array) -> Any:
            how: dict[str, Any] = {"epoch": epoch, "batch": batch}
            job = dispatch(SampleRequest(self._with_edges(), graph, roots, **how))
            return job.result().per_step_edges()

        numbers = epoch, batch, self.seed
        return Walks._from_memory(memory, *numbers, again if self._repeats() else None)

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> Any:
        def again(roots: torch.Tensor) -> Any:
            how: dict[str, Any] = {"epoch": epoch, "batch": batch, "form": "torch"}
            job = dispatch(SampleRequest(self._with_edges(), graph, roots, **how))
            return job.result().per_step_edges()

        attributes: dict[str, Any] = {"epoch": epoch, "batch": batch, "seed": self.seed}
        if self._repeats():
            attributes["_again"] = again
        return Walks._of_region(region, words, attributes)

    def _repeats(self) -> bool:
        """True if walks follow from their first nodes alone."""
        return self.num_roots is None

    def _with_edges(self) -> RandomWalk:
        """The sampler that walks once more from each walk's root, and notes the edges."""
        other = object.__new__(RandomWalk)
        other._begin(self.seed, **{**self._fields(), "edge_ids": True, "walks_per_seed": 1})
        return other

    def _many(
        self, graph: Graph, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[Any]:
        if graph._device >= 0 and is_homogeneous(graph):
            return sample_many(self.sampled_graph(graph), self, many, epoch, batch, memory)
        return super()._many(graph, many, epoch, batch, memory)

    def __repr__(self) -> str:
        """Shows the options, but for those that are as by default."""
        usual = {**_USUAL, **(type(self).__init__.__kwdefaults__ or {})}
        fields = self._fields()
        length, roots = fields.pop("length"), fields.pop("roots")
        modes = {name: fields.pop(name) for name in MODE_OPTIONS}
        modes = {name: value for name, value in modes.items() if value != "auto"}
        fields |= {"num_roots": roots, "mode_options": modes or None, **self._shown()}
        options = [
            f"{name}={value!r}"
            for name, value in fields.items()
            if value is not None and value != usual.get(name)
        ]
        text = ", ".join([f"length={length}", *options])
        return f"{type(self).__name__}({text}, seed={self.seed})"

    def _shown(self) -> dict[str, Any]:
        """Returns the options that are shown with other values than the plan has."""
        return {}

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
    attributes: dict[str, Any],
) -> R:
    sampler = object.__new__(kind)
    sampler._begin(seed, **fields)
    sampler._numbers.go_on(epoch, number)
    for name, value in attributes.items():
        setattr(sampler, name, value)
    return sampler


def mode_fields(options: Any, names: Sequence[str] = MODE_OPTIONS) -> dict[str, Any]:
    """Returns the fields of a plan that ``mode_options`` has."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(f"mode_options: expected a mapping, got {describe(options)}")
    for name in options:
        if name not in names:
            expected = " and ".join(map(repr, names))
            raise ValueError(f"mode_options: expected {expected}, got {describe(name)}")
    return dict(options)


class _WalkOptions(TypedDict, total=False):
    """Options of ``RandomWalk`` that the functions below take as well."""

    prob: str | None
    direction: str
    edge_ids: bool
    mode_options: Mapping[str, str] | None
    seed: int | None


def DeepWalk(
    length: int = 79, *, walks_per_seed: int = 10, **options: Unpack[_WalkOptions]
) -> RandomWalk:
    """Returns DeepWalk's walks, uniform or by ``prob``: ``RandomWalk(length, walks_per_seed=)``.

    Source: Perozzi, Al-Rfou and Skiena, KDD 2014, section 4.2; the paper has 80 walks of 40 nodes,
    which are 39 steps.

    Parameters
    ----------
    length, walks_per_seed, options
        As for ``RandomWalk``.
    """
    return RandomWalk(length, walks_per_seed=walks_per_seed, **options)


def Node2Vec(
    length: int = 79,
    *,
    p: float = 1.0,
    q: float = 1.0,
    walks_per_seed: int = 10,
    **options: Unpack[_WalkOptions],
) -> RandomWalk:
    """Returns node2vec's walks: ``RandomWalk(length, p=, q=, walks_per_seed=)``.

    Source: Grover and Leskovec, KDD 2016, section 3.2; the paper has 10 walks of 80 nodes, and
    searches ``p`` and ``q`` in {0.25, 0.5, 1, 2, 4}.

    Parameters
    ----------
    length, p, q, walks_per_seed, options
        As for ``RandomWalk``.
    """
    return RandomWalk(length, p=p, q=q, walks_per_seed=walks_per_seed, **options)


def PersonalizedPageRank(
    stop: float = 0.15,
    *,
    walks_per_seed: int = 1,
    length: int = 80,
    **options: Unpack[_WalkOptions],
) -> RandomWalk:
    """Returns walks whose ends are drawn by personalized PageRank: ``RandomWalk(length, stop=)``.

    ``stop`` is PageRank's teleport, and ``(1 - stop) ** length`` of the walks are cut short.
    Source: Fogaras, Racz, Csalogany and Sarlos, Internet Mathematics 2005, section 2.

    Parameters
    ----------
    stop, walks_per_seed, length, options
        As for ``RandomWalk``.
    """
    return RandomWalk(length, stop=stop, walks_per_seed=walks_per_seed, **options)


def MultiRW(
    roots: int,
    budget: int,
    *,
    direction: str = "out",
    edge_ids: bool = False,
    seed: int | None = None,
) -> RandomWalk:
    """Returns walks of frontier sampling: ``RandomWalk(budget, num_roots=roots)``.

    A root is chosen by its degree; one without edges never is, and where all are such the walk
    ends. GraphSAINT's and NextDoor's multi-dimensional walk. Source: Ribeiro and Towsley, IMC 2010,
    section 5.

    Parameters
    ----------
    roots, budget
        ``num_roots`` and ``length`` of ``RandomWalk``.
    direction, edge_ids, seed
        As for ``RandomWalk``.
    """
    return RandomWalk(budget, num_roots=roots, direction=direction, edge_ids=edge_ids, seed=seed)
