"""Divides the time of a batch of PyG's ``NeighborLoader`` with our sampler into its parts::

    python -m benchmarks.pyg_breakdown --quick
    python -m benchmarks.pyg_breakdown --out results

On a graph of ogbn-mag's counts 1024 papers a batch, (10, 10) for each of eight types of edges; on
one of ogbn-products' 1024 nodes, and on one of ogbn-arxiv's 64. There are 128 floats for each paper
or node, and a label.

The time of a batch is divided into the engine's sampling, its conversion to PyG's
``SamplerOutput``, the reading of features (PyG calls ``index_select``), and the rest, in which
``Data`` is built. The engine's one call also joins the hops, which counts as sampling; conversion
is the lookup of the batch's seeds and the slicing of one memory into tensors. Sampling and
conversion are the sampler's share of the whole. By default, ``prefetch=None``, a batch is sampled
while PyG builds the one before, and only the waiting and the start of a batch count. With
``prefetch=2`` conversion is in the background, too, and only the waiting for both counts.

Each round has some batches of each of these, one after another, of the same seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

with warnings.catch_warnings():
    # PyG's import uses what torch is about to drop.
    warnings.simplefilter("ignore")
    from torch_geometric.data import Data, HeteroData
    from torch_geometric.loader import utils

from pygsampler._cli.bench.check import CheckError
from pygsampler._cli.bench.compare import Quartiles, await_idle
from pygsampler.pyg import NeighborLoader
from pygsampler.pyg import neighbor_sampler as plain

from . import environment, graphs, hetero, report

WIDTH, CLASSES = 128, 349
# The number of batches sampled ahead; None: the next one, while PyG builds a batch.
PREFETCH = 0, None, 2
# Seconds between the ways.
REST = 0.1


class Case(NamedTuple):
    """A graph, and how many seeds a batch has."""

    graph: str
    size: int
    fanouts: tuple[int, ...]


CASES = Case("mag", 1024, (10, 10)), Case("products", 1024, (10, 10)), Case("arxiv", 64, (10, 10))


def load(case: Case, scale: int) -> Any:
    """Data of that case, and its seeds: of types those of papers."""
    if case.graph == "mag":
        return _typed(hetero.load(scale))
    shape = graphs.SHAPES[case.graph]
    small = graphs.Shape(shape.nodes // scale, shape.edges // scale, shape.degree, shape.popularity)
    indptr, indices = graphs.generate(small, 1)
    rows = np.repeat(np.arange(small.nodes), np.diff(indptr))
    edges = torch.from_numpy(np.stack([indices.astype(np.int64), rows]))
    return Data(edge_index=edges, **_rows(small.nodes))


def _rows(count: int) -> dict[str, torch.Tensor]:
    x = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(1))
    return {"x": x, "y": torch.arange(count) % CLASSES}


def _typed(graph: hetero.Typed) -> HeteroData:
    """The graph with features and labels of papers."""
    data = HeteroData()
    for kind, count in graph.nodes.items():
        data[kind].num_nodes = count
    for name, rows in _rows(graph.nodes["paper"]).items():
        data["paper"][name] = rows
    for kind, of in graph.relations.items():
        rows = np.repeat(np.arange(len(of.indptr) - 1), np.diff(of.indptr))
        data[kind].edge_index = torch.from_numpy(np.stack([of.indices, rows]))
    return data


def seeded(data: Any) -> Any:
    """Returns the part of the data that has the seeds."""
    return data["paper"] if isinstance(data, HeteroData) else data


class Clock:
    """Seconds by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The same, whose time is counted."""

        def made(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                spent = time.perf_counter() - start
                self.seconds[part] = self.seconds.get(part, 0.0) + spent

        return made


@contextmanager
def watched(clock: Clock) -> Iterator[None]:
    """While it lasts, what the loader calls is counted."""
    with ExitStack() as kept:
        for part, owner, name in (
            ("waiting", NeighborLoader, "collate_fn"),
            ("filtering", NeighborLoader, "filter_fn"),
            ("beginning", NeighborLoader, "_begin"),
            ("engine", plain.Sampler, "_result"),
            ("features", utils, "index_select"),
        ):
            call = getattr(owner, name)
            kept.callback(setattr, owner, name, call)
            setattr(owner, name, clock.timed(part, call))
        yield


def divided(clock: Clock, whole: float, prefetch: int | None) -> dict[str, float]:
    """The parts of the whole, which they add up to, and how much of it is the sampler's."""
    spent = clock.seconds
    features = spent["features"]
    # Features are looked up where batches are put together.
    waiting = spent["waiting"] - spent["filtering"]
    beginning = spent.get("beginning", 0.0)
    sampler = waiting + beginning
    if prefetch:
        parts = {"waiting": waiting}
    else:
        engine = spent["engine"]
        parts = {"sampling": engine + beginning, "conversion": waiting - engine}
    parts |= {"features": features, "building": whole - features - sampler}
    return {**parts, "whole": whole, "sampler": sampler}


