"""The self-test of the doctor finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from pygsampler import PGSampler
from pygsampler._cli.doctor.remedies import REPORT
from pygsampler._cli.doctor.report import Problem

# The package has a function of this name too.
self_test: Any = import_module("pygsampler._cli.doctor.self_test")


@pytest.mark.research
def test_engine_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(fanouts: Any, *, mode: str, seed: int, **options: Any) -> PGSampler:
        return PGSampler(fanouts, seed=seed + (mode == "queue"), mode=mode, **options)

    assert self_test.run("cpu", "queue") is None
    monkeypatch.setattr(self_test, "PGSampler", other)
    assert self_test.run("cpu", "auto") is None
    wrong = self_test.run("cpu", "queue")
    assert wrong is not None
    assert wrong.endswith("is not that of the CPU")
    part = self_test.self_test()
    assert ("cpu", "auto ok, queue fails, reservoir ok") in part.lines
    assert part.problems[0].what == f"self-test on cpu, mode queue: {wrong}"


def test_engine_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> PGSampler:
        raise MemoryError("none left")

    monkeypatch.setattr(self_test, "PGSampler", broken)
    assert self_test.run("cpu", "auto") == "MemoryError: none left"
    monkeypatch.setattr(self_test, "_devices", lambda: [("cpu", self_test.CPU_MODES)])
    part = self_test.self_test()
    assert [run["ok"] for run in part.facts["runs"]] == [False] * len(self_test.CPU_MODES)
    # One problem for what is one.
    modes = ", ".join(self_test.CPU_MODES)
    what = f"self-test on cpu, mode {modes}: MemoryError: none left"
    assert part.problems == (Problem(what, REPORT),)


class Values(list[int]):
    """A list of integers that stands for one of a batch's arrays."""

    def tolist(self) -> list[int]:
        return list(self)


class Block:
    """The in-edges of vertex 2 of the graph below, sampled with fanout 2."""

    def __init__(self, **changes: list[int]) -> None:
        arrays = {
            "indptr": [0, 2],
            "indices": [1, 2],
            "edge_ids": [1, 3],
            "src_nodes": [2, 0, 1],
            "dst_nodes": [2],
        }
        for name, values in (arrays | changes).items():
            setattr(self, name, Values(values))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"indptr": [0, 1]}, "blocks[0], row 0: expected 2 edges, got 1"),
        ({"edge_ids": [0, 3]}, "blocks[0], row 0: an edge is not one of node 2"),
        ({"edge_ids": [3, 3]}, "blocks[0], row 0: an edge came twice"),
        ({"indices": [2, 1]}, "blocks[0], row 0: a source is not that of its edge"),
    ],
)
def test_laws(changes: dict[str, list[int]], expected: str | None) -> None:
    case = self_test.Case(64, (2,), False)
    batch: Callable[[], Any] = type("Batch", (), {"blocks": (Block(**changes),)})
    indptr, indices = Values([0, 1, 1, 4]), Values([2, 0, 2, 1])
    assert self_test._breach(case, indptr, indices, batch()) == expected  # type: ignore[arg-type]
