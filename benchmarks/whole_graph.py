"""Outputs of all nodes: ``pygsampler.inference`` beside PyG's ``inference`` and its forward::

    python -m benchmarks.whole_graph --quick
    python -m benchmarks.whole_graph --graph arxiv
    python -m benchmarks.whole_graph --device cuda
    python -m benchmarks.whole_graph --device cuda --graph papers/20 --pinned --memory 500

PyG's GraphSAGE, GCN, GIN, GAT and GAT with v2 (100 features, 47 classes) on a graph of the papers'
shape: by ``pygsampler.inference(model, graph, x)``; by ``model.inference(loader)``, layer by layer
over the batches of our NeighborLoader with fanout -1; and by ``model(x, edge_index)`` in one piece,
which writes a row for each edge and is left out with ``--without-forward`` where memory is short.
Results are compared before the clock starts, but for PyG's ``inference`` of a GCN, which counts
degrees within a batch. Then the ways take turns; a time is the median over the rounds, and a
ratio that of the rounds' ratios.

With ``--pinned`` the rows (128 numbers of bfloat16) are page-locked on the host, and inference by
a GraphSAGE of bfloat16 is compared with one copy of them to the GPU for each layer.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

with warnings.catch_warnings():
    # PyG's import uses what torch is about to drop.
    warnings.simplefilter("ignore")
    from torch_geometric import nn
    from torch_geometric.data import Data

import pygsampler
from pygsampler._cli.bench.check import CheckError
from pygsampler.pyg import NeighborLoader

from . import environment, graphs, report
from .pyg_layers import CLASSES, WIDTH
from .pyg_step import MODELS

OURS, LOADER, FORWARD = "inference", "PyG inference", "PyG forward"
LINK = "a copy for each layer"
PINNED_WIDTH = 128


def ways(
    model: Any, data: Any, graph: pygsampler.Graph, options: argparse.Namespace
) -> dict[str, Callable[[], torch.Tensor]]:
    """Functions that give the model's output for every node."""
    loader = NeighborLoader(data, [-1], batch_size=options.batch_size)
    result: dict[str, Callable[[], torch.Tensor]] = {
        OURS: lambda: pygsampler.inference(model, graph, data.x, progress=False),
        LOADER: lambda: model.inference(
            loader, device=options.device, embedding_device=options.device
        ),
    }
    if not options.without_forward:
        result[FORWARD] = lambda: model(data.x, data.edge_index)
    return result


def pinned_ways(
    graph: pygsampler.Graph, options: argparse.Namespace
) -> dict[str, Callable[[], torch.Tensor]]:
    """Inference from rows that are page-locked on the host, and copies of these; checked."""
    torch.manual_seed(0)
    x = torch.randn(graph.num_nodes, PINNED_WIDTH).bfloat16().pin_memory()
    model = nn.GraphSAGE(PINNED_WIDTH, options.hidden, options.layers, CLASSES)
    model = model.to(options.device, torch.bfloat16).eval()
    memory = None if options.memory is None else options.memory * 1_000_000

    def copies() -> torch.Tensor:
        for _ in range(options.layers):
            moved = x.to(options.device)
        return moved

    expected = pygsampler.inference(model, graph, x.to(options.device), progress=False)
    out = torch.empty_like(expected)
    rows = pygsampler.inference(model, graph, x, memory=memory, out=out, progress=False)
    if float((rows - expected).abs().max()) > 0.05 * float(expected.abs().max()):
        raise CheckError("rows on the host give other results than rows on the GPU")
    return {
        OURS: lambda: pygsampler.inference(model, graph, x, memory=memory, out=out, progress=False),
        LINK: copies,
    }


def check(name: str, functions: dict[str, Callable[[], torch.Tensor]]) -> None:
    """Raises CheckError unless the ways give the same numbers.

    PyG adds the edges of a node by atomics one after another, which loses four digits of a softmax
    over a million edges: so it is the difference of all rows together that is small.
    """
    expected = functions[OURS]()
    size = max(float(expected.norm()), 1e-6)
    for way, function in functions.items():
        if name == "GCN" and way == LOADER:
            continue
        difference = function() - expected
        most = float(difference.abs().max()) / max(float(expected.abs().max()), 1e-6)
        if float(difference.norm()) > 1e-4 * size or most > 1e-2:
            raise CheckError(f"{name}: {way} gives other numbers than {OURS}")


def cases(
    found: Any, graph: pygsampler.Graph, options: argparse.Namespace
) -> Iterator[tuple[str, dict[str, Callable[[], torch.Tensor]]]]:
    """Yields models' names and ways to run them, which give the same."""
    if options.pinned:
        yield "GraphSAGE, rows on the host", pinned_ways(graph, options)
        return
    indptr, src = torch.from_numpy(found.indptr), torch.from_numpy(found.indices)
    nodes = len(indptr) - 1
    dst = torch.arange(nodes).repeat_interleave(indptr.diff())
    torch.manual_seed(0)
    data: Any = Data(x=torch.randn(nodes, WIDTH), edge_index=torch.stack([src, dst]))
    data = data.to(options.device)
    for name in options.models:
        torch.manual_seed(0)
        model = MODELS[name](options.hidden, options.layers).to(options.device).eval()
        functions = ways(model, data, graph, options)
        check(name, functions)
        yield name, functions


def measure(
    functions: dict[str, Callable[[], torch.Tensor]], rounds: int, device: str
) -> dict[str, Any]:
    """A row: the median time of each way in milliseconds, and ratios to ours."""
    times: dict[str, list[float]] = {way: [] for way in functions}
    for _ in tqdm(range(rounds), leave=False):
        for way, function in functions.items():
            start = time.perf_counter()
            function()
            if device != "cpu":
                torch.cuda.synchronize()
            times[way].append(1e3 * (time.perf_counter() - start))
    row: dict[str, Any] = {f"{way}, ms": statistics.median(each) for way, each in times.items()}
    for way, each in times.items():
        if way != OURS:
            pairs = zip(each, times[OURS], strict=True)
            row[f"{way} / {OURS}"] = statistics.median(other / ours for other, ours in pairs)
    return row


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(given)
    if options.pinned and options.device == "cpu":
        parser.error("--pinned: expected --device cuda, got cpu")
    if options.quick:
        options.graph, options.hidden, options.rounds = "quick", 16, 1
    found = graphs.load(options.graph)
    graph = pygsampler.Graph.from_csc(found.indptr, found.indices).to(options.device)
    record = environment.describe(given, "benchmarks.whole_graph", note=options.note)
    print(environment.summary(record), end="\n\n")
    record |= {"graph": options.graph, "batch_size": options.batch_size, "rows": []}
    print(f"{options.graph}, {options.layers} layers, hidden {options.hidden}")
    try:
        with torch.no_grad():
            for name, functions in cases(found, graph, options):
                row = {"what": name, **measure(functions, options.rounds, options.device)}
                record["rows"].append(row)
                figures = "  ".join(f"{key} {value:.1f}" for key, value in list(row.items())[1:])
                print(f"  {name:10} {figures}")
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    report.keep(record, options.out, "whole_graph", options.device)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whole_graph", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--batch-size", type=int, default=1024, help="of PyG's loader")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--models", nargs="*", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pinned", action="store_true", help="rows on the host, for a GPU")
    parser.add_argument("--memory", type=int, help="MB for --pinned (default: half of the GPU's)")
    parser.add_argument("--without-forward", action="store_true", help="leave PyG's forward out")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for whole_graph.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
