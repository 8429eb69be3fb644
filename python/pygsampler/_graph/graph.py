"""``Graph``: a directed graph as the in-edge lists (CSC) that sampling reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from pygsampler._arrays import devices
from pygsampler._engine.checks import boolean, describe
from pygsampler._graph import (
    construction,
    converters,
    dgl_conversion,
    networkx_conversion,
    pyg_conversion,
    scipy_conversion,
)
from pygsampler._graph import file as graph_file
from pygsampler._graph.file_sections import array_names as edge_arrays
from pygsampler._graph.graph_state import GraphState
from pygsampler._graph.homogeneous import (
    HomogeneousView,
    concatenate_relations,
    homogeneous_view,
)
from pygsampler._graph.named_arrays import NO_DATA
from pygsampler._graph.relation import Relation
from pygsampler._graph.relation_group import RelationGroup, of_type
from pygsampler._graph.schema import (
    HOMOGENEOUS,
    ByEdgeType,
    EdgeType,
    check_by_type,
    check_relations,
)
from pygsampler._graph.table_file import write_table_graph

if TYPE_CHECKING:
    from pygsampler._engine.progress import Progress

__all__ = ["Graph", "HeteroGraph"]

G = TypeVar("G", bound="Graph")

_RELATION = HOMOGENEOUS.edge_types[0]


def __dir__() -> list[str]:
    return sorted(__all__)


class Graph(GraphState):
    """A directed graph: row v of a CSC lists the in-neighbors of node v.

    A graph is created by ``from_csc``, ``from_coo``, ``from_dgl``, ``from_pyg`` or ``from_scipy``,
    or by ``open`` from a file. Arrays are taken from anything that speaks DLPack, the buffer
    protocol or Arrow's PyCapsule interface, or from sequences of int. CSC arrays are used without a
    copy, and checked once: their values must not change while the graph lives.

    A graph is homogeneous, or heterogeneous (``is_homogeneous``). A heterogeneous one has a CSC for
    each edge type (source, relation, destination), ids count within a node type, and properties
    such as ``num_nodes`` and ``edata`` are mappings of types. The order of the types is the order
    of the arguments; the draws of a row depend only on its own type, so that other types do not
    change them. With one node type and one edge type samples are byte for byte equal to samples of
    the homogeneous graph.

    One graph may be sampled from many threads at once, and in forked children. Pickling stores the
    arrays: all of their bytes, except that torch tensors which go to another process through
    ``torch.multiprocessing`` travel in shared memory. ``close()`` (or leaving a ``with`` block)
    releases the arrays after the batches in flight; later use raises ClosedError.

    ``to("cuda")`` copies the graph to a GPU and ``pin()`` lets a GPU read it in page-locked host
    memory; from then on sampling runs there, and batches are there. A forked child cannot use its
    parent's GPU: there ``to("cpu")`` returns the graph to sample. A graph on a GPU is pickled by
    its arrays on the host, and goes back to its GPU when it is first used.

    A graph carries named arrays of any dtype and shape, a row for each edge (``edata``) or node
    (``ndata``): arguments of ``from_csc`` and ``from_coo``, arrays of other libraries' graphs, and
    arrays that ``with_data`` adds. They stay in CPU memory wherever the graph is, are used without
    a copy, and are part of pickles and files.

    ``save`` writes a file that ``Graph.open`` maps into memory, at once whatever its size; the file
    may hold further arrays. An opened graph is pickled by its path, so that all processes share the
    pages of the file.
    """

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError("Graph: use open, from_csc, from_coo, from_dgl, from_networkx, ...")

    @classmethod
    def from_csc(
        cls,
        indptr: Any,
        indices: Any = None,
        *,
        edge_ids: Any = None,
        num_nodes: Any = None,
        edge_data: Mapping[Any, Any] | None = None,
        node_data: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Returns a graph on the arrays of a CSC, or of a CSC for each edge type, without a copy.

        Arrays on a CUDA device (all on one; DLPack or ``__cuda_array_interface__``) result in a
        graph there.

        Parameters
        ----------
        indptr : int32 or int64, shape [R + 1]
            Row v is ``indices[indptr[v]:indptr[v + 1]]``; monotone, from 0 to E. For a
            heterogeneous graph a mapping of (str, str, str), the edge types, to (indptr, indices),
            (indptr, indices, edge_ids) or a homogeneous Graph, all of one dtype of ids: ``indptr``
            has a row for each destination node, ``indices`` are ids of the source type.
        indices : int32 or int64, shape [E]
            The in-neighbors. Their dtype is the graph's: every sampled id has it.
        edge_ids : int32 or int64, shape [E], optional
            The original id of each edge; without them an edge's id is its place in ``indices``.
        num_nodes : int, optional
            At least R; nodes past the last row have no in-edges. R by default. For a mapping of
            edge types a mapping of node types to int: a type that is the destination of an edge
            type may be missing, it has as many nodes as the longest ``indptr`` has rows. Types
            without edges are allowed.
        edge_data : mapping of str to arrays of shape [E, ...], optional
            The arrays of ``edata``, by names of up to 53 bytes: bool, int8 to int64, uint8 to
            uint64, float16 to float64 or bfloat16, of NumPy, torch or anything that speaks DLPack,
            the buffer protocol or Arrow. Row i is of the edge whose id is i, so with ``edge_ids``
            there may be more than E rows. Used without a copy in CPU memory; a torch tensor on a
            GPU is copied from there. For a heterogeneous graph a mapping of edge types to such
            mappings.
        node_data : mapping of str to arrays of shape [num_nodes, ...], optional
            The arrays of ``ndata``, a row for each node. For a heterogeneous graph a mapping of
            node types to such mappings.

        Raises
        ------
        TypeError, ValueError, IndexError
            For another dtype; another shape, device, row structure or name; an id out of range. For
            types that are no text, or that several edge types have by the name ``src__rel__dst``;
            for a type whose number of nodes is unknown.
        """
        if isinstance(indptr, Mapping) and indices is None:
            _refuse("from_csc", edge_ids=edge_ids)
            return cls._wrap(construction.group_from_csc(indptr, num_nodes, edge_data, node_data))
        given = indptr, indices, edge_ids, num_nodes, edge_data, node_data
        return cls._wrap(construction.relation_from_csc(*given))

    @classmethod
    def from_coo(
        cls,
        src: Any,
        dst: Any = None,
        *,
        num_nodes: Any = None,
        renumber: bool = False,
        edge_data: Mapping[Any, Any] | None = None,
        node_data: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Returns a graph of the edges ``src[i] -> dst[i]``; the id of an edge is its place i.

        The CSC is built by a stable counting sort on all cores, so the arrays are copied and may
        change afterwards.

        Parameters
        ----------
        src, dst : int32 or int64, shape [E]
            Ids that number the nodes from 0. If one array is int32 and one int64, both become
            int64. With ``renumber`` also names: lists of str, NumPy's str and object arrays,
            strings and categories of pandas and Arrow. For a heterogeneous graph ``src`` is a
            mapping of (str, str, str), the edge types, to (src, dst); all ids are int64 if the ids
            of one are.
        num_nodes : int, optional
            By default the last node is the largest id that occurs: pass it if later nodes have no
            edges. For a heterogeneous graph a mapping of all node types to int.
        renumber : bool
            True numbers the nodes from 0 by ascending id or name, for names, and for ids that have
            gaps, such as hashes. ``graph.node_names`` or ``graph.node_ids`` have the old ones, and
            ``graph.index_of`` finds nodes by them. The nodes of a type are numbered over all edge
            types that have it. Needs NumPy.
        edge_data : mapping of str to arrays of shape [E, ...], optional
            As for ``from_csc``; row i is of the edge ``src[i] -> dst[i]``. Not copied.
        node_data : mapping of str to arrays of shape [num_nodes, ...], optional
            As for ``from_csc``.

        Raises
        ------
        TypeError, ValueError, IndexError
            As ``from_csc``.
        """
        if isinstance(src, Mapping) and dst is None:
            given = src, num_nodes, renumber, edge_data, node_data
            return cls._wrap(construction.group_from_coo(*given))
        return cls._wrap(
            construction.relation_from_coo(src, dst, num_nodes, renumber, edge_data, node_data)
        )

    @classmethod
    def from_dgl(cls, g: Any) -> Graph:
        """Returns the CPU graph ``g`` of DGL 1.1 or later, on its own CSCs, without a copy.

        Ids have ``g.idtype`` and edges keep DGL's ids. DGL builds a CSC first when ``g`` has none.
        Changing ``g`` later does not change this graph. The graph is heterogeneous if ``g`` has
        several node or edge types.

        ``edata`` and ``ndata`` are the data of ``g``, without a copy (a subgraph of DGL selects its
        rows when they are first read), but for ids of another graph (``dgl.NID``, ``dgl.EID``).
        """
        converters.check_dgl(g)
        if g.is_homogeneous or getattr(g, "is_block", False):
            return cls._wrap(construction.relation_from(converters.csc_from_dgl(g)))
        return cls._wrap(construction.group_from(converters.hetero_from_dgl(g)))

    @classmethod
    def from_networkx(
        cls,
        g: Any,
        *,
        edge_attrs: Iterable[str] | None = None,
        node_attrs: Iterable[str] | None = None,
    ) -> Graph:
        """Returns the graph ``g`` of NetworkX, directed or not, simple or with parallel edges.

        Nodes that are the integers 0 to n - 1 keep their ids, in whatever order they were added.
        Others are numbered in ``g``'s order: ``node_ids`` has integers, ``node_names`` str, and
        ``index_of`` finds both.

        The id of an edge is its place in ``g.edges``, or the attribute "edge_id" of a result of
        ``to_networkx``. For an undirected graph of E edges, the edges that are no self loops are
        added once more, reversed and in their order, as the edges from E on; ``reverse_edge_ids``
        has the pairs.

        Parameters
        ----------
        edge_attrs : iterable of str, optional
            Attributes that all edges have, numbers, rows of numbers or dates: ``edata`` has them by
            edge id. By default "weight", if all edges have it and it is a number: int64 where all
            are ints, else float64.
        node_attrs : iterable of str, optional
            Attributes that all nodes have, for ``ndata``.

        Raises
        ------
        TypeError
            For another graph, and for nodes that are neither str nor int, or some of either:
            ``networkx.relabel_nodes(g, str)``. For attributes that are neither numbers nor dates.
        ValueError
            For an edge or a node without an attribute.
        """
        parts = networkx_conversion.coo_from_networkx(g, edge_attrs, node_attrs)
        return cls._wrap(construction.relation_from(parts))

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """Returns the graph of a ``torch_geometric.data.Data`` or ``HeteroData``.

        The graph uses ``data.adj_t`` (a SparseTensor or a torch sparse CSR tensor) without a copy,
        where the id of an edge is its place; else ``data.edge_index`` (row 0 sources, row 1
        targets), where the id of an edge is its column.

        ``ndata`` and ``edata`` have the attributes for which ``data.is_node_attr`` and
        ``is_edge_attr`` are True, by the same name, if they are plain tensors of a dtype that
        ``from_csc`` takes: without a copy, and without "batch", "ptr" and "edge_label". With an
        ``adj_t``, attributes of edges may be in the order of an ``edge_index``, so that only its
        own values are taken: as "edge_weight", where PyG's ``ToSparseTensor`` had them from, or
        "edge_attr" if they are rows.

        The graph of a ``HeteroData`` is heterogeneous, with types in the order of
        ``data.metadata()``; tensors with a row for each edge, or for each node, are ``edata`` and
        ``ndata``. So is the graph of a pair (FeatureStore, GraphStore): it is the store's CSC, with
        its permutation as the ids of edges and types in the order in which it names them, and all
        that the feature store has; ``GraphStore(graph)`` gives the arrays of a heterogeneous graph.
        """
        if isinstance(data, (tuple, list)) and len(data) == 2:
            return cls._wrap(construction.group_from_stores(*data))
        if hasattr(data, "metadata"):
            return cls._wrap(construction.group_from(converters.hetero_from_pyg(data)))
        return cls._wrap(construction.relation_from(converters.csc_from_pyg(data)))

    @classmethod
    def from_scipy(
        cls,
        m: Any,
        *,
        bipartite: bool = False,
        num_nodes: Mapping[str, int] | None = None,
        node_data: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Returns the graph with the sparse adjacency matrix ``m``: entry [src, dst] is an edge.

        Column v of a CSC matrix lists the in-neighbors of v, so that format is used without a copy;
        other formats are converted. The id of an edge is the place of its entry in ``m.data`` (in
        ``m.tocoo().data`` for formats other than CSC, CSR and COO). Stored zeros and repeated
        entries are edges too. ``edata["weight"]`` is ``m.data``, without a copy, unless it is
        complex or of objects.

        Parameters
        ----------
        m : scipy.sparse matrix or array, shape [num_nodes, num_nodes]
            For a heterogeneous graph a mapping of (str, str, str), the edge types, to matrices with
            a row for each node of the source type and a column for each of the destination type: a
            type has as many nodes in all of them. All ids are int64 where those of one are.
        bipartite : bool
            True takes rows and columns for different nodes, and a matrix of any shape [R, C]: rows
            are the nodes 0 to R - 1, columns the nodes R to R + C - 1. A mapping keeps the two
            apart.
        num_nodes : mapping of str to int, optional
            For a heterogeneous graph, types without edges and their numbers of nodes.
        node_data : mapping of str to arrays of shape [num_nodes, ...], optional
            As for ``from_csc``.

        Raises
        ------
        TypeError, ValueError
            For other arguments, for a matrix that is not square without ``bipartite``, and for
            matrices whose shapes contradict each other.
        """
        both = boolean(bipartite, "bipartite")
        # A matrix by its keys is a mapping, too.
        if isinstance(m, Mapping) and not hasattr(m, "tocoo"):
            _refuse("from_scipy", bipartite=both or None)
            matrices = check_relations(m, "matrices")
            return cls._wrap(
                construction.group_from(converters.of_scipy(matrices, num_nodes, node_data))
            )
        parts = converters.csc_from_scipy(m)
        if num_nodes is not None:
            raise ValueError(
                f"num_nodes: expected None for a matrix, whose shape says it, got {num_nodes!r}"
            )
        if both:
            parts = converters.behind(parts, m.shape[0])
        else:
            keeping = 'Graph.from_scipy({("user", "to", "item"): m}) keeps them apart'
            ways = f"{keeping}, bipartite=True numbers columns behind rows"
            converters.square(m.shape, "m", ways)
        return cls._wrap(construction.relation_from(parts)._add_arrays(None, node_data))

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, Any],
        schema: Any = None,
        *,
        unmatched: str = "error",
        out: Any = None,
        memory: int | None = None,
        progress: Progress = False,
    ) -> Graph:
        """The graph of tables with keys: a node for each row, an edge for each foreign key.

        A foreign key makes two relations: ``(table, column, target)`` from the rows that have it,
        and ``(target, "rev_" + column, table)`` to them. Node i of a type is row i of its table,
        ``index_of`` finds nodes by keys, and ``node_ids`` or ``node_names`` have these. Missing
        keys make no edge. Needs pyarrow.

        Parameters
        ----------
        tables : mapping of str to tables
            By name, which is that of the node type: a frame of pandas or polars, an Arrow table, a
            mapping of columns, a path of Parquet, Arrow or CSV, which may be a folder or a pattern,
            or ``(connection, query)`` of DuckDB, SQLite or another of Python's databases. Only
            the columns that are needed are read of files.
        schema : mapping of str to mappings, or path, optional
            By table, each of these may be left out: "key", the column of its primary key; "links",
            a mapping of columns with foreign keys to the tables whose keys they are, its own too;
            "time", the column of its rows' times; "columns", those that the graph keeps: a
            list, or a mapping of names to kinds, "number", "category", "text", "time" and
            "embedding"; all numbers and dictionaries of Arrow (categories) by default. Or a file of
            JSON or YAML with that. Without it the schema is guessed by names and types, of dates by
            the first column that each row has; ``pygsampler tables`` shows what is guessed.
        unmatched : {"error", "drop"}
            Foreign keys that no row has: a ValueError that counts and names some of them, or, with
            "drop", no edge, and a warning in the log of "pygsampler".
        out : path, optional
            A graph file to write, for tables that are larger than memory: they are read in
            batches, some columns several times, and keys, edges and arrays are in a temporary
            folder in its folder meanwhile. The file is that of ``save``, appears when it is
            complete, and replaces one of its name then; an error or Ctrl-C leaves what was there.
        memory : int, optional
            With ``out`` a bound in bytes for rows that are in memory, of those that are read from
            files and queries; half of what is free by default.
        progress : bool or callable
            True shows a tqdm bar when it takes more than two seconds; a function is called with
            the rows done and in all. A row counts each time that it is read, joined or written, and
            the number in all may grow.

        Returns
        -------
        Graph
            Heterogeneous; with ``out`` mapped as by ``open``. ``ndata[table]`` has the columns,
            numbers with missing values as float64 with NaN, decimals as float64, lists of equal
            length as rows, categories as codes, -1 for missing ones, dates as nanoseconds, NaT for
            missing ones. Times are called "time" in each of them, so that
            ``PGSampler(..., temporal="time")`` samples by them.
            ``columns[table]`` has kinds, names of categories, and text.

        Raises
        ------
        TypeError, ValueError
            For other tables and schemas, keys that are missing or there twice, and foreign keys of
            another type than the key has; for queries that fail, by the error of the database.
        FileNotFoundError, ImportError
            Where there is no file, no folder for ``out``, no pyarrow, or no PyYAML for a schema in
            YAML.
        OSError
            Where the disk of ``out`` is full or does not allow it.
        """
        if out is not None:
            path = write_table_graph(tables, schema, unmatched, out, memory, progress)
            return cls.open(path)
        if memory is not None:
            raise ValueError(f"memory: expected None without out, got {describe(memory)}")
        return cls._wrap(
            construction.group_from_tables(tables, schema, unmatched, progress=progress)
        )

    @classmethod
    def open(cls, path: Any, *, verify: bool = False, progress: Progress = False) -> Graph:
        """Maps the graph in a file that ``save`` or ``pygsampler convert`` wrote into memory.

        Header and sizes are checked, and nothing else is read before it is used, so that a file of
        any size opens at once; the pages that were read are shared by all processes. For a
        heterogeneous graph the ids of a relation whose source type has fewer nodes than its
        destination type are read at once, to compare them with that number. A new file under the
        same name does not change this graph, but the file itself must not be written to or
        truncated. docs/developer/file-format.md says what is trusted.

        Parameters
        ----------
        path : str or os.PathLike
        verify : bool
            Read all of the file and compare its checksums: for a file that may be damaged.
        progress : bool or callable
            See ``save``: the progress of that comparison.

        Raises
        ------
        OSError
            Where the system cannot open or map the file, such as FileNotFoundError.
        ValueError
            For a file that is no graph file, is damaged or cut short, or was written by a newer
            version.
        """
        pages = graph_file.map_graph_file(path, verify, progress)
        source = RelationGroup if pages.header["typed"] else Relation
        return cls._wrap(source._mapped(pages))

    @classmethod
    def _later(cls, host: Graph, device: int, pinned: bool) -> Graph:
        """Returns a copy of a graph on the CPU that is put on its device on first use."""
        relations = {
            kind: Relation._later(relation, device, pinned)
            for kind, relation in host._relations().items()
        }
        return host._with(relations, host)

    def _with(self, relations: Mapping[EdgeType, Relation], host: Graph | None = None) -> Graph:
        """Returns a graph of these types of other relations."""
        if self._relation is not None:
            return Graph._wrap(relations[_RELATION], host)
        group = self._source
        return Graph._wrap(
            RelationGroup(group._nodes, relations, group._ndata, group._labels), host
        )

    def _plain(self) -> Graph:
        """Returns this graph, which is new, without arrays of edges and nodes."""
        self._source._edata = self._source._ndata = NO_DATA
        return self

    # A subscript by edge type makes no sequence of a graph.
    __iter__ = None

    def __getitem__(self, edge_type: EdgeType | str) -> Graph:
        """Returns the relation of an edge type as a homogeneous graph on the same arrays.

        It has as many nodes as the larger of its node types. ``edge_type`` is (source type,
        relation, destination type), or the relation alone where no other edge type has it; of a
        homogeneous graph ``("_N", "_E", "_N")`` or ``"_E"``. KeyError for an edge type that the
        graph does not have.
        """
        relations = self._relations()
        if self._relation is not None:
            return ByEdgeType(dict.fromkeys(relations, self))[edge_type]
        kinds = ByEdgeType(zip(relations, relations, strict=True))
        kind: EdgeType = kinds[edge_type]
        found: Graph | None = self._views.get(kind)
        if found is None:
            # Two threads that come at once get the same graph.
            found = self._views.setdefault(kind, Graph._wrap(relations[kind]))
        return found

    def with_data(
        self,
        edge_data: Mapping[Any, Any] | None = None,
        node_data: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Another graph on the same CSC arrays, with these arrays too, as ``from_csc`` takes them.

        They replace those of the same name. The graph is on the same device; one that was put on
        a GPU is put there once more when it is first used, so add arrays before ``to`` or ``pin``.

        Parameters
        ----------
        edge_data, node_data : mapping, optional
            As for ``from_csc``.

        Raises
        ------
        TypeError, ValueError
            For what is no mapping, other numbers of rows, names and dtypes.
        """
        relations = self._relations()
        if self._relation is not None:
            return self._with({_RELATION: self._relation._with_data(edge_data, node_data)})
        of_edges = check_by_type(edge_data, "edge_data", relations)
        made = {}
        for kind, relation in relations.items():
            with of_type(kind):
                made[kind] = relation._with_data(of_edges.get(kind))
        graph = self._with(made)
        for node_type, arrays in construction.node_arrays(node_data, self._source._nodes).items():
            graph._source._ndata[node_type] = self._source._ndata[node_type].with_more(arrays)
        return graph

    def save(
        self,
        path: Any,
        *,
        arrays: Mapping[str, Any] | None = None,
        tables: Iterable[str] | None = None,
        out_edges: bool | None = None,
        progress: Progress = False,
    ) -> None:
        """Writes the graph to a file, for ``Graph.open``.

        The file is written under a temporary name in the same folder, synced to the disk and then
        renamed: a crash, a full disk or Ctrl-C leaves the file that was there before, or none. A
        graph may be saved over the file that it was opened from. One on a GPU is copied first.
        ``edata`` and ``ndata`` are written too.

        Parameters
        ----------
        path : str or os.PathLike
            A link is followed. An existing file is replaced.
        arrays : mapping of str to arrays, optional
            Further arrays of the file, by names of up to 63 bytes: any shape of bool, int8 to
            int64, uint8 to uint64, float16 to float64 or bfloat16, of NumPy, torch or anything that
            speaks DLPack, the buffer protocol or Arrow. By default the arrays of the graph itself
            (``graph.file_arrays``); ``{}`` means none. Not for a heterogeneous graph, like
            ``tables`` and ``out_edges``.
        tables : iterable of str, optional
            Names of edge arrays whose tables are written too, so that a graph opened from the file
            samples by ``prob=`` of that name at once, with the same samples: 16 bytes per edge, and
            where there are weights of 0 up to 16 more, and 8 per node. They are built now if this
            graph has none yet. By default the tables of the file that the graph was opened from;
            ``[]`` means none.
        out_edges : bool, optional
            True if the graph by its out-edges is written too, so that a graph opened from the file
            walks along them at once: 8 bytes per node, and a node id and an edge id per edge. It is
            built now if this graph has none yet. By default it is written if the file that the
            graph was opened from has it.
        progress : bool or callable
            True shows a tqdm bar when it takes more than two seconds; a function is called with
            the bytes done and in all.

        Raises
        ------
        OSError
            Where the disk is full (with the bytes that the file needs) or does not allow it.
        TypeError, ValueError
            For objects that are no arrays, names that are in use or too long, and a path of a
            folder; for ``tables`` that are no names of edge arrays, or of an array that holds no
            weights; for ``out_edges`` that is no bool. For a heterogeneous graph also for types and
            names of arrays that the format has no room for: 4096 arrays in all, whose names have up
            to 63 bytes, the type's place among them.
        """
        self._relations()
        host = self._on_cpu()
        relation, group = host._relation, host._source
        if relation is None:
            _refuse("save", arrays=arrays, tables=tables, out_edges=out_edges)
            target, relations = graph_file.as_path(path), group._open()
            graph_file.write_hetero_file(
                target, relations, group._nodes, group._ndata, group._labels, progress
            )
            return
        named = graph_file.tables(relation)
        wanted = named if tables is None else edge_arrays(tables, relation._edata)
        drawn = {name: relation._sampled_edges("prob", name) for name in wanted}
        if out_edges is None:
            out_edges = graph_file.has_out_edges(relation)
        by_out_edges = relation._transposed() if boolean(out_edges, "out_edges") else None
        graph_file.save(relation, path, arrays, drawn, by_out_edges, progress)

    def to(self, device: Any) -> Graph:
        """Returns this graph on ``device``: "cpu", "cuda", "cuda:1", an index or a torch.device.

        On its own device it is the graph itself. A graph on a GPU holds the CPU graph that it was
        copied from, and returns that for "cpu". "cuda" is torch's current device where torch uses
        CUDA, else the first.

        Raises
        ------
        TypeError, ValueError
            For anything but a device; for more types than a GPU has room for.
        CudaError
            Where there is no such device, no driver or no room, and in a forked child of a
            process that uses CUDA.
        """
        index = devices.parse(device)
        self._relations()
        # A homogeneous graph that is pinned for the device is there.
        if index == self._device and not (self._relation is None and self.pinned):
            return self
        return self._on_cpu() if index < 0 else self._placed(index, False)

    def pin(self, device: Any = "cuda") -> Graph:
        """This graph for a GPU to sample out of the host's memory, for one larger than the GPU's.

        The arrays stay where they are and are page-locked as long as the graph is open; those of up
        to 64 MiB, and those of a file, in copies, whose pages nothing else shares.

        Parameters
        ----------
        device : str, int or torch.device
            The GPU that samples; batches are there.

        Raises
        ------
        CudaError
            Where there is no such device, or the system does not allow so many locked pages.
        """
        index = devices.parse(device)
        if index < 0:
            raise ValueError(f'device: expected a CUDA device, got "cpu"; {self!r} is there')
        self._relations()
        if self.pinned and index == self._device:
            return self
        return self._placed(index, True)

    def _placed(self, index: int, pinned: bool) -> Graph:
        devices.require(index)
        host = self._on_cpu()
        relations = host._relations().items()
        made = host._with({kind: each._placed(index, pinned) for kind, each in relations}, host)
        made._handle()
        return made

    def _on_cpu(self) -> Graph:
        """Returns the graph on the CPU, which is copied from a GPU if it is there alone."""
        if self._device < 0:
            return self
        host: Graph | None = self._host
        if host is not None and host._is_open():
            return host
        relations = self._relations().items()
        return self._with({kind: relation._on_cpu() for kind, relation in relations})

    def share(self, devices: Iterable[Any], *, replicate: float = 0.0) -> tuple[Graph, ...]:
        """Returns this graph in the memory of several GPUs, each of which samples all of it.

        The arrays of edges are cut into contiguous ranges of rows of as many edges, one for each
        GPU, which reads the ranges of the others over NVLink, or PCIe where there is none. Each GPU
        has its own copy of the row offsets, 4 or 8 bytes per node. Batches are byte for byte equal
        to batches of the whole graph on one GPU. Other processes: ``pygsampler.distributed.share``.

        Tables of weights, out-edges for walks and other arrays computed from the graph later are
        laid out in the same way when they are first used.

        Parameters
        ----------
        devices : iterable of devices
            Two or more, as ``to`` takes them. A device that is named twice has two parts.
        replicate : float
            The share of the edges of which each GPU has a copy, 0 to 1: the edges that batches read
            most, by the degrees of their rows, in units of 2 MiB or more.

        Returns
        -------
        tuple of Graph
            One for each device, in their order. Closing the last of them gives the memory back.

        Raises
        ------
        TypeError, ValueError
            For anything but devices, fewer than two, and a share outside of 0 to 1.
        CudaError
            Where a GPU cannot read another one's memory, or has no room.
        """
        self._relations()
        host, given = self._on_cpu(), list(devices)
        spread: dict[EdgeType, tuple[Relation, ...]] = {}
        try:
            for kind, relation in host._relations().items():
                spread[kind] = relation._spread(given, replicate)
            return tuple(
                host._with({kind: each[place] for kind, each in spread.items()}, host)
                for place in range(len(given))
            )
        except BaseException:
            for relations in spread.values():
                for relation in relations:
                    relation.close()
            raise

    def _with_types(self, counts: Mapping[str, int]) -> Graph:
        """Returns this heterogeneous graph, with further node types that have no edges."""
        group = self._source
        nodes = dict(group._nodes)
        for kind, count in counts.items():
            nodes.setdefault(kind, count)
        if len(nodes) == len(group._nodes):
            return self
        host = None if self._host is None else self._host._with_types(counts)
        relations, ndata = self._relations(), group._ndata
        return Graph._wrap(RelationGroup(nodes, relations, ndata, group._labels), host)

    def to_networkx(
        self, *, edge_data: Iterable[str] | None = None, node_data: Iterable[str] | None = None
    ) -> Any:
        """Returns the graph as a ``networkx.MultiDiGraph``, whose nodes are labels.

        Labels are ``node_names`` or ``node_ids``, or else ids. Edges have their id as "edge_id", by
        which ``from_networkx`` numbers them again, and the values of arrays: numbers, or lists. For
        a heterogeneous graph nodes are (type, label) and have "node_type", and edges have
        "edge_type".

        Parameters
        ----------
        edge_data, node_data : iterable of str, optional
            The names of the arrays to copy; by default all, as for a heterogeneous graph.

        Raises
        ------
        ValueError
            For a name without an array, and for ``edge_ids`` that do not number the edges from 0.
        """
        host = self._on_cpu()
        if host._relation is not None:
            return networkx_conversion.graph_to_networkx(host._relation, edge_data, node_data)
        _refuse("to_networkx", edge_data=edge_data, node_data=node_data)
        group = host._source
        about = group._open(), group._nodes, group._labels, group._ndata
        return networkx_conversion.hetero_to_networkx(*about)

    def to_scipy(self, *, weight: str | None = None) -> Any:
        """Returns the graph as a sparse array of SciPy, shape [num_nodes, num_nodes].

        An entry [src, dst] is an edge; parallel edges are separate entries. It is a ``csc_array``
        on the graph's memory where an edge's id is its place (``edge_ids`` is None), else a
        ``coo_array`` by edge id: ``from_scipy`` gives the same graph. For a heterogeneous graph
        there is an array [sources, destinations] for each edge type.

        Parameters
        ----------
        weight : str, optional
            The name of the edge array that gives the values, 16-bit floats as float32: "weight"
            where there is one of shape [num_edges], else ones.

        Raises
        ------
        ValueError
            For a name without an array of shape [num_edges], and for ``edge_ids`` that do not
            number the edges from 0.
        """
        host = self._on_cpu()
        if host._relation is not None:
            shape = host._relation._num_nodes, host._relation._num_nodes
            return scipy_conversion.to_scipy(host._relation, shape, weight)
        found: ByEdgeType[Any] = ByEdgeType()
        nodes = host._source._nodes
        for kind, relation in host._relations().items():
            with of_type(kind):
                shape = nodes[kind[0]], nodes[kind[2]]
                found[kind] = scipy_conversion.to_scipy(relation, shape, weight)
        return found

    def to_dgl(
        self, *, edge_data: Iterable[str] | None = None, node_data: Iterable[str] | None = None
    ) -> Any:
        """Returns the graph as a ``dgl.DGLGraph`` on the CPU, with its CSC and its edge ids.

        Arrays of edges and nodes become ``edata`` and ``ndata``; they share their memory with this
        graph's. A heterogeneous graph becomes a heterograph with all arrays; DGL puts types into
        the order of their names.

        Parameters
        ----------
        edge_data, node_data : iterable of str, optional
            The names of the arrays to take along; by default all, as for a heterogeneous graph.

        Raises
        ------
        ValueError
            For a name without an array, and for ``edge_ids`` that do not number the edges from 0.
        """
        host = self._on_cpu()
        if host._relation is not None:
            return dgl_conversion.to_dgl(host._relation, edge_data, node_data)
        _refuse("to_dgl", edge_data=edge_data, node_data=node_data)
        group = host._source
        return dgl_conversion.to_heterograph(group._open(), group._nodes, group._ndata)

    def to_pyg(
        self, *, edge_data: Iterable[str] | None = None, node_data: Iterable[str] | None = None
    ) -> Any:
        """Returns the graph as a ``torch_geometric.data.Data`` on the CPU.

        Column i of ``edge_index`` is the edge with id i. Arrays of edges and nodes become
        attributes, which share their memory with this graph's. A heterogeneous graph becomes a
        ``HeteroData`` with all arrays.

        Parameters
        ----------
        edge_data, node_data : iterable of str, optional
            The names of the arrays to take along; by default all, as for a heterogeneous graph.

        Raises
        ------
        ValueError
            For a name without an array, or that edges and nodes both have, and for ``edge_ids``
            that do not number the edges from 0.
        """
        host = self._on_cpu()
        if host._relation is not None:
            return pyg_conversion.to_pyg(host._relation, edge_data, node_data)
        _refuse("to_pyg", edge_data=edge_data, node_data=node_data)
        group = host._source
        return pyg_conversion.to_hetero_data(group._open(), group._nodes, group._ndata)

    def to_homogeneous(
        self, *, edge_data: Iterable[str] = (), node_data: Iterable[str] = ()
    ) -> Graph:
        """Returns the graph of all nodes and edges without their types, as DGL and PyG have it.

        Nodes of the first type come first, then nodes of the second, and so on; edges are numbered
        in the same way. ``ndata["_TYPE"]`` and ``edata["_TYPE"]`` have the position of its type in
        ``node_types`` and ``edge_types`` (int32), ``"_ID"`` its id within the type (int64). Each
        call computes it anew; all arrays are copies. A homogeneous graph is returned as it is.

        Functions for homogeneous graphs take the result: walks along metapaths are
        ``RandomWalk(length, metapath=[1, 0], edge_types="_TYPE")``.

        Parameters
        ----------
        edge_data, node_data : iterable of str
            Names of arrays that all types have, which are concatenated. Concatenation needs NumPy.

        Raises
        ------
        ValueError
            For a name that some type has no array of, arrays of several dtypes or shapes of a row,
            and edge ids beyond the number of a type's edges.
        """
        self._relations()
        if self._relation is not None:
            return self
        if self._device >= 0:
            whole = self._on_cpu().to_homogeneous(edge_data=edge_data, node_data=node_data)
            return whole.to(self._device)
        return Graph.from_csc(**concatenate_relations(self, edge_data, node_data))

    def _joint(
        self,
        types: tuple[EdgeType, ...],
        first: str,
        names: tuple[str, ...],
        of_nodes: tuple[str, ...] = (),
    ) -> HomogeneousView:
        """Returns the relations of these types as one homogeneous graph, ``first``'s nodes first.

        It has edge and node arrays of these names, and is where this graph is. It is computed on
        the CPU, and cached.
        """
        key = types, first, names, of_nodes
        found = self._joints.get(key)
        if found is not None:
            found.graph._relations()
            return found
        self._relations()
        if self._device >= 0:
            joint = self._on_cpu()._joint(types, first, names, of_nodes)
            put = Graph.pin if self.pinned else Graph.to
            there = joint._replace(graph=put(joint.graph, self._device))
            return self._joints.setdefault(key, there)
        made = homogeneous_view(self, types, first, names, of_nodes)
        # Two threads that come at once get the same graph.
        return self._joints.setdefault(key, made)

    def _check_in_one_place(self) -> None:
        """Raises TypeError for a graph that has neither copies nor pickles."""
        if self.shared:
            raise TypeError(
                "Graph: expected an unshared graph to pickle, got one that devices "
                'share; pickle graph.to("cpu"), or share it anew with pygsampler.distributed.share'
            )

    def __copy__(self) -> Graph:
        """Returns a graph on the same arrays, which stays open when this one is closed."""
        self._check_in_one_place()
        made = self.with_data()
        if self._relation is None and self._device < 0:
            made._source._file = self._source._file
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        self._check_in_one_place()
        self._relations()
        if self._device >= 0:
            return Graph._later, (self._on_cpu(), self._device, self.pinned)
        return Graph._wrap, (self._source,)


def HeteroGraph(
    edges: Mapping[EdgeType, Any],
    num_nodes: Mapping[str, int] | None = None,
    *,
    edge_data: Mapping[Any, Mapping[str, Any]] | None = None,
    node_data: Mapping[str, Mapping[str, Any]] | None = None,
) -> Graph:
    """Returns the heterogeneous graph of a CSC for each edge type, as ``Graph.from_csc`` does.

    It is a ``Graph`` for which ``is_homogeneous`` is False.

    Parameters
    ----------
    edges : mapping of (str, str, str) to (indptr, indices), (indptr, indices, edge_ids) or Graph
        The edge types, as ``Graph.from_csc`` takes them as its ``indptr``.
    num_nodes, edge_data, node_data
        As for ``Graph.from_csc``.
    """
    return Graph.from_csc(edges, num_nodes=num_nodes, edge_data=edge_data, node_data=node_data)


def is_homogeneous(value: Any) -> TypeGuard[Graph]:
    """True if ``value`` is a homogeneous graph."""
    return isinstance(value, Graph) and value._relation is not None


def is_heterogeneous(value: Any) -> TypeGuard[Graph]:
    """True if ``value`` is a heterogeneous graph."""
    return isinstance(value, Graph) and value._relation is None


def _refuse(where: str, **arguments: Any) -> None:
    """Raises ValueError for an argument that a heterogeneous graph does not take."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"{name}: expected None in {where} of a heterogeneous graph, got {describe(value)}"
            )
