"""``GraphState``: what a graph holds, and its handle in the engine."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pygsampler import _device, _engine
from pygsampler._graph import device as device_graph
from pygsampler._graph import host as host_graph
from pygsampler.errors import ClosedError, CudaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from pygsampler._graph.host import Parts
    from pygsampler._graph.pages import Pages
    from pygsampler.array import Array

G = TypeVar("G", bound="GraphState")

_NO_ARRAYS: Mapping[str, Array] = MappingProxyType({})


class GraphState:
    """The arrays of a graph and the engine's handle for them.

    The handle is made when it is first needed, and anew in a forked child, whose engine is another
    one, and where torch has moved an array.
    """

    __slots__ = (
        "__weakref__",
        "_arrays",
        "_capacity",
        "_device",
        "_file",
        "_host",
        "_made",
        "_num_nodes",
        "_parts",
        "_pinned",
        "_pins",
    )

    # indptr, indices and edge_ids; None once closed, and before an unpickled graph is put back on
    # its device. Those of a pinned graph are the host's.
    _parts: Parts | None
    _num_nodes: int
    # (generation, handle): the handle is dead in any other copy of the engine.
    _made: tuple[int, int] | None
    # -1 for the CPU, else the index of the CUDA device that samples.
    _device: int
    # The graph on the CPU that one on a device was made from.
    _host: GraphState | None
    _pinned: bool
    _pins: device_graph.Pins | None
    # Bytes of batches so far, by what shapes them: see _device_job.
    _capacity: dict[tuple[Any, ...], int]
    # The file that the arrays are mapped from, by whose word they are a graph.
    _file: Pages | None
    # What stands beside the graph.
    _arrays: Mapping[str, Array]

    def _hold(
        self,
        parts: Parts | None,
        num_nodes: int,
        device: int = -1,
        host: GraphState | None = None,
        pinned: bool = False,
    ) -> None:
        self._made = None
        self._parts = parts
        self._num_nodes = num_nodes
        self._device = device
        self._host = host
        self._pinned = pinned
        self._pins = None
        self._capacity = {}
        self._file = None
        self._arrays = _NO_ARRAYS if host is None else host._arrays

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done. Closing twice is fine.

        A pinned graph's pages are no longer locked then.
        """
        with _engine.handle_lock():
            made, self._made = self._made, None
            parts, self._parts, self._host = (self._parts, self._host), None, None
            pins, self._pins = self._pins, None
            beside, self._arrays, self._file = (self._arrays, self._file), _NO_ARRAYS, None
        host_graph.give_back(made)
        # Only now may the arrays go: a batch in flight was reading them.
        del pins, parts, beside

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

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # The engine has ended by then, and this module's names are gone.
        if ending():
            return
        made = getattr(self, "_made", None)
        self._made = None
        host_graph.give_back(made)

    def _known(self) -> Parts:
        """The arrays, or those of the graph on the CPU: for what is alike on both."""
        if self._parts is None and self._host is not None:
            return self._host._open()
        return self._open()

    def _open(self) -> Parts:
        if self._parts is None and self._host is not None:
            self._handle()
        parts = self._parts
        if parts is None:
            raise ClosedError("graph: expected an open graph, got one that was closed")
        return parts

    def _handle(self) -> int:
        """The handle in this process's engine, made anew after a fork."""
        made, parts = self._made, self._parts
        if (
            made is not None
            and made[0] == _engine.generation()
            and parts is not None
            and not self._moved()
        ):
            return made[1]
        if self._device >= 0:
            return self._device_handle()
        with _engine.handle_lock():
            made, parts = self._made, self._open()
            if made is None or made[0] != _engine.generation() or host_graph.moved(parts):
                self._made = None
                host_graph.give_back(made)
                self._parts = host_graph.where_they_are(parts)
                handle = host_graph.new(self._parts, self._num_nodes, self._file is not None)
                made = self._made = (_engine.generation(), handle)
            return made[1]

    def _device_handle(self) -> int:
        """The handle of a graph on a device, which is put there now if it was not yet."""
        self._check_process()
        with _engine.handle_lock():
            if self._made is not None and not self._moved():
                return self._made[1]
            made, self._made, self._pins = self._made, None, None
            host_graph.give_back(made)
            host = self._host
            if self._parts is None and host is None:
                self._open()
            _device.require(self._device)
            before, trusted, parts, pins = 0, False, self._parts, None
            if host is not None:
                # Whose arrays the engine validates by this, but for those of a file: kernels do
                # not check what they read, so one of them validates these.
                before, trusted = host._handle(), host._file is None
                parts, pins = device_graph.place(host._open(), self._device, self._pinned)
            assert parts is not None
            handle = device_graph.new(parts, pins, self._num_nodes, self._device, before, trusted)
            self._parts, self._pins = parts, pins
            self._made = (_engine.generation(), handle)
            return handle

    def _moved(self) -> bool:
        """Whether torch has put an array that is on the host elsewhere meanwhile."""
        on_device = self._device >= 0 and not self._pinned
        return not on_device and self._parts is not None and host_graph.moved(self._parts)

    def _check_process(self) -> None:
        """Raises CudaError for a graph that a parent process has on its GPU."""
        if self._made is not None and self._made[0] != _engine.generation():
            raise CudaError(
                f"graph: expected one of this process, got one that its parent has on "
                f"{_device.name(self._device)}, which a forked child cannot use; sample "
                'graph.to("cpu") here, or start workers with "spawn"'
            )
