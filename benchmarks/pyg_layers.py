"""PyG's own layers on our loader's batches, with and without ``edge_index="edge_index"``::

    python -m benchmarks.pyg_layers --quick
    python -m benchmarks.pyg_layers --graph arxiv
    python -m benchmarks.pyg_layers --device cuda
    python -m benchmarks.pyg_layers --device cuda --profile loader

Loader alone, and the whole training step of a model of each layer (100 features, hidden 256, 47
classes, Adam, trimmed), and of PyG's own models, on a graph of the papers' shape with the features
on the step's device: as attributes of the data, and for a tensor of edges also by ``features=``.
Outputs of the layers, and their gradients, are compared before the clock starts. Then the kinds of
batches take turns, round by round; a time is the median over the rounds of a round's time by its
steps, and the ratio that of the rounds. On a GPU a round ends when it is done.
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import pstats
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from tqdm import tqdm

with warnings.catch_warnings():
    # PyG's import uses what torch is about to drop.
    warnings.simplefilter("ignore")
    from torch_geometric import nn
    from torch_geometric.data import Data
    from torch_geometric.utils import trim_to_layer

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.pyg import NeighborLoader, PGSampler

from . import environment, graphs, report

WIDTH, HIDDEN, CLASSES, HEADS = 100, 256, 47, 4
LAYOUTS = ("coo", "edge_index")
SETTINGS = ((10, 10), (15, 10, 5))
# A layer of so many inputs and outputs; those with heads divide the outputs among them.
Make = Callable[[int, int, int], torch.nn.Module]


def attention(kind: Any, **options: Any) -> Make:
    return lambda inputs, outputs, heads: kind(inputs, outputs // heads, heads=heads, **options)


def plain(kind: Any, **options: Any) -> Make:
    return lambda inputs, outputs, heads: kind(inputs, outputs, **options)


LAYERS: dict[str, Make] = {
    "SAGEConv mean": plain(nn.SAGEConv),
    "SAGEConv max": plain(nn.SAGEConv, aggr="max"),
    "SAGEConv sum": plain(nn.SAGEConv, aggr="sum"),
    "SAGEConv lstm": plain(nn.SAGEConv, aggr="lstm"),
    "GraphConv": plain(nn.GraphConv),
    "GINConv": lambda inputs, outputs, heads: nn.GINConv(torch.nn.Linear(inputs, outputs)),
    "GCNConv": plain(nn.GCNConv),
    "GCNConv, no loops": plain(nn.GCNConv, add_self_loops=False),
    "GATConv": attention(nn.GATConv),
    "GATConv, no loops": attention(nn.GATConv, add_self_loops=False),
    "GATv2Conv": attention(nn.GATv2Conv),
    "TransformerConv": attention(nn.TransformerConv),
}
# Whole models of PyG's, which trim by themselves.
MODELS: dict[str, Callable[[int], torch.nn.Module]] = {
    "GraphSAGE": lambda hops: nn.GraphSAGE(WIDTH, HIDDEN, hops, CLASSES),
    "GAT": lambda hops: nn.GAT(WIDTH, HIDDEN, hops, CLASSES, heads=HEADS),
    "GAT, no loops": lambda hops: nn.GAT(
        WIDTH, HIDDEN, hops, CLASSES, heads=HEADS, add_self_loops=False
    ),
}
LAYOUT_OF = {"coo": "coo", "edge_index": "edge_index", "features=": "coo"}


class Model(torch.nn.Module):
    """Layers of one kind, one a hop, each on what those after it read."""

    def __init__(self, make: Make, hops: int) -> None:
        super().__init__()
        sizes = [WIDTH, *[HIDDEN] * (hops - 1)]
        layers = [make(size, HIDDEN, HEADS) for size in sizes[:-1]]
        self.layers = torch.nn.ModuleList([*layers, make(sizes[-1], CLASSES, 1)])

    def forward(self, batch: Data) -> torch.Tensor:
        h, edges = batch.x, batch.edge_index
        for number, layer in enumerate(self.layers):
            h, edges, _ = trim_to_layer(
                number, batch.num_sampled_nodes, batch.num_sampled_edges, h, edges
            )
            h = layer(h if number == 0 else functional.relu(h), edges)
        return h[: batch.batch_size]


class Whole(torch.nn.Module):
    """A model of PyG's on a batch."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Data) -> torch.Tensor:
        out: torch.Tensor = self.model(
            batch.x,
            batch.edge_index,
            num_sampled_nodes_per_hop=batch.num_sampled_nodes,
            num_sampled_edges_per_hop=batch.num_sampled_edges,
        )
        return out[: batch.batch_size]


