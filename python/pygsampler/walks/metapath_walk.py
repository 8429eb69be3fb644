"""``MetaPathWalk``: walks along edge types of a heterogeneous graph."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._engine import library
from pygsampler._engine.checks import describe, integer
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.metapath import check_chain, columns, is_named, metapath_of, resolved
from pygsampler._graph.schema import TYPE
from pygsampler._sampling.dispatch import dispatch
from pygsampler._sampling.pending import MappedJob
from pygsampler._sampling.request import WalkRelationsRequest
from pygsampler.walks.random_walk import RandomWalk, mode_fields
from pygsampler.walks.result import Walks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._arrays.array import Array
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.homogeneous import HomogeneousView
    from pygsampler._graph.schema import EdgeType
    from pygsampler._sampling.pending import PendingBatch

__all__ = ["MetaPathWalk"]


def __dir__() -> list[str]:
    return sorted(__all__)


class HeteroWalk(RandomWalk):
    """A `RandomWalk` along edge types of a heterogeneous graph.

    Parameters
    ----------
    length, metapath, prob, stop, direction, walks_per_seed, edge_ids, mode_options, seed
        As for `RandomWalk`.
    others
        Options of `RandomWalk` that must have their defaults.
    """

    __slots__ = ("_path",)

    _takes_types = True
    _beside = ("_path",)

    def __init__(
        self,
        length: int,
        *,
        metapath: Sequence[EdgeType | str],
        prob: str | None = None,
        stop: float = 0.0,
        direction: str = "out",
        walks_per_seed: int = 1,
        edge_ids: bool = False,
        mode_options: Mapping[str, str] | None = None,
        seed: int | None = None,
        **others: Any,
    ) -> None:
        for name, value in others.items():
            if value != (RandomWalk.__init__.__kwdefaults__ or {})[name]:
                raise ValueError(
                    f"{name}: expected the default with edge types in metapath, got "
                    f"{describe(value)}"
                )
        self._path = metapath_of(metapath)
        types = list(dict.fromkeys(self._path))
        self._begin(
            seed,
            length=length,
            prob=prob,
            stop=stop,
            metapath=[types.index(kind) for kind in self._path],
            edge_types=TYPE,
            direction=direction,
            walks_per_seed=walks_per_seed,
            edge_ids=edge_ids,
            **mode_fields(mode_options),
        )
        if not is_named(self._path):
            check_chain(self._path, self._against, self.length > len(self._path))

    @property
    def metapath(self) -> tuple[EdgeType | str, ...]:
        """The edge types, by the names that the caller used."""
        return self._path

    @property
    def _against(self) -> bool:
        return bool(self._plan["direction"] == "in")

    @property
    def node_types(self) -> tuple[str, ...]:
        """The type of each column of ``Walks.nodes``.

        ValueError for a metapath of names of relations, whose types a graph knows: then
        ``Walks.node_types`` has them.
        """
        if is_named(self._path):
            raise ValueError(
                "node_types: expected a metapath of (source, relation, destination), got names of "
                "relations; node_types of the walks has the types"
            )
        return columns(self._path, self._against, self.length)

    def _along(self, graph: Graph) -> tuple[EdgeType, ...]:
        """The metapath in the edge types of a graph."""
        path = resolved(self._path, graph.edge_types)
        if path is not self._path:
            check_chain(path, self._against, self.length > len(path))
        return path

    def sampled_graph(self, graph: Any) -> Any:
        """Returns the homogeneous graph that is walked, which ``graph`` caches."""
        if not is_heterogeneous(graph):
            raise TypeError(f"graph: expected a heterogeneous graph, got {describe(graph)}")
        return super().sampled_graph(self._joint(graph).graph)

    def _joint(self, graph: Graph) -> HomogeneousView:
        prob, path = self._plan["prob"], self._along(graph)
        names = () if prob is None else (prob,)
        return graph._joint(tuple(dict.fromkeys(path)), path[0][2 if self._against else 0], names)

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
    ) -> PendingBatch[Walks[Array]]:
        """Starts walks as ``Sampler.launch`` starts a batch.

        Parameters
        ----------
        graph, seeds, epoch, batch, exclude, threads, form, asynchronous
            As for ``Sampler.launch``; NotImplementedError for ``exclude``.
        """
        if not is_heterogeneous(graph):
            raise TypeError(f"graph: expected a heterogeneous graph, got {describe(graph)}")
        path = self._along(graph)
        if isinstance(seeds, Mapping):
            first = path[0][2 if self._against else 0]
            if list(seeds) != [first]:
                raise ValueError(
                    f"seeds: expected ids of {first!r}, where the metapath begins, got "
                    f"those of {list(seeds)}"
                )
            seeds = seeds[first]
        if graph._service is not None:
            return self._in_parts(graph, path, seeds, epoch, batch, exclude)
        how = {"exclude": exclude, "threads": threads, "asynchronous": asynchronous}
        job = super().launch(graph, seeds, epoch=epoch, batch=batch, **how)
        joint = self._joint(graph)
        return MappedJob(job, lambda walks: self._with_type_ids(walks, path, joint))

    def _in_parts(
        self, graph: Graph, path: Any, seeds: Any, epoch: int, batch: int, exclude: Any
    ) -> PendingBatch[Walks[Array]]:
        """Starts walks on a partitioned graph, where ids are those of types."""
        if exclude is not None:
            raise NotImplementedError(
                f"exclude: expected None for walks, got {describe(exclude)}; weights of 0 "
                "(prob=) leave edges out"
            )
        types, roots = tuple(dict.fromkeys(path)), path[0][2 if self._against else 0]
        job = dispatch(
            WalkRelationsRequest(self, graph, types, roots, seeds, epoch=epoch, batch=batch)
        )
        return MappedJob(job, lambda walks: self._named(walks, path))

    def _named(self, walks: Walks[Array], path: tuple[EdgeType, ...]) -> Walks[Array]:
        """The walks, with the types of what they have."""
        walks.node_types = columns(path, self._against, self.length)
        walks.edge_types = tuple(itertools.islice(itertools.cycle(path), self.length))
        return walks

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> Walks[Array]:
        return Walks._from_memory(memory, epoch, batch, self.seed)

    def _with_type_ids(
        self, walks: Walks[Array], path: tuple[EdgeType, ...], joint: HomogeneousView
    ) -> Walks[Array]:
        """Returns new walks with ids of types instead of those of the homogeneous graph."""
        self._named(walks, path)
        nodes = array("q", [joint.nodes[kind] for kind in walks.node_types or ()])
        edges = array("q", [joint.edges[kind] for kind in walks.edge_types or ()])
        if joint.graph._device >= 0:
            _ids_by_type_on_device(walks, nodes, edges, joint.roots)
            return walks
        library.call(
            "WalksByType",
            walks._memory.address,
            nodes.buffer_info()[0],
            edges.buffer_info()[0],
            self.length,
            joint.roots,
        )
        return walks

    def _shown(self) -> dict[str, Any]:
        return {"metapath": list(self._path), "edge_types": None}

    def __repr__(self) -> str:
        return super().__repr__().replace("HeteroWalk", "RandomWalk", 1)


RandomWalk._hetero = HeteroWalk


class MetaPathWalk(HeteroWalk):
    """Walks along edge types: ``RandomWalk(length, metapath=...)``.

    Each step takes an edge of the metapath's next type, and a walk ends where its node has none.
    ``sample(graph, seeds)`` takes nodes of the first type of the metapath, as ids or as a mapping
    of that type to ids, and returns ``Walks``.

    Parameters
    ----------
    metapath : sequence of (str, str, str) or str
        1 to 64 edge types, each starting at the type that the one before leads to. Against the
        edges (``direction="in"``) each leads from its last part to its first. A relation is enough
        for the only edge type of the graph that has it: ``["writes", "cites"]``.
    length : int, optional
        Steps of a walk, for walks that repeat the metapath, which then ends at the type that it
        begins with. Default: the length of the metapath.
    prob : str, optional
        The name of an edge array that all types of the metapath have: weights, as for
        ``RandomWalk``.
    direction, walks_per_seed, edge_ids, seed
        See ``RandomWalk``; without ``edge_ids`` walks have none.

    Raises
    ------
    TypeError, ValueError
        For a metapath whose types do not follow each other, and for the reasons of ``RandomWalk``;
        names of relations are checked when a graph is sampled.

    Notes
    -----
    The first call on a graph builds a homogeneous graph of the metapath's relations, and its
    out-edges, which are stored with the graph. A GPU walks on a graph that it has, and torch
    computes the ids within types. Source: metapath2vec (Dong et al., 2017), section 3.2.
    """

    __slots__ = ()

    def __init__(
        self,
        metapath: Sequence[EdgeType | str],
        length: int | None = None,
        *,
        prob: str | None = None,
        direction: str = "out",
        walks_per_seed: int = 1,
        edge_ids: bool = False,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            _steps(metapath, length),
            metapath=metapath,
            prob=prob,
            direction=direction,
            walks_per_seed=walks_per_seed,
            edge_ids=edge_ids,
            seed=seed,
        )

    def __repr__(self) -> str:
        return f"MetaPathWalk({list(self._path)}, length={self.length}, seed={self.seed})"


def _ids_by_type_on_device(
    walks: Walks[Array], nodes: array[int], edges: array[int], roots: int
) -> None:
    """Writes the ids of their types into walks on a GPU, by torch."""
    steps = walks.per_step().torch()
    if bool((steps[0] >= roots).any()):
        wrong = int((steps[0] >= roots).nonzero()[0])
        raise IndexError(
            f"seeds[{wrong // max(walks.walks_per_seed, 1)}]: expected an id in [0, {roots}), "
            f"got {int(steps[0][wrong])}"
        )
    tables = [(steps, nodes)]
    if walks._array("edge_ids") is not None:
        tables.append((walks.per_step_edges().torch(), edges))
    for ids, starts in tables:
        begins = ids.new_tensor(starts.tolist()).unsqueeze(1)
        ids -= begins * (ids >= 0)


def _steps(metapath: Any, length: int | None) -> int:
    """Returns the number of steps of walks, for a metapath whose parts are types of edges."""
    if isinstance(metapath, str) or not isinstance(metapath, (list, tuple)):
        raise TypeError(f"metapath: expected a list of edge types, got {describe(metapath)}")
    if not metapath:
        raise ValueError("metapath: expected at least one edge type, got none")
    return len(metapath) if length is None else integer(length, "length", 0)
