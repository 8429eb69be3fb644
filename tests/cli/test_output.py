"""The look: tables and bars, and progress on a terminal alone."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from pygsampler._cli import output, progress


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def printed(show: object, *, color: bool = False) -> str:
    stream = io.StringIO()
    out = Console(file=stream, force_terminal=color, width=200, markup=False, legacy_windows=False)
    show(out)  # type: ignore[operator]
    return stream.getvalue()


def test_facts_are_below_each_other() -> None:
    pairs = [("one", "1"), ("", "more [bold]"), ("longer", "")]
    assert printed(lambda out: output.facts(out, pairs)) == (
        "  one     1\n          more [bold]\n  longer\n"
    )


def test_bars_show_what_is_there_at_all() -> None:
    rows = [("a", 1000.0, "1,000"), ("bb", 1.0, "1"), ("c", 0.0, "0")]
    shown = printed(lambda out: output.bars(out, rows)).splitlines()
    assert [line.count("█") + line.count("#") for line in shown] == [40, 1, 0]
    assert printed(lambda out: output.bars(out, [])) == ""


def test_a_terminal_has_colours_and_a_pipe_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for stream, coloured in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr("sys.stdout", stream)
        output.title(output.console(), "a title " * 40)
        text = stream.getvalue()
        assert ("\x1b[1m" in text) is coloured
        assert "a title " * 39 in text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (1500, "1.5 k"), (2.5e6, "2.5 M"), (3e9, "3.0 G")]
)
def test_rates(number: float, text: str) -> None:
    assert output.rate(number) == text


def watched(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> SimpleNamespace:
    """stderr is ``stream``, and the clock stands where ``now`` says."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    return clock


def test_progress_is_shown_once_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    clock = watched(monkeypatch, stream)
    with progress.Progress("counting", "edges") as bar:
        bar(10, 1000)
        assert stream.getvalue() == ""
        clock.now += 5
        bar(300, 1000)
        clock.now += 1
        bar(600, 1000)
    text = stream.getvalue()
    assert "counting" in text and "600 of 1,000 edges" in text and "60%" in text
    assert "300 edges/s" in text


def test_progress_of_several_passes_and_of_unknown_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    clock = watched(monkeypatch, stream)
    with progress.Progress("converting", "B") as bar:
        clock.now += 5
        bar(5_000_000, None)
        clock.now += 1
        bar(9_000_000, 0)
    assert "9.0/? MB" in stream.getvalue() and "4.0 MB/s" in stream.getvalue()
    with progress.Progress("converting", "B") as bar:
        clock.now += 5
        bar(9_000_000, 9_000_000)
        bar(1_000_000, 10_000_000)
        clock.now += 1
        bar(3_000_000, 10_000_000)
    assert "3.0/10.0 MB" in stream.getvalue() and "2.0 MB/s" in stream.getvalue()


def test_no_progress_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    clock = watched(monkeypatch, stream)
    with progress.Progress("counting", "edges") as bar:
        clock.now += 50
        bar(1, 2)
    assert stream.getvalue() == ""
