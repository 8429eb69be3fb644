"""Measures the shape of a checkout: entries, floors and arrows of the package, files, folders.

python -m tests.style.layout            # this checkout
python -m tests.style.layout FOLDER     # another one, of an older commit for example
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.style import docstrings, names, public
from tests.style.findings import ROOT, Module, modules
from tests.style.limits import GOALS, LIMITS

SMALL = 70
KERNELS = (".cu", ".cuh")


def main(arguments: list[str]) -> None:
    """Prints a table of the figures of a checkout, with the limits and the goals."""
    root = Path(arguments[0]).resolve() if arguments else ROOT
    print(f"{'':54}{'today':>8}{'limit':>8}{'goal':>8}")
    for name, value in figures(root).items():
        print(f"{name:54}{value:8}{LIMITS.get(name, ''):>8}{GOALS.get(name, ''):>8}")


def figures(root: Path) -> dict[str, int]:
    """The figures of the checkout `root`, by the words that describe them."""
    package, core = root / "python" / "pygsampler", root / "pygsampler"
    python = [module.path for module in modules(root).values()]
    go = [path for path in sorted(core.rglob("*.go")) if not path.stem.endswith("_test")]
    kernels = [path for path in (root / "kernels").rglob("*.cu*") if path.suffix in KERNELS]
    graph = arrows(root)
    texts = list(docstrings.docstrings(root))
    public_names = {module: len(each) for module, each in public.names(root).items()}
    folders = [each for each in (core / "internal").iterdir() if each.is_dir()]
    return {
        "entries at the top of the package": len(entries(package)),
        "floors of the import graph": floors(graph),
        "arrows between entries": sum(map(len, graph.values())),
        "import circles of entries": sum(len(each) > 1 for each in components(graph)),
        "Python files": len(python),
        f"Python files below {SMALL} lines": sum(
            _lines(each) < SMALL for each in python if each.name != "__init__.py"
        ),
        "class names in two modules or more": sum(
            len(homes) > 1 for homes in names.class_homes(root).values()
        ),
        "modules with a bad name": len(names.bad_modules(root)),
        "docstrings": len(texts),
        "docstrings that open without a subject": sum(map(docstrings.opens_badly, texts)),
        "public names": sum(public_names.values()),
        "public names at the root": public_names[public.PACKAGE],
        "folders side by side in the Go core": len(folders),
        "files of the Go root package": sum(each.parent == core for each in go),
        "functions of the bridge": len(bridge_functions(root)),
        "functions that begin a batch": len(begins(root)),
        "kernel folders": len({each.parent for each in kernels}),
        "kernel sources in the largest folder": max(
            Counter(each.parent for each in kernels).values()
        ),
        "lines of Python": sum(map(_lines, [*python, *package.rglob("*.pyi")])),
        "lines of Go, with its C": sum(map(_lines, [*go, *core.rglob("*.[chs]")])),
        "lines of kernels": sum(map(_lines, kernels)),
    }


def bridge_functions(root: Path) -> dict[str, str]:
    """The bodies of the functions that gopy makes callable from Python, by name."""
    text = "".join(
        path.read_text()
        for path in sorted((root / "bridge").glob("*.go"))
        if not path.stem.endswith("_test")
    )
    return dict(re.findall(r"^func ([A-Z]\w*)\(.*?\{\n(.*?)^\}", text, re.M | re.S))


def begins(root: Path) -> set[str]:
    """The functions of the bridge that begin a batch: they call a function Submit of the core."""
    return {name for name, body in bridge_functions(root).items() if ".Submit" in body}


def entries(package: Path) -> set[str]:
    """The modules and folders at the top of the package; `py.typed` is a mark for checkers."""
    return {
        path.name
        for path in package.iterdir()
        if path.name != "__pycache__" and path.suffix not in (".so", ".typed")
    }


def arrows(root: Path) -> dict[str, set[str]]:
    """The entries at the top of the package that each entry imports.

    Imports inside of functions and for type checkers count like all others.
    """
    graph = defaultdict(set)
    for module in modules(root).values():
        source = _entry(root, module)
        for target in imports(module, modules(root)):
            other = _entry(root, modules(root)[target])
            if other != source:
                graph[source].add(other)
    return dict(graph)


def imports(module: Module, known: dict[str, Module]) -> Iterator[str]:
    """Yields the names of the modules among `known` that `module` imports."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in named:
            # The module itself, or the one that defines an imported object.
            while name and name not in known:
                name = name.rpartition(".")[0]
            if name:
                yield name


def floors(graph: dict[str, set[str]]) -> int:
    """The number of nodes of the longest chain in `graph`, where a circle counts as one node."""
    part_of = {name: part for part in components(graph) for name in part}

    @functools.cache
    def height(part: frozenset[str]) -> int:
        below = {part_of[other] for name in part for other in graph.get(name, ())} - {part}
        return 1 + max(map(height, below), default=0)

    return max(map(height, part_of.values()), default=0)


def components(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The strongly connected components of `graph`."""
    nodes = set(graph).union(*graph.values())
    reached = {name: _reached(graph, name) for name in nodes}
    return {
        frozenset({name, *(other for other in reached[name] if name in reached[other])})
        for name in nodes
    }


def _reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - found
        found |= new
        waiting.extend(new)
    return found


def _entry(root: Path, module: Module) -> str:
    return module.path.relative_to(root / "python" / "pygsampler").parts[0].removesuffix(".py")


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


if __name__ == "__main__":
    main(sys.argv[1:])
