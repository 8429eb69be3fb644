"""``HeteroPartition``: a graph with types in parts, a folder for each relation."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._graph.graph import Graph
from pygsampler._graph.hetero_graph import HeteroGraph
from pygsampler.distributed.partition import (
    MOST_PARTS,
    Partition,
    Shard,
    atomic_folder,
    check_target,
    checked_times,
    describe_parts,
    description,
    names_of,
    partition,
    write_parts,
)

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler._engine.progress import Progress
    from pygsampler._graph.hetero_graph import EdgeType

_TYPED = "typed"


class HeteroShard(NamedTuple):
    """A part of a graph with types: of each relation the rows of some destinations."""

    relations: tuple[Shard, ...]
    """In the order of ``edge_types``; each has bounds of its own."""
    nodes: Mapping[str, Shard]
    """Of each type of vertices with arrays: ``ndata`` has those of its part."""
    graph: HeteroGraph
    """The relations' rows; row i of one is of its part's vertex i."""
    outward: tuple[Shard, ...]
    """Of each relation the rows of some sources, by its out-edges; empty where there are none."""


class HeteroPartition:
    """Where the parts of a graph with types are.

    Made by ``partition_types``, or ``open`` of the folder that it has made.
    """

    __slots__ = ("_counts", "edge_types", "folder", "nodes", "out", "relations")

    _counts: dict[str, int]
    folder: Path
    edge_types: tuple[EdgeType, ...]
    relations: tuple[Partition, ...]
    """Of each of ``edge_types``, by its destinations."""
    out: tuple[Partition, ...]
    """Of each of ``edge_types``, by its sources; empty where they were not asked for."""
    nodes: Mapping[str, Partition]
    """Of each type of vertices that has arrays."""

    def __init__(self) -> None:
        raise TypeError("HeteroPartition: use open, or pygsampler.distributed.partition_types")

    @classmethod
    def is_in(cls, folder: str | os.PathLike[str]) -> bool:
        """Whether a folder has the parts of a graph with types; OSError, ValueError as ``open``."""
        return _TYPED in description(Path(folder))

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> HeteroPartition:
        """The parts in a folder; OSError, ValueError as ``Partition.open``."""
        made = object.__new__(cls)
        made.folder = Path(folder)
        about = description(made.folder)
        try:
            types = about[_TYPED]
            made._counts = {str(name): int(count) for name, count in types["nodes"].items()}
            made.edge_types = tuple((str(s), str(r), str(d)) for s, r, d in types["edges"])
            with_arrays = [str(name) for name in types["arrays"]]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"{made.folder}: expected the parts of a graph with types, got others"
            ) from None
        made.relations = tuple(
            Partition.open(made.folder / _of_relation(i)) for i in range(len(made.edge_types))
        )
        outward = [relation.out for relation in made.relations]
        made.out = tuple(each for each in outward if each is not None)
        places = {name: i for i, name in enumerate(made._counts)}
        made.nodes = {
            name: Partition.open(made.folder / _of_nodes(places[name])) for name in with_arrays
        }
        return made

    @property
    def num_parts(self) -> int:
        """How many parts there are."""
        return self.relations[0].num_parts

    @property
    def num_nodes(self) -> Mapping[str, int]:
        """How many vertices each type has, in the whole graph."""
        return self._counts

    @property
    def num_edges(self) -> Mapping[EdgeType, int]:
        """How many edges each type has, in the whole graph."""
        counts = (relation.num_edges for relation in self.relations)
        return dict(zip(self.edge_types, counts, strict=True))

    def shard(self, rank: int) -> HeteroShard:
        """A part, whose files are mapped; ValueError, OSError as ``Partition.shard``."""
        relations = tuple(relation.shard(rank) for relation in self.relations)
        rows = (own.graph for own in relations)
        graph = HeteroGraph(dict(zip(self.edge_types, rows, strict=True)), self._counts)
        nodes = {kind: nodes.shard(rank) for kind, nodes in self.nodes.items()}
        return HeteroShard(relations, nodes, graph, tuple(each.shard(rank) for each in self.out))

    def __repr__(self) -> str:
        return (
            f"HeteroPartition({str(self.folder)!r}, {self.num_parts} parts, {self._counts}, "
            f"{len(self.edge_types)} relations)"
        )


def partition_types(
    graph: HeteroGraph | str | os.PathLike[str],
    folder: str | os.PathLike[str],
    parts: int,
    *,
    out_edges: bool = False,
    times: Iterable[str] = (),
    replace: bool = False,
    progress: Progress = False,
) -> HeteroPartition:
    """Writes a graph with types in parts: each relation, and each type's arrays, as ``partition``.

    Parameters
    ----------
    graph : HeteroGraph, or the path of its file
        On the CPU.
    folder, parts, out_edges, replace, progress
        As for ``partition``.
    times : iterable of str
        As for ``partition``: names of arrays of some types of vertices.

    Raises
    ------
    FileExistsError, TypeError, ValueError, OSError
        As ``partition``.
    """
    count = integer(parts, "parts", 1, MOST_PARTS)
    both, names = boolean(out_edges, "out_edges"), names_of(times)
    target = Path(folder)
    check_target(target, replace)
    if not isinstance(graph, HeteroGraph):
        if not isinstance(graph, (str, os.PathLike)):
            raise TypeError(
                f"graph: expected a HeteroGraph or the path of one, got {describe(graph)}"
            )
        with HeteroGraph.open(graph) as opened:
            options: dict[str, Any] = {"replace": replace, "progress": progress}
            return partition_types(opened, folder, count, out_edges=both, times=names, **options)
    if graph.device != "cpu":
        raise ValueError(f"graph: expected one on the CPU, got one on {graph.device}")
    with_arrays = [kind for kind, arrays in graph.ndata.items() if arrays]
    of_types = {kind: _times(graph, kind, names) for kind in graph.node_types}
    with atomic_folder(target) as made:
        for i, (edge_type, relation) in enumerate(graph._open().items()):
            own = made / _of_relation(i)
            own.mkdir()
            write_parts(relation, own, count, progress, both, of_types[edge_type[0]])
        for i, (kind, nodes) in enumerate(graph.num_nodes.items()):
            if kind in with_arrays:
                data: dict[str, Any] = dict(graph.ndata[kind])
                empty = array("i" if graph.dtype == "int32" else "q")
                alone = Graph.from_csc(array("q", [0]), empty, num_nodes=nodes, node_data=data)
                partition(alone, made / _of_nodes(i), count)
        types = {
            "nodes": dict(graph.num_nodes),
            "edges": graph.edge_types,
            "arrays": with_arrays,
        }
        describe_parts(made, {_TYPED: types})
    return HeteroPartition.open(target)


def _times(graph: HeteroGraph, kind: str, names: Sequence[str]) -> dict[str, Array]:
    """Those of the names that a type's vertices have; ValueError for one that no type's have."""
    found: dict[str, Array] = {}
    for i, name in enumerate(names):
        if name in graph.ndata[kind]:
            found[name] = checked_times(f"times[{i}]", name, graph.ndata[kind])
        elif not any(name in arrays for arrays in graph.ndata.values()):
            raise ValueError(
                f"times[{i}]: expected the name of a vertex array of some type, got {name!r}"
            )
    return found


def _of_relation(place: int) -> str:
    return f"relation-{place:05d}"


def _of_nodes(place: int) -> str:
    return f"nodes-{place:05d}"
