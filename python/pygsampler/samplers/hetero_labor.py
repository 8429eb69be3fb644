"""``HeteroLaborSampler``: LABOR on graphs with types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._sampling.hetero_only import HeteroOnlySampler
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.sampler import from_pickle
from pygsampler.samplers.neighbor_plan import fanouts_by_name

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["HeteroLaborSampler"]


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


class HeteroLaborSampler(HeteroOnlySampler):
    """LABOR on graphs with types: fewer vertices, as destinations share uniform numbers.

    An edge u to v stays where the uniform number of u is at most the chance of the edge. A hop has
    one number for each vertex of each type, which all relations that lead from it share: what one
    relation keeps another one likely keeps. Chances are made for each relation by itself, from
    the edges of the vertices that the hop expands. Without weights a chance is min(1, fanout / d),
    d being how many edges of the relation v has. With weights a it is min(1, c a), c being such
    that a weighted mean over them has the variance of one over ``fanout`` edges drawn uniformly
    without replacement. ``pygsampler.samplers.labor`` is for graphs without types.

    Parameters
    ----------
    fanouts : sequence of int, or of mappings of edge types to int
        The edges of a destination in the mean, outermost hop first; -1 takes all.
    importance : int
        i of LABOR-i: rounds in which chances are made that have fewer vertices at the same
        variances. -1: rounds until the expected number of vertices falls by less than a part in
        ten thousand, LABOR-*.
    exact : bool
        Each destination has ``fanout`` edges of a relation, or all where it has fewer: those of the
        smallest numbers over weights (sequential Poisson sampling). Of parallel edges all but the
        first have numbers of their own. Without ``importance``.
    layer_dependency : bool
        The numbers are the same in all hops.
    batch_dependency : int
        Numbers change gradually from a batch of an epoch to the next, in periods of so many
        batches, as ``samplers.labor`` says.
    default_fanout : int, optional
        Of the edge types that a mapping of ``fanouts`` does not have.
    frontier : str
        ``"all"`` or ``"new"``, as for ``PGSampler``.
    prob, mask : str, optional
        As for ``PGSampler``: types without the array are sampled uniformly, and whole. At most one.
    edge_weights : str, optional
        ``"ht"``: blocks have ``edge_weights``, float32, one over the chance of the edge: sums of
        values times these are unbiased; with ``exact`` the chance given the other numbers is taken.
        ``"mean"``: weight over chance, scaled so that those of a destination sum to the number of
        its edges, as DGL's. None: none.
    seed : int, optional
        As for ``PGSampler``.
    map_bytes : int, optional
        As for ``PGSampler``.

    Raises
    ------
    TypeError, ValueError
        For an option of the wrong type or range; by ``sample`` also for edge types that are missing
        in ``fanouts``, or not in the graph.

    Notes
    -----
    ``sample`` takes a ``HeteroGraph`` and a mapping of vertex types to seeds. Of a graph on a GPU,
    or page-locked for one, the GPU makes the same batches, byte for byte, in one launch each;
    there the edges that a hop looks at are fewer than ``2**31``, of all types together.
    ``exclude`` is a mapping of edge types to edge ids: chances are made without these edges.

    Source: M. F. Balin, U. V. Catalyurek, "Layer-Neighbor Sampling: Defusing Neighborhood Explosion
    in GNNs", NeurIPS 2023, sections 3.2 and 3.3. DGL has one number for an id, whatever its type;
    here two types with the same ids have numbers of their own. A sample is a pure function of
    (graph, options, seed, epoch, batch, seeds). A type that is added changes no other's numbers,
    and no other relation's sample of the same vertices. A graph of one type of vertices and one of
    edges is sampled as ``pygsampler.samplers.labor`` samples it without types. On the CPU a batch
    is made by one core.

    One sampler may be used from many threads at once.
    """

    __slots__ = ("_fanouts",)

    _instead = "; pygsampler.samplers.labor samples graphs without types"

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
        edge_weights: str | None = "ht",
        seed: int | None = None,
        map_bytes: int | None = None,
    ) -> None:
        by_type: Any = fanouts
        if isinstance(fanouts, (list, tuple)):
            by_type = fanouts_by_name(fanouts, default_fanout)
            self._fanouts = tuple(dict(n) if isinstance(n, Mapping) else n for n in fanouts)
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
        if not isinstance(fanouts, (list, tuple)):
            self._fanouts = plan["fanouts"]
        super().__init__(plan, seed)

    @property
    def fanouts(self) -> tuple[int | Mapping[Any, int], ...]:
        """In-edges for each vertex in the mean, outermost hop first."""
        return self._fanouts

    @property
    def edge_weights(self) -> str | None:
        """``"ht"``, ``"mean"`` or None: what blocks have as weights."""
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
    def drawn_by(self) -> tuple[str, str] | None:
        """``"prob"`` or ``"mask"``, and the name of that edge array; None: edges are equal."""
        return self._plan.drawn_by

    def graph_of(self, graph: Any) -> Any:
        """The graph of the edges that have weights, or that the mask leaves, where ``graph`` is."""
        return self._plan.graph_of(graph)

    def _rows_of_parts(self) -> Plan:
        # Which edges stay depends on all rows of a hop.
        return Plan(family="rows", prob=self.prob, mask=self.mask)

    def with_seed(self, seed: int | None) -> HeteroLaborSampler:
        """Another sampler of this plan, with that seed, that begins with batch 0 of epoch 0."""
        return self._with(seed=seed)

    def _with(self, **options: Any) -> HeteroLaborSampler:
        return HeteroLaborSampler(**{**self._arguments(), "seed": self.seed, **options})

    def _arguments(self) -> dict[str, Any]:
        return {"fanouts": self._fanouts, **{name: self._plan[name] for name in _OPTIONS}}

    def __repr__(self) -> str:
        usual = HeteroLaborSampler.__init__.__kwdefaults__ or {}
        given = [
            f"{name}={self._plan[name]!r}, " for name in _OPTIONS if self._plan[name] != usual[name]
        ]
        return f"HeteroLaborSampler({list(self._fanouts)}, {''.join(given)}seed={self.seed})"

    def __reduce__(self) -> tuple[Any, ...]:
        return from_pickle, (
            HeteroLaborSampler,
            self._arguments(),
            self.seed,
            self.epoch,
            self._numbers.next,
        )
