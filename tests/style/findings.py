"""The code that all checkers share: findings and parsed modules."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Finding(NamedTuple):
    """A breach of a rule, in words, and its place."""

    entry: str
    place: str


class Module(NamedTuple):
    """A parsed Python module."""

    name: str
    path: Path
    tree: ast.Module


@functools.cache
def modules(root: Path) -> dict[str, Module]:
    """The modules of the package in the checkout `root`, by dotted name."""
    python = root / "python"
    result = {}
    for path in sorted((python / "pygsampler").rglob("*.py")):
        parts = path.relative_to(python).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        result[name] = Module(name, path, ast.parse(path.read_text()))
    return result


def definitions(module: Module) -> Iterator[tuple[str, ast.AST]]:
    """Pairs of a qualified name and a node: the module and its classes and functions."""
    return _definitions(module.name, module.tree)


def _definitions(name: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    inside = name
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        inside = name if isinstance(node, ast.Module) else f"{name}.{node.name}"
        yield inside, node
    for child in ast.iter_child_nodes(node):
        yield from _definitions(inside, child)


def place(root: Path, path: Path, line: int = 1) -> str:
    """The position `path:line`, relative to `root`, as editors open it."""
    return f"{path.relative_to(root)}:{line}"


def check(findings: Iterable[Finding]) -> None:
    """Fails for any finding, and names the place of each."""
    found = sorted(findings)
    assert not found, "\n".join(f"{each.place}: {each.entry}" for each in found)
