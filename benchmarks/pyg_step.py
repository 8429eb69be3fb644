"""A training step of PyG's models as they are, trimmed, blockwise, and that compiled::

    python -m benchmarks.pyg_step --quick
    python -m benchmarks.pyg_step --graph arxiv --hidden 64
    python -m benchmarks.pyg_step --device cuda --modes asis blockwise compiled captured
    python -m benchmarks.pyg_step --profile GAT

Steps of GraphSAGE, GCN, GAT, GAT with v2, and GIN (100 features, 47 classes, Adam) on a graph of
the papers' shape: as users call the model, ``model(x, edge_index)``; with PyG's own trimming; and
blockwise, eager and compiled. Each blockwise step is compared with its model, outputs and
gradients, before the clock starts. Batches are loaded before, so that what is measured is the step.
A captured step is one CUDA graph of a blockwise model on static blocks, and has sampling and
reading the features in it, too. On a GPU memory is the most that torch has allocated in a round.
Then the ways take turns, round by round; a time is the median over the rounds of a round's time by
its steps, and the ratio that of the rounds. On a GPU a round ends when it is done.
"""

from __future__ import annotations

import argparse
import copy
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from tqdm import tqdm

with warnings.catch_warnings():
    # PyG's import uses what torch is about to drop.
    warnings.simplefilter("ignore")
    from torch_geometric import nn

from pygsampler._cli.bench.check import CheckError
from pygsampler.pyg import blockwise
from pygsampler.torch import DataLoader, capture

from . import environment, graphs, report
from .pyg_layers import CLASSES, HEADS, SETTINGS, WIDTH, Case, compare, training

MODELS: dict[str, Callable[[int, int], torch.nn.Module]] = {
    "GraphSAGE": lambda hidden, hops: nn.GraphSAGE(WIDTH, hidden, hops, CLASSES),
    "GCN": lambda hidden, hops: nn.GCN(WIDTH, hidden, hops, CLASSES),
    "GIN": lambda hidden, hops: nn.GIN(WIDTH, hidden, hops, CLASSES),
    "GAT": lambda hidden, hops: nn.GAT(WIDTH, hidden, hops, CLASSES, heads=HEADS),
    "GAT v2": lambda hidden, hops: nn.GAT(WIDTH, hidden, hops, CLASSES, heads=HEADS, v2=True),
}
WAYS = {
    "asis": "as it is",
    "trimmed": "trimmed",
    "blockwise": "blockwise",
    "compiled": "compiled",
    "captured": "captured",
}
Step = Callable[[Any], torch.Tensor]


def step_of(model: Any, way: str) -> Step:
    """A function of a batch that gives the rows of the seeds."""
    if way in ("blockwise", "compiled"):
        wrapped: Any = blockwise(model)
        if way == "compiled":
            wrapped.compile(fullgraph=True)
        return lambda batch: wrapped(batch)  # type: ignore[no-any-return]
    if way == "as it is":
        return lambda batch: model(batch.x, batch.edge_index)[: batch.batch_size]
    return lambda batch: model(
        batch.x,
        batch.edge_index,
        num_sampled_nodes_per_hop=batch.num_sampled_nodes,
        num_sampled_edges_per_hop=batch.num_sampled_edges,
    )[: batch.batch_size]


def check(batch: Any, model: torch.nn.Module, name: str) -> None:
    """Raises CheckError unless a blockwise step gives what the model's own gives."""
    results: list[list[torch.Tensor]] = []
    for way in ("as it is", "blockwise"):
        one = copy.deepcopy(model)
        out = step_of(one, way)(batch)
        functional.cross_entropy(out, batch.y[: batch.batch_size]).backward()
        grads = [each.grad for each in one.parameters() if each.grad is not None]
        results.append([out.detach(), *grads])
    for number, (expected, result) in enumerate(zip(*results, strict=True)):
        most = max(float(expected.abs().max()), 1e-6)
        # A relu whose input is nearly 0 may be on its other side: that is one edge's gradient.
        if float((result - expected).abs().max()) > (1e-2 if number else 1e-3) * most:
            raise CheckError(f"{name}: tensor {number} of a blockwise step differs")


def steps(batches: Sequence[Any], model: torch.nn.Module, way: str) -> Iterator[None]:
    """Trains a model in one way."""
    return training(batches, model, step_of(model, way), fused=batches[0].x.is_cuda)


def _trainer(
    case: Case, batches: Sequence[Any], model: torch.nn.Module, way: str
) -> Callable[[], Iterator[None]]:
    if way == "captured":
        captured = _captured(case, model)
        return lambda: iter(captured)
    # Compiled once for all rounds.
    step = step_of(model, way)
    return lambda: training(batches, model, step, fused=batches[0].x.is_cuda)


