"""Algorithms as programs: one batch at a time, beside gSampler's and torch's own operators.

The settings are those of gsampler.csv, which has what gSampler's code and eager torch took on an
H200, on graphs of these counts, with where it comes from. torch's operators run here as well, in
the same process, on the same graph (``benchmarks/eager_torch.py``). Edges of a batch of ours and of
torch's must agree within their noise, and one batch is compared with the CPU engine's, before a
clock starts.

``us`` is a call with seeds on the device that returns a batch in torch's memory, its host wait
included; ``engine_us`` the engine's part of it; ``many_us`` a batch of 64 that are given together.
"""

from __future__ import annotations

import csv
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pygsampler as pgs
from pygsampler import samplers
from pygsampler._cli.bench.check import CheckError
from pygsampler._engine.pending import PackedJob
from pygsampler._sampling.request import SampleRequest

from .. import eager_torch, programs
from .graphs import Made, make
from .record import Budget, Record, spread

SHAPES = ("products", "livejournal")
_CALLS, _EAGER_CALLS, _MANY = 200, 30, 64

# Settings of benchmarks/programs.py, by what gsampler.csv calls them.
OTHERS = {
    "graphsage 25,10": "graphsage 25x10",
    "ladies 4000,4000,4000": "ladies 4000x4000x4000",
    "ladies 512,512": "ladies 512x512",
    "fastgcn 512,512": "fastgcn 512x512",
    "fastgcn 2000,2000": "fastgcn 2000x2000",
    "asgcn 512,512": "asgcn 512x512",
    "pass 10,10": "pass 10x10",
    "shadow 10,10": "shadow 10x10",
    "saint walks 2000x4": "graphsaint-rw 2000x4",
    "with replacement 10,25": "kgcn 25x10 repl",
}


def reference() -> dict[tuple[str, str], dict[str, float]]:
    """By graph and algorithm: microseconds of a batch, of gSampler's super-batches apart."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    with Path(__file__).with_name("gsampler.csv").open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            # Rows that its compiler froze are no samples.
            if "FROZEN" in row["note"]:
                continue
            own = found.setdefault((row["graph"], row["algorithm"]), {})
            system = row["system"] if row["mini_batches"] == "1" else "gsampler, many"
            us = float(row["latency_us_per_mini_batch"])
            own[system] = min(us, own.get(system, us))
    return found


# PASS: 64 seeds as in gsampler.csv, features of ogbn-products' width, the paper's hidden width; all
# of them small numbers, so that dense products are exact, and batches those of the CPU.
_WIDTH, _HIDDEN = 100, 64


def _whole(rows: int, columns: int, device: Any) -> torch.Tensor:
    """Numbers of -1, 0 and 1."""
    random = torch.Generator(device=device).manual_seed(7)
    return torch.randint(-1, 2, (rows, columns), generator=random, device=device).float()


def _trained(device: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """W1, W2 and W3."""
    both = _whole(2 * _WIDTH, _HIDDEN, "cpu").to(device) / 16
    return both[:_WIDTH], both[_WIDTH:], torch.tensor([0.01, 0.01, 1.0], device=device)


def _pass(**options: Any) -> Any:
    w1, w2, w3 = _trained("cpu")
    return samplers.learned.pass_sampler(
        fanouts=[10, 10], W1=w1, W2=w2, W3=w3, weight="w", seed=1, **options
    )


def _pass_of_torch(tables: programs.Tables, seeds: torch.Tensor) -> Any:
    assert tables.features is not None
    trained = _trained(tables.features.device)
    return eager_torch.passed(tables.graph, seeds, [10, 10], tables.features, trained)


PASS = programs.Setting("pass 10,10", 64, _pass, _pass_of_torch)


def prepared(made: Made) -> tuple[pgs.Graph, programs.Tables]:
    """``with_data``, and what torch's operators need."""
    here, weights, scores = with_data(made)
    return here, programs.tables(made.indptr, made.indices, weights, scores)


def with_data(made: Made) -> tuple[pgs.Graph, torch.Tensor, torch.Tensor]:
    """The graph on the CPU with weights that sum to 1 over each column, and scores of vertices;
    and both where it was made."""
    device = made.indptr.device
    random = torch.Generator(device=device).manual_seed(5)
    degree = made.indptr.diff()
    each = degree.clamp(min=1).float().repeat_interleave(degree)
    weights = (1 + 4 * torch.rand(len(made.indices), generator=random, device=device)) / each
    scores = torch.randn((made.num_nodes, 2), generator=random, device=device)
    here = made.on_cpu().with_data(
        edge_data={"w": weights.cpu()},
        node_data={"h_source": scores[:, 0].cpu(), "h_target": scores[:, 1].cpu()},
    )
    return here, weights, scores


