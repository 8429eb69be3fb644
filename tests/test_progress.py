"""Bars of what takes long and has no parts."""

from __future__ import annotations

import threading
import time

import pytest

from pygsampler._core import progress


def left() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "pygsampler-wait"]


def test_a_wait_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_DRAWN_EVERY", 0.01)
    with progress.waiting("ladies: compiling"):
        time.sleep(0.3)
    shown = capsys.readouterr()
    assert "ladies: compiling: 00:0" in shown.err
    assert not shown.out
    assert not left()


def test_a_short_wait_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), progress.waiting("compiling"):
        raise KeyError
    assert capsys.readouterr() == ("", "")
    assert not left()


def test_a_wait_without_tqdm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(**options: object) -> None:
        raise ImportError

    monkeypatch.setattr(progress, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "bar", missing)
    with progress.waiting("compiling"):
        time.sleep(0.1)
    assert capsys.readouterr() == ("", "")
    assert not left()
