"""``RelationGroup``: the relations of a heterogeneous graph, and what samplers derive of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pygsampler._arrays.mmap_file import Identity, MappedFile
from pygsampler._engine import library
from pygsampler._engine.error_conversion import ErrorConversion
from pygsampler._engine.handle import EngineHandle
from pygsampler._graph import file as graph_file
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.relation import Relation
from pygsampler._graph.schema import ByNodeType, EdgeType, Schema, relation_name
from pygsampler._graph.temporal import TimeSortedGraph
from pygsampler.errors import ClosedError

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler._arrays.datetimes import Kind
    from pygsampler._graph import node_names
    from pygsampler._graph.table_columns import Column
    from pygsampler._graph.temporal import TimeSortedRelation

__all__ = ["RelationGroup", "of_type"]

G = TypeVar("G", bound="RelationGroup")


class RelationGroup(EngineHandle):
    """The relations of a heterogeneous graph under one handle of the engine.

    Derived groups have the edges with weights, those that a mask leaves, or rows sorted by time of
    each relation. They are cached, and closed with this one.
    """

    __slots__ = (
        "__weakref__",
        "_columns",
        "_derived",
        "_device",
        "_file",
        "_labels",
        "_lookups",
        "_made_of",
        "_ndata",
        "_nodes",
        "_pinned",
        "_relations",
        "_schema",
        "_times",
    )

    _close_function: ClassVar[str] = "GraphClose"

    is_homogeneous = False

    # The service that fetches rows of a partitioned graph, as in a relation.
    _service: Any = None

    # -1 for the CPU, or the index of the CUDA device, as in a relation.
    _device: int
    _pinned: bool
    # The file that it was opened from.
    _file: MappedFile | None
    _schema: Schema
    _nodes: dict[str, int]
    # Empty once closed.
    _relations: dict[EdgeType, Relation]
    _ndata: dict[str, graph_data.NamedArrays]
    # The arrays beside the graph that hold the names and columns of a type's nodes, and what finds
    # nodes.
    _labels: dict[str, Mapping[str, Array]]
    _lookups: dict[str, node_names.Lookup]
    # The columns of node types, once somebody has asked for them.
    _columns: dict[str, Mapping[str, Column]]
    _derived: dict[tuple[str, str], RelationGroup]
    _times: dict[tuple[str, str | None, str | None], TimeSortedGraph]
    # The handles of the relations that the handle was made of.
    _made_of: list[int]

    def __init__(
        self,
        nodes: Mapping[str, int],
        relations: Mapping[EdgeType, Relation],
        ndata: Mapping[str, graph_data.NamedArrays] | None = None,
        labels: Mapping[str, Mapping[str, Array]] | None = None,
    ) -> None:
        EngineHandle.__init__(self)
        self._nodes, self._relations = ByNodeType(nodes), dict(relations)
        first = next(iter(self._relations.values()))
        self._device, self._pinned, self._file = first._device, first._pinned, None
        self._schema = Schema(tuple(nodes), tuple(relations))
        self._ndata = ByNodeType(
            {kind: (ndata or {}).get(kind, graph_data.NO_DATA) for kind in nodes}
        )
        self._labels, self._lookups, self._columns = dict(labels or {}), {}, {}
        self._derived, self._times, self._made_of = {}, {}, []

    @classmethod
    def _mapped(cls, pages: MappedFile) -> RelationGroup:
        """Returns the relations in a file."""
        nodes, parts = graph_file.read_types(pages)
        relations = {kind: Relation._mapped(part) for kind, part in parts.items()}
        ndata = graph_file.read_node_data(pages, nodes)
        made = cls(nodes, relations, ndata, graph_file.labels_of(pages, nodes))
        made._file = pages
        made._handle()
        return made

    @classmethod
    def _reopened(cls, path: str, identity: Identity) -> RelationGroup:
        """Returns the group of a pickle; ValueError if its path is another file's now."""
        return cls._mapped(MappedFile.reopened(path, identity))

    def __reduce__(self) -> tuple[Any, ...]:
        relations = dict(self._open())
        if self._file is not None:
            return RelationGroup._reopened, (self._file.path, self._file.identity)
        labels = {kind: dict(arrays) for kind, arrays in self._labels.items()}
        return RelationGroup, (dict(self._nodes), relations, dict(self._ndata), labels)

    @property
    def _source(self: G) -> G:
        """The group itself: samplers take it for a heterogeneous graph."""
        return self

    @property
    def shared(self) -> bool:
        """True if several GPUs share the relations."""
        return any(relation.shared for relation in self._relations.values())

    def close(self) -> None:
        """Releases the arrays once the batches in flight are done. Closing twice is fine."""
        self._release()
        derived, self._derived = self._derived, {}
        times, self._times = self._times, {}
        for group in (*derived.values(), *(timed.graph for timed in times.values())):
            group._relations = {}
            group._release()
        relations, self._relations = self._relations, {}
        for relation in relations.values():
            relation.close()
        self._ndata, self._file = {}, None
        self._labels, self._lookups, self._columns = {}, {}, {}

    def _open(self) -> dict[EdgeType, Relation]:
        if not self._relations:
            raise ClosedError("graph: expected an open graph, got one that was closed")
        return self._relations

    def _handle(self) -> int:
        """The handle in this process's engine, created anew where a relation's was."""
        handles = [relation._handle() for relation in self._open().values()]
        if self._current() and handles == self._made_of:
            return self._number
        with library.handle_lock():
            if not self._current() or handles != self._made_of:
                self._release()
                self._create("GraphCompose", self._schema.document(self._nodes.values(), handles))
                self._made_of = handles
            return self._number

    def _sampled_edges(self, kind: str, name: str) -> RelationGroup:
        """Returns the relations that sampling reads by ``"prob"`` or ``"mask"``, an array's name.

        A type that has an edge array of that name contributes the edges with weights, another type
        all of its edges. The result is cached.
        """
        found = self._derived.get((kind, name))
        if found is not None:
            return found
        relations = self._open()
        if not any(name in relation.edata for relation in relations.values()):
            raise ValueError(
                f"{kind}: expected the name of an edge array of some type, got {name!r}"
            )
        drawn = {}
        for of, relation in relations.items():
            with of_type(of):
                has = name in relation.edata
                drawn[of] = relation._sampled_edges(kind, name) if has else relation
        # Two threads that come at once get the same group.
        return self._derived.setdefault((kind, name), self._of_rows(drawn))

    def _of_rows(self, relations: Mapping[EdgeType, Relation]) -> RelationGroup:
        """Returns a group of these rows of the relations, where they are."""
        return RelationGroup(self._nodes, relations)

    def _time_sorted(
        self, name: str, mask: str | None = None, prob: str | None = None
    ) -> TimeSortedGraph:
        """Returns the rows sorted by the times in the edge or node arrays of that name.

        Edges that a mask leaves out, or that have no weight, are left out. The edges of a type
        without such an array have no times. The result is cached.
        """
        found = self._times.get((name, mask, prob))
        if found is not None:
            found.graph._open()
            return found
        relations = self._open()
        of_edges = [kind for kind, relation in relations.items() if name in relation.edata]
        of_nodes = [kind for kind, arrays in self._ndata.items() if name in arrays]
        if bool(of_edges) == bool(of_nodes):
            got = "that of both" if of_edges else "that of none"
            raise ValueError(
                f"time: expected the name of edge arrays, or of node arrays, of some types, got "
                f"{name!r}, which is {got}"
            )
        parts: dict[EdgeType, TimeSortedRelation | None] = {}
        for kind, relation in relations.items():
            how = [each if each in relation.edata else None for each in (mask, prob)]
            if kind in of_edges:
                with of_type(kind):
                    parts[kind] = relation._time_sorted(name, *how)
            elif kind[0] in of_nodes:
                times = self._ndata[kind[0]]
                with of_type(kind[0]):
                    parts[kind] = relation._time_sorted_by_source(
                        name, times[name], times.kind(name), *how
                    )
            else:
                parts[kind] = None
        rows = self
        for way, by in (("mask", mask), ("prob", prob)):
            if by is not None:
                rows = self._sampled_edges(way, by)
        plain = rows._open()
        by_time = {
            kind: plain[kind] if part is None else part.graph for kind, part in parts.items()
        }
        # Two threads that come at once get the same group.
        timed = TimeSortedGraph(name, self._of_rows(by_time), list(parts.values()))
        return self._times.setdefault((name, mask, prob), timed)

    def _kind_of_times(self, name: str) -> Kind | None:
        """Returns the dtype of dates of the first array of that name, None if unknown."""
        of_edges = (relation._kind_of_times(name) for relation in self._open().values())
        of_nodes = (arrays.kind(name) for arrays in self._ndata.values())
        kinds = itertools.chain(of_edges, of_nodes)
        return next((kind for kind in kinds if kind is not None), None)


def of_type(kind: Any) -> ErrorConversion:
    """Errors of a relation's arrays, or of those of a node type, name it."""

    def convert(error: Exception) -> Exception | None:
        if not isinstance(error, (TypeError, ValueError)):
            return None
        return type(error)(f"{relation_name(kind)}: {error}")

    return ErrorConversion(convert)
