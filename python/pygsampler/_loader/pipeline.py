"""Epochs of a loader: on the CPU in two stages, on a GPU in groups, and as static batches."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._arrays import devices
from pygsampler._batch.minibatch import as_torch
from pygsampler._engine.library import get_num_threads
from pygsampler._loader.cuda_events import CudaEvents
from pygsampler._loader.prefetch import prefetch_groups, prefetch_in_order
from pygsampler._loader.prefetch_tuner import WORKING_BYTES, BudgetTuner
from pygsampler._loader.read_ahead import ReadAhead
from pygsampler._loader.static_layouts import time_sorted_edges
from pygsampler._loader.stream import MOST_ON_GPU
from pygsampler._loader.trace import MOST as MOST_TRACED
from pygsampler._sampling.pending import PendingBatch, PendingGroup
from pygsampler._sampling.torch_group import TorchLauncher

if TYPE_CHECKING:
    from pygsampler._loader.epoch_state import EpochRun
    from pygsampler._loader.feature_fetcher import FeatureFetcher
    from pygsampler._loader.prefetch_tuner import EpochTuner
    from pygsampler._loader.seed_source import EpochDraws, SeedSource
    from pygsampler._loader.static_epochs import StaticEpochs, StaticPlan
    from pygsampler._loader.stats import EpochStats

__all__ = ["begin_static", "run_epoch"]


def run_epoch(
    run: EpochRun,
    source: SeedSource,
    sampler: Any,
    graph: Any,
    fetcher: FeatureFetcher,
    static: StaticPlan | None,
) -> Generator[Any, None, None]:
    """Yields the batches of an epoch; none is submitted before the first is asked for.

    However the generator ends, the jobs that are in flight are cancelled.
    """
    if devices.parse(graph.device) < 0:
        return _on_cpu(run, source, sampler, graph, fetcher)
    return _on_gpu(run, source, sampler, graph, fetcher, static)


def begin_static(
    run: EpochRun,
    source: SeedSource,
    sampler: Any,
    graph: Any,
    fetcher: FeatureFetcher,
    static: StaticPlan,
) -> tuple[StaticEpochs, int]:
    """Begins an epoch of batches in one memory, and returns that and the epoch's number there."""
    index = devices.parse(graph.device)
    assert run.stats is not None
    _record_events(run.stats, index)
    _fill_caches(run, source, sampler, graph, fetcher, index)
    seeds = source.static_seeds(run, graph, time_sorted_edges(graph, sampler), index)

    def again(step: int, number: int) -> Any:
        ids, more = source.begin(run, index).draw(step)
        job = sampler.launch(graph, ids, epoch=run.epoch, batch=number, form="torch", **more)
        return as_torch(job.result())

    def sampled() -> Iterator[Any]:
        return _sampled(run.uncounted(run.epoch), source, sampler, graph, index)

    epochs = static.epochs
    if _give_caches(run, fetcher, graph, epochs.num_started * run.shard.steps):
        # Addresses of rows are part of the memory of batches.
        epochs.renew()
    return epochs, epochs.begin(sampler, seeds, run.epoch, sampled, again, run.draws)


