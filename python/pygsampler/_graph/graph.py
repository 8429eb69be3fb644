"""``Graph``: a directed graph as the in-edge lists (CSC) that sampling reads."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.ids import ANYWHERE, as_ids
from pygsampler._arrays.interning import IDS, intern
from pygsampler._arrays.mmap_file import Identity, MappedFile
from pygsampler._engine.checks import boolean, integer
from pygsampler._graph import (
    converters,
    dgl_conversion,
    networkx_conversion,
    node_names,
    pyg_conversion,
    scipy_conversion,
    shared_arrays,
)
from pygsampler._graph import csc_arrays as host_graph
from pygsampler._graph import file as graph_file
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.degrees import degrees_of
from pygsampler._graph.file_sections import array_names as edge_arrays
from pygsampler._graph.relation import Relation
from pygsampler._graph.reverse_edges import reverse_edge_ids
from pygsampler._graph.schema import HOMOGENEOUS, ByEdgeType, EdgeType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pygsampler._engine.progress import Progress
    from pygsampler._graph.node_names import NodeNames

__all__ = ["Graph"]

R = TypeVar("R", bound=Relation)


def __dir__() -> list[str]:
    return sorted(__all__)


class Graph(Relation):
    """A directed homogeneous graph: row v of its CSC lists the in-neighbours of vertex v.

    Made by ``from_csc``, ``from_coo``, ``from_dgl``, ``from_pyg`` or ``from_scipy``, or by ``open``
    from a file. Arrays are taken from anything that speaks DLPack, the buffer protocol or Arrow's
    PyCapsule interface, or from sequences of int. CSC arrays are used where they lie, without a
    copy, and checked once: keep their values unchanged while the graph lives.

    One graph may be sampled from many threads at once, and in forked children. Pickling stores
    the arrays: all of their bytes, except that torch tensors which go to another process through
    ``torch.multiprocessing`` travel in shared memory. ``close()`` (or leaving a ``with`` block)
    lets go of the arrays after the batches in flight; later use raises ClosedError.

    ``to("cuda")`` copies the graph to a GPU and ``pin()`` lets a GPU read it in page-locked host
    memory; from then on sampling runs there, and batches are there. A forked child cannot use its
    parent's GPU: there ``to("cpu")`` gives the graph to sample. A graph on a GPU is pickled by
    its arrays on the host, and goes back to its GPU when it is first used.

    A graph carries named arrays of any dtype and shape, a row for each edge (``edata``) or vertex
    (``ndata``): those that ``from_csc`` and ``from_coo`` are given, those of other libraries'
    graphs, and those that ``with_data`` adds. They stay in CPU memory wherever the graph is, used
    where they lie, and go along into pickles and files.

    ``save`` writes a file that ``Graph.open`` maps into memory, at once whatever its size; further
    arrays may stand beside the graph in it. An opened graph is pickled by its path, so that all
    processes share the pages of the file.
    """

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError("Graph: use open, from_csc, from_coo, from_dgl, from_networkx, ...")

    @classmethod
    def from_csc(
        cls,
        indptr: Any,
        indices: Any,
        *,
        edge_ids: Any = None,
        num_nodes: int | None = None,
        edge_data: Mapping[str, Any] | None = None,
        node_data: Mapping[str, Any] | None = None,
    ) -> Graph:
        """A graph on the arrays of a CSC, without a copy.

        Arrays on a CUDA device (all on one; DLPack or ``__cuda_array_interface__``) make a graph
        there.

        Parameters
        ----------
        indptr : int32 or int64, shape [R + 1]
            Row v is ``indices[indptr[v]:indptr[v + 1]]``; monotone, from 0 to E.
        indices : int32 or int64, shape [E]
            The in-neighbours. Their dtype is the graph's: every sampled id has it.
        edge_ids : int32 or int64, shape [E], optional
            The original id of each edge; without them an edge's id is its place in ``indices``.
        num_nodes : int, optional
            At least R; vertices past the last row have no in-edges. R when not given.
        edge_data : mapping of str to arrays of shape [E, ...], optional
            What ``edata`` shows, by names of up to 53 bytes: bool, int8 to int64, uint8 to uint64,
            float16 to float64 or bfloat16, of NumPy, torch or anything that speaks DLPack, the
            buffer protocol or Arrow. Row i is of the edge whose id is i, so with ``edge_ids`` there
            may be more than E rows. Used without a copy in CPU memory; a torch tensor on a GPU is
            copied from there.
        node_data : mapping of str to arrays of shape [num_nodes, ...], optional
            What ``ndata`` shows, a row for each vertex.

        Raises
        ------
        TypeError, ValueError, IndexError
            For another dtype; another shape, device, row structure or name; an id out of range.
        """
        near = ANYWHERE
        offsets = Array._of_view(as_ids(indptr, "indptr", near))
        neighbours = Array._of_view(as_ids(indices, "indices", near))
        ids = None
        if edge_ids is not None:
            ids = Array._of_view(as_ids(edge_ids, "edge_ids", near))
            if len(ids) != len(neighbours):
                raise ValueError(
                    f"edge_ids: expected one for each of {len(neighbours)} edges, got {len(ids)}"
                )
        if len(offsets) == 0:
            raise ValueError("indptr: expected at least one value (0), got an empty array")
        rows = len(offsets) - 1
        count = rows
        if num_nodes is not None:
            count = integer(num_nodes, "num_nodes", rows, host_graph.MOST_NODES[neighbours._bits])
        graph = cls._checked(offsets, neighbours, ids, count)
        return graph._furnished(edge_data, node_data)

    @classmethod
    def from_coo(
        cls,
        src: Any,
        dst: Any,
        *,
        num_nodes: int | None = None,
        renumber: bool = False,
        edge_data: Mapping[str, Any] | None = None,
        node_data: Mapping[str, Any] | None = None,
    ) -> Graph:
        """A graph of the edges ``src[i] -> dst[i]``; the id of an edge is its place i.

        The CSC is built by a stable counting sort on all cores, so the arrays are copied and may
        change afterwards.

        Parameters
        ----------
        src, dst : int32 or int64, shape [E]
            Ids that number the nodes from 0. Of one int32 and one int64 array both become int64.
            With ``renumber`` also names: lists of str, NumPy's str and object arrays, strings and
            categories of pandas and Arrow.
        num_nodes : int, optional
            Without it the last vertex is the largest id that occurs: give it where vertices after
            that have no edges.
        renumber : bool
            True numbers the nodes from 0 by ascending id or name, for names, and for ids that have
            gaps, such as hashes. ``graph.node_names`` or ``graph.node_ids`` have the old ones, and
            ``graph.index_of`` finds nodes by them. Needs NumPy.
        edge_data : mapping of str to arrays of shape [E, ...], optional
            As for ``from_csc``; row i is of the edge ``src[i] -> dst[i]``. Not copied.
        node_data : mapping of str to arrays of shape [num_nodes, ...], optional
            As for ``from_csc``.

        Raises
        ------
        TypeError, ValueError, IndexError
            As ``from_csc``.
        """
        interned = None
        if boolean(renumber, "renumber"):
            if num_nodes is not None:
                raise ValueError(
                    "num_nodes: expected None with renumber=True, which counts the ids that occur, "
                    f"got {num_nodes!r}"
                )
            interned = intern({"src": src, "dst": dst})
            (src, dst), num_nodes = interned.numbers, interned.num_nodes
        graph = cls._checked(*host_graph.csc_from_edges(src, dst, num_nodes))
        if interned is not None:
            graph._arrays = node_names.label_arrays(interned)
        if edge_data is not None:
            edges = graph_data.RowCount(graph_data.EDGES, graph.num_edges)
            edge_data = graph_data.check_named_arrays(edge_data, edges)
        return graph._furnished(edge_data, node_data)

    @classmethod
    def from_dgl(cls, g: Any) -> Graph:
        """The homogeneous CPU graph ``g`` of DGL 1.1 or later, by its own CSC, without a copy.

        Ids have ``g.idtype`` and edges keep DGL's ids. DGL builds the CSC first when ``g`` has
        none. Changing ``g`` later does not change this graph. A heterograph is a TypeError.

        ``edata`` and ``ndata`` are those of ``g``, without a copy (a subgraph of DGL's selects its
        rows when they are first read), but for ids of another graph (``dgl.NID``, ``dgl.EID``).
        """
        return cls._from(converters.csc_from_dgl(g))

    @classmethod
    def from_networkx(
        cls,
        g: Any,
        *,
        edge_attrs: Iterable[str] | None = None,
        node_attrs: Iterable[str] | None = None,
    ) -> Graph:
        """The graph ``g`` of NetworkX, with or without directions, simple or with parallel edges.

        Nodes that are the integers 0 to n - 1 keep their ids, in whatever order they were added.
        Others are numbered in ``g``'s order: ``node_ids`` has integers, ``node_names`` str, and
        ``index_of`` finds both.

        The id of an edge is its place in ``g.edges``, or the attribute "edge_id" of a graph that
        ``to_networkx`` made. Without directions the edges of E that are no self loops are also, in
        their order, the edges from E on, backwards; ``reverse_edge_ids`` says which is whose.

        Parameters
        ----------
        edge_attrs : iterable of str, optional
            Attributes that all edges have, numbers, rows of numbers or dates: ``edata`` has them by
            edge id. Without it that is "weight", if all edges have it and it is a number: int64
            where all are ints, else float64.
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
        return cls._from(networkx_conversion.coo_from_networkx(g, edge_attrs, node_attrs))

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """The homogeneous graph of a ``torch_geometric.data.Data``.

        From ``data.adj_t`` (a SparseTensor or a torch sparse CSR tensor) without a copy, the id
        of an edge being its place there; else from ``data.edge_index`` (row 0 sources, row 1
        targets), the id of an edge being its column. HeteroData is a TypeError.

        What ``data.is_node_attr`` and ``is_edge_attr`` call so is in ``ndata`` and ``edata`` by the
        same name, where it is a plain tensor of a dtype that ``from_csc`` takes: without a copy,
        and without "batch", "ptr" and "edge_label". With an ``adj_t``, attributes of edges may
        be in the order of an ``edge_index``, so that only its own values are taken: as
        "edge_weight", where PyG's ``ToSparseTensor`` had them from, or "edge_attr" if they are
        rows.
        """
        return cls._from(converters.csc_from_pyg(data))

    @classmethod
    def from_scipy(cls, m: Any, *, bipartite: bool = False) -> Graph:
        """The graph whose adjacency is the sparse matrix ``m``: an entry [src, dst] is an edge.

        Column v of a CSC matrix lists the in-neighbours of v, so that form is used without a
        copy; others are converted. The id of an edge is the place of its entry in ``m.data`` (in
        ``m.tocoo().data`` for formats other than CSC, CSR and COO). Stored zeros and repeated
        entries are edges too. ``edata["weight"]`` is ``m.data``, without a copy, unless it is
        complex or of objects.

        Parameters
        ----------
        m : scipy.sparse matrix or array, shape [num_nodes, num_nodes]
        bipartite : bool
            True takes rows and columns for different nodes, and a matrix of any shape [R, C]: rows
            are the nodes 0 to R - 1, columns the nodes R to R + C - 1.
            ``HeteroGraph.from_scipy`` keeps the two apart.

        Raises
        ------
        TypeError, ValueError
            For anything else, and for a matrix that is not square without ``bipartite``.
        """
        parts = converters.csc_from_scipy(m)
        if boolean(bipartite, "bipartite"):
            return cls._from(converters.behind(parts, m.shape[0]))
        keeping = 'HeteroGraph.from_scipy({("user", "to", "item"): m}) keeps them apart'
        converters.square(m.shape, "m", f"{keeping}, bipartite=True numbers columns behind rows")
        return cls._from(parts)

    @classmethod
    def open(cls, path: Any, *, verify: bool = False, progress: Progress = False) -> Graph:
        """The graph in a file that ``save`` or ``pygsampler convert`` wrote, mapped into memory.

        Header and sizes are checked, and nothing else is read before it is used, so that a file of
        any size opens at once; the pages that were read are shared by all processes. What changes
        under the file's name later does not change this graph, but the file itself must not be
        written to or made shorter. docs/developer/file-format.md says what is trusted.

        Parameters
        ----------
        path : str or os.PathLike
        verify : bool
            Read all of the file and compare its checksums: for one that may be damaged.
        progress : bool or callable
            As for ``save``, while that goes on.

        Raises
        ------
        OSError
            Where the system cannot open or map the file, such as FileNotFoundError.
        ValueError
            For a file that is no graph file, is damaged or cut short, or was written by a newer
            version.
        """
        pages = graph_file.map_graph_file(path, verify, progress)
        if pages.header["typed"]:
            raise ValueError(
                f"{pages.path}: expected a graph without types, got one with types; "
                "HeteroGraph.open opens it"
            )
        return cls._mapped(pages)

    @classmethod
    def _from(cls, parts: converters.Csc | converters.Coo) -> Graph:
        if isinstance(parts, converters.Coo):
            graph = cls._completed(
                cls.from_coo(parts.src, parts.dst, num_nodes=parts.num_nodes), parts
            )
        else:
            graph = cls.from_csc(
                parts.indptr, parts.indices, edge_ids=parts.edge_ids, num_nodes=parts.num_nodes
            )
        edges, nodes = graph._rows()
        graph._edata = graph_data.offered(parts.edge_data, edges)
        graph._ndata = graph_data.offered(parts.node_data, nodes)
        return graph

    @classmethod
    def _completed(cls, graph: Graph, parts: converters.Coo) -> Graph:
        """``graph`` with the arrays that ``parts`` has beyond its edges."""
        if parts.arrays:
            named = {name: as_array(value, name) for name, value in parts.arrays.items()}
            graph._arrays = MappingProxyType(named)
        return graph

    @classmethod
    def _mapped(cls, pages: MappedFile) -> Graph:
        parts, beside = graph_file.arrays_of(pages)
        graph = cls._new(parts, pages.header["num_nodes"])
        graph._file = pages
        edges, nodes = graph._rows()
        graph._edata = graph_data.arrays_from_file(beside, edges, pages)
        graph._ndata = graph_data.arrays_from_file(beside, nodes, pages)
        graph._arrays = MappingProxyType(beside)
        graph._handle()
        return graph

    @classmethod
    def _reopened(cls, path: str, identity: Identity, *part: Any) -> Graph:
        """An opened graph that was pickled; ValueError where its path is another file's now."""
        pages = MappedFile.reopened(path, identity)
        return cls._mapped(pages.within(*part) if part else pages)

    @classmethod
    def _beside(cls, *checked_and_arrays: Any) -> Graph:
        """A graph in memory that was pickled with arrays beside it."""
        *checked, arrays = checked_and_arrays
        graph = cls._checked(*checked)
        graph._arrays = MappingProxyType(arrays)
        return graph

    def _furnished(self, edge_data: Any, node_data: Any) -> Graph:
        """This graph, which is new, with these arrays too."""
        if edge_data is None and node_data is None:
            return self
        edges, nodes = self._rows()
        self._edata = self._edata.with_more(graph_data.check_named_arrays(edge_data, edges))
        self._ndata = self._ndata.with_more(graph_data.check_named_arrays(node_data, nodes))
        return self

    def _plain(self) -> Graph:
        """This graph, which is new, without arrays of edges and vertices."""
        self._edata = self._ndata = graph_data.NO_DATA
        return self

    @classmethod
    def _derived_type(cls: type[R]) -> type[R]:
        # Rows that are sampled here, of a partitioned graph too.
        return cast("type[R]", Graph)

    @property
    def is_homogeneous(self) -> bool:
        """True: nodes and edges are of one type each, which nobody named."""
        return True

    @property
    def node_types(self) -> tuple[str, ...]:
        """``("_N",)``, the type of all nodes, by the name that DGL has for it."""
        return HOMOGENEOUS.node_types

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """``(("_N", "_E", "_N"),)``, the type of all edges, by the name that DGL has for it."""
        return HOMOGENEOUS.edge_types

    # A subscript by edge type makes no sequence of a graph.
    __iter__ = None

    def __getitem__(self, edge_type: EdgeType | str) -> Graph:
        """Returns the graph itself for ``("_N", "_E", "_N")`` or ``"_E"``; KeyError for others."""
        self._known()
        return ByEdgeType(dict.fromkeys(HOMOGENEOUS.edge_types, self))[edge_type]

    @property
    def node_names(self) -> NodeNames | None:
        """The names of nodes by id, as a sequence of str; None where they have none.

        They are those of ``from_coo(..., renumber=True)``, of ``from_networkx`` and of files.
        ``node_names[block.src_nodes]`` is a list of the names of a block's nodes.
        """
        self._known()
        return node_names.names_of(self._arrays)

    @property
    def node_ids(self) -> Array | None:
        """The ids that nodes had before they were numbered, int64, shape [num_nodes]; or None."""
        self._known()
        return self._arrays.get(IDS)

    def index_of(self, labels: Any) -> Any:
        """The ids of nodes by the names or ids that they had before they were numbered.

        Parameters
        ----------
        labels : sequence of str, or of int
            As ``node_names`` or ``node_ids`` have them; one alone gives an int.

        Returns
        -------
        Array
            Ids in the graph's dtype, as every sampler and loader takes them; needs NumPy.

        Raises
        ------
        KeyError
            For labels that no node has, by the first of them.
        TypeError, ValueError
            For integers where nodes have names and the other way round, and for a graph whose nodes
            have neither.
        """
        self._known()
        arrays = self._on_cpu()._arrays
        lookup = self._kept(("lookup",), lambda: node_names.Lookup(arrays))
        return node_names.index_of(lookup, labels, "labels", self.dtype)

    def in_degrees(self, nodes: Any = None) -> Any:
        """Returns the number of edges into each node, int64, shape [num_nodes], on the CPU.

        Parameters
        ----------
        nodes : int, or int32 or int64, shape [N], optional
            The nodes to tell it of, in their order; one alone gives an int. Needs NumPy.

        Raises
        ------
        IndexError
            For ids that are no nodes.
        """
        self._known()
        return degrees_of(self._on_cpu(), "in", self._num_nodes, nodes)

    def out_degrees(self, nodes: Any = None) -> Any:
        """Returns the number of edges from each node, as ``in_degrees`` does for edges into it;
        each call reads the whole graph."""
        self._known()
        return degrees_of(self._on_cpu(), "out", self._num_nodes, nodes)

    def reverse_edge_ids(self) -> Array:
        """Returns for each edge, by its id, the id of its reverse: int64, shape [num_edges], CPU.

        A self loop is its own reverse. In a graph that was made of edges without directions
        (``from_networkx``, ``datasets.read(..., undirected=True)``), and in any whose edges stand
        once more, backwards and in their order, behind the others, the two copies belong together;
        else the i-th edge from u to v by id belongs to the i-th edge from v to u. It is computed
        anew by each call. Needs NumPy.

        Raises
        ------
        ValueError
            For a graph with an edge that has no reverse, which it names, and for ``edge_ids`` that
            do not number the edges from 0.
        """
        self._known()
        host = self._on_cpu()
        return reverse_edge_ids(host, host, ("the graph", "the graph"))

    def with_data(
        self,
        edge_data: Mapping[str, Any] | None = None,
        node_data: Mapping[str, Any] | None = None,
    ) -> Graph:
        """Another graph on the same CSC arrays, with these arrays too, as ``from_csc`` takes them.

        They replace those of the same name. The graph is on the same device; one that was put on
        a GPU is put there once more when it is first used, so add arrays before ``to`` or ``pin``.

        Raises
        ------
        TypeError, ValueError
            For what is no mapping, other numbers of rows, names and dtypes.
        """
        edges, nodes = self._rows()
        return self._with_more(
            graph_data.check_named_arrays(edge_data, edges),
            graph_data.check_named_arrays(node_data, nodes),
        )

    def _with_more(self, edges: graph_data.NamedArrays, nodes: graph_data.NamedArrays) -> Graph:
        if self._host is not None:
            host = self._on_cpu()._with_more(edges, nodes)
            return Graph._later(host, self._device, self._pinned, self._seat)
        graph = Graph._new(self._open(), self._num_nodes, self._device)
        graph._file, graph._arrays = self._file, self._arrays
        graph._edata = self._edata.with_more(edges)
        graph._ndata = self._ndata.with_more(nodes)
        return graph

    @property
    def path(self) -> Path | None:
        """The file that the graph was opened from; None for one that was made in memory."""
        self._known()
        host = self if self._host is None else self._host
        return None if host._file is None else Path(host._file.path)

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
            What stands beside the graph in the file, by names of up to 63 bytes: any shape of
            bool, int8 to int64, uint8 to uint64, float16 to float64 or bfloat16, of NumPy, torch
            or anything that speaks DLPack, the buffer protocol or Arrow. Those of the graph itself
            (``graph.file_arrays``) when not given; ``{}`` means none.
        tables : iterable of str, optional
            Names of edge arrays whose tables are written too, so that a graph opened from the file
            samples by ``prob=`` of that name at once, with the same samples: 16 bytes an edge, and
            where there are weights of 0 up to 16 more, and 8 a vertex. They are made now if this
            graph has none yet. Those of the file that the graph was opened from when not given;
            ``[]`` means none.
        out_edges : bool, optional
            Whether the graph by its out-edges is written too, so that one opened from the file
            walks along them at once: 8 bytes a vertex, and an id of a vertex and one of an edge
            for each edge. It is made now if this graph has none yet. Where the file that the graph
            was opened from has it, when not given.
        progress : bool or callable
            True shows a tqdm bar when it takes more than two seconds; a function is called with
            the bytes done and in all.

        Raises
        ------
        OSError
            Where the disk is full (with the bytes that the file needs) or does not allow it.
        TypeError, ValueError
            For arrays that are none, names that are taken or too long, and a path of a folder;
            for ``tables`` that are no names of edge arrays, or of an array that holds no weights;
            for ``out_edges`` that is no bool.
        """
        self._known()
        host = self._on_cpu()
        wanted = graph_file.tables(host) if tables is None else edge_arrays(tables, host._edata)
        drawn = {name: host._drawn_by("prob", name) for name in wanted}
        if graph_file.has_out_edges(host) if out_edges is None else boolean(out_edges, "out_edges"):
            by_out_edges = host._transposed()
        else:
            by_out_edges = None
        graph_file.save(host, path, arrays, drawn, by_out_edges, progress)

    def to(self, device: Any) -> Graph:
        """This graph on another device: "cpu", "cuda", "cuda:1", an index or a torch.device.

        On the device that it is on already it is the graph itself. A graph on a GPU keeps the one
        on the CPU that it was made from, and gives it back. "cuda" is torch's current device where
        torch uses CUDA, else the first.

        Raises
        ------
        TypeError, ValueError
            For anything but a device.
        CudaError
            Where there is no such device, no driver or no room, and in a forked child of a
            process that uses CUDA.
        """
        index = devices.parse(device)
        self._known()
        if index == self._device:
            return self
        if index < 0:
            return self._on_cpu()
        devices.require(index)
        return _placed(Graph._later(self._on_cpu(), index, False))

    def pin(self, device: Any = "cuda") -> Graph:
        """This graph for a GPU to sample out of the host's memory, for one larger than the GPU's.

        The arrays stay where they are and are page-locked as long as the graph is open; those of up
        to 64 MiB, and those of a file, in copies, whose pages nothing else shares. ``device`` names
        the GPU; its batches are there.

        Raises
        ------
        CudaError
            Where there is no such device, or the system does not allow so many locked pages.
        """
        index = devices.parse(device)
        if index < 0:
            raise ValueError(f'device: expected a CUDA device, got "cpu"; {self!r} is there')
        self._known()
        if self._pinned and index == self._device:
            return self
        devices.require(index)
        return _placed(Graph._later(self._on_cpu(), index, True))

    def to_networkx(
        self, *, edge_data: Iterable[str] | None = None, node_data: Iterable[str] | None = None
    ) -> Any:
        """The graph as a ``networkx.MultiDiGraph``, whose nodes are labels.

        Nodes are called by their ``node_names`` or ``node_ids``, or else by their ids. Edges have
        their id as "edge_id", by which ``from_networkx`` numbers them again, and the values of
        arrays: numbers, or lists.

        Parameters
        ----------
        edge_data, node_data : iterable of str, optional
            The names of the arrays to take along; all when not given.

        Raises
        ------
        ValueError
            For a name without an array, and for ``edge_ids`` that do not number the edges from 0.
        """
        self._known()
        return networkx_conversion.graph_to_networkx(self._on_cpu(), edge_data, node_data)

    def to_scipy(self, *, weight: str | None = None) -> Any:
        """The graph as a sparse array of SciPy, shape [num_nodes, num_nodes].

        An entry [src, dst] is an edge; parallel edges are entries of their own. It is a
        ``csc_array`` on the graph's memory where an edge's id is its place (``edge_ids`` is None),
        else a ``coo_array`` by edge id: ``from_scipy`` gives the same graph.

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
        self._known()
        shape = self._num_nodes, self._num_nodes
        return scipy_conversion.to_scipy(self._on_cpu(), shape, weight)

    def to_dgl(
        self, *, edge_data: Iterable[str] | None = None, node_data: Iterable[str] | None = None
    ) -> Any:
        """The graph as a ``dgl.DGLGraph`` on the CPU, by its CSC, with the ids of its edges.

        Arrays of edges and nodes, all or those of the given names, become ``edata`` and ``ndata``;
        they share their memory with this graph's.

        Raises
        ------
        ValueError
            For a name without an array, and for ``edge_ids`` that do not number the edges from 0.
        """
        self._known()
        return dgl_conversion.to_dgl(self._on_cpu(), edge_data, node_data)

    def to_pyg(
        self, *, edge_data: Iterable[str] | None = None, node_data: Iterable[str] | None = None
    ) -> Any:
        """The graph as a ``torch_geometric.data.Data`` on the CPU.

        Column i of ``edge_index`` is the edge with id i. Arrays of edges and nodes, all or those of
        the given names, become attributes, which share their memory with this graph's.

        Raises
        ------
        ValueError
            For a name without an array, or that edges and nodes both have, and for ``edge_ids``
            that do not number the edges from 0.
        """
        self._known()
        return pyg_conversion.to_pyg(self._on_cpu(), edge_data, node_data)

    def share(self, devices: Iterable[Any], *, replicate: float = 0.0) -> tuple[Graph, ...]:
        """This graph in the memory of several GPUs, each of which samples all of it.

        The arrays of edges are cut into contiguous ranges of rows of as many edges, one for each
        GPU, which reads those of the others over NVLink, or PCIe where there is none. Where rows
        begin, 4 or 8 bytes a vertex, each GPU has itself. Batches are those of the whole graph on
        one GPU, byte for byte. Other processes: ``pygsampler.distributed.share``.

        Tables of weights, out-edges for walks and whatever else is made of the graph later are
        laid out in the same way when they are first used.

        Parameters
        ----------
        devices : iterable of devices
            Two or more, as ``to`` takes them. One that is named twice has two parts.
        replicate : float
            The share of the edges of which each GPU has a copy, 0 to 1: those that batches read
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
        self._known()
        group = shared_arrays.device_group(devices, replicate)
        host = self._on_cpu()
        made: list[Graph] = []
        try:
            for place, index in enumerate(group.devices):
                made.append(
                    Graph._later(host, index, False, shared_arrays.GroupPlacement(group, place))
                )
                made[-1]._handle()
        except BaseException:
            for graph in made:
                graph.close()
            raise
        return tuple(made)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._whole is not None:
            raise TypeError("Graph: expected the graph that it was made of, got a form to pickle")
        if self._seat is not None:
            raise TypeError(
                "Graph: expected a graph that lies in one place to pickle, got one that devices "
                'share; pickle graph.to("cpu"), or share it anew with pygsampler.distributed.share'
            )
        if self._device >= 0:
            self._known()
            return Graph._later, (self._on_cpu(), self._device, self._pinned)
        parts = self._open()
        made: tuple[Any, ...] = Graph._checked, (*parts[:3], self._num_nodes)
        if self._file is not None:
            made = Graph._reopened, (self._file.path, self._file.identity, *self._file.part)
        elif self._arrays:
            made = Graph._beside, (*parts[:3], self._num_nodes, dict(self._arrays))
        data = self._edata.unstored(), self._ndata.unstored()
        return (*made, data) if any(data) else made

    def __setstate__(self, data: tuple[Any, Any]) -> None:
        self._furnished(*data)


def _placed(graph: Graph) -> Graph:
    graph._handle()
    return graph
