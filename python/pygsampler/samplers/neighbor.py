"""``PGSampler``: uniform neighbor sampling over L hops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._batch.coo_expansion import CooExpander
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.torch_sources import TensorSource
from pygsampler._graph.graph import Graph
from pygsampler._sampling.device_job import sample_many
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.engine_sampler import (
    EngineSampler,
    HeteroEngineSampler,
    TemporalEngineSampler,
)
from pygsampler._sampling.job import SampleJob
from pygsampler._sampling.pending import GroupLauncher, PendingBatch
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.request import HeteroRequest, SampleRequest, TemporalRequest
from pygsampler._sampling.sampler import Sampler, from_pickle
from pygsampler._sampling.torch_group import TorchLauncher
from pygsampler.samplers.neighbor_plan import (
    NEIGHBOR,
    hetero_plan,
    neighbor_plan,
    options_of_mode,
)
from pygsampler.samplers.temporal import Temporal, as_rule, check_window_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import torch

    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph

__all__ = ["PGSampler"]


def __dir__() -> list[str]:
    return sorted(__all__)


class PGSampler(EngineSampler, Sampler["MiniBatch"]):
    """Samples in-neighbors uniformly, hop by hop, from seeds outwards.

    At each hop every node of the frontier gets ``fanout`` of its in-edges, drawn afresh. The
    sample is a pure function of (graph, options, seed, epoch, batch, seeds): never of threads,
    processes or earlier calls.

    Parameters
    ----------
    fanouts : sequence of int
        In-edges for each node, outermost hop first: ``fanouts[-1]`` is applied to the seeds. -1
        takes all, also with replacement; 0 takes none. For a ``HeteroGraph`` each may be a mapping
        of edge types to int, with all types of the graph unless there is a ``default_fanout``.
    replace : bool
        Draw with replacement: then a node with any in-edge gets exactly ``fanout`` draws.
        Without, a node with at most ``fanout`` in-edges gets all of them.
    prob : str, optional
        The name of an edge array of the graph (``graph.edata``): bool, integers, float32 or
        float64, one finite weight >= 0 for each edge id. A node then draws its edges one after
        another, each by its weight among those that are left (with ``replace``: among all). An edge
        of weight 0 is never drawn: not by fanout -1, and not where a node has fewer edges of
        positive weight than ``fanout``, which then are all taken. docs/guide/weights.md explains
        it.
    mask : str, optional
        The name of an edge array of the same dtypes: edges whose value is 0 are sampled around, as
        if the graph did not have them. At most one of ``prob`` and ``mask``.
    edge_weights : str, optional
        ``"ht"``: ``block.edge_weights`` has a Horvitz-Thompson factor for each edge, so that the
        sum of factor times ``y`` over a node's sampled edges is, in the mean over samples, the sum
        of ``y`` over all its edges that may be drawn. Without replacement a factor is 1 where all
        edges of a node are sampled, else the number of its edges over ``fanout``; with ``prob`` it
        follows from the race for places (docs/guide/weights.md). None: no factors.
    disjoint : bool
        Each seed, also a repeated one, has its own subgraph: subgraphs share neither nodes nor
        draws, and ``MiniBatch.subgraph_ids`` has the subgraph of each node.
    frontier : str
        ``"all"``, as DGL has it: each hop expands every node reached so far. ``"new"``, as PyG
        has it: a node is expanded once, at the hop after the one that reached it first.
    temporal : str or Temporal, optional
        Samples edges that are not later than ``seed_time``, which ``sample`` then takes. A name is
        the name of the edge or node array that has the times; ``pygsampler.samplers.Temporal`` has
        the strategy, a window, and whose time bounds the next hop. Neighborhoods are then disjoint.
    default_fanout : int, optional
        The fanout of the edge types that a mapping of ``fanouts`` does not have.
    mode : str
        The way in which a GPU samples; the batches are equal. ``"auto"`` is the fastest known for
        the shape. ``"persistent"``: all hops in one launch, in phases that all blocks of threads go
        through together; the CPU samples as in ``"auto"``. Other modes are there for comparison,
        and docs/research/modes.md has them: one of them samples other batches, and none goes with
        ``frontier="new"``, ``disjoint=True``, ``prob``, ``mask`` or ``edge_weights``.
    mode_options : mapping, optional
        Options of a mode for comparison, by name.
    map_bytes : int, optional
        Bytes that a batch in flight may use to number its nodes. A map of 4 bytes for each node of
        the graph (8 for batches of ``2**24`` nodes and more) is faster; where it needs more than
        this bound, tables that grow with the batch replace it. It has no effect on a GPU.
    seed : int, optional
        From ``-2**63`` to ``2**64 - 1``, taken modulo ``2**64``. Without a seed it is
        ``torch.initial_seed()`` when torch has been imported, else it comes from the operating
        system.

    Notes
    -----
    Random numbers are counter-based (Philox4x32-10 for each row, SplitMix64 for each draw), and
    sampling without replacement is Robert Floyd's algorithm, so that a row costs O(fanout) at
    any degree; docs/developer/draws.md has the rules. The hops of a batch follow the paper
    "PGSampler: Accelerating GPU-based Graph Sampling in GNN Systems via Workload Fusion", sections
    III-B and III-C; ``frontier`` is DGL's or PyG's.

    For a ``HeteroGraph``, ``seeds`` are a mapping of node types to ids, ``exclude`` is one of edge
    types to edge ids, ``prob`` and ``mask`` count for the types that have an array of that name,
    and ``sample`` gives a ``MiniBatch``.

    One sampler may be used from many threads at once. Pickling keeps options, seed, epoch and the
    number of the next batch.
    """

    __slots__ = (
        "__weakref__",
        "_given",
        "_numbers",
        "_rule",
        "_timed",
        "_typed",
    )

    _takes_types = True

    def __init__(
        self,
        fanouts: Sequence[int | Mapping[Any, int]],
        *,
        replace: bool = False,
        prob: str | None = None,
        mask: str | None = None,
        edge_weights: str | None = None,
        disjoint: bool = False,
        frontier: str = "all",
        temporal: str | Temporal | None = None,
        default_fanout: int | None = None,
        mode: str = "auto",
        mode_options: Mapping[str, Any] | None = None,
        map_bytes: int | None = None,
        seed: int | None = None,
    ) -> None:
        Sampler.__init__(self, seed)
        self._rule = as_rule(temporal)
        plan = neighbor_plan(
            {
                "fanouts": fanouts,
                "replace": replace,
                "prob": prob,
                "mask": mask,
                "edge_weights": edge_weights,
                "disjoint": disjoint,
                "frontier": frontier,
                "temporal": self._rule,
                "default_fanout": default_fanout,
                "mode": mode,
                "mode_options": mode_options,
                "map_bytes": map_bytes,
            }
        )
        EngineSampler.__init__(self, plan, self._numbers.seed)
        # Types are shown as they were given; the plan has names of them.
        self._given: tuple[Any, ...] | None = None
        if plan["family"] == "typed":
            self._given = tuple(dict(n) if isinstance(n, Mapping) else n for n in fanouts)
        self._typed: HeteroEngineSampler | None = None
        self._timed = (
            TemporalEngineSampler(plan, self.seed) if plan["family"] == "temporal" else None
        )

    @property
    def fanouts(self) -> tuple[int, ...]:
        """In-edges for each node, outermost hop first."""
        fanouts: tuple[int, ...] = self._plan["fanouts"]
        return fanouts

    @property
    def replace(self) -> bool:
        """True if edges are drawn with replacement."""
        value: bool = self._plan["replace"]
        return value

    @property
    def frontier(self) -> str:
        """``"all"`` or ``"new"``: which nodes a hop expands."""
        value: str = self._plan["frontier"]
        return value

    @property
    def disjoint(self) -> bool:
        """True if each seed has a tree of its own."""
        value: bool = self._plan.get("disjoint", True)
        return value

    @property
    def temporal(self) -> Temporal | None:
        """The rule that says which edges may be sampled when; None: all edges at any time."""
        return self._rule

    @property
    def default_fanout(self) -> int | None:
        """The fanout of edge types that a mapping of ``fanouts`` does not have, or None."""
        value: int | None = self._plan.get("default_fanout")
        return value

    @property
    def mode(self) -> str:
        """``"auto"``, ``"persistent"``, or a mode for comparison (docs/research/modes.md)."""
        if self._plan["family"] in ("typed", "temporal"):
            return "auto"
        mode: str = self._plan.get("mode", self._plan["family"])
        return mode

    @property
    def map_bytes(self) -> int | None:
        """The argument ``map_bytes``: the bound in bytes of the map that numbers nodes."""
        value: int | None = self._plan.get("map_bytes")
        return value

    @property
    def prob(self) -> str | None:
        """The name of the edge array that has the weights; None: edges are equal."""
        value: str | None = self._plan.get("prob")
        return value

    @property
    def mask(self) -> str | None:
        """The name of the edge array that says which edges there are; None: all."""
        value: str | None = self._plan["mask"]
        return value

    @property
    def edge_weights(self) -> str | None:
        """``"ht"``, or None: blocks have no factors."""
        value: str | None = self._plan["edge_weights"]
        return value

    @property
    def mode_options(self) -> dict[str, Any] | None:
        """The options of the mode that have not their default values; None where there are none."""
        options = {
            name: self._plan[name]
            for name, usual in options_of_mode(self.mode).items()
            if self._plan.get(name, usual) != usual
        }
        return options or None

    @property
    def plan(self) -> Plan:
        """The options: immutable, hashable, and picklable."""
        return self._plan

    @property
    def edge_array(self) -> tuple[str, str] | None:
        """``"prob"`` or ``"mask"``, and the name of that edge array; None: edges are equal."""
        return self._plan.edge_array

    def sampled_graph(self, graph: Any) -> Any:
        """The graph of the edges that have weights, or that the mask leaves."""
        return self._plan.sampled_graph(graph)

    def _check_span(self, graph: Any) -> None:
        check_window_of(graph, self._rule)

    def _hetero_sampler(self) -> HeteroEngineSampler:
        """The sampler of heterogeneous graphs."""
        made = self._typed
        if made is None:
            if self.mode not in NEIGHBOR:
                raise ValueError(
                    f"mode: expected one of {NEIGHBOR} for a heterogeneous graph, got {self.mode!r}"
                )
            plan = self._plan
            if plan["family"] != "typed":
                plan = hetero_plan(self._arguments())
            made = HeteroEngineSampler(plan, self.seed)
            made._share = self._share
            self._typed = made
        return made

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
        seed_time: Any = None,
    ) -> SampleJob:
        """Starts a batch as ``Sampler.launch`` does; every other way to a batch ends here.

        Parameters
        ----------
        graph, seeds, epoch, batch, exclude, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        seed_time
            The argument of ``sample``.
        """
        self._check_span(graph)
        if self._timed is None and graph._relation is not None:
            if seed_time is not None and self._rule is None:
                raise ValueError(
                    "seed_time: expected None for a sampler without temporal=, got some"
                )
            return dispatch(
                SampleRequest(
                    self,
                    self.sampled_graph(graph),
                    seeds,
                    epoch=epoch,
                    batch=batch,
                    exclude=exclude,
                    threads=threads,
                    form=form,
                    asynchronous=asynchronous,
                )
            )
        how: dict[str, Any] = {
            "epoch": epoch,
            "batch": batch,
            "exclude": exclude,
            "threads": threads,
            "form": form,
            "asynchronous": asynchronous,
        }
        if self._timed is not None and graph._relation is not None:
            return dispatch(TemporalRequest(self._timed, graph, seeds, seed_time, **how))
        sampler = self._hetero_sampler()
        if seed_time is not None and sampler._by_time is None:
            raise ValueError("seed_time: expected None for a sampler without temporal=, got some")
        return dispatch(HeteroRequest(sampler, graph, seeds, seed_time, **how))

    def sample(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
        seed_time: Any = None,
    ) -> MiniBatch:
        """Samples a batch, as ``Sampler.sample`` does; with ``temporal`` it needs ``seed_time``.

        Parameters
        ----------
        seed_time : array of shape [N], or one for all seeds, optional
            Numbers, or dates of ``datetime``, NumPy, pandas, Arrow, or as text
            (docs/guide/temporal.md). The bound of each seed's tree: integers where the graph's
            times are such, else numbers.
        """
        more = {} if seed_time is None else {"seed_time": seed_time}
        job = self._start(graph, seeds, epoch, batch, exclude, threads, asynchronous=False, **more)
        result: MiniBatch = job.result()
        return result

    def submit(
        self,
        graph: Graph,
        seeds: Any,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        exclude: Any = None,
        threads: int = 0,
        seed_time: Any = None,
    ) -> PendingBatch[MiniBatch]:
        """Submits a batch as ``Sampler.submit`` does.

        Parameters
        ----------
        graph, seeds, epoch, batch, exclude, threads
            The arguments of ``Sampler.submit``.
        seed_time
            The argument of ``sample``.
        """
        more = {} if seed_time is None else {"seed_time": seed_time}
        return self._start(graph, seeds, epoch, batch, exclude, threads, asynchronous=True, **more)

    def sample_many(
        self,
        graph: Graph,
        seeds: Iterable[Any],
        *,
        epoch: int | None = None,
        batch: int | None = None,
        memory: int | None = None,
        seed_time: Any = None,
    ) -> list[MiniBatch]:
        """Samples a batch for each set of seeds, as ``Sampler.sample_many`` does.

        Parameters
        ----------
        seed_time : sequence of arrays, or one time for all, optional
            For each set of seeds what ``sample`` takes with them. With ``temporal`` it is needed,
            and on a GPU each batch is a launch then.
        """
        return self._sample_sets(graph, seeds, epoch, batch, memory, seed_time)

    def group_launcher(
        self, graph: Graph, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        """Returns a starter of groups of batches of an ``epoch``; on a GPU, for ``form="torch"``.

        Parameters
        ----------
        graph, epoch, form
            As for ``Sampler.group_launcher``.
        """
        if graph._relation is None or self._timed is not None:
            return None
        return TorchLauncher.for_sampler(self, PGSampler, graph, epoch, form)

    def with_seed(self, seed: int | None) -> PGSampler:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        return self._with(seed=seed)

    def with_gpu_share(self, share: float) -> Sampler[MiniBatch]:
        """Returns a sampler that uses at most ``share`` of a GPU, if its mode has such a bound."""
        if type(self) is not PGSampler:
            return super().with_gpu_share(share)
        return self._bounded(self._with(), share)

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> MiniBatch:
        return MiniBatch._from_memory(memory, epoch, batch)

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> MiniBatch:
        return MiniBatch._of_source(TensorSource(region, words, graph._device), epoch, batch)

    def _part_view(
        self, graph: Graph, region: torch.Tensor, requested_kinds: set[int]
    ) -> Callable[[Sequence[int], int, int, int], MiniBatch]:
        device = graph._device
        edges = CooExpander(region, device, region.element_size() == 8, requested_kinds)

        def view(words: Sequence[int], first: int, epoch: int, batch: int) -> MiniBatch:
            # A source of its own for each batch, since writes to a batch are counted separately.
            about = region.data, words, device, first, edges, edges.add(words, first)
            return MiniBatch._of_source(TensorSource(*about), epoch, batch)

        return view

    def _many(
        self, graph: Any, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[MiniBatch]:
        if graph._device >= 0 and graph._relation is not None and self._timed is None:
            return sample_many(self.sampled_graph(graph), self, many, epoch, batch, memory)
        return super()._many(graph, many, epoch, batch, memory)

    def _with(self, **options: Any) -> PGSampler:
        """Another sampler, with some options of this one replaced, that begins at batch 0."""
        return PGSampler(**{**self._arguments(), "seed": self.seed, **options})

    def _arguments(self) -> dict[str, Any]:
        """Returns the arguments of the constructor, without the seed."""
        given = {name: getattr(self, name) for name in ("fanouts", *_USUAL)}
        if self._given is not None:
            given["fanouts"] = self._given
        return given

    def __repr__(self) -> str:
        """Returns the call that makes this sampler, without arguments that have their default."""
        given = self._arguments()
        options = [f"{name}={given[name]!r}" for name in _USUAL if given[name] != _USUAL[name]]
        fanouts = str(list(given["fanouts"]))
        return f"PGSampler({', '.join([fanouts, *options])}, seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        return from_pickle, (
            PGSampler,
            self._arguments(),
            self.seed,
            self.epoch,
            self._numbers.next,
        )


_USUAL: dict[str, Any] = dict(PGSampler.__init__.__kwdefaults__ or {})
_USUAL.pop("seed")


def _restore(*state: Any) -> PGSampler:
    """Restores a sampler from a pickle of an earlier version, which names this function."""
    return from_pickle(PGSampler, *state)
