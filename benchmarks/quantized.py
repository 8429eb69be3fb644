"""Quantized features: time to read rows, and accuracy of a model that is trained on them::

    python -m benchmarks.quantized --quick
    python -m benchmarks.quantized                                  # both parts, on the CPU
    python -m benchmarks.quantized --parts read --device cuda       # on a GPU, and pinned for one

Reading: random rows of a float table, as it is and in each kind, beside ``torch.index_select`` of
the table. Rows are compared with torch's own conversions before the clock starts; ways take turns;
a time is the least of the rounds.

Accuracy: GraphSAGE of two layers, trained with the rows of each kind, on ``debian`` (real labels,
the words of descriptions weighted by their rarity, rows of length 1) and on ``planted``, which has
the classes, widths and degrees of ogbn-products: 47 classes, 100 floats, neighbors of which 30 %
are of one's own class. Test accuracy is of ``pygsampler.inference`` over the same features; a row
is the mean over seeds, and the greatest difference to float32 with the same seed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

import pygsampler as pgs
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader

from . import environment, report
from .models import SageLayer
from .tasks import Task, planted, words_of_debian

KINDS = ("float16", "bfloat16", "float8_e4m3", "int8", "int4")
LIMITS = {"float8_e4m3": 448.0, "int8": 127.0, "int4": 7.0}


def reference(x: torch.Tensor, kind: str) -> torch.Tensor:
    """The rows of a kind by torch's own conversions."""
    if kind not in LIMITS:
        return x.to(getattr(torch, kind)).float()
    limit = LIMITS[kind]
    scale = x.abs().amax(1, keepdim=True) / limit
    codes = torch.where(scale > 0, x / scale, torch.zeros(())).clamp(-limit, limit)
    codes = codes.to(torch.float8_e4m3fn).float() if kind == "float8_e4m3" else codes.round()
    return codes * scale


def check(x: torch.Tensor, features: dict[str, pgs.Features], ids: torch.Tensor) -> None:
    """Raises CheckError unless the rows of each kind are those of torch."""
    for kind, each in features.items():
        expected = x[ids.cpu()] if kind == "float32" else reference(x[ids.cpu()], kind)
        if not torch.equal(each[ids].cpu(), expected):
            raise CheckError(f"rows of {kind} differ from torch's")


def read(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Times of reading random rows."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(options.nodes, options.width, generator=random)
    ids = torch.randint(0, options.nodes, (options.rows,), generator=random)
    host = pgs.Features.from_tensor(x)
    kinds = {"float32": host, **{kind: host.quantize(kind) for kind in KINDS}}
    ways: dict[str, Callable[[], Any]] = {}
    if options.device == "cpu":
        check(x, kinds, ids)
        out = torch.empty(options.rows, options.width)
        ways["torch.index_select"] = lambda: torch.index_select(x, 0, ids, out=out)
        for kind, features in kinds.items():
            ways[kind] = lambda features=features: features.read(ids, out)
    else:
        there = ids.to(options.device)
        table, out = x.to(options.device), torch.empty(options.rows, options.width, device="cuda")
        ways["torch.index_select"] = lambda: torch.index_select(table, 0, there, out=out)
        for place in ("to", "pin"):
            placed = {kind: getattr(each, place)(options.device) for kind, each in kinds.items()}
            check(x, placed, there)
            for kind, features in placed.items():
                name = kind if place == "to" else f"{kind}, pinned"
                ways[name] = lambda features=features: features.read(there, out)
    finish: Callable[[], Any] = (
        (lambda: None) if options.device == "cpu" else torch.cuda.synchronize
    )
    least = report.least_times(ways, options.rounds, finish=finish)
    found = []
    for name, seconds in least.items():
        base = least["float32, pinned" if name.endswith("pinned") else "float32"]
        found.append({"way": name, "ms": 1e3 * seconds, "to float32": base / seconds})
        print(f"  {name:24} {1e3 * seconds:9.2f} ms   {base / seconds:5.2f} times float32")
    return found


class Sage(torch.nn.Module):
    """GraphSAGE with the mean (Hamilton et al., 2017)."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([SageLayer(width, hidden), SageLayer(hidden, classes)])

    def forward(self, blocks: Sequence[Any], x: torch.Tensor) -> torch.Tensor:
        for place, (block, layer) in enumerate(zip(blocks, self.layers, strict=True)):
            x = layer(block, functional.relu(x) if place else x)
        return x


def accuracy(task: Task, features: pgs.Features, seed: int, epochs: int) -> float:
    """The share of test nodes whose class a model finds, trained with these features."""
    torch.manual_seed(seed)
    model = Sage(task.x.shape[1], 128, int(task.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    loader = DataLoader(
        task.graph,
        task.train,
        [10, 10],
        batch_size=1024,
        shuffle=True,
        seed=seed,
        features={"x": features},
        labels=task.y,
    )
    for _ in range(epochs):
        for batch in loader:
            loss = functional.cross_entropy(model(batch.blocks, batch.x), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    first, second = model.layers
    layers = [first, torch.nn.functional.relu, second]
    out = pgs.inference(layers, task.graph, features, progress=False)
    return float((out.argmax(1) == task.y)[task.test].double().mean())


def train(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Accuracies of each kind beside float32."""
    found = []
    for name in options.graphs:
        task = words_of_debian() if name == "debian" else planted(options.planted)
        host = pgs.Features.from_tensor(task.x)
        exact: list[float] = []
        for kind in ("float32", *KINDS, "int4 by column"):
            dtype, _, axis = kind.partition(" by ")
            features = host
            if kind != "float32":
                features = host.quantize(dtype, axis or "row")
            seeds = range(options.seeds)
            each = [accuracy(task, features, seed, options.epochs) for seed in seeds]
            exact = exact or each
            apart = max(abs(a - b) for a, b in zip(each, exact, strict=True))
            mean = sum(each) / len(each)
            found.append({"graph": name, "kind": kind, "accuracy": each, "apart": apart})
            print(
                f"  {name:8} {kind:14} {mean:7.2%}   at most {apart:.2%} from float32", flush=True
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    if options.quick:
        options.nodes, options.rows, options.rounds = 2000, 1000, 1
        options.planted, options.seeds, options.epochs = 2000, 1, 1
    record = environment.describe(given, "benchmarks.quantized", note=options.note)
    print(environment.summary(record), end="\n\n")
    try:
        for part in options.parts:
            record[part] = read(options) if part == "read" else train(options)
    except CheckError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    report.keep(record, options.out, "quantized", options.device)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quantized", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--parts", nargs="+", choices=["read", "train"], default=["read", "train"])
    parser.add_argument("--device", default="cpu", help="of reading: cpu or cuda (default: cpu)")
    parser.add_argument("--nodes", type=int, default=1_000_000, help="rows of the table")
    parser.add_argument("--width", type=int, default=100, help="values of a row")
    parser.add_argument("--rows", type=int, default=200_000, help="rows that are read")
    parser.add_argument("--rounds", type=int, default=9)
    names = ["debian", "planted"]
    parser.add_argument("--graphs", nargs="+", choices=names, default=names, help="to train on")
    parser.add_argument("--planted", type=int, default=100_000, help="nodes of that graph")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--note", help="as in python -m benchmarks")
    parser.add_argument("--out", type=Path, help="folder for quantized.json, quantized-cuda.json")
    return parser


if __name__ == "__main__":
    sys.exit(main())