def model_of(name: str, hops: int) -> torch.nn.Module:
    """Returns a model of one kind of layer, or PyG's model, with the same weights each time."""
    torch.manual_seed(0)
    return Whole(MODELS[name](hops)) if name in MODELS else Model(LAYERS[name], hops)


class Case:
    """A graph with features, and loaders that sample it."""

    def __init__(self, graph: Any, fanouts: Sequence[int], options: argparse.Namespace) -> None:
        made = pgs.Graph.from_csc(graph.indptr, graph.indices, num_nodes=graph.num_nodes)
        place = torch.device(options.device)
        torch.manual_seed(0)
        self.data = Data(
            x=torch.randn(graph.num_nodes, WIDTH, device=place),
            y=torch.randint(CLASSES, (graph.num_nodes,), device=place),
            # Batches have their edges where these are.
            edge_index=torch.empty(2, 0, dtype=torch.int64, device=place),
        )
        self.graph = made
        self.sampler = PGSampler(made, list(fanouts), seed=1, device=options.device)
        self.fanouts, self.hops, self.place = list(fanouts), len(fanouts), place
        rng = np.random.default_rng(1)
        count = options.batches * options.batch_size
        self.seeds = torch.from_numpy(rng.choice(graph.num_nodes, count, replace=False))
        self.batch_size = options.batch_size
        # The same, but for the rows, which are not there.
        self.bare = Data(y=self.data.y, edge_index=self.data.edge_index)
        self.bare.num_nodes = graph.num_nodes
        self.features = {"x": pgs.Features.from_tensor(self.data.x)}

    def loader(self, way: str) -> NeighborLoader:
        """Returns a loader with the layout of ``way`` in ``LAYOUT_OF``."""
        options = {"features": self.features} if way == "features=" else {}
        loader = NeighborLoader(
            self.bare if options else self.data,
            self.sampler.num_neighbors,
            self.seeds,
            neighbor_sampler=self.sampler,
            batch_size=self.batch_size,
            edge_index=LAYOUT_OF[way],
            **options,
        )
        loader.set_epoch(0)
        return loader

    def settle(self) -> None:
        if self.place.type == "cuda":
            torch.cuda.synchronize()


def check(case: Case, model: torch.nn.Module, name: str) -> None:
    """CheckError unless a step gives the same with all kinds of batches."""
    found: list[list[torch.Tensor]] = []
    for way in LAYOUT_OF:
        batch, same = next(iter(case.loader(way))), copy.deepcopy(model)
        batch.x.requires_grad_()
        out = same(batch)
        functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
        gradients = [each.grad for each in same.parameters() if each.grad is not None]
        found.append([out.detach(), batch.x.grad, *gradients])
    want, *others = found
    for way, got in zip(list(LAYOUT_OF)[1:], others, strict=True):
        for place, (one, other) in enumerate(zip(want, got, strict=True)):
            most = max(float(one.abs().max()), 1e-6)
            if float((one - other).abs().max()) > 1e-4 * most:
                raise CheckError(f"{name}, {way}: tensor {place} differs")


def loading(loader: NeighborLoader) -> Iterator[None]:
    """A step that does nothing with its batch."""
    for _ in loader:
        yield


