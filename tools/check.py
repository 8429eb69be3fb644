"""Linters, types and the tests that cover what changed: `make check`, before a commit.

    python tools/check.py                 # against the merge base with origin/main, or main
    python tools/check.py --since HEAD~3
    python tools/check.py --list          # what would run, and why

Changed are the files that differ from that commit, committed or not. Go's tests are those of the
changed packages, then of the packages that import them, those with the fewest imports first.
Python's tests are a small core, then the changed tests, then tests that name what a changed file
defines, then tests that name what its importers define. Both stop when the time is over and say
what they left out: `make test SLOW=yes` runs everything.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Samples as they always were, one comparison with the slow reference, names, plans, documents.
CORE = (
    "tests/samplers/test_neighbor.py::test_the_engine_gives_what_the_contract_says",
    "tests/packaging/test_public_names.py",
    "tests/sampling/test_plan.py",
    "tests/docs/test_docs.py",
    "tests/docs/test_claims.py",
)
# All of what lies there belongs to the core, too.
CORE_FOLDERS = ("tests/style", "tests/golden")
# Need a GPU, a wheel, or minutes: only when they changed themselves.
SLOW = tuple(f"tests/{name}/" for name in ("cuda", "packaging", "soak", "fuzz", "faults"))
PACKAGE = "python/pygsampler/"
SECONDS = 100.0
MOST_FILES, NAMED, FARTHEST = 20, 5, 2


# ---- what changed ----------------------------------------------------------------------------


def git(*arguments: str) -> list[str]:
    """The lines that git prints; none where it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_since(since: str | None) -> list[str]:
    """Files that differ from a commit, None for the merge base with main, and new ones."""
    bases = [since] if since else git("merge-base", "HEAD", "origin/main")
    bases = bases or git("merge-base", "HEAD", "main") or ["HEAD"]
    if since and not git("rev-parse", "--verify", f"{since}^{{commit}}"):
        raise SystemExit(f"--since: expected a commit, got {since}")
    differ = git("diff", "--name-only", "--diff-filter=d", "--no-renames", bases[0])
    return sorted({*differ, *git("ls-files", "--others", "--exclude-standard")})


# ---- tests of Python -------------------------------------------------------------------------


def words(path: str) -> set[str]:
    """The words of a file's name in the singular, without "test"."""
    return {word.removesuffix("s") for word in re.split(r"[_.]", Path(path).stem)} - {"test", ""}


