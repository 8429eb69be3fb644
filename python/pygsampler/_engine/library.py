"""The copy of the Go engine in a process: loading, calling, forking, ending.

The extension is loaded at the first call. A forked child cannot use its parent's Go runtime (its
threads are gone), so the child drops that copy and loads a second one from a memory file.
``generation()`` tells the copies apart: a handle is valid only in the generation in which it was
created.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
import tempfile
import threading
import time
from array import array
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from itertools import starmap
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pygsampler._engine.nvrtc import nvrtc_candidates
from pygsampler.errors import ClosedError, from_engine

if TYPE_CHECKING:
    from collections.abc import Callable

_MODULE = "pygsampler._engine._bridge"
# The only name that is loaded: a file of an older build, for one Python, may be in that folder.
_EXTENSION = "_bridge.abi3.so"
# The time that the end of the interpreter waits for other threads to leave the engine, and then
# for the threads that learned of the end from it to finish.
_LEAVE_SECONDS = 5.0
_FINISH_SECONDS = 1.0
_MOST_THREADS = 4096

VoidFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
ClaimFunction = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
OwnFunction = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)
DlpackFunction = ctypes.PYFUNCTYPE(
    ctypes.py_object,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
)
DlpackTensorFunction = ctypes.PYFUNCTYPE(
    ctypes.py_object,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
)
DlpackDeviceFunction = ctypes.PYFUNCTYPE(
    ctypes.py_object,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
)
ArrowFunction = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
MakerFunction = ctypes.PYFUNCTYPE(ctypes.py_object)
DestructorFunction = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.py_object, ctypes.c_int64, ctypes.c_int64
)


class Bridge(dict[str, Any]):
    """The functions of a copy's bridge by their names, each looked up when it is first called."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        function = self[name] = getattr(self._module, "bridge_" + name)
        return function


class Engine:
    """A loaded copy of the extension and its C functions.

    The C functions never enter Go, so they stay usable in a forked child: memory that the parent's
    copy allocated is released there through the parent's function.
    """

    __slots__ = (
        "arrow_export",
        "arrow_export_device",
        "bridge",
        "destructor",
        "dlpack_export",
        "dlpack_export_device",
        "dlpack_export_tensor",
        "memory_claim",
        "memory_of_object",
        "module",
        "release",
        "retain",
        "tensors",
    )

    def __init__(self, module: ModuleType) -> None:
        def symbol(name: str) -> int:
            return int(module.bridge_Symbol(name))

        self.module = module
        self.bridge = Bridge(module)
        self.retain = VoidFunction(symbol("memory_retain"))
        self.release = VoidFunction(symbol("memory_release"))
        self.memory_claim = ClaimFunction(symbol("memory_claim"))
        self.memory_of_object = OwnFunction(symbol("memory_of_object"))
        self.dlpack_export = DlpackFunction(symbol("dlpack_export"))
        self.dlpack_export_tensor = DlpackTensorFunction(symbol("dlpack_export_tensor"))
        self.arrow_export = ArrowFunction(symbol("arrow_export"))
        self.dlpack_export_device = DlpackDeviceFunction(symbol("dlpack_export_device"))
        self.arrow_export_device = ArrowFunction(symbol("arrow_export_device"))
        self.tensors = MakerFunction(symbol("tensor_maker"))()
        self.destructor = DestructorFunction(symbol("destructor"))


class _State:
    """State that a forked child begins anew: lost threads may have held its locks.

    They are reentrant since a signal handler may call us while its thread holds one.
    """

    def __init__(self, generation: int, threads: int | None) -> None:
        self.generation = generation
        self.engine: Engine | None = None
        self.shut = False
        self.threads = threads
        self.load_lock = threading.RLock()
        self.handle_lock = threading.RLock()
        self.count_lock = threading.RLock()
        self.table_lock = threading.RLock()
        self.cache_locks: dict[int, threading.RLock] = {}
        self.inside: set[object] = set()
        self.told: set[int] = set()


_state = _State(0, None)
# The files that children were loaded from. They stay open: a number that is used again would
# give two copies one path, and the dynamic linker would hand out the old, dead copy.
_copies: list[int] = []
# Classes whose objects have a handle, and the function of the bridge that ends it.
_ends: dict[type, str] = {}


