"""Finds sentences in pages, comments and docstrings that open without their subject."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.style import prose
from tests.style.comments import OPENING
from tests.style.findings import Finding, place

# The places whose comments and docstrings are read.
PLACES = (
    *(".ci/", "Makefile", "benchmarks/", "bridge/", "examples/", "gpu/", "pygsampler/", "python/"),
    *("setup.py", "tests/cuda/", "tests/dgl/", "tests/style/", "tests/support/", "tools/"),
)
MARKS = {".py": "#", ".sh": "#", "Makefile": "#", "run": "#"}
MARKS |= dict.fromkeys((".go", ".c", ".h", ".cu", ".cuh"), "//")
# Code in a comment: `names`, "texts", and what continues a sentence behind an abbreviation.
LITERAL = re.compile(r"``[^`]*``|`[^`]*`|\"[^\"\n]*\"|\b(?:e\.g|i\.e|etc|al|cf|vs)\.")
QUESTION = re.compile(r"[^.!?]*\?")


def find(root: Path) -> Iterator[Finding]:
    """Yields the findings in the pages and in tracked files of `PLACES` of the checkout `root`."""
    for path in prose.pages(root):
        for text, line in prose.paragraphs(path.read_text()):
            yield from _findings(root, path, line, text)
    names = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for path in (root / name for name in names if name.startswith(PLACES)):
        mark = MARKS.get(path.suffix) or MARKS.get(path.name)
        if mark and path.exists():
            for text, line in paragraphs(path.read_text(), mark, python=path.suffix == ".py"):
                yield from _findings(root, path, line, text)


def openings(text: str) -> Iterator[str]:
    """Yields the words that open sentences of `text` and leave out or hide their subject.

    A question may open with any of them.
    """
    text = LITERAL.sub("x", text)
    for match in OPENING.finditer(text):
        if not QUESTION.match(text, match.start(1)):
            yield match[1]


def paragraphs(text: str, mark: str, *, python: bool) -> Iterator[tuple[str, int]]:
    """Yields each comment and docstring in the source `text`, and its first line."""
    if python:
        yield from _docstrings(text)
        comments = _python_comments(text)
    else:
        comments = _line_comments(text, mark)
    before, lines, first, alone = 0, [], 0, True
    for number, comment, whole_line in comments:
        if lines and not (number == before + 1 and whole_line and alone):
            yield "\n".join(lines), first
            lines = []
        if not lines:
            first, alone = number, whole_line
        before = number
        lines.append(comment)
    if lines:
        yield "\n".join(lines), first


def _findings(root: Path, path: Path, line: int, text: str) -> Iterator[Finding]:
    for word in openings(text):
        yield Finding(f"{path.name} opens a sentence with {word}", place(root, path, line))


def _docstrings(text: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                yield docstring, node.body[0].lineno


def _python_comments(text: str) -> Iterator[tuple[int, str, bool]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            yield token.start[0], token.string.lstrip("# "), alone


def _line_comments(text: str, mark: str) -> Iterator[tuple[int, str, bool]]:
    pattern = re.compile(rf"^(\s*)(?:(.*?)(?<!:)\s)?{mark} ?(.*)$")
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.match(line)
        if match:
            yield number, match[3], not match[2]
