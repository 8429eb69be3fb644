"""Python frames from ``PGSampler.sample`` to the call that submits a batch to the engine."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

import pygsampler as pgs
from pygsampler._engine import library

# With the frame of ``sample`` and the one that calls the engine.
MOST_FRAMES = 6


def frames_to_submit(graph: Any, seeds: Any, **options: Any) -> list[str]:
    """Returns the names of the functions from ``sample`` to the call of the engine."""
    sampler = pgs.PGSampler([2, 2])
    # Loads the engine, and opens the graph and the sampler in it.
    sampler.sample(graph, seeds, **options)
    bridge, names = library.engine().bridge, []
    submit = bridge["Submit"]

    def counted(*arguments: int) -> int:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not frames_to_submit.__code__:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        return submit(*arguments)  # type: ignore[no-any-return]

    bridge["Submit"] = counted
    try:
        sampler.sample(graph, seeds, **options)
    finally:
        bridge["Submit"] = submit
    return names[::-1]


def ring(size: int) -> pgs.Graph:
    return pgs.Graph.from_csc(range(size + 1), [(i + 1) % size for i in range(size)])


@pytest.mark.backends("cpu", "emulator", "cuda")
@pytest.mark.parametrize("size", [20, 100_000])
def test_few_frames_lie_between_sample_and_the_engine(device: str, size: int) -> None:
    names = frames_to_submit(ring(size).to(device), [1, 2])
    assert names[0] == "sample"
    assert names[-1] == "call"
    assert len(names) <= MOST_FRAMES, names
