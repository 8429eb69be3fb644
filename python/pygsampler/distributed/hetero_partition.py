"""``HeteroPartition``: a partitioned heterogeneous graph, with a folder for each relation."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pygsampler._graph.graph import Graph, HeteroGraph
from pygsampler.distributed.partition import (
    TYPED,
    Partition,
    Shard,
    atomic_folder,
    checked_times,
    describe_parts,
    partition,
    write_parts,
)

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler._engine.progress import Progress
    from pygsampler._graph.schema import EdgeType


class HeteroShard(Shard):
    """A part of a heterogeneous graph: of each relation the rows of some destinations."""

    __slots__ = ("nodes", "outward", "relations")

    relations: tuple[Shard, ...]
    """In the order of ``edge_types``; each has bounds of its own."""
    nodes: Mapping[str, Shard]
    """The part of each node type that has arrays; its ``ndata`` are the rows of the part."""
    graph: Graph
    """The relations' rows; row i of one is of its part's node i."""
    outward: tuple[Shard, ...]
    """Of each relation the rows of some sources, by its out-edges; empty where there are none."""

    def __repr__(self) -> str:
        return f"Shard(rank={self.rank}, {len(self.relations)} relations)"


class HeteroPartition(Partition):
    """The parts of a heterogeneous graph in a folder, as ``Partition.open`` returns them."""

    __slots__ = ("_counts", "edge_types", "nodes", "relations")

    _counts: dict[str, int]
    edge_types: tuple[EdgeType, ...]
    relations: tuple[Partition, ...]
    """The partition of each of ``edge_types``, by its destinations."""
    nodes: Mapping[str, Partition]
    """The partition of each type of nodes that has arrays."""

    @classmethod
    def _in(cls, folder: Path, types: Any) -> HeteroPartition:
        """Returns the parts in a folder, of these types; ValueError if they are none."""
        made = object.__new__(cls)
        made.folder = folder
        try:
            made._counts = {str(name): int(count) for name, count in types["nodes"].items()}
            made.edge_types = tuple((str(s), str(r), str(d)) for s, r, d in types["edges"])
            with_arrays = [str(name) for name in types["arrays"]]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"{made.folder}: expected the parts of a heterogeneous graph, got others"
            ) from None
        made.relations = tuple(
            Partition.open(made.folder / _of_relation(i)) for i in range(len(made.edge_types))
        )
        places = {name: i for i, name in enumerate(made._counts)}
        made.nodes = {
            name: Partition.open(made.folder / _of_nodes(places[name])) for name in with_arrays
        }
        return made

    @property
    def out(self) -> tuple[Partition, ...]:
        """The parts of each edge type by its sources; empty if they were not asked for."""
        outward = [relation.out for relation in self.relations]
        return tuple(each for each in outward if each is not None)

    @property
    def num_parts(self) -> int:
        """The number of parts."""
        return self.relations[0].num_parts

    @property
    def num_nodes(self) -> Mapping[str, int]:
        """The number of nodes of each type, in the whole graph."""
        return self._counts

    @property
    def num_edges(self) -> Mapping[EdgeType, int]:
        """The number of edges of each type, in the whole graph."""
        counts = (relation.num_edges for relation in self.relations)
        return dict(zip(self.edge_types, counts, strict=True))

    def shard(self, rank: int) -> HeteroShard:
        """A part, whose files are mapped; ValueError, OSError as ``Partition.shard``."""
        relations = tuple(relation.shard(rank) for relation in self.relations)
        rows = (own.graph for own in relations)
        made = object.__new__(HeteroShard)
        made.rank, made.relations = rank, relations
        made.graph = HeteroGraph(dict(zip(self.edge_types, rows, strict=True)), self._counts)
        made.nodes = {kind: nodes.shard(rank) for kind, nodes in self.nodes.items()}
        made.outward = tuple(each.shard(rank) for each in self.out)
        return made

    def __repr__(self) -> str:
        return (
            f"Partition({str(self.folder)!r}, {self.num_parts} parts, {self._counts}, "
            f"{len(self.edge_types)} relations)"
        )


def write_types(
    graph: Graph,
    target: Path,
    count: int,
    out_edges: bool,
    times: Sequence[str],
    progress: Progress,
) -> HeteroPartition:
    """Writes the partitions of the relations of a heterogeneous graph, and of its node types."""
    with_arrays = [kind for kind, arrays in graph.ndata.items() if arrays]
    of_types = {kind: _times(graph, kind, times) for kind in graph.node_types}
    with atomic_folder(target) as made:
        for i, edge_type in enumerate(graph.edge_types):
            own = made / _of_relation(i)
            own.mkdir()
            write_parts(graph[edge_type], own, count, progress, out_edges, of_types[edge_type[0]])
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
        describe_parts(made, {TYPED: types})
    return HeteroPartition._in(target, types)


Partition._of_types = staticmethod(HeteroPartition._in)
Partition._write_types = staticmethod(write_types)


def _times(graph: Graph, kind: str, names: Sequence[str]) -> dict[str, Array]:
    """Returns the named times that nodes of a type have; ValueError for one that no type has."""
    found: dict[str, Array] = {}
    for i, name in enumerate(names):
        if name in graph.ndata[kind]:
            found[name] = checked_times(f"times[{i}]", name, graph.ndata[kind])
        elif not any(name in arrays for arrays in graph.ndata.values()):
            raise ValueError(
                f"times[{i}]: expected the name of a node array of some type, got {name!r}"
            )
    return found


def _of_relation(place: int) -> str:
    return f"relation-{place:05d}"


def _of_nodes(place: int) -> str:
    return f"nodes-{place:05d}"
