"""Outputs of all nodes: ``pygsampler.inference`` beside PyG's ``inference`` and its forward::

    python -m benchmarks.whole_graph --quick
    python -m benchmarks.whole_graph --graph arxiv
    python -m benchmarks.whole_graph --device cuda

PyG's GraphSAGE, GCN, GIN, GAT and GAT with v2 (100 features, 47 classes) on a graph of the papers'
shape: by ``pygsampler.inference(model, graph, x)``; by ``model.inference(loader)``, layer by layer
over the batches of our NeighborLoader with fanout -1; and by ``model(x, edge_index)`` in one piece,
which writes a row for each edge and is left out with ``--without-forward`` where memory is short.
Results are compared before the clock starts, but for PyG's ``inference`` of a GCN, which counts
degrees within a batch. Then the ways take turns; a time is the median over the rounds, and a
ratio that of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

with warnings.catch_warnings():
    # PyG's import uses what torch is about to drop.
    warnings.simplefilter("ignore")
    from torch_geometric.data import Data

import pygsampler
from pygsampler._cli.bench.check import CheckError
from pygsampler.pyg import NeighborLoader

from . import environment, graphs, report
from .pyg_layers import WIDTH
from .pyg_step import MODELS

OURS, LOADER, FORWARD = "inference", "PyG inference", "PyG forward"


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
    options = _parser().parse_args(given)
    if options.quick:
        options.graph, options.hidden, options.rounds = "quick", 16, 1
    found = graphs.load(options.graph)
    graph = pygsampler.Graph.from_csc(found.indptr, found.indices)
    indptr, src = torch.from_numpy(found.indptr), torch.from_numpy(found.indices)
    nodes = len(indptr) - 1
    dst = torch.arange(nodes).repeat_interleave(indptr.diff())
    torch.manual_seed(0)
    data: Any = Data(x=torch.randn(nodes, WIDTH), edge_index=torch.stack([src, dst]))
    data, graph = data.to(options.device), graph.to(options.device)
    record = environment.describe(given, "benchmarks.whole_graph", note=options.note)
    print(environment.summary(record), end="\n\n")
    record |= {"graph": options.graph, "batch_size": options.batch_size, "rows": []}
    print(f"{options.graph}, {options.layers} layers, hidden {options.hidden}")
    try:
        with torch.no_grad():
            for name in options.models:
                torch.manual_seed(0)
                model = MODELS[name](options.hidden, options.layers).to(options.device).eval()
                functions = ways(model, data, graph, options)
                check(name, functions)
                row = {"what": name, **measure(functions, options.rounds, options.device)}
                record["rows"].append(row)
                figures = "  ".join(f"{key} {value:.1f}" for key, value in list(row.items())[1:])
                print(f"  {name:10} {figures}")
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    if options.out:
        path = options.out / f"whole_graph{'' if options.device == 'cpu' else '-cuda'}.json"
        report.write_json(path, record)
        print(f"\nwritten: {path}")
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
    parser.add_argument("--without-forward", action="store_true", help="leave PyG's forward out")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for whole_graph.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
