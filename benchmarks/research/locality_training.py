"""GraphSAGE, FastGCN and GraphSAINT by GNNSampler's locality, in turns with their vanilla forms."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import pygsampler as pgs
from pygsampler import research, samplers
from pygsampler.torch import DataLoader

from .locality_graphs import Case

HIDDEN = 64
# Fanouts of the evaluation, with uniform neighbors, of every model.
EVALUATED = [10, 10]
# Sizes of the authors' configurations, and n and s of the paper's table 2.
SAGE_FANOUTS, SAGE_BATCH, SAGE_MARKS = [25, 10], 512, (4, 0.87)
LAYER_NODES, LAYER_BATCH = [100, 100], 256
SAINT_BUDGET, SAINT_MARKS = 4000, (3, 0.77)
SWEEP = [
    *((4, s) for s in (0.5, 0.77, 0.87, 0.95)),
    *((n, 0.87) for n in (2, 3, 5, 6)),
]


class Model(nn.Module):
    """Two layers of a node's own row and its neighbors' mean, by weights where there are any."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.own = nn.ModuleList([nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, classes)])
        self.heard = nn.ModuleList([nn.Linear(features, HIDDEN), nn.Linear(HIDDEN, classes)])

    def forward(self, batch: Any) -> Tensor:
        """Returns scores [destinations of the last block, classes]."""
        x, subgraph = batch.x, is_subgraph(batch)
        # A subgraph is one block, for both layers.
        for i, block in enumerate([batch.blocks[0], batch.blocks[-1]]):
            # Projected first: a row is read by several destinations.
            rows, weights = self.heard[i](x), block.edge_data.get("w")
            if weights is None:
                heard = block.mean(rows)
            else:
                # GraphSAINT's values divide.
                weights = 1 / weights if subgraph else weights
                total = block.weighted_sum(torch.ones_like(rows[:, :1]), weights)
                heard = block.weighted_sum(rows, weights) / total.clamp(min=1e-9)
            x = self.own[i](x[: block.num_dst_nodes]) + heard
            x = functional.relu(x) if i == 0 else x
        scores: Tensor = x
        return scores


