"""``HeteroGraph``: a graph with types of vertices and edges."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._arrays.interning import IDS
from pygsampler._arrays.mmap_file import Identity, MappedFile
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import boolean, describe
from pygsampler._engine.handle import EngineHandle
from pygsampler._graph import (
    dgl_conversion,
    hetero_converters,
    hetero_file,
    networkx_conversion,
    node_names,
    pyg_conversion,
    scipy_conversion,
)
from pygsampler._graph import file as graph_file
from pygsampler._graph import layout as at
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.degrees import degrees_of
from pygsampler._graph.graph import Graph
from pygsampler._graph.hetero_converters import (
    check_endpoints,
    edge_endpoints,
    in_one_width,
    numbered,
)
from pygsampler._graph.homogeneous import HomogeneousView, concatenate_by_type
from pygsampler._graph.reverse_edges import reverse_edge_ids
from pygsampler._graph.schema import (
    TYPE,
    ByEdgeType,
    ByNodeType,
    EdgeType,
    Schema,
    check_by_type,
    check_relations,
    edge_type_of,
    node_count,
    node_counts,
    relation_name,
)
from pygsampler._graph.temporal import TimeSortedGraph
from pygsampler.errors import ClosedError

if TYPE_CHECKING:
    from types import TracebackType

    from pygsampler._arrays.datetimes import Kind
    from pygsampler._engine.progress import Progress
    from pygsampler._graph.node_names import NodeNames
    from pygsampler._graph.temporal import TimeSortedRelation

__all__ = ["EdgeType", "HeteroGraph"]


def __dir__() -> list[str]:
    return sorted(__all__)


class HeteroGraph(EngineHandle):
    """A graph with types: each edge type (source, relation, destination) has a CSC of its own.

    Row v of a relation's CSC lists the in-neighbours of vertex v of its destination type. Ids
    count within a type. The order of the types is that of ``edges``, and part of what samples are
    a function of where numbering is concerned; what a row draws depends on its own type alone, so
    that types which are added, or put elsewhere, change no other type's draws. A graph of one
    vertex type and one edge type is a graph without types, and its samples are the same bytes.

    ``to("cuda")`` gives the graph on a GPU, and ``pin()`` one that a GPU reads in page-locked host
    memory; batches lie on the GPU then and have the same bytes. ``save`` writes a file that
    ``HeteroGraph.open`` maps into memory; an opened graph is pickled by its path.

    Parameters
    ----------
    edges : mapping of (str, str, str) to (indptr, indices), (indptr, indices, edge_ids) or Graph
        int32 or int64, all relations alike, as ``Graph.from_csc`` takes them, without a copy:
        ``indptr`` has a row for each destination vertex, ``indices`` are ids of the source type.
    num_nodes : mapping of str to int, optional
        How many vertices a type has. A type that is some relation's destination need not be there:
        it has as many as the longest ``indptr`` has rows. Types without edges may be there.
    edge_data : mapping of (str, str, str) to mappings of str to arrays, optional
        What ``edata`` of that type shows, as for ``Graph.from_csc``.
    node_data : mapping of str to mappings of str to arrays of shape [N, ...], optional
        What ``ndata`` of that type shows.

    Raises
    ------
    TypeError, ValueError, IndexError
        As ``Graph.from_csc``, with the type; for types that are no text, or that several relations
        have by the name ``src__rel__dst``; for a type whose number of vertices nothing says.
    """

    __slots__ = (
        "__weakref__",
        "_derived",
        "_device",
        "_file",
        "_graphs",
        "_host",
        "_joints",
        "_labels",
        "_lookups",
        "_made_of",
        "_ndata",
        "_nodes",
        "_pinned",
        "_schema",
        "_times",
    )

    _close_function: ClassVar[str] = "GraphClose"

    # As Graph has them: -1, or the index of the CUDA device; the graph on the CPU that one on a
    # device was made of.
    _device: int
    _host: HeteroGraph | None
    _pinned: bool
    # The file that it was opened from.
    _file: MappedFile | None

    # What brings rows of a graph whose parts lie in several processes; as Graph has it.
    _service: Any = None

    _schema: Schema
    _nodes: dict[str, int]
    # Empty once closed.
    _graphs: dict[EdgeType, Graph]
    _ndata: dict[str, graph_data.NamedArrays]
    # The arrays beside the graph that hold the names of a type's nodes, and what finds nodes.
    _labels: dict[str, Mapping[str, Array]]
    _lookups: dict[str, node_names.Lookup]
    _derived: dict[tuple[str, str], HeteroGraph]
    _times: dict[tuple[str, str | None, str | None], TimeSortedGraph]
    _joints: dict[tuple[Any, ...], HomogeneousView]
    # The handles of the relations that the handle was made of.
    _made_of: list[int]

    def __init__(
        self,
        edges: Mapping[EdgeType, Any],
        num_nodes: Mapping[str, int] | None = None,
        *,
        edge_data: Mapping[Any, Mapping[str, Any]] | None = None,
        node_data: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        EngineHandle.__init__(self)
        relations = check_relations(edges)
        nodes = node_counts(relations, num_nodes)
        of_edges = check_by_type(edge_data, "edge_data", relations)
        graphs = {
            kind: _graph(kind, given, nodes, of_edges.get(kind))
            for kind, given in relations.items()
        }
        self._hold(nodes, graphs)
        for kind, arrays in check_by_type(node_data, "node_data", nodes).items():
            rows = graph_data.RowCount(graph_data.NODES, nodes[kind])
            try:
                self._ndata[kind] = graph_data.check_named_arrays(arrays, rows)
            except (TypeError, ValueError) as error:
                raise type(error)(f"node_data[{kind!r}]: {error}") from None
        self._handle()

    def _hold(
        self,
        nodes: dict[str, int],
        graphs: dict[EdgeType, Graph],
        device: int = devices.CPU,
        host: HeteroGraph | None = None,
        pinned: bool = False,
    ) -> None:
        self._nodes, self._graphs = ByNodeType(nodes), graphs
        self._device, self._host, self._pinned, self._file = device, host, pinned, None
        self._schema = Schema(tuple(nodes), tuple(graphs))
        self._ndata = ByNodeType.fromkeys(nodes, graph_data.NO_DATA)
        self._labels, self._lookups = {} if host is None else host._labels, {}
        self._derived, self._joints, self._times = {}, {}, {}
        self._made_of = []

    @classmethod
    def from_coo(
        cls,
        edges: Mapping[EdgeType, tuple[Any, Any]],
        num_nodes: Mapping[str, int] | None = None,
        *,
        renumber: bool = False,
        edge_data: Mapping[Any, Mapping[str, Any]] | None = None,
        node_data: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> HeteroGraph:
        """A graph of lists of edges: (src, dst) for each type; the id of an edge is its place.

        The arrays are copied, as by ``Graph.from_coo``, and all are int64 where one is.

        Parameters
        ----------
        edges : mapping of (str, str, str) to (src, dst)
            int32 or int64, shape [E]; with ``renumber`` also names, as ``Graph.from_coo`` takes
            them.
        num_nodes : mapping of str to int
            The number of nodes of every type; None with ``renumber``.
        renumber : bool
            True numbers the nodes of each type from 0 by ascending id or name, over all relations
            that have the type. ``node_names[type]`` or ``node_ids[type]`` have the old ones, and
            ``index_of`` finds nodes by them. Needs NumPy.
        edge_data, node_data
            As for ``HeteroGraph``.

        Raises
        ------
        TypeError, ValueError, IndexError
            As ``Graph.from_coo``, with the type.
        """
        relations = check_relations(edges)
        if boolean(renumber, "renumber"):
            return cls._renumbered(relations, num_nodes, edge_data, node_data)
        if not isinstance(num_nodes, Mapping):
            raise TypeError(
                f"num_nodes: expected a mapping of types to int, got {describe(num_nodes)}; "
                "renumber=True counts the ids that occur"
            )
        counts = {kind: node_count(kind, of) for kind, of in num_nodes.items()}
        made = hetero_converters.HeteroParts(relations, counts, edge_data, node_data, relations)
        return cls._of(made)

    @classmethod
    def _renumbered(
        cls,
        relations: Mapping[EdgeType, Any],
        num_nodes: Any,
        edge_data: Any,
        node_data: Any,
    ) -> HeteroGraph:
        if num_nodes is not None:
            raise ValueError(
                "num_nodes: expected None with renumber=True, which counts the ids that occur, got "
                f"{num_nodes!r}"
            )
        ends, labels = numbered({kind: edge_endpoints(kind, of) for kind, of in relations.items()})
        counts = {kind: interned.num_nodes for kind, interned in labels.items()}
        made = cls._of(hetero_converters.HeteroParts(ends, counts, edge_data, node_data, ends))
        for kind, interned in labels.items():
            arrays = node_names.label_arrays(interned)
            if IDS in arrays:
                rows = graph_data.RowCount(graph_data.NODES, counts[kind])
                made._ndata[kind] = made._ndata[kind].with_more(
                    graph_data.check_named_arrays(arrays, rows)
                )
            else:
                made._labels[kind] = arrays
        return made

    @classmethod
    def from_scipy(
        cls,
        matrices: Mapping[EdgeType, Any],
        *,
        num_nodes: Mapping[str, int] | None = None,
        node_data: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> HeteroGraph:
        """The graph of a sparse matrix for each relation: an entry [src, dst] is an edge.

        The id of an edge is the place of its entry in the matrix's ``data``, and
        ``edata[type]["weight"]`` that array, as by ``Graph.from_scipy``.

        Parameters
        ----------
        matrices : mapping of (str, str, str) to scipy.sparse matrices or arrays
            A row for each node of the source type, a column for each of the destination type: a
            type has as many nodes in all of them. All ids are int64 where those of one are.
        num_nodes : mapping of str to int, optional
            Types without edges, and how many nodes they have.
        node_data : mapping of str to mappings of str to arrays of shape [N, ...], optional
            As for ``HeteroGraph``.

        Raises
        ------
        TypeError, ValueError
            For what is no sparse matrix, and for one of another shape than the others say.
        """
        relations = check_relations(matrices, "matrices")
        return cls._of(hetero_converters.of_scipy(relations, num_nodes, node_data))

    @classmethod
    def from_pyg(cls, data: Any) -> HeteroGraph:
        """The graph of a ``torch_geometric.data.HeteroData``, by its ``edge_index`` or ``adj_t``.

        Types stand in the order of ``data.metadata()``. The id of an edge is its column. Tensors
        with a row for each edge, or for each vertex, are ``edata`` and ``ndata``. Of a type with
        ``adj_t``, a CSR or CSC matrix of torch's or a ``SparseTensor``, rows are not sorted, ids
        are places in its CSR, and ``edata`` is its values alone, as by ``Graph.from_pyg``.

        Of a pair (FeatureStore, GraphStore) it is the store's CSC, with its permutation as the ids
        of edges and types in the order in which it names them, and all that the feature store has;
        ``GraphStore(HeteroGraph)`` gives that graph's arrays.
        """
        if isinstance(data, (tuple, list)) and len(data) == 2:
            return cls._of_stores(*data)
        return cls._of(hetero_converters.hetero_from_pyg(data))

    @classmethod
    def _of(cls, parts: hetero_converters.HeteroParts) -> HeteroGraph:
        edges, nodes = dict(parts.edges), parts.nodes
        for kind in parts.lists:
            for end in (kind[0], kind[2]):
                if end not in nodes:
                    raise ValueError(f"num_nodes: expected a number for {end!r}, got none")
        ends = in_one_width({kind: edge_endpoints(kind, edges[kind]) for kind in parts.lists})
        try:
            edges |= {kind: _sorted(kind, pair, nodes) for kind, pair in ends.items()}
            return cls(edges, nodes, edge_data=parts.edge_data, node_data=parts.node_data)
        except (ValueError, IndexError):
            # What is sorted has other names and places.
            check_endpoints(ends, nodes)
            raise

    @classmethod
    def _of_stores(cls, features: Any, store: Any) -> HeteroGraph:
        own = getattr(store, "hetero_graph", None)
        parts = hetero_converters.hetero_from_stores(features, store, own is None)
        if own is None:
            return cls._of(parts)
        given = parts.node_data or {}
        of_nodes = {
            kind: {**own.ndata.get(kind, {}), **given.get(kind, {})}
            for kind in {**own.ndata, **given}
        }
        nodes = own._with_types(hetero_converters.sizes_of(features)).num_nodes
        return cls(own._open(), nodes, edge_data=parts.edge_data, node_data=of_nodes)

    @classmethod
    def from_dgl(cls, g: Any) -> HeteroGraph:
        """The heterograph ``g`` of DGL on the CPU, by its own CSCs, without a copy."""
        return cls._of(hetero_converters.hetero_from_dgl(g))

    @classmethod
    def open(cls, path: Any, *, verify: bool = False, progress: Progress = False) -> HeteroGraph:
        """The graph in a file that ``save`` wrote, mapped into memory, as by ``Graph.open``.

        ``edata`` and ``ndata`` are those of the file. The ids of a relation whose source type has
        fewer vertices than its destination type are read at once, to compare them with that
        number; nothing else is read before it is used.

        Raises
        ------
        OSError, ValueError
            As ``Graph.open``, and for the file of a graph without types.
        """
        return cls._mapped(graph_file.map_graph_file(path, verify, progress))

    @classmethod
    def _mapped(cls, pages: MappedFile) -> HeteroGraph:
        nodes, parts = hetero_file.read_types(pages)
        made = cls({kind: Graph._mapped(part) for kind, part in parts.items()}, nodes)
        made._ndata.update(hetero_file.read_node_data(pages, nodes))
        made._labels.update(hetero_file.names_of(pages, nodes))
        made._file = pages
        return made

    @classmethod
    def _reopened(cls, path: str, identity: Identity) -> HeteroGraph:
        """An opened graph that was pickled; ValueError where its path is another file's now."""
        return cls._mapped(MappedFile.reopened(path, identity))

    def save(self, path: Any, *, progress: Progress = False) -> None:
        """Writes the graph to a file, for ``HeteroGraph.open``, with ``edata`` and ``ndata``.

        As ``Graph.save`` does: under a temporary name, renamed when it is complete. Of a graph on a
        GPU the one on the CPU is written.

        Raises
        ------
        OSError
            Where the disk is full (with the bytes that the file needs) or does not allow it.
        ValueError
            For a path of a folder, and for types and names of arrays that the format has no room
            for: 4096 arrays in all, whose names have up to 63 bytes, the type's place among them.
        """
        host = self if self._host is None else self._host
        relations, target = host._open(), graph_file.as_path(path)
        hetero_file.write_hetero_file(
            target, relations, host._nodes, host._ndata, host._labels, progress
        )

    @property
    def path(self) -> Path | None:
        """The file that the graph was opened from; None for one that was made in memory."""
        self._open()
        file = (self if self._host is None else self._host)._file
        return None if file is None else Path(file.path)

    @property
    def pinned(self) -> bool:
        """Whether a GPU reads the graph in page-locked host memory, as ``pin`` makes it."""
        return self._pinned

    @property
    def is_homogeneous(self) -> bool:
        """False, even of a graph with one node type and one edge type: results are by type."""
        return False

    @property
    def node_types(self) -> tuple[str, ...]:
        """The types of vertices: as they first occur in the edge types, or as ``num_nodes`` has
        them."""
        return self._schema.node_types

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """The types of edges, in the order of ``edges``."""
        return self._schema.edge_types

    @property
    def num_nodes(self) -> Mapping[str, int]:
        """How many vertices each type has."""
        return MappingProxyType(self._nodes)

    @property
    def num_edges(self) -> ByEdgeType[int]:
        """The number of edges of each type; a relation names a type if no other type has it."""
        return ByEdgeType((kind, graph.num_edges) for kind, graph in self._open().items())

    @property
    def dtype(self) -> str:
        """``"int32"`` or ``"int64"``: of all sampled ids of vertices."""
        return next((graph.dtype for graph in self._open().values()), "int64")

    @property
    def device(self) -> str:
        """Where batches are made: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def edata(self) -> ByEdgeType[Mapping[str, Array]]:
        """The arrays of the edges of each type, by name; a type may be named by its relation, if no
        other has it: ``graph.edata["writes"]["w"]``."""
        return ByEdgeType((kind, graph.edata) for kind, graph in self._open().items())

    @property
    def ndata(self) -> Mapping[str, Mapping[str, Array]]:
        """The arrays of the vertices of each type, by name."""
        self._open()
        return MappingProxyType(self._ndata)

    @property
    def node_names(self) -> Mapping[str, NodeNames]:
        """The names of the nodes of each type that has names, by id; as ``Graph.node_names``."""
        self._open()
        found = {kind: node_names.names_of(arrays) for kind, arrays in self._labels.items()}
        return {kind: names for kind, names in found.items() if names is not None}

    @property
    def node_ids(self) -> Mapping[str, Array]:
        """The ids that nodes had before they were numbered, int64, of each type that has them:
        ``ndata[type]["node_ids"]``."""
        self._open()
        return {kind: arrays[IDS] for kind, arrays in self._ndata.items() if IDS in arrays}

    def index_of(self, labels: Mapping[str, Any]) -> dict[str, Any]:
        """The ids of nodes by the names or ids that they had before they were numbered.

        Parameters
        ----------
        labels : mapping of str to sequences of str, or of int
            By type, as ``node_names`` or ``node_ids`` have them.

        Returns
        -------
        dict of str to Array
            Ids by type, in the graph's dtype, as every sampler and loader takes them; an int for
            one label alone. Needs NumPy.

        Raises
        ------
        KeyError
            For labels that no node of the type has, by the first of them.
        TypeError, ValueError
            As ``Graph.index_of``, and for types that the graph does not have.
        """
        self._open()
        found = {}
        for kind, of_type in check_by_type(labels, "labels", self._nodes).items():
            lookup = self._lookups.get(kind)
            if lookup is None:
                lookup = node_names.Lookup({**self._ndata[kind], **self._labels.get(kind, {})})
                self._lookups[kind] = lookup
            where = f"labels[{kind!r}]"
            found[kind] = node_names.index_of(lookup, of_type, where, self.dtype)
        return found

    def in_degrees(self, nodes: Any = None, edge_type: EdgeType | str | None = None) -> Any:
        """Returns the number of edges of a type into each destination node, int64, on the CPU.

        Parameters
        ----------
        nodes : int, or int32 or int64, shape [N], optional
            The nodes to tell it of; all, shape [num_nodes[edge_type[2]]], when not given. One alone
            gives an int. Needs NumPy.
        edge_type : (str, str, str) or str, optional
            May be left out where the graph has one type of edges.

        Raises
        ------
        IndexError
            For ids that are no nodes of the type.
        ValueError
            For a type that the graph does not have, and for none where it has several.
        """
        kind = self._one_relation(edge_type)
        return degrees_of(self[kind]._on_cpu(), "in", self._nodes[kind[2]], nodes)

    def out_degrees(self, nodes: Any = None, edge_type: EdgeType | str | None = None) -> Any:
        """Returns the number of edges of a type from each source node, as ``in_degrees`` does."""
        kind = self._one_relation(edge_type)
        return degrees_of(self[kind]._on_cpu(), "out", self._nodes[kind[0]], nodes)

    def _one_relation(self, edge_type: EdgeType | str | None) -> EdgeType:
        kinds = list(self._open())
        if edge_type is None and len(kinds) > 1:
            have = ", ".join(map(repr, kinds))
            raise ValueError(f"edge_type: expected one of {have}, got None")
        return kinds[0] if edge_type is None else edge_type_of(edge_type, kinds, "edge_type")

    def reverse_edge_ids(
        self, edge_type: EdgeType | str, reverse_type: EdgeType | str | None = None
    ) -> Array:
        """Returns for each edge of a type, by its id, the id of its reverse: int64, on the CPU.

        Where the edges of ``reverse_type`` stand in the order of those of ``edge_type``, as PyG's
        ``ToUndirected`` and DGL's ``AddReverse`` write them, an edge belongs to the edge of its own
        id; else the i-th edge from u to v by id belongs to the i-th edge from v to u. Needs NumPy.

        Parameters
        ----------
        edge_type : (str, str, str) or str
        reverse_type : (str, str, str) or str, optional
            The type that has the reverses, from ``edge_type``'s destinations to its sources;
            ``edge_type`` itself when not given, where both ends are of one type.

        Raises
        ------
        ValueError
            For types that the graph does not have or that do not fit, and for an edge that has no
            reverse, which it names.
        """
        host = self if self._host is None else self._host
        edge_type = edge_type_of(edge_type, self.edge_types, "edge_type")
        reverse = edge_type
        if reverse_type is not None:
            reverse = edge_type_of(reverse_type, self.edge_types, "reverse_type")
        graph, other = host[edge_type], host[reverse]
        if (reverse[0], reverse[2]) != (edge_type[2], edge_type[0]):
            raise ValueError(
                f"reverse_type: expected a type from {edge_type[2]!r} to {edge_type[0]!r}, got "
                f"{reverse_type!r}"
            )
        return reverse_edge_ids(graph, other, (relation_name(edge_type), relation_name(reverse)))

    def __getitem__(self, edge_type: EdgeType | str) -> Graph:
        """The CSC of a relation; as many vertices as its larger type has.

        ``edge_type`` is (source type, relation, destination type), or the relation alone where no
        other edge type has it. KeyError for an edge type that the graph does not have.
        """
        graphs = self._open()
        if isinstance(edge_type, tuple) and edge_type in graphs:
            return graphs[edge_type]
        return ByEdgeType(graphs)[edge_type]

    def to(self, device: Any) -> HeteroGraph:
        """This graph on another device, as ``Graph.to``: all relations' CSCs are copied there.

        A graph on a GPU keeps the one on the CPU that it was made from, and gives it back.
        ``edata`` and ``ndata`` stay in CPU memory.

        Raises
        ------
        TypeError, ValueError
            For anything but a device; for more types than a GPU has room for.
        CudaError
            Where there is no such device, no driver or no room.
        """
        index = devices.parse(device)
        self._open()
        if index == self._device and not self._pinned:
            return self
        if index < 0:
            return self if self._host is None else self._host
        return self._placed(index, False)

    def pin(self, device: Any = "cuda") -> HeteroGraph:
        """This graph for a GPU to sample out of the host's memory, as ``Graph.pin``: all relations'
        CSCs are page-locked, for those that are larger than the GPU's memory.

        Raises
        ------
        CudaError
            Where there is no such device, or the system does not allow so many locked pages.
        """
        index = devices.parse(device)
        if index < 0:
            raise ValueError(f'device: expected a CUDA device, got "cpu"; {self!r} is there')
        self._open()
        if index == self._device and self._pinned:
            return self
        return self._placed(index, True)

    def share(self, devices: Iterable[Any], *, replicate: float = 0.0) -> tuple[HeteroGraph, ...]:
        """This graph in the memory of several GPUs, each of which samples all of it: the CSC of
        each relation is laid out as by ``Graph.share``.

        Raises
        ------
        TypeError, ValueError, CudaError
            As ``Graph.share``.
        """
        given = list(devices)
        host = self if self._host is None else self._host
        shared: dict[EdgeType, tuple[Graph, ...]] = {}
        try:
            for kind, graph in host._open().items():
                shared[kind] = graph.share(given, replicate=replicate)
            return tuple(
                self._holding({kind: graphs[i] for kind, graphs in shared.items()}, False)
                for i in range(len(given))
            )
        except BaseException:
            for graphs in shared.values():
                for graph in graphs:
                    graph.close()
            raise

    def _placed(self, index: int, pinned: bool) -> HeteroGraph:
        devices.require(index)
        host = self if self._host is None else self._host
        there = {
            kind: graph.pin(index) if pinned else graph.to(index)
            for kind, graph in host._open().items()
        }
        return self._holding(there, pinned)

    def _holding(self, there: dict[EdgeType, Graph], pinned: bool) -> HeteroGraph:
        """This graph of relations that are on a device."""
        host = self if self._host is None else self._host
        made = object.__new__(HeteroGraph)
        EngineHandle.__init__(made)
        index = next(iter(there.values()))._device
        made._hold(self._nodes, there, index, host, pinned)
        made._ndata = self._ndata
        made._handle()
        return made

    def _with_types(self, counts: Mapping[str, int]) -> HeteroGraph:
        """This graph, with further node types that have no edges."""
        nodes = dict(self._nodes)
        for kind, count in counts.items():
            nodes.setdefault(kind, count)
        if len(nodes) == len(self._nodes):
            return self
        made = object.__new__(HeteroGraph)
        EngineHandle.__init__(made)
        host = None if self._host is None else self._host._with_types(counts)
        made._hold(nodes, self._open(), self._device, host, self._pinned)
        made._ndata |= self._ndata
        made._labels = self._labels
        return made

    def to_networkx(self) -> Any:
        """The graph as a ``networkx.MultiDiGraph``, for looking at it.

        Nodes are (type, label), where labels are names, old ids or ids, and have "node_type"; edges
        have "edge_type", their id as "edge_id", and the values of arrays.
        """
        host = self if self._host is None else self._host
        labels, ndata = host._labels, host._ndata
        return networkx_conversion.hetero_to_networkx(host._open(), host._nodes, labels, ndata)

    def to_scipy(self, *, weight: str | None = None) -> ByEdgeType[Any]:
        """The graph as a sparse array of SciPy for each relation, [sources, destinations]; as by
        ``Graph.to_scipy``, so that ``from_scipy`` gives the same graph.

        ``weight`` is the name of an edge array of all types; without it "weight" where a type has
        one of shape [num_edges], else ones.
        """
        host = self if self._host is None else self._host
        found: ByEdgeType[Any] = ByEdgeType()
        for kind, graph in host._open().items():
            shape = host._nodes[kind[0]], host._nodes[kind[2]]
            with _of_type(kind):
                found[kind] = scipy_conversion.to_scipy(graph, shape, weight)
        return found

    def to_dgl(self) -> Any:
        """The graph as a heterograph of DGL on the CPU, with all of its arrays, which share their
        memory; as by ``Graph.to_dgl``. DGL puts types into the order of their names."""
        host = self if self._host is None else self._host
        return dgl_conversion.to_heterograph(host._open(), host._nodes, host._ndata)

    def to_pyg(self) -> Any:
        """The graph as a ``torch_geometric.data.HeteroData`` on the CPU, with all of its arrays,
        which share their memory: column i of an ``edge_index`` is the edge with id i."""
        host = self if self._host is None else self._host
        return pyg_conversion.to_hetero_data(host._open(), host._nodes, host._ndata)

    def to_homogeneous(
        self, *, edge_data: Iterable[str] = (), node_data: Iterable[str] = ()
    ) -> Graph:
        """The graph of all vertices and edges without their types, as DGL and PyG have it.

        Vertices are those of the first type, then those of the second, and so on; likewise the ids
        of edges. ``ndata["_TYPE"]`` and ``edata["_TYPE"]`` say the place of each one's type among
        ``node_types`` and ``edge_types`` (int32), ``"_ID"`` its id within that (int64). It is made
        anew by each call; all arrays are copies.

        What takes no types can be had of it: walks along metapaths are
        ``RandomWalk(length, metapath=[1, 0], edge_types="_TYPE")``.

        Parameters
        ----------
        edge_data, node_data : iterable of str
            Names of arrays that all types have, which are put behind one another. That needs NumPy.

        Raises
        ------
        ValueError
            For a name that some type has no array of, arrays of several dtypes or shapes of a row,
            and edge ids beyond the number of a type's edges.
        """
        graphs = self._open()
        if self._host is not None:
            whole = self._host.to_homogeneous(edge_data=edge_data, node_data=node_data)
            return whole.to(self._device)
        firsts = array("q", [0])
        for graph in graphs.values():
            firsts.append(firsts[-1] + graph._rows()[0].number)
        memory = memories.new("TypedJoin", self._handle(), firsts.buffer_info()[0])
        words = memories.read_int64(memory.data, at.JOINED_WORDS)
        made = Array._of_rows(at.JOINED_ROWS, words, memory)
        of_edges = {TYPE: made["edge_types"], "_ID": made["edge_own"]}
        of_nodes = {TYPE: made["node_types"], "_ID": made["node_own"]}
        for name in edge_data:
            of_edges[name] = concatenate_by_type("edge_data", name, self.edata)
        for name in node_data:
            of_nodes[name] = concatenate_by_type("node_data", name, self.ndata)
        return Graph.from_csc(
            made["indptr"],
            made["indices"],
            edge_ids=made["edge_ids"],
            edge_data=of_edges,
            node_data=of_nodes,
        )

    def _joint(
        self,
        types: tuple[EdgeType, ...],
        first: str,
        names: tuple[str, ...],
        of_nodes: tuple[str, ...] = (),
    ) -> HomogeneousView:
        """The relations of these types as one graph, the first type of vertices first, with these
        edge and vertex arrays; made once, and kept. Where this one is; it is made on the CPU."""
        key = types, first, names, of_nodes
        found = self._joints.get(key)
        if found is not None:
            found.graph._open()
            return found
        graphs = self._open()
        if self._host is not None:
            joint = self._host._joint(types, first, names, of_nodes)
            put = Graph.pin if self._pinned else Graph.to
            there = joint._replace(graph=put(joint.graph, self._device))
            return self._joints.setdefault(key, there)
        for kind in types:
            edge_type_of(kind, graphs, "metapath")
        ends = dict.fromkeys([first, *(kind[end] for kind in types for end in (0, 2))])
        nodes = {kind: self._nodes[kind] for kind in ends}
        part = object.__new__(HeteroGraph)
        EngineHandle.__init__(part)
        part._hold(nodes, {kind: graphs[kind] for kind in types})
        part._ndata = {kind: self._ndata[kind] for kind in ends}
        counts = [graphs[kind]._rows()[0].number for kind in types]
        made = HomogeneousView(
            part.to_homogeneous(edge_data=names, node_data=of_nodes),
            nodes[first],
            dict(zip(nodes, itertools.accumulate(nodes.values(), initial=0), strict=False)),
            dict(zip(types, itertools.accumulate(counts, initial=0), strict=False)),
        )
        part._release()
        # Of two threads that come at once one's is kept.
        return self._joints.setdefault(key, made)

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done. Closing twice is fine."""
        self._release()
        derived, self._derived = self._derived, {}
        times, self._times = self._times, {}
        for graph in (*derived.values(), *(timed.graph for timed in times.values())):
            graph._graphs = {}
            graph._release()
        joints, self._joints = self._joints, {}
        for joint in joints.values():
            joint.graph.close()
        graphs, self._graphs = self._graphs, {}
        for relation in graphs.values():
            relation.close()
        self._ndata, self._file = {}, None
        self._labels, self._lookups = {}, {}

    def __enter__(self) -> HeteroGraph:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> dict[EdgeType, Graph]:
        if not self._graphs:
            raise ClosedError("graph: expected an open graph, got one that was closed")
        return self._graphs

    def _handle(self) -> int:
        """The handle in this process's engine, made anew where a relation's was."""
        handles = [graph._handle() for graph in self._open().values()]
        if self._current() and handles == self._made_of:
            return self._number
        with library.handle_lock():
            if not self._current() or handles != self._made_of:
                self._release()
                self._create("TypedNew", self._schema.document(self._nodes.values(), handles))
                self._made_of = handles
            return self._number

    def _drawn_by(self, kind: str, name: str) -> HeteroGraph:
        """The graph that sampling reads by ``"prob"`` or ``"mask"``: of each type that has an
        edge array of that name the edges with weights; of the others all."""
        found = self._derived.get((kind, name))
        if found is not None:
            return found
        graphs = self._open()
        if not any(name in graph.edata for graph in graphs.values()):
            raise ValueError(
                f"{kind}: expected the name of an edge array of some type, got {name!r}"
            )
        drawn = {}
        for of, graph in graphs.items():
            with _of_type(of):
                drawn[of] = graph._drawn_by(kind, name) if name in graph.edata else graph
        # Of two threads that come at once one's is kept.
        return self._derived.setdefault((kind, name), self._of_rows(drawn))

    def _of_rows(self, graphs: dict[EdgeType, Graph]) -> HeteroGraph:
        """A graph of these rows of the relations, where they are."""
        made = object.__new__(HeteroGraph)
        EngineHandle.__init__(made)
        made._hold(self._nodes, graphs, self._device, self._host, self._pinned)
        return made

    def _timed(
        self, name: str, mask: str | None = None, prob: str | None = None
    ) -> TimeSortedGraph:
        """The rows in the order of the times that edge arrays, or vertex arrays, of that name have.

        They are those of the edges that a mask leaves, or that have weights, made once, and kept.
        The edges of a type without such an array have no times.
        """
        found = self._times.get((name, mask, prob))
        if found is not None:
            found.graph._open()
            return found
        graphs = self._open()
        of_edges = [kind for kind, graph in graphs.items() if name in graph.edata]
        of_nodes = [kind for kind, arrays in self._ndata.items() if name in arrays]
        if bool(of_edges) == bool(of_nodes):
            got = "that of both" if of_edges else "that of none"
            raise ValueError(
                f"time: expected the name of edge arrays, or of vertex arrays, of some types, got "
                f"{name!r}, which is {got}"
            )
        parts: dict[EdgeType, TimeSortedRelation | None] = {}
        for kind, graph in graphs.items():
            how = [each if each in graph.edata else None for each in (mask, prob)]
            if kind in of_edges:
                with _of_type(kind):
                    parts[kind] = graph._timed(name, *how)
            elif kind[0] in of_nodes:
                with _of_type(kind[0]):
                    parts[kind] = self._timed_by(graph, kind[0], name, how)
            else:
                parts[kind] = None
        rows = self
        for way, by in (("mask", mask), ("prob", prob)):
            if by is not None:
                rows = self._drawn_by(way, by)
        plain = rows._open()
        by_time = {
            kind: plain[kind] if part is None else part.graph for kind, part in parts.items()
        }
        # Of two threads that come at once one's is kept.
        timed = TimeSortedGraph(name, self._of_rows(by_time), list(parts.values()))
        return self._times.setdefault((name, mask, prob), timed)

    def _kind_of_times(self, name: str) -> Kind | None:
        """As ``Graph`` has it, of the first type whose array of that name says it."""
        of_edges = (graph._kind_of_times(name) for graph in self._open().values())
        of_nodes = (arrays.kind(name) for arrays in self._ndata.values())
        kinds = itertools.chain(of_edges, of_nodes)
        return next((kind for kind in kinds if kind is not None), None)

    def _timed_by(
        self, graph: Graph, of: str, name: str, how: list[str | None]
    ) -> TimeSortedRelation:
        """The rows of a relation in the order of the times of its sources, of that type."""
        times = self._ndata[of]
        return graph._timed_by(name, times[name], times.kind(name), *how)

    def __repr__(self) -> str:
        if not self._graphs:
            return "HeteroGraph(closed)"
        lines = [f"  {kind}: {count} vertices" for kind, count in self._nodes.items()]
        lines += [f"  {kind!r}: {n} edges" for kind, n in self.num_edges.items()]
        pinned = ", pinned" if self._pinned else ""
        pinned += ", shared" if any(graph.shared for graph in self._graphs.values()) else ""
        lines.append(f"  dtype={self.dtype}, device={self.device}{pinned})")
        return "HeteroGraph(\n" + "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        if any(graph.shared for graph in self._graphs.values()):
            raise TypeError(
                "HeteroGraph: expected a graph that lies in one place to pickle, got one that "
                'devices share; pickle graph.to("cpu")'
            )
        if self._host is not None:
            self._open()
            put = HeteroGraph.pin if self._pinned else HeteroGraph.to
            return put, (self._host, self.device)
        if self._file is not None:
            return HeteroGraph._reopened, (self._file.path, self._file.identity)
        parts = dict(self._open()), dict(self._nodes), dict(self._ndata)
        return _restored, (*parts, {kind: dict(of) for kind, of in self._labels.items()})