def _after_fork_in_child() -> None:
    global _state
    _state = _State(_state.generation + 1, _state.threads)


# Windows has neither fork nor the engine, which extension_path says.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def generation() -> int:
    """Grows by one in every forked child; handles of another generation are dead."""
    return _state.generation


def handle_lock() -> threading.RLock:
    """The lock for creating and releasing handles; a fresh one in each child."""
    return _state.handle_lock


def count_lock() -> threading.RLock:
    """The lock for advancing counters, held for moments; a fresh one in each child."""
    return _state.count_lock


def table_lock() -> threading.RLock:
    """The lock for building tables of weights, on all cores; a fresh one in each child."""
    return _state.table_lock


def cache_lock(device: int) -> threading.RLock:
    """The lock for launching work that reads or changes a cache of that device.

    It is a fresh one in each child. Each device has its own: a launch takes long enough for threads
    of others to wait.
    """
    return _state.cache_locks.setdefault(device, threading.RLock())


def alive(generation: int) -> bool:
    """True if handles of generation ``generation`` can still be released."""
    return generation == _state.generation and _state.engine is not None and not _state.shut


def extension_path() -> Path:
    """Returns the path of the compiled engine; ImportError if it is missing or cannot be loaded."""
    path = Path(__file__).with_name(_EXTENSION)
    if sys.platform != "linux":
        system = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        raise ImportError(
            f"pygsampler: expected Linux on x86-64 or aarch64, got {system}; use a container or a "
            "virtual machine with Linux"
        )
    # abi3 is the ABI of CPython with the GIL: objects have another layout in a free-threaded one,
    # and loading the engine there would crash the process.
    free_threaded = "t" in sys.abiflags
    if free_threaded or sys.implementation.name != "cpython":
        name = "a free-threaded CPython" if free_threaded else sys.implementation.name
        version = ".".join(map(str, sys.version_info[:2]))
        raise ImportError(
            f"pygsampler: expected CPython with the GIL, got {name} {version}, which has another "
            f"ABI; use the ordinary CPython {version}"
        )
    if not path.is_file():
        raise ImportError(
            f"pygsampler: expected the compiled engine {path.name} in {path.parent}, found none; "
            "a wheel for Linux on x86-64 or aarch64 brings it, or pip install . in a clone"
        )
    return path


def engine() -> Engine:
    """This process's engine, loaded now when it was not yet."""
    state = _state
    loaded = state.engine
    if loaded is not None:
        return loaded
    if state.shut:
        raise _ended()
    with state.load_lock:
        if state.engine is None:
            path = str(extension_path())
            try:
                module = _load(_copy(path) if state.generation else path)
            except ImportError:
                from pygsampler._engine.architecture import check_machine

                check_machine(Path(path))
                raise
            if state.threads is not None:
                module.bridge_SetThreads(state.threads)
            module.bridge_Environment(json.dumps(_variables()))
            module.bridge_CompilerSearch(json.dumps(nvrtc_candidates()))
            loaded = Engine(module)
            for owner, name in list(_ends.items()):
                _set_destructor(loaded, owner, name)
            state.engine = loaded
            atexit.register(shut_down)
        return state.engine


def _variables() -> dict[str, str]:
    """The variables of the environment that the engine heeds: where its caches lie, and our own."""
    return {
        name: value
        for name, value in os.environ.items()
        if (name.startswith("PYGSAMPLER_") or name in ("HOME", "XDG_CACHE_HOME"))
        # Bytes that are no text cannot be handed over.
        and value.isprintable()
    }


def set_destructor(owner: type, name: str) -> None:
    """Makes objects of a class release their handles by ``bridge_<name>``."""
    with _state.load_lock:
        _ends[owner] = name
        if _state.engine is not None:
            _set_destructor(_state.engine, owner, name)


def _set_destructor(loaded: Engine, owner: type, name: str) -> None:
    kind = loaded.module.bridge_EndKind(name)
    setattr(owner, "__del__", loaded.destructor(owner, kind, _state.generation))  # noqa: B010


