"""The paper PGSampler's figures of kernels, and its queue with several fetch sizes.

- kernel  figure 8: the time of all kernels of a batch by mode, by the profiler's clock. "bsp" has
          the design of DGL's sampler, launches for each hop and sizes that the host reads.
- hop     table I: for each hop of "bsp" its rows, how long the device waits for the host before its
          kernels and among them ("pre": transfers, calls, launches), how long its kernels run, and
          the bytes that the hop has to move, once, over that time, as a part of a copy's speed.
          The share of computation, which the paper has from counters, is not measured.
- fetch   mode "queue" by ``fetch_size``; None is the kernel's own rule. The paper has 5 (section
          III-C) and no ablation.

Every mode's batches have the edges and nodes of "bsp" before a clock starts.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from pygsampler._cli.bench.check import CheckError

from ..gpu import plots
from ..gpu.cases import PAPER_FANOUTS, PAPER_HOPS, PAPER_SHAPES, Case
from ..gpu.direct import Direct
from ..gpu.graphs import Made, make
from ..gpu.latency import engine
from ..gpu.record import Budget, Record, spread
from ..gpu.roofline import work_of_hop
from .turbo import copy_rate

MODES = ("bsp", "fused", "persistent", "queue")
BATCHES = (2048, 10240)
HOPS = (Case("products", 2048, (10, 10, 10)), Case("reddit", 2048, (10, 10, 10)))
FETCHES = tuple(
    Case(shape, batch, (10, 10, 10)) for shape in ("products", "reddit") for batch in BATCHES
)
FETCH_SIZES = (None, 1, 2, 5, 10, 20, 50, 100, 256)
_COUNT, _WARM = 10, 3
_SECTOR = 32


class Kernel(NamedTuple):
    """A kernel that ran: its name, and microseconds of the profiler's clock."""

    name: str
    start: float
    end: float


