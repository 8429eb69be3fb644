"""``RelationState``: what a graph holds, and its handle in the engine."""

from __future__ import annotations

import weakref
from array import array
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

from pygsampler._arrays import devices
from pygsampler._engine import library
from pygsampler._engine.compile_log import log_warnings
from pygsampler._engine.handle import EngineHandle
from pygsampler._graph import csc_arrays as host_graph
from pygsampler._graph import device as device_graph
from pygsampler._graph.csc_arrays import CscArrays
from pygsampler._graph.named_arrays import NO_DATA, NamedArrays
from pygsampler._graph.program_arrays import NONE_LENT, ProgramArrays
from pygsampler.errors import ClosedError, CudaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pygsampler._arrays.array import Array
    from pygsampler._arrays.mmap_file import MappedFile

G = TypeVar("G", bound="RelationState")

_NO_ARRAYS: Mapping[str, Array] = MappingProxyType({})


class ParentRelation(NamedTuple):
    """The graph that another graph was derived from, by another layout or fewer edges.

    The derived graph has a reference to this.
    """

    graph: weakref.ref[RelationState]
    # None on a device, where nothing of them is shared.
    parts: CscArrays | None
    # True if this one has edges of that one in their order, so that ids are looked up there.
    has_fewer_edges: bool = False

    @classmethod
    def from_relation(cls, graph: RelationState, has_fewer_edges: bool = False) -> ParentRelation:
        return cls(weakref.ref(graph), graph._open(), has_fewer_edges)


class Placement(Protocol):
    """A graph's place among the devices that share its arrays."""

    def placer(self, host: RelationState) -> Callable[[Array], Array]:
        """Returns a function that places arrays of a CPU graph where this device finds them."""


