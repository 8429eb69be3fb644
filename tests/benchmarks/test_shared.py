"""What the benchmark of GPUs that share holds its times against."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from partners import partner

from pygsampler._graph.shared_arrays import EVERYONE, ArrayPiece

partner("torch")
pytestmark = pytest.mark.once


def test_bound_of_reads() -> None:
    from benchmarks.gpu.shared import bound

    assert bound(0.0) == bound(0.17) == 38
    assert bound(0.5) == pytest.approx(13.2)
    assert bound(1.0) == pytest.approx(6.6)


def test_programs_of_processes_exist() -> None:
    from benchmarks.gpu.shared import EPOCH, RANK

    for name in (RANK, EPOCH):
        assert importlib.util.find_spec(name), name


def test_processes_give_the_rows_of_the_first_and_the_words_of_one_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from benchmarks.gpu.shared import processes

    lines = (
        "import json, pathlib, sys",
        "settings = json.loads(sys.argv[1])",
        "assert settings['rank'] != settings['bad'], 'expected another rank'",
        "assert pathlib.Path(settings['meeting']).parent.is_dir()",
        "print('a note', json.dumps(settings), sep=chr(10))",
    )
    (tmp_path / "rank_that_reports.py").write_text("\n".join(lines))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (row,) = processes({"bad": None}, 3, 60, "rank_that_reports")
    assert (row["rank"], row["world"]) == (0, 3)
    with pytest.raises(RuntimeError, match="expected another rank"):
        processes({"bad": 1}, 2, 60, "rank_that_reports")


def test_share_of_reads_that_leave_the_device() -> None:
    from benchmarks.gpu.shared_rank import remote

    values: Any = SimpleNamespace(_bits=32)
    pieces = [ArrayPiece(40, 0), ArrayPiece(40, EVERYONE), ArrayPiece(80, 1)]
    peers = SimpleNamespace(pieces=lambda of: pieces if of is values else None)
    host = SimpleNamespace(_source=SimpleNamespace(_open=lambda: SimpleNamespace(indices=values)))
    for place, want in ((0, 20 / 40), (1, 10 / 40)):
        seat = SimpleNamespace(peers=peers, place=place)
        graph: Any = SimpleNamespace(_source=SimpleNamespace(_seat=seat), _host=host)
        assert remote(graph, np.arange(40)) == want
        assert remote(graph, np.array([0, 9])) == place
    alone: Any = SimpleNamespace(_source=SimpleNamespace(_seat=None))
    assert remote(alone, np.arange(3)) == 0