def _on_cpu(
    run: EpochRun, source: SeedSource, sampler: Any, graph: Any, fetcher: FeatureFetcher
) -> Generator[Any, None, None]:
    draws = source.begin(run, devices.CPU)
    # With as many batches in flight as cores, one core for each wastes nothing on synchronization.
    threads = max(1, get_num_threads() // run.prefetch) if run.prefetch >= 2 else 0
    draw, number = draws.draw, run.shard.number
    launch = partial(sampler.launch, graph, epoch=run.epoch, threads=threads, asynchronous=True)

    def submit(step: int) -> PendingBatch[Any]:
        seeds, more = draw(step)
        job: PendingBatch[Any] = launch(seeds, batch=number(step), **more)
        return job

    def fetch(batch: Any) -> PendingBatch[Any]:
        return fetcher.start(batch, threads)

    steady = sampler._changes
    tuner: EpochTuner | BudgetTuner | None = None
    depth = run.prefetch
    if run.tuner is not None and depth and not steady:
        assert run.stats is not None
        tuner = run.tuner.begin(run.stats)
    elif run.budget is not None and depth:
        tuner, depth = BudgetTuner(run.budget, depth), 1
    batches = prefetch_in_order(
        submit,
        run.shard.steps,
        depth,
        fetch if fetcher else None,
        low=run.low,
        steady=steady,
        meter=run.stats,
        tuner=tuner,
    )
    yield from _count_on_host(run, batches, _hand(draws, None))


def _on_gpu(
    run: EpochRun,
    source: SeedSource,
    sampler: Any,
    graph: Any,
    fetcher: FeatureFetcher,
    static: StaticPlan | None,
) -> Generator[Any, None, None]:
    if not run.shard.steps:
        return
    # First, since it says what is wrong in a forked child, or with a closed graph.
    graph._handle()
    if static is not None:
        # Static batches have their rows already, and fixed sizes.
        epochs, number = begin_static(run, source, sampler, graph, fetcher, static)
        yield from _count_on_gpu(run, epochs.batches(number), lambda batch: batch, epochs)
        return
    index = devices.parse(graph.device)
    assert run.stats is not None
    _record_events(run.stats, index)
    _fill_caches(run, source, sampler, graph, fetcher, index)
    if run.share_tuner is not None:
        run.share_tuner.begin(index, run.prefetch)
    draws = source.begin(run, index)
    reader = ReadAhead(fetcher, index, run.stats) if fetcher else None
    if reader is not None:
        _give_caches(run, reader, graph, 0)
    batches = _submitted(run, source, draws, sampler, graph, index, reader)
    yield from _count_on_gpu(run, batches, _hand(draws, reader), reader=reader, graph=graph)
    if run.share_tuner is not None and run.gpu_share is not None:
        run.share_tuner.finish(index, run.stats.batches, run.gpu_share)
    if run.tuner is not None and not sampler._changes:
        run.tuner.finish_on_gpu(run.stats, _num_nodes(graph), index)


def _num_nodes(graph: Any) -> int:
    """Returns the number of nodes of all types."""
    counts = graph.num_nodes
    return sum(counts.values()) if isinstance(counts, Mapping) else counts


def _hand(draws: EpochDraws, reader: ReadAhead | None) -> Callable[[Any], Any]:
    """Returns a function that makes the loader's batch of one of the sampler's.

    A ``reader`` has its rows, on a GPU.
    """
    fetch, finish = as_torch if reader is None else reader.fetch, draws.finish
    if finish is None:
        return fetch
    return lambda batch: finish(fetch(batch))


def _fill_caches(
    run: EpochRun,
    source: SeedSource,
    sampler: Any,
    graph: Any,
    fetcher: FeatureFetcher,
    index: int,
) -> None:
    """Has caches of features hold the rows that they are to have in an epoch."""
    if source.fills_caches:
        fetcher.fill_caches(
            run.seed,
            run.epoch,
            lambda epoch: _sampled(run.uncounted(epoch), source, sampler, graph, index),
            run.shard.shards.steps,
        )


def _give_caches(
    run: EpochRun, target: FeatureFetcher | ReadAhead, graph: Any, batches: int
) -> bool:
    """Gives features the caches that are due after so many batches; returns whether it did."""
    tuner = run.cache_tuner
    if tuner is None or not tuner.is_due(batches, run.shard.steps):
        return False
    return target.give_caches(tuner, graph, run.epoch, batches)


def _sampled(
    run: EpochRun, source: SeedSource, sampler: Any, graph: Any, index: int
) -> Generator[Any, None, None]:
    """Yields the sampled batches of an epoch on a GPU, without rows."""
    draws = source.begin(run, index)
    with closing(_submitted(run, source, draws, sampler, graph, index)) as batches:
        for batch in batches:
            yield as_torch(batch)


def _submitted(
    run: EpochRun,
    source: SeedSource,
    draws: EpochDraws,
    sampler: Any,
    graph: Any,
    index: int,
    reader: ReadAhead | None = None,
) -> Generator[Any, None, None]:
    """Returns the results of jobs that are in flight on a GPU, one by one or in groups.

    Each job is over, or cancelled, before the seeds go: none reads them after that. A ``reader``
    learns which comes next.
    """
    if run.gpu_share is not None:
        sampler = sampler.with_gpu_share(run.gpu_share)
    stats, draw, number, steps = run.stats, draws.draw, run.shard.number, run.shard.steps
    launch = partial(sampler.launch, graph, epoch=run.epoch, form="torch", asynchronous=True)

    def record() -> None:
        # Torch may use the device only by now.
        if stats is not None and stats.events is None:
            _record_events(stats, index)

    def submit(step: int) -> PendingBatch[Any]:
        seeds, more = draw(step)
        job: PendingBatch[Any] = launch(seeds, batch=number(step), **more)
        record()
        return job

    record()
    depth = min(run.prefetch, MOST_ON_GPU)
    low = None if run.low is None else min(run.low, max(depth - 1, 0))
    # While one half of what is ahead is consumed, the other is on its way.
    size = depth // 2 if low is None else depth - low
    start = None
    if source.fills_caches and size > 1:
        start = sampler.group_launcher(graph, epoch=run.epoch, form="torch")
    upcoming = None if reader is None else reader.upcoming
    told: dict[str, Any] = {"steady": sampler._changes, "meter": stats, "upcoming": upcoming}
    if run.budget is not None and depth:
        if isinstance(start, TorchLauncher):
            # One more is in the hands of the loop.
            fit = start.concurrency(run.shard.shards.batch_size, depth + 1, run.budget)
            depth = min(depth, max(fit - 1, 1))
            size = max(depth // 2, 1)
        else:
            working = WORKING_BYTES * _num_nodes(graph)
            tuner = BudgetTuner(run.budget, depth, working)
            return prefetch_in_order(submit, steps, 1, tuner=tuner, **told)
    if start is None:
        return prefetch_in_order(submit, steps, depth, low=low, **told)

    def submit_many(first: int, count: int) -> PendingGroup[Any]:
        group = range(first, first + count)
        made: PendingGroup[Any] = start([draw(step)[0] for step in group], [*map(number, group)])
        return made

    return prefetch_groups(submit_many, steps, depth, size, **told)


def _count_on_host(
    run: EpochRun, batches: Generator[Any, None, None], hand: Callable[[Any], Any]
) -> Generator[Any, None, None]:
    """Yields what ``hand`` makes of each batch on the CPU, whose rows are read, and counts it."""
    stats = run.stats
    assert stats is not None
    with stats, closing(batches):
        stats.ask()
        is_traced, start = stats.trace is not None, perf_counter()
        for batch in batches:
            result = hand(batch)
            run.handed += 1
            stats.batches += 1
            stats.edges += batch.num_edges
            if is_traced:
                stats.hand()
            else:
                stats.in_next += perf_counter() - start
            yield result
            if is_traced:
                stats.ask()
            start = perf_counter()


def _count_on_gpu(
    run: EpochRun,
    batches: Generator[Any, None, None],
    hand: Callable[[Any], Any],
    counts: Any = None,
    reader: ReadAhead | None = None,
    graph: Any = None,
) -> Generator[Any, None, None]:
    """Yields what ``hand`` makes of each batch on a GPU, which has its rows, and counts it.

    ``counts`` knows how many edges a batch has, if not the batch. A ``reader`` of rows begins with
    those of the batch after it.
    """
    stats = run.stats
    assert stats is not None
    with stats, closing(batches), nullcontext() if reader is None else closing(reader):
        stats.ask()
        for batch in batches:
            stats.had()
            stats.edges += (counts or batch).num_edges
            result = hand(batch)
            stats.batches += 1
            stats.have_rows()
            if reader is not None:
                _give_caches(run, reader, graph, run.handed + 1)
                reader.begin()
            # Behind what an interrupt may end: who resumes gets the batch.
            run.handed += 1
            stats.hand()
            yield result
            stats.ask()


def _record_events(stats: EpochStats, index: int) -> None:
    """Has ``stats`` record events of the device from now on, if torch uses it by now."""
    if stats.events is not None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return
    stats.events = (
        CudaEvents(index) if stats.trace is None else CudaEvents(index, MOST_TRACED, every=1)
    )
    if stats.trace is not None:
        stats.events.align()