class RelationState(EngineHandle):
    """The arrays of a graph and the engine's handle for them.

    The handle is created when it is first needed, and created anew in a forked child, which has
    another engine, and after torch has moved an array.
    """

    _close_function: ClassVar[str] = "GraphClose"

    __slots__ = (
        "__weakref__",
        "_arrays",
        "_back",
        "_behind",
        "_capacity",
        "_derived",
        "_device",
        "_edata",
        "_file",
        "_host",
        "_kinds",
        "_lent",
        "_ndata",
        "_num_nodes",
        "_parts",
        "_pinned",
        "_pins",
        "_seat",
        "_whole",
    )

    # The service that fetches rows of a partitioned graph; None if the rows are here.
    _service: Any = None

    # None once closed, and before an unpickled graph is put back on
    # its device. A pinned graph has the host's arrays.
    _parts: CscArrays | None
    _num_nodes: int
    # -1 for the CPU, else the index of the CUDA device that samples.
    _device: int
    # The graph on the CPU that one on a device was made from.
    _host: RelationState | None
    _pinned: bool
    _pins: device_graph.PinnedArrays | None
    # Its place among the devices that share its arrays; None: its device has all of them.
    _seat: Placement | None
    # Bytes that would do for a batch, by what shapes it, as the engine said last.
    _capacity: dict[tuple[Any, ...], int]
    # The file that the arrays are mapped from, by whose word they are a graph.
    _file: MappedFile | None
    # Further arrays, stored next to the graph's own.
    _arrays: Mapping[str, Array]
    # Graphs of the edges that have weights, or that a mask leaves, by kind and name of the array,
    # and other forms of this one; and, of such a graph, the one that it was made of, whose arrays
    # it keeps.
    _derived: dict[tuple[Any, ...], Any]
    _whole: ParentRelation | None
    # The number of edge types that the rows are split by; 0: one row per node.
    _kinds: int
    # The transposed graph, where walks look back, and what has to stay of it while this one's
    # handle is there: that graph may be closed before this one.
    _back: RelationState | None
    _behind: tuple[Any, ...]
    # The subset of the arrays below that programs read.
    _lent: ProgramArrays
    # A row for the edge of each id, and one for each node; on the CPU, wherever the graph is.
    _edata: NamedArrays
    _ndata: NamedArrays

    def _hold(
        self,
        arrays: CscArrays | None,
        num_nodes: int,
        device: int = -1,
        host: RelationState | None = None,
        pinned: bool = False,
        seat: Placement | None = None,
    ) -> None:
        EngineHandle.__init__(self)
        self._parts = arrays
        self._num_nodes = num_nodes
        self._device = device
        self._host = host
        self._pinned = pinned
        self._pins = None
        self._seat = seat
        self._capacity = {}
        self._derived = {}
        self._whole = None
        self._kinds = 0
        self._back = None
        self._behind = ()
        self._lent = NONE_LENT
        self._file = None
        self._arrays = _NO_ARRAYS if host is None else host._arrays
        self._edata = NO_DATA if host is None else host._edata
        self._ndata = NO_DATA if host is None else host._ndata

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done. Closing twice is fine.

        A pinned graph's pages are no longer locked then.
        """
        # Only then may the arrays go: a batch in flight is reading them.
        self._release()
        with library.handle_lock():
            # Another thread may have taken a handle meanwhile.
            self._release()
            let_go = self._pins, self._parts, self._host, self._arrays, self._file, self._whole
            data = self._edata, self._ndata, self._back, self._behind
            lent, self._lent = self._lent, NONE_LENT
            seat, self._seat = self._seat, None
            self._back, self._behind = None, ()
            self._pins = self._parts = self._host = self._file = self._whole = None
            self._arrays, self._edata, self._ndata = _NO_ARRAYS, NO_DATA, NO_DATA
            derived, self._derived = list(self._derived.values()), {}
        del let_go, data, lent, seat
        for graph in derived:
            graph.close()

    def __enter__(self: G) -> G:
        self._open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _device_or_host_arrays(self) -> CscArrays:
        """The arrays, or those of the graph on the CPU: for what is alike on both."""
        if self._parts is None and self._host is not None:
            return self._host._open()
        return self._open()

    def _open(self) -> CscArrays:
        if self._parts is None and self._host is not None:
            self._handle()
        parts = self._parts
        if parts is None:
            raise ClosedError("graph: expected an open graph, got one that was closed")
        return parts

    def _handle(self) -> int:
        """The handle in this process's engine, created anew after a fork."""
        number = self._current()
        if number and self._parts is not None and not self._moved():
            return number
        if self._device >= 0:
            return self._device_handle()
        with library.handle_lock():
            parts = self._open()
            if not self._current() or self._moved():
                self._release()
                parts = self._parts = parts.each(host_graph.current_array)
                about = parts.arguments(parts.addresses(), self._num_nodes)
                # The arrays of a file were validated before they were written, and arrays that
                # the engine derives of a graph are as valid as the graph.
                if self._is_form():
                    self._lent = self._lent.now(self._edata, self._ndata)
                    form = 1, self._parent_handle(), *self._walk_arguments()
                    self._create_graph((devices.CPU, *about, *form), self._lent.text())
                else:
                    trusted = int(self._file is not None)
                    self._create_graph((devices.CPU, *about, trusted, 0, 0, 0))
            return self._number

    def _create_graph(self, fields: tuple[int, ...], arrays: str = "") -> None:
        """Takes the handle of a graph that the engine opens.

        ``fields`` are the words of ``core.NewGraphAt``, ``arrays`` the text of the named arrays.
        """
        words = array("q", fields)
        self._create("GraphNew", words.buffer_info()[0], arrays)

    def _is_form(self) -> bool:
        """True if the engine derived this graph from another one."""
        return self._whole is not None or self._kinds > 0

    def _parent_handle(self) -> int:
        known = (
            self._whole.graph() if self._whole is not None and self._whole.has_fewer_edges else None
        )
        return 0 if known is None else known._handle()

    def _walk_arguments(self) -> tuple[int, int]:
        """Returns the number of types of a derived graph and the handle of the graph behind it.

        The arrays and pins of the graph behind are held from then on.
        """
        if self._back is None:
            return self._kinds, 0
        back = self._back._handle()
        self._behind = self._back._open(), self._back._pins
        return self._kinds, back

    def _device_handle(self) -> int:
        """The handle of a graph on a device, which is put there now if it was not yet."""
        self._check_process()
        with library.handle_lock():
            if self._number and self._parts is not None and not self._moved():
                return self._number
            self._release()
            self._pins = None
            host = self._host
            if self._parts is None and host is None:
                self._open()
            devices.require(self._device)
            before, trusted, parts, pins = 0, False, self._parts, None
            if host is not None:
                # Whose arrays the engine validates by this, but for those of a file: kernels do
                # not check what they read, so one of them validates these.
                before, trusted = host._handle(), host._file is None
                there = None
                if self._whole is not None and host._whole is not None and not self._pinned:
                    of_host, here = host._whole.parts, self._whole.parts
                    there = None if of_host is None or here is None else (of_host, here)
                shared = None if self._seat is None else self._seat.placer(host)
                parts, pins = device_graph.place(
                    host._open(), self._device, self._pinned, there, shared
                )
            assert parts is not None
            self._parts, self._pins = parts, pins
            at = parts.addresses() if pins is None else pins.addresses
            about = parts.arguments(at, self._num_nodes)
            try:
                form = self._walk_arguments() if self._is_form() else (0, 0)
                self._create_graph((self._device, *about, int(trusted), before, *form))
                log_warnings()
            finally:
                if host is not None and not self._number:
                    self._parts = self._pins = None
            return self._number

    def _moved(self) -> bool:
        """True if torch has moved the memory of an array that is on the host."""
        if self._back is not None and self._back._moved():
            return True
        # Most graphs have NONE_LENT, which is empty.
        if self._lent is not NONE_LENT and self._lent.moved():
            return True
        on_device = self._device >= 0 and not self._pinned
        return (
            not on_device and self._parts is not None and host_graph.has_moved_arrays(self._parts)
        )

    def _check_process(self) -> None:
        """Raises CudaError for a graph that a parent process has on its GPU."""
        if self._number and not self._current():
            raise CudaError(
                f"graph: expected one of this process, got one that its parent has on "
                f"{devices.name(self._device)}, which a forked child cannot use; sample "
                'graph.to("cpu") here, or start workers with "spawn"'
            )
