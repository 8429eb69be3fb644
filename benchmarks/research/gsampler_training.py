"""Training with GraphSAGE's and LADIES' samples, by programs and by torch's operators.

The paper gSampler's table 8: seconds of all epochs, the part of them that sampling alone takes, and
accuracy on nodes that were not trained on. "torch" samples by ``benchmarks.eager_torch``, which
stands in for DGL's operators, on the same device; the model, the order of the seeds and the
optimizer are the same::

    python -m benchmarks.research.gsampler_training --out benchmarks/results
    python -m benchmarks.research.gsampler_training --device cuda --out FOLDER
    python -m benchmarks.research.gsampler_training --quick

A run is refused whose mean accuracies differ by more than ``convergence.apart`` allows.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional
from tqdm import tqdm

import pygsampler as pgs
from pygsampler import samplers
from pygsampler._cli.bench.check import CheckError
from pygsampler.torch import DataLoader

from .. import eager_torch, report
from ..models import HIDDEN, SageLayer
from ..tasks import Task, planted, words_of_debian
from .convergence import apart, parser_of, recorded

FANOUTS = [10, 10]
ALGORITHMS, SYSTEMS = ("GraphSAGE", "LADIES"), ("torch", "pygsampler")

# A hop: places of the sources among the inputs, places of the destinations, weights, and how many
# destinations there are, which are the first inputs.
Hop = tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]
Batch = tuple[torch.Tensor, torch.Tensor, list[Hop]]


class Model(torch.nn.Module):
    """Layers that add up the rows of sampled edges by their weights."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        sizes = [width, *[HIDDEN] * (len(FANOUTS) - 1), classes]
        self.layers = torch.nn.ModuleList(SageLayer(a, b) for a, b in itertools.pairwise(sizes))

    def forward(self, hops: Sequence[Hop], x: torch.Tensor) -> torch.Tensor:
        for place, (layer, (src, dst, weight, count)) in enumerate(
            zip(self.layers, hops, strict=True)
        ):
            h = functional.relu(x) if place else x
            sums = h.new_zeros((count, h.shape[1]))
            sums = sums.index_add(0, dst, h.index_select(0, src) * weight.unsqueeze(1))
            x = layer.own(h[:count]) + layer.neighbours(sums)
        return x


def means(dst: torch.Tensor, count: int) -> torch.Tensor:
    """The weights of a mean over the edges of each destination."""
    return 1 / torch.bincount(dst, minlength=count).clamp(min=1)[dst].float()


def permutation(count: int, seed: int, epoch: int) -> torch.Tensor:
    """The order of an epoch, the same for all systems."""
    random = torch.Generator().manual_seed(1000 * seed + epoch)
    return torch.randperm(count, generator=random)


class Sampling:
    """The batches of an algorithm by a system."""

    def __init__(self, task: Task, options: argparse.Namespace) -> None:
        indptr, indices = (
            torch.from_dlpack(part) for part in (task.graph.indptr, task.graph.indices)
        )
        degrees = indptr.diff()
        weight = means(torch.arange(len(degrees)).repeat_interleave(degrees), len(degrees))
        ids = task.graph.edge_ids
        by_id = weight
        if ids is not None:
            by_id = torch.empty_like(weight)
            by_id[torch.from_dlpack(ids).long()] = weight
        self.graph = task.graph.with_data(edge_data={"w": by_id}).to(options.device)
        device = options.device
        self.eager = eager_torch.Graph(
            indptr.long().to(device), indices.long().to(device), weight.to(device)
        )
        self.task, self.options = task, options

    def batches(self, algorithm: str, system: str, seed: int, epoch: int) -> Iterator[Batch]:
        """One epoch; the seeds come in the same order, whoever samples."""
        if system == "torch":
            return self._by_torch(algorithm, seed, epoch)
        return self._by_us(algorithm, seed, epoch)

    def sampler(self, algorithm: str, seed: int) -> Any:
        """Our sampler of an algorithm with layers."""
        if algorithm == "GraphSAGE":
            return pgs.PGSampler(FANOUTS, seed=seed)
        rule = samplers.ladies if algorithm == "LADIES" else samplers.fastgcn
        return rule(nodes=[self.options.nodes] * 2, weight="w", seed=seed)

    def _order(self, seed: int, epoch: int) -> torch.Tensor:
        return self.task.train[permutation(len(self.task.train), seed, epoch)]

    def _by_us(self, algorithm: str, seed: int, epoch: int) -> Iterator[Batch]:
        sampler, order = self.sampler(algorithm, seed), self._order(seed, epoch)
        loader = DataLoader(self.graph, order, sampler, batch_size=self.options.batch)
        loader.set_epoch(epoch)
        for batch in loader:
            hops = []
            for block in batch.blocks:
                src, dst = block.coo()
                count = block.num_dst_nodes
                is_sage = algorithm == "GraphSAGE"
                weight = means(dst, count) if is_sage else block.edge_data["w"].float()
                hops.append((src, dst, weight, count))
            yield batch.input_nodes.long(), batch.output_nodes.long(), hops

    def _by_torch(self, algorithm: str, seed: int, epoch: int) -> Iterator[Batch]:
        torch.manual_seed(7919 * seed + epoch)
        for seeds in self._order(seed, epoch).split(self.options.batch):
            seeds = seeds.to(self.eager.indptr.device)
            sampled = (
                eager_torch.sage(self.eager, seeds, FANOUTS[::-1])
                if algorithm == "GraphSAGE"
                else eager_torch.ladies(self.eager, seeds, [self.options.nodes] * 2)
            )
            # Inputs are numbered as DGL's blocks are: the frontier first.
            hops: list[Hop] = []
            frontier = seeds
            for hop in sampled:
                order = torch.empty_like(frontier)
                if len(hops):
                    # The frontier of torch's is sorted; the one of ours is in order of arrival.
                    order = torch.searchsorted(hop.frontier, frontier)
                    place = torch.empty_like(order)
                    place[order] = torch.arange(len(order), device=order.device)
                    columns = place[hop.columns]
                else:
                    columns = hop.columns
                fresh = torch.unique(hop.rows)
                fresh = fresh[~torch.isin(fresh, frontier)]
                inputs = torch.cat([frontier, fresh])
                by_id = inputs.argsort()
                src = by_id[torch.searchsorted(inputs[by_id], hop.rows)]
                weight = hop.weight if hop.weight is not None else means(columns, len(frontier))
                hops.insert(0, (src, columns, weight.float(), len(frontier)))
                frontier = inputs
            yield frontier, seeds, hops


