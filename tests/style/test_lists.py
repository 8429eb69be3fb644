"""The lists of allowed findings get shorter by a command, and longer by one option alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.style import __main__ as command
from tests.style import findings
from tests.style.findings import Finding

pytestmark = pytest.mark.once

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command with an option, where a checker finds the given names."""
    monkeypatch.setattr(findings, "LISTS", tmp_path)

    def run(option: str, *names: str) -> int:
        found = [Finding(name, f"{name}.py:1") for name in names]
        monkeypatch.setattr(command, "CHECKERS", {"example": lambda root: found})
        return command.main([option])

    return run


def test_write_removes_entries_and_adds_none(run: Run) -> None:
    assert run("--add", "a", "b", "c") == 0
    assert run("--all", "a", "b") == 1
    assert run("--write", "d", "a", "b") == 1
    assert findings.read_entries("example") == ["a", "b"]
    assert run("--write", "b") == 0


def test_rewrite_follows_moves_and_refuses_growth(run: Run) -> None:
    run("--add", "old/a", "old/b")
    assert run("--rewrite", "new/a", "new/b") == 0
    assert findings.read_entries("example") == ["new/a", "new/b"]
    assert run("--rewrite", "new/a", "new/b", "new/c") == 1
    assert findings.read_entries("example") == ["new/a", "new/b"]


def test_an_empty_list_has_no_file(run: Run) -> None:
    run("--add", "a")
    assert run("--write") == 0
    assert not findings.list_path("example").exists()


def test_findings_are_printed_with_place_and_entry(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run("--add", "a", "c")
    capsys.readouterr()
    run("--write", "a", "b")
    assert capsys.readouterr().out == "b.py:1: b\nexample: 1 allowed, 1 new, 0 out of date\n"
    run("--all", "a")
    assert "a.py:1: a\n" in capsys.readouterr().out
