"""Finds docstrings without a subject, without a summary, or silent about arguments.

Ruff holds that lines have at most 100 characters.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tests.style import public
from tests.style.findings import Finding, definitions, modules, place

# They refer to something outside the docstring, or leave the subject out.
FIRST_WORDS = frozenset(
    {
        *("What", "As", "How", "Where", "Of", "Those", "Which", "That", "Likewise", "These"),
        *("Whether", "It", "They", "One", "Same", "By", "For", "From", "Here", "Nobody", "So"),
        *("Something", "Everything", "When", "Who", "Whose"),
    }
)
SECTION = re.compile(r"^Parameters\n-+$", re.MULTILINE)


def find(root: Path) -> Iterator[Finding]:
    """Yields the findings in the docstrings of the checkout `root`."""
    for module in modules(root).values():
        for name, node in definitions(module):
            text = ast.get_docstring(node)
            if text is None:
                continue
            where = place(root, module.path, getattr(node, "lineno", 1))
            if opens_badly(text):
                yield Finding(f"{name} first-word", where)
            if not has_summary(text):
                yield Finding(f"{name} summary", where)
    yield from _arguments(root)


def docstrings(root: Path) -> Iterator[str]:
    """Yields the docstrings of the package in the checkout `root`."""
    for module in modules(root).values():
        for _, node in definitions(module):
            text = ast.get_docstring(node)
            if text is not None:
                yield text


def examples(text: str) -> Iterator[str]:
    """Yields the code of a docstring: what is indented after a line that ends with a colon."""
    for match in re.finditer(r"^\S.*:\n\n((?:    .*\n|\n)+)", f"{text}\n", re.MULTILINE):
        yield textwrap.dedent(match[1])


def opens_badly(text: str) -> bool:
    """True if the first word of `text` is one that leaves out or hides the subject."""
    word = re.match(r"\W*([A-Za-z]*)", text)
    return word is not None and word[1] in FIRST_WORDS


def has_summary(text: str) -> bool:
    """True if the first line of `text` is a sentence of its own."""
    return text.splitlines()[0].endswith(".")


def names_arguments(text: str, arguments: list[str]) -> bool:
    """True if `text` has a section for parameters or its first line names all `arguments`."""
    if SECTION.search(text):
        return True
    summary = text.partition("\n")[0]
    return all(re.search(rf"\b{re.escape(name)}\b", summary) for name in arguments)


def _arguments(root: Path) -> Iterator[Finding]:
    for module, name, node, owner in public.functions(root):
        arguments = _named_arguments(node, owner)
        text = ast.get_docstring(node) or ""
        if node.name == "__init__" and owner is not None:
            text = f"{ast.get_docstring(owner) or ''}\n\n{text}".strip()
        # A method without a docstring has that of the class it overrides.
        inherited = not text and owner is not None and owner.bases
        if arguments and not inherited and not names_arguments(text, arguments):
            where = place(root, modules(root)[module].path, node.lineno)
            yield Finding(f"{name} arguments", where)


def _named_arguments(node: ast.FunctionDef, owner: ast.ClassDef | None) -> list[str]:
    static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    if owner is not None and not static:
        positional = positional[1:]
    names = [*positional, *(each.arg for each in node.args.kwonlyargs)]
    return [name for name in names if not name.startswith("_")]
