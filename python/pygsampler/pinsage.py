"""``PinSAGE`` and ``RestartNeighbors``: neighbours of a seed by the visits of its walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._core.checks import describe, integer
from pygsampler._sampling.base import Pending, Sampler
from pygsampler.random_walk import RandomWalk
from pygsampler.visits import TorchVisits, Visits, top_visits

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import torch

    from pygsampler._core.memories import Memory
    from pygsampler._sampling.job import Job
    from pygsampler.graph import Graph
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
        As for ``RandomWalk``: the types of a traversal's edges. Without, one edge of any type.
    prob, direction, layout, seed
        As for ``RandomWalk``.
    """

    __slots__ = ()

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
        metapath: Sequence[int] | None = None,
        edge_types: str | None = None,
        prob: str | None = None,
        direction: str = "out",
        layout: str = "auto",
        seed: int | None = None,
    ) -> None:
        cycle = 1 if metapath is None else len(metapath)
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

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> Any:
        return Visits._of(memory, epoch, batch)

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> Any:
        return TorchVisits._of_region(region, words, epoch, batch)


class TypedVisits(dict[int, TorchVisits]):
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
    types : str
        The name of a vertex array of the graph (``graph.ndata``): the type of each, integers.
    top : mapping of int to int
        How many vertices of each type are told; others are none.
    caps : mapping of int to int, optional
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

    def __init__(
        self,
        types: str,
        top: Mapping[int, int],
        *,
        caps: Mapping[int, int] | None = None,
        collect: int = 100,
        restart: float = 0.5,
        max_steps: int = 1000,
        prob: str | None = None,
        direction: str = "out",
        seed: int | None = None,
    ) -> None:
        if not isinstance(types, str):
            raise TypeError(f"types: expected the name of a vertex array, got {describe(types)}")
        self._types = types
        self._top = _counts(top, "top")
        self._collect = integer(collect, "collect", 1)
        all_of_them = dict.fromkeys(self._top, self._collect)
        self._caps = all_of_them if caps is None else _counts(caps, "caps")
        self._walk = RandomWalk(
            max_steps, restart=restart, prob=prob, direction=direction, seed=seed
        )
        super().__init__(self._walk.seed)

    @property
    def plan(self) -> Hashable:
        """The options."""
        about = self._types, tuple(self._top.items()), tuple(self._caps.items()), self._collect
        return self._walk.plan, about

    def graph_of(self, graph: Graph) -> Graph:
        """As that of ``RandomWalk``."""
        return self._walk.graph_of(graph)

    def with_seed(self, seed: int | None) -> RestartNeighbors:
        """Another sampler of this plan, with that seed."""
        other = super().with_seed(seed)
        other._walk = self._walk.with_seed(other.seed)
        return other

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
    ) -> Pending[TypedVisits]:
        """As ``Sampler.launch``; ``result()`` waits for the walks and counts."""
        values = graph.ndata.get(self._types)
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
        return _Counted(self, job, values.torch())

    def _counted(self, walks: TorchWalks, types: torch.Tensor) -> TypedVisits:
        nodes = walks.nodes
        there = nodes >= 0
        there[:, 0] = False
        there &= nodes != nodes[:, :1]
        kinds = types.to(nodes.device)[nodes.clamp(min=0).long()]
        kept = {}
        for kind in self._caps:
            mine = there & (kinds == kind)
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
            made.epoch, made.batch = walks.epoch, walks.batch
        return found

    def __repr__(self) -> str:
        return (
            f"RestartNeighbors({self._types!r}, {self._top!r}, caps={self._caps!r}, "
            f"collect={self._collect}, seed={self.seed})"
        )


class _Counted:
    """Walks on their way, of whose vertices the visits are asked for."""

    def __init__(self, sampler: RestartNeighbors, job: Job, types: torch.Tensor) -> None:
        self._sampler, self._job, self._types = sampler, job, types

    def result(self) -> TypedVisits:
        return self._sampler._counted(self._job.result().torch(), self._types)

    def done(self) -> bool:
        return self._job.done()

    def cancel(self) -> None:
        self._job.cancel()


def _counts(given: Any, where: str) -> dict[int, int]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to numbers, got {describe(given)}")
    return {
        integer(kind, f"{where}: a type", 0): integer(count, f"{where}[{kind!r}]", 1)
        for kind, count in given.items()
    }
