"""Fixtures of tests of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pygsampler as pgs
from pygsampler._graph import table_batches


@pytest.fixture(params=["in memory", "out of core"])
def both_table_ways(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Runs a test with graphs in memory, and with files that are written with little memory."""
    if request.param == "in memory":
        return
    original = pgs.Graph.from_tables
    folder = tmp_path / ".out"
    folder.mkdir()
    monkeypatch.setattr(table_batches, "_FEWEST", 1)

    def from_tables(*args: Any, **options: Any) -> pgs.Graph:
        before = sorted(folder.iterdir())
        try:
            return original(*args, **options, out=folder / f"{len(before)}.pgs", memory=1 << 12)
        except BaseException:
            assert sorted(folder.iterdir()) == before
            raise

    monkeypatch.setattr(pgs.Graph, "from_tables", from_tables)
