"""Runs pytest with our classes under a framework's names; tools/framework_tests.py starts it.

    python tools/framework_plugin.py pyg CHECKOUT RESULTS plain TEST...

Writes lines of JSON to the file RESULTS: all tests that will run, then what became of each. With
``ours`` in the place of ``plain`` the names stand for our classes.
"""

from __future__ import annotations

import functools
import json
import mmap
import os
import socket
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import URLError

import framework_stand_ins

HERE = Path(__file__).resolve()
# The frameworks whose names stand for ours: all that is not DGL is written for PyG.
FRAMEWORKS = {"dgl": "dgl", "graphstorm": "dgl"}
# Peers whose tests get to our classes by code of their own.
INDIRECT = {"relbench", "pygod", "contextgnn", "cugraph"}
# Classes of PyG's that want torch-sparse, where ours do not.
WITHOUT_SPARSE = {
    "GraphSAINTEdgeSampler",
    "GraphSAINTNodeSampler",
    "GraphSAINTRandomWalkSampler",
    "ShaDowKHopSampler",
}
# Ours are under the names of the tests' own, which start with "My".
STORES = ("FeatureStore", "GraphStore")
# Tests of GraphStorm that want a language model, or a GPU for each process.
NOT_ALONE = ("Distill", "nccl")


def install(key: str) -> dict[str, Any]:
    """Puts our classes under the framework's names; returns them by these names."""
    import pygsampler
    from pygsampler._adapters import installation

    # A version is tried here before it counts as tested.
    installation._check_version = lambda *_: None
    names = pygsampler.install(key).replaced
    if key == "pyg":
        prepare_pyg()
    places = {name: name.rpartition(".") for name in names}
    return {name: getattr(sys.modules[place[0]], place[2]) for name, place in places.items()}


def prepare_pyg() -> None:
    """Lets PyG's tests run without pyg-lib, torch-sparse and PyG's METIS, and with our stores."""
    import torch_geometric
    from torch_geometric import testing

    from pygsampler import pyg

    with_package = testing.withPackage

    def with_others(*packages: str) -> Callable[[Any], Any]:
        def decorated(test: Any) -> Any:
            names = {*test.__code__.co_names}
            # Other tests of the two first make matrices of torch-sparse's.
            loaders = names & {"HGTLoader", "NeighborSampler"} and "SparseTensor" not in names
            sparse = loaders or not WITHOUT_SPARSE.isdisjoint(names)
            without = ("pyg_lib", "torch_sparse") if sparse else ("pyg_lib",)
            others = [name for name in packages if not name.startswith(without)]
            return with_package(*others)(test) if others else test

        return decorated

    testing.withPackage = with_others
    testing.onlyNeighborSampler = testing.withMETIS = lambda test: test
    # Nothing but PyG's own sampler, and its tests, asks for these two.
    torch_geometric.typing.WITH_EDGE_TIME_NEIGHBOR_SAMPLE = True
    torch_geometric.typing.WITH_WEIGHTED_NEIGHBOR_SAMPLE = True
    # Subclasses, since the tests print their names.
    for name in STORES:
        setattr(testing, f"My{name}", type(f"My{name}", (getattr(pyg, name),), {}))


STAND_IN = {
    "dgl": framework_stand_ins.stand_in_dgl,
    "cugraph": framework_stand_ins.stand_in_cugraph,
    "pygod": framework_stand_ins.stand_in_pygod,
}


def names_in(function: Any, module: types.ModuleType) -> set[str]:
    """The names that ``function`` uses, and those of the functions of its module that it calls."""
    names: set[str] = set()
    codes = [getattr(function, "__code__", None)]
    while codes:
        code = codes.pop()
        if code is None:
            continue
        codes += [value for value in code.co_consts if isinstance(value, types.CodeType)]
        for name in set(code.co_names) - names:
            names.add(name)
            value = getattr(module, name, None)
            if getattr(value, "__module__", None) == module.__name__:
                codes.append(getattr(value, "__code__", None))
    return names


