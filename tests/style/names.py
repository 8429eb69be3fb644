"""Finds names of files, classes, functions and arguments that do not say what they stand for."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.style.findings import Finding, definitions, modules, place

PACKAGE = "pygsampler"
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
# By folder: an attribute of PyG's samplers; NextDoor's interface (figures 3 and 4 of the paper).
FOREIGN_FUNCTIONS = {
    "pyg": frozenset({"row"}),
    "research": frozenset({"prevVertex", "vertices"}),
}
# The public interface, whose names are fixed: callers write them, and errors name them.
PUBLIC_FUNCTIONS = frozenset(
    {
        "flight.client.Client.about",
        "programs._language.expressions.Matrix.row",
        "walks.result.Walks.ends",
    }
)
PUBLIC_ARGUMENTS = frozenset(
    {
        "_batch.block.Block.max of",
        "_batch.block.Block.mean of",
        "_batch.block.Block.self_and_reduce of",
        "_batch.block.Block.sum of",
        "_batch.block.Block.weighted_sum of",
        "_features.features.Features.cache rows",
        "_graph.graph.Graph.from_pyg data",
        "datasets._debian.Debian.graph directed",
        "datasets._debian.Debian.hetero_graph directed",
        "distributed.partition.partition parts",
        "distributed.reorder.reorder parts",
        "programs._language.graph_matrix.GraphMatrix.induce vertices",
        "programs._language.stack.stack parts",
        "samplers.learned.history.History.aggregate rows",
        "samplers.learned.history.History.update rows",
        "samplers.metis.clusters parts",
        "samplers.metis.clusters vertex_weights",
        "walks.result.Walks.visits ends",
    }
)
FOLDERS = frozenset({"kernels/common"})
# Images that are compiled ahead carry the digests of their sources under these names.
KERNELS = frozenset({"kernels/program/numbers.cuh"})
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
    package = root / "python" / PACKAGE
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
        file = str(path.relative_to(root))
        if is_bad(path.stem.removesuffix("_test")) and file not in KERNELS:
            yield Finding(f"file {file}", place(root, path))
        for parent in path.relative_to(folder).parents:
            short = str((folder / parent).relative_to(root))
            if is_bad(parent.name) and short not in FOLDERS:
                yield Finding(f"folder {short}", short)


def _python(root: Path) -> Iterator[Finding]:
    for module in modules(root).values():
        file = module.path.relative_to(root)
        for name, node in definitions(module):
            if isinstance(node, ast.ClassDef) and is_bad(node.name):
                yield Finding(f"class {file} {node.name}", place(root, module.path, node.lineno))
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                public = name.removeprefix(f"{PACKAGE}.")
                foreign = FOREIGN_FUNCTIONS.get(file.parts[2], frozenset())
                fixed = public in PUBLIC_FUNCTIONS or node.name in foreign
                if is_bad(node.name) and not fixed:
                    entry = f"function {file} {node.name}"
                    yield Finding(entry, place(root, module.path, node.lineno))
                for argument in arguments(node):
                    of_pyg = file.parts[2] == "pyg" and argument.arg in PYG_ARGUMENTS
                    fixed = of_pyg or f"{public} {argument.arg}" in PUBLIC_ARGUMENTS
                    if is_bad(argument.arg) and not fixed:
                        entry = f"argument {file} {argument.arg}"
                        yield Finding(entry, place(root, module.path, argument.lineno))


def arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """The arguments of the function `node`, those that collect others last."""
    every = node.args
    rest = [each for each in (every.vararg, every.kwarg) if each is not None]
    return [*every.posonlyargs, *every.args, *every.kwonlyargs, *rest]


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
