"""``PinSAGE`` and ``RestartNeighbors``: neighbours of a seed by the visits of its walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._core.checks import describe, integer
from pygsampler._graph.schema import TYPE
from pygsampler._sampling.base import Afterwards, Launcher, Pending, Sampler
from pygsampler._sampling.torch_group import TorchLauncher
from pygsampler.hetero_graph import HeteroGraph
from pygsampler.random_walk import RandomWalk
from pygsampler.typed_program import joint_ids
from pygsampler.visits import TorchVisits, Visits, top_visits

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import torch

    from pygsampler._core.memories import Memory
    from pygsampler._sampling.job import Job
    from pygsampler.graph import Graph
    from pygsampler.hetero_graph import EdgeType, Joint
    from pygsampler.walks import TorchWalks

__all__ = ["PinSAGE", "RestartNeighbors"]


class PinSAGE(RandomWalk):
    """The neighbours of a vertex that short random walks visit most (Ying et al., 2018, section
    3.1).

    Walks from a seed make traversals: the first always, and each further one unless the walk ends
    before it, with ``termination_prob``. The vertices at the ends of traversals are its visits, the
    seed itself too where a walk comes back. ``sample`` gives the ``Visits`` of all seeds.

    Parameters
    ----------
    num_traversals : int
        Of a walk at most. The visits of all walks of a seed are at most 2048.
    termination_prob : float
        In [0, 1].
    num_random_walks : int
        Walks of each seed.
    num_neighbors : int
        How many of the vertices are told.
    metapath, edge_types
        As for ``RandomWalk``: the types of a traversal's edges. Without, one edge of any type. Of a
        ``HeteroGraph`` ``metapath`` is a list of its edge types that leads back to where
        it begins; seeds and visits are ids of that type of vertices.
    prob, direction, layout, seed
        As for ``RandomWalk``.
    """

    __slots__ = ("_path",)

    _takes_types = True
    _beside = ("_path",)

    # The metapath by edge types of a graph with types, else empty.
    _path: tuple[EdgeType, ...]

    _called: ClassVar[Mapping[str, str]] = {
        "length": "num_traversals",
        "stop": "termination_prob",
        "walks_per_seed": "num_random_walks",
        "top_visits": "num_neighbors",
    }

    def __init__(
        self,
        num_traversals: int = 2,
        termination_prob: float = 0.5,
        num_random_walks: int = 10,
        num_neighbors: int = 3,
        *,
        metapath: Sequence[int] | Sequence[EdgeType] | None = None,
        edge_types: str | None = None,
        prob: str | None = None,
        direction: str = "out",
        layout: str = "auto",
        seed: int | None = None,
    ) -> None:
        cycle = 1 if metapath is None else len(metapath)
        self._path = ()
        if metapath and isinstance(metapath[0], tuple):
            self._path, metapath = _closed(metapath, edge_types, direction == "in")
            edge_types = TYPE
        traversals = integer(num_traversals, "num_traversals", 1)
        self._begin(
            seed,
            length=traversals * cycle,
            visit_every=cycle,
            stop=termination_prob,
            walks_per_seed=integer(num_random_walks, "num_random_walks", 1),
            top_visits=integer(num_neighbors, "num_neighbors", 1),
            metapath=metapath,
            edge_types=edge_types,
            prob=prob,
            direction=direction,
            layout=layout,
        )

    def graph_of(self, graph: Any) -> Any:
        """As that of ``RandomWalk``; of a graph with types that of the metapath's relations."""
        return super().graph_of(self._joint(graph).graph if self._path else _untyped(graph))

    def _joint(self, graph: Any) -> Joint:
        if not isinstance(graph, HeteroGraph):
            raise TypeError(
                f"graph: expected a HeteroGraph for a metapath of edge types, got {describe(graph)}"
            )
        prob = self._plan["prob"]
        names = () if prob is None else (prob,)
        return graph._joint(tuple(dict.fromkeys(self._path)), self._first, names)

    @property
    def _first(self) -> str:
        """Where the metapath begins."""
        return self._path[0][2 if self._plan["direction"] == "in" else 0]

    def launch(
        self,
        graph: Any,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        into: str | None = None,
        beside: bool = False,
    ) -> Job:
        """As ``Sampler.launch``; NotImplementedError for ``exclude``."""
        if self._path:
            if not isinstance(seeds, Mapping) or list(seeds) != [self._first]:
                got = list(seeds) if isinstance(seeds, Mapping) else describe(seeds)
                raise ValueError(
                    f"seeds: expected a mapping of {self._first!r}, where the metapath begins, to "
                    f"ids, got {got}"
                )
            # The first type's vertices are the joined graph's first: visits have its ids as well.
            seeds = joint_ids(seeds, graph, self._joint(graph))
        return super().launch(
            graph,
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            into=into,
            beside=beside,
        )

    def launcher(self, graph: Any, *, epoch: int, into: str | None = None) -> Launcher | None:
        """As ``Sampler.launcher``; None along types of edges, whose seeds are by type."""
        return None if self._path else TorchLauncher.of(self, PinSAGE, graph, epoch, into)

    def __repr__(self) -> str:
        along = f", along {', '.join(map(str, self._path))}" if self._path else ""
        return f"{super().__repr__()}{along}"

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> Any:
        return Visits._of(memory, epoch, batch)

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> Any:
        return TorchVisits._of_region(region, words, epoch, batch)


