"""What a batch of PyG's ``NeighborLoader`` with our sampler is made of, on a graph of ogbn-mag's
counts::

    python -m benchmarks.pyg_share --quick
    python -m benchmarks.pyg_share --out results

1024 papers a batch, (10, 10) for each of eight types of edges, 128 floats and a label for each
paper. The time until a batch is there is divided: into the engine's sampling, its conversion to
PyG's ``HeteroSamplerOutput``, the copy of features (PyG's ``index_select``), and the rest, in which
``HeteroData`` is built. All but the copy of features is the loader's own share. With ``prefetch``
sampling and conversion run beside the rest, and what is left of them is waited for.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

with warnings.catch_warnings():
    # PyG's import uses what torch is about to drop.
    warnings.simplefilter("ignore")
    from torch_geometric.data import HeteroData
    from torch_geometric.loader import utils

from pygsampler.bench.check import CheckError
from pygsampler.bench.compare import Spread, await_idle
from pygsampler.pyg import NeighborLoader, hetero

from . import environment, report, typed

WIDTH, CLASSES = 128, 349
PREFETCH = 2


def data_of(graph: typed.Typed) -> HeteroData:
    """The graph with features and labels of papers."""
    data = HeteroData()
    for kind, count in graph.nodes.items():
        data[kind].num_nodes = count
    papers = graph.nodes["paper"]
    data["paper"].x = torch.randn(papers, WIDTH, generator=torch.Generator().manual_seed(1))
    data["paper"].y = torch.arange(papers) % CLASSES
    for kind, of in graph.relations.items():
        rows = np.repeat(np.arange(len(of.indptr) - 1), np.diff(of.indptr))
        data[kind].edge_index = torch.from_numpy(np.stack([of.indices, rows]))
    return data


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
            ("sampling", hetero.HeteroSampler, "_sample"),
            ("conversion", hetero, "typed_output"),
            ("features", utils, "index_select"),
        ):
            call = getattr(owner, name)
            kept.callback(setattr, owner, name, call)
            setattr(owner, name, clock.timed(part, call))
        yield


def divided(clock: Clock, whole: float, prefetch: int) -> dict[str, float]:
    """The parts of the whole, which they add up to."""
    spent = clock.seconds
    features = spent["features"]
    # Features are looked up where batches are put together.
    waiting = spent["waiting"] - spent["filtering"]
    parts = {"waiting": waiting, "features": features, "building": whole - features - waiting}
    if not prefetch:
        conversion = spent["conversion"]
        del parts["waiting"]
        parts = {"sampling": waiting - conversion, "conversion": conversion, **parts}
    return {**parts, "whole": whole, "ours": whole - features}


def run(data: HeteroData, prefetch: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row a part: milliseconds a batch, and its part of the whole."""
    papers = data["paper"].num_nodes
    size = min(typed.SIZE, papers // 4)
    seeds = torch.randperm(papers, generator=torch.Generator().manual_seed(1))
    count = (options.repeat + 1) * options.batches * size
    seeds = seeds.repeat(count // papers + 1)[:count]
    times: dict[str, list[float]] = {}
    nodes, edges = [], []
    clock = Clock()
    patience = options.wait
    with watched(clock), closing(_Batches(data, seeds, size, prefetch)) as batches:
        for number in range(options.repeat + 1):
            patience -= await_idle(patience)
            clock.seconds.clear()
            whole = 0.0
            for _ in range(options.batches):
                start = time.perf_counter()
                batch = next(batches)
                whole += time.perf_counter() - start
                nodes.append(batch["paper"].num_nodes)
                edges.append(sum(of.shape[1] for of in batch.edge_index_dict.values()))
                wanted = data["paper"].x[batch["paper"].n_id[-3:]]
                if not batch["paper"].x[-3:].equal(wanted):
                    raise CheckError("features of other papers")
                del batch
            # The first round warms up.
            if number:
                for part, spent in divided(clock, whole, prefetch).items():
                    times.setdefault(part, []).append(spent / options.batches)
    every = np.array(times["whole"])
    about = {"papers": float(np.mean(nodes)), "edges": float(np.mean(edges)), "prefetch": prefetch}
    return [
        {
            "part": part,
            "milliseconds": vars(Spread.of(1e3 * np.array(of))),
            "share": vars(Spread.of(np.array(of) / every)),
            **about,
        }
        for part, of in times.items()
    ]


class _Batches:
    """A pass that ends when it is closed."""

    def __init__(self, data: HeteroData, seeds: torch.Tensor, size: int, prefetch: int) -> None:
        nodes, fanouts = ("paper", seeds), list(typed.FANOUTS)
        loader = NeighborLoader(data, fanouts, nodes, batch_size=size, seed=1, prefetch=prefetch)
        self._batches = iter(loader)

    def __next__(self) -> Any:
        return next(self._batches)

    def close(self) -> None:
        del self._batches


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pyg_share", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of a minute")
    parser.add_argument("--repeat", type=int, default=20, help="rounds (default: 20)")
    parser.add_argument("--batches", type=int, default=8, help="batches in a round (default: 8)")
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
    record = environment.describe(given, "benchmarks.pyg_share", note=options.note)
    print(environment.summary(record), end="\n\n")
    data, found = data_of(typed.load(options.scale)), []
    for prefetch in (0, PREFETCH):
        try:
            rows = run(data, prefetch, options)
        except CheckError as error:
            print(f"refused: {error}", file=sys.stderr)
            return 1
        about = rows[0]
        print(
            f"prefetch={prefetch}: {about['papers']:,.0f} papers and {about['edges']:,.0f} edges "
            "a batch"
        )
        for row in rows:
            milliseconds, share = row["milliseconds"]["median"], row["share"]["median"]
            print(f"{row['part']:12} {milliseconds:8.2f} ms {share:7.1%}", flush=True)
        found += rows
    if options.out:
        record["rows"] = found
        report.write_json(options.out / "pyg_share.json", record)
        print(f"\nwritten: {options.out / 'pyg_share.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
