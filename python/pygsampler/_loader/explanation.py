"""``explain_loader``: the text of ``loader.explain()``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._engine.library import get_num_threads
from pygsampler._loader.share_tuner import LEAST
from pygsampler._loader.summary import size_text

if TYPE_CHECKING:
    from pygsampler._loader.cache_tuner import CacheTuner
    from pygsampler._loader.cuda_events import StepTimes
    from pygsampler._loader.prefetch_tuner import PrefetchTuner
    from pygsampler._loader.share_tuner import ShareTuner

__all__ = ["explain_loader"]

# A smaller part of the time is no reason to change anything.
SHARE = 0.05
_BOUNDS = {
    "cores": "; idle cores allow no more",
    "memory": "; free memory, of which batches take at most a quarter, allows no more",
    "": "",
}


def explain_loader(
    stats: Mapping[str, Any],
    *,
    device: str,
    prefetch: Any,
    budget: int | None,
    tuner: PrefetchTuner | None,
    cache: CacheTuner | None,
    share: ShareTuner | None,
    tables: Mapping[str, Any],
    step_times: StepTimes | None,
    is_static: bool,
    is_steady: bool,
) -> str:
    """Returns what a loader does with its options, by which figures, and what would help.

    ``stats`` are those of the epoch that began last, and ``device`` is the line about the device.
    ``is_steady`` says that samples depend on how many batches are ahead.
    """
    lines = [f"device: {device}"]
    if is_static:
        lines.append("prefetch: 2, as for all static batches")
    elif tuner is None:
        within = "fixed" if budget is None else f"as far as {size_text(budget)} have room for them"
        lines.append(f"prefetch: {prefetch}, {within}")
    elif is_steady:
        lines.append(f'prefetch: "auto" stays {tuner.depth}, since samples depend on it')
    else:
        lines += _depth(tuner)
    if cache is not None:
        lines += _caches(cache, tables, device)
    if share is not None:
        lines.append(_share(share, device, is_static=is_static))
    if step_times is not None:
        way = "read ahead" if step_times.is_faster else "read when a batch is handed over"
        lines.append(
            f"rows over the link: {way}, since a step took {step_times.ahead:.3g} ms with reading "
            f"ahead and {step_times.without:.3g} ms without"
        )
    lines += _waiting(stats, device, tuner)
    return "\n".join(lines)


def _depth(tuner: PrefetchTuner) -> Iterator[str]:
    measured = tuner.measured
    if measured is None:
        yield f'prefetch: "auto" is {tuner.depth} until a few batches are measured'
        return
    yield (
        f'prefetch: "auto" is {tuner.depth}, by {measured.batches} batches of epoch '
        f"{measured.epoch}{_BOUNDS[tuner.bound]}"
    )
    step = f"the loop takes {_ms(measured.step)} for a batch and waits {measured.waiting:.0%}"
    work = "samples" if measured.stages == 1 else "samples and reads"
    if measured.work is None:
        yield f"  {step} of the time"
    else:
        yield (
            f"  one core {work} a batch in {_ms(measured.work)}; {step} of the time; "
            f"{measured.idle:.1f} cores are idle"
        )
    ahead = tuner.depth * measured.size
    yield (
        f"  a batch has about {size_text(measured.size)}, those ahead {size_text(ahead)}; "
        f"{size_text(measured.free)} are free"
    )


def _caches(tuner: CacheTuner, tables: Mapping[str, Any], device: str) -> Iterator[str]:
    rows, choice = tuner.rows, tuner.choice
    if "cuda" not in device:
        yield 'cache: "auto" is none, since batches are on the CPU'
        return
    if rows is None:
        yield 'cache: "auto" is none until a few batches are measured'
        return
    if not any(rows.values()):
        reason = "no features are read over a link" if not rows else "no memory is left for it"
        yield f'cache: "auto" is none, since {reason}'
    for name, count in rows.items():
        if count and name in tables:
            whole = len(tables[name])
            yield f'cache: "auto" has {count} of {whole} rows of {name!r} ({count / whole:.0%})'
    if choice is not None:
        yield (
            f"  {size_text(choice.free)} of {size_text(choice.total)} were free after "
            f"{choice.batches} batches, by epoch {choice.epoch}; a tenth is left for others"
        )
    elif any(rows.values()):
        yield "  as the loaded state has it"


def _share(tuner: ShareTuner, device: str, *, is_static: bool) -> str:
    if "cuda" not in device or is_static:
        where = "static batches take all of a GPU" if is_static else "batches are on the CPU"
        return f'gpu_share: "auto" has no effect, since {where}'
    if tuner.choice is None:
        return (
            f'gpu_share: "auto" is {tuner.share:g} in the next epoch, and chosen after epochs of '
            f"{LEAST} batches or more"
        )
    times = [
        f"{_ms(seconds)} with {share:g}" for share, seconds in sorted(tuner.step_seconds.items())
    ]
    reason = f"since a step took {', '.join(times)}" if times else "as the loaded state has it"
    return f'gpu_share: "auto" is {tuner.choice:g}, {reason}'


def _waiting(stats: Mapping[str, Any], device: str, tuner: PrefetchTuner | None) -> Iterator[str]:
    batches, share = stats["batches"], stats["waiting_share"]
    if not batches:
        yield "waiting: not measured yet, since no batch was handed over"
        return
    seconds = stats["seconds"]
    yield (
        f"waiting: {share:.0%} of {seconds:.3g} s, for {batches} batches of epoch "
        f"{stats['epoch']}, {_ms(seconds / batches)} each"
    )
    reading = stats["gathering_share"] or 0.0
    if reading > SHARE:
        yield (
            f"help: the GPU reads features {reading:.0%} of the time; a cache on the GPU, "
            'features.to("cuda") or a smaller dtype reads less over the link'
        )
    if share > SHARE:
        yield f"help: {_help(stats['queues'], device, is_auto=tuner is not None)}"
    elif reading <= SHARE:
        yield "help: none needed, since the loop hardly waits"


def _help(queues: Mapping[str, Mapping[str, float]], device: str, *, is_auto: bool) -> str:
    sampled, gathered = queues["sampled"], queues.get("gathered")
    if gathered and gathered["empty"] > 0.5 and sampled["empty"] <= 0.5:
        return (
            "reading features is slowest; features in memory instead of a file, of a smaller "
            "dtype, or on the GPU are read faster"
        )
    if sampled["empty"] > 0.5:
        more = "smaller fanouts, fewer hops or a larger batch_size"
        if "cuda" in device:
            return f"sampling is slowest; {more}"
        return (
            f"sampling is slowest; more threads (pgs.set_num_threads, now {get_num_threads()}), "
            f"{more}, or the graph on a GPU"
        )
    if is_auto:
        return "batches cost more at times, or were the first ones, which every epoch waits for"
    return 'batches cost more at times; a larger prefetch, or "auto", evens that out'


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
