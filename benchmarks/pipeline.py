"""Measures how much of loading is hidden behind training::

    python -m benchmarks.pipeline --quick
    python -m benchmarks.pipeline
    python -m benchmarks.pipeline --device cuda --graph products
    python -m benchmarks.pipeline --device cuda --graph products --features cached --cache 0.2
    python -m benchmarks.pipeline --device cuda --features device --share 1 0.5 0.25

Three runs of a GraphSAGE on a graph of the papers' shape, in milliseconds a step: batches alone
(a), training alone, on one batch of middling size that stays where it is (b), and both, as one does
(c). The overlap is (a + b - c) / min(a, b): 1 where the cheaper of the two costs nothing, 0 where
they take turns; c cannot be less than the larger of a and b. Beside it stand the loader's own
figures of c. The batches are compared with those of a loader with nothing ahead, row by row, before
the clock starts; then the runs take turns, and medians over the rounds are shown.

The places of features: ``cpu``, in memory, read ahead by the engine's threads, where batches are
sampled, too; with a GPU they are copied there by ``batch.to``. ``file`` is the same with a mapped
file. ``pinned``: page-locked, read by the GPU that samples. ``cached``: the same, with the part
``--cache`` of the rows on that GPU, the rows that the epoch reads most. ``device``: on that GPU.
The bytes over the link come with the time of a copy of as many bytes and its part of a step, a
bound of the time for reading. ``--share`` compares values of ``gpu_share`` in turns.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from tqdm import tqdm

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader

from . import environment, graphs, report

CLASSES = 47


class SAGE(torch.nn.Module):
    """GraphSAGE with means, in the engine's reductions."""

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        pairs = list(itertools.pairwise(widths))
        self.own = torch.nn.ModuleList(torch.nn.Linear(*pair) for pair in pairs)
        self.others = torch.nn.ModuleList(torch.nn.Linear(*pair, bias=False) for pair in pairs)

    def forward(self, batch: Any) -> torch.Tensor:
        h = batch.x
        for place, block in enumerate(batch.blocks):
            own = h[block.dst_offset : block.dst_offset + block.num_dst_nodes]
            h = self.own[place](own) + self.others[place](block.mean(h))
            h = F.relu(h) if place + 1 < len(batch.blocks) else h
        return h[batch.output_index]


