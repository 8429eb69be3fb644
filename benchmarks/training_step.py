"""Compares the work around sampling in a step with torch's own operations::

    python -m benchmarks.training_step --quick
    python -m benchmarks.training_step
    python -m benchmarks.training_step --device cuda

On batches of a graph of the papers' shape: rows of features (`Features` and `x[ids]`); the mean
over each destination's neighbours, forward and backward (`block.mean`, `embedding_bag` and
`index_add`), and of rows where they are (`block.mean(x, of=ids)`); the edges by their sources,
which gradients need; the attention-weighted sum (`block.weighted_sum` and `index_add`); softmax by
destination, and GAT's attention with all gradients (`block.softmax`, `block.attention`, and what
`scatter_reduce` and `index_add` make of them). All are compared with torch's before the clock
starts; then the ways take turns, batch by batch, and a ratio is the median over the batches of
torch's best time by ours. Both have the same threads. On a GPU a time is that until it is done.
"""

from __future__ import annotations

import argparse
import statistics
import sys
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
from pygsampler._ops.segments import Segments

from . import environment, graphs, report

OURS = "pygsampler"
# One way of doing something with a batch: it gives tensors to compare.
Way = Callable[[Any], tuple[torch.Tensor, ...]]


def features(x: torch.Tensor) -> dict[str, Way]:
    """The rows of a batch's vertices."""
    table = pgs.Features.from_tensor(x)
    return {
        OURS: lambda batch: (table[batch.input_nodes],),
        "x[ids]": lambda batch: (x[batch.input_nodes],),
        "index_select": lambda batch: (x.index_select(0, batch.input_nodes),),
    }


def mean(width: int) -> dict[str, Way]:
    """The mean in the outermost block, and the gradient of its sum of squares."""

    def step(reduce: Callable[[Any, torch.Tensor], torch.Tensor]) -> Way:
        def run(batch: Any) -> tuple[torch.Tensor, ...]:
            block = batch.blocks[0]
            x = _values(block.num_src_nodes, width)
            made = reduce(block, x)
            made.backward(made.detach())
            return made.detach(), _gradient(x)

        return run

    def by_bag(block: Any, x: torch.Tensor) -> torch.Tensor:
        return F.embedding_bag(
            block.indices, x, block.indptr, mode="mean", include_last_offset=True
        )

    def by_index(block: Any, x: torch.Tensor) -> torch.Tensor:
        src, dst = block.coo()
        sums = x.new_zeros((block.num_dst_nodes, width)).index_add(0, dst, x[src])
        return sums / block.indptr.diff().clamp(min=1).unsqueeze(1)

    return {
        OURS: step(lambda block, x: block.mean(x)),
        "embedding_bag": step(by_bag),
        "index_add": step(by_index),
    }


def first_layer(x: torch.Tensor) -> dict[str, Way]:
    """The mean of the rows of a batch's vertices, which have no gradient."""

    def bag(batch: Any) -> tuple[torch.Tensor, ...]:
        block = batch.blocks[0]
        ids = batch.input_nodes[block.indices]
        offsets = block.indptr
        return (F.embedding_bag(ids, x, offsets, mode="mean", include_last_offset=True),)

    return {
        OURS: lambda batch: (batch.blocks[0].mean(x, of=batch.input_nodes),),
        "gather, then mean": lambda batch: (batch.blocks[0].mean(x[batch.input_nodes]),),
        "embedding_bag of ids[indices]": bag,
    }


def transposition() -> dict[str, Way]:
    """The edges of the outermost block by their sources."""

    def ours(batch: Any) -> tuple[torch.Tensor, ...]:
        block = batch.blocks[0]
        made = Segments(block.indptr, block.indices, block.num_src_nodes).transposed(places=True)
        assert made.places is not None
        return made.indptr, made.indices, made.places

    def by_sort(batch: Any) -> tuple[torch.Tensor, ...]:
        block = batch.blocks[0]
        ids = block.indices
        ordered, places = torch.sort(ids, stable=True)
        bounds = torch.arange(block.num_src_nodes + 1, dtype=ids.dtype, device=ids.device)
        starts = torch.searchsorted(ordered, bounds).to(ids.dtype)
        rows = torch.searchsorted(block.indptr, places, right=True) - 1
        return starts, rows.to(ids.dtype), places.to(ids.dtype)

    return {OURS: ours, "torch.sort": by_sort}