def checked(sampler: Any, there: pgs.Graph, here: pgs.Graph, seeds: torch.Tensor) -> None:
    """CheckError unless a batch is that of the CPU engine."""
    got = sampler.sample(there, seeds, epoch=0, batch=0).cpu().numpy()
    want = sampler.sample(here, seeds.cpu(), epoch=0, batch=0).numpy()
    blocks = (
        (zip(got.blocks, want.blocks, strict=True)) if hasattr(got, "blocks") else [(got, want)]
    )
    for mine, theirs in blocks:
        for name in ("indptr", "indices", "edge_ids"):
            if not np.array_equal(getattr(mine, name), getattr(theirs, name)):
                raise CheckError(f"{sampler!r}: {name} of the GPU differ from the CPU's")


def timed(calls: int, call: Callable[[int], Any], skip: int = 5) -> list[float]:
    """Microseconds of each call, with what it leaves on the device's queue."""
    times = []
    for i in range(calls + skip):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        made = call(i)
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - begin))
        del made
    return times[skip:]


def ours(sampler: Any, graph: pgs.Graph, sets: list[torch.Tensor]) -> dict[str, Any]:
    """Measures a batch: a user's call, the engine's part, and one of many batches."""
    user = timed(
        _CALLS,
        lambda i: sampler.launch(
            graph, sets[i % len(sets)], epoch=0, batch=i, form="torch"
        ).result(),
    )
    read = sampler.sampled_graph(graph) if hasattr(sampler, "sampled_graph") else graph
    stream = torch.cuda.current_stream().cuda_stream

    def engine(i: int) -> Any:
        seeds = sets[i % len(sets)]
        request = SampleRequest(sampler, read, seeds, epoch=0, batch=i)
        request.on_device(stream)
        return PackedJob(request.words).begin()._result()

    many = [sets[i % len(sets)] for i in range(_MANY)]
    together = timed(5, lambda i: sampler.sample_many(graph, many, epoch=1, batch=_MANY * i), 2)
    return {
        "us": spread(user, 1),
        "engine_us": spread(timed(_CALLS, engine), 1),
        "many_us": round(min(together) / _MANY, 1),
    }


def measured(
    at: programs.Setting, made: Made, here: pgs.Graph, there: pgs.Graph, tables: programs.Tables
) -> dict[str, Any]:
    """A setting's row, once its batches were checked."""
    sets = [s[: at.seeds] for s in made.seeds(max(at.seeds, 1), 24, torch.int64)]
    sampler = at.ours()
    begin = time.perf_counter()
    sampler.sample(there, sets[0])
    first = time.perf_counter() - begin
    checked(sampler, there, here, sets[1])
    programs.check(at, there, tables, sets[: programs.CHECKED])
    found = ours(sampler, there, sets)
    eager = timed(_EAGER_CALLS, lambda i: at.torch(tables, sets[i % len(sets)]))
    found["torch_us"] = spread(eager, 1)
    found["ratio"] = round(found["torch_us"]["median"] / found["us"]["median"], 2)
    return {"first_s": round(first, 2), **found}


def run(kept: Record, budget: Budget, trial: bool) -> None:
    """A row for each graph and setting."""
    others = reference()
    for shape in ("tiny",) if trial else SHAPES:
        if budget.over():
            kept.skip(shape)
            continue
        made = make(shape, torch.int32)
        here, tables = prepared(made)
        there = here.to("cuda")
        for at in (*programs.SETTINGS, PASS):
            if budget.over():
                kept.skip(f"{shape} {at.name}")
                continue
            if at is PASS:
                features = _whole(made.num_nodes, _WIDTH, made.indptr.device)
                tables = tables._replace(features=features)
                here = here.with_data(node_data={"x": features.cpu()})
                there = here.to("cuda")
            row = measured(at, made, here, there, tables)
            known = others.get((shape, OTHERS.get(at.name, "")), {})
            engine, eager = row["engine_us"]["median"], row["torch_us"]["median"]
            line = (
                f"{shape} {at.name}: {row['us']['median']} us (engine {engine}, "
                f"many {row['many_us']}), torch {eager} = {row['ratio']}x; "
                f"first {row['first_s']:.2f} s"
            )
            single = [us for system, us in known.items() if "many" not in system]
            if single:
                line += f"; kept {known}: {min(single) / row['us']['median']:.2f}x"
            print(line, flush=True)
            kept.add(
                {"shape": shape, "setting": at.name, "seeds": at.seeds, "kept_us": known, **row}
            )
        del made, here, there, tables
        gc.collect()
        torch.cuda.empty_cache()
    kept.write()