@contextmanager
def _of_type(kind: Any) -> Iterator[None]:
    """Errors of a relation's arrays, or of those of a type of vertices, name it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{relation_name(kind)}: {error}") from None


def _restored(
    graphs: dict[EdgeType, Graph],
    nodes: dict[str, int],
    of_nodes: dict[str, Mapping[str, Array]],
    labels: dict[str, Mapping[str, Array]],
) -> HeteroGraph:
    made = HeteroGraph(graphs, nodes, node_data=of_nodes)
    made._labels.update(labels)
    return made


def _graph(kind: EdgeType, given: Any, nodes: Mapping[str, int], data: Any) -> Graph:
    """The CSC of a relation as a graph of as many vertices as the larger type has."""
    count = max(nodes[kind[0]], nodes[kind[2]])
    try:
        if isinstance(given, Graph):
            if given._device >= 0:
                raise ValueError(f"expected a graph on the CPU, got one on {given.device}")
            if given.num_nodes == count:
                return given if not data else given.with_data(data)
            data = {**given.edata, **(data or {})}
            given = given.indptr, given.indices, given.edge_ids
        ids = given[2] if len(given) == 3 else None
        return Graph.from_csc(given[0], given[1], edge_ids=ids, num_nodes=count, edge_data=data)
    except (TypeError, ValueError, IndexError) as error:
        raise type(error)(f"edges[{kind!r}]: {error}") from None


def _sorted(kind: EdgeType, given: Any, nodes: Mapping[str, int]) -> tuple[Any, ...]:
    """The CSC of a relation's list of edges, with a row for each vertex of its destination."""
    src, dst = given
    count = nodes[kind[2]]
    try:
        graph = Graph.from_coo(src, dst, num_nodes=max(nodes[kind[0]], count))
    except (TypeError, ValueError, IndexError) as error:
        raise type(error)(f"edges[{kind!r}]: {error}") from None
    return graph.indptr[: count + 1], graph.indices, graph.edge_ids