def call(name: str, *args: Any, into: array[int] | None = None) -> Any:
    """Runs ``bridge_<name>``; the engine's errors arrive as their Python classes.

    An integer that it returns stands in ``into``, too, before Python runs signal handlers: what
    they raise, as Ctrl-C does, loses what a call has returned.
    """
    state = _state
    function = (state.engine or engine()).bridge[name]
    ticket = object()
    try:
        state.inside.add(ticket)
        if state.shut:
            raise _ended()
        if into is None:
            return function(*args)
        # C does both, the call and the keeping of what it returns.
        into.extend(starmap(function, (args,)))
        return into[-1]
    except RuntimeError as error:
        if state.shut:
            raise _ended() from None
        raise from_engine(str(error)) from None
    finally:
        state.inside.discard(ticket)


def shut_down(unfinished: Callable[[], bool] = lambda: False) -> None:
    """Ends this process's engine, and waits for threads that are in the middle of a batch.

    A daemon thread that came back from Go after the interpreter's end would be unwound through
    Go's frames, which aborts the process; torch does the same to one that frees a tensor then. So
    those that leave the engine, with an error, get a moment to finish what they do.
    ``unfinished`` says whether there are threads that will still call the engine.
    """
    state = _state
    if state.engine is None:
        return
    if not state.shut:
        state.shut = True
        state.engine.module.bridge_Shutdown()
    until = time.monotonic() + _LEAVE_SECONDS
    module = state.engine.module
    while (
        state.inside or module.bridge_Destructors() or unfinished()
    ) and time.monotonic() < until:
        time.sleep(0.001)
    until = time.monotonic() + _FINISH_SECONDS
    for thread in threading.enumerate():
        if thread.ident in state.told and thread is not threading.current_thread():
            thread.join(max(0.0, until - time.monotonic()))


def _ended() -> ClosedError:
    _state.told.add(threading.get_ident())
    return ClosedError(
        "engine: expected a running one, got one that the end of the interpreter has shut down"
    )


def set_num_threads(count: int) -> int:
    """Sets how many threads sampling may use in this process; returns the number before.

    Parameters
    ----------
    count : int
        At least 1. At first it is the number of cores that the process may use.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    from pygsampler._engine.checks import integer

    number = integer(count, "count", 1, _MOST_THREADS)
    before = int(call("SetThreads", number))
    _state.threads = number
    return before


def get_num_threads() -> int:
    """Returns the number of threads that sampling may use in this process."""
    return int(call("Threads"))


def memory_stats() -> dict[str, int]:
    """Returns the memory of the engine on the host; ``cuda.memory_stats`` has a GPU's.

    Returns
    -------
    dict of str to int
        ``live``: the number of blocks of memory in use, by batches and arrays on them;
        ``live_bytes``: their bytes. ``pooled`` and ``pooled_bytes``: blocks that are reserved for
        the next batches. ``jobs``: the number of batches in flight.
    """
    stats: dict[str, int] = json.loads(call("MemoryStats"))
    return stats


def trim() -> None:
    """Gives the host memory back to the system that no batch uses; ``cuda.trim`` a GPU's."""
    call("Trim", -1)


def _load(path: str) -> ModuleType:
    loader = ExtensionFileLoader(_MODULE, path)
    spec = spec_from_file_location(_MODULE, path, loader=loader)
    assert spec is not None
    # Under RTLD_GLOBAL a second copy would bind to the symbols of the first, dead one.
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL)
    try:
        module = module_from_spec(spec)
        loader.exec_module(module)
    finally:
        sys.setdlopenflags(flags)
    return module


def _copy(path: str) -> str:
    """A path under which the dynamic linker takes the extension for another library."""
    with open(path, "rb") as source:
        try:
            copy = os.memfd_create("pygsampler", os.MFD_CLOEXEC)
        except (AttributeError, OSError):
            copy, name = tempfile.mkstemp(prefix="pygsampler-", suffix=".so")
            os.unlink(name)
        size = os.fstat(source.fileno()).st_size
        done = 0
        while done < size:
            sent = os.sendfile(copy, source.fileno(), done, size - done)
            if not sent:
                raise ImportError(f"pygsampler: {path} shrank while it was being copied")
            done += sent
    _copies.append(copy)
    # Someone may close all descriptors and so bring an old number back: the dots keep the path
    # of each generation its own.
    return "/proc/self/" + "./" * _state.generation + f"fd/{copy}"
