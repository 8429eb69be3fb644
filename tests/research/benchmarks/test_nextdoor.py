"""The benchmark of NextDoor's devices and transits: on graphs of the CPU, and on the emulator.

Its times mean nothing there. Torch's memory is the host's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.gpu import run_with_driver

pytest.importorskip("torch", reason="needs torch")

from benchmarks.gpu import record as records
from benchmarks.research import nextdoor

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[3]
KINDS = ("DeepWalk", "PPR", "node2vec", "k-hop", "layer")

CODE = """
import sys
from pathlib import Path
from unittest import mock
sys.path[:0] = [{root!r}, {root!r} + "/tests/support"]
import torch
import torch_cpu
from benchmarks.gpu import graphs, record
from benchmarks.research import nextdoor

with mock.patch.multiple(torch.cuda, empty_cache=lambda: None), mock.patch.multiple(
    record, gpu=lambda: {{}}
), mock.patch.multiple(
    nextdoor, make=lambda *about: graphs.make(*about, device="cpu"), _ROUNDS=2,
    copy_us=lambda here: 500.0,
):
    kept = record.Record("nextdoor", Path({out!r}), ["nextdoor", "--trial"], "0" * 40)
    nextdoor.run(kept, record.Budget(600), True)
    kept.write()
"""


class Rows:
    """The part of a record that a benchmark writes to."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.left_out: list[str] = []
        self.add, self.skip = self.rows.append, self.left_out.append


def check(rows: Any, devices: int) -> None:
    assert [(row["what"], row["kind"]) for row in rows] == [
        (what, kind)
        for kind in KINDS
        for what in ("devices", "ablation")
        if (what, kind) != ("ablation", "layer")
    ]
    for row in rows:
        if row["what"] == "devices":
            names = [str(i + 1) for i in range(devices)]
            assert list(row["sampled_us"]) == list(row["collected_us"]) == names
            assert row["speedup"]["1"] == 1 and all(of > 0 for of in row["speedup"].values())
        else:
            assert list(row["us"]) == list(nextdoor.EXECUTIONS) == list(row["ratio"])
        assert row["kind"] in nextdoor.line(row)


def test_on_graphs_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nextdoor, "_ROUNDS", 2)
    random = np.random.default_rng(3)
    pairs = random.integers(0, 300, (2, 2000))
    graph = pgs.Graph.from_coo(
        *pairs, num_nodes=300, edge_data={"w": random.random(2000).astype(np.float32)}
    )
    record: Any = Rows()
    nextdoor.measure("random", graph, [graph, graph], 100, record, records.Budget(600))
    check(record.rows, 2)
    assert record.left_out == []
    alone: Any = Rows()
    nextdoor.measure("random", graph, [graph], 100, alone, records.Budget(600))
    assert {row["what"] for row in alone.rows} == {"ablation"}
    assert len(alone.left_out) == len(KINDS) and "needs two GPUs" in alone.left_out[0]


def test_other_samples_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = pgs.Graph.from_coo([1, 2, 3, 4], [0, 0, 0, 0], num_nodes=5)
    with pytest.raises(nextdoor.CheckError, match="differ"):
        nextdoor.prove(
            [pgs.research.KHop([5], seed=1), pgs.research.KHop([5], seed=2)],
            graph,
            [graph],
            [0] * 20,
        )


def test_on_the_emulator(emulator: Path, tmp_path: Path) -> None:
    run_with_driver(emulator, CODE.format(root=str(ROOT), out=str(tmp_path)))
    content = json.loads((tmp_path / "nextdoor.json").read_text())
    rows = content["rows"]
    check([row for row in rows if row["what"] != "outside"], 2)
    apart = [row for row in rows if row["what"] == "outside"]
    assert [(row["kind"], row["samples"]) for row in apart] == [
        (kind, samples) for kind in nextdoor.OUTSIDE for samples in (5, 50, 500)
    ]
    for row in apart:
        assert row["copied_us"] == 500 * nextdoor.OUTSIDE[row["kind"]][1]
        assert row["ratio"]["pinned"] > 0 and row["kind"] in nextdoor.line(row)
    assert content["left_out"] == []
