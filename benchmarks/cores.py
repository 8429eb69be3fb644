"""Batches on many cores: one at a time, a loader's, and those of PyG's loader::

    python -m benchmarks.cores --quick
    python -m benchmarks.cores --graph products --fanouts 15 10 5
    python -m benchmarks.cores --pyg --features 100

The ids of a batch by each number of threads are compared before the clock starts. Then the numbers
take turns. A row is the least time of a batch over the rounds: of ``sampler.sample``, of
``pygsampler.torch.DataLoader`` with each ``--prefetch``, and with ``--pyg`` of PyG's
``NeighborLoader`` by ``pygsampler.pyg`` with all threads. With ``--features`` loaders read so many
floats of each node.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader

from . import environment, graphs, report
from .gathers import thread_counts

CLASSES = 47


def check(graph: pgs.Graph, options: argparse.Namespace, counts: Sequence[int]) -> None:
    """Raises CheckError unless all numbers of threads sample the same batch."""
    sampler = pgs.PGSampler(options.fanouts, seed=1)
    seeds = torch.arange(options.batch_size)
    found = []
    for threads in counts:
        pgs.set_num_threads(threads)
        batch = sampler.sample(graph, seeds, batch=0)
        arrays = [batch.input_nodes, *(block.indices for block in batch.blocks)]
        found.append([array.torch() for array in arrays])
    for threads, each in zip(counts, found, strict=True):
        if not all(map(torch.equal, each, found[0])):
            raise CheckError(f"a batch of {threads} threads differs from that of {counts[0]}")


def seconds_per_batch(loader: Iterable[Any], batches: int) -> float:
    """Seconds a batch of an epoch, without the first four, which all wait for."""
    skipped, start, count = 4, 0.0, 0
    for count, _ in enumerate(loader, 1):
        if count == skipped:
            start = time.perf_counter()
        if count == skipped + batches:
            break
    return (time.perf_counter() - start) / (count - skipped)


def measure(
    graph: pgs.Graph, options: argparse.Namespace, counts: Sequence[int]
) -> list[dict[str, Any]]:
    """Rows of sampling and of loading, for each number of threads."""
    sampler = pgs.PGSampler(options.fanouts, seed=1)
    random = torch.Generator().manual_seed(2)
    seeds = torch.randint(
        0, graph.num_nodes, (options.rounds, options.batch_size), generator=random
    )
    train = torch.randperm(graph.num_nodes, generator=random)
    read: dict[str, Any] = {}
    if options.features:
        read["features"] = {"x": torch.randn(graph.num_nodes, options.features)}
    ways: dict[tuple[str, int], Callable[[int], float]] = {}

    def sample(step: int) -> float:
        start = time.perf_counter()
        sampler.sample(graph, seeds[step], batch=step)
        return time.perf_counter() - start

    for threads in counts:
        ways["sample", threads] = sample
    for prefetch in options.prefetch:
        loader = DataLoader(
            graph, train, options.fanouts, batch_size=options.batch_size, seed=1, prefetch=prefetch,
            **read,
        )  # fmt: skip
        for threads in counts:
            ways[f"loader, prefetch={prefetch}", threads] = lambda _, of=loader: seconds_per_batch(
                of, options.batches
            )
    least = dict.fromkeys(ways, float("inf"))
    for step in range(options.rounds):
        for (name, threads), way in ways.items():
            pgs.set_num_threads(threads)
            # A loader's round is many batches.
            if name == "sample" or step < options.loader_rounds:
                least[name, threads] = min(least[name, threads], way(step))
    rows = []
    for (name, threads), seconds in least.items():
        row = {"way": name, "threads": threads, "ms": 1e3 * seconds}
        rows.append(row | {"of one": least[name, counts[0]] / seconds})
    return rows


def measure_pyg(
    graph: pgs.Graph, options: argparse.Namespace, threads: int
) -> list[dict[str, Any]]:
    """Rows of PyG's ``NeighborLoader`` by ours, as it is and with batches ahead."""
    with warnings.catch_warnings():
        # PyG's import uses what torch is about to drop.
        warnings.simplefilter("ignore")
        from torch_geometric.data import Data
    from pygsampler.pyg import NeighborLoader

    pgs.set_num_threads(threads)
    ends = graph.indptr.torch().diff()
    edges = graph.indices.torch().long(), torch.arange(graph.num_nodes).repeat_interleave(ends)
    data = Data(
        x=torch.randn(graph.num_nodes, options.features or 100),
        y=torch.randint(0, CLASSES, (graph.num_nodes,)),
        edge_index=torch.stack(edges),
    )
    common: dict[str, Any] = {"num_neighbors": options.fanouts, "batch_size": options.batch_size}
    rows = []
    for prefetch in (None, *options.prefetch):
        loader = NeighborLoader(data, shuffle=True, prefetch=prefetch, **common)
        times = [seconds_per_batch(loader, options.batches) for _ in range(options.loader_rounds)]
        way = f"NeighborLoader, prefetch={prefetch}"
        rows.append({"way": way, "threads": threads, "ms": 1e3 * min(times)})
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.graph, options.rounds, options.loader_rounds, options.batches = "arxiv", 3, 1, 16
    record = environment.describe(given, "benchmarks.cores", note=options.note)
    print(environment.summary(record), end="\n\n")
    csc = graphs.load(options.graph)
    graph = pgs.Graph.from_csc(torch.from_numpy(csc.indptr), torch.from_numpy(csc.indices))
    before = pgs.get_num_threads()
    counts = options.threads or thread_counts(before)
    try:
        check(graph, options, counts)
        record["rows"] = measure(graph, options, counts)
        if options.pyg:
            record["rows"] += measure_pyg(graph, options, counts[-1])
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    finally:
        pgs.set_num_threads(before)
    for row in record["rows"]:
        times = f"{row['of one']:6.1f} times one" if "of one" in row else ""
        print(f"  {row['way']:28} {row['threads']:3} threads {row['ms']:9.3f} ms {times}")
    if options.out:
        report.write_json(options.out / "cores.json", record)
        print(f"\nwritten: {options.out / 'cores.json'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cores", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--fanouts", type=int, nargs="+", default=[15, 10, 5])
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--features", type=int, default=0, help="floats of a node that are read")
    parser.add_argument("--threads", type=int, nargs="+", help="1, 2, 4 ... all (default)")
    parser.add_argument("--prefetch", type=int, nargs="*", default=[4, 16], help="of the loader")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--loader-rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=100, help="of a loader's round")
    parser.add_argument("--pyg", action="store_true", help="PyG's loader, too")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for cores.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
