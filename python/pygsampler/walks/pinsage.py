"""``PinSAGE`` and ``RestartNeighbors``: neighbors of a seed by the visits of its walks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays.ids import as_ids, copy_ids
from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.metapath import check_chain, is_named, metapath_of, resolved
from pygsampler._graph.schema import TYPE
from pygsampler._sampling.hetero_inputs import homogeneous_ids
from pygsampler._sampling.pending import GroupLauncher, MappedJob, PendingBatch
from pygsampler._sampling.sampler import Sampler
from pygsampler._sampling.torch_group import TorchLauncher
from pygsampler.walks.random_walk import RandomWalk, mode_fields
from pygsampler.walks.visits import Visits, top_visits

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import torch

    from pygsampler._arrays.array import Array
    from pygsampler._arrays.ids import IdView
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.homogeneous import HomogeneousView
    from pygsampler._graph.schema import EdgeType
    from pygsampler.walks.result import Walks

__all__ = ["PinSAGE", "RestartNeighbors"]


def __dir__() -> list[str]:
    return sorted(__all__)


class PinSAGE(RandomWalk):
    """Samples the nodes that short random walks visit most (Ying et al., 2018, section 3.1).

    A walk from a seed consists of traversals: the first always, and each further one unless the
    walk ends before it, with the chance ``termination_prob``. The nodes at the ends of traversals
    are its visits, also the seed itself if a walk comes back. ``sample`` returns the ``Visits`` of
    all seeds, and a loader yields ``Visits`` in torch tensors, with features and labels.

    Parameters
    ----------
    num_traversals : int
        Traversals of a walk, at most. The visits of all walks of a seed are at most 2048.
    termination_prob : float
        In [0, 1].
    num_random_walks : int
        Walks of each seed.
    num_neighbors : int
        The number of nodes that are returned, the most visited first.
    metapath, edge_types
        See ``RandomWalk``: the types of a traversal's edges. By default a traversal is one edge of
        any type. For a ``HeteroGraph`` ``metapath`` is a list of its edge types, as
        ``MetaPathWalk`` takes them, that leads back to the type that it begins with; seeds and
        visits are ids of that type of nodes.
    prob, direction, seed
        As for ``RandomWalk``.
    mode_options : mapping, optional
        ``layout``, as for ``RandomWalk``.
    """

    __slots__ = ("_path",)

    _takes_types = True
    _beside = ("_path",)

    # The metapath by edge types of a graph with types, else empty.
    _path: tuple[Any, ...]

    _called: ClassVar[Mapping[str, str]] = {
        **RandomWalk._called,
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
        metapath: Sequence[int] | Sequence[EdgeType | str] | None = None,
        edge_types: str | None = None,
        prob: str | None = None,
        direction: str = "out",
        mode_options: Mapping[str, str] | None = None,
        seed: int | None = None,
    ) -> None:
        cycle = 1 if metapath is None else len(metapath)
        self._path = ()
        if metapath and isinstance(metapath[0], (tuple, list, str)):
            self._path, metapath = _closed_metapath(metapath, edge_types, direction == "in")
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
            **mode_fields(mode_options, ("layout",)),
        )

    @property
    def result_kind(self) -> str:
        """``"visits"``."""
        return "visits"

    def sampled_graph(self, graph: Any) -> Any:
        """Returns the graph that is walked: the relations of the metapath, if there is one."""
        return super().sampled_graph(self._joint(graph).graph if self._path else _untyped(graph))

    def _joint(self, graph: Any) -> HomogeneousView:
        if not is_heterogeneous(graph):
            raise TypeError(
                "graph: expected a heterogeneous graph for a metapath of edge types, got "
                f"{describe(graph)}"
            )
        prob, path = self._plan["prob"], self._along(graph)
        names = () if prob is None else (prob,)
        return graph._joint(tuple(dict.fromkeys(path)), self._first(path), names)

    def _along(self, graph: Graph) -> tuple[EdgeType, ...]:
        """The metapath in the edge types of a graph."""
        path = resolved(self._path, graph.edge_types)
        if path is not self._path:
            check_chain(path, self._plan["direction"] == "in", closed=True)
        return path

    def _first(self, path: tuple[EdgeType, ...]) -> str:
        """Returns the type that the metapath begins at."""
        return path[0][2 if self._plan["direction"] == "in" else 0]

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
    ) -> PendingBatch[Visits]:
        """Starts a batch as ``Sampler.launch`` does.

        Parameters
        ----------
        graph, seeds, epoch, batch, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        exclude
            Not supported: NotImplementedError unless it is None.
        """
        kind = None
        if self._path:
            joint = self._joint(graph)
            kind = next(iter(joint.nodes))
            if not isinstance(seeds, Mapping) or list(seeds) != [kind]:
                got = list(seeds) if isinstance(seeds, Mapping) else describe(seeds)
                raise ValueError(
                    f"seeds: expected a mapping of {kind!r}, where the metapath begins, to "
                    f"ids, got {got}"
                )
            # The first type's nodes are the joined graph's first: visits have its ids as well.
            seeds = homogeneous_ids(seeds, graph, joint)
        ids = copy_ids(as_ids(seeds, "seeds", graph._device))
        job = super().launch(
            graph,
            ids,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            form=form,
            asynchronous=asynchronous,
        )
        return MappedJob(job, lambda made: made._by(ids, kind))

    def group_launcher(
        self, graph: Any, *, epoch: int, form: str = "array"
    ) -> GroupLauncher | None:
        """Starts batches of ``graph`` in ``epoch``, as ``form`` asks; None along a metapath."""
        if self._path:
            return None
        launch = TorchLauncher.for_sampler(self, PinSAGE, graph, epoch, form)
        if launch is None:
            return None

        def start(seeds: Sequence[Any], batches: Sequence[int]) -> MappedJob[list[Any]]:
            views = [copy_ids(as_ids(ids, "seeds", graph._device)) for ids in seeds]
            return MappedJob(launch(views, batches), lambda made: _with_seeds(made, views))

        return start

    def _many(
        self, graph: Any, many: list[Any], epoch: int, batch: int, memory: int | None
    ) -> list[Any]:
        made = super()._many(graph, many, epoch, batch, memory)
        if graph._device >= 0 and not self._path:
            # Batches of one common launch, which did not pass through ``launch``.
            _with_seeds(made, [copy_ids(as_ids(ids, "seeds", graph._device)) for ids in many])
        return made

    def __repr__(self) -> str:
        along = f", along {', '.join(map(str, self._path))}" if self._path else ""
        return f"{super().__repr__()}{along}"

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> Any:
        return Visits._from_memory(memory, epoch, batch)

    def _torch_view(
        self, graph: Graph, region: torch.Tensor, words: Sequence[int], epoch: int, batch: int
    ) -> Any:
        return Visits._of_region(region, words, epoch, batch)


def _with_seeds(results: list[Any], views: Sequence[IdView]) -> list[Any]:
    """Visits of several batches, each with its seeds; None behind a failure."""
    for visits, ids in zip(results, views, strict=False):
        if isinstance(visits, Visits):
            visits._by(ids, None)
    return results


def _untyped(graph: Any) -> Any:
    if is_heterogeneous(graph):
        raise TypeError(
            "graph: expected a Graph, got a HeteroGraph, which metapath=[(source, relation, "
            "destination), ...] is for"
        )
    return graph


def _closed_metapath(
    path: Any, edge_types: str | None, against: bool
) -> tuple[tuple[EdgeType, ...], list[int]]:
    """A metapath of edge types that leads back to where it begins, and their places among them."""
    if edge_types is not None:
        raise ValueError(
            f"edge_types: expected None, since metapath has edge types, got {edge_types!r}"
        )
    path = metapath_of(path)
    if not is_named(path):
        check_chain(path, against, closed=True)
    known = list(dict.fromkeys(path))
    return path, [known.index(kind) for kind in path]


class RestartNeighbors(Sampler[Visits]):
    """Samples HetGNN's neighbors (Zhang et al., 2019, section 3.1), by walks with restarts.

    A walk from each seed goes back to it with a chance before each step, until it has collected
    ``collect`` nodes other than the seed, of each type at most its cap; the most visited nodes of
    each type are the neighbors. It needs torch; ``sample`` returns ``Visits`` by type in torch
    tensors, on the graph's device, and a loader yields them with features and labels.

    Parameters
    ----------
    types : str or None
        The name of a node array of the graph (``graph.ndata``): the type of each node, integers.
        None: a ``HeteroGraph`` is sampled, along all of its relations; the types of ``top`` and
        ``caps`` are names, seeds are a mapping of types to ids, with rows in the order of the
        mapping, and the neighbors of a type are ids of that type.
    top : mapping of int, or str, to int
        The number of nodes of each type that are returned; other types have none.
    caps : mapping of int, or str, to int, optional
        The largest number of visits of each type that are collected. By default ``collect`` for all
        types.
    collect : int
        Visits of a walk in all.
    restart : float
        The chance to go back, in [0, 1].
    max_steps : int
        The largest number of steps of a walk: types that cannot be reached never fill.
    prob, direction, seed
        As for ``RandomWalk``.
    """

    _takes_types = True

    @property
    def result_kind(self) -> str:
        """``"visits"``."""
        return "visits"

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
            raise TypeError(f"types: expected the name of a node array, got {describe(types)}")
        super().__init__(seed)
        self._types = types
        self._top = _counts(top, "top", types is None)
        self._collect = integer(collect, "collect", 1)
        all_of_them = dict.fromkeys(self._top, self._collect)
        self._caps = all_of_them if caps is None else _counts(caps, "caps", types is None)
        how: dict[str, Any] = {"restart": restart, "prob": prob, "direction": direction}
        self._walk = RandomWalk(max_steps, **how, seed=self.seed)
        # At the seed is a walk after every other step at most, but for loops.
        steps = min(self._walk.length, 2 * self._collect)
        self._begun = RandomWalk(steps, **how, seed=self.seed)

    @property
    def plan(self) -> Hashable:
        """The options."""
        about = self._types, tuple(self._top.items()), tuple(self._caps.items()), self._collect
        return self._walk.plan, about

    def sampled_graph(self, graph: Any) -> Any:
        """Returns the graph that is walked: all relations of a heterogeneous graph."""
        if self._types is None:
            return self._walk.sampled_graph(self._joint(graph).graph)
        return self._walk.sampled_graph(_untyped(graph))

    def _joint(self, graph: Any) -> HomogeneousView:
        if not is_heterogeneous(graph):
            raise TypeError(
                f"graph: expected a heterogeneous graph for types=None, got {describe(graph)}"
            )
        for kind in (*self._top, *self._caps):
            if kind not in graph.node_types:
                known = ", ".join(map(repr, graph.node_types))
                raise ValueError(f"top: expected types of nodes among {known}, got {kind!r}")
        kinds, prob = graph.edge_types, self._walk.plan["prob"]
        return graph._joint(kinds, kinds[0][0], () if prob is None else (prob,))

    def with_seed(self, seed: int | None) -> RestartNeighbors:
        """Another sampler of this plan, with that seed."""
        other = super().with_seed(seed)
        other._walk = self._walk.with_seed(other.seed)
        other._begun = self._begun.with_seed(other.seed)
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
        form: str = "array",
        asynchronous: bool = False,
    ) -> PendingBatch[Visits]:
        """Starts a batch as ``Sampler.launch`` does; ``result()`` waits for the walks and counts.

        Parameters
        ----------
        graph, seeds, epoch, batch, threads, form, asynchronous
            The arguments of ``Sampler.launch``.
        exclude
            Not supported: NotImplementedError unless it is None.
        """
        if self._types is None:
            joint = self._joint(graph)
            kinds: _NodeTypeArray | _NodeTypeRanges = _NodeTypeRanges(joint, graph.node_types)
            seeds, graph = homogeneous_ids(seeds, graph, joint), joint.graph
        else:
            kinds = _NodeTypeArray(self._array(_untyped(graph)))
        how: dict[str, Any] = {"epoch": epoch, "batch": batch, "threads": threads, "form": "torch"}
        job = self._begun.launch(graph, seeds, **how, exclude=exclude, asynchronous=asynchronous)

        def visits_of(first_walks: Any) -> Visits:
            walks = first_walks.torch()
            collected, enough = self._collected(walks.nodes, kinds)
            if not enough and self._begun.length < self._walk.length:
                # Longer walks begin as these do. Seldom: where a type cannot fill its cap.
                seeds = walks.nodes[:, 0].contiguous()
                walks = self._walk.launch(graph, seeds, **how).result().torch()
                collected, _ = self._collected(walks.nodes, kinds)
            return self._counted(walks, collected, kinds)

        return MappedJob(job, visits_of)

    def _array(self, graph: Graph) -> Array:
        assert self._types is not None
        values: Array | None = graph.ndata.get(self._types)
        if values is None:
            have = ", ".join(map(repr, graph.ndata)) or "none"
            raise ValueError(
                f"types: expected the name of a node array of the graph ({have}), "
                f"got {self._types!r}"
            )
        return values

    def _collected(
        self, steps: torch.Tensor, kinds: _NodeTypeArray | _NodeTypeRanges
    ) -> tuple[torch.Tensor, bool]:
        """Returns what walks collected, in order: [walks, at most collect], -1 behind the last.

        And whether longer ones would have collected the same.
        """
        # By walk: they lie step by step.
        nodes = steps.contiguous()
        there = (nodes >= 0) & (nodes != nodes[:, :1])
        of = kinds.type_numbers(nodes)
        collected = there.new_zeros(there.shape)
        for kind, cap in self._caps.items():
            mine = there & (of == kinds.number(kind))
            if cap < self._collect:
                mine &= mine.cumsum(1) <= cap
            collected |= mine
        place = collected.cumsum(1)
        most = min(self._collect, sum(self._caps.values()))
        enough = bool(((place[:, -1] >= most) | (nodes[:, -1] < 0)).all())
        walk, step = (collected & (place <= self._collect)).nonzero().unbind(1)
        short = nodes.new_full((len(nodes), min(self._collect, nodes.shape[1])), -1)
        short[walk, place[walk, step] - 1] = nodes[walk, step]
        return short, enough

    def _counted(
        self,
        walks: Walks[torch.Tensor],
        short: torch.Tensor,
        kinds: _NodeTypeArray | _NodeTypeRanges,
    ) -> Visits:
        of, there = kinds.type_numbers(short), short >= 0
        nodes, counts = {}, {}
        for kind, top in self._top.items():
            rows = short.where(there & (of == kinds.number(kind)), -1)
            most, counts[kind] = top_visits(rows, top)
            nodes[kind] = most.where(most < 0, most - kinds.first(kind))
        seeds = kinds.split(walks.nodes[:, 0].contiguous())
        return Visits._new("torch", nodes, counts, seeds, walks.epoch, walks.batch)

    def __repr__(self) -> str:
        return (
            f"RestartNeighbors({self._types!r}, {self._top!r}, caps={self._caps!r}, "
            f"collect={self._collect}, seed={self.seed})"
        )


class _NodeTypeArray:
    """Types of nodes that an array of the graph tells, which numbers them itself."""

    def __init__(self, types: Array) -> None:
        self._types: torch.Tensor = types.torch()

    def type_numbers(self, nodes: torch.Tensor) -> torch.Tensor:
        """The number of each node's type; any number for -1."""
        return self._types.to(nodes.device)[nodes.clamp(min=0).long()]

    def number(self, kind: Any) -> int:
        """Returns the number by which ``of`` calls a type."""
        return int(kind)

    def first(self, kind: Any) -> int:
        """The node that is 0 among those of its type."""
        return 0

    def split(self, seeds: torch.Tensor) -> dict[Any, torch.Tensor]:
        """Returns the seeds by type, which a homogeneous graph does not have."""
        return {None: seeds}


