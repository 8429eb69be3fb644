from __future__ import annotations

import ast
import re
import sys
import threading
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import pygsampler as pgs
from pygsampler._engine import library

pytestmark = pytest.mark.once


def test_the_import_is_light(run_python):
    script = """
        import os, sys, threading
        before = dict(os.environ), threading.active_count(), os.listdir("/proc/self/task")
        import pygsampler as pgs
        assert (
            dict(os.environ), threading.active_count(), os.listdir("/proc/self/task")
        ) == before
        heavy = {"numpy", "torch", "dgl", "scipy", "pyarrow", "pygsampler._engine._bridge"}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
        from pathlib import Path
        maps = Path("/proc/self/maps").read_text()
        assert "_bridge" not in maps and "libcuda" not in maps
        # A sampler's plan is read by the engine, which needs no CUDA.
        pgs.PGSampler([10, 10], seed=0)
        assert "libcuda" not in Path("/proc/self/maps").read_text()
        print("light")
    """
    assert run_python(script) == "light\n"


def test_the_stubs_name_what_the_extension_has():
    stubs = ast.parse((Path(library.__file__).parent / "_bridge.pyi").read_text())
    definitions = [node for node in stubs.body if isinstance(node, ast.FunctionDef)]
    functions = {node.name: node for node in definitions}
    assert len(functions) == len(definitions)
    module = library.engine().module
    assert set(functions) == {name for name in dir(module) if name.startswith("bridge_")}
    for name, function in functions.items():
        count = len(function.args.args)
        with pytest.raises(TypeError, match=rf"takes (no|.* {count}) (keyword )?arguments?"):
            getattr(module, name)(*[0] * (count + 1))


def test_the_package_is_ours_from_anywhere():
    assert pgs.__file__ is not None
    assert (Path(pgs.__file__).parent / "py.typed").is_file()


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pgs.nothing
    assert "torch" in dir(pgs)
    assert "__version__" in dir(pgs)


def test_submodules_come_when_they_are_named(run_python):
    script = """
        import sys
        import pygsampler as pgs
        assert "pygsampler.torch" not in sys.modules and "torch" not in sys.modules
        print(pgs.torch.DataLoader.__name__, "torch" in sys.modules)
    """
    assert run_python(script) == "DataLoader True\n"


def test_the_version_is_that_of_the_installed_package(run_python):
    from importlib.metadata import PackageNotFoundError, version

    try:
        expected = version("pygsampler")
    except PackageNotFoundError:  # from python/, without an installation
        expected = "0+unknown"
    assert pgs.__version__ == expected


def test_a_missing_extension_says_what_and_where(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    expected = (
        f"pygsampler: expected the compiled engine _bridge.abi3.so in {tmp_path}, found none; "
        "a wheel for Linux on x86-64 or aarch64 brings it, or pip install . in a clone"
    )
    with pytest.raises(ImportError, match=f"^{re.escape(expected)}$"):
        library.extension_path()


def test_an_extension_of_an_older_build_is_never_loaded(monkeypatch, tmp_path):
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    for suffix in EXTENSION_SUFFIXES:
        if suffix != ".abi3.so":
            (tmp_path / f"_bridge{suffix}").write_bytes(b"older")
    with pytest.raises(ImportError, match="found none"):
        library.extension_path()
    (tmp_path / "_bridge.abi3.so").write_bytes(b"this")
    assert library.extension_path().read_bytes() == b"this"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            "sys.abiflags = 't'",
            "expected CPython with the GIL, got a free-threaded CPython {version}, which has "
            "another ABI; use the ordinary CPython {version}",
        ),
        (
            "sys.implementation.name = 'pypy'",
            "expected CPython with the GIL, got pypy {version}, which has another ABI; use "
            "the ordinary CPython {version}",
        ),
        (
            "sys.platform = 'darwin'",
            "expected Linux on x86-64 or aarch64, got macOS; use a container or a virtual machine "
            "with Linux",
        ),
        (
            "sys.platform = 'win32'; del os.register_at_fork",
            "expected Linux on x86-64 or aarch64, got Windows; use a container or a virtual "
            "machine with Linux",
        ),
    ],
)
def test_a_python_that_cannot_load_the_extension_says_the_way_out(run_python, change, expected):
    """What the package imports comes before the change, which those modules would heed, too."""
    script = f"""
        import os, pathlib, sys
        import ctypes, importlib.machinery, importlib.util, tempfile, threading, typing
        {change}
        import pygsampler as pgs
        try:
            pgs.get_num_threads()
        except ImportError as error:
            print(error)
    """
    version = ".".join(map(str, sys.version_info[:2]))
    assert run_python(script) == f"pygsampler: {expected.format(version=version)}\n"


