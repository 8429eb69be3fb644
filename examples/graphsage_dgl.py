"""GraphSAGE on the Debian packages with DGL: its layers, its DataLoader, our sampler.

Predicts the section of the archive that each of 63,666 packages belongs to, from the words of
its description and from the packages that it is related to. Two lines differ from the same
training with DGL's own sampler: they have DGL's beside them.

    python examples/graphsage_dgl.py --epochs 8
"""

from __future__ import annotations

import argparse
import time

import dgl
import numpy
import torch
from dgl.nn import SAGEConv
from torch.nn import functional

from pygsampler import datasets
from pygsampler.dgl import PGSampler  # from dgl.dataloading import NeighborSampler


class GraphSAGE(torch.nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = SAGEConv(features, hidden, "mean")
        self.second = SAGEConv(hidden, classes, "mean")

    def forward(self, blocks: list[dgl.DGLGraph], x: torch.Tensor) -> torch.Tensor:
        h = functional.dropout(functional.relu(self.first(blocks[0], x)), 0.5, self.training)
        return self.second(blocks[1], h)


def load_graph() -> tuple[dgl.DGLGraph, datasets.Debian]:
    data = datasets.debian()
    src, dst = torch.from_numpy(data.src), torch.from_numpy(data.dst)
    g = dgl.graph((torch.cat([src, dst]), torch.cat([dst, src])), num_nodes=data.num_nodes)
    g.ndata["words"] = torch.from_numpy(data.features())
    g.ndata["label"] = torch.from_numpy(data.labels)
    return g, data


def train(g: dgl.DGLGraph, data: datasets.Debian, epochs: int) -> float:
    """Test accuracy after ``epochs`` passes over the training packages."""
    sampler = PGSampler([10, 10])  # NeighborSampler([10, 10])
    options = {"batch_size": 1024, "shuffle": True}
    loader = dgl.dataloading.DataLoader(g, torch.from_numpy(data.train), sampler, **options)
    model = GraphSAGE(data.num_features, 128, data.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        start, total = time.perf_counter(), 0.0
        model.train()
        for _, _, blocks in loader:
            logits = model(blocks, blocks[0].srcdata["words"])
            loss = functional.cross_entropy(logits, blocks[-1].dstdata["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, {seconds:.1f} s")

    model.eval()
    test = dgl.dataloading.DataLoader(g, torch.from_numpy(data.test), sampler, batch_size=4096)
    with torch.no_grad():
        right = sum(
            (model(blocks, blocks[0].srcdata["words"]).argmax(1) == blocks[-1].dstdata["label"])
            .sum()
            .item()
            for _, _, blocks in test
        )
    return right / len(data.test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    dgl.seed(arguments.seed)
    numpy.random.seed(arguments.seed)  # DGL's DataLoader shuffles by NumPy.
    g, data = load_graph()
    accuracy = train(g, data, arguments.epochs)
    print(f"test accuracy: {accuracy:.1%}")


if __name__ == "__main__":
    main()