def _untyped(graph: Any) -> Any:
    if isinstance(graph, HeteroGraph):
        raise TypeError(
            "graph: expected a Graph, got a HeteroGraph, which metapath=[(source, relation, "
            "destination), ...] is for"
        )
    return graph


def _closed(
    path: Any, edge_types: str | None, against: bool
) -> tuple[tuple[EdgeType, ...], list[int]]:
    """A metapath of edge types that leads back to where it begins, and their places among them."""
    if edge_types is not None:
        raise ValueError(
            f"edge_types: expected None, since metapath has edge types, got {edge_types!r}"
        )
    for i, kind in enumerate(path):
        if not isinstance(kind, tuple) or len(kind) != 3:
            raise TypeError(
                f"metapath[{i}]: expected (source, relation, destination), got {describe(kind)}"
            )
    here, there = (2, 0) if against else (0, 2)
    for i, kind in enumerate(path):
        after = (i + 1) % len(path)
        if kind[there] != path[after][here]:
            raise ValueError(
                f"metapath[{after}]: expected a type of edges from {kind[there]!r}, where "
                f"metapath[{i}] leads, got {path[after]}"
            )
    known = list(dict.fromkeys(path))
    return tuple(path), [known.index(kind) for kind in path]


class TypedVisits(dict[Any, TorchVisits]):
    """``TorchVisits`` by the types of vertices."""

    @property
    def num_edges(self) -> int:
        """Places for neighbours of all seeds."""
        return sum(visits.num_edges for visits in self.values())

    def torch(self) -> TypedVisits:
        """Itself."""
        return self


