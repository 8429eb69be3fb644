"""The code that all checkers share: findings, lists of allowed findings, and parsed modules."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LISTS = Path(__file__).parent


class Finding(NamedTuple):
    """A breach of a rule: its entry in a list, which no shift of lines changes, and its place."""

    entry: str
    place: str


class Difference(NamedTuple):
    """Findings that a list does not allow, and entries of the list without a finding."""

    new: list[Finding]
    unneeded: list[str]


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


def list_path(checker: str) -> Path:
    """The file of allowed findings of the checker `checker`."""
    return LISTS / f"allowed_{checker}.txt"


def read_entries(checker: str) -> list[str]:
    """The entries of the list of `checker`; an absent file is an empty list."""
    path = list_path(checker)
    return path.read_text().splitlines() if path.exists() else []


def write_entries(checker: str, entries: Iterable[str]) -> None:
    """Writes `entries` as the list of `checker`; an empty list has no file."""
    path = list_path(checker)
    lines = sorted(set(entries))
    if lines:
        path.write_text("".join(f"{line}\n" for line in lines))
    else:
        path.unlink(missing_ok=True)


def compare(entries: list[str], findings: Iterable[Finding]) -> Difference:
    """The difference between the list `entries` and the `findings` of today."""
    first: dict[str, Finding] = {}
    for finding in findings:
        first.setdefault(finding.entry, finding)
    allowed = set(entries)
    return Difference(
        sorted(finding for entry, finding in first.items() if entry not in allowed),
        sorted(allowed - first.keys()),
    )


def check(checker: str, findings: Iterable[Finding]) -> None:
    """Fails for a finding that the list does not have, and for an entry that is out of date."""
    entries = read_entries(checker)
    assert entries == sorted(set(entries)), f"{list_path(checker).name} is not sorted"
    new, unneeded = compare(entries, findings)
    assert not new, "\n".join(f"{each.place}: {each.entry}" for each in new)
    assert not unneeded, "run python -m tests.style --write: " + ", ".join(unneeded)
