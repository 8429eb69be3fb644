"""Docstrings can be understood alone, and name the arguments of public functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.style import docstrings, public
from tests.style.findings import ROOT, check

pytestmark = pytest.mark.once


def test_docstrings_have_a_subject_a_summary_and_their_arguments() -> None:
    check(docstrings.find(ROOT))


def test_most_functions_that_users_call_are_read() -> None:
    names = {name for _, name, _, _ in public.functions(ROOT)}
    assert len(names) > 400


def test_examples_of_docstrings_are_python() -> None:
    examples = [code for text in docstrings.docstrings(ROOT) for code in docstrings.examples(text)]
    assert len(examples) > 10
    for code in examples:
        ast.parse(code)


def test_an_example_is_indented_after_a_colon() -> None:
    text = "Reads rows.\n\nTwo of them:\n\n    a = read()\n\n    b = read()\n\nMore."
    assert [code.strip() for code in docstrings.examples(text)] == ["a = read()\n\nb = read()"]


@pytest.mark.parametrize("text", ["What is read.", "``As`` it was.", "It's there.", "Whether so."])
def test_a_missing_subject_is_found(text: str) -> None:
    assert docstrings.opens_badly(text)


@pytest.mark.parametrize("text", ["Returns what it reads.", "The rows.", "``x`` of a node."])
def test_a_subject_or_a_verb_is_allowed(text: str) -> None:
    assert not docstrings.opens_badly(text)


def test_a_summary_is_one_line() -> None:
    assert docstrings.has_summary("Returns the rows.\n\nIn order.")
    assert not docstrings.has_summary("Returns the rows that a\nreader has asked for.")


def test_arguments_stand_in_a_section_or_in_the_summary() -> None:
    assert docstrings.names_arguments("Reads.\n\nParameters\n----------\nx : int", ["x", "y"])
    assert docstrings.names_arguments("Reads ``x`` rows of `y`.", ["x", "y"])
    assert not docstrings.names_arguments("Reads rows of `y`.\n\nAt most x.", ["x", "y"])


def test_findings_follow_public_names_to_their_definitions(tmp_path: Path) -> None:
    package = tmp_path / "python" / "pygsampler"
    package.mkdir(parents=True)
    for module in public.MODULES:
        (package / f"{module}.py").write_text("")
    (package / "programs.py").write_text("")
    (package / "__init__.py").write_text(
        "from pygsampler._reader import Reader as Public, read\n__all__ = ['Public', 'read']\n"
    )
    (package / "_base.py").write_text(
        "class Base:\n"
        "    def rows(self, count):\n        '''Returns rows.'''\n"
        "    def _private(self, count):\n        '''Returns rows.'''\n"
    )
    (package / "_reader.py").write_text(
        "from pygsampler._base import Base\n"
        "class Reader(Base):\n"
        "    '''What reads\n    from a file.'''\n"
        "    def rows(self, count):\n        return super().rows(count)\n"
        "def read(path):\n    pass\n"
        "def unused(path):\n    '''Reads.'''\n"
    )
    assert {entry for entry, _ in docstrings.find(tmp_path)} == {
        "pygsampler._base.Base.rows arguments",
        "pygsampler._reader.Reader first-word",
        "pygsampler._reader.Reader summary",
        "pygsampler._reader.read arguments",
    }
