"""Measures partitioned graphs in 1 to 5 processes of one machine over Gloo::

    python -m benchmarks.partitioned --quick
    python -m benchmarks.partitioned --out results

1024 seeds a batch, fanouts (15, 10, 5), in every process at once. ``alone`` is a batch at a time,
``ahead`` four on their way, which ask in the same rounds. Beside them stand the whole graph in one
process, with as many threads, and a round by itself: one vertex, one neighbour. Batches are
compared with those of the whole graph before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler._cli.bench.compare import Quartiles

from . import environment, graphs, report

FANOUTS, SIZE, AHEAD = (15, 10, 5), 1024, 4
PROCESSES = (1, 2, 3, 5)


def whole_of(name: str) -> pgs.Graph:
    """A graph of the benchmarks."""
    csc = graphs.load(name)
    return pgs.Graph.from_csc(csc.indptr, csc.indices)


def same(a: pgs.MiniBatch, b: pgs.MiniBatch) -> bool:
    """True if two batches are equal to the last byte."""
    pairs = [(a.input_nodes, b.input_nodes)]
    for p, q in zip(a.blocks, b.blocks, strict=True):
        pairs += [(p.indptr, q.indptr), (p.indices, q.indices), (p.edge_ids, q.edge_ids)]
    return all(np.array_equal(x, y) for x, y in pairs)


def in_flight(
    graph: pgs.Graph, sampler: pgs.PGSampler, seeds: Sequence[Any], depth: int
) -> Callable[[int], float]:
    """Returns a function that samples a round and returns the seconds per batch."""

    def measure(first: int) -> float:
        jobs: deque[Any] = deque()
        start = time.perf_counter()
        for number, ids in enumerate(seeds, first):
            jobs.append(sampler.submit(graph, ids, epoch=0, batch=number))
            if len(jobs) == depth:
                jobs.popleft().result()
        for job in jobs:
            job.result()
        return (time.perf_counter() - start) / len(seeds)

    return measure


def measured(
    graph: pgs.Graph, seeds: list[Any], options: argparse.Namespace, meet: Callable[[], object]
) -> dict[str, list[float]]:
    """Seconds a batch of each way, by rounds."""
    sampler = pgs.PGSampler(FANOUTS, seed=1)
    ways = {
        "alone": in_flight(graph, sampler, seeds, 1),
        "ahead": in_flight(graph, sampler, seeds, AHEAD),
        "round": in_flight(graph, pgs.PGSampler([1], seed=1), [ids[:1] for ids in seeds], 1),
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(options.repeat + 1):
        for way, measure in ways.items():
            meet()
            seconds = measure(number * len(seeds))
            # The first round warms up.
            if number:
                found[way].append(seconds)
    return found


def seeds_of(nodes: int, rank: int, batches: int) -> list[Any]:
    """Returns the seeds of a process."""
    rng = np.random.default_rng(rank)
    return [rng.integers(0, nodes, SIZE) for _ in range(batches)]


def process(options: argparse.Namespace) -> int:
    """One of several processes; the first prints what it has measured."""
    import torch.distributed as dist

    from pygsampler import distributed

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    # The processes share the cores.
    pgs.set_num_threads(max(1, (os.cpu_count() or 1) // dist.get_world_size()))
    with distributed.open_graph(options.parts) as graph:
        seeds = seeds_of(graph.num_nodes, rank, options.batches)
        sampler = pgs.PGSampler(FANOUTS, seed=1)
        whole = whole_of(options.graph)
        wanted = sampler.sample(whole, seeds[0], epoch=0, batch=0)
        if not same(sampler.sample(graph, seeds[0], epoch=0, batch=0), wanted):
            print("another batch than that of the whole graph", file=sys.stderr)
            return 1
        del whole
        found = measured(graph, seeds, options, dist.barrier)
        if rank == 0:
            hops = [
                {"rows": block.num_dst_nodes, "edges": len(block.indices)}
                for block in reversed(wanted.blocks)
            ]
            print(json.dumps({"seconds": found, "hops": hops}), flush=True)
    dist.destroy_process_group()
    return 0


def started(count: int, options: argparse.Namespace) -> Any:
    """Returns the measurements of the first of ``count`` processes."""
    with tempfile.TemporaryDirectory() as folder:
        pgs.distributed.partition(whole_of(options.graph), f"{folder}/parts", count)
        about = ["--graph", options.graph, "--parts", f"{folder}/parts"]
        about += ["--repeat", str(options.repeat), "--batches", str(options.batches)]
        environ = {
            **os.environ,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(options.port + count),
            "WORLD_SIZE": str(count),
        }
        command = [sys.executable, "-m", "benchmarks.partitioned", *about]
        running = [
            subprocess.Popen(
                command, env={**environ, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True
            )
            for rank in range(count)
        ]
        printed = [one.communicate()[0] for one in running]
    if any(one.returncode for one in running):
        raise CheckError(f"{count} processes: one of them failed")
    return json.loads(printed[0].splitlines()[-1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.partitioned", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument(
        "--graph", default="yelp", choices=list(graphs.SHAPES), help="of the benchmarks"
    )
    parser.add_argument("--repeat", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--batches", type=int, default=12, help="batches in a round (default: 12)")
    parser.add_argument("--port", type=int, default=29700, help="the first that may be used")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for parts.json")
    parser.add_argument("--parts", help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.quick:
        options.graph, options.repeat, options.batches = "quick", 2, 4
    if options.parts:
        return process(options)
    record = environment.describe(given, "benchmarks.partitioned", note=options.note)
    print(environment.summary(record), end="\n\n")
    whole = whole_of(options.graph)
    seeds = seeds_of(whole.num_nodes, 0, options.batches)
    rows = [row(0, measured(whole, seeds, options, lambda: None))]
    base = rows[0]["alone"]["median"]
    for count in PROCESSES[:2] if options.quick else PROCESSES:
        try:
            found = started(count, options)
        except CheckError as error:
            print(f"refused: {error}", file=sys.stderr)
            return 1
        rows.append(row(count, found["seconds"]))
        record["hops"] = found["hops"]
    print(f"{options.graph}, {SIZE} x {FANOUTS}: milliseconds a batch, batches a second of all")
    for made in rows:
        name = f"{made['processes']} processes" if made["processes"] else "whole graph"
        alone, ahead = made["alone"]["median"], made["ahead"]["median"]
        total = max(made["processes"], 1) * 1e3 / ahead
        print(
            f"{name:12} alone {alone:7.2f} ({alone / base:.2f}x), ahead {ahead:7.2f}, "
            f"{total:6.1f}/s, round {made['round']['median']:.2f}"
        )
    if options.out:
        record["rows"], record["graph"], record["id_bytes"] = rows, options.graph, 4
        report.write_json(options.out / "parts.json", record)
        print(f"\nwritten: {options.out / 'parts.json'}")
    return 0


def row(count: int, seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Milliseconds of so many processes; 0 is the whole graph."""
    ways = {way: vars(Quartiles.from_values(1e3 * np.array(of))) for way, of in seconds.items()}
    return {"processes": count, **ways}


if __name__ == "__main__":
    sys.exit(main())
