"""Accuracy by epochs with our sampler and with DGL's: the paper PGSampler's figure 11::

    python -m benchmarks.research.convergence --out benchmarks/results
    python -m benchmarks.research.convergence --device cuda --out FOLDER
    python -m benchmarks.research.convergence --quick

GraphSAGE of two and of three layers, 256 hidden values, 10 neighbors a hop, in plain torch, so that
nothing but the sampler differs: DGL's ``NeighborSampler`` and ``pygsampler.dgl.PGSampler``, in mode
"queue" with the paper's fetch size, in DGL's own loader. Without DGL the batches are ours alone, by
``pygsampler.torch.DataLoader``. Graphs are those of ``benchmarks.tasks``. Accuracy is that of
``pygsampler.inference`` on nodes that were not trained on.

A run is refused whose mean last accuracy is more than a point from DGL's, or, where four standard
errors of the difference are more, than these, up to two points. The file is convergence.json, on a
GPU convergence-cuda.json, and a picture beside it.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from tqdm import tqdm

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader

from .. import environment, report
from ..models import HIDDEN, SageLayer
from ..tasks import Task, planted, words_of_debian

FANOUT, PAPER = 10, {"mode": "queue", "mode_options": {"fetch_size": 5}}
DEPTHS = (2, 3)
# Beyond a point, and beyond so many standard errors of a difference of means, samplers differ.
POINT, _ERRORS = 0.01, 4


class Hop(NamedTuple):
    """The edges of a block, as ``SageLayer.plain`` reads them."""

    src: torch.Tensor
    dst: torch.Tensor
    num_dst_nodes: int
    indptr: torch.Tensor

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.src, self.dst


class Sage(torch.nn.Module):
    """GraphSAGE with the mean (Hamilton et al., 2017), by torch's operations."""

    def __init__(self, width: int, depth: int, classes: int) -> None:
        super().__init__()
        sizes = [width, *[HIDDEN] * (depth - 1), classes]
        self.layers = torch.nn.ModuleList(SageLayer(a, b) for a, b in itertools.pairwise(sizes))

    def forward(self, hops: Sequence[Any], x: torch.Tensor) -> torch.Tensor:
        for place, (hop, layer) in enumerate(zip(hops, self.layers, strict=True)):
            x = layer.plain(hop, functional.relu(x) if place else x)
        return x


def hop_of_dgl(block: Any) -> Hop:
    """The edges of a DGL block, in the order of their destinations."""
    src, dst = block.edges()
    order = dst.argsort(stable=True)
    counts = torch.bincount(dst, minlength=block.num_dst_nodes())
    indptr = functional.pad(counts.cumsum(0), (1, 0))
    return Hop(src[order], dst[order], block.num_dst_nodes(), indptr)


Batches = Iterator[tuple[torch.Tensor, torch.Tensor, Sequence[Any]]]


class Training:
    """The batches of a sampler, epoch by epoch: input nodes, seeds, hops."""

    def __init__(
        self, way: str, task: Task, depth: int, batch: int, seed: int, device: str
    ) -> None:
        fanouts = [FANOUT] * depth
        if importlib.util.find_spec("dgl") is None:
            options: dict[str, Any] = {"batch_size": batch, "shuffle": True, "seed": seed}
            sampler = pgs.PGSampler(fanouts, seed=seed, **PAPER)
            self._ours: Any = DataLoader(
                task.graph, task.train, sampler, device=device, drop_last=False, **options
            )
            return
        import dgl

        import pygsampler.dgl

        warnings.filterwarnings("ignore", "Dataloader CPU affinity")

        self._ours = None
        g = task.graph.to_dgl().to(device)
        self._sampler = (
            dgl.dataloading.NeighborSampler(fanouts)
            if way == "dgl"
            else pygsampler.dgl.PGSampler(fanouts, seed=seed, **PAPER)
        )
        self._loader = dgl.dataloading.DataLoader(
            g, task.train.to(device), self._sampler, batch_size=batch, shuffle=True, device=device
        )
        dgl.seed(seed)
        # DGL's loader shuffles by NumPy's state.
        np.random.seed(seed)

    def batches(self) -> Batches:
        """One epoch."""
        if self._ours is not None:
            for batch in self._ours:
                yield batch.input_nodes, batch.output_nodes, batch.blocks
            return
        for inputs, seeds, blocks in self._loader:
            yield inputs, seeds, [hop_of_dgl(block) for block in blocks]


def curve(way: str, task: Task, depth: int, seed: int, options: argparse.Namespace) -> list[float]:
    """The accuracy after each epoch."""
    torch.manual_seed(seed)
    device = torch.device(options.device)
    x, y = task.x.to(device), task.y.to(device)
    model = Sage(x.shape[1], depth, int(y.max()) + 1).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    training = Training(way, task, depth, options.batch, seed, options.device)
    layers = [step for layer in model.layers for step in (layer, functional.relu)][:-1]
    host = pgs.Features.from_tensor(task.x)
    found = []
    for _ in range(options.epochs):
        for inputs, seeds, hops in training.batches():
            loss = functional.cross_entropy(model(hops, x[inputs.long()]), y[seeds.long()])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        graph = task.graph if device.type == "cpu" else task.graph.to(device)
        features = host if device.type == "cpu" else pgs.Features.from_tensor(x)
        out = pgs.inference(layers, graph, features, progress=False)
        found.append(float((out.argmax(1) == y)[task.test.to(device)].double().mean()))
    return found


