"""Training and testing of both models on the Debian data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm.auto import tqdm

from pygsampler.quickstart.model import MLP, GraphSAGE
from pygsampler.torch import DataLoader

if TYPE_CHECKING:
    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._graph.graph import Graph
    from pygsampler.datasets import Debian

FANOUTS = (10, 10)
BATCH_SIZE = 1024
LEARNING_RATE = 5e-3
# Without gradients there is room for larger batches.
TEST_BATCH_SIZE = 4096


@dataclass
class Outcome:
    """The outcome of training a model. Accuracies are parts of 1.

    Attributes
    ----------
    validation : list of float
        Accuracy after each epoch.
    test : float
        Accuracy after the last one, on packages that were used for nothing else.
    num_edges : int
        Edges sampled for training, 0 for a model that needs none.
    seconds : float
        Time of the training loops, without validation.
    """

    validation: list[float] = field(default_factory=list)
    test: float = 0.0
    num_edges: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Run:
    """Both outcomes, and how fast edges are sampled when nothing else is done with them."""

    sage: Outcome
    mlp: Outcome
    edges_per_second: float


class Batches(Protocol):
    """An iterable of batches, used once per epoch, with a length."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


class Shuffled:
    """Batches of ids in a new order in each epoch, for the model without a graph."""

    def __init__(self, ids: Tensor, batch_size: int) -> None:
        self.ids = ids
        self.batch_size = batch_size

    def __len__(self) -> int:
        return -(-len(self.ids) // self.batch_size)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(torch.split(self.ids[torch.randperm(len(self.ids))], self.batch_size))


# A batch's scores, classes and number of sampled edges.
Forward = Callable[[Any], tuple[Tensor, Tensor, int]]


def run(
    dataset: Debian,
    graph: Graph,
    *,
    epochs: int = 8,
    seed: int = 0,
    threads: int = 1,
    progress: bool = True,
) -> Run:
    """Trains and tests GraphSAGE and the MLP, with a bar for each unless not ``progress``.

    The result depends on ``seed``, and with more than one of torch's ``threads`` on the order in
    which they add up. One is the default since these models are small: a second one brings a fifth
    on idle cores, but on busy ones torch's threads wait for each other many times as long as they
    work. The sampler runs on the other cores at the same time.
    """
    words = torch.from_numpy(dataset.words())
    labels = torch.from_numpy(dataset.labels)
    with _torch(seed, threads):
        sage = GraphSAGE(dataset.num_features, dataset.num_classes)

        def with_graph(batch: MiniBatch) -> tuple[Tensor, Tensor, int]:
            scores = sage(batch.blocks, batch.words)[batch.output_index]
            edges = sum(block.num_edges for block in batch.blocks)
            return scores, batch.y, edges

        read: dict[str, Any] = {"features": {"words": words}, "labels": labels, "seed": seed}

        def tests(ids: Any) -> DataLoader[MiniBatch]:
            # Sampled as in training; a new loader begins at epoch 0, so accuracies can be compared.
            return DataLoader(graph, ids, FANOUTS, batch_size=TEST_BATCH_SIZE, **read)

        outcome = fit(
            "GraphSAGE",
            sage,
            with_graph,
            DataLoader(graph, dataset.train, FANOUTS, batch_size=BATCH_SIZE, shuffle=True, **read),
            epochs,
            lambda: accuracy(sage, with_graph, tests(dataset.val)),
            progress,
        )
        outcome.test = accuracy(sage, with_graph, tests(dataset.test))

    with _torch(seed, threads):
        mlp = MLP(dataset.num_features, dataset.num_classes)
        train, val, test = (
            torch.from_numpy(ids) for ids in (dataset.train, dataset.val, dataset.test)
        )

        def mlp_batch(ids: Tensor) -> tuple[Tensor, Tensor, int]:
            return mlp(words[ids]), labels[ids], 0

        baseline = fit(
            "MLP",
            mlp,
            mlp_batch,
            Shuffled(train, BATCH_SIZE),
            epochs,
            lambda: accuracy(mlp, mlp_batch, torch.split(val, TEST_BATCH_SIZE)),
            progress,
        )
        baseline.test = accuracy(mlp, mlp_batch, torch.split(test, TEST_BATCH_SIZE))
    return Run(outcome, baseline, edges_per_second(graph, seed=seed))


def fit(
    name: str,
    model: nn.Module,
    forward: Forward,
    batches: Batches,
    epochs: int,
    validate: Callable[[], float],
    progress: bool,
) -> Outcome:
    """Trains ``model`` for some epochs; the bar shows the accuracy that ``validate`` returns."""
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    outcome = Outcome()
    total = epochs * len(batches)
    with tqdm(total=total, desc=f"{name:9}", unit="batch", disable=not progress) as bar:
        for epoch in range(1, epochs + 1):
            model.train()
            start = time.perf_counter()
            for batch in batches:
                scores, classes, edges = forward(batch)
                loss = F.cross_entropy(scores, classes)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                outcome.num_edges += edges
                bar.update()
            outcome.seconds += time.perf_counter() - start
            outcome.validation.append(validate())
            bar.set_postfix_str(f"epoch {epoch}, validation {outcome.validation[-1]:.1%}")
    return outcome


def accuracy(model: nn.Module, forward: Forward, batches: Iterable[Any]) -> float:
    """The part of the batches' outputs whose class has the highest score."""
    model.eval()
    right = total = 0
    with torch.no_grad():
        for batch in batches:
            scores, classes, _ = forward(batch)
            right += int((scores.argmax(1) == classes).sum())
            total += len(classes)
    return right / total


def edges_per_second(graph: Graph, *, seed: int = 0, seconds: float = 0.5) -> float:
    """Measures how fast batches come out of the loader while nothing else is done with them.

    Iterates over all nodes of the graph, as batches of training, for at least ``seconds``.
    """
    loader = DataLoader(
        graph, torch.arange(graph.num_nodes), FANOUTS, batch_size=BATCH_SIZE, seed=seed
    )
    edges = 0
    start = time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        edges += sum(block.num_edges for batch in loader for block in batch.blocks)
    return edges / passed


@contextmanager
def _torch(seed: int, threads: int) -> Iterator[None]:
    """Seeds torch's CPU generator and sets its number of threads, and gives both back."""
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