def measure(
    sampling: Sampling, name: str, algorithm: str, system: str, seed: int
) -> dict[str, Any]:
    """One run."""
    task, options = sampling.task, sampling.options
    device = torch.device(options.device)
    x, y = task.x.to(device), task.y.to(device)

    def train(model: Model, batches: Iterable[Batch]) -> None:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
        for inputs, seeds, hops in batches:
            loss = functional.cross_entropy(model(hops, x[inputs]), y[seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def fresh() -> Model:
        torch.manual_seed(seed)
        return Model(x.shape[1], int(y.max()) + 1).to(device)

    def settle() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    # Programs are compiled, and libraries loaded, by a step of an epoch that is not trained on.
    batches = sampling.batches(algorithm, system, seed, options.epochs)
    train(fresh(), itertools.islice(batches, 1))
    model = fresh()
    epochs = (sampling.batches(algorithm, system, seed, epoch) for epoch in range(options.epochs))
    start = settle()
    train(model, itertools.chain.from_iterable(epochs))
    seconds = settle() - start
    start = settle()
    for _ in sampling.batches(algorithm, system, seed, 0):
        pass
    alone = (settle() - start) * options.epochs
    graph = task.graph if device.type == "cpu" else task.graph.to(device)
    layers = [step for layer in model.layers for step in (layer, functional.relu)][:-1]
    features = pgs.Features.from_tensor(x)
    found = pgs.inference(layers, graph, features, progress=False).argmax(1) == y
    return {
        "graph": name,
        "algorithm": algorithm,
        "sampler": system,
        "seed": seed,
        "seconds": round(seconds, 4),
        "sampling": round(alone / seconds, 4),
        "accuracy": [round(float(found[task.test.to(device)].double().mean()), 5)],
    }


def run(
    options: argparse.Namespace,
    make: Callable[[Task, argparse.Namespace], Sampling] = Sampling,
    algorithms: Sequence[str] = ALGORITHMS,
    systems: Sequence[str] = SYSTEMS,
) -> list[dict[str, Any]]:
    """All runs, the systems in turns. CheckError where accuracies differ."""
    rows: list[dict[str, Any]] = []
    for name in options.graphs:
        task = words_of_debian() if name == "debian" else planted(options.planted)
        sampling = make(task, options)
        for algorithm in algorithms:
            turns = [(seed, system) for seed in range(options.seeds) for system in systems]
            bar = tqdm(turns, desc=f"{name}, {algorithm}", unit="run", leave=False)
            own = [measure(sampling, name, algorithm, system, seed) for seed, system in bar]
            for system in systems:
                of = [row for row in own if row["sampler"] == system]
                seconds = sum(row["seconds"] for row in of) / len(of)
                accuracy = sum(row["accuracy"][-1] for row in of) / len(of)
                print(f"  {name:8} {algorithm:10} {system:10} {seconds:7.2f} s {accuracy:7.2%}")
            if options.seeds > 1 and (excess := apart(own, systems, options.most)) > 1:
                raise CheckError(
                    f"{name}, {algorithm}: accuracies of the samplers are {excess:.1f} times as "
                    "far from each other as is allowed"
                )
            rows += own
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0, or 1 after a failed check."""
    return main_of("gsampler_training", _parser(), run, arguments)


def main_of(
    name: str,
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], list[dict[str, Any]]],
    arguments: Sequence[str] | None,
) -> int:
    """Runs a program that trains with samplers of layers too, and keeps the record."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(given)
    if options.quick:
        options.graphs, options.planted, options.seeds, options.epochs = ["planted"], 2000, 2, 1
        # Models that have hardly learned differ by more.
        options.batch, options.nodes, options.most = 256, 256, 1.0
    record = recorded(f"benchmarks.research.{name}", given, options, run)
    if record is None:
        return 1
    report.keep(record, options.out, name, options.device)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("benchmarks.research.gsampler_training", __doc__, 5)
    parser.add_argument("--nodes", type=int, default=4000, help="rows of a hop of LADIES")
    return parser


if __name__ == "__main__":
    sys.exit(main())