def kernels(direct: Direct, batches: list[torch.Tensor]) -> list[Kernel]:
    """The kernels of batches, one at a time, in their order; [] where the profiler sees none."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        engine(direct, batches)
        torch.cuda.synchronize()
    events = seen.events() or []
    found = [
        Kernel(event.name, event.time_range.start, event.time_range.end)
        for event in events
        if event.device_type == DeviceType.CUDA and not event.name.startswith("Mem")
    ]
    return sorted(found, key=lambda kernel: kernel.start)


def busy(found: Sequence[Kernel]) -> float:
    """Microseconds in which kernels ran."""
    return sum(kernel.end - kernel.start for kernel in found)


def union(found: Sequence[Kernel]) -> float:
    """Microseconds in which at least one kernel ran."""
    total, end = 0.0, float("-inf")
    for kernel in sorted(found, key=lambda kernel: kernel.start):
        total += max(kernel.end - max(kernel.start, end), 0.0)
        end = max(end, kernel.end)
    return total


def split(found: Sequence[Kernel], first: str) -> list[list[Kernel]]:
    """Runs of kernels, each from one on whose name begins with ``first``."""
    runs: list[list[Kernel]] = []
    for kernel in found:
        if kernel.name.startswith(first):
            runs.append([])
        if runs:
            runs[-1].append(kernel)
    return runs


def hop_times(found: Sequence[Kernel], hops: int) -> list[list[tuple[float, float]]]:
    """(waiting, running) of each hop of each batch of "bsp"; of distinct seeds."""
    times = []
    for batch in split(found, "bsp_seeds"):
        parts = split(batch, "bsp_count")
        if len(parts) != hops:
            raise CheckError(f"bsp: expected kernels of {hops} hops, got those of {len(parts)}")
        before, own = batch[0].end, []
        for part in parts:
            running, end = busy(part), part[-1].end
            own.append((end - before - running, running))
            before = end
        times.append(own)
    return times


def proven(ways: dict[Any, Direct], batches: list[torch.Tensor]) -> int:
    """The mean edges of a batch; CheckError unless all ways have the same edges and nodes."""
    counts = {name: direct.learn(batches) for name, direct in ways.items()}
    first = next(iter(counts.values()))
    for name, found in counts.items():
        if found != first:
            raise CheckError(f"{name} has other edges or nodes than {next(iter(counts))}")
    return round(sum(edges for edges, _ in first) / len(first))


def _row(kind: str, case: Case, edges: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "shape": case.shape,
        "batch": case.batch,
        "fanouts": list(case.fanouts),
        "edges": edges,
    }


def measure_kernels(case: Case, made: Made) -> dict[str, Any]:
    """Microseconds a batch in which kernels run, of each mode."""
    batches = made.seeds(case.batch, _COUNT + _WARM, torch.int32)
    ways = {mode: Direct(made, case.fanouts, mode) for mode in MODES}
    row = _row("kernel", case, proven(ways, batches))
    row["us"] = {}
    for mode, direct in ways.items():
        engine(direct, batches[:_WARM])
        if found := kernels(direct, batches[_WARM:]):
            row["us"][mode] = round(busy(found) / _COUNT, 2)
    return row


def measure_hops(case: Case, made: Made, rate: float) -> list[dict[str, Any]]:
    """A row for each hop of "bsp", the one next to the seeds first."""
    batches = made.seeds(case.batch, _COUNT + _WARM, torch.int32)
    direct = Direct(made, case.fanouts, "bsp")
    edges = proven({"bsp": direct}, batches)
    engine(direct, batches[:_WARM])
    times = hop_times(kernels(direct, batches[_WARM:]), len(case.fanouts))
    sample = direct.sampler.sample(made.graph, batches[0], epoch=0, batch=0).torch()
    rows = []
    for hop, block in enumerate(reversed(sample.blocks)):
        need = work_of_hop(made, block)
        moved = _SECTOR * (need["index_sectors"] + need["offset_sectors"]) + need["bytes"]
        row = {**_row("hop", case, edges), "hop": hop + 1, "rows": need["rows"]}
        if times:
            pre = statistics.median(batch[hop][0] for batch in times)
            running = statistics.median(batch[hop][1] for batch in times)
            row |= {"pre_us": round(pre, 2), "kernel_us": round(running, 2)}
            row["of_copy"] = round(moved / running * 1e6 / rate, 4)
        rows.append(row)
    return rows


def measure_fetch(case: Case, made: Made) -> list[dict[str, Any]]:
    """A row for each fetch size: microseconds of a batch, nodes in canonical order and as found."""
    batches = made.seeds(case.batch, _COUNT + _WARM, torch.int32)
    ways = {
        (size, ordered): Direct(
            made, case.fanouts, "queue", mode_options={"fetch_size": size, "ordered": ordered}
        )
        for size in FETCH_SIZES
        for ordered in (True, False)
    }
    edges = proven(ways, batches)
    times: dict[Any, list[float]] = {way: [] for way in ways}
    for direct in ways.values():
        engine(direct, batches[:_WARM])
    for i in range(_WARM, len(batches), 2):
        for way, direct in ways.items():
            times[way] += engine(direct, batches[i : i + 2])
    return [
        {
            **_row("fetch", case, edges),
            "fetch_size": size,
            "ordered": ordered,
            "us": spread(times[size, ordered]),
        }
        for size, ordered in ways
    ]


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    fanouts = ",".join(map(str, row["fanouts"]))
    head = f"{row['kind']:6} {row['shape']:9} {row['batch']:6}x({fanouts})"
    if row["kind"] == "kernel":
        return f"{head} " + "  ".join(f"{mode} {us:.1f} us" for mode, us in row["us"].items())
    if row["kind"] == "hop":
        pre, running = row.get("pre_us"), row.get("kernel_us")
        return f"{head} hop {row['hop']}: {row['rows']:,} rows, pre {pre} us, kernels {running} us"
    order = "ordered" if row["ordered"] else "as found"
    return f"{head} fetch {row['fetch_size'] or 'own'} {order}: {row['us']['median']:.1f} us"


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Hops and fetch sizes first, then the grid of the paper, its middle first."""

    def add(rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            print(line(row), flush=True)
            record.add(row)

    rate = copy_rate(trial)
    few = Case("tiny", 64, (10, 10, 10))
    shapes = ("tiny",) if trial else PAPER_SHAPES
    batches = (64,) if trial else BATCHES
    grid = [(batch, (n,) * hops) for hops in PAPER_HOPS for batch in batches for n in PAPER_FANOUTS]
    for place, shape in enumerate(sorted(shapes, key=lambda s: s not in ("products", "reddit"))):
        share = Budget(budget.left() / (len(shapes) - place))
        made = make(shape)
        for case in [few] if trial else [case for case in HOPS if case.shape == shape]:
            add(measure_hops(case, made, rate))
        for case in [few] if trial else [case for case in FETCHES if case.shape == shape]:
            add(measure_fetch(case, made))
        for batch, fanouts in grid:
            case = Case(shape, batch, fanouts)
            if share.over():
                record.skip(case)
                continue
            add([measure_kernels(case, made)])
        del made
        gc.collect()
        torch.cuda.empty_cache()
    if not any(row.get("pre_us") for row in record.rows):
        record.content["note"] = "the profiler saw no kernels: times of kernels are missing"
    plots.kernel_times(record.content, record.path.parent / "pgsampler_kernels.png")