def module_of(path: str) -> str:
    """The dotted name of a file of the package."""
    parts = Path(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def defined(tree: ast.Module) -> set[str]:
    """Classes and functions of a module by which tests can be found: those with telling names."""
    kinds = (ast.ClassDef, ast.FunctionDef)
    names = {node.name for node in tree.body if isinstance(node, kinds)}
    return {name for name in names if name[0] != "_" and ("_" in name or name != name.lower())}


def imported(tree: ast.Module) -> set[str]:
    """Dotted names of all imports; of `from a import b` both a and a.b."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


@dataclass
class Sources:
    """The package's modules and the files of tests below a root."""

    root: Path
    defines: dict[str, set[str]] = field(default_factory=dict)
    importers: dict[str, set[str]] = field(default_factory=dict)
    tests: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        trees = {}
        for path in sorted((self.root / PACKAGE).rglob("*.py")):
            trees[module_of(str(path.relative_to(self.root)))] = ast.parse(path.read_text())
        trees.pop("pygsampler", None)  # it imports all, and all tests name it
        for name, tree in trees.items():
            self.defines[name] = defined(tree)
            for other in imported(tree) & trees.keys() - {name}:
                self.importers.setdefault(other, set()).add(name)
        for path in sorted((self.root / "tests").rglob("test_*.py")):
            self.tests[str(path.relative_to(self.root))] = path.read_text()

    def near(self, module: str) -> Iterator[tuple[int, str]]:
        """The module, its importers, and theirs, each with its distance."""
        seen, now = {module}, {module}
        for distance in range(FARTHEST + 1):
            yield from ((distance, name) for name in sorted(now))
            now = {other for name in now for other in self.importers.get(name, ())} - seen
            seen |= now

    def naming(self, path: str) -> Iterator[tuple[int, str, int]]:
        """(distance, test, number of mentions) of all tests that name what a file defines."""
        if path.startswith(PACKAGE) and path.endswith(".py"):
            for distance, module in self.near(module_of(path)):
                names = {*self.defines.get(module, ()), module}
                yield from self._mentions(distance, names)
        elif path.endswith(".py"):
            stem, folder = Path(path).stem, Path(path).parts[0]
            # Scripts are named by strings, other files by imports.
            how = rf"\"{stem}(\.py)?\"" if folder == "tools" else rf"import.*\b{stem}\b"
            places = rf"{how}|{folder}[/.](\w+[/.])*{stem}\b"
            for test, text in self.tests.items():
                if count := len(re.findall(places, text)):
                    yield 0, test, count
        elif path.endswith((".go", ".cu", ".cuh", ".c", ".h")):
            about = {Path(path).parent.name, *words(path)} - {"internal", "pygsampler", "bridge"}
            yield from ((FARTHEST, test, 1) for test in self.tests if about & words(test))

    def _mentions(self, distance: int, names: Iterable[str]) -> Iterator[tuple[int, str, int]]:
        pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
        for test, text in self.tests.items():
            if count := len(pattern.findall(text)):
                yield distance, test, count

    def covering(self, changed: Iterable[str]) -> dict[str, str]:
        """Tests that cover changed files, those to run first first, and why each does."""
        ranks: dict[str, tuple[int, int, int, str]] = {}
        for path in changed:
            if path in self.tests:
                ranks[path] = (-1, 0, 0, "it changed")
                continue
            for distance, test, count in self.naming(path):
                tested_there = path.startswith("tools/") and not test.startswith("tests/cuda/")
                if test.startswith(SLOW) and not tested_there:
                    continue
                # The file's own tests before those that use it in passing.
                unlike = len(words(path) ^ words(test)) if words(path) & words(test) else 9
                why = f"for {path}" + (f", {distance} imports away" if distance else "")
                ranks[test] = min(ranks.get(test, (9, 0, 0, "")), (distance, unlike, -count, why))
        return {test: ranks[test][-1] for test in sorted(ranks, key=ranks.__getitem__)}


def chosen_tests(changed: Sequence[str], root: Path = ROOT) -> tuple[dict[str, str], list[str]]:
    """Tests to run in order and why, and files of tests that cover the change but are too many."""
    core = dict.fromkeys(CORE, "core")
    for folder in CORE_FOLDERS:
        found = sorted((root / folder).glob("test_*.py"))
        core |= dict.fromkeys((str(path.relative_to(root)) for path in found), "core")
    covering = {t: why for t, why in Sources(root).covering(changed).items() if t not in core}
    kept = dict(list(covering.items())[:MOST_FILES])
    return core | kept, [test for test in covering if test not in kept]


# ---- tests of Go -----------------------------------------------------------------------------


@dataclass(frozen=True)
class GoPackage:
    path: str
    folder: str
    needs: frozenset[str]


def go_packages() -> list[GoPackage]:
    """All packages, with all that they and their tests import."""
    fields = ("{{.ImportPath}}", "{{.Dir}}", "{{.Deps}}", "{{.TestImports}} {{.XTestImports}}")
    done = subprocess.run(
        ["go", "list", "-f", "|".join(fields), "./..."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    # Go prints a list as [a b].
    rows = [re.sub(r"[\[\]]", "", line).split("|") for line in done.stdout.splitlines()]
    deps = {path: set(needs.split()) for path, _, needs, _ in rows}
    return [
        GoPackage(
            path,
            str(Path(folder).relative_to(ROOT)),
            frozenset(deps[path].union(*({t} | deps.get(t, set()) for t in tested.split()))),
        )
        for path, folder, _, tested in rows
    ]


def go_choice(changed: Iterable[str], packages: Sequence[GoPackage]) -> tuple[list[str], list[str]]:
    """Packages that changed, and those that import them, with the fewest imports first.

    A file belongs to the package in the nearest folder above it, as kernels and test data do.
    """
    by_folder = {package.folder: package.path for package in packages}
    touched = set()
    for path in changed:
        if not path.endswith((".md", ".py")):
            above = (str(folder) for folder in Path(path).parents)
            touched |= {*[by_folder[folder] for folder in above if folder in by_folder][:1]}
    others = [p for p in packages if p.path not in touched and touched & p.needs]
    others.sort(key=lambda package: len(package.needs))
    return sorted(touched), [package.path for package in others]


# ---- running ---------------------------------------------------------------------------------


class Commands(threading.Thread):
    """Commands one after the other beside the tests of Python; their output is kept."""

    def __init__(self, changed: Sequence[str], deadline: float) -> None:
        super().__init__()
        self.changed, self.deadline = changed, deadline
        self.failed: list[str] = []
        self.left_out: list[str] = []

    def command(self, *words: str, stop: bool = False) -> str:
        """Runs a command and returns its output; with `stop` it ends when the time is over."""
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            left = max(0.0, self.deadline - time.monotonic()) if stop else None
            output, _ = process.communicate(timeout=left)
            failed = process.returncode != 0 or (words[0] == "gofmt" and output)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            failed = re.search(r"(?m)^(--- )?FAIL", output)
        if failed:
            self.failed.append(f"{' '.join(words)}\n{output}")
        return output

    def run(self) -> None:
        scripts = Path(sys.executable).parent
        self.command(f"{scripts}/ruff", "check", ".")
        self.command(f"{scripts}/ruff", "format", "--check", ".")
        # The package as it lies here, not one that is installed.
        contract = f"{scripts}/lint-imports", "--no-cache", "--no-logo"
        self.command("env", "PYTHONPATH=python", *contract)
        self.command(f"{scripts}/mypy")
        if gofiles := [path for path in self.changed if path.endswith(".go")]:
            self.command("gofmt", "-l", *gofiles)
        packages, importers = go_choice(self.changed, go_packages())
        if packages:
            self.command("go", "vet", *packages)
            self.command("go", "tool", "staticcheck", *packages)
            self.command("go", "test", "-short", *packages)
        if importers:
            output = self.command("go", "test", "-short", *importers, stop=True)
            done = {word for line in output.splitlines() for word in line.split()}
            self.left_out = [package for package in importers if package not in done]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all that ran passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--since", help="a commit (default: the merge base with main)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="(default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="only say what would run")
    options = parser.parse_args(arguments)
    changed = changed_since(options.since)
    tests, too_many = chosen_tests(changed)
    print(f"{len(changed)} changed files; tests of Python:")
    for test, why in tests.items():
        print(f"  {test}: {why}")
    if options.list:
        packages, importers = go_choice(changed, go_packages())
        print("tests of Go:", *packages, *importers, sep="\n  ")
        return 0
    commands = Commands(changed, time.monotonic() + options.seconds)
    commands.start()
    pages = [f"--page={path}" for path in changed if path.endswith(".md")]
    budget = ["-p", "tools.pytest_budget", f"--budget={options.seconds}"]
    status = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *budget, *pages, *tests],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python"), "OMP_WAIT_POLICY": "passive"},
    ).returncode
    commands.join()
    for output in commands.failed:
        print(f"\nfailed: {output}")
    for name in commands.left_out:
        print(f"left out, no time: {name}")
    if too_many:
        names = ", ".join(too_many[:NAMED])
        print(f"left out, farther away: {len(too_many)} files of tests, the nearest are {names}")
    passed = status == 0 and not commands.failed
    print("passed, as far as it goes: make test runs everything" if passed else "failed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