class Plugin:
    """Tells pytest which tests to run, and writes a line of JSON for each."""

    def __init__(self, peer: str, out: Path, plain: bool) -> None:
        self.out, self.plain, self.peer = out, plain, peer
        # Its tests name loaders of its own, whose samplers are subclasses of ours.
        self.by_loaders = peer == "graphstorm"
        # Our classes and functions by the framework's names.
        self.ours: dict[str, Any] = {}
        # Shared with the processes that are forked, where samplers work too.
        self.used = mmap.mmap(-1, 1)
        if not plain:
            key = FRAMEWORKS.get(peer, "pyg")
            self.watch(key)
            self.ours = install(key)

    def watch(self, key: str) -> None:
        """Has our classes and functions, and the engine, leave a mark when they are called."""
        from pygsampler._adapters import installation
        from pygsampler.programs import Program
        from pygsampler.samplers.neighbor import PGSampler

        framework = installation.FRAMEWORKS[key]
        adapter = import_module(framework.adapter)
        places = [
            (import_module(framework.elsewhere.get(place, framework.adapter)), place[1])
            for place in installation._names(framework)
        ]
        places += [(adapter, name) for name in STORES if hasattr(adapter, name)]
        classes = {value for home, name in places if isinstance(value := getattr(home, name), type)}
        methods = [(PGSampler, "launch"), (Program, "launch")]
        # A class without a method of its own calls that of another, which leaves the mark.
        methods += [
            (each, "__init__")
            for each in classes
            if "__init__" in vars(each) or not set(each.__mro__[1:]) & classes
        ]
        functions = [each for each in places if not isinstance(getattr(*each), type)]
        for owner, name in methods + functions:
            setattr(owner, name, self.marking(getattr(owner, name)))

    def marking(self, function: Callable[..., Any]) -> Callable[..., Any]:
        # Lightning reads the signature.
        @functools.wraps(function)
        def marked(*values: Any, **options: Any) -> Any:
            self.used[0] = 1
            return function(*values, **options)

        return marked

    def write(self, **words: Any) -> None:
        with self.out.open("a") as file:
            file.write(json.dumps(words) + "\n")

    def uses_ours(self, item: Any) -> bool:
        """True if a test creates a sampler or loader of one of the replaced names."""
        if self.by_loaders:
            return not any(each in item.nodeid for each in NOT_ALONE)
        classes = tuple(each for each in self.ours.values() if isinstance(each, type))
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if any(isinstance(value, classes) for value in parameters.values()):
            return True
        names = {name.rpartition(".")[2] for name in self.ours}
        used = names_in(item.function, item.module)
        # Stores of ours are none of the installed classes.
        if used & {f"My{name}" for name in STORES}:
            return True
        # A module may have imported another class of that name; without it is an attribute.
        values = {id(value) for value in self.ours.values()}
        imported = vars(item.module)
        return any(name not in imported or id(imported[name]) in values for name in used & names)

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        if self.plain:
            return
        if self.peer in INDIRECT:
            return
        wanted = [item for item in items if self.uses_ours(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
        items[:] = wanted
        for item in items:
            for name in ("WITH_PYG_LIB", "WITH_TORCH_SPARSE"):
                # Within the tests they say what the sampler can do: without they end at once.
                if hasattr(item.module, name):
                    setattr(item.module, name, True)

    def pytest_collection_finish(self, session: Any) -> None:
        self.write(all=[item.nodeid for item in session.items])

    def pytest_runtest_logstart(self) -> None:
        self.used[0] = 0

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        if call.excinfo is None:
            if call.when == "call":
                kind = "passed" if self.plain or self.used[0] else "unused"
                self.write(test=item.nodeid, kind=kind, why="ends before it uses a sampler")
            return
        error = call.excinfo.value
        kind, why = "failed", f"{type(error).__name__}: {error}".strip()
        if type(error).__name__ == "Skipped":
            kind = "skipped"
        elif item.get_closest_marker("xfail"):
            kind, why = "skipped", "marked by the peer as one that fails"
        elif any(isinstance(each, (socket.gaierror, URLError)) for each in chain(error)):
            kind, why = "network", "downloads data, and there is no network"
        elif is_not_offered(error):
            kind = "not offered"
        place = [each for each in call.excinfo.traceback if Path(each.path) != HERE][-1]
        self.write(test=item.nodeid, kind=kind, why=why, place=f"{place.path}:{place.lineno + 1}")

    def pytest_runtest_logfinish(self) -> None:
        """End the process group of a test that ended early: the next could make none."""
        from torch import distributed

        if distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.write(test=report.nodeid, kind="failed", why=str(report.longrepr))


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_not_offered(error: BaseException) -> bool:
    """True if the error was raised in a file of ours, here or in a worker, as torch's text says."""
    import pygsampler

    folder = os.path.dirname(pygsampler.__file__)
    if not isinstance(error, NotImplementedError):
        return False
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    inside = trace is not None and trace.tb_frame.f_code.co_filename.startswith(folder)
    return inside or folder in str(error)


def main(peer: str, checkout: str, out: str, whose: str, *tests: str) -> int:
    import pytest

    name = "dgl" if peer in FRAMEWORKS else "torch_geometric"
    package = __import__(name)
    plugin = Plugin(peer, Path(out), whose == "plain")
    if peer in STAND_IN:
        STAND_IN[peer](checkout)
    if Path(package.__file__).resolve().is_relative_to(checkout):
        raise SystemExit(f"{name} is that of the checkout: nothing was tested")
    # Its settings are for its own machines.
    options = ["-q", "-c", os.devnull, "--rootdir", checkout, "-p", "no:cacheprovider"]
    status = pytest.main([*options, *tests], plugins=[plugin])
    return int(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
