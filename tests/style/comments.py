"""Finds comments of exported Go names, heads of kernels and error texts in house words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.style.findings import Finding, modules, place
from tests.style.prose import house_words

GO_FOLDERS = ("pygsampler", "bridge", "gpu", "kernels")

# A comment, and the declaration behind it: of a package, at the top of a file, or in a group.
COMMENT = re.compile(
    r"^(?P<comment>(?P<indent>\t?)//(?!go:|export ).*\n(?:(?P=indent)//.*\n)*)"
    r"(?P<line>(?P=indent)\S.*)",
    re.MULTILINE,
)
PACKAGE = re.compile(r"^package (\w+)")
TOP = re.compile(r"^(?:func (?:\([^)]*\) )?|type |const |var )([A-Z]\w*)")
MEMBER = re.compile(r"^\t([A-Z]\w*)")
# Statements of a group or a function look like members of a type, which they are not.
STATEMENT = re.compile(r"^\t[A-Z]\w*(?:\.|\[[^\]]*\]\()")
# Rule 2: the words that open no sentence.
OPENING = re.compile(
    r"(?:^|[.!?]\s+)(What|As|How|Where|Of|Those|Which|That|Likewise|These|Whether)\b"
)
# A name with a capital in a sentence is a name of the code, and so is an argument.
CODE = re.compile(r"(?<=[\w,;:)]\s)[A-Z]\w*|\b\w+=")
GO_ERROR = re.compile(r"(?:[eE]rror\w*|errors\.New|Refuse|fail|panic)\(")
GO_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


class Declaration(NamedTuple):
    """An exported Go declaration with its comment."""

    name: str
    opening: str | None
    comment: str
    signature: str
    line: int


def find(root: Path) -> Iterator[Finding]:
    """Yields the findings in the Go files, kernels and raised errors of the checkout `root`."""
    for path in go_files(root):
        text, package = path.read_text(), path.parent.name
        for each in declarations(text):
            for problem in comment_problems(each):
                yield Finding(f"{package}.{each.name} {problem}", place(root, path, each.line))
        for word, line in go_errors(text):
            yield Finding(f"{package} error {word}", place(root, path, line))
    for pattern in ("*.cu", "*.cuh"):
        for path in sorted((root / "kernels").rglob(pattern)):
            for problem in head_problems(path.read_text()):
                yield Finding(f"{path.relative_to(root)} {problem}", place(root, path))
    for module in modules(root).values():
        for word, line in python_errors(module.tree):
            yield Finding(f"{module.name} error {word}", place(root, module.path, line))


def go_files(root: Path) -> list[Path]:
    """The Go files of the checkout `root` without tests."""
    files = (path for folder in GO_FOLDERS for path in (root / folder).rglob("*.go"))
    return sorted(path for path in files if not path.stem.endswith("_test"))


def declarations(text: str) -> Iterator[Declaration]:
    """Yields the exported declarations in the Go file `text` that have a comment."""
    for match in COMMENT.finditer(text):
        line = match["line"]
        package, top, member = PACKAGE.match(line), TOP.match(line), MEMBER.match(line)
        if package:
            name = package[1]
            opening = "Command" if name == "main" else f"Package {name}"
        elif top:
            name = opening = top[1]
        elif member and not STATEMENT.match(line):
            name, opening = member[1], None
        else:
            continue
        comment = re.sub(r"^\t?// ?", "", match["comment"], flags=re.MULTILINE)
        number = text.count("\n", 0, match.start()) + 1
        yield Declaration(name, opening, comment, line, number)


def comment_problems(declaration: Declaration) -> Iterator[str]:
    """Yields the rules that the comment of `declaration` breaks."""
    name, opening, comment, signature, _ = declaration
    if opening is not None and not re.match(rf"{opening}\b", comment):
        yield "first-word"
    names = {name, *re.findall(r"\w+", signature)}
    text = re.sub(rf"\b(?:{'|'.join(sorted(names))})\b", "x", comment)
    yield from _text_problems(text)


def head_problems(text: str) -> Iterator[str]:
    """Yields the rules that the head of the kernel file `text` breaks."""
    head = re.match(r"(?://.*\n)+", text)
    if head is None:
        yield "no-head"
    else:
        yield from _text_problems(re.sub(r"^// ?", "", head[0], flags=re.MULTILINE))


def go_errors(text: str) -> Iterator[tuple[str, int]]:
    """Yields word and line of each house word in the error texts of the Go file `text`."""
    for number, line in enumerate(text.splitlines(), 1):
        call = GO_ERROR.search(line)
        if call and not line.lstrip().startswith("//"):
            for literal in GO_TEXT.findall(line[call.end() :]):
                yield from ((word, number) for word, _ in house_words(CODE.sub("", literal)))


def python_errors(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yields word and line of each house word in the texts of raised errors in `tree`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    for word, _ in house_words(CODE.sub("", part.value)):
                        yield word, part.lineno


def _text_problems(text: str) -> Iterator[str]:
    if OPENING.search(text):
        yield "opening"
    yield from (word for word, _ in house_words(CODE.sub("", text)))
