"""``LaborSampler``: LABOR on homogeneous and heterogeneous graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._graph.graph import is_heterogeneous
from pygsampler._sampling.hetero_plan_sampler import HeteroPlanSampler
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.sampler import from_pickle
from pygsampler.samplers.layer_wise import labor
from pygsampler.samplers.neighbor_plan import fanouts_by_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._sampling.pending import GroupLauncher, PendingBatch
    from pygsampler.programs import Program


__all__ = ["LaborSampler"]


def __dir__() -> list[str]:
    return sorted(__all__)


_OPTIONS = (
    "importance",
    "exact",
    "layer_dependency",
    "batch_dependency",
    "default_fanout",
    "frontier",
    "prob",
    "mask",
    "edge_weights",
    "map_bytes",
)
# Options without an effect on homogeneous graphs, which a program samples, with their only values.
_HETERO_ONLY = {
    "frontier": ("all", ""),
    "mask": (None, "; prob takes an array of zeros and ones"),
}


class LaborSampler(HeteroPlanSampler):
    """Samples by LABOR: fewer nodes for the same variance, as destinations share random numbers.

    An edge u to v stays where the uniform number of u is at most the chance of the edge. A hop has
    one number for each node, which all destinations share, and in a heterogeneous graph all
    relations that lead from the node: a source that one destination samples is likely sampled by
    another. Chances are computed per relation, from the edges of the nodes that the hop expands.
    Without weights a chance is min(1, fanout / d), with d edges of the relation into v. With
    weights a it is min(1, c a), where c gives a weighted mean over these edges the variance of one
    over ``fanout`` edges drawn uniformly without replacement.

    Parameters
    ----------
    fanouts : sequence of int, or of mappings of edge types to int
        Expected number of edges of a destination, outermost hop first; -1 takes all.
    importance : int
        i of LABOR-i: rounds in which chances are computed that need fewer nodes at the same
        variances. -1, for heterogeneous graphs: rounds until the expected number of nodes falls by
        less than a part in ten thousand, LABOR-*.
    exact : bool
        Each destination has ``fanout`` edges of a relation, or all where it has fewer: the edges
        with the smallest numbers over weights (sequential Poisson sampling, Ohlsson 1998). Among
        parallel edges, each but the first has its own number. Without ``importance``.
    layer_dependency : bool
        The numbers are the same in all hops.
    batch_dependency : int
        Numbers change gradually from a batch of an epoch to the next, in periods of so many
        batches, so that nodes of one batch are met again in the next. Batch j of a period has
        Phi(cos(a) Phi^-1(x) + sin(a) Phi^-1(y)) for a node, where a is j over the period of a right
        angle, x and y are its numbers where this period and the next begin, and Phi is the normal
        distribution (Balin, LaSalle and Catalyurek, 2023).
    default_fanout : int, optional
        The fanout of edge types that a mapping of ``fanouts`` does not have.
    frontier : str
        ``"all"``, or, for heterogeneous graphs, ``"new"``, as for ``PGSampler``.
    prob, mask : str, optional
        As for ``PGSampler``, at most one; ``mask`` is for heterogeneous graphs, where edge types
        without the array are sampled uniformly, and whole.
    edge_weights : str, optional
        ``"ht"``: ``block.edge_weights``, float32, is one over the chance of the edge: sums of
        values times these are unbiased; with ``exact`` it is the chance for the other numbers as
        they are.
        ``"mean"``: weight over chance, scaled so that the weights of a destination's edges sum to
        their number, as DGL's. ``"sum"``, for homogeneous graphs: scaled so that they sum to what
        the weights of all its edges do. None: blocks have none, but on a homogeneous graph with
        ``prob`` the weights themselves.
    seed : int, optional
        As for ``PGSampler``.
    map_bytes : int, optional
        As for ``PGSampler``; of no effect on a homogeneous graph.

    Raises
    ------
    TypeError, ValueError
        For an option of the wrong type or range; by ``sample`` also for edge types that are missing
        in ``fanouts`` or not in the graph, and for options that the graph's kind does not have.

    Notes
    -----
    A GPU returns the same batches, byte for byte; for a heterogeneous graph one launch each, where
    the edges that a hop looks at are fewer than ``2**31``, of all types together. A heterogeneous
    batch on the CPU uses one core. ``exclude`` is taken out before chances are computed.

    Source: M. F. Balin, U. V. Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion
    in GNNs", NeurIPS 2023, sections 3.2 and 3.3. DGL has one number for an id, whatever its type;
    here nodes of two types with the same id have different numbers. A sample is a pure function of
    (graph, options, seed, epoch, batch, seeds). An additional type does not change the numbers of
    another type, nor another relation's sample of the same nodes. A heterogeneous graph of one node
    type and one edge type has the samples of the homogeneous one.

    One sampler may be used from many threads at once.
    """

    __slots__ = ("_fanouts", "_program")

    _program: Program | None

    def __init__(
        self,
        fanouts: Sequence[int | Mapping[Any, int]],
        *,
        importance: int = 0,
        exact: bool = False,
        layer_dependency: bool = False,
        batch_dependency: int = 1,
        default_fanout: int | None = None,
        frontier: str = "all",
        prob: str | None = None,
        mask: str | None = None,
        edge_weights: str | None = None,
        seed: int | None = None,
        map_bytes: int | None = None,
    ) -> None:
        by_type: Any = fanouts
        if isinstance(fanouts, (list, tuple)):
            by_type = fanouts_by_name(fanouts, default_fanout)
        plan = Plan(
            family="labor",
            fanouts=by_type,
            importance=importance,
            exact=exact,
            layer_dependency=layer_dependency,
            batch_dependency=batch_dependency,
            default_fanout=default_fanout,
            frontier=frontier,
            prob=prob,
            mask=mask,
            edge_weights=edge_weights,
            map_bytes=map_bytes,
        )
        super().__init__(plan, seed)
        self._program = None
        self._fanouts = plan["fanouts"]
        if isinstance(fanouts, (list, tuple)):
            self._fanouts = tuple(dict(n) if isinstance(n, Mapping) else n for n in fanouts)

    @property
    def fanouts(self) -> tuple[int | Mapping[Any, int], ...]:
        """Expected number of in-edges of each node, outermost hop first."""
        fanouts: tuple[int | Mapping[Any, int], ...] = self._fanouts
        return fanouts

    @property
    def edge_weights(self) -> str | None:
        """``"ht"``, ``"mean"``, ``"sum"`` or None: what blocks have as weights."""
        value: str | None = self._plan["edge_weights"]
        return value

    @property
    def prob(self) -> str | None:
        """The name of the weights; None: edges are equal."""
        value: str | None = self._plan["prob"]
        return value

    @property
    def mask(self) -> str | None:
        """The name of the array that says which edges there are; None: all."""
        value: str | None = self._plan["mask"]
        return value

    @property
    def edge_array(self) -> tuple[str, str] | None:
        """``"prob"`` or ``"mask"``, and the name of that edge array; None: edges are equal."""
        return self._plan.edge_array

    def sampled_graph(self, graph: Any) -> Any:
        """The graph of the edges that have weights, or that the mask leaves, where ``graph`` is."""
        if is_heterogeneous(graph):
            return self._plan.sampled_graph(graph)
        return self._homogeneous().sampled_graph(graph)

    def _homogeneous(self) -> Program:
        """The program that samples homogeneous graphs."""
        program = self._program
        if program is None:
            program = self._program = self._trace()
        return program

    def _trace(self) -> Program:
        plan = self._plan
        for name, (only, remedy) in _HETERO_ONLY.items():
            if plan[name] != only:
                raise ValueError(
                    f"{name}: expected {only!r} for a homogeneous graph, got {plan[name]!r}{remedy}"
                )
        for place, fanout in enumerate(plan["fanouts"]):
            if not isinstance(fanout, int):
                raise ValueError(
                    f"fanouts[{place}]: expected an integer for a homogeneous graph, got a mapping"
                )
        kind = plan["edge_weights"]
        program: Program = labor(
            fanouts=list(plan["fanouts"]),
            importance=plan["importance"],
            exact=plan["exact"],
            layer_dependency=plan["layer_dependency"],
            batch_dependency=plan["batch_dependency"],
            weights="ht" if kind == "ht" else kind is not None,
            normalize=kind if kind in ("mean", "sum") else None,
            weight=plan["prob"],
            seed=self.seed,
        )
        return program.with_gpu_share(self._share / 1000) if self._share else program

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
        """Starts a batch as ``Sampler.launch`` does.

        Parameters
        ----------
        graph, seeds, epoch, batch, exclude, threads, form, asynchronous
            As for ``Sampler.launch``.
        """
        how: dict[str, Any] = {
            "epoch": epoch,
            "batch": batch,
            "exclude": exclude,
            "threads": threads,
            "form": form,
            "asynchronous": asynchronous,
        }
        if is_heterogeneous(graph):
            return super().launch(graph, seeds, **how)
        return self._homogeneous().launch(graph, seeds, **how)

    def group_launcher(
        self, graph: Any, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        """Returns a starter of several batches by one call, for a homogeneous graph on a GPU.

        Parameters
        ----------
        graph, epoch, form
            As for ``Sampler.group_launcher``.
        """
        if is_heterogeneous(graph):
            return None
        return self._homogeneous().group_launcher(graph, epoch=epoch, form=form)

    def _many(
        self, graph: Any, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[Any]:
        if is_heterogeneous(graph):
            return super()._many(graph, many, epoch, batch, memory)
        return self._homogeneous()._many(graph, many, epoch, batch, memory)

    def _rows_of_parts(self) -> Plan:
        # The edges that stay depend on all rows of a hop, so whole rows are fetched.
        return Plan(family="rows", prob=self.prob, mask=self.mask)

    def with_seed(self, seed: int | None) -> LaborSampler:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        return self._with(seed=seed)

    def _with(self, **options: Any) -> LaborSampler:
        return LaborSampler(**{**self._arguments(), "seed": self.seed, **options})

    def _arguments(self) -> dict[str, Any]:
        return {"fanouts": self._fanouts, **{name: self._plan[name] for name in _OPTIONS}}

    def __repr__(self) -> str:
        usual = LaborSampler.__init__.__kwdefaults__ or {}
        given = [
            f"{name}={self._plan[name]!r}, " for name in _OPTIONS if self._plan[name] != usual[name]
        ]
        return f"LaborSampler({list(self._fanouts)}, {''.join(given)}seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        return from_pickle, (
            LaborSampler,
            self._arguments(),
            self.seed,
            self.epoch,
            self._numbers.next,
        )