def _captured(case: Case, model: torch.nn.Module) -> Any:
    """An epoch of the same seeds, each step of which is one CUDA graph."""
    loader = DataLoader(
        case.graph,
        case.seeds,
        case.fanouts,
        batch_size=case.batch_size,
        seed=1,
        device=case.place,
        features={"x": case.data.x},
        labels=case.data.y,
        static=True,
    )
    wrapped = blockwise(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)

    def step(batch: Any) -> None:
        optimizer.zero_grad()
        out = wrapped(batch).index_select(0, batch.output_index)
        functional.cross_entropy(out, batch.y).backward()
        optimizer.step()

    return capture(step, loader)


def _most_memory(ways: dict[str, Callable[[], Iterator[None]]]) -> dict[str, float]:
    """The most megabytes that torch has allocated on the GPU in a round of each way."""
    found = {}
    for way, train in ways.items():
        torch.cuda.reset_peak_memory_stats()
        list(train())
        torch.cuda.synchronize()
        found[f"{way}, MB"] = torch.cuda.max_memory_allocated() / 1e6
    return found


def measure(
    case: Case, batches: Sequence[Any], make: Callable[[int, int], torch.nn.Module], options: Any
) -> dict[str, Any]:
    """A row: times of a step of each way, and ratios of the first to the others."""
    model = make(options.hidden, case.hops).to(case.place)
    check(batches[0], model, options.name)
    # The first is divided by each of the others.
    names = [WAYS[mode] for mode in options.modes]
    ways = {way: _trainer(case, batches, copy.deepcopy(model), way) for way in names}
    row = compare(case, ways, options.rounds)
    if case.place.type == "cuda":
        row |= _most_memory(ways)
    if {"trimmed", "blockwise"} <= set(names):
        row["trimmed / blockwise"] = row["trimmed, ms"] / row["blockwise, ms"]
    return row


def profile(batches: Sequence[Any], model: torch.nn.Module) -> None:
    """Prints which of torch's operators a blockwise step and the model's own take time for."""
    for way in ("as it is", "blockwise"):
        list(steps(batches[:1], model, way))
        with torch.profiler.profile() as found:
            list(steps(batches, model, way))
        print(way)
        print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    options = parser.parse_args(given)
    if "captured" in options.modes and options.device == "cpu":
        parser.error("--modes captured: expected --device cuda, got cpu")
    if options.quick:
        options.graph, options.batch_size, options.batches, options.rounds = "quick", 4, 2, 1
        options.hidden = 16
    graph = graphs.load(options.graph)
    record = environment.describe(given, "benchmarks.pyg_step", note=options.note)
    print(environment.summary(record), end="\n\n")
    record |= {"graph": options.graph, "batch_size": options.batch_size, "rows": []}
    try:
        for fanouts in options.fanouts:
            case = Case(graph, fanouts, options)
            batches = list(case.loader("coo"))
            if options.profile:
                torch.manual_seed(0)
                make = MODELS[options.profile]
                profile(batches, make(options.hidden, case.hops).to(case.place))
                continue
            label = f"{options.batch_size}x({','.join(map(str, fanouts))})"
            heads = " ".join(f"{WAYS[mode] + ', ms':>13}" for mode in options.modes)
            print(f"{label:18} {heads}   ratios of the first")
            for name in tqdm(options.models, desc=label, leave=False):
                torch.manual_seed(0)
                options.name = name
                row = measure(case, batches, MODELS[name], options)
                record["rows"].append({"setting": label, "what": name, **row})
                first, *others = (WAYS[mode] for mode in options.modes)
                times = [f"{row[f'{way}, ms']:13.2f}" for way in (first, *others)]
                ratios = [f"{row[f'{first} / {way}']:5.2f}x" for way in others]
                tqdm.write(f"  {name:16} {' '.join(times)}   {' '.join(ratios)}")
                if case.place.type == "cuda":
                    most = [f"{row[f'{way}, MB']:13.0f}" for way in (first, *others)]
                    tqdm.write(f"  {'  memory, MB':16} {' '.join(most)}")
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    report.keep(record, options.out, "pyg_step", options.device)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pyg_step", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument(
        "--fanouts",
        type=lambda text: tuple(map(int, text.split(","))),
        nargs="+",
        default=SETTINGS,
        metavar="15,10,5",
    )
    parser.add_argument("--models", nargs="*", choices=tuple(MODELS), default=list(MODELS))
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=tuple(WAYS),
        default=["asis", "trimmed", "blockwise"],
        help="ways of a step; compiled needs PyTorch 2.4 and a C++ compiler, or Triton, captured "
        "a GPU",
    )
    parser.add_argument("--batches", type=int, default=10, help="of a round (default: 10)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", choices=tuple(MODELS), help="print torch's profile, and end")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for pyg_step.json, pyg_step-cuda.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