def run(case: Case, data: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row a part and way: milliseconds a batch, and its part of the whole."""
    count = seeded(data).num_nodes
    size = min(case.size, count // 4)
    seeds = torch.randperm(count, generator=torch.Generator().manual_seed(1))
    needed = (options.repeat + 1) * (options.batches + 1) * size
    seeds = seeds.repeat(needed // count + 1)[:needed]
    times: dict[Any, dict[str, list[float]]] = {prefetch: {} for prefetch in PREFETCH}
    about: dict[Any, list[tuple[int, int]]] = {prefetch: [] for prefetch in PREFETCH}
    clock = Clock()
    patience = options.wait
    with watched(clock), ExitStack() as open_:
        # One for all: it keeps a copy of the edges.
        shared: Any = plain.PGSampler(data, list(case.fanouts), seed=1)
        shared.set_epoch(0)
        passes = {
            prefetch: open_.enter_context(closing(_Batches(data, shared, seeds, size, prefetch)))
            for prefetch in PREFETCH
        }
        for number in range(options.repeat + 1):
            patience -= await_idle(patience)
            for prefetch, batches in passes.items():
                whole = 0.0
                for place in range(options.batches + 1):
                    start = time.perf_counter()
                    batch = next(batches)
                    whole += time.perf_counter() - start
                    about[prefetch].append(looked_at(batch, data))
                    del batch
                    if not place:
                        # It was begun in the round before, with all the time between.
                        whole = 0.0
                        clock.seconds.clear()
                # Batches that are still sampled ahead would slow the others down.
                time.sleep(REST)
                # The first round warms up.
                if number:
                    for part, spent in divided(clock, whole, prefetch).items():
                        times[prefetch].setdefault(part, []).append(spent / options.batches)
    if about[0] != about[None] or about[0] != about[2]:
        raise CheckError(f"{case.graph}: other batches with prefetch than without")
    nodes, edges = np.mean(about[0], axis=0).tolist()
    return [
        {
            "graph": case.graph,
            "part": part,
            "prefetch": prefetch,
            "milliseconds": vars(Quartiles.from_values(1e3 * np.array(of))),
            "share": vars(Quartiles.from_values(np.array(of) / np.array(times[prefetch]["whole"]))),
            "nodes": nodes,
            "edges": edges,
        }
        for prefetch in PREFETCH
        for part, of in times[prefetch].items()
    ]


def looked_at(batch: Any, data: Any) -> tuple[int, int]:
    """Returns the numbers of nodes with features and of edges; CheckError for wrong features."""
    of, kept = seeded(batch), seeded(data)
    if not of.x[-3:].equal(kept.x[of.n_id[-3:]]):
        raise CheckError("features of other nodes")
    return of.num_nodes, sum(store.edge_index.shape[1] for store in batch.edge_stores)


class _Batches:
    """A pass that ends when it is closed."""

    def __init__(
        self, data: Any, sampler: Any, seeds: torch.Tensor, size: int, prefetch: int | None
    ) -> None:
        nodes = ("paper", seeds) if isinstance(data, HeteroData) else seeds
        about = {"batch_size": size, "neighbor_sampler": sampler, "prefetch": prefetch}
        self._batches = iter(NeighborLoader(data, [], nodes, **about))

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        del self._batches


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pyg_breakdown", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of a minute")
    parser.add_argument("--repeat", type=int, default=20, help="rounds (default: 20)")
    parser.add_argument("--batches", type=int, default=8, help="batches in a round (default: 8)")
    names = [case.graph for case in CASES]
    parser.add_argument("--graphs", nargs="*", choices=names, default=names, help="default: all")
    parser.add_argument("--scale", type=int, default=1, help="a graph that is so much smaller")
    parser.add_argument("--threads", type=int, help="of torch (default: torch's own)")
    parser.add_argument("--wait", type=float, default=60, help="as in python -m benchmarks")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for pyg_share.json")
    options = parser.parse_args(given)
    if options.quick:
        options.repeat, options.batches, options.wait, options.scale = 3, 2, 0, 200
    if options.threads:
        torch.set_num_threads(options.threads)
    record = environment.describe(given, "benchmarks.pyg_breakdown", note=options.note)
    print(environment.summary(record), end="\n\n")
    found = []
    for case in CASES:
        if case.graph not in options.graphs:
            continue
        try:
            rows = run(case, load(case, options.scale), options)
        except CheckError as error:
            print(f"refused: {error}", file=sys.stderr)
            return 1
        nodes, edges = rows[0]["nodes"], rows[0]["edges"]
        print(f"{case.graph}, {case.size} seeds: {nodes:,.0f} nodes, {edges:,.0f} edges a batch")
        for row in rows:
            milliseconds, share = row["milliseconds"]["median"], row["share"]["median"]
            print(
                f"prefetch={row['prefetch']!s:5} {row['part']:12} {milliseconds:8.2f} ms "
                f"{share:7.1%}",
                flush=True,
            )
        found += rows
    if options.out:
        record["rows"] = found
        report.write_json(options.out / "pyg_share.json", record)
        print(f"\nwritten: {options.out / 'pyg_share.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
