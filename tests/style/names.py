"""Finds names of files, classes, functions and arguments that do not say what they stand for."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.style.findings import Finding, modules, place

# No part of a name, of those that underscores and capitals separate.
_BANNED = (
    "made making begun beginning told given taken asked drawn gathered furnish furnished beside "
    "elsewhere coming here there near far whole alone apart left kept lent lend joined standing "
    "turn turns cut same own optioned directed things about known found typed timed vertex "
    "vertices hottest thing anybody neighbour neighbours"
)
# Too vague to be a whole name.
_BANNED_ALONE = (
    "of at on by_type any parts rows numbers forms notes data ends row pool given peers helpers "
    "utils misc common"
)
# Names of classes that replace those of DGL and PyG, and of ours with the same purpose.
DROP_IN = frozenset(
    {
        *("PGSampler", "Sampler", "LaborSampler"),
        *("HGTSampler", "NeighborSampler", "ShaDowKHopSampler"),
    }
)
# Arguments of PyG's own loaders.
PYG_ARGUMENTS = frozenset({"data", "directed"})
# Names of NextDoor's interface (figures 3 and 4 of the paper).
NEXTDOOR_NAMES = frozenset({"prevVertex", "vertices"})
FOLDERS = frozenset({"kernels/common"})
BANNED, BANNED_ALONE = frozenset(_BANNED.split()), frozenset(_BANNED_ALONE.split())

GO_FUNCTION = re.compile(r"^func (?:\([^)]*\) )?([A-Z]\w*)", re.MULTILINE)
GO_TYPE = re.compile(r"^type ([A-Z]\w*)", re.MULTILINE)
GO_GROUP = re.compile(r"^type \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
GO_IN_GROUP = re.compile(r"^\t([A-Z]\w*)", re.MULTILINE)


def words(name: str) -> list[str]:
    """The words of `name` in lower case, split at underscores, digits and capitals."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def is_bad(name: str) -> bool:
    """True if `name` has a banned word, or is banned as a whole."""
    return name.strip("_").lower() in BANNED_ALONE or not BANNED.isdisjoint(words(name))


def find(root: Path) -> Iterator[Finding]:
    """Yields the findings in the Python, Go and kernel files of the checkout `root`."""
    package = root / "python" / "pygsampler"
    yield from _paths(root, package, "*.py")
    yield from _python(root)
    yield from _doubled(root)
    for folder in ("pygsampler", "bridge", "gpu", "kernels"):
        yield from _paths(root, root / folder, "*.go")
        yield from _go(root, root / folder)
    for pattern in ("*.cu", "*.cuh"):
        yield from _paths(root, root / "kernels", pattern)


def bad_modules(root: Path) -> list[Path]:
    """The Python files of the checkout `root` with a bad name."""
    return [module.path for module in modules(root).values() if is_bad(module.path.stem)]


def class_homes(root: Path) -> dict[str, set[Path]]:
    """The files that define a class, by the name of the class."""
    homes = defaultdict(set)
    for module in modules(root).values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(module.path)
    return homes


def _paths(root: Path, folder: Path, pattern: str) -> Iterator[Finding]:
    for path in sorted(folder.rglob(pattern)):
        if is_bad(path.stem.removesuffix("_test")):
            yield Finding(f"file {path.relative_to(root)}", place(root, path))
        for parent in path.relative_to(folder).parents:
            short = str((folder / parent).relative_to(root))
            if is_bad(parent.name) and short not in FOLDERS:
                yield Finding(f"folder {short}", short)


def _python(root: Path) -> Iterator[Finding]:
    for module in modules(root).values():
        file = module.path.relative_to(root)
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and is_bad(node.name):
                yield Finding(f"class {file} {node.name}", place(root, module.path, node.lineno))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                of_paper = file.parts[2] == "research" and node.name in NEXTDOOR_NAMES
                if is_bad(node.name) and not of_paper:
                    entry = f"function {file} {node.name}"
                    yield Finding(entry, place(root, module.path, node.lineno))
                for argument in _arguments(node):
                    foreign = file.parts[2] == "pyg" and argument.arg in PYG_ARGUMENTS
                    if is_bad(argument.arg) and not foreign:
                        entry = f"argument {file} {argument.arg}"
                        yield Finding(entry, place(root, module.path, argument.lineno))


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    arguments = node.args
    rest = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _doubled(root: Path) -> Iterator[Finding]:
    for name, homes in class_homes(root).items():
        if len(homes) > 1 and name not in DROP_IN:
            yield Finding(f"doubled class {name}", ", ".join(place(root, each) for each in homes))


def _go(root: Path, folder: Path) -> Iterator[Finding]:
    for path in sorted(folder.rglob("*.go")):
        if path.stem.endswith("_test"):
            continue
        file, text = path.relative_to(root), path.read_text()
        for kind, name, position in go_exports(text):
            if is_bad(name):
                line = text.count("\n", 0, position) + 1
                yield Finding(f"{kind} {file} {name}", place(root, path, line))


def go_exports(text: str) -> Iterator[tuple[str, str, int]]:
    """Yields kind, name and position of the exported functions, methods and types in `text`."""
    for match in GO_FUNCTION.finditer(text):
        yield "function", match[1], match.start()
    for match in GO_TYPE.finditer(text):
        yield "type", match[1], match.start()
    for group in GO_GROUP.finditer(text):
        for match in GO_IN_GROUP.finditer(group[1]):
            yield "type", match[1], group.start(1) + match.start()
