"""Reads the public names of the package from its source, without importing any framework."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.style.findings import Module, modules

PACKAGE = "pygsampler"
# The values and types of the language of programs, which are counted apart from all others.
PROGRAMS = "programs"
# Modules that users import, besides the root. One that becomes public is added here.
MODULES = (
    *("cuda", "datasets", "dgl", "distributed", "engine", "errors", "evaluate", "flight", "pyg"),
    *("research", "research.nextdoor", "samplers", "samplers.learned", "torch", "walks"),
)


def declared(module: Module) -> list[str]:
    """The names in the `__all__` of `module`, without those of public modules."""
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
            return [name for name in names if not (module.name == PACKAGE and name in MODULES)]
    return []


def names(root: Path, *, programs: bool = False) -> dict[str, list[str]]:
    """The public names of the checkout `root` by module, with those of `programs` if asked for."""
    parts = (*MODULES, PROGRAMS) if programs else MODULES
    public = [PACKAGE, *(f"{PACKAGE}.{part}" for part in parts)]
    return {name: declared(modules(root)[name]) for name in public}


def definition(root: Path, module: str, name: str) -> tuple[str, ast.AST] | None:
    """The module and node of the class, function or constant that `name` is in `module`."""
    known = modules(root)
    if module not in known:
        return None
    for node in ast.walk(known[module].tree):
        if isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return definition(root, node.module, alias.name)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name == name and not _is_overload(node):
                return module, node
        elif isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            if isinstance(node.value, ast.Constant | ast.UnaryOp):
                return module, node
            if isinstance(node.value, ast.Name) and name != node.value.id:
                return definition(root, module, node.value.id)
    return None


def functions(root: Path) -> Iterator[tuple[str, str, ast.AST, ast.ClassDef | None]]:
    """Yields module, qualified name, node and class of each public function and method."""
    seen = set()
    waiting = [
        found
        for module, each in names(root, programs=True).items()
        for name in each
        if (found := definition(root, module, name)) is not None
    ]
    while waiting:
        module, node = waiting.pop()
        if isinstance(node, ast.Assign):
            continue
        qualified = f"{module}.{node.name}"
        if qualified in seen:
            continue
        seen.add(qualified)
        if not isinstance(node, ast.ClassDef):
            yield module, qualified, node, None
            continue
        for child in node.body:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            if not is_function or _is_overload(child):
                continue
            if child.name == "__init__" or not child.name.startswith("_"):
                yield module, f"{qualified}.{child.name}", child, node
        for base in node.bases:
            expression = base.value if isinstance(base, ast.Subscript) else base
            found = definition(root, module, ast.unparse(expression))
            if found is not None and isinstance(found[1], ast.ClassDef):
                waiting.append(found)


def _is_overload(node: ast.AST) -> bool:
    return any(ast.unparse(each).endswith("overload") for each in node.decorator_list)
