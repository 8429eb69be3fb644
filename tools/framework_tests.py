#!/usr/bin/env python3
"""Tests of DGL, PyG and programs for them, with pygsampler's classes in the place of theirs.

    git clone https://github.com/pyg-team/pytorch_geometric
    python tools/framework_tests.py pytorch_geometric
    python tools/framework_tests.py dgl --file test_spot_target --verbose
    python tools/framework_tests.py graphstorm

The tests are those of the checkout, best of the version that is installed; what they import is the
installed package. In memory, and in processes of their own, their names of samplers and loaders
stand for ours, and PyG believes that it has what ours do without: pyg-lib, torch-sparse for the
samplers of subgraphs, and its METIS. A generated graph replaces the one that DGL's tests of
subgraphs download. In every file that names a replaced class, the tests that use it run and are
counted once.
Checkouts of RelBench, PyGOD and ContextGNN, and cugraph-gnn, whose loaders' tests have stores that
stand in for cuGraph's, run all of their tests, whose programs name our classes. GraphStorm, whose
loaders sample by subclasses of DGL's samplers, is imported from its checkout, and what it needs and
is not installed, such as language models, is an empty module. Counted are:

    passed        with our class at work
    not offered   ended by a NotImplementedError of ours, which names the option
    differs       failed as tools/framework_tests.toml says that it may, with the reason
    peer's        failed, and fails with the peer's own class too
    not run       skipped, or passed before any class of ours was used, or wants the network
    failed        anything else

Status 0 if nothing failed, 1 if something did, 2 if nothing could run.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import fnmatch
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve()
PLUGIN = HERE.with_name("framework_plugin.py")
KINDS = ("passed", "not offered", "differs", "peer's", "not run", "failed")
# Kinds of a test that its teardown does not change.
FINAL = ("failed", "not offered", "skipped", "network")
STAND_INS = (
    "import sys\nfrom framework_stand_ins import EmptyModules\n"
    "sys.meta_path.append(EmptyModules())\n"
)
# Seconds for all tests of a file; tests that start processes take a minute each.
TIMEOUT = 3600


class Peer(NamedTuple):
    """Whose tests they are, and where a checkout has them."""

    distribution: str
    source: str
    tests: str
    names: tuple[str, ...]
    # Folders whose samplers of the same name are others.
    without: tuple[str, ...]
    # Folders of modules that its tests share.
    path: tuple[str, ...] = ()
    # True if its tests reach our classes by code of its own, so that all of them run.
    indirect: bool = False
    # True if its tests can run again with its own classes.
    own: bool = True
    # Further packages whose versions are reported, by their names on PyPI.
    also: tuple[str, ...] = ()
    files: str = "test_*.py"
    # True if modules that it imports may be empty.
    stand_ins: bool = False


PEERS = {
    "pyg": Peer(
        distribution="torch-geometric",
        source="torch_geometric",
        tests="test",
        names=(
            "NeighborLoader",
            "LinkNeighborLoader",
            "HGTLoader",
            "ClusterData",
            "ClusterLoader",
            "GraphSAINTEdgeSampler",
            "GraphSAINTNodeSampler",
            "GraphSAINTRandomWalkSampler",
            "ShaDowKHopSampler",
            "NeighborSampler",
            "MyFeatureStore",
            "MyGraphStore",
            "Node2Vec",
            "MetaPath2Vec",
        ),
        without=("distributed",),
    ),
    "dgl": Peer(
        distribution="dgl",
        source="python/dgl",
        tests="tests/python",
        names=(
            "NeighborSampler",
            "MultiLayerNeighborSampler",
            "MultiLayerFullNeighborSampler",
            "ClusterGCNSampler",
            "LaborSampler",
            "SAINTSampler",
            "ShaDowKHopSampler",
            "PinSAGESampler",
            "RandomWalkNeighborSampler",
            "node2vec_random_walk",
            "pack_traces",
            "random_walk",
        ),
        without=("graphbolt", "distributed"),
        path=("tests",),
    ),
    "relbench": Peer(
        distribution="relbench",
        source="relbench/modeling",
        tests="test/modeling",
        names=("test_.*",),
        without=(),
        indirect=True,
        also=("torch-geometric", "pytorch-frame"),
    ),
    "pygod": Peer(
        distribution="pygod",
        source="pygod/detector",
        tests="pygod/test",
        names=("test_.*",),
        without=(),
        path=(".",),
        indirect=True,
        also=("torch-geometric",),
    ),
    "contextgnn": Peer(
        distribution="contextgnn",
        source="contextgnn",
        tests="test",
        names=("test_.*",),
        without=(),
        path=(".",),
        indirect=True,
        also=("torch-geometric", "relbench", "pytorch-frame"),
    ),
    "cugraph": Peer(
        distribution="cugraph-pyg",
        source="python/cugraph-pyg/cugraph_pyg/loader",
        tests="python/cugraph-pyg/cugraph_pyg/tests/loader",
        names=("NeighborLoader", "LinkNeighborLoader"),
        # Tests of several GPUs.
        without=("test_neighbor_loader_mg.py",),
        indirect=True,
        own=False,
        also=("torch-geometric",),
    ),
    "graphstorm": Peer(
        distribution="dgl",
        source="python/graphstorm",
        tests="tests/unit-tests",
        names=("GSgnnNodeDataLoader",),
        without=(),
        path=("python",),
        files="test_dataloading.py",
        stand_ins=True,
    ),
}


class Result(NamedTuple):
    test: str
    kind: str
    why: str = ""
    place: str = ""


class Known(NamedTuple):
    """A difference that is meant: a test by its id, with * and ?, and the reason."""

    test: str
    reason: str


def read_known(peer: str, path: Path) -> list[Known]:
    import tomllib

    with path.open("rb") as file:
        return [Known(**entry) for entry in tomllib.load(file).get(peer, [])]


def peer_of(checkout: Path) -> str:
    for name, peer in PEERS.items():
        if (checkout / peer.source).is_dir() and (checkout / peer.tests).is_dir():
            return name
    raise SystemExit(f"{checkout}: expected a checkout of one of {', '.join(PEERS)}")


def files_of(peer: Peer, checkout: Path) -> list[Path]:
    """The files of tests that have one of the names."""
    name = re.compile(rf"\b({'|'.join(peer.names)})\b")
    root = checkout / peer.tests
    return [
        path
        for path in sorted(root.rglob(peer.files))
        if not set(path.relative_to(root).parts) & set(peer.without)
        and name.search(path.read_text())
    ]


def in_a_child(
    peer: str, checkout: Path, tests: Iterable[str], plain: bool, verbose: bool
) -> list[Result]:
    """The results of tests that run in a process of their own, which may crash."""
    import pygsampler

    with tempfile.TemporaryDirectory() as folder:
        out, log = Path(folder, "results.jsonl"), Path(folder, "log")
        out.touch()
        whose = "plain" if plain else "ours"
        command = [sys.executable, str(PLUGIN), peer, str(checkout), str(out), whose, *tests]
        ours = Path(pygsampler.__file__).parents[1]
        paths = [str(ours), *(str(checkout / each) for each in PEERS[peer].path)]
        paths += [each for each in [os.environ.get("PYTHONPATH")] if each]
        if PEERS[peer].stand_ins:
            # Python runs it as it starts, in the processes that tests start too.
            Path(folder, "sitecustomize.py").write_text(STAND_INS)
            paths += [folder, str(HERE.parent)]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "DGLBACKEND": "pytorch",
        }
        with log.open("w") as file:
            status = wait_for(command, environment, folder, None if verbose else file)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        printed = log.read_text(errors="replace")
    if not any("all" in line for line in lines):
        raise SystemExit(f"{' '.join(command)}: status {status}\n{printed}")
    # The last line of a test counts, except for an end that follows a failure.
    results: dict[str, Result] = {}
    for line in lines:
        for test in line.get("all", ()):
            results[test] = Result(test, "crashed", f"status {status} before its end")
        if "test" in line and results.get(line["test"], Result("", "")).kind not in FINAL:
            results[line["test"]] = Result(**line)
    return list(results.values())


def wait_for(command: list[str], environment: dict[str, str], folder: str, log: Any) -> int:
    """The status of a command, after the end of the processes that it left behind."""
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        return process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    finally:
        # They would hold the port that the next file's tests listen at.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def judged(
    results: list[Result], known: list[Known], fails_with_peer: Callable[[list[str]], set[str]]
) -> list[Result]:
    """The results with the kinds that are counted."""
    found = []
    failed = [each.test for each in results if each.kind in ("failed", "crashed")]
    reasons = {test: difference(test, known) for test in failed}
    with_peer = fails_with_peer([test for test in failed if not reasons[test]])
    for result in results:
        kind, why = result.kind, result.why
        if kind in ("failed", "crashed"):
            reason = reasons[result.test]
            kind = "differs" if reason else "peer's" if result.test in with_peer else "failed"
            why = reason or why
        elif kind in ("skipped", "unused", "network"):
            kind = "not run"
        found.append(result._replace(kind=kind, why=why))
    return found


def difference(test: str, known: list[Known]) -> str:
    return next((each.reason for each in known if matches(test, each)), "")


def matches(test: str, known: Known) -> bool:
    # Ids have brackets, which fnmatch would read as sets of characters.
    return fnmatch.fnmatchcase(test, known.test.replace("[", "[[]"))


def stale(results: list[Result], known: list[Known]) -> list[Known]:
    """Differences that are no more: all tests that are meant pass."""
    kinds = {each: [r.kind for r in results if matches(r.test, each)] for each in known}
    return [each for each, found in kinds.items() if found and set(found) == {"passed"}]


def table(results: list[Result]) -> str:
    """A row for each file, in Markdown, and one for all."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for result in results:
        counts[result.test.partition("::")[0]][result.kind] += 1
    rows = [["file", *KINDS], ["---", *["--:"] * len(KINDS)]]
    rows += [[file, *(str(count[kind]) for kind in KINDS)] for file, count in counts.items()]
    total = collections.Counter(result.kind for result in results)
    rows.append(["all", *(str(total[kind]) for kind in KINDS)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def report(peer: Peer, checkout: Path, results: list[Result], known: list[Known]) -> None:
    names = ("pygsampler", peer.distribution, *peer.also, "torch", "numpy")
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} (not installed)")
    print(f"\n{', '.join(found)}; tests of {checkout.name}\n")
    print(table(results))
    for kind in KINDS[1:]:
        reasons: dict[str, list[Result]] = collections.defaultdict(list)
        for result in results:
            if result.kind == kind:
                # An option is named before the colon.
                why = result.why.partition("\n")[0]
                if kind == "not offered":
                    why = result.why.partition(": ")[2].partition(":")[0]
                reasons[why].append(result)
        if reasons:
            print(f"\n{kind}:")
        for why, those in sorted(reasons.items(), key=lambda each: -len(each[1])):
            print(f"  {len(those)} x {why[:400]}")
            if kind in ("failed", "peer's"):
                for result in those:
                    print(f"      {result.test} ({result.place})")
    for each in stale(results, known):
        print(f"\nstale: {each.test} passes, {each.reason!r}")


def arguments_of(values: list[str] | None) -> argparse.Namespace:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a clone of DGL, PyG or another")
    parser.add_argument("--file", default="", help="only files with this in their path")
    parser.add_argument("--known", type=Path, default=HERE.with_suffix(".toml"))
    parser.add_argument("--out", type=Path, help="a JSON file with every test's result")
    parser.add_argument("--verbose", action="store_true", help="what pytest prints, too")
    return parser.parse_args(values)


def main(values: list[str] | None = None) -> int:
    arguments = arguments_of(values)
    checkout = arguments.checkout.resolve()
    name = peer_of(checkout)
    known = read_known(name, arguments.known)
    files = [each for each in files_of(PEERS[name], checkout) if arguments.file in str(each)]
    results: list[Result] = []
    for file in files:
        print(file.relative_to(checkout), file=sys.stderr, flush=True)

        def with_peer(tests: list[str]) -> set[str]:
            paths = [str(checkout / test) for test in tests if PEERS[name].own]
            again = in_a_child(name, checkout, paths, True, arguments.verbose) if paths else []
            # PyG's own class ends so without pyg-lib, which says nothing of the test.
            return {
                each.test
                for each in again
                if each.kind in ("failed", "crashed") and not each.why.startswith("ImportError")
            }

        ran = in_a_child(name, checkout, [str(file)], False, arguments.verbose)
        results += judged(ran, known, with_peer)
    if not results:
        print("no test was run", file=sys.stderr)
        return 2
    report(PEERS[name], checkout, results, known)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps([each._asdict() for each in results], indent=1) + "\n")
    return 1 if any(each.kind == "failed" for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())
