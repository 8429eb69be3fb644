"""``Relation``: the edges of one type as a CSC, and the relations that samplers derive of it."""

from __future__ import annotations

import weakref
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pygsampler._arrays import devices
from pygsampler._arrays.mmap_file import Identity, MappedFile
from pygsampler._engine import library
from pygsampler._graph import device as device_graph
from pygsampler._graph import file as graph_file
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph import shared_arrays
from pygsampler._graph.csc_arrays import CscArrays
from pygsampler._graph.derived import DegreeAliasTable, degree_alias_table, transpose, weight_tables
from pygsampler._graph.program_arrays import NONE_NAMED, ProgramArrayNames, ProgramArrays
from pygsampler._graph.relation_state import ParentRelation, Placement, RelationState
from pygsampler._graph.temporal import TimeSortedBySource, TimeSortedRelation, sort_by_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from pygsampler._arrays.array import Array
    from pygsampler._arrays.datetimes import Kind

__all__ = ["Relation"]

K = TypeVar("K")
R = TypeVar("R", bound="Relation")
# The key of the transposed relation whose rows are not split by types.
_OUT = "out", None, 0


class Relation(RelationState):
    """The edges of one type: a CSC, its named arrays, and the relations that are derived of it.

    Samplers take a relation for a homogeneous graph. A derived relation has the edges with weights,
    those that a mask leaves, rows sorted by time, out-edges for walks, or the same edges with the
    arrays that a program reads. It is computed on first use and closed with this one.
    """

    __slots__ = ()

    is_homogeneous = True

    @property
    def _relation(self: R) -> R:
        """The relation itself, as of a homogeneous graph."""
        return self

    @property
    def _source(self: R) -> R:
        """The relation itself, as of a homogeneous graph."""
        return self

    @classmethod
    def _checked(
        cls: type[R], indptr: Array, indices: Array, edge_ids: Array | None, num_nodes: int
    ) -> R:
        parts = CscArrays(indptr, indices, edge_ids)
        graph = cls._new(parts, num_nodes, device_graph.together(parts))
        graph._handle()
        return graph

    @classmethod
    def _new(
        cls: type[R],
        arrays: CscArrays | None,
        num_nodes: int,
        device: int = -1,
        host: RelationState | None = None,
        pinned: bool = False,
        seat: Placement | None = None,
    ) -> R:
        graph = object.__new__(cls)
        graph._hold(arrays, num_nodes, device, host, pinned, seat)
        return graph

    @classmethod
    def _later(
        cls: type[R], host: Relation, device: int, pinned: bool, seat: Placement | None = None
    ) -> R:
        """Returns a relation that is copied to its device on first use."""
        return cls._new(None, host._num_nodes, device, host, pinned, seat)

    @classmethod
    def _mapped(cls: type[R], pages: MappedFile) -> R:
        """Returns the relation in a file, or in a part of one."""
        parts, beside = graph_file.arrays_of(pages)
        made = cls._new(parts, pages.header["num_nodes"])
        made._file = pages
        edges, nodes = made._row_counts()
        made._edata = graph_data.arrays_from_file(beside, edges, pages)
        made._ndata = graph_data.arrays_from_file(beside, nodes, pages)
        made._arrays = MappingProxyType(beside)
        made._handle()
        return made

    @classmethod
    def _reopened(cls: type[R], path: str, identity: Identity, *part: Any) -> R:
        """Returns the relation of a pickle; ValueError if its path is another file's now."""
        pages = MappedFile.reopened(path, identity)
        return cls._mapped(pages.within(*part) if part else pages)

    @classmethod
    def _with_file_arrays(cls: type[R], *checked_and_arrays: Any) -> R:
        """Returns the relation of a pickle with the arrays of its file."""
        *checked, arrays = checked_and_arrays
        made = cls._checked(*checked)
        made._arrays = MappingProxyType(arrays)
        return made

    def _add_arrays(self: R, edge_data: Any, node_data: Any) -> R:
        """Returns this relation, which is new, with these arrays too."""
        if edge_data is None and node_data is None:
            return self
        edges, nodes = self._row_counts()
        self._edata = self._edata.with_more(graph_data.check_named_arrays(edge_data, edges))
        self._ndata = self._ndata.with_more(graph_data.check_named_arrays(node_data, nodes))
        return self

    def _with_data(self: R, edge_data: Any = None, node_data: Any = None) -> R:
        """Returns another relation on the same CSC, with these arrays too."""
        edges, nodes = self._row_counts()
        return self._with_more(
            graph_data.check_named_arrays(edge_data, edges),
            graph_data.check_named_arrays(node_data, nodes),
        )

    def _with_more(self: R, edges: graph_data.NamedArrays, nodes: graph_data.NamedArrays) -> R:
        if self._host is not None:
            host = self._on_cpu()._with_more(edges, nodes)
            return self._later(host, self._device, self._pinned, self._seat)
        made = self._new(self._open(), self._num_nodes, self._device)
        made._file, made._arrays = self._file, self._arrays
        made._edata, made._ndata = self._edata.with_more(edges), self._ndata.with_more(nodes)
        return made

    def _placed(self: R, device: int, pinned: bool) -> R:
        """Returns a copy for a GPU, complete; this relation is on the CPU."""
        made = self._later(self, device, pinned)
        made._handle()
        return made

    def _spread(self: R, over: Iterable[Any], replicate: float) -> tuple[R, ...]:
        """Returns a copy for each of several devices, which share its arrays."""
        group = shared_arrays.device_group(over, replicate)
        made: list[R] = []
        try:
            for place, device in enumerate(group.devices):
                seat = shared_arrays.GroupPlacement(group, place)
                made.append(self._later(self, device, False, seat))
                made[-1]._handle()
        except BaseException:
            for each in made:
                each.close()
            raise
        return tuple(made)

    def _row_counts(self) -> tuple[graph_data.RowCount, graph_data.RowCount]:
        """Returns the number of rows that the arrays of edges and of nodes have."""
        _, indices, edge_ids, *_ = self._device_or_host_arrays()
        return (
            graph_data.RowCount(graph_data.EDGES, len(indices), edge_ids is not None),
            graph_data.RowCount(graph_data.NODES, self._num_nodes),
        )

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._num_nodes

    @property
    def num_edges(self) -> int:
        """The number of edges; parallel edges count each."""
        return len(self._device_or_host_arrays()[1])

    @property
    def dtype(self) -> str:
        """``"int32"`` or ``"int64"``: the dtype of ``indices`` and of every sampled node id."""
        return self._device_or_host_arrays()[1].dtype

    @property
    def device(self) -> str:
        """The device that samples, and that batches are on: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def pinned(self) -> bool:
        """True if a GPU reads the graph in page-locked host memory (``pin``)."""
        return self._pinned

    @property
    def shared(self) -> bool:
        """True if several GPUs share the graph (``share``, ``distributed.share``)."""
        return self._seat is not None

    @property
    def indptr(self) -> Array:
        """Row offsets, shape [R + 1], R <= num_nodes; the caller's memory."""
        return self._open()[0]

    @property
    def indices(self) -> Array:
        """The in-neighbors by row, shape [num_edges]; the caller's memory."""
        return self._open()[1]

    @property
    def edge_ids(self) -> Array | None:
        """Original edge ids, shape [num_edges]; None when an edge's id is its place."""
        return self._open()[2]

    @property
    def edata(self) -> Mapping[str, Array]:
        """The arrays of edges by name, a row for each edge id."""
        self._device_or_host_arrays()
        return self._edata

    @property
    def ndata(self) -> Mapping[str, Array]:
        """The arrays of nodes by name, a row for each node."""
        self._device_or_host_arrays()
        return self._ndata

    def _sampled_edges(self: R, kind: str, name: str) -> R:
        """Returns the edges that sampling reads by ``"prob"`` or ``"mask"``, an edge array's name.

        The result is cached; on a device it is a copy of the one on the CPU.
        """
        return self._cached((kind, name), lambda: self._derive(kind, name))

    def _time_sorted(
        self, name: str, mask: str | None = None, prob: str | None = None
    ) -> TimeSortedRelation:
        """Returns the rows sorted by the times in the edge or node array of that name.

        Edges that the mask leaves out, or that have no weight, are left out. The result is cached.
        """
        return self._cached(("time", name, mask, prob), lambda: self._sorted(name, mask, prob))

    def _sorted(self, name: str, mask: str | None, prob: str | None) -> TimeSortedRelation:
        if self._device >= 0:
            return self._twin_by_time(lambda own: own._time_sorted(name, mask, prob))
        of_edges, of_nodes = self.edata.get(name), self.ndata.get(name)
        if of_edges is not None and of_nodes is not None:
            raise ValueError(
                f"time: expected the name of an edge or of a node array, got {name!r}, which is "
                "that of both"
            )
        values = of_nodes if of_edges is None else of_edges
        if values is None:
            have = ", ".join(map(repr, [*self.edata, *self.ndata])) or "none"
            raise ValueError(
                f"time: expected the name of an edge or node array of the graph ({have}), got "
                f"{name!r}"
            )
        return self._by_time(name, values, of_edges is None, self._kind_of_times(name), mask, prob)

    def _kind_of_times(self, name: str) -> Kind | None:
        """Returns the dtype of dates that the array of that name had, None if unknown."""
        return self._edata.kind(name) if name in self._edata else self._ndata.kind(name)

    def _time_sorted_by_source(
        self, name: str, values: Array, kind: Kind | None, mask: str | None, prob: str | None
    ) -> TimeSortedRelation:
        """Returns the rows sorted by ``values``, the times of the nodes that edges lead from.

        ``values`` is the array ``name`` of the source type. The result is cached as long as
        somebody has it: several relations, or several graphs, may need the same rows. ``kind`` is
        the dtype of dates that the times had.
        """

        def make() -> TimeSortedRelation:
            if self._device >= 0:
                return self._twin_by_time(
                    lambda own: own._time_sorted_by_source(name, values, kind, mask, prob)
                )
            return self._by_time(name, values, True, kind, mask, prob)

        by_others = self._cached(("times of nodes",), TimeSortedBySource)
        return by_others.get_or_sort(values, name, mask, prob, make=make)

    def _by_time(
        self,
        name: str,
        values: Array,
        by_node: bool,
        kind: Kind | None,
        mask: str | None,
        prob: str | None,
    ) -> TimeSortedRelation:
        where = f"{'ndata' if by_node else 'edata'}[{name!r}]"
        if len(values.shape) != 1:
            raise ValueError(f"{where}: expected shape [N], got {values.shape}")
        rows = self if mask is None else self._sampled_edges("mask", mask)
        if prob is not None:
            # Edges without weights are none of its own, and so none have to be left out later.
            rows = self._sampled_edges("prob", prob)
        made, memory, is_float = sort_by_time(rows, where, values, by_node)
        parts = CscArrays(rows.indptr, made["indices"], made["edge_ids"])
        by_time = self._form(parts, 0, None, has_fewer_edges=True)
        graph = by_time if prob is None else by_time._sampled_edges("prob", prob)
        graph._handle()
        return TimeSortedRelation(name, by_node, graph, memory, is_float, kind, by_time)

    def _twin_by_time(self: R, make: Callable[[R], TimeSortedRelation]) -> TimeSortedRelation:
        """Copies the rows that ``make`` sorts on the CPU to this relation's device."""
        own = make(self._on_cpu())
        about = own.name, own.by_node, self._twin(own.graph), own.memory, own.float, own.kind
        return TimeSortedRelation(*about, own)

    def _negatives(self, power: float) -> DegreeAliasTable:
        """Returns the table that draws nodes as their degree to a power; cached."""
        key = "negatives", power
        return self._cached(
            key, lambda: DegreeAliasTable(degree_alias_table(self._on_cpu(), power))
        )

    def _cached(self, key: tuple[Any, ...], make: Callable[[], K]) -> K:
        """Returns the cached value of a key; computes it on first use."""
        found = self._derived.get(key)
        if found is None:
            self._device_or_host_arrays()
            with library.table_lock():
                found = self._derived.get(key)
                if found is None:
                    found = self._derived[key] = make()
        kept: K = found
        return kept

    def _derive(self: R, kind: str, name: str) -> R:
        if self._device >= 0:
            own = self._on_cpu()
            host = own._sampled_edges(kind, name)
            return self if host is own else self._twin(host)
        values = self._edge_array(kind, name)
        mapped = graph_file.weighted_relation(self, name) if kind == "prob" else None
        if mapped is None:
            return self._drawing(kind, f"edata[{name!r}]", values)
        return self._with_edges(mapped, self._file)

    def _drawing(self: R, kind: str, where: str, values: Array) -> R:
        """Returns the edges with weights, or that a mask leaves; this relation if all are left.

        ``values`` has one for each edge id; errors call it ``where``. The relation is on the CPU.
        """
        _check_values(kind, where, values)
        parts = weight_tables(self, where, values, kind == "mask")
        # Copies of what a file has are as sound as that is.
        return self if parts is None else self._with_edges(parts, self._file)

    def _with_edges(self: R, arrays: CscArrays, file: MappedFile | None) -> R:
        """Returns a relation of some edges of this one; ``file`` has some of its arrays."""
        graph = self._form(arrays, self._kinds, file, has_fewer_edges=True)
        graph._handle()
        return graph

    def _form(
        self: R,
        arrays: CscArrays,
        kinds: int,
        file: MappedFile | None,
        has_fewer_edges: bool = False,
    ) -> R:
        """Returns a derived relation on the CPU, whose rows are split by so many edge types."""
        graph = self._new(arrays, self._num_nodes)
        graph._whole, graph._kinds, graph._file = (
            ParentRelation.from_relation(self, has_fewer_edges),
            kinds,
            file,
        )
        graph._edata = self._edata
        return graph

    def _twin(self: R, host: R) -> R:
        """Returns the copy, on this relation's device, of one derived on the CPU.

        It is copied on first use, except for arrays that both relations share.
        """
        graph = self._later(host, self._device, self._pinned, self._seat)
        graph._kinds = host._kinds
        whole = host._whole
        shared = (
            whole is not None
            and whole.parts is not None
            # Not of another form, as the rows by time that are drawn by weight.
            and whole.graph() is self._on_cpu()
            and host._open().shares(whole.parts)
        )
        graph._whole = (
            ParentRelation.from_relation(self)
            if shared
            else ParentRelation(weakref.ref(self), None)
        )
        return graph

    def _with_arrays(
        self: R,
        edge_names: Iterable[str],
        node_names: Iterable[str],
        weight: str | None = None,
        row_names: Iterable[str] = (),
    ) -> R:
        """Returns ``_with_named`` of names in any order."""
        return self._with_named(
            ProgramArrayNames.from_names(edge_names, node_names, weight, row_names)
        )

    def _with_named(self: R, names: ProgramArrayNames) -> R:
        """Returns the relation for programs that read edge and node arrays of these names.

        It shares all arrays with this one, is cached, and is this one without names. Array values
        that change in place count from the next batch on, except float16, bfloat16 and unsigned
        integers beyond uint8, which are copied, and except what programs computed of the graph
        alone. A relation on a GPU has copies of all.

        ValueError for a name without an array, and for an array of another number of dimensions.
        """
        if names == NONE_NAMED:
            return self
        return self._cached(("arrays", names), lambda: self._lending(names))

    def _lending(self: R, names: ProgramArrayNames) -> R:
        if self._device >= 0:
            return self._twin(self._on_cpu()._with_named(names))
        self._device_or_host_arrays()
        return self._with_program_arrays(names, self._edata, self._ndata)

    def _with_inputs(self: R, names: ProgramArrayNames, edge_data: Any, node_data: Any) -> R:
        """Returns the relation for programs that read these arrays, and those of these names.

        It shares the edges with this one, on a GPU too, and is not cached.
        """
        host = self._on_cpu()
        edges, nodes = host._row_counts()
        made = host._with_program_arrays(
            names,
            host._edata.with_more(graph_data.check_named_arrays(edge_data, edges)),
            host._ndata.with_more(graph_data.check_named_arrays(node_data, nodes)),
        )
        return self._twin(made) if self._device >= 0 else made

    def _write_edges(self, name: str, ids: NDArray[Any], values: NDArray[Any]) -> None:
        """Writes values of an edge array into the copy of it that a relation on a GPU has.

        For ``_with_inputs``, after the array on the CPU has changed at these distinct ids, and
        while no batch is on its way. Programs forget what they computed of the graph alone.
        """
        about = self._handle(), name, ids.ctypes.data, values.ctypes.data, len(ids)
        library.call("DeviceWriteEdges", *about)

    def _with_program_arrays(self: R, names: ProgramArrayNames, edata: Any, ndata: Any) -> R:
        """Returns the relation, on the CPU, for programs that read these arrays by their names."""
        edges, nodes, weight, rows = names
        lent = ProgramArrays.from_mappings(edges, nodes, weight, edata, ndata, rows)
        # So that its arrays are validated: a form's are trusted.
        self._handle()
        graph = self._form(self._open(), self._kinds, self._file)
        graph._arrays, graph._edata, graph._ndata = self._arrays, edata, ndata
        graph._lent, graph._back = lent, self._back
        graph._handle()
        return graph

    def _edge_array(self, kind: str, name: str) -> Array:
        values = self.edata.get(name)
        if values is None:
            have = ", ".join(map(repr, self.edata)) or "none"
            raise ValueError(
                f"{kind}: expected the name of an edge array of the graph ({have}), got {name!r}"
            )
        return values

    def _walked(
        self: R,
        direction: Literal["in", "out"],
        prob: str | None = None,
        types: str | None = None,
        kinds: int = 0,
        second: bool = False,
    ) -> R:
        """Returns the relation whose row v lists where a walk may go from v, in that direction.

        Rows of out-edges, rows split by type and rows of ``second`` ascend; parallel edges keep
        their order in the CSC, as do in-edges else. ``prob`` names the weights that rows draw by;
        edges with a weight of 0 are left out. ``types`` names integers: node v then has the rows
        v * K to v * K + K - 1, one per type, and K is ``kinds``, or the largest type and one. With
        ``second`` the result has the transposed relation as ``_back``, whose row t lists every x
        with an edge x -> t here, without types.

        Results are cached. ValueError names the edge of a type that is negative or beyond those,
        2^15 at most.
        """
        if second:
            key = "second", direction, prob, types, kinds
            return self._cached(key, lambda: self._looking_back(direction, prob, types, kinds))
        rows = self
        if direction == "out":
            rows = self._transposed(types, kinds)
        elif types is not None:
            rows = self._transposed()._transposed(types, kinds)
        return rows._by_weights(prob)

    def _by_weights(self: R, prob: str | None) -> R:
        return self if prob is None else self._sampled_edges("prob", prob)

    def _looking_back(
        self: R, direction: Literal["in", "out"], prob: str | None, types: str | None, kinds: int
    ) -> R:
        if types is not None:
            plain = self._walked(direction, prob, second=True)._back
            return self._walked(direction, prob, types, kinds)._before(plain)
        rows = self._transposed() if direction == "out" else self._ascending()
        walked = rows._by_weights(prob)
        # Edges with a weight of 0 are left out of the transposed relation, too.
        if walked.num_edges < rows.num_edges:
            return walked._before(walked._reversed())
        if prob is not None:
            return walked._before(self._walked(direction, second=True)._back)
        if direction == "in":
            return walked._before(self._transposed())
        # Not this graph itself, which keeps those that it would be kept by.
        return walked._before(self._again() if self._ascends() else rows._reversed())

    def _ascending(self: R) -> R:
        """Returns this relation with ascending rows; parallel edges keep their order."""
        return self if self._ascends() else self._transposed()._transposed()

    def _transposed(self: R, types: str | None = None, kinds: int = 0) -> R:
        """Returns the out-edges, in rows split by the edge types of that name."""
        return self._cached(("out", types, kinds), lambda: self._transpose(types, kinds))

    def _transpose(self: R, types: str | None, kinds: int) -> R:
        if self._device >= 0:
            return self._twin(self._on_cpu()._transposed(types, kinds))
        if types is None:
            mapped = graph_file.mapped_out_edges(self)
            if mapped is not None:
                return self._form(mapped, 0, self._file)
            return self._form(transpose(self, "", None, 0, bare=False)[0], 0, None)
        values, where = self._edge_array("edge_types", types), f"edata[{types!r}]"
        _check_values("edge_types", where, values)
        return self._form(*transpose(self, where, values, kinds, bare=False), None)

    def _reversed(self: R) -> R:
        """Returns the rows of the out-edges, without edge ids if none are cached.

        The result is this relation if its rows are the same, or the cached transposed relation.
        """
        if self._device >= 0:
            own = self._on_cpu()
            host = own._reversed()
            if host is own:
                return self
            return self._transposed() if host is own._derived.get(_OUT) else self._twin(host)
        known: R | None = self._derived.get(_OUT)
        if known is not None:
            return known
        graph = self._form(transpose(self, "", None, 0, bare=True)[0], 0, None)
        if library.call("GraphEqualRows", graph._handle(), self._handle()):
            graph.close()
            return self
        return graph

    def _ascends(self) -> bool:
        # For a relation created on a GPU this is a copy, which is closed when nothing refers to it.
        host = self._on_cpu()
        return bool(library.call("GraphAscends", host._handle()))

    def _again(self: R) -> R:
        """Returns another relation on the same arrays."""
        if self._device >= 0:
            return self._twin(self._on_cpu()._again())
        return self._form(self._open(), self._kinds, self._file)

    def _before(self: R, back: RelationState | None) -> R:
        """Returns a relation on the same arrays with the transposed one as ``_back``."""
        graph = self._again()
        graph._back = back
        return graph

    def _on_cpu(self: R) -> R:
        if self._device < 0:
            return self
        host = self._host
        if isinstance(host, Relation) and host._parts is not None:
            return cast("R", host)
        self._check_process()
        parts = device_graph.download(self._open())
        if self._kinds:
            graph = self._new(parts, self._num_nodes)
            graph._kinds = self._kinds
        else:
            graph = self._checked(*parts[:3], self._num_nodes)
        graph._arrays, graph._edata, graph._ndata = self._arrays, self._edata, self._ndata
        return graph

    def __reduce__(self) -> tuple[Any, ...]:
        if self._whole is not None:
            raise TypeError(
                "graph: expected the original graph to pickle, got data derived from it"
            )
        parts = self._open()
        made: tuple[Any, ...] = Relation._checked, (*parts[:3], self._num_nodes)
        if self._file is not None:
            made = Relation._reopened, (self._file.path, self._file.identity, *self._file.part)
        elif self._arrays:
            made = Relation._with_file_arrays, (*parts[:3], self._num_nodes, dict(self._arrays))
        data = self._edata.unstored(), self._ndata.unstored()
        return (*made, data) if any(data) else made

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        self._add_arrays(*state)


def _check_values(kind: str, where: str, values: Array) -> None:
    if values._length != len(values):
        raise ValueError(
            f"{kind}: expected a value for each edge, got {where} of shape {values.shape}"
        )
