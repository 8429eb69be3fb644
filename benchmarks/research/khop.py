"""NextDoor's samples by steps: k-hop and layer sampling, and what else it samples beside walks.

The paper's applications (Jangda et al., section 8) that are no walks; those are the part transit:

- k-hop           25 draws with replacement of each seed, then 10 of each of these
- k-hop, unique   the nodes of a sample's step distinct; by sample alone
- k-hop, unique in a transit   the edges that a node draws distinct
- layer           2000 vertices of a sample, 1000 a step; a sample is a block's, and by sample alone
- layer, unique   the nodes of a sample's step distinct
- MVS             all neighbours of 64 seeds; by ``PGSampler([-1])``
- Cluster-GCN     the subgraph of 20 clusters of random vertices, 500 each; a program
- FastGCN, LADIES 64 seeds, 5 layers of 64 vertices; programs

Ways of k-hop: ``sample``, a thread a slot, and ``transit``, the vertices that draw grouped, step by
step. They take turns within a row, and a row's samples are compared with each other whole, and in
part with the CPU engine's, before a clock starts. ``us`` are whole calls, for steps with the
samples in torch's memory; ``kernels_us`` one call by transits by the profiler's clock.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

import pygsampler as pgs
from pygsampler import samplers
from pygsampler._cli.bench.check import CheckError

from ..gpu.graphs import Made, make
from ..gpu.kernels import call, index_share, kernels
from ..gpu.record import Budget, Record, spread

SHAPES = ("livejournal", "products", "physics")
SAMPLES = (10_000, 100_000, 1_000_000)
# So many samples of a layer for one of k-hop: they are larger.
_LAYER_SHARE = 10
KINDS: dict[str, dict[str, Any]] = {
    "k-hop": {"fanouts": [25, 10]},
    "k-hop, unique": {"fanouts": [25, 10], "unique": True},
    "k-hop, unique in a transit": {"fanouts": [25, 10], "unique": "transit"},
    "layer": {"sizes": [1000, 1000]},
    "layer, unique": {"sizes": [1000, 1000], "unique": True},
}
OTHERS: dict[str, tuple[Any, int]] = {
    "MVS": (lambda: pgs.PGSampler([-1], seed=7), 64),
    "Cluster-GCN": (lambda: samplers.cluster_gcn(seed=7), 20 * 500),
    "FastGCN": (lambda: samplers.fastgcn(nodes=[64] * 5, seed=7), 64),
    "LADIES": (lambda: samplers.ladies(nodes=[64] * 5, seed=7), 64),
}
_ROUNDS = 5
_OTHER_ROUNDS = 30
_CHECKED = 200


def ways(kind: str) -> dict[str, Any]:
    """A sampler for each way."""
    options = dict(KINDS[kind])
    if "sizes" in options:
        return {"sample": pgs.research.LayerSample(**options, seed=7)}
    ways = ("sample",) if options.get("unique") is True else ("sample", "transit")
    return {way: pgs.research.KHop(**options, execution=way, seed=7) for way in ways}


def prove(found: dict[str, Any], there: pgs.Graph, here: pgs.Graph, seeds: torch.Tensor) -> None:
    """CheckError unless all ways give the same, and the CPU's."""
    first = call(found["sample"], there, seeds, 0)
    few = seeds[:_CHECKED].contiguous()
    for way, sampler in found.items():
        got = sampler.sample(there, few, epoch=0, batch=0).cpu().numpy()
        want = sampler.sample(here, few.cpu(), epoch=0, batch=0).numpy()
        if any((mine != theirs).any() for mine, theirs in zip(got.steps, want.steps, strict=True)):
            raise CheckError(f"{sampler!r}: samples of the GPU differ from the CPU's")
        other = call(sampler, there, seeds, 0)
        pairs = zip(first.steps, other.steps, strict=True)
        if not all(torch.equal(mine, theirs) for mine, theirs in pairs):
            raise CheckError(f"{sampler!r}: samples by {way} are others than by sample")
        del other