def apart(
    rows: Sequence[dict[str, Any]],
    ways: Sequence[str] = ("dgl", "pgsampler"),
    most: float = 2 * POINT,
) -> float:
    """The difference of the last means of two samplers, over what is allowed."""
    last = {
        way: torch.tensor([row["accuracy"][-1] for row in rows if row["sampler"] == way])
        for way in ways
    }
    means = [values.double().mean() for values in last.values()]
    error = float(sum(values.double().var() / len(values) for values in last.values())) ** 0.5
    allowed = min(max(POINT, _ERRORS * error), most)
    return float(abs(means[0] - means[1])) / allowed


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All curves, the samplers in turns for each seed. CheckError where samplers differ."""
    ways = ["pgsampler"] if importlib.util.find_spec("dgl") is None else ["dgl", "pgsampler"]
    rows: list[dict[str, Any]] = []
    for name in options.graphs:
        task = words_of_debian() if name == "debian" else planted(options.planted)
        for depth in DEPTHS:
            own = []
            turns = [(seed, way) for seed in range(options.seeds) for way in ways]
            for seed, way in tqdm(turns, desc=f"{name}, {depth} layers", unit="run", leave=False):
                accuracy = curve(way, task, depth, seed, options)
                row = {"graph": name, "layers": depth, "sampler": way, "seed": seed}
                own.append({**row, "accuracy": [round(value, 5) for value in accuracy]})
            for way in ways:
                ends = [row["accuracy"][-1] for row in own if row["sampler"] == way]
                mean = sum(ends) / len(ends)
                print(f"  {name:8} {depth} layers  {way:10} {mean:7.2%}", flush=True)
            if (
                len(ways) == 2
                and options.seeds > 1
                and (excess := apart(own, most=options.most)) > 1
            ):
                raise CheckError(
                    f"{name}, {depth} layers: accuracies of the samplers are {excess:.1f} times as "
                    "far from each other as is allowed"
                )
            rows += own
    return rows


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A panel for each graph and depth: the mean of each sampler, and all its seeds faintly."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    panels = list(dict.fromkeys((row["graph"], row["layers"]) for row in rows))
    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(3.2 * len(panels), 3), squeeze=False, layout="constrained"
    )
    for axis, panel in zip(axes[0], panels, strict=True):
        axis.set_title(f"{panel[0]}, {panel[1]} layers", fontsize=9)
        axis.set_xlabel("epoch")
        for way, colour in (("dgl", "#888888"), ("pgsampler", "#2f6fae")):
            own = [
                row["accuracy"]
                for row in rows
                if (row["graph"], row["layers"], row["sampler"]) == (*panel, way)
            ]
            epochs = range(1, 1 + max(map(len, own), default=0))
            for values in own:
                axis.plot(epochs, values, color=colour, alpha=0.25, linewidth=0.8)
            if own:
                means = torch.tensor(own).mean(0).tolist()
                axis.plot(epochs, means, color=colour, label=way)
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("accuracy, nodes not trained on")
    axes[0][0].legend(fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser_of("benchmarks.research.convergence", __doc__, 6).parse_args(given)
    if options.quick:
        options.graphs, options.planted, options.seeds, options.epochs = ["planted"], 2000, 2, 2
        # Models that have hardly learned differ by more.
        options.batch, options.most = 256, 1.0
    record = recorded("benchmarks.research.convergence", given, options, run)
    if record is None:
        return 1
    if options.out:
        name = f"convergence{'' if options.device == 'cpu' else '-cuda'}"
        report.write_json(options.out / f"{name}.json", record)
        draw(record["rows"], options.out / f"{name}.png")
        print(f"\nwritten: {options.out / name}.json, .png")
    return 0


def recorded(
    module: str,
    given: Sequence[str],
    options: argparse.Namespace,
    run: Callable[[argparse.Namespace], list[dict[str, Any]]],
) -> dict[str, Any] | None:
    """Returns the record of a run, which prints its table; None after a failed check."""
    record: dict[str, Any] = environment.describe(list(given), module, note=options.note)
    print(environment.summary(record), end="\n\n")
    try:
        record["rows"] = run(options)
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return None
    return record


def parser_of(module: str, document: str | None, epochs: int) -> argparse.ArgumentParser:
    """Returns the parser of a program that trains on both graphs, for so many epochs."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=document)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    names = ["debian", "planted"]
    parser.add_argument("--graphs", nargs="+", choices=names, default=names)
    parser.add_argument("--planted", type=int, default=20_000, help="nodes of that graph")
    parser.add_argument("--batch", type=int, default=1024, help="seeds of a batch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--out", type=Path, help="folder for the files")
    parser.set_defaults(most=2 * POINT)
    parser.add_argument("--note", help="as in python -m benchmarks")
    return parser


if __name__ == "__main__":
    sys.exit(main())
