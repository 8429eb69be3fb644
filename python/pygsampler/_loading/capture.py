"""``CapturedLoop``: a training step in one CUDA graph, from the sample to the optimiser."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.utils._pytree import tree_map

from pygsampler._core.checks import describe, integer
from pygsampler._core.progress import bar
from pygsampler.errors import Error

if TYPE_CHECKING:
    from pygsampler._loading.static import StaticPasses
    from pygsampler.static import StaticBatch

__all__ = ["CapturedLoop"]


class StaticLoader(Protocol):
    """What is known of a loader of static batches."""

    progress: bool

    def __len__(self) -> int: ...

    def _static_pass(self) -> tuple[StaticPasses, int, int]:
        """Begins the next pass: whose batches, its number, and the epoch."""
        ...


class CapturedLoop:
    """Epochs of a training step that is one CUDA graph; made by ``pygsampler.torch.capture``."""

    def __init__(self, step: Callable[[StaticBatch], Any], loader: Any, warmup: int) -> None:
        if not callable(step):
            raise TypeError(f"step: expected a function of a batch, got {describe(step)}")
        self._step = step
        self._loader: StaticLoader = loader
        self._warmup = integer(warmup, "warmup", 1)
        self._left = self._warmup
        self._graph: Any = None
        self._out: Any = None
        self._remade = -1
        self._stream: Any = None

    @property
    def captured(self) -> bool:
        """Whether there is a graph, which the next batch is made and trained by."""
        return self._graph is not None

    def __len__(self) -> int:
        """Number of batches of an epoch."""
        return len(self._loader)

    def run(self) -> Any:
        """Trains an epoch, and returns what ``step`` gave for each batch: tensors stacked along a
        new first dimension, in the structure that ``step`` gives; None where it gives None."""
        given = [tree_map(_copied, out) for out in self]
        if not given or given[0] is None:
            return None
        return tree_map(lambda *of: torch.stack(of) if _is_tensor(of[0]) else of[0], *given)

    def __iter__(self) -> Iterator[Any]:
        """Trains an epoch, batch after batch: yields what ``step`` gave, without its gradient.

        From the first replay on the tensors are the same ones for all batches, whose values the
        next batch replaces: add them up on the GPU, or copy them.
        """
        passes, begun, epoch = self._loader._static_pass()
        steps = range(len(self))
        if not self._loader.progress:
            for step in steps:
                yield self._trained(passes, begun, step)
            return
        with bar(total=len(self), desc=f"epoch {epoch}", unit="batch") as shown:
            for step in steps:
                yield self._trained(passes, begun, step)
                shown.update()

    def _trained(self, passes: StaticPasses, begun: int, step: int) -> Any:
        """What the step gives for a batch."""
        passes.ready(begun, step)
        if passes.remade != self._remade:
            # The graph writes to memory that is no more. Of a step that was warmed up before, one
            # batch is enough.
            if self._graph is not None:
                self._left = 1
            self._graph = self._out = None
            self._remade = passes.remade
        if self._graph is None and self._left == 0:
            self._capture(passes, begun, step)
        if self._graph is not None:
            self._graph.replay()
            passes.note(step)
            return self._out
        self._left -= 1
        current = torch.cuda.current_stream()
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        # As torch asks for: what is made at the first calls is not of the stream that is captured.
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            out = self._run(passes, begun, step)
        current.wait_stream(self._stream)
        return out

    def _run(self, passes: StaticPasses, begun: int, step: int) -> Any:
        # Detached: who kept it would keep what belongs to the stream of this batch, which makes a
        # later capture fail.
        out = tree_map(_detached, self._step(passes.turn(begun, step)))
        passes.join()
        return out

    def _capture(self, passes: StaticPasses, begun: int, step: int) -> None:
        graph = torch.cuda.CUDAGraph()
        collected = gc.isenabled()
        # What the collector frees might wait for the device, which ends a capture.
        gc.disable()
        try:
            # In the stream of the calls before, which caches of features have been ordered with.
            # Other threads may use the device meanwhile.
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                self._out = self._run(passes, begun, step)
        except RuntimeError as error:
            raise Error(
                "capture: expected a step that only launches work on the GPU: no .item(), .cpu() "
                "or other wait, no work in other streams that is not joined, and an optimiser with "
                f"capturable=True where it has that; torch says: {error}"
            ) from error
        finally:
            if collected:
                gc.enable()
        self._graph = graph


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _detached(value: Any) -> Any:
    return value.detach() if _is_tensor(value) else value


def _copied(value: Any) -> Any:
    return value.clone() if _is_tensor(value) else value
