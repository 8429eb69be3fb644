"""Names say what they stand for, in Python, in Go and among the kernels."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.style import names
from tests.style.findings import ROOT, Finding, compare, definitions, modules

pytestmark = pytest.mark.once


def test_all_names_are_good() -> None:
    assert not [f"{finding.place}: {finding.entry}" for finding in names.find(ROOT)]


def test_all_exceptions_are_needed() -> None:
    functions, arguments = set(), set()
    for module in modules(ROOT).values():
        for name, node in definitions(module):
            public = name.removeprefix(f"{names.PACKAGE}.")
            if isinstance(node, ast.FunctionDef):
                functions.add(public)
                arguments |= {f"{public} {argument.arg}" for argument in names.arguments(node)}
    assert functions >= names.PUBLIC_FUNCTIONS
    assert arguments >= names.PUBLIC_ARGUMENTS
    assert all((ROOT / kernel).is_file() for kernel in names.KERNELS)
    for exception in names.PUBLIC_FUNCTIONS:
        assert names.is_bad(exception.rpartition(".")[2])
    for exception in names.PUBLIC_ARGUMENTS:
        assert names.is_bad(exception.partition(" ")[2])


@pytest.mark.parametrize(
    "name", ["own_and", "_Typed", "TypedGraph", "by_vertex", "ofTurn", "of", "_rows", "Any", "at"]
)
def test_a_banned_word_is_found(name: str) -> None:
    assert names.is_bad(name)


@pytest.mark.parametrize(
    "name", ["nodes", "rows_of_block", "HGTSampler", "owner", "leftover", "shared", "node_ids"]
)
def test_other_words_are_allowed(name: str) -> None:
    assert not names.is_bad(name)


def test_exported_go_names_are_read() -> None:
    text = (
        "func Typed() {}\nfunc (g *Graph) Of(i int) {}\nfunc lower() {}\n"
        "type Whole struct{}\ntype (\n\tKept int\n\tlower int\n)\n"
    )
    found = [
        (kind, name, text[position:].split()[0]) for kind, name, position in names.go_exports(text)
    ]
    assert found == [
        ("function", "Typed", "func"),
        ("function", "Of", "func"),
        ("type", "Whole", "type"),
        ("type", "Kept", "Kept"),
    ]


def test_all_kinds_of_names_are_found(tmp_path: Path) -> None:
    files = {
        "python/pygsampler/typed/there.py": "class Made:\n    def turn(self, given, *data): ...\n",
        "python/pygsampler/pyg/loader.py": "def load(data, *, rows): ...\nclass Sampler: ...\n",
        "python/pygsampler/loader.py": "class Loader: ...\nclass Sampler: ...\n",
        "python/pygsampler/other.py": "class Loader: ...\n",
        "pygsampler/internal/parts/parts_test.go": "func Typed() {}\n",
        "bridge/bridge.go": "func Typed() {}\n",
        "kernels/common/near.cuh": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert {entry for entry, _ in names.find(tmp_path)} == {
        "folder python/pygsampler/typed",
        "file python/pygsampler/typed/there.py",
        "class python/pygsampler/typed/there.py Made",
        "function python/pygsampler/typed/there.py turn",
        "argument python/pygsampler/typed/there.py given",
        "argument python/pygsampler/typed/there.py data",
        "argument python/pygsampler/pyg/loader.py rows",
        "doubled class Loader",
        "folder pygsampler/internal/parts",
        "file pygsampler/internal/parts/parts_test.go",
        "function bridge/bridge.go Typed",
        "file kernels/common/near.cuh",
    }


def test_a_list_fails_for_new_findings_and_for_entries_out_of_date() -> None:
    findings = [Finding("class a.py Made", "a.py:1"), Finding("class b.py Made", "b.py:7")]
    assert compare(["class a.py Made", "class c.py Made"], findings) == (
        [Finding("class b.py Made", "b.py:7")],
        ["class c.py Made"],
    )
