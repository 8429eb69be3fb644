"""Names say what they stand for, in Python, in Go and among the kernels."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.style import __main__ as command
from tests.style import names
from tests.style.findings import ROOT, Finding, check, definitions, modules

pytestmark = pytest.mark.once


def test_all_names_are_good() -> None:
    check(names.find(ROOT))


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


def test_a_finding_fails_with_its_place() -> None:
    findings = [Finding("class b.py Made", "b.py:7"), Finding("class a.py Made", "a.py:1")]
    with pytest.raises(AssertionError, match=r"a.py:1: class a.py Made\nb.py:7: class b.py Made"):
        check(findings)
    check([])


def test_the_command_prints_findings_of_places(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [Finding("class a.py Made", "a.py:1"), Finding("class b.py Made", "b.py:7")]
    monkeypatch.setattr(command, "CHECKERS", {"names": lambda root: found})
    assert command.main([]) == 1
    assert command.main(["b.py"]) == 1
    assert command.main(["c.py"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["a.py:1: class a.py Made", "b.py:7: class b.py Made", "names: 2 findings"]
    assert lines[3:] == ["b.py:7: class b.py Made", "names: 1 findings", "names: 0 findings"]
