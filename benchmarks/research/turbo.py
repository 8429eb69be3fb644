"""TurboGNN's sampling kernels: the paper's tables of them in kind, and our kernel beside them.

A row is a hop of as many distinct vertices as the paper's batches have, by mode "reservoir" with
its switches, by "bsp", whose drawing costs O(fanout) a row in the same launches, and by
"persistent":

- off        a warp a vertex in the frontier's order, reservoirs in global memory: the paper's
             kernel-ori, DGL 0.8's algorithm
- B          by degree, with the assignment of rows to blocks and warps
- B+S        and all reservoirs in shared memory
- B+S+A      and only those of vertices from the degree threshold on: the paper's kernel-opt
- derived    the same, with the degree threshold that follows from the GPU, the degrees of the batch
             and its size
- streams    the same, with the two parts in launches of their own, whose times `draw_us` adds
             though they overlap: `call_us` compares them

`draw_us` are the kernels that take the place of DGL's row-wise sampling, from counting and sorting
on, by the profiler's clock; `call_us` a whole batch, whose numbering is the same in all ways but
the last. The thresholds are swept first, and B+S+A takes the best ones. Every way's batches are
compared with the CPU engine's before a clock starts.
"""

from __future__ import annotations

import gc
from typing import Any

import torch

from pygsampler._cli.bench.check import CheckError

from ..gpu import check
from ..gpu.cases import Case
from ..gpu.direct import Direct
from ..gpu.graphs import Made, make
from ..gpu.latency import engine
from ..gpu.record import Budget, Record, geometric_mean, spread
from ..gpu.roofline import work

SHAPES = ("products", "reddit", "arxiv")
BATCHES = (4_000, 8_000, 16_000, 32_000, 40_000, 80_000, 100_000, 200_000)
FANOUTS = (10, 15, 30)
# The cases of the paper's figures for sorting.
LARGEST = {"products": Case("products", 1_200_000, (15,))}
HOPS = ((1024, (10, 10)), (1024, (5, 10, 15)), (8192, (10, 10)))
SWEPT = (("products", 8_000), ("products", 200_000), ("reddit", 8_000), ("reddit", 200_000))
SWEPT_FANOUTS = (15, 30)
# None is the plan's own: as many blocks as run at a time.
DEGREES = (0, 16, 32, 64, 128, 256, 512, 1024, 4096, 1 << 40)
BLOCKS = (None, 0, 64, 512, 1024, 4096, 16_384, (1 << 31) - 1)
SWITCHES: dict[str, dict[str, Any]] = {
    "off": {"memory": "global", "schedule": False},
    "B": {"memory": "global"},
    "B+S": {"memory": "shared"},
    "B+S+A": {},
    "derived": {"degree_threshold": "auto"},
    "streams": {"streams": 2},
}
_COUNT, _WARM = 20, 4
_SECTOR = 32
# Kernels in the place of DGL's row-wise sampling.
_DRAWING = ("reservoir_", "bsp_count", "bsp_draw", "bsp_choose", "bsp_gather")


def ways(made: Made, fanouts: tuple[int, ...], best: dict[str, Any]) -> dict[str, Direct]:
    """All that is compared; ``best`` are the thresholds."""
    found = {
        name: Direct(made, fanouts, "reservoir", mode_options={**best, **options})
        for name, options in SWITCHES.items()
    }
    return {**found, **{mode: Direct(made, fanouts, mode) for mode in ("bsp", "persistent")}}


def proven(found: dict[str, Direct], batches: list[torch.Tensor]) -> int:
    """The mean edges of the batches; CheckError unless all ways that have to give the same."""
    counts = {name: direct.learn(batches) for name, direct in found.items()}
    for name, of in counts.items():
        like = "persistent" if name == "bsp" else "off" if name in SWITCHES else name
        if of != counts.get(like, of):
            raise CheckError(f"{name} has other edges or vertices than {like}")
    edges = {name: [edges for edges, _ in of] for name, of in counts.items()}
    first = next(iter(edges.values()))
    # Behind the first hop other vertices are reached.
    if all(direct.hops == 1 for direct in found.values()) and any(
        of != first for of in edges.values()
    ):
        raise CheckError("a reservoir gives another number of edges than our kernel")
    return round(sum(first) / len(first))