class RestartNeighbors(Sampler[TypedVisits]):
    """HetGNN's neighbours (Zhang et al., 2019, section 3.1): by the visits of a walk with restarts.

    A walk from each seed goes back to it with a chance before each step, until it has collected
    ``collect`` vertices other than the seed, of each type at most its cap; of each type the most
    visited are the neighbours. It needs torch; ``sample`` gives for each type ``TorchVisits``, on
    the graph's device.

    Parameters
    ----------
    types : str or None
        The name of a vertex array of the graph (``graph.ndata``): the type of each, integers. None:
        a ``HeteroGraph`` is sampled, along all of its relations; the types of ``top``
        and ``caps`` are names, seeds are a mapping of types to ids, whose rows stand type after
        type in its order, and the neighbours of a type are ids of that.
    top : mapping of int, or str, to int
        How many vertices of each type are told; others are none.
    caps : mapping of int, or str, to int, optional
        How many visits of each type are collected at most. Without, ``collect`` of all.
    collect : int
        Visits of a walk in all.
    restart : float
        The chance to go back, in [0, 1].
    max_steps : int
        Where a walk ends at the latest: types that cannot be reached never fill.
    prob, direction, seed
        As for ``RandomWalk``.
    """

    _takes_types = True

    def __init__(
        self,
        types: str | None,
        top: Mapping[int, int] | Mapping[str, int],
        *,
        caps: Mapping[int, int] | Mapping[str, int] | None = None,
        collect: int = 100,
        restart: float = 0.5,
        max_steps: int = 1000,
        prob: str | None = None,
        direction: str = "out",
        seed: int | None = None,
    ) -> None:
        if types is not None and not isinstance(types, str):
            raise TypeError(f"types: expected the name of a vertex array, got {describe(types)}")
        self._types = types
        self._top = _counts(top, "top", types is None)
        self._collect = integer(collect, "collect", 1)
        all_of_them = dict.fromkeys(self._top, self._collect)
        self._caps = all_of_them if caps is None else _counts(caps, "caps", types is None)
        self._walk = RandomWalk(
            max_steps, restart=restart, prob=prob, direction=direction, seed=seed
        )
        super().__init__(self._walk.seed)

    @property
    def plan(self) -> Hashable:
        """The options."""
        about = self._types, tuple(self._top.items()), tuple(self._caps.items()), self._collect
        return self._walk.plan, about

    def graph_of(self, graph: Any) -> Any:
        """As that of ``RandomWalk``; of a graph with types that of all relations."""
        if self._types is None:
            return self._walk.graph_of(self._joint(graph).graph)
        return self._walk.graph_of(_untyped(graph))

    def _joint(self, graph: Any) -> Joint:
        if not isinstance(graph, HeteroGraph):
            raise TypeError(f"graph: expected a HeteroGraph for types=None, got {describe(graph)}")
        for kind in (*self._top, *self._caps):
            if kind not in graph.node_types:
                known = ", ".join(map(repr, graph.node_types))
                raise ValueError(f"top: expected types of vertices among {known}, got {kind!r}")
        kinds, prob = graph.edge_types, self._walk.plan["prob"]
        return graph._joint(kinds, kinds[0][0], () if prob is None else (prob,))

    def with_seed(self, seed: int | None) -> RestartNeighbors:
        """Another sampler of this plan, with that seed."""
        other = super().with_seed(seed)
        other._walk = self._walk.with_seed(other.seed)
        return other

    def launch(
        self,
        graph: Any,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        into: str | None = None,
        beside: bool = False,
    ) -> Pending[TypedVisits]:
        """As ``Sampler.launch``; ``result()`` waits for the walks and counts."""
        joint = self._joint(graph) if self._types is None else None
        if joint is not None:
            seeds = joint_ids(seeds, graph, joint)
            graph = joint.graph
        values = _untyped(graph).ndata.get(TYPE if joint else self._types)
        if values is None:
            have = ", ".join(map(repr, graph.ndata)) or "none"
            raise ValueError(
                f"types: expected the name of a vertex array of the graph ({have}), "
                f"got {self._types!r}"
            )
        job = self._walk.launch(
            graph,
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            into="torch",
            beside=beside,
        )
        kinds = values.torch()
        return Afterwards(job, lambda walks: self._counted(walks.torch(), kinds, joint))

    def _counted(self, walks: TorchWalks, types: torch.Tensor, joint: Joint | None) -> TypedVisits:
        nodes = walks.nodes
        there = nodes >= 0
        there[:, 0] = False
        there &= nodes != nodes[:, :1]
        kinds = types.to(nodes.device)[nodes.clamp(min=0).long()]
        kept = {}
        starts = {} if joint is None else joint.nodes
        places = {kind: i for i, kind in enumerate(starts)}
        for kind in self._caps:
            # A type that no relation has is nobody's.
            mine = there & (kinds == (kind if joint is None else places.get(kind, -1)))
            kept[kind] = mine & (mine.cumsum(1) <= self._caps[kind])
        all_kept = sum(kept.values())
        assert not isinstance(all_kept, int)
        within = all_kept.cumsum(1) <= self._collect
        found = TypedVisits()
        for kind, top in self._top.items():
            rows = nodes.new_full(nodes.shape, -1)
            if kind in kept:
                rows = nodes.where(kept[kind] & within, rows)
            made = found[kind] = TorchVisits(*top_visits(rows, top))
            if joint is not None:
                first = starts.get(kind, 0)
                made.nodes = made.nodes.where(made.nodes < 0, made.nodes - first)
            made.epoch, made.batch = walks.epoch, walks.batch
        return found

    def __repr__(self) -> str:
        return (
            f"RestartNeighbors({self._types!r}, {self._top!r}, caps={self._caps!r}, "
            f"collect={self._collect}, seed={self.seed})"
        )


def _counts(given: Any, where: str, named: bool) -> dict[Any, int]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to numbers, got {describe(given)}")
    if named:
        for kind in given:
            if not isinstance(kind, str):
                raise TypeError(f"{where}: expected names of types, got {describe(kind)}")
        return {kind: integer(count, f"{where}[{kind!r}]", 1) for kind, count in given.items()}
    return {
        integer(kind, f"{where}: a type", 0): integer(count, f"{where}[{kind!r}]", 1)
        for kind, count in given.items()
    }
