"""Sums over all in-edges of a graph beside torch's sparse product and ``embedding_bag``::

    python -m benchmarks.reductions --quick
    python -m benchmarks.reductions --graphs arxiv --threads 1
    python -m benchmarks.reductions --graphs products reddit livejournal --device cuda

For each width and dtype the rows of all sources are added up for each destination: by the engine,
``segment_reduce``; by the product of a sparse CSR matrix of ones (MKL on a CPU, cuSPARSE on a GPU),
where torch has one for the dtype; and by ``embedding_bag``. The gradient is the same over the
transposed edges, which both sides have before the clock starts. Results are compared first. Then
the ways take turns; a time is the least of the rounds, on a CPU that of the process with one
thread, and a ratio is to the engine's time.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from tqdm import tqdm

import pygsampler
from pygsampler._cli.bench.check import CheckError
from pygsampler._ops.segments import SUM, Segments

from . import environment, graphs, report

ENGINE, SPARSE, BAG = "engine", "sparse product", "embedding_bag"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Function = Callable[[], torch.Tensor]


def ways(edges: Segments, x: torch.Tensor) -> dict[str, Function]:
    """Functions that give the sums of rows of x over edges."""
    indptr, indices = edges.indptr, edges.indices
    found: dict[str, Function] = {ENGINE: lambda: edges.reduce(x, SUM)}
    size = edges.num_rows, edges.sources
    ones = torch.ones(len(indices), dtype=x.dtype, device=x.device)
    with warnings.catch_warnings():
        # Torch calls its CSR a beta.
        warnings.simplefilter("ignore")
        matrix = torch.sparse_csr_tensor(indptr, indices, ones, size=size, check_invariants=False)
    try:
        matrix @ x[:, :1].contiguous()
        found[SPARSE] = lambda: matrix @ x
    except (RuntimeError, NotImplementedError):
        # Neither MKL nor cuSPARSE takes all dtypes.
        pass
    found[BAG] = lambda: functional.embedding_bag(indices, x, indptr[:-1], mode="sum")
    return found


def check(what: str, functions: dict[str, Function], longest: int) -> None:
    """Raises CheckError unless the ways give the same sums, to the rounding of their dtype.

    ``embedding_bag`` adds the edges of a row one after another, so that what it rounds grows with
    the longest row.
    """
    sums = functions[ENGINE]()
    expected = sums.double()
    # In 16 bits cuSPARSE rounds more than once.
    bound = max(64.0, longest**0.5) * torch.finfo(torch.float32).eps
    if sums.dtype != torch.float32:
        bound += 16 * torch.finfo(sums.dtype).eps
    for way, function in functions.items():
        if float((function() - expected).norm()) > bound * max(float(expected.norm()), 1e-6):
            raise CheckError(f"{what}: {way} gives other sums than the {ENGINE}")


def measure(functions: dict[str, Function], rounds: int, clock: Callable[[], float]) -> Any:
    """The least milliseconds of each way, and ratios to the engine's."""
    least = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for way, function in functions.items():
            start = clock()
            function()
            least[way] = min(least[way], 1e3 * (clock() - start))
    row = {f"{way}, ms": each for way, each in least.items()}
    return row | {f"{way} / {ENGINE}": least[way] / least[ENGINE] for way in least if way != ENGINE}


def _clock(device: torch.device, threads: int) -> Callable[[], float]:
    if device.type == "cuda":

        def settled() -> float:
            torch.cuda.synchronize()
            return time.perf_counter()

        return settled
    return time.process_time if threads == 1 else time.perf_counter


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.graphs, options.widths, options.rounds = ["quick"], [8], 1
    device = torch.device(options.device)
    if options.threads:
        torch.set_num_threads(options.threads)
        pygsampler.set_num_threads(options.threads)
    clock = _clock(device, options.threads)
    record = environment.describe(given, "benchmarks.reductions", note=options.note)
    print(environment.summary(record), end="\n\n")
    record |= {"threads": options.threads, "rows": []}
    cases = [(width, name) for width in options.widths for name in options.dtypes]
    try:
        for graph in options.graphs:
            found = graphs.load(graph)
            nodes = found.num_nodes
            arrays = (torch.from_numpy(each).to(device) for each in (found.indptr, found.indices))
            edges = Segments(*arrays, nodes)
            for width, name in tqdm(cases, desc=graph, leave=False):
                torch.manual_seed(0)
                x = torch.randn(nodes, width, device=device).to(DTYPES[name])
                for what, segments in (("sum", edges), ("gradient", edges.transposed())):
                    label = f"{graph}, {width} of {name}, {what}"
                    functions = ways(segments, x)
                    check(label, functions, int(segments.indptr.diff().max()))
                    row = measure(functions, options.rounds, clock)
                    record["rows"].append({"what": label, **row})
                    figures = "  ".join(f"{key} {value:.2f}" for key, value in row.items())
                    tqdm.write(f"  {label:38} {figures}")
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    report.keep(record, options.out, "reductions", device.type)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reductions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graphs", nargs="+", choices=tuple(graphs.SHAPES), default=["products"])
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--widths", nargs="+", type=int, default=[64, 100, 256, 512])
    parser.add_argument("--dtypes", nargs="+", choices=tuple(DTYPES), default=list(DTYPES))
    parser.add_argument("--threads", type=int, default=0, help="of the CPU (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for reductions.json, reductions-cuda.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
