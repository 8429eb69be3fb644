"""``CapturedLoop``: a training step in one CUDA graph, from the sample to the optimiser."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.utils._pytree import tree_map

from pygsampler._arrays.ids import is_tensor
from pygsampler._engine.checks import describe, integer
from pygsampler._engine.progress import progress_bar
from pygsampler.errors import Error

if TYPE_CHECKING:
    from pygsampler._batch.static import StaticMiniBatch
    from pygsampler._loader.static_epochs import StaticEpochs
    from pygsampler._loader.stats import EpochStats

__all__ = ["CapturedLoop", "capture"]


class StaticLoader(Protocol):
    """The methods of a loader of static batches that capturing needs."""

    progress: bool
    static: bool

    def __len__(self) -> int: ...

    def _static_pass(self) -> tuple[StaticEpochs, int, EpochStats]:
        """Begins the next epoch: whose batches, its number, and what counts them."""
        ...


class CapturedLoop:
    """Epochs of a training step that is one CUDA graph; see ``pygsampler.torch.capture``."""

    def __init__(
        self, step: Callable[[StaticMiniBatch], Any], loader: Any, warmup: int, stream: Any
    ) -> None:
        if not callable(step):
            raise TypeError(f"step: expected a function of a batch, got {describe(step)}")
        if stream is not None and not isinstance(stream, torch.cuda.Stream):
            raise TypeError(f"stream: expected a torch.cuda.Stream or None, got {describe(stream)}")
        if stream is not None and not stream.cuda_stream:
            raise ValueError("stream: expected one that can be captured, got the default stream")
        self._step = step
        self._loader: StaticLoader = loader
        # Batches that are trained by calls before the step is captured.
        self._left = integer(warmup, "warmup", 1)
        self._graph: Any = None
        self._out: Any = None
        self._remade = -1
        self._stream = stream

    @property
    def captured(self) -> bool:
        """True if there is a CUDA graph, which samples the next batch and trains on it."""
        return self._graph is not None

    def __len__(self) -> int:
        """Number of batches of an epoch."""
        return len(self._loader)

    def run(self) -> Any:
        """Trains an epoch, and returns the stacked results of ``step`` for all batches.

        Tensors are stacked along a new first dimension, in the structure that ``step`` returns. The
        result is None if ``step`` returns None.
        """
        given = [tree_map(_copied, out) for out in self]
        if not given or given[0] is None:
            return None
        return tree_map(lambda *of: torch.stack(of) if is_tensor(of[0]) else of[0], *given)

    def __iter__(self) -> Iterator[Any]:
        """Trains an epoch, batch after batch: yields what ``step`` gave, without its gradient.

        From the first replay on the tensors are the same ones for all batches, whose values the
        next batch replaces: add them up on the GPU, or copy them.
        """
        if not len(self):
            return
        passes, begun, meter = self._loader._static_pass()
        trained = self._pass(passes, begun, meter)
        if not self._loader.progress:
            yield from trained
            return
        with progress_bar(total=len(self), desc=f"epoch {meter.epoch}", unit="batch") as shown:
            for out in trained:
                yield out
                shown.update()

    def _pass(self, passes: StaticEpochs, epoch_number: int, meter: EpochStats) -> Iterator[Any]:
        if self._graph is None:
            # Rows may have come into a cache as the epoch began: the stream of the calls is ordered
            # with that by a call, and could not be while it is captured.
            self._left = max(self._left, 1)
        with meter:
            meter.ask()
            for step in range(len(self)):
                passes.ready(epoch_number, step)
                meter.had()
                meter.edges += passes.num_edges
                meter.batches += 1
                meter.have_rows()
                meter.hand()
                out = self._trained(passes, epoch_number, step)
                meter.ask()
                yield out

    def _trained(self, passes: StaticEpochs, epoch_number: int, step: int) -> Any:
        """Returns what the step returns for a batch that is ready."""
        if passes.remade != self._remade:
            # The graph writes to memory that is freed. A step that was warmed up before needs one
            # batch only.
            if self._graph is not None:
                self._left = 1
            self._graph = self._out = None
            self._remade = passes.remade
        if self._graph is None and self._left == 0:
            self._capture(passes, epoch_number, step)
        if self._graph is not None:
            passes.note(step)
            self._graph.replay()
            return self._out
        self._left -= 1
        current = torch.cuda.current_stream()
        if self._stream is None:
            self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        # torch requires the first calls in a side stream, which waits for the current one.
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                out = self._run(passes, epoch_number, step)
        finally:
            current.wait_stream(self._stream)
        return out

    def _run(self, passes: StaticEpochs, epoch_number: int, step: int) -> Any:
        # Detached: who kept it would keep what belongs to the stream of this batch, which makes a
        # later capture fail.
        out = tree_map(_detached, self._step(passes.advance(epoch_number, step)))
        passes.join()
        return out

    def _capture(self, passes: StaticEpochs, epoch_number: int, step: int) -> None:
        # The calls before the capture have created it.
        assert self._stream is not None
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream()
        collected = gc.isenabled()
        # Objects that the collector frees might wait for the device, which ends a capture.
        gc.disable()
        try:
            # In the stream of the calls before, which caches of features have been ordered with.
            # Other threads may use the device meanwhile.
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                self._out = self._run(passes, epoch_number, step)
        except RuntimeError as error:
            _recover(self._stream, current)
            raise Error(
                "capture: expected a step that only launches work on the GPU: no .item(), .cpu() "
                "or other wait, no work in other streams that is not joined, and an optimiser with "
                f"capturable=True where it has that; torch says: {error}"
            ) from error
        finally:
            if collected:
                gc.enable()
        self._graph = graph


def capture(
    step: Callable[[StaticMiniBatch], Any],
    loader: StaticLoader,
    *,
    warmup: int = 3,
    stream: torch.cuda.Stream | None = None,
) -> CapturedLoop:
    """Returns a training step as one CUDA graph: sample, gather, forward, backward, optimizer.

    The first batches are trained by calls of ``step``; then one call is captured, and each later
    step is one launch, which costs the host some microseconds however many kernels the step has:

        loader = DataLoader(graph, train_ids, [10, 10], batch_size=1024, shuffle=True,
                            features={"x": x}, labels=y, device="cuda", static=True)

        def step(batch):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(batch), batch.y)
            loss.backward()
            optimizer.step()
            return loss

        train = capture(step, loader)
        for epoch in range(10):
            losses = train.run()

    Parameters
    ----------
    step : callable
        Takes a ``StaticMiniBatch``, or another batch of the loader, trains by it, and returns
        tensors, in lists, tuples and dicts if there are several, or None. It must only launch work
        on the GPU, the same for each batch: no ``.item()``, no ``if`` on values. An optimizer that
        has an option ``capturable`` needs it.
    loader : DataLoader or LinkLoader
        With ``static=True``. Each epoch of the loop is an epoch of the loader.
    warmup : int
        Batches that are trained by calls of ``step`` before it is captured, at least 1; torch's
        DistributedDataParallel asks for 11. The first batch of an epoch is never captured.
    stream : torch.cuda.Stream, optional
        The stream that ``step`` is called and captured in, other than the default one. None creates
        a stream. An object that holds nodes of torch's autograd, as DistributedDataParallel does,
        has to be created in the same stream.

    Returns
    -------
    CapturedLoop
        ``run()`` trains an epoch and returns the results of ``step`` for all batches, stacked; a
        ``for`` over it trains batch after batch.

    Notes
    -----
    Results are equal to the results of a loop over the loader, and batches are the same. Sampling
    overlaps with the step, two batches ahead: the host reads the sizes of each batch before it
    launches the step. A batch that is larger than ``loader.capacities`` gets more room, and is
    trained by a call of ``step``, which then is captured once more. Work that ``step`` puts into
    streams that are not torch's current one is not part of the graph unless they wait for each
    other.

    Raises
    ------
    TypeError, ValueError
        For arguments of another kind, naming them.
    Error
        When a batch is requested and the step cannot be captured, with torch's reason.
    """
    if not hasattr(loader, "_static_pass"):
        raise TypeError(
            "loader: expected a DataLoader or LinkLoader of pygsampler.torch, got "
            f"{describe(loader)}"
        )
    if not loader.static:
        raise ValueError("loader: expected a loader with static=True, got one without")
    return CapturedLoop(step, loader, warmup, stream)


def _recover(stream: torch.cuda.Stream, current: torch.cuda.Stream) -> None:
    """Restores the state of torch that a failed capture in ``stream`` leaves behind.

    Torch keeps ``stream`` as its current one, and refuses random numbers on the device until
    another capture succeeds, so one operation is captured here.
    """
    torch.cuda.set_stream(current)
    try:
        current.wait_stream(stream)
        counter = torch.zeros(1, device=current.device)
        graph = torch.cuda.graph(
            torch.cuda.CUDAGraph(), stream=stream, capture_error_mode="thread_local"
        )
        with graph:
            counter.add_(1)
    except RuntimeError:
        # The error of the step is the one to report.
        torch.cuda.set_stream(current)


def _detached(value: Any) -> Any:
    return value.detach() if is_tensor(value) else value


def _copied(value: Any) -> Any:
    return value.clone() if is_tensor(value) else value