class Pipeline:
    """A loader, and the training that it feeds."""

    def __init__(self, loader: DataLoader, device: str, hidden: int, width: int) -> None:
        self.loader = loader
        self.device = device
        torch.manual_seed(0)
        hops = len(loader.sampler.fanouts)
        self.model = SAGE([width, *[hidden] * (hops - 1), CLASSES]).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        sizes = [(batch.num_edges, step) for step, batch in enumerate(self._epoch())]
        self.steps = len(sizes)
        middle = sorted(sizes)[self.steps // 2][1]
        self.resident = next(b for step, b in enumerate(self._epoch()) if step == middle)

    def _epoch(self) -> Any:
        self.loader.set_epoch(0)
        for batch in self.loader:
            yield batch.to(self.device) if self.loader.device != self.device else batch

    def train(self, batch: Any) -> None:
        """A step."""
        loss = F.cross_entropy(self.model(batch), batch.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def data(self) -> None:
        """An epoch's batches, which nobody uses."""
        for _ in self._epoch():
            pass

    def training(self) -> None:
        """Trains the same number of steps on one batch."""
        for _ in range(self.steps):
            self.train(self.resident)

    def both(self) -> None:
        """An epoch of training."""
        for batch in self._epoch():
            self.train(batch)

    def clock(self, run: Callable[[], None]) -> float:
        """Milliseconds of a step of it."""
        self._settle()
        start = time.perf_counter()
        run()
        self._settle()
        return 1e3 * (time.perf_counter() - start) / self.steps

    def _settle(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()


def check(pipeline: Pipeline, plain: DataLoader, x: torch.Tensor, y: torch.Tensor) -> None:
    """The batches are those of a loader with nothing ahead, and their rows are those of x and y."""
    plain.set_epoch(0)
    pipeline.loader.set_epoch(0)
    for ours, theirs in zip(pipeline.loader, plain, strict=True):
        same = ours.input_nodes.cpu().equal(theirs.input_nodes) and all(
            a.indices.cpu().equal(b.indices) and a.indptr.cpu().equal(b.indptr)
            for a, b in zip(ours.blocks, theirs.blocks, strict=True)
        )
        if not same:
            raise CheckError(f"batch {theirs.batch} is another one")
        rows = ours.x.cpu().equal(x[theirs.input_nodes])
        if not rows or not ours.y.cpu().equal(y[theirs.output_nodes]):
            raise CheckError(f"batch {theirs.batch} has rows of other vertices")


def link_speed(size: int = 1 << 28, repeat: int = 9) -> float:
    """Bytes a second of a copy from page-locked memory to the GPU."""
    here = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(size, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        start = time.perf_counter()
        there.copy_(here, non_blocking=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return size / min(times)


def over_the_link(found: dict[str, Any], steps: int, speed: float) -> dict[str, float]:
    """Returns the part of a step that the link alone takes for the bytes that are read over it."""
    missed = found["bytes"].get("pinned", 0) / steps
    least = 1e3 * missed / speed
    return {
        "link, MB a step": missed / 1e6,
        "link, GB/s": speed / 1e9,
        "link, ms": least,
        "link / both": least / found["both, ms"],
    }


def measure(pipeline: Pipeline, rounds: int) -> dict[str, Any]:
    """Medians over the rounds, and the loader's figures of the last."""
    runs = {"a": pipeline.data, "b": pipeline.training, "c": pipeline.both}
    for run in runs.values():
        pipeline.clock(run)
    found: dict[str, list[float]] = {name: [] for name in (*runs, "overlap")}
    shares: list[float] = []
    stats: dict[str, Any] = {}
    for turn in range(rounds):
        names = list(runs)
        order = names[turn % 3 :] + names[: turn % 3]
        times = {}
        for name in order:
            times[name] = pipeline.clock(runs[name])
            if name == "c":
                stats = pipeline.loader.stats()
        shares.append(stats["waiting_share"])
        a, b, c = (times[name] for name in names)
        times["overlap"] = (a + b - c) / min(a, b)
        for name, value in times.items():
            found[name].append(value)
    medians = {name: statistics.median(values) for name, values in found.items()}
    kept = ("gathering_share", "queues", "next_seconds", "held_back", "pauses", "hit_rate", "bytes")
    return {
        "data, ms": medians["a"],
        "training, ms": medians["b"],
        "both, ms": medians["c"],
        "bound, ms": max(medians["a"], medians["b"]),
        "overlap": medians["overlap"],
        "waiting_share": statistics.median(shares),
        **{name: stats[name] for name in kept},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(given)
    if "cached" in (options.features or ()) and options.cache is None:
        parser.error("--features cached: expected --cache with it, as --cache 0.2")
    if options.cache is not None and options.device == "cpu":
        parser.error("--cache: expected --device cuda with it, since the cache is on a GPU")
    name, rounds = ("quick", 2) if options.quick else (options.graph, options.rounds)
    size, steps = (64, 8) if options.quick else (options.batch_size, options.steps)
    graph = graphs.load(name)
    made = pgs.Graph.from_csc(graph.indptr, graph.indices, num_nodes=graph.num_nodes)
    rng = np.random.default_rng(1)
    seeds = rng.choice(graph.num_nodes, min(size * steps, graph.num_nodes), replace=False)
    x = torch.from_numpy(rng.standard_normal((graph.num_nodes, options.width), np.float32))
    y = torch.from_numpy(rng.integers(0, CLASSES, graph.num_nodes))
    shape: dict[str, Any] = {"batch_size": size, "shuffle": True, "seed": 1}
    plain = DataLoader(made, seeds, options.fanouts, prefetch=0, **shape)
    record = environment.describe(given, "benchmarks.pipeline", note=options.note)
    print(environment.summary(record), end="\n\n")
    record["rows"] = []
    on_gpu = options.device != "cpu"
    there = made.to(options.device) if on_gpu else made
    speed = link_speed() if on_gpu else 0.0
    with tempfile.TemporaryDirectory() as folder:
        places = options.features or _places(on_gpu, options.cache)
        for place, share in itertools.product(places, options.share):
            features = _placed(x, place, options.device, Path(folder), options.cache)
            loader = DataLoader(
                there if place in ("device", "pinned", "cached") else made,
                seeds,
                options.fanouts,
                prefetch=_marks(options),
                gpu_share=share,
                features={"x": features},
                labels=y,
                **shape,
            )
            pipeline = Pipeline(loader, _device(options.device), options.hidden, options.width)
            try:
                check(pipeline, plain, x, y)
            except CheckError as error:
                print(f"refused: {place}: {error}", file=sys.stderr)
                return 1
            found = measure(pipeline, rounds)
            if place in ("pinned", "cached"):
                found |= over_the_link(found, pipeline.steps, speed)
            about = {"features": place, "device": options.device, "sampler_share": share}
            if place == "cached":
                about["cached"] = options.cache
            record["rows"].append({**about, **found})
            told = ", ".join(
                f"{key} {value:.3f}" for key, value in found.items() if isinstance(value, float)
            )
            said = place if share is None else f"{place}, gpu_share {share}"
            tqdm.write(f"{said}: {told}")
            features.close()
    report.keep(record, options.out, _name(on_gpu, options))
    return 0


def _device(name: str) -> str:
    """Returns the device's name as loaders write it."""
    return "cuda:0" if name == "cuda" else name


def _name(on_gpu: bool, options: argparse.Namespace) -> str:
    """Returns the name of the file, different for runs that answer different questions."""
    more = "-cache" if options.cache is not None else "-share" if options.share != [None] else ""
    return f"pipeline{'-cuda' if on_gpu else ''}{more}"


def _places(on_gpu: bool, cached: float | None) -> tuple[str, ...]:
    """Returns the default places of features."""
    if not on_gpu:
        return "cpu", "file"
    return ("device", "pinned", "cpu") if cached is None else ("cached", "pinned")


def _marks(options: Any) -> Any:
    """Returns how many batches the loader samples ahead: a number, or its low and high mark."""
    low = options.low_mark
    return options.prefetch if low is None else (low, options.prefetch)


def _placed(
    x: torch.Tensor, place: str, device: str, folder: Path, cached: float | None
) -> pgs.Features:
    """Features of their own, so that figures are of one loader."""
    features = pgs.Features.from_tensor(x)
    if place == "cached":
        assert cached is not None
        return features.cache(rows=max(1, int(cached * len(x))), policy="exact", device=device)
    if place == "device":
        return features.to(device)
    if place == "pinned":
        return features.pin(device)
    if place == "file":
        path = folder / "features.pgs"
        nobody = torch.zeros(0, dtype=torch.int64)
        graph = pgs.Graph.from_coo(nobody, nobody, num_nodes=len(x))
        graph.with_data(node_data={"x": x}).save(path)
        return pgs.Features.open(path, "x")
    return features


def _part(text: str) -> float:
    part = float(text)
    if not 0 < part <= 1:
        raise argparse.ArgumentTypeError(f"expected a number in (0, 1], got {text}")
    return part


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="arxiv")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument(
        "--features", nargs="+", choices=("device", "pinned", "cached", "cpu", "file")
    )
    parser.add_argument("--cache", type=_part, help="part of the rows that is cached on the GPU")
    parser.add_argument("--fanouts", type=int, nargs="+", default=[10, 10])
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=100, help="of a round (default: 100)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--width", type=int, default=100, help="floats of a row (default: 100)")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--prefetch", type=int, default=4)
    parser.add_argument("--low-mark", type=int)
    parser.add_argument(
        "--share",
        type=float,
        nargs="+",
        default=[None],
        help="values of the loader's gpu_share",
    )
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for pipeline.json; of a GPU pipeline-cuda.json, and with -cache or -share",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
