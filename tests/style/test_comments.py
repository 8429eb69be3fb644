"""Comments of exported Go names, heads of kernels and error texts are in plain English."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.style import comments
from tests.style.findings import ROOT, check

pytestmark = pytest.mark.once


def test_comments_and_errors_are_in_plain_english() -> None:
    check(comments.find(ROOT))


def problems(text: str) -> dict[str, list[str]]:
    return {each.name: [*comments.comment_problems(each)] for each in comments.declarations(text)}


def test_exported_declarations_are_read_with_their_comments() -> None:
    text = (
        "// Package graph holds graphs.\npackage graph\n\n// lower is not exported.\n"
        "func lower() {}\n\n// Graph is a graph.\n//\n// It is immutable.\ntype Graph struct {\n"
        "\t// Nodes is a number.\n\tNodes int\n}\n\n// Len returns a number.\n"
        "func (g *Graph) Len() int {\n\t// A statement has no name.\n\tBorrow.Call()\n}\n"
    )
    assert problems(text) == {"graph": [], "Graph": [], "Nodes": [], "Len": []}


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("Returns the nodes.", ["first-word"]),
        ("Nodes are those. Of a graph too.", ["opening"]),
        ("Nodes returns the vertices.", ["vertex"]),
        ("Nodes returns a list that is made of ids.", ["made"]),
        ("Nodes returns kept, as Joint does, with form=1.", []),
    ],
)
def test_comment_problems_are_found(comment: str, expected: list[str]) -> None:
    text = f"// {comment}\nfunc Nodes(kept int) {{}}\n"
    assert problems(text) == {"Nodes": expected}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#pragma once\n", ["no-head"]),
        ("// Counts vertices.\n#pragma once\n", ["vertex"]),
        ("// What is\n// counted.\n", ["opening"]),
        ("// Counts nodes.\nint vertex;  // of a vertex\n", []),
    ],
)
def test_head_problems_are_found(text: str, expected: list[str]) -> None:
    assert [*comments.head_problems(text)] == expected


def test_house_words_in_error_texts_are_found() -> None:
    go = 'x := fmt.Errorf("%w: a vertex", err)\ny := "a vertex"\n// panic("a vertex")\n'
    assert [*comments.go_errors(go)] == [("vertex", 1)]
    tree = ast.parse('raise ValueError(f"{vertex}: expected a vertex with form=1")\nx = "made"')
    assert [*comments.python_errors(tree)] == [("vertex", 1)]


def test_files_of_all_kinds_are_read(tmp_path: Path) -> None:
    files = {
        "pygsampler/graph.go": "// A graph.\ntype Graph struct{}\n",
        "gpu/error.go": 'var x = errors.New("a pool beside others")\n',
        "gpu/error_test.go": "// A test.\ntype Test struct{}\n",
        "kernels/walk/walk.cu": "// Where walks go.\n",
        "python/pygsampler/graph.py": 'raise ValueError("given twice")\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert [entry for entry, _ in comments.find(tmp_path)] == [
        "gpu error beside",
        "pygsampler.Graph first-word",
        "kernels/walk/walk.cu opening",
        "pygsampler.graph error given",
    ]
