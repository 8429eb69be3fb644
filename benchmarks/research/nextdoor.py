"""NextDoor's samples on several GPUs, by parts of its transits, and of graphs outside of the GPU.

Rows of three experiments (Jangda et al., section 8), on graphs that the parts transit and khop
have, and the last on one with the counts of ogbn-papers100M:

- devices     figure 10: one call's samples on one GPU, then dealt to two and more, up to all that
              the machine has; ``sampled_us`` until each GPU has its share, ``collected_us`` until
              the host has all samples, ``speedup`` of the former over one GPU
- ablation    by sample, and by transits: all (``transit``), without rows in shared memory
              (``transit_uncached``), and without classes by the number of walkers, too
              (``transit_plain``, which is the paper's TP but for its shared memory)
- outside     section 8.4: ``pinned_us`` is a call on a graph that is page-locked on the host, whose
              rows the GPU reads there; ``copied_us`` is the least that the paper's way takes, which
              copies the sub-graphs with transits to the GPU at each step: samples are spread over
              the graph, so a step copies all of it, ``copy_us``, and its kernels are for free

A row's samples are compared with each other, and in part with the CPU engine's, before a clock
starts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.research.dealt_samples import sample_on_devices, sample_shares

from ..gpu.graphs import make
from ..gpu.record import Budget, Record, spread

SHAPES = ("livejournal", "products", "physics")
SAMPLES = 1_000_000
EXECUTIONS = ("sample", "transit", "transit_uncached", "transit_plain")
LARGE = "papers100m"
_ROUNDS = 5
_CHECKED = 200


def _walk(length: int, **options: Any) -> Callable[[str], Any]:
    # The graph's own arrays, as transits read them.
    def sampler(execution: str) -> Any:
        modes = {"execution": execution, "layout": "csr"}
        return pgs.RandomWalk(length, direction="in", seed=7, mode_options=modes, **options)

    return sampler


def _layer(execution: str) -> Any:
    return pgs.research.LayerSample([1000, 1000], seed=7)


# A sampler by its execution, and the samples of a row for one of SAMPLES.
KINDS: dict[str, tuple[Callable[[str], Any], float]] = {
    "DeepWalk": (_walk(100, prob="w"), 1),
    "PPR": (_walk(400, stop=0.01, prob="w"), 1),
    "node2vec": (_walk(100, p=2.0, q=0.5, prob="w"), 1),
    "k-hop": (lambda execution: pgs.research.KHop([25, 10], execution=execution, seed=7), 1),
    "layer": (_layer, 0.1),
}


# Samplers of edges without weights by the number of their steps, with a graph's own arrays.
OUTSIDE: dict[str, tuple[Callable[[], Any], int]] = {
    "DeepWalk, unweighted": (lambda: _walk(100)("sample"), 100),
    "node2vec, unweighted": (lambda: _walk(100, p=2.0, q=0.5)("sample"), 100),
    "k-hop": (lambda: pgs.research.KHop([25, 10], execution="sample", seed=7), 2),
}


def prove(
    samplers: Sequence[Any], here: pgs.Graph, graphs: Sequence[pgs.Graph], seeds: Any
) -> None:
    """CheckError unless all samplers give the CPU's samples, on any number of the devices."""
    few = seeds[:_CHECKED]
    want = samplers[0].sample(here, few, epoch=0, batch=0).numpy()
    for sampler in samplers:
        for count in range(1, len(graphs) + 1):
            got = sample_on_devices(sampler, graphs[:count], few, epoch=0, batch=0).numpy()
            for name in got._descriptors:
                mine, theirs = got._array(name), want._array(name)
                if mine is not None and (mine != theirs).any():
                    raise CheckError(f"{sampler!r}: samples of {count} devices differ")


