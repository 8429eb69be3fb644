"""DGL's layers on our blocks, beside the same layers on the same blocks as DGL's own class::

    python -m benchmarks.dgl_layers --quick
    python -m benchmarks.dgl_layers --out results

A layer forward and backward on the outer block of a batch of a generated graph on the CPU. Results
and gradients of both are compared before the clock starts. Then they take turns; a time is the
least of the rounds. With ``--threads 1`` it is the processor's time, which other processes of the
machine disturb least.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dgl
import dgl.nn as dglnn
import torch
from dgl.heterograph import DGLBlock
from tqdm import tqdm

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.dgl import NeighborSampler

from . import environment, graphs, report

FANOUTS = 10, 10
WIDTHS = (100, 256), (256, 256)
LAYERS: dict[str, Callable[[int, int], torch.nn.Module]] = {
    "SAGEConv mean": lambda inputs, outputs: dglnn.SAGEConv(inputs, outputs, "mean"),
    "SAGEConv pool": lambda inputs, outputs: dglnn.SAGEConv(inputs, outputs, "pool"),
    "GraphConv": lambda inputs, outputs: dglnn.GraphConv(inputs, outputs),
    "GINConv sum": lambda inputs, outputs: dglnn.GINConv(torch.nn.Linear(inputs, outputs), "sum"),
    "GATConv": lambda inputs, outputs: dglnn.GATConv(inputs, outputs // 4, 4),
}


def blocks(name: str, batch_size: int) -> dict[str, Any]:
    """Returns the outer block of a batch in our class and in DGL's."""
    graph = graphs.load(name)
    indices = torch.from_numpy(graph.indices).long()
    ends = ("csc", (torch.from_numpy(graph.indptr), indices, torch.empty(0, dtype=torch.int64)))
    g = dgl.graph(ends, num_nodes=graph.num_nodes)
    seeds = torch.arange(graph.num_nodes)[: batch_size * 7 : 7]
    block = NeighborSampler([*FANOUTS], seed=1).sample_blocks(g, seeds)[2][0]
    plain = copy.copy(block)
    plain.__class__ = DGLBlock
    return {"ours": block, "dgl": plain}


def step(layer: Any, block: Any, x: torch.Tensor) -> list[torch.Tensor]:
    """Returns the result of a layer and all gradients."""
    layer.zero_grad()
    rows = x.detach().requires_grad_()
    out = layer(block, rows)
    out.square().mean().backward()
    return [out.detach(), rows.grad, *(each.grad.clone() for each in layer.parameters())]


def measure(
    both: dict[str, Any],
    name: str,
    width: tuple[int, int],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Returns the least times of a layer on both blocks in milliseconds, and their ratio."""
    torch.manual_seed(0)
    layer: Any = LAYERS[name](*width)
    if hasattr(layer, "set_allow_zero_in_degree"):
        layer.set_allow_zero_in_degree(True)
    x = torch.randn(both["ours"].num_src_nodes(), width[0])
    # In float32 two sources may share a maximum, whose gradient goes to either: outputs alone.
    pairs = [[step(layer, block, x)[0] for block in both.values()]]
    wide = copy.deepcopy(layer).double()
    pairs += zip(*(step(wide, block, x.double()) for block in both.values()), strict=True)
    for ours, theirs in pairs:
        if not torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max())):
            raise CheckError(f"{name}: expected DGL's result, got another one")
    times: dict[str, list[float]] = {kind: [] for kind in both}
    for number in range(rounds):
        for kind in sorted(both, reverse=bool(number % 2)):
            start = clock()
            step(layer, both[kind], x)
            times[kind].append(1e3 * (clock() - start))
    least = {kind: min(each) for kind, each in times.items()}
    ratio = least["dgl"] / least["ours"]
    return {f"{kind}, ms": each for kind, each in least.items()} | {"dgl / ours": ratio}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.graph, options.batch_size, options.rounds = "quick", 64, 2
    record = environment.describe(given, "benchmarks.dgl_layers", note=options.note)
    print(environment.summary(record), end="\n\n")
    if options.threads:
        torch.set_num_threads(options.threads)
        dgl.utils.set_num_threads(options.threads)
        pgs.set_num_threads(options.threads)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    both = blocks(options.graph, options.batch_size)
    block = both["ours"]
    sizes = block.num_src_nodes(), block.num_dst_nodes(), block.num_edges()
    print(f"{'':26} {'dgl, ms':>9} {'ours':>9} {'ratio':>7}")
    record |= {"graph": options.graph, "block": sizes, "rows": []}
    try:
        for name in tqdm(LAYERS, leave=False):
            for width in WIDTHS:
                found = measure(both, name, width, options.rounds, clock)
                label = f"{name}, {width[0]} to {width[1]}"
                record["rows"].append({"layer": name, "width": width, **found})
                dgl_ms, ours, ratio = found["dgl, ms"], found["ours, ms"], found["dgl / ours"]
                tqdm.write(f"{label:26} {dgl_ms:9.2f} {ours:9.2f} {ratio:6.2f}x")
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    report.keep(record, options.out, "dgl_layers")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dgl_layers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--graph", choices=tuple(graphs.SHAPES), default="products")
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, help="of both; one where others use the machine")
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for dgl_layers.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
