"""Sentences of pages, comments and docstrings open with their subject."""

from __future__ import annotations

import pytest

from tests.style import openings, prose
from tests.style.findings import ROOT, check

pytestmark = pytest.mark.once


def test_sentences_open_with_their_subject() -> None:
    check(openings.find(ROOT))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The edges of a node.", []),
        ("Of a node the edges.", ["Of"]),
        ("The edges. Those of a node\ncome first.", ["Those"]),
        ("Edges e.g. Of are counted. See `x. What`.", []),
        ("What is left? Nothing. Whether is left.", ["Whether"]),
    ],
)
def test_openings_are_found(text: str, expected: list[str]) -> None:
    assert [*openings.openings(text)] == expected


def test_paragraphs_of_python_are_comments_and_docstrings() -> None:
    text = (
        '"""Head."""\n\n# One comment\n# of two lines.\nx = 1  # Another.\n# A third.\n\n\n'
        'def f() -> None:\n    """Body."""\n    y = "# no comment"\n'
    )
    found = [*openings.paragraphs(text, "#", python=True)]
    assert found == [
        ("Head.", 1),
        ("Body.", 10),
        ("One comment\nof two lines.", 3),
        ("Another.", 5),
        ("A third.", 6),
    ]


def test_paragraphs_of_other_languages_are_comments() -> None:
    text = '// Head\n// goes on.\nint x;  // Of x.\n\tf("http://x");\n// Last.\n'
    found = [*openings.paragraphs(text, "//", python=False)]
    assert found == [("Head\ngoes on.", 1), ("Of x.", 3), ("Last.", 5)]


def test_paragraphs_of_pages_are_prose() -> None:
    text = "# What it is\n\nA page\nof two lines.\n\n- Of one\n  item\n- Another.\n\n"
    text += "```\nOf code\n```\n"
    found = [*prose.paragraphs(text)]
    assert found == [("A page\nof two lines.", 3), ("Of one\n  item", 6), ("Another.", 8)]
