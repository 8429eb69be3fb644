"""A capture that fails leaves torch as it was: its current stream and its random numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch")

from pygsampler._loader.capture import CapturedLoop  # noqa: E402


class Stream:
    """A stream on the CPU; work is in order anyway."""

    device = torch.device("cpu")

    def wait_stream(self, other: Stream) -> None: ...


class Torch:
    """The state that torch.cuda.graph changes, and leaves changed if the end of a capture fails."""

    def __init__(self, failures: int) -> None:
        self.current = Stream()
        self.capturing = False
        self.captures = 0
        self._failures = failures

    def set_stream(self, stream: Stream) -> None:
        self.current = stream

    def graph(self, graph: Any, *, stream: Stream, capture_error_mode: str) -> Any:
        state, before = self, self.current

        class Capture:
            def __enter__(self) -> None:
                state.current, state.capturing = stream, True
                state.captures += 1

            def __exit__(self, *_: object) -> None:
                if state.captures <= state._failures:
                    raise RuntimeError("operation failed due to a previous error during capture")
                state.current, state.capturing = before, False

        return Capture()


def fail(*_: object) -> None:
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize("failures", [1, 2])
def test_failed_capture_restores_torch(monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
    state = Torch(failures)
    for name, value in {
        "graph": state.graph,
        "set_stream": state.set_stream,
        "CUDAGraph": SimpleNamespace,
        "current_stream": lambda: state.current,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    before = state.current
    loop = SimpleNamespace(_stream=Stream(), _run=fail, _graph=None)
    with pytest.raises(pgs.Error, match=r"only launches work.*torch says: operation failed"):
        CapturedLoop._capture(loop, None, 0, 0)  # type: ignore[arg-type]
    assert loop._graph is None
    assert state.current is before
    # The second capture clears torch's mark, as far as it succeeds.
    assert state.captures == 2
    assert state.capturing == (failures == 2)
