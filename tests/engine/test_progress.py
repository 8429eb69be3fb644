"""Bars of what takes long and has no parts."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from pygsampler._engine import progress


def left() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "pygsampler-wait"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("errors", [Terminal(), io.StringIO()], ids=["terminal", "file"])
def test_a_wait_is_shown(monkeypatch: pytest.MonkeyPatch, errors: io.StringIO) -> None:
    """In a terminal; a file has none of it."""
    monkeypatch.setattr(progress, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_DRAWN_EVERY", 0.01)
    monkeypatch.setattr(sys, "stderr", errors)
    with progress.wait_indicator("ladies: compiling"):
        time.sleep(0.3)
    assert ("ladies: compiling: 00:0" in errors.getvalue()) == errors.isatty()
    assert bool(errors.getvalue()) == errors.isatty()
    assert not left()


def test_a_short_wait_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), progress.wait_indicator("compiling"):
        raise KeyError
    assert capsys.readouterr() == ("", "")
    assert not left()


def test_a_wait_without_tqdm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(**options: object) -> None:
        raise ImportError

    monkeypatch.setattr(progress, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "progress_bar", missing)
    with progress.wait_indicator("compiling"):
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")
    assert not left()