def rounds(
    ways: dict[str, Callable[[int], Any]], count: int = _ROUNDS
) -> dict[str, dict[str, float]]:
    """Microseconds of each way; ways take turns, and the first round does not count."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for batch in range(count + 1):
        for way in (list(ways), list(reversed(ways)))[batch % 2]:
            begin = time.perf_counter()
            result = ways[way](batch)
            times[way].append(1e6 * (time.perf_counter() - begin))
            del result
    return {way: spread(values[1:], 1) for way, values in times.items()}


def on_devices(
    kind: str, here: pgs.Graph, graphs: Sequence[pgs.Graph], seeds: Any
) -> dict[str, Any]:
    """A row of figure 10, but for what it is of."""
    sampler = KINDS[kind][0]("sample")
    prove([sampler], here, graphs, seeds)
    counts = range(1, len(graphs) + 1)

    def shares(count: int) -> Callable[[int], Any]:
        return lambda b: sample_shares(sampler, graphs[:count], seeds, epoch=0, batch=b)

    def collected(count: int) -> Callable[[int], Any]:
        return lambda b: sample_on_devices(sampler, graphs[:count], seeds, epoch=0, batch=b)

    sampled = rounds({str(count): shares(count) for count in counts})
    one = sampled["1"]["median"]
    return {
        "sampled_us": sampled,
        # Most of it is the copy to the host, which spreads little.
        "collected_us": rounds({str(count): collected(count) for count in counts}, 2),
        "speedup": {way: round(one / us["median"], 3) for way, us in sampled.items()},
    }


def ablation(kind: str, here: pgs.Graph, graph: pgs.Graph, seeds: Any) -> dict[str, Any]:
    """A row of what grouping brings, but for what it is of."""
    samplers = {execution: KINDS[kind][0](execution) for execution in EXECUTIONS}
    prove(list(samplers.values()), here, [graph], seeds)
    us = rounds(
        {
            execution: lambda b, sampler=sampler: sampler.sample(graph, seeds, epoch=0, batch=b)
            for execution, sampler in samplers.items()
        }
    )
    sample = us["sample"]["median"]
    return {"us": us, "ratio": {way: round(sample / of["median"], 3) for way, of in us.items()}}


def outside(
    kind: str, here: pgs.Graph, pinned: pgs.Graph, seeds: Any, once: float
) -> dict[str, Any]:
    """A row of a graph that stays on the host, of which a copy takes ``once`` microseconds."""
    make_sampler, steps = OUTSIDE[kind]
    sampler = make_sampler()
    prove([sampler], here, [pinned], seeds)
    us = rounds({"pinned": lambda b: sampler.sample(pinned, seeds, epoch=0, batch=b)})["pinned"]
    ratio = round(steps * once / us["median"], 3)
    copied = round(steps * once, 1)
    return {"pinned_us": us, "copy_us": once, "copied_us": copied, "ratio": {"pinned": ratio}}


def copy_us(here: pgs.Graph) -> float:
    """Microseconds of a copy of a page-locked graph's arrays to the GPU: the least of a few."""
    array = torch.from_dlpack(here.indices)
    host = torch.empty(array.shape, dtype=array.dtype, pin_memory=torch.cuda.is_available())
    host.copy_(array)
    there = torch.empty(array.shape, dtype=array.dtype, device="cuda")
    found = []
    for _ in range(_ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        there.copy_(host)
        torch.cuda.synchronize()
        found.append(1e6 * (time.perf_counter() - begin))
    # Row offsets at the same rate.
    bytes_of = [torch.from_dlpack(part).nbytes for part in (here.indptr, here.indices)]
    return round(min(found) * sum(bytes_of) / bytes_of[1], 1)


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    ratios = row["speedup" if row["what"] == "devices" else "ratio"]
    texts = "  ".join(f"{way} {ratio:.2f}x" for way, ratio in ratios.items())
    return f"{row['shape']:11} {row['what']:8} {row['kind']:9} {row['samples']:8}: {texts}"


def measure(
    shape: str,
    here: pgs.Graph,
    graphs: Sequence[pgs.Graph],
    samples: int,
    record: Record,
    share: Budget,
) -> None:
    """The rows of a graph that each of several devices has."""
    random = torch.Generator().manual_seed(5)
    order = torch.randperm(graphs[0].num_nodes, generator=random).to(torch.int32)
    for kind, (_, part) in KINDS.items():
        count = max(int(samples * part), 1)
        # Nodes as they are spread, again and again where there are fewer than samples.
        seeds = order.repeat(-(-count // len(order)))[:count].contiguous()
        for what in ("devices", "ablation"):
            about = {"shape": shape, "what": what, "kind": kind, "samples": count}
            if what == "ablation" and kind == "layer":
                continue
            if what == "devices" and len(graphs) < 2:
                record.skip(f"{shape} {what} {kind}: needs two GPUs")
            elif share.over():
                record.skip(f"{shape} {what} {kind}")
            elif what == "devices":
                record.add({**about, **on_devices(kind, here, graphs, seeds)})
                print(line(record.rows[-1]), flush=True)
            else:
                record.add({**about, **ablation(kind, here, graphs[0], seeds)})
                print(line(record.rows[-1]), flush=True)


def measure_outside(
    shape: str, here: pgs.Graph, samples: int, record: Record, share: Budget
) -> None:
    """The rows of a graph that stays on the host, for a hundredth, a tenth and all of samples."""
    random = torch.Generator().manual_seed(5)
    seeds = torch.randint(0, here.num_nodes, (samples,), generator=random, dtype=torch.int32)
    once, pinned = copy_us(here), here.pin()
    for kind in OUTSIDE:
        for count in (samples // 100, samples // 10, samples):
            if share.over():
                record.skip(f"{shape} outside {kind} {count}")
                continue
            about = {"shape": shape, "what": "outside", "kind": kind, "samples": count}
            record.add({**about, **outside(kind, here, pinned, seeds[:count], once)})
            print(line(record.rows[-1]), flush=True)


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Rows of every graph, kind and experiment, on all GPUs that there are."""
    shapes, samples = (("tiny",), 500) if trial else (SHAPES, SAMPLES)
    for place, shape in enumerate(shapes):
        share = Budget(budget.left() / (len(shapes) - place + 1))
        if share.over():
            record.skip(shape)
            continue
        here = make(shape).on_cpu()
        random = torch.Generator().manual_seed(3)
        here = here.with_data(edge_data={"w": torch.rand(here.num_edges, generator=random) * 4 + 1})
        graphs = [here.to(f"cuda:{i}") for i in range(pgs.cuda.device_count())]
        measure(shape, here, graphs, samples, record, share)
        del graphs
        gc.collect()
        torch.cuda.empty_cache()
    if budget.over():
        record.skip("outside")
        return
    large = "tiny" if trial else LARGE
    measure_outside(large, make(large, torch.int32).on_cpu(), samples, record, budget)
