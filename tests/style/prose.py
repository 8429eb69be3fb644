"""Finds long lines in pages, and house words in pages and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.style.findings import Finding, definitions, modules, place

WIDTH = 100
# The word in findings, and the pattern that finds it. A word that is wrong in one
# sense alone ("words" of a header, "row" of a descriptor, "tree" of a subgraph) is left to readers.
WORDS = {
    "vertex": "vertex|vertices",
    "typed": r"typed|graphs? with types",
    "in-parts": r"graphs? in parts",
    # Passes over an array, passes of a compiler and the sampler PASS are called so everywhere.
    "pass": r"(?:an?|the|one|each|every|per|next|last|first|second|another|this|that) "
    r"(?-i:pass)(?! over)|(?:all|both|many|of|two|three) passes(?! over)",
    "face": "faces?",
    "beside": "beside",
    "standing": "standing",
    "told": "told",
    "given": "given",
    "made": "made",
    "lent": "lent",
    "kept": "kept",
    "joint": "joint",
    "form": "forms?",
    "neighbour": r"neighbour(?:s|hoods?|ing)?",
    "in-place-of": "in place of",
}
# A phrase may go on in the next line, behind its indentation.
PATTERN = re.compile(
    r"\b(?:"
    + "|".join(f"(?P<w{i}>{each})" for i, each in enumerate(WORDS.values())).replace(" ", r"\s+")
    + r")\b",
    re.IGNORECASE,
)
# Names of others, which stay as their owners write them.
QUOTATIONS = re.compile(
    r"Hugging Face|joint (?:distribution|probability)|long-standing|"
    r"with a given\s+(?:probability )?distribution"
)

FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
GENERATED = re.compile(r"<!-- figures? \w+ -->.*?<!-- end -->", re.DOTALL)
# Lines up to an empty one or the next item of a list, without the item's mark.
PARAGRAPH = re.compile(
    r"^ *(?:[-*] +|\d+\. +)?(\S.*(?:\n(?! *(?:[-*]|\d+\.) ) *\S.*)*)", re.MULTILINE
)
LITERAL = re.compile(r"``[^`]*``|`[^`]*`")
TARGET = re.compile(r"\]\([^)\s]*\)|^\[[^\]]*\]: .*$|https?://\S+", re.MULTILINE)
DOCTEST = re.compile(r"^ *(?:>>>|\.\.\.) .*$", re.MULTILINE)
# The names of arguments, before a colon or alone in their line, are code.
ARGUMENT = re.compile(r"^ *\w+(?:, \w+)*(?= : |$)", re.MULTILINE)


def find(root: Path) -> Iterator[Finding]:
    """Yields the findings in the pages and docstrings of the checkout `root`."""
    for path in pages(root):
        text, name = path.read_text(), path.relative_to(root)
        for line in long_lines(text):
            yield Finding(f"{name} long-lines", place(root, path, line))
        for word, line in house_words(text):
            yield Finding(f"{name} {word}", place(root, path, line))
    for module in modules(root).values():
        for name, node in definitions(module):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                first = node.body[0].lineno
                for word, line in house_words(ARGUMENT.sub("", DOCTEST.sub("", text))):
                    yield Finding(f"{name} {word}", place(root, module.path, first + line - 1))


def pages(root: Path) -> list[Path]:
    """The Markdown pages of the checkout `root`."""
    patterns = ("*.md", "docs/**/*.md", "benchmarks/**/*.md", "tests/**/*.md", "examples/**/*.md")
    return sorted(path for pattern in patterns for path in root.glob(pattern))


def long_lines(text: str) -> Iterator[int]:
    """Yields the numbers of lines of prose in `text` that are longer than allowed.

    Tables, code, generated figures and the targets of links do not count.
    """
    for pattern in (FENCE, GENERATED):
        text = pattern.sub(_blank, text)
    for number, line in enumerate(TARGET.sub("", text).splitlines(), 1):
        if len(line) > WIDTH and not line.lstrip().startswith(("|", "!")):
            yield number


def paragraphs(text: str) -> Iterator[tuple[str, int]]:
    """Yields each paragraph and list item of prose in `text`, and its first line."""
    for pattern in (FENCE, GENERATED, COMMENT):
        text = pattern.sub(_blank, text)
    text = re.sub(r"^ *[#|!].*$", "", text, flags=re.MULTILINE)
    for match in re.finditer(PARAGRAPH, text):
        yield match[1], text.count("\n", 0, match.start(1)) + 1


def house_words(text: str) -> Iterator[tuple[str, int]]:
    """Yields word and line of each house word in `text`, outside of code and quotations."""
    for pattern in (FENCE, COMMENT, LITERAL, TARGET, QUOTATIONS):
        text = pattern.sub(_blank, text)
    names = list(WORDS)
    for match in PATTERN.finditer(text):
        word = names[int(match.lastgroup[1:])]
        yield word, text.count("\n", 0, match.start()) + 1


def _blank(match: re.Match[str]) -> str:
    """Returns the line breaks of `match` alone, so that lines keep their numbers."""
    return re.sub(r"[^\n]+", " ", match[0])