class Training:
    """A model that is trained on the batches of one sampler."""

    def __init__(self, case: Case, graph: pgs.Graph, sampler: Any, batches: int) -> None:
        self.graph, self.sampler, self.val = graph, sampler, case.val
        self.x, self.labels = torch.from_numpy(case.x), torch.from_numpy(case.labels)
        order = np.random.default_rng(0).permutation(case.train)
        self.seeds = np.array_split(order, batches)
        self.trained = torch.zeros(len(self.labels), dtype=torch.bool)
        self.trained[torch.from_numpy(case.train)] = True
        torch.manual_seed(0)
        self.model = Model(self.x.shape[1], int(self.labels.max()) + 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.options: dict[str, Any] = {"features": {"x": self.x}, "device": "cpu"}
        size = -(-len(case.train) // batches)
        self.loader = DataLoader(
            graph, case.train, sampler, batch_size=size, shuffle=True, **self.options
        )

    def timed(self, epoch: int) -> dict[str, float]:
        """Returns seconds of one epoch: sampled alone, its features read alone, and trained on."""
        begin = time.perf_counter()
        many = list(self.sampler.sample_many(self.graph, self.seeds, epoch=epoch))
        sampled = time.perf_counter()
        rows = [input_nodes(batch.torch()).long() for batch in many]
        ready = time.perf_counter()
        for ids in rows:
            self.x[ids]
        read = time.perf_counter()
        self.train()
        end = time.perf_counter()
        return {"sample": sampled - begin, "gather": read - ready, "epoch": end - read}

    def train(self) -> None:
        """Trains for one epoch."""
        for batch in self.loader:
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def loss(self, batch: Any) -> Tensor:
        """Returns the batch's loss: of seeds, or of a subgraph's trained nodes by their norms."""
        scores = self.model(batch)
        if not is_subgraph(batch):
            expected = self.labels[batch.output_nodes.long()]
            return functional.cross_entropy(scores[batch.output_index], expected)
        nodes = batch.nodes.long()
        mine = self.trained[nodes]
        share = 1 / batch.extra["node_norm"][mine]
        each = functional.cross_entropy(scores[mine], self.labels[nodes[mine]], reduction="none")
        return (each * share).sum() / share.sum().clamp(min=1e-9)

    def accuracy(self) -> float:
        """Returns the part of the validation nodes that is right, with uniform neighbors."""
        right = 0
        options = {"batch_size": 4096, "seed": 0, **self.options}
        with torch.no_grad():
            for batch in DataLoader(self.graph, self.val, EVALUATED, **options):
                expected = self.labels[batch.output_nodes.long()]
                scores = self.model(batch)[batch.output_index]
                right += int((scores.argmax(1) == expected).sum())
        return right / len(self.val)


def is_subgraph(batch: Any) -> bool:
    """True if the batch is a subgraph, and not blocks."""
    return hasattr(batch, "nodes")


def input_nodes(batch: Any) -> Any:
    """Returns the nodes whose features a batch reads."""
    return batch.nodes if is_subgraph(batch) else batch.input_nodes


def in_turns(contenders: Sequence[Training], epochs: int) -> list[dict[str, float]]:
    """Trains all for as many epochs, one epoch each in turn; ratios are to the first's.

    Other work on the machine meets all alike, since the order is another one in each round.
    """
    rounds: list[dict[int, dict[str, float]]] = []
    for number in range(1, epochs + 1):
        turns = list(range(len(contenders)))
        turns = turns[number % len(turns) :] + turns[: number % len(turns)]
        rounds.append({i: contenders[i].timed(number) for i in turns})
    rows = []
    for i, contender in enumerate(contenders):
        row = {"accuracy": contender.accuracy()}
        for what in ("sample", "gather", "epoch"):
            row[f"{what}_s"] = median(found[i][what] for found in rounds)
            row[f"{what}_ratio"] = median(found[i][what] / found[0][what] for found in rounds)
        row["training_s"] = sum(found[i]["epoch"] for found in rounds)
        rows.append(row)
    return rows


def marks(graph: pgs.Graph, n: int, s: float) -> pgs.Graph:
    """Returns the graph with the marks of Algorithm 5 for n and s."""
    scores = research.locality_scores(graph, measure="published", min_neighbors=n, threshold=s)
    return graph.with_data(node_data={"locality": scores})


def best_quarter(graph: pgs.Graph) -> pgs.Graph:
    """Returns the graph with marks for the quarter with the best repaired scores."""
    return graph.with_data(node_data={"locality": research.locality_scores(graph, share=0.25)})


def marked_share(graph: pgs.Graph) -> float:
    """Returns the part of the nodes that are marked."""
    return float((graph.ndata["locality"].numpy() > 0).mean())


def at_random(marked: pgs.Graph) -> pgs.Graph:
    """Returns the graph with as many marks, on other nodes: what locality adds is what differs."""
    scores = np.random.default_rng(0).permutation(marked.ndata["locality"].numpy())
    return marked.with_data(node_data={"locality": scores})


def models(case: Case) -> Iterator[tuple[str, list[tuple[str, float | None, Training]]]]:
    """Yields the paper's models, the vanilla form first: way, marked share, training."""
    graph = case.graph()

    def by_marks(published: pgs.Graph, sampler: Any, count: int) -> list[Any]:
        return [
            (way, marked_share(each), Training(case, each, sampler, count))
            for way, each in (
                ("published", published),
                ("as many at random", at_random(published)),
                ("best quarter", best_quarter(graph)),
            )
        ]

    count = -(-len(case.train) // SAGE_BATCH)
    vanilla: Any = samplers.graphsage(fanouts=SAGE_FANOUTS, seed=0)
    marked: Any = research.locality(fanouts=SAGE_FANOUTS, hard=True, seed=0)
    base = ("vanilla", None, Training(case, graph, vanilla, count))
    yield "GraphSAGE", [base, *by_marks(marks(graph, *SAGE_MARKS), marked, count)]
    count = -(-len(case.train) // LAYER_BATCH)
    vanilla = samplers.fastgcn(nodes=LAYER_NODES, seed=0)
    ways: list[Any] = [("vanilla", None, Training(case, graph, vanilla, count))]
    for reuse in (0.0, 0.5):
        layers = research.locality_layers(nodes=LAYER_NODES, reuse=reuse, seed=0)
        ways.append((f"by degree, reuse {reuse:g}", None, Training(case, graph, layers, count)))
    yield "FastGCN", ways
    # An epoch has as many draws as the graph has nodes.
    count = -(-graph.num_nodes // SAINT_BUDGET)
    vanilla, marked = saint()
    base = ("vanilla", None, Training(case, all_marked(graph), vanilla, count))
    yield "GraphSAINT", [base, *by_marks(marks(graph, *SAINT_MARKS), marked, count)]


def all_marked(graph: pgs.Graph) -> pgs.Graph:
    """Returns the graph with a mark for each node."""
    return graph.with_data(node_data={"locality": np.ones(graph.num_nodes, np.float32)})


def saint() -> tuple[Any, Any]:
    """Returns the paper's vanilla node sampler, which is uniform, and the one by marks."""
    uniform = research.locality_saint(budget=SAINT_BUDGET, beta=1.0, seed=0)
    return uniform, research.locality_saint(budget=SAINT_BUDGET, hard=True, seed=0)


def training(case: Case, epochs: int) -> Iterator[dict[str, Any]]:
    """Yields a row for each model and way, of as many epochs of each."""
    for model, ways in models(case):
        rows = in_turns([each for _, _, each in ways], epochs)
        for (way, marked, _), row in zip(ways, rows, strict=True):
            yield {"graph": case.name, "model": model, "way": way, "marked": marked, **row}


def sweep(case: Case, epochs: int) -> Iterator[dict[str, Any]]:
    """Yields a row for each n and s of the marks, after the vanilla form's, of two models."""
    graph = case.graph()
    uniform, drawn = saint()
    sage: Any = samplers.graphsage(fanouts=SAGE_FANOUTS, seed=0)
    by_marks = research.locality(fanouts=SAGE_FANOUTS, hard=True, seed=0)
    marked = [marks(graph, *each) for each in SWEEP]
    for model, base, vanilla, sampler, count in (
        ("GraphSAGE", graph, sage, by_marks, -(-len(case.train) // SAGE_BATCH)),
        ("GraphSAINT", all_marked(graph), uniform, drawn, -(-graph.num_nodes // SAINT_BUDGET)),
    ):
        contenders = [Training(case, each, sampler, count) for each in marked]
        rows = in_turns([Training(case, base, vanilla, count), *contenders], epochs)
        about = {"graph": case.name, "model": model}
        yield {**about, "n": None, "s": None, "marked": None, **rows[0]}
        for (n, s), each, row in zip(SWEEP, marked, rows[1:], strict=True):
            yield {**about, "n": n, "s": s, "marked": marked_share(each), **row}