def drawing(direct: Direct, batches: list[torch.Tensor]) -> dict[str, float]:
    """Microseconds a batch of each kernel that draws; {} where the profiler sees none."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        engine(direct, batches)
        torch.cuda.synchronize()
    return {
        event.key: round(event.self_device_time_total / len(batches), 3)
        for event in seen.key_averages()
        if event.key.startswith(_DRAWING) and event.self_device_time_total > 0
    }


def copy_rate(trial: bool) -> float:
    """Bytes a second, read and written, of a copy on the device."""
    source = torch.zeros(1 << (22 if trial else 31), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = []
    for _ in range(7):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return 2 * len(source) / sorted(times)[3]


def moved(made: Made, direct: Direct, seeds: torch.Tensor) -> int:
    """Bytes that drawing has to move, once: sectors of the graph and of the map, and the block."""
    need = work(made, direct, seeds)
    (block,) = direct.sampler.sample(made.graph, seeds, epoch=0, batch=0).torch().blocks
    words = block.src_nodes[block.indices.long()].long() * 8 // _SECTOR
    sectors = need["index_sectors"] + need["offset_sectors"] + 2 * len(words.unique())
    written = need["bytes"] - need["input_nodes"] * block.src_nodes.element_size()
    return _SECTOR * sectors + written


def measure(case: Case, made: Made, best: dict[str, Any], rate: float) -> dict[str, Any]:
    """One row: times of every way on the same batches."""
    batches = made.seeds(case.batch, _COUNT + _WARM, made.indices.dtype)
    found = ways(made, case.fanouts, best)
    row: dict[str, Any] = {
        "kind": "kernel" if len(case.fanouts) == 1 else "hops",
        "shape": case.shape,
        "batch": len(batches[0]),
        "fanouts": list(case.fanouts),
        "edges": proven(found, batches),
        "call_us": {},
        "draw_us": {},
        "kernels_us": {},
    }
    times: dict[str, list[float]] = {name: [] for name in found}
    for direct in found.values():
        engine(direct, batches[:_WARM])
    for i in range(_WARM, len(batches), _WARM):
        for name, direct in found.items():
            times[name] += engine(direct, batches[i : i + _WARM])
    row["call_us"] = {name: spread(values) for name, values in times.items()}
    if row["kind"] == "kernel":
        row["bytes"] = moved(made, found["off"], batches[0])
        for name, direct in found.items():
            kernels = drawing(direct, batches[_WARM:])
            if kernels:
                row["kernels_us"][name] = kernels
                us = row["draw_us"][name] = round(sum(kernels.values()), 2)
                row.setdefault("of_copy", {})[name] = round(row["bytes"] / us * 1e6 / rate, 3)
    return row


def time_of(direct: Direct, batches: list[torch.Tensor]) -> float:
    """Microseconds a batch of drawing, or of the whole call where the profiler sees nothing."""
    direct.learn(batches[:_WARM])
    engine(direct, batches[:_WARM])
    found = drawing(direct, batches[_WARM:])
    if found:
        return sum(found.values())
    return spread(engine(direct, batches[_WARM:]))["median"]


def sweep(record: Record, budget: Budget, trial: bool) -> dict[str, Any]:
    """The numbers that are best as thresholds, in the geometric mean; a row for each tried one."""
    best: dict[str, Any] = {}
    cases = (("tiny", 64),) if trial else SWEPT
    graphs = {shape: make(shape) for shape, _ in cases}
    for name, values in (("degree_threshold", DEGREES), ("block_threshold", BLOCKS)):
        found: dict[int | None, list[float]] = {}
        for shape, size in cases:
            batches = graphs[shape].seeds(size, 10 + _WARM, torch.int32)
            for fanout in SWEPT_FANOUTS:
                if budget.over():
                    record.skip(f"{name}, {shape} {size}x({fanout})")
                    continue
                for value in values:
                    options = {**best, name: value}
                    direct = Direct(graphs[shape], (fanout,), "reservoir", mode_options=options)
                    found.setdefault(value, []).append(time_of(direct, batches))
        if not found:
            continue
        means = {value: geometric_mean(times) for value, times in found.items()}
        # None is a rule that asks for switches, which the ways after this differ by.
        best[name] = min((value for value in means if value is not None), key=means.__getitem__)
        for value, mean in means.items():
            row = {"kind": "sweep", "threshold": name, "value": value, "us": round(mean, 2)}
            record.add(row)
            print(line(row), flush=True)
    record.content["thresholds"] = best
    print(f"best: {best}", flush=True)
    return best


def run(record: Record, budget: Budget, trial: bool) -> None:
    """The sweep, then the rows of each graph, fanout 30 and large batches first."""
    rate = copy_rate(trial)
    record.content["copy_tb_per_second"] = round(rate / 1e12, 3)
    best = sweep(record, Budget(budget.left() / 4), trial)
    shapes, batches, hops = SHAPES, BATCHES, HOPS
    if trial:
        shapes, batches, hops = ("tiny",), (64, 300), ((64, (5, 3)),)
    for place, shape in enumerate(shapes):
        share = Budget(budget.left() / (len(shapes) - place))
        if share.over():
            record.skip(shape)
            continue
        made = make(shape)
        on_cpu = made.on_cpu()
        seeds = made.seeds(batches[0], 1, torch.int64, seed=99)[0]
        for fanouts in (*((fanout,) for fanout in FANOUTS), *(f for _, f in hops)):
            for direct in ways(made, fanouts, best).values():
                # The CPU reads rows of several hops through, too.
                check.large(direct, on_cpu, seeds if len(fanouts) == 1 else seeds[:256])
        cases = [Case(shape, *case) for case in hops]
        cases += [Case(shape, b, (f,)) for b in batches[::-1] for f in FANOUTS[::-1]]
        cases += [LARGEST[shape]] if shape in LARGEST else []
        for case in cases:
            if share.over():
                record.skip(case)
                continue
            row = measure(case, made, best, rate)
            print(line(row), flush=True)
            record.add(row)
        del made, on_cpu
        gc.collect()
        torch.cuda.empty_cache()
    if not any(row.get("draw_us") for row in record.rows):
        record.content["note"] = "the profiler saw no kernels: thresholds are by whole calls"
        print(record.content["note"])


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    if row["kind"] == "sweep":
        return f"{row['threshold']:16} {row['value']!s:>13} {row['us']:9.1f} us"
    fanouts = ",".join(map(str, row["fanouts"]))
    calls = {name: us["median"] for name, us in row["call_us"].items()}
    shown = row["draw_us"] or calls
    text = "  ".join(f"{name} {us:.1f} ({shown['off'] / us:.2f}x)" for name, us in shown.items())
    what = "drawing" if row["draw_us"] else "calls"
    return (
        f"{row['shape']:9} {row['batch']:6}x({fanouts}) {what}, us: {text}; "
        f"calls: off {calls['off']:.1f} persistent {calls['persistent']:.1f}"
    )
