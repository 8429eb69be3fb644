"""Pages and docstrings use the words of the field, and pages keep to their width."""

from __future__ import annotations

import pytest

from tests.style import prose
from tests.style.findings import ROOT, check

pytestmark = pytest.mark.once

MOST_WORDS = 3000


def test_pages_have_no_house_words_and_no_long_lines() -> None:
    check(prose.find(ROOT))


def test_pages_of_all_folders_are_read() -> None:
    names = {str(path.relative_to(ROOT)) for path in prose.pages(ROOT)}
    assert {
        "README.md",
        "docs/index.md",
        "docs/reference/index.md",
        "benchmarks/README.md",
    } <= names


def test_a_page_is_read_in_a_quarter_of_an_hour() -> None:
    words = {
        str(path.relative_to(ROOT)): len(path.read_text().split()) for path in prose.pages(ROOT)
    }
    assert {name: count for name, count in words.items() if count > MOST_WORDS} == {}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Each Vertex of it", "vertex"),
        ("a graph with\n    types", "typed"),
        ("as each pass ends", "pass"),
        ("batches of all passes", "pass"),
        ("one in place of two", "in-place-of"),
        ("its neighbourhoods", "neighbour"),
    ],
)
def test_a_house_word_is_found(text: str, word: str) -> None:
    assert list(prose.house_words(text)) == [(word, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "`vertex` and ``typed``",
        "```python\nvertex\n```",
        "[page](vertex.md)",
        "<!-- made -->",
        "a pass over the edges",
        "a PASS sampler",
        "pass the format",
        "Hugging Face",
    ],
)
def test_code_targets_and_quotations_are_allowed(text: str) -> None:
    assert list(prose.house_words(text)) == []


def test_lines_are_counted_through_code() -> None:
    text = "One.\n\n```sh\nmade\n```\n\nTwo\nvertices.\n"
    assert list(prose.house_words(text)) == [("vertex", 8)]


def test_prose_alone_has_a_width() -> None:
    long = "word " * 30
    allowed = [
        f"| {long} |",
        f"```text\n{long}\n```",
        f"[link]({'x' * 120})",
        f"![{long}](picture.svg)",
        f"<!-- figure name -->{long}<!-- end -->",
    ]
    assert list(prose.long_lines("\n".join(allowed))) == []
    assert list(prose.long_lines(f"```\n{long}\n```\n{long}\n")) == [4]