def training(
    loader: Iterable[Any],
    model: torch.nn.Module,
    step: Callable[[Any], torch.Tensor] | None = None,
    fused: bool = False,
) -> Iterator[None]:
    """Trains a model on all batches; ``step`` gives the rows of the seeds, if not the model."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    for batch in loader:
        loss = functional.cross_entropy((step or model)(batch), batch.y[: batch.batch_size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


def compare(
    case: Case, ways: dict[str, Callable[[], Iterator[None]]], rounds: int
) -> dict[str, Any]:
    """Median milliseconds a step of each way, and of the ratios of the first to the others."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(-1, rounds):
        # In another order every round; the first is for what is made once.
        for name in sorted(ways, reverse=bool(turn % 2)):
            case.settle()
            start = time.perf_counter()
            steps = sum(1 for _ in ways[name]())
            case.settle()
            if turn >= 0:
                times[name].append(1e3 * (time.perf_counter() - start) / steps)
    first, *others = ways
    found = {f"{name}, ms": statistics.median(each) for name, each in times.items()}
    for name in others:
        pairs = zip(times[first], times[name], strict=True)
        found[f"{first} / {name}"] = statistics.median(a / b for a, b in pairs)
    return found


def measure(case: Case, name: str, rounds: int) -> dict[str, Any]:
    """A row: the loader's, or of a layer of ``LAYERS`` or a model of ``MODELS``."""
    ways: dict[str, Callable[[], Iterator[None]]]
    if name == "loader":
        ways = {way: lambda way=way: loading(case.loader(way)) for way in LAYOUT_OF}
    else:
        model = model_of(name, case.hops).to(case.place)
        check(case, model, name)
        ways = {
            way: lambda way=way: training(case.loader(way), copy.deepcopy(model))
            for way in LAYOUT_OF
        }
    return compare(case, ways, rounds)


def profile(case: Case, name: str, layout: str) -> None:
    """Prints what the functions of Python take, after a pass without that."""
    passes = [
        loading(case.loader(layout))
        if name == "loader"
        else training(case.loader(layout), model_of(name, case.hops).to(case.place))
        for _ in range(2)
    ]
    list(passes[0])
    with cProfile.Profile() as found:
        list(passes[1])
        case.settle()
    pstats.Stats(found).sort_stats("tottime").print_stats(40)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.graph, options.batch_size, options.batches, options.rounds = "quick", 4, 2, 1
    graph = graphs.load(options.graph)
    record = environment.describe(given, "benchmarks.pyg_layers", note=options.note)
    print(environment.summary(record), end="\n\n")
    record |= {"graph": options.graph, "batch_size": options.batch_size, "rows": []}
    try:
        for fanouts in options.fanouts:
            case = Case(graph, fanouts, options)
            if options.profile:
                for layout in LAYOUTS:
                    profile(case, options.profile, layout)
                continue
            label = f"{options.batch_size}x({','.join(map(str, fanouts))})"
            print(f"{label:22} {'coo, ms':>10} {'edge_index':>11} {'ratio':>7}")
            for name in tqdm(["loader", *options.layers], desc=label, leave=False):
                found = measure(case, name, options.rounds)
                record["rows"].append({"setting": label, "what": name, **found})
                one, other = (found[f"{layout}, ms"] for layout in LAYOUTS)
                ratio = found["coo / edge_index"]
                more = f"   features= {found['features=, ms']:.2f}"
                tqdm.write(f"  {name:20} {one:10.2f} {other:11.2f} {ratio:6.2f}x{more}")
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    report.keep(record, options.out, "pyg_layers", options.device)
    return 0


def _fanouts(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pyg_layers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--fanouts", type=_fanouts, nargs="+", default=SETTINGS, metavar="15,10,5")
    parser.add_argument(
        "--layers", nargs="*", choices=(*LAYERS, *MODELS), default=[*LAYERS, *MODELS]
    )
    parser.add_argument("--batches", type=int, default=40, help="of a round (default: 40)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--profile",
        choices=("loader", *LAYERS, *MODELS),
        help="print where Python's time goes, and end",
    )
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for pyg_layers.json, pyg_layers-cuda.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