def weighted(width: int, heads: int = 4) -> dict[str, Way]:
    """The sum weighted by four heads of attention, and both gradients."""

    def step(reduce: Callable[[Any, torch.Tensor, torch.Tensor], torch.Tensor]) -> Way:
        def run(batch: Any) -> tuple[torch.Tensor, ...]:
            block = batch.blocks[0]
            x = _values(block.num_src_nodes, width)
            a = _values(block.num_edges, heads)
            made = reduce(block, x.reshape(-1, heads, width // heads), a)
            made.backward(made.detach())
            return made.detach(), _gradient(x), _gradient(a)

        return run

    def by_index(block: Any, x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        src, dst = block.coo()
        sums = x.new_zeros((block.num_dst_nodes, *x.shape[1:]))
        return sums.index_add(0, dst, x[src] * a.unsqueeze(2))

    return {
        OURS: step(lambda block, x, a: block.weighted_sum(x, a)),
        "index_add": step(by_index),
    }


def _softmax(block: Any, scores: torch.Tensor) -> torch.Tensor:
    """By torch's operations."""
    _, dst = block.coo()
    places = dst.long().unsqueeze(1).expand_as(scores)
    most = scores.new_full((block.num_dst_nodes, scores.shape[1]), -torch.inf)
    most = most.scatter_reduce(0, places, scores.detach(), "amax")
    parts = (scores - most[dst]).exp()
    total = parts.new_zeros(most.shape).index_add(0, dst, parts)
    return parts / total[dst]


def softmax(heads: int = 4) -> dict[str, Way]:
    """The softmax of scores of the outermost block's edges, and its gradient."""

    def step(make: Callable[[Any, torch.Tensor], torch.Tensor]) -> Way:
        def run(batch: Any) -> tuple[torch.Tensor, ...]:
            block = batch.blocks[0]
            scores = _values(block.num_edges, heads)
            made = make(block, scores)
            made.backward(made.detach())
            return made.detach(), _gradient(scores)

        return run

    return {
        OURS: step(lambda block, scores: block.softmax(scores)),
        "scatter_reduce, index_add": step(_softmax),
    }


def attention(width: int, heads: int = 4) -> dict[str, Way]:
    """GAT's attention in the outermost block, and the gradients of rows and of both scores."""

    def step(make: Callable[..., torch.Tensor]) -> Way:
        def run(batch: Any) -> tuple[torch.Tensor, ...]:
            block = batch.blocks[0]
            x = _values(block.num_src_nodes, width)
            source = _values(block.num_src_nodes, heads)
            target = _values(block.num_dst_nodes, heads)
            made = make(block, x.reshape(-1, heads, width // heads), source, target)
            made.backward(made.detach())
            return made.detach(), *map(_gradient, (x, source, target))

        return run

    def by_index(
        block: Any, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor
    ) -> torch.Tensor:
        src, dst = block.coo()
        weights = _softmax(block, F.leaky_relu(source[src] + target[dst], 0.2))
        sums = x.new_zeros((block.num_dst_nodes, *x.shape[1:]))
        return sums.index_add(0, dst, x[src] * weights.unsqueeze(2))

    return {
        OURS: step(lambda block, x, source, target: block.attention(x, source, target)),
        "scatter_reduce, index_add": step(by_index),
    }


def _values(rows: int, width: int) -> torch.Tensor:
    """Numbers without a meaning, the same for all, at the cost of a copy."""
    return _SOME[: rows * width].reshape(rows, width).detach().requires_grad_()


_SOME = torch.empty(0)


def _gradient(x: torch.Tensor) -> torch.Tensor:
    assert x.grad is not None
    return x.grad


def _settle() -> None:
    if _SOME.is_cuda:
        torch.cuda.synchronize()


def compare(ways: dict[str, Way], batches: Sequence[Any], repeat: int) -> dict[str, Any]:
    """Median milliseconds of each, and the ratio of each of torch's to ours."""
    want = ways[OURS](batches[0])
    for name, way in ways.items():
        for mine, theirs in zip(want, way(batches[0]), strict=True):
            if not torch.allclose(mine, theirs, rtol=1e-4, atol=1e-4):
                raise CheckError(f"{name} gives another result")
    best: dict[str, list[float]] = {name: [] for name in ways}
    for batch in batches:
        times = {name: float("inf") for name in ways}
        for _ in range(repeat):
            for name, way in ways.items():
                _settle()
                start = time.perf_counter()
                way(batch)
                _settle()
                times[name] = min(times[name], time.perf_counter() - start)
        for name, seconds in times.items():
            best[name].append(seconds)
    found: dict[str, Any] = {
        f"{name}, ms": 1e3 * statistics.median(seconds) for name, seconds in best.items()
    }
    for name in ways:
        if name != OURS:
            pairs = zip(best[name], best[OURS], strict=True)
            found[f"{name} / {OURS}"] = statistics.median(b / a for b, a in pairs)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    global _SOME
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    name, count, repeat = ("quick", 2, 2) if options.quick else (options.graph, 8, 5)
    graph = graphs.load(name)
    made = pgs.Graph.from_csc(graph.indptr, graph.indices, num_nodes=graph.num_nodes)
    made = made.to(options.device)
    size = 64 if options.quick else 1024
    sampler = pgs.PGSampler([10, 10], seed=1)
    rng = np.random.default_rng(1)
    seeds = [rng.choice(graph.num_nodes, size, replace=False) for _ in range(count)]
    batches = [sampler.sample(made, s, epoch=0, batch=i).torch() for i, s in enumerate(seeds)]
    x = torch.from_numpy(rng.standard_normal((graph.num_nodes, options.width), np.float32))
    x = x.to(options.device)
    rows = max(max(len(b.input_nodes), b.blocks[0].num_edges) for b in batches)
    _SOME = torch.randn(rows * options.width, device=options.device)
    record = environment.describe(given, "benchmarks.training_step", note=options.note)
    print(environment.summary(record), end="\n\n")
    record["rows"] = []
    tasks = {
        "features": features(x),
        "mean and gradient": mean(options.width),
        "mean of rows where they are": first_layer(x),
        "edges by source": transposition(),
        "weighted sum and gradients": weighted(options.width),
        "softmax and gradient": softmax(),
        "attention and gradients": attention(options.width),
    }
    before = torch.get_num_threads(), pgs.get_num_threads()
    try:
        for threads in options.threads if options.device == "cpu" else [before[0]]:
            torch.set_num_threads(threads)
            pgs.set_num_threads(threads)
            for task, ways in tqdm(tasks.items(), desc=f"{threads} threads", leave=False):
                found = compare(ways, batches, repeat)
                record["rows"].append({"task": task, "threads": threads, **found})
                told = ", ".join(f"{key} {value:.2f}" for key, value in found.items())
                tqdm.write(f"{threads} threads, {task}: {told}")
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    finally:
        torch.set_num_threads(before[0])
        pgs.set_num_threads(before[1])
    if options.out:
        report.write_json(options.out / "step.json", record)
        print(f"\nwritten: {options.out / 'step.json'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_step", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--width", type=int, default=100, help="floats of a row (default: 100)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for step.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