class _NodeTypeRanges:
    """Types of nodes of a joined graph, which stand there type after type."""

    def __init__(self, joint: HomogeneousView, node_types: Sequence[str]) -> None:
        self._starts, self._types = joint.nodes, tuple(node_types)
        self._places = {kind: i for i, kind in enumerate(joint.nodes)}

    def type_numbers(self, nodes: torch.Tensor) -> torch.Tensor:
        """Returns the number of each node's type; any number for -1."""
        import torch

        later = torch.tensor([*self._starts.values()][1:], dtype=nodes.dtype, device=nodes.device)
        return torch.bucketize(nodes, later, right=True)

    def number(self, kind: Any) -> int:
        """Returns the number of a type; -1 of one without edges, which has no nodes there."""
        return self._places.get(kind, -1)

    def first(self, kind: Any) -> int:
        """Returns the node that is 0 among those of its type."""
        return self._starts.get(kind, 0)

    def split(self, seeds: torch.Tensor) -> dict[Any, torch.Tensor]:
        """Returns the seeds by type, each numbered within its type."""
        of = self.type_numbers(seeds)
        return {kind: seeds[of == self.number(kind)] - self.first(kind) for kind in self._types}


def _counts(value: Any, where: str, named: bool) -> dict[Any, int]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to numbers, got {describe(value)}")
    if named:
        for kind in value:
            if not isinstance(kind, str):
                raise TypeError(f"{where}: expected names of types, got {describe(kind)}")
        return {kind: integer(count, f"{where}[{kind!r}]", 1) for kind, count in value.items()}
    return {
        integer(kind, f"{where}: a type", 0): integer(count, f"{where}[{kind!r}]", 1)
        for kind, count in value.items()
    }
