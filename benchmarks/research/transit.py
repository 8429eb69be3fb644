"""NextDoor's transit-parallel walks beside a thread a walk, on graphs of many and of few vertices.

The paper's walks (Jangda et al., section 8): DeepWalk of 100 steps, PPR that stops with 1/100, and
node2vec with p = 2 and q = 0.5, with weights in [1, 5); and DeepWalk without weights. Ways:

- sample     a thread a walk, packed edges: what ``RandomWalk`` does
- csr        a thread a walk on the graph's own arrays, which is what the paper's baseline reads;
             for node2vec without the filter of pairs, too, which the two others have
- transit    walkers grouped by their vertices, step by step

How many walkers a vertex has decides what grouping can bring, so walks are few and many, from seeds
that are spread and on a graph of 34,000 vertices, like the paper's smallest. Ways take turns within
a row, and a row's walks are compared with each other whole, and in part with the CPU engine's,
before a clock starts. ``us`` are whole calls, with the walks in torch's memory; ``kernels_us`` one
call by the profiler's clock.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError

from ..gpu.graphs import Made, make
from ..gpu.kernels import call, index_share, kernels
from ..gpu.record import Budget, Record, spread
from ..gpu.walks import checked

SHAPES = ("livejournal", "products", "physics")
WALKS = (10_000, 1_000_000, 4_000_000)
WAYS: dict[str, dict[str, str]] = {
    "sample": {"execution": "sample"},
    "csr": {"execution": "sample", "layout": "csr"},
    "transit": {"execution": "transit"},
}
KINDS: dict[str, dict[str, Any]] = {
    "DeepWalk": {"length": 100, "prob": "w"},
    "DeepWalk, unweighted": {"length": 100},
    # A walk in 55 is cut.
    "PPR": {"length": 400, "stop": 0.01, "prob": "w"},
    "node2vec": {"length": 100, "p": 2.0, "q": 0.5, "prob": "w"},
}
_ROUNDS = 5


def samplers(kind: str) -> dict[str, pgs.RandomWalk]:
    """A sampler for each way."""
    # A graph's columns are walked, so that nothing has to be turned over.
    return {
        way: pgs.RandomWalk(direction="in", seed=7, mode_options=options, **KINDS[kind])
        for way, options in WAYS.items()
    }


def weighted(made: Made) -> tuple[pgs.Graph, pgs.Graph]:
    """The graph with weights, for the CPU and on the device."""
    here = made.on_cpu()
    random = torch.Generator().manual_seed(3)
    here = here.with_data(edge_data={"w": torch.rand(here.num_edges, generator=random) * 4 + 1})
    return here, here.to("cuda")


def proven(
    found: dict[str, pgs.RandomWalk], there: pgs.Graph, here: pgs.Graph, seeds: torch.Tensor
) -> int:
    """The steps of all walks; CheckError unless all ways give the same, and the CPU's."""
    first = call(found["sample"], there, seeds, 0)
    for way, sampler in found.items():
        checked(sampler, there, here, seeds)
        other = call(sampler, there, seeds, 0)
        if not torch.equal(first.nodes, other.nodes) or not torch.equal(
            first.lengths, other.lengths
        ):
            raise CheckError(f"{sampler!r}: walks by {way} are others than by sample")
        del other
    return int(first.lengths.sum(dtype=torch.int64))


def measure(kind: str, there: pgs.Graph, here: pgs.Graph, seeds: torch.Tensor) -> dict[str, Any]:
    """A row, but for what it is of."""
    found = samplers(kind)
    steps = proven(found, there, here, seeds)
    times: dict[str, list[float]] = {way: [] for way in found}
    for batch in range(_ROUNDS):
        for way in (list(found), list(reversed(found)))[batch % 2]:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            walks = call(found[way], there, seeds, batch)
            torch.cuda.synchronize()
            times[way].append(1e6 * (time.perf_counter() - begin))
            del walks
    us = {way: spread(values[1:], 1) for way, values in times.items()}
    profiled = kernels(found["transit"], there, seeds)
    return {
        "steps": steps,
        "us": us,
        "gsteps": {way: round(steps / of["median"] / 1e3, 3) for way, of in us.items()},
        "ratio": round(us["sample"]["median"] / us["transit"]["median"], 3),
        "ratio_csr": round(us["csr"]["median"] / us["transit"]["median"], 3),
        "kernels_us": profiled,
        "index_share": index_share(profiled),
    }


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    rates = "  ".join(f"{way} {rate:.2f}" for way, rate in row["gsteps"].items())
    share = row["index_share"]
    return (
        f"{row['shape']:11} {row['walk']:20} {row['walks']:8} walks, {row['a_vertex']:.3g} each: "
        f"G steps/s {rates}; transit {row['ratio']:.2f}x of sample, {row['ratio_csr']:.2f}x of csr"
        + ("" if share is None else f"; index {100 * share:.0f} %")
    )


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Rows of every graph, number of walks and kind of walk."""
    shapes, counts = (("tiny",), (100, 1000)) if trial else (SHAPES, WALKS)
    for place, shape in enumerate(shapes):
        share = Budget(budget.left() / (len(shapes) - place))
        if share.over():
            record.skip(shape)
            continue
        made = make(shape)
        here, there = weighted(made)
        random = torch.Generator(device=made.indptr.device).manual_seed(5)
        for count in counts:
            # Vertices as they are spread, again and again where there are fewer than walks.
            order = torch.randperm(made.num_nodes, generator=random, device=made.indptr.device)
            seeds = order.repeat(-(-count // len(order)))[:count].to(torch.int32)
            for kind, options in KINDS.items():
                if share.over():
                    record.skip(f"{shape} {kind} {count}")
                    continue
                about = {"shape": shape, "walk": kind, "walks": count, "length": options["length"]}
                row = {
                    **about,
                    "nodes": made.num_nodes,
                    "a_vertex": round(count / made.num_nodes, 4),
                    **measure(kind, there, here, seeds),
                }
                print(line(row), flush=True)
                record.add(row)
                torch.cuda.empty_cache()
        del made, here, there
        gc.collect()
        torch.cuda.empty_cache()
    if not any(row["kernels_us"] for row in record.rows):
        record.content["note"] = "the profiler saw no kernels: no shares of the scheduling index"
        print(record.content["note"])