def timed(once: Any) -> float:
    """Microseconds until the device is done."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    made = once()
    torch.cuda.synchronize()
    us = 1e6 * (time.perf_counter() - begin)
    del made
    return us


def measure(kind: str, there: pgs.Graph, here: pgs.Graph, seeds: torch.Tensor) -> dict[str, Any]:
    """A row of steps, but for what it is of."""
    found = ways(kind)
    prove(found, there, here, seeds)
    times: dict[str, list[float]] = {way: [] for way in found}
    for batch in range(_ROUNDS):
        for way in (list(found), list(reversed(found)))[batch % 2]:
            times[way].append(timed(lambda: call(found[way], there, seeds, batch)))  # noqa: B023
    us = {way: spread(values[1:], 1) for way, values in times.items()}
    vertices = call(found["sample"], there, seeds[:1], 0).num_edges * len(seeds)
    row: dict[str, Any] = {
        "vertices": vertices,
        "us": us,
        "gvertices": {way: round(vertices / of["median"] / 1e3, 3) for way, of in us.items()},
    }
    if "transit" in us:
        row["ratio"] = round(us["sample"]["median"] / us["transit"]["median"], 3)
        row["kernels_us"] = kernels(found["transit"], there, seeds)
        row["index_share"] = index_share(row["kernels_us"])
    return row


def other(kind: str, there: pgs.Graph, nodes: int) -> dict[str, Any]:
    """A row of what is sampled otherwise: one batch at a time, from random seeds."""
    make_sampler, size = OTHERS[kind]
    sampler = make_sampler()
    random = torch.Generator().manual_seed(5)
    sets = [
        torch.randperm(nodes, generator=random)[: min(size, nodes)].to("cuda") for _ in range(4)
    ]
    edges = [sampler.sample(there, seeds, epoch=0, batch=0).num_edges for seeds in sets]
    times = [
        timed(lambda: sampler.sample(there, sets[i % 4], epoch=0, batch=i))  # noqa: B023
        for i in range(_OTHER_ROUNDS)
    ]
    return {"edges": round(sum(edges) / len(edges)), "us": {"sample": spread(times[4:], 1)}}


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    about = f"{row['shape']:11} {row['kind']:14} {row['samples']:8} samples"
    times = "  ".join(f"{way} {of['median']:.0f} us" for way, of in row["us"].items())
    text = f"{about}: {times}"
    if "gvertices" in row:
        rates = "  ".join(f"{way} {rate:.2f}" for way, rate in row["gvertices"].items())
        text += f"; G vertices/s {rates}"
    if "ratio" in row:
        text += f"; transit {row['ratio']:.2f}x of sample"
    if row.get("index_share") is not None:
        text += f"; index {100 * row['index_share']:.0f} %"
    return text


def _rows(made: Made, counts: tuple[int, ...], record: Record, share: Budget) -> None:
    here, there, nodes = made.on_cpu(), made.graph, made.num_nodes
    random = torch.Generator(device=made.indptr.device).manual_seed(5)

    def add(kind: str, count: int, row: dict[str, Any]) -> None:
        about = {"shape": made.name, "kind": kind, "samples": count, "nodes": nodes}
        print(line({**about, **row}), flush=True)
        record.add({**about, **row})
        torch.cuda.empty_cache()

    for count in counts:
        for kind in KINDS:
            own = max(count // _LAYER_SHARE, 1) if "sizes" in KINDS[kind] else count
            if share.over():
                record.skip(f"{made.name} {kind} {own}")
                continue
            # Vertices as they are spread, again and again where there are fewer than samples.
            order = torch.randperm(nodes, generator=random, device=made.indptr.device)
            seeds = order.repeat(-(-own // nodes))[:own].to(torch.int32)
            add(kind, own, measure(kind, there, here, seeds))
    for kind, (_, size) in OTHERS.items():
        if share.over():
            record.skip(f"{made.name} {kind}")
            continue
        add(kind, min(size, nodes), other(kind, there, nodes))


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Rows of every graph, number of samples and kind."""
    shapes, counts = (("tiny",), (100, 1000)) if trial else (SHAPES, SAMPLES)
    for place, shape in enumerate(shapes):
        share = Budget(budget.left() / (len(shapes) - place))
        if share.over():
            record.skip(shape)
            continue
        _rows(make(shape), counts, record, share)
        gc.collect()
        torch.cuda.empty_cache()
