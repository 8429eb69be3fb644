"""``Graph``: a directed graph as the in-edge lists (CSC) that sampling reads."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pygsampler import _adapters, _engine, _input, _memory
from pygsampler._check import integer
from pygsampler.array import Array
from pygsampler.errors import ClosedError, CudaError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_Parts = tuple[Array, Array, "Array | None"]

# The words at the start of what the engine returns for a list of edges.
_COO_WORDS = 7
# Random numbers are drawn for a vertex by 48 bits of its id.
_MOST_NODES = {32: 1 << 31, 64: 1 << 48}


class Graph:
    """A directed homogeneous graph: row v of its CSC lists the in-neighbours of vertex v.

    Made by ``from_csc``, ``from_coo``, ``from_dgl``, ``from_pyg`` or ``from_scipy``. Arrays are
    taken from anything that speaks DLPack, the buffer protocol or Arrow's PyCapsule interface,
    or from sequences of int. CSC arrays are used where they lie, without a copy, and checked
    once: keep their values unchanged while the graph lives.

    One graph may be sampled from many threads at once, and in forked children. Pickling stores
    the arrays: all of their bytes, except that torch tensors which go to another process through
    ``torch.multiprocessing`` travel in shared memory. ``close()`` (or leaving a ``with`` block)
    lets go of the arrays after the batches in flight; later use raises ClosedError.
    """

    __slots__ = ("__weakref__", "_made", "_num_nodes", "_parts")

    # indptr, indices and edge_ids; None once closed.
    _parts: _Parts | None
    _num_nodes: int
    # (generation, handle): the handle is dead in any other copy of the engine.
    _made: tuple[int, int] | None

    def __init__(self) -> None:
        raise TypeError("Graph: use from_csc, from_coo, from_dgl, from_pyg or from_scipy")

    @classmethod
    def from_csc(
        cls, indptr: Any, indices: Any, *, edge_ids: Any = None, num_nodes: int | None = None
    ) -> Graph:
        """A graph on the arrays of a CSC, without a copy.

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

        Raises
        ------
        TypeError, ValueError, IndexError
            For another dtype; another shape, device or row structure; an id out of range.
        """
        offsets = Array._of_view(_input.take(indptr, "indptr"))
        neighbours = Array._of_view(_input.take(indices, "indices"))
        ids = None
        if edge_ids is not None:
            ids = Array._of_view(_input.take(edge_ids, "edge_ids"))
            if len(ids) != len(neighbours):
                raise ValueError(
                    f"edge_ids: expected one for each of {len(neighbours)} edges, got {len(ids)}"
                )
        if len(offsets) == 0:
            raise ValueError("indptr: expected at least one value (0), got an empty array")
        rows = len(offsets) - 1
        count = rows
        if num_nodes is not None:
            count = integer(num_nodes, "num_nodes", rows, _MOST_NODES[neighbours._bits])
        return cls._checked(offsets, neighbours, ids, count)

    @classmethod
    def from_coo(cls, src: Any, dst: Any, *, num_nodes: int | None = None) -> Graph:
        """A graph of the edges ``src[i] -> dst[i]``; the id of an edge is its place i.

        ``src`` and ``dst`` are int32 or int64 (both alike) of shape [E]. The CSC is built by a
        stable counting sort on all cores, so the arrays are copied and may change afterwards.
        Without ``num_nodes`` the last vertex is the largest id that occurs: give it where
        vertices after that have no edges.
        """
        sources = _input.take(src, "src")
        targets = _input.take(dst, "dst")
        if sources.bits != targets.bits:
            raise TypeError(f"dst: expected int{sources.bits} as src has, got int{targets.bits}")
        if sources.length != targets.length:
            raise ValueError(
                f"dst: expected as many values as src has ({sources.length}), got {targets.length}"
            )
        bits = sources.bits
        count = -1
        if num_nodes is not None:
            count = integer(num_nodes, "num_nodes", 0, _MOST_NODES[bits])
        memory = _memory.Memory(
            _engine.call(
                "GraphFromCOO", sources.address, targets.address, bits, sources.length, count
            )
        )
        nodes, edges, id_bits, edge_id_bits, indptr, indices, edge_ids = _memory.read_int64(
            memory.data, _COO_WORDS
        )
        return cls._checked(
            Array._of(memory.data + indptr, nodes + 1, 64, memory),
            Array._of(memory.data + indices, edges, id_bits, memory),
            Array._of(memory.data + edge_ids, edges, edge_id_bits, memory),
            nodes,
        )

    @classmethod
    def from_dgl(cls, g: Any) -> Graph:
        """The homogeneous CPU graph ``g`` of DGL 1.1 or later, by its own CSC, without a copy.

        Ids have ``g.idtype`` and edges keep DGL's ids. DGL builds the CSC first when ``g`` has
        none. Changing ``g`` later does not change this graph.
        """
        return cls._from(_adapters.of_dgl(g))

    @classmethod
    def from_pyg(cls, data: Any) -> Graph:
        """The homogeneous graph of a ``torch_geometric.data.Data``.

        From ``data.adj_t`` (a SparseTensor or a torch sparse CSR tensor) without a copy, the id
        of an edge being its place there; else from ``data.edge_index`` (row 0 sources, row 1
        targets), the id of an edge being its column.
        """
        return cls._from(_adapters.of_pyg(data))

    @classmethod
    def from_scipy(cls, m: Any) -> Graph:
        """The graph whose adjacency is the sparse matrix ``m``: an entry [src, dst] is an edge.

        Column v of a CSC matrix lists the in-neighbours of v, so that form is used without a
        copy; others are converted. The id of an edge is the place of its entry in ``m.data`` (in
        ``m.tocoo().data`` for formats other than CSC, CSR and COO). Stored zeros and repeated
        entries are edges too. The number of vertices is the larger side of ``m``.
        """
        return cls._from(_adapters.of_scipy(m))

    @classmethod
    def _from(cls, parts: _adapters.Csc | _adapters.Coo) -> Graph:
        if isinstance(parts, _adapters.Coo):
            return cls.from_coo(parts.src, parts.dst, num_nodes=parts.num_nodes)
        return cls.from_csc(
            parts.indptr, parts.indices, edge_ids=parts.edge_ids, num_nodes=parts.num_nodes
        )

    @classmethod
    def _checked(
        cls, indptr: Array, indices: Array, edge_ids: Array | None, num_nodes: int
    ) -> Graph:
        graph = object.__new__(cls)
        graph._made = None
        graph._parts = (indptr, indices, edge_ids)
        graph._num_nodes = num_nodes
        graph._handle()
        return graph

    @property
    def num_nodes(self) -> int:
        """Number of vertices."""
        return self._num_nodes

    @property
    def num_edges(self) -> int:
        """Number of edges; parallel edges count each."""
        return len(self.indices)

    @property
    def dtype(self) -> str:
        """``"int32"`` or ``"int64"``: the dtype of ``indices`` and of every sampled vertex id."""
        return self.indices.dtype

    @property
    def device(self) -> str:
        """``"cpu"``."""
        return "cpu"

    @property
    def indptr(self) -> Array:
        """Row offsets, shape [R + 1], R <= num_nodes; the caller's memory."""
        return self._open()[0]

    @property
    def indices(self) -> Array:
        """In-neighbours by row, shape [num_edges]; the caller's memory."""
        return self._open()[1]

    @property
    def edge_ids(self) -> Array | None:
        """Original edge ids, shape [num_edges]; None when an edge's id is its place."""
        return self._open()[2]

    def to(self, device: Any) -> Graph:
        """This graph on another device; the CPU is the only one in this version (CudaError)."""
        self._open()
        name = str(device)
        if name == "cpu" or name.startswith("cpu:"):
            return self
        raise CudaError(f'device: expected "cpu", got {name!r}; this version has no CUDA engine')

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done. Closing twice is fine."""
        with _engine.handle_lock():
            made, self._made = self._made, None
            parts, self._parts = self._parts, None
        _give_back(made)
        # Only now may the arrays go: a batch in flight was reading them.
        del parts

    def __enter__(self) -> Graph:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # The engine has ended by then, and this module's names are gone.
        if ending():
            return
        made = getattr(self, "_made", None)
        self._made = None
        _give_back(made)

    def __repr__(self) -> str:
        if self._parts is None:
            return "Graph(closed)"
        return (
            f"Graph(num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
            f"dtype={self.dtype}, device={self.device})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph._checked, (*self._open(), self._num_nodes)

    def _open(self) -> _Parts:
        parts = self._parts
        if parts is None:
            raise ClosedError("graph: expected an open graph, got one that was closed")
        return parts

    def _handle(self) -> int:
        """The handle in this process's engine, made anew after a fork."""
        made, parts = self._made, self._open()
        if made is not None and made[0] == _engine.generation() and not _moved(parts):
            return made[1]
        with _engine.handle_lock():
            made, parts = self._made, self._open()
            if made is None or made[0] != _engine.generation() or _moved(parts):
                self._made = None
                _give_back(made)
                indptr, indices, edge_ids = parts
                self._parts = (
                    _where_it_is(indptr, "indptr"),
                    _where_it_is(indices, "indices"),
                    None if edge_ids is None else _where_it_is(edge_ids, "edge_ids"),
                )
                made = self._made = (_engine.generation(), _new(self._parts, self._num_nodes))
            return made[1]


def _new(parts: _Parts, num_nodes: int) -> int:
    indptr, indices, edge_ids = parts
    ids_address, ids_bits = 0, 64
    if edge_ids is not None:
        ids_address, ids_bits = edge_ids._address, edge_ids._bits
    handle: int = _engine.call(
        "GraphNew",
        indptr._address,
        indptr._bits,
        len(indptr) - 1,
        indices._address,
        indices._bits,
        len(indices),
        ids_address,
        ids_bits,
        num_nodes,
    )
    return handle


def _give_back(made: tuple[int, int] | None) -> None:
    if made is not None and _engine.alive(made[0]):
        with suppress(ClosedError):
            _engine.call("GraphClose", made[1])


def _moved(parts: _Parts) -> bool:
    return any(part is not None and _input.moved(part._owner, part._address) for part in parts)


def _where_it_is(part: Array, where: str) -> Array:
    """``part``, or a view of the same tensor where torch has put it meanwhile."""
    if not _input.moved(part._owner, part._address):
        return part
    return Array._of_view(_input.take(part._owner, where))
