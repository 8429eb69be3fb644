"""``GraphState``: the relations, types and arrays of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pygsampler._arrays import devices
from pygsampler._arrays.interning import IDS
from pygsampler._graph import node_names
from pygsampler._graph.degrees import degrees_of
from pygsampler._graph.relation import Relation
from pygsampler._graph.reverse_edges import reverse_edge_ids
from pygsampler._graph.schema import (
    HOMOGENEOUS,
    ByEdgeType,
    EdgeType,
    PerEdgeType,
    PerNodeType,
    Schema,
    check_by_type,
    edge_type_of,
    relation_name,
)
from pygsampler._graph.table_columns import COLUMNS, columns_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pygsampler._arrays.array import Array
    from pygsampler._graph.homogeneous import HomogeneousView
    from pygsampler._graph.relation_group import RelationGroup
    from pygsampler._graph.table_columns import Column

G = TypeVar("G", bound="GraphState")

# The edge type of a homogeneous graph.
_RELATION = HOMOGENEOUS.edge_types[0]


class GraphState:
    """The relations of a graph, and what they tell: types, sizes, arrays, degrees.

    A homogeneous graph has one relation, a heterogeneous one a group of them.
    """

    __slots__ = (
        "__weakref__",
        "_device",
        "_host",
        "_joints",
        "_relation",
        "_source",
        "_views",
    )

    # The service that fetches rows of a partitioned graph; None if the rows are here.
    _service: Any = None

    # The relation of a homogeneous graph, which samplers read; None of a heterogeneous one.
    _relation: Relation | None
    # The source that samplers read: that relation, or the group of relations.
    _source: Any
    # -1 for the CPU, else the index of the CUDA device that samples.
    _device: int
    # The graph on the CPU that one on a device was made of.
    _host: Any
    # Relations as graphs, and relations put together, both made on first use.
    _views: dict[EdgeType, Any]
    _joints: dict[tuple[Any, ...], HomogeneousView]

    @classmethod
    def _wrap(cls: type[G], source: Relation | RelationGroup, host: Any = None) -> G:
        """Returns the graph of a relation, or of a group of relations."""
        graph = object.__new__(cls)
        graph._source, graph._device, graph._host = source, source._device, host
        graph._relation = source if isinstance(source, Relation) else None
        graph._views, graph._joints = {}, {}
        return graph

    def _relations(self) -> dict[EdgeType, Relation]:
        """The relations by edge type, in the schema's order; ClosedError of a closed graph."""
        if self._relation is None:
            found: dict[EdgeType, Relation] = self._source._open()
            return found
        self._relation._device_or_host_arrays()
        return {_RELATION: self._relation}

    def _by_edge_type(self, read: Callable[[Relation], Any]) -> Any:
        """Returns a value of the relation, or of each by edge type."""
        if self._relation is not None:
            return read(self._relation)
        return ByEdgeType((kind, read(each)) for kind, each in self._relations().items())

    @property
    def schema(self) -> Schema | None:
        """The node types and edge types of a heterogeneous graph; None of a homogeneous one."""
        return None if self._relation is not None else self._schema

    @property
    def _schema(self) -> Schema:
        schema: Schema = HOMOGENEOUS if self._relation is not None else self._source._schema
        return schema

    @property
    def is_homogeneous(self) -> bool:
        """True if nodes and edges are of one type each, which nobody named."""
        return self._relation is not None

    @property
    def node_types(self) -> tuple[str, ...]:
        """The node types, as they first occur in the edge types, or as ``num_nodes`` has them.

        ``("_N",)``, by DGL's name, of a homogeneous graph.
        """
        return self._schema.node_types

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """The edge types in their order.

        ``(("_N", "_E", "_N"),)``, by DGL's names, of a homogeneous graph.
        """
        return self._schema.edge_types

    @property
    def num_nodes(self) -> PerNodeType:
        """The number of nodes."""
        if self._relation is not None:
            return self._relation._num_nodes
        return MappingProxyType(self._source._nodes)

    @property
    def num_edges(self) -> PerEdgeType:
        """The number of edges; parallel edges count each."""
        return self._by_edge_type(attrgetter("num_edges"))

    @property
    def dtype(self) -> str:
        """``"int32"`` or ``"int64"``: the dtype of ``indices`` and of every sampled node id."""
        return next(iter(self._relations().values())).dtype

    @property
    def device(self) -> str:
        """The device that samples, and that batches are on: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def pinned(self) -> bool:
        """True if a GPU reads the graph in page-locked host memory (``pin``)."""
        pinned: bool = self._source._pinned
        return pinned

    @property
    def shared(self) -> bool:
        """True if several GPUs share the graph (``share``, ``distributed.share``)."""
        shared: bool = self._source.shared
        return shared

    @property
    def indptr(self) -> PerEdgeType:
        """Row offsets, shape [R + 1], R <= num_nodes; the caller's memory."""
        return self._by_edge_type(attrgetter("indptr"))

    @property
    def indices(self) -> PerEdgeType:
        """The in-neighbors by row, shape [num_edges]; the caller's memory."""
        return self._by_edge_type(attrgetter("indices"))

    @property
    def edge_ids(self) -> PerEdgeType:
        """Original edge ids, shape [num_edges]; None when an edge's id is its place."""
        return self._by_edge_type(attrgetter("edge_ids"))

    @property
    def edata(self) -> PerEdgeType:
        """The arrays of edges by name, read-only; in CPU memory, of any dtype.

        Row i is of the edge whose id is i, as ``edge_ids`` of samples say: shape [num_edges, ...],
        or with more rows if the graph was created with ``edge_ids``. For a heterogeneous graph they
        are by edge type, whose relation is enough if no other type has it:
        ``graph.edata["writes"]["w"]``.
        """
        return self._by_edge_type(attrgetter("edata"))

    @property
    def ndata(self) -> PerNodeType:
        """The arrays of nodes by name, read-only; in CPU memory, of any dtype.

        Row v is of node v: shape [num_nodes, ...]. For a heterogeneous graph they are by node type.
        """
        self._relations()
        if self._relation is not None:
            return self._relation._ndata
        return MappingProxyType(self._source._ndata)

    @property
    def file_arrays(self) -> Mapping[str, Any]:
        """The further arrays in the graph's file, by name, in any dtype and shape; read-only.

        ``"node_ids"`` (int64, [num_nodes]) are the ids that nodes had in their source, and
        ``"node_names.offsets"`` (int64, [num_nodes + 1]) with ``"node_names.bytes"`` (uint8) their
        names in UTF-8. For a heterogeneous graph they are by node type.
        """
        self._relations()
        if self._relation is not None:
            return self._relation._arrays
        return MappingProxyType(self._source._labels)

    @property
    def node_names(self) -> PerNodeType:
        """The names of nodes by id, as a sequence of str; None where they have none.

        They are those of ``from_coo(..., renumber=True)``, of ``from_networkx`` and of files.
        ``node_names[block.src_nodes]`` is a list of the names of a block's nodes. A heterogeneous
        graph has a mapping of the node types that have names.
        """
        arrays = self.file_arrays
        if self._relation is not None:
            return node_names.names_of(arrays)
        found = {kind: node_names.names_of(of_type) for kind, of_type in arrays.items()}
        return {kind: names for kind, names in found.items() if names is not None}

    @property
    def columns(self) -> Mapping[str, Mapping[str, Column]]:
        """The columns of the tables that the graph is of, by table and name, on the CPU.

        ``graph.columns["articles"]["color"]`` has ``kind``, ``values``, ``categories`` and
        ``missing`` (``Column``). Empty for graphs that are not of ``from_tables``, for those of
        files that were written before there were columns, and for homogeneous graphs. Needs
        pyarrow for text. ValueError for a damaged file.
        """
        self._relations()
        if self._relation is not None:
            return MappingProxyType({})
        group = self._source
        for kind, arrays in group._labels.items():
            if kind not in group._columns and COLUMNS in arrays:
                group._columns[kind] = columns_of(group._ndata[kind], arrays, kind)
        return MappingProxyType(group._columns)

    @property
    def node_ids(self) -> PerNodeType:
        """The ids that nodes had before they were numbered, int64, shape [num_nodes]; or None.

        A heterogeneous graph has a mapping of the node types that have them, which are
        ``ndata[type]["node_ids"]``, too.
        """
        if self._relation is not None:
            return self.file_arrays.get(IDS)
        return {kind: arrays[IDS] for kind, arrays in self.ndata.items() if IDS in arrays}

    def index_of(self, labels: Any) -> Any:
        """Returns the ids of nodes by the names or ids that they had before they were numbered.

        Parameters
        ----------
        labels : sequence of str, or of int
            Values of ``node_names`` or ``node_ids``; UUIDs and dates are converted to text. For a
            single label the result is an int. For a heterogeneous graph a mapping of node types to
            such sequences.

        Returns
        -------
        Array
            Ids in the graph's dtype, as every sampler and loader takes them; needs NumPy. For a
            heterogeneous graph a dict of node types to such arrays.

        Raises
        ------
        KeyError
            For labels that no node has, by the first of them.
        TypeError, ValueError
            For integers where nodes have names and the other way round, for a graph whose nodes
            have neither, and for types that the graph does not have.
        """
        dtype = self.dtype
        if self._relation is not None:
            arrays = self._relation._on_cpu()._arrays
            lookup = self._relation._cached(("lookup",), lambda: node_names.Lookup(arrays))
            return node_names.index_of(lookup, labels, "labels", dtype)
        group, found = self._source, {}
        for kind, of_kind in check_by_type(labels, "labels", group._nodes).items():
            lookup = group._lookups.get(kind)
            if lookup is None:
                arrays = {**group._ndata[kind], **group._labels.get(kind, {})}
                lookup = group._lookups[kind] = node_names.Lookup(arrays)
            found[kind] = node_names.index_of(lookup, of_kind, f"labels[{kind!r}]", dtype)
        return found

    def in_degrees(self, nodes: Any = None, edge_type: EdgeType | str | None = None) -> Any:
        """Returns the number of edges into each node, int64, shape [num_nodes], on the CPU.

        Parameters
        ----------
        nodes : int, or int32 or int64, shape [N], optional
            The nodes to tell it of, in their order; one alone gives an int. Needs NumPy.
        edge_type : (str, str, str) or str, optional
            Which edges to count; may be left out where the graph has one edge type.

        Raises
        ------
        IndexError
            For ids that are no nodes.
        ValueError
            For a type that the graph does not have, and for none where it has several.
        """
        return self._degrees("in", nodes, edge_type)

    def out_degrees(self, nodes: Any = None, edge_type: EdgeType | str | None = None) -> Any:
        """Returns the number of edges from each node, int64, shape [num_nodes], on the CPU.

        Each call reads the whole graph.

        Parameters
        ----------
        nodes, edge_type
            As for ``in_degrees``.
        """
        return self._degrees("out", nodes, edge_type)

    def _degrees(
        self, direction: Literal["in", "out"], nodes: Any, edge_type: EdgeType | str | None
    ) -> Any:
        kind, relation = self._one_relation(edge_type, "edge_type")
        count = relation._num_nodes
        if self._relation is None:
            count = self._source._nodes[kind[2 if direction == "in" else 0]]
        return degrees_of(relation._on_cpu(), direction, count, nodes)

    def _one_relation(
        self, edge_type: EdgeType | str | None, where: str
    ) -> tuple[EdgeType, Relation]:
        """The relation that a caller names, or the only one."""
        relations = self._relations()
        if edge_type is None and len(relations) > 1:
            have = ", ".join(map(repr, relations))
            raise ValueError(f"{where}: expected one of {have}, got None")
        kind = next(iter(relations))
        if edge_type is not None:
            kind = edge_type_of(edge_type, relations, where)
        return kind, relations[kind]

    def reverse_edge_ids(
        self,
        edge_type: EdgeType | str | None = None,
        reverse_type: EdgeType | str | None = None,
    ) -> Array:
        """Returns for each edge, by its id, the id of its reverse: int64, shape [num_edges], CPU.

        A self loop is its own reverse. In an undirected graph (``from_networkx``,
        ``datasets.read(..., undirected=True)``), and in any graph whose edges are repeated at the
        end, reversed and in their order, the two copies belong together; else the i-th edge from u
        to v by id belongs to the i-th edge from v to u. It is computed anew by each call. Needs
        NumPy.

        If the edges of ``reverse_type`` are in the order of the edges of ``edge_type``, as PyG's
        ``ToUndirected`` and DGL's ``AddReverse`` write them, an edge belongs to the edge with the
        same id.

        Parameters
        ----------
        edge_type : (str, str, str) or str, optional
            May be left out where the graph has one edge type.
        reverse_type : (str, str, str) or str, optional
            The type that has the reverses, from ``edge_type``'s destinations to its sources;
            ``edge_type`` itself by default, where both ends are of one type.

        Raises
        ------
        ValueError
            For a graph with an edge that has no reverse, which it names, and for ``edge_ids`` that
            do not number the edges from 0. For types that the graph does not have or that do not
            fit.
        """
        kind, relation = self._one_relation(edge_type, "edge_type")
        back = kind
        if reverse_type is not None:
            back, _ = self._one_relation(reverse_type, "reverse_type")
        if (back[0], back[2]) != (kind[2], kind[0]):
            raise ValueError(
                f"reverse_type: expected a type from {kind[2]!r} to {kind[0]!r}, got "
                f"{reverse_type!r}"
            )
        names = relation_name(kind), relation_name(back)
        if self._relation is not None:
            names = "the graph", "the graph"
        host = relation._on_cpu()
        other = host if back == kind else self._relations()[back]._on_cpu()
        return reverse_edge_ids(host, other, names)

    @property
    def path(self) -> Path | None:
        """The file that the graph was opened from; None for a graph in memory."""
        self._relations()
        relation = self._relation
        if relation is not None:
            source: Any = relation if relation._host is None else relation._host
        else:
            source = (self if self._host is None else self._host)._source
        return None if source._file is None else Path(source._file.path)

    def _is_open(self) -> bool:
        if self._relation is not None:
            return self._relation._parts is not None
        return bool(self._source._relations)

    def _handle(self) -> int:
        """The handle in this process's engine."""
        number: int = self._source._handle()
        return number

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done. Closing twice is fine.

        A pinned graph's pages are no longer locked then.
        """
        self._source.close()
        self._host = None
        joints, self._joints = self._joints, {}
        for joint in joints.values():
            joint.graph.close()
        self._views = {}

    def __enter__(self: G) -> G:
        self._relations()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _kind_name(self) -> str:
        """Returns the name by which errors call the graph."""
        return "Graph" if self._relation is not None else "heterogeneous Graph"

    def __repr__(self) -> str:
        relation, source = self._relation, self._source
        if not self._is_open() and (relation is None or relation._host is None):
            return "Graph(closed)"
        place = f"dtype={self.dtype}, device={self.device}"
        place += ", pinned" if self.pinned else ""
        place += ", shared" if self.shared else ""
        if relation is not None:
            return f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}, {place})"
        lines = [f"  {kind}: {count} nodes" for kind, count in source._nodes.items()]
        lines += [f"  {kind!r}: {count} edges" for kind, count in self.num_edges.items()]
        return "\n".join(["Graph(", *lines, f"  {place})"])
