"""Weighted sampling beside uniform sampling of the same graph, in turns, and beside DGL's."""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError

from .cases import Case
from .direct import Direct, unequal
from .graphs import Made, make
from .latency import engine, public
from .record import Budget, Record, spread

BATCHES = 60
_WARM = 10
_SEEDS = 256
# Batch and fanouts, by shape; in microseconds what DGL 2.1 took on an H200 for float32 weights with
# fanouts that are drawn without and with replacement, on graphs of the same counts.
CASES = {
    "products": [
        (Case("products", 1024, (10, 10)), {False: 1837.0, True: 1390.0}),
        (Case("products", 2048, (10, 10, 10)), {False: 7119.0, True: 3638.0}),
    ],
    "reddit": [(Case("reddit", 2048, (10, 10, 10)), {})],
    "arxiv": [(Case("arxiv", 1024, (10, 10)), {})],
    "papers100m": [(Case("papers100m", 2048, (10, 10, 10)), {})],
}
# Weights in [1, 5), and with a heavy tail.
WEIGHTS = {
    "even": lambda u: 1 + 4 * u,
    "pareto": lambda u: (1 - u).pow(-1 / 1.2),
}


def weighted(made: Made, name: str) -> tuple[Made, float]:
    """The graph with weights of a kind, and the seconds that its tables took."""
    random = torch.Generator(device=made.indices.device).manual_seed(11)
    parts = [
        WEIGHTS[name](
            torch.rand(min(1 << 28, len(made.indices) - start), generator=random, device="cuda")
        )
        for start in range(0, len(made.indices), 1 << 28)
    ]
    values = torch.cat([part.cpu() for part in parts])
    del parts
    torch.cuda.empty_cache()
    graph = made.graph.with_data(edge_data={"w": values})
    begin = time.perf_counter()
    drawn = pgs.Graph._wrap(pgs.PGSampler([1], prob="w").sampled_graph(graph)._source)
    drawn._handle()
    return Made(made.name, made.indptr, made.indices, drawn), time.perf_counter() - begin


def parity(made: Made, fanouts: tuple[int, ...], replace: bool) -> None:
    """CheckError unless a small batch is the CPU engine's byte for byte."""
    sampler = pgs.PGSampler(fanouts, seed=1, replace=replace)
    seeds = made.seeds(_SEEDS, 1, torch.int64, seed=99)[0]
    host = made.graph.to("cpu")
    got = sampler.sample(made.graph, seeds, epoch=3, batch=5)
    want = sampler.sample(host, seeds.cpu(), epoch=3, batch=5)
    where = unequal(got, want)
    if where is not None:
        raise CheckError(f"{made.name} {list(fanouts)} by weight: {where} is not the CPU's")


def run(record: Record, budget: Budget, trial: bool) -> None:
    """All rows; the graphs' tables count."""
    cases = {"tiny": [(Case("tiny", 64, (10, 10)), {})]} if trial else CASES
    for shape, some in cases.items():
        if budget.over():
            for case, _ in some:
                record.skip(case)
            continue
        made = make(shape)
        graphs: dict[str, Made] = {"uniform": made}
        for name in WEIGHTS:
            graphs[name], seconds = weighted(made, name)
            row = {"shape": shape, "weights": name, "tables_seconds": round(seconds, 2)}
            print(row, flush=True)
            record.add(row)
        for case, peers in some:
            for replace in (False, True):
                for name in WEIGHTS:
                    parity(graphs[name], case.fanouts, replace)
                for row in measure(case, graphs, replace, peers.get(replace, 0.0)):
                    print(row, flush=True)
                    record.add(row)
        del made, graphs
        gc.collect()
        torch.cuda.empty_cache()


def measure(
    case: Case, graphs: dict[str, Made], replace: bool, peer: float
) -> list[dict[str, Any]]:
    """A row for each kind of weights; their batches take turns."""
    batches = graphs["uniform"].seeds(case.batch, BATCHES + _WARM, torch.int32)
    ways: dict[str, Direct] = {}
    edges: dict[str, int] = {}
    for name, made in graphs.items():
        way = ways[name] = Direct(made, case.fanouts, replace=replace)
        found = way.learn(batches)
        edges[name] = round(sum(count for count, _ in found) / len(found))
    times: dict[tuple[str, str], list[float]] = {}
    for i in range(0, len(batches), _WARM):
        for name, way in ways.items():
            for kind, timed in (("engine", engine), ("public", public)):
                got = timed(way, batches[i : i + _WARM])
                if i:
                    times.setdefault((name, kind), []).extend(got)
    rows = []
    uniform = spread(times["uniform", "engine"])["median"]
    for name in graphs:
        found_us = spread(times[name, "engine"])
        row = {
            "shape": case.shape,
            "batch": case.batch,
            "fanouts": list(case.fanouts),
            "replace": replace,
            "weights": name,
            "edges": edges[name],
            "engine_us": found_us,
            "public_us": spread(times[name, "public"]),
            "of_uniform": round(found_us["median"] / uniform, 2),
        }
        if peer and name != "uniform":
            row |= {"dgl_us": peer, "ratio": round(peer / found_us["median"], 1)}
        rows.append(row)
    return rows
