"""HetGNN on the Debian packages with their types, in plain PyTorch, beside GraphSAGE without types.

Predicts the section of the archive that each of 63,666 packages belongs to (Zhang et al.,
"Heterogeneous Graph Neural Network", 2019): a walk with restarts from each package collects
neighbors, those of each type that it met most often are summarised by a Bi-LSTM, and attention
over the types tells how much of each is heard (sections 3.1 to 3.3; the loss is the labels', not
that of links). GraphSAGE has the edges between packages alone, ten and ten of them.

    python examples/hetgnn.py --epochs 8

Takes some two minutes on two cores. Prints the loss, the neighbors and the seconds of each epoch,
and the accuracy on the validation packages: about 78 % of both, HetGNN with a third of the
neighbors.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets
from pygsampler.quickstart.model import GraphSAGE
from pygsampler.torch import DataLoader

HIDDEN = 128
# The number of neighbors of each type that are encoded.
TOP = {"package": 10, "source": 5, "maintainer": 5}


class Neighbors(nn.Module):
    """Encoder of the neighbors of a type: the mean of a Bi-LSTM over them, most visited first."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(HIDDEN, HIDDEN // 2, batch_first=True, bidirectional=True)

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        """rows: [seeds, top, HIDDEN], those that are ``there`` [seeds, top] -> [seeds, HIDDEN]."""
        said, _ = self.lstm(rows)
        return (said * there[..., None]).sum(1) / there.sum(1, keepdim=True).clamp(min=1)


class Attention(nn.Module):
    """Over the types, and the node itself: the softmax of LeakyReLU(u [row, own row])."""

    def __init__(self) -> None:
        super().__init__()
        self.u = nn.Linear(2 * HIDDEN, 1, bias=False)

    def forward(self, own: Tensor, heard: Tensor, there: Tensor) -> Tensor:
        """own: [seeds, HIDDEN], heard: [seeds, types, HIDDEN] -> [seeds, HIDDEN].

        ``there`` [seeds, types]: whether a seed has neighbors of the type.
        """
        rows = torch.cat([own[:, None], heard], 1)
        beside = own[:, None].expand_as(rows)
        score = functional.leaky_relu(self.u(torch.cat([rows, beside], 2))[..., 0])
        none = functional.pad(~there, (1, 0), value=False)
        share = score.masked_fill(none, -torch.inf).softmax(1)
        return (share[..., None] * rows).sum(1)


class HetGNN(nn.Module):
    """The words of packages, and a learned row for every other node, are what is heard."""

    def __init__(self, graph: pgs.Graph, words: int, classes: int) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(words + 1, HIDDEN, mode="sum", padding_idx=words)
        self.rows = nn.ModuleDict(
            {kind: nn.Embedding(graph.num_nodes[kind], HIDDEN) for kind in TOP if kind != "package"}
        )
        # Rows of rare words and nodes begin near 0, so that they add no noise.
        for table in (self.words, *self.rows.values()):
            nn.init.normal_(table.weight, std=0.1)
        self.neighbors = nn.ModuleDict({kind: Neighbors() for kind in TOP})
        self.attention = Attention()
        self.out = nn.Linear(HIDDEN, classes)

    def forward(self, batch: Any) -> Tensor:
        """Scores [seeds, classes]."""
        content = {"package": self.words(batch.words["package"]).relu()}
        for kind, table in self.rows.items():
            rows = table(batch.input_nodes[kind])
            # Half of them are not there: a source of few packages would know their labels by heart.
            content[kind] = rows * functional.dropout(
                rows.new_ones(len(rows), 1), 0.5, self.training
            )
        own = content["package"][batch.output_index["package"]]
        there = {kind: counts > 0 for kind, counts in batch.counts.items()}
        rows = batch.neighbor_rows(content)
        heard = [neighbors(rows[kind], there[kind]) for kind, neighbors in self.neighbors.items()]
        found = torch.stack([there[kind].any(1) for kind in self.neighbors], 1)
        h = self.attention(own, torch.stack(heard, 1), found)
        return self.out(functional.dropout(h.relu(), 0.5, self.training))


class Untyped(nn.Module):
    """GraphSAGE of the quickstart: two layers over the words of packages."""

    def __init__(self, words: int, classes: int) -> None:
        super().__init__()
        self.model = GraphSAGE(words, classes)

    def forward(self, batch: Any) -> Tensor:
        """Scores [seeds, classes]."""
        scores: Tensor = self.model(batch.blocks, batch.words)
        return scores


def package(rows: Any) -> Tensor:
    """Returns the packages' part of values by node type, or the value of the one type."""
    return rows if isinstance(rows, Tensor) else rows["package"]


def heard(batch: Any) -> int:
    """Returns the number of neighbors of a batch."""
    if hasattr(batch, "blocks"):
        return int(batch.num_edges)
    return sum(int((counts > 0).sum()) for counts in batch.counts.values())


def train(model: nn.Module, loader: DataLoader, held_out: DataLoader, epochs: int) -> float:
    """Validation accuracy after ``epochs`` passes over the training packages."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(epochs):
        start, total, edges = time.perf_counter(), 0.0, 0
        model.train()
        for batch in loader:
            loss = functional.cross_entropy(model(batch), package(batch.y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, edges = total + loss.item(), edges + heard(batch)
        seconds = time.perf_counter() - start
        print(
            f"epoch {epoch}: loss {total / len(loader):.3f}, {edges:,} neighbors, {seconds:.1f} s"
        )
    model.eval()
    right = count = 0
    with torch.no_grad():
        for batch in held_out:
            y = package(batch.y)
            right, count = right + int((model(batch).argmax(1) == y).sum()), count + len(y)
    return right / count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    data = datasets.debian()
    sizes = data.num_features, data.num_classes
    words, labels = torch.from_numpy(data.words()), torch.from_numpy(data.labels)

    def accuracy(name: str, graph: Any, sampler: Any, model: nn.Module) -> None:
        typed = not graph.is_homogeneous

        def by_type(values: Any) -> Any:
            return {"package": values} if typed else values

        options: dict[str, Any] = {"features": {"words": by_type(words)}, "labels": by_type(labels)}
        loader = DataLoader(
            graph, by_type(data.train), sampler, batch_size=1024, shuffle=True, **options
        )
        held_out = DataLoader(graph, by_type(data.val), sampler, batch_size=2048, **options)
        found = train(model, loader, held_out, arguments.epochs)
        print(f"validation accuracy of {name}: {found:.1%}")

    torch.manual_seed(arguments.seed)
    print("GraphSAGE:")
    accuracy("GraphSAGE", data.graph(), [10, 10], Untyped(*sizes))
    torch.manual_seed(arguments.seed)
    print("HetGNN:")
    typed = datasets.debian(hetero=True)
    walks = pgs.walks.RestartNeighbors(None, TOP, seed=arguments.seed)
    accuracy("HetGNN", typed, walks, HetGNN(typed, *sizes))


if __name__ == "__main__":
    main()