def test_the_first_call_may_come_from_many_threads(run_python):
    script = """
        import threading
        from pygsampler._engine import library
        gate = threading.Barrier(16)
        found = []
        def first():
            gate.wait()
            found.append(library.engine())
        threads = [threading.Thread(target=first) for _ in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), len(set(map(id, found))))
    """
    assert run_python(script) == "16 1\n"


def test_number_of_threads_can_be_set():
    before = pgs.get_num_threads()
    assert before >= 1
    try:
        assert pgs.set_num_threads(1) == before
        assert pgs.get_num_threads() == 1
        assert pgs.set_num_threads(3) == 1
    finally:
        pgs.set_num_threads(before)


@pytest.mark.parametrize("count", [0, -1, 1 << 20])
def test_a_wrong_number_of_threads_is_refused(count):
    with pytest.raises(ValueError, match=rf"count: expected an integer .*, got {count}"):
        pgs.set_num_threads(count)


BUSY = """
    import threading, time
    from array import array
    import pygsampler as pgs
    n = 200_000
    indices = array("i", [(7919 * i) % n for i in range(10 * n)])
    graph = pgs.Graph.from_csc(array("q", range(0, 10 * n + 1, 10)), indices)
    sampler = pgs.PGSampler([10] * 6, seed=0)
    seeds = array("q", range(n))
"""


def test_the_interpreter_ends_with_jobs_in_flight(run_python):
    script = """
    jobs = [sampler.submit(graph, seeds) for _ in range(8)]
    print("end")
    """
    assert run_python(BUSY + script) == "end\n"


def test_the_interpreter_ends_while_daemon_threads_sample(run_python):
    script = """
    def sample():
        try:
            while True:
                sampler.sample(graph, seeds[:5000])
        except pgs.errors.ClosedError:
            pass
    for _ in range(4):
        threading.Thread(target=sample, daemon=True).start()
    time.sleep(0.5)
    print("end")
    """
    assert run_python(BUSY + script) == "end\n"


def test_after_the_end_the_engine_refuses(run_python):
    script = """
        import atexit
        # The last registered runs first, and the engine registers at its first use: this is later.
        atexit.register(lambda: late())
        import pygsampler as pgs
        graph = pgs.Graph.from_csc([0, 2, 2], [0, 1])
        sampler = pgs.PGSampler([2], seed=0)
        batch = sampler.sample(graph, [0])
        def late():
            print(batch.num_edges, batch.input_nodes.tolist(), graph)
            try:
                sampler.sample(graph, [1])
            except pgs.errors.ClosedError as error:
                print(error)
    """
    expected = (
        "2 [0, 1] Graph(num_nodes=2, num_edges=2, dtype=int64, device=cpu)\n"
        "engine: expected a running one, got one that the end of the interpreter has shut down\n"
    )
    assert run_python(script) == expected


def test_the_state_of_locks_is_not_inherited():
    from pygsampler._engine.library import _State

    state = _State(0, 2)
    with state.handle_lock, state.count_lock, state.load_lock:
        child = _State(state.generation + 1, state.threads)
        free = []
        names = ("handle_lock", "count_lock", "load_lock")
        thread = threading.Thread(
            target=lambda: free.extend(
                getattr(which, name).acquire(blocking=False)
                for which in (state, child)
                for name in names
            )
        )
        thread.start()
        thread.join()
    assert free == [False] * 3 + [True] * 3
    assert child.threads == 2
