"""GraphSAGE on the Debian packages in plain PyTorch, sampled and trained on a GPU.

Predicts the section of the archive that each of 63,666 packages belongs to. The loader keeps
several batches in flight on the GPU, beside the training step. Without a GPU the same script
samples and trains on the CPU, and sees the same batches.

    python examples/graphsage_cuda.py --epochs 8
    python examples/graphsage_cuda.py --device cpu
"""

from __future__ import annotations

import argparse
import time

import torch
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets
from pygsampler.torch import DataLoader


class SAGEConv(torch.nn.Module):
    """A node's new state from its own and the mean of its sampled in-neighbors."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.own = torch.nn.Linear(inputs, outputs)
        self.others = torch.nn.Linear(inputs, outputs, bias=False)

    def forward(self, block, h: torch.Tensor) -> torch.Tensor:
        # The narrower side goes over the edges.
        return self.own(h[: block.num_dst_nodes]) + block.mean(self.others(h))


class GraphSAGE(torch.nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = SAGEConv(features, hidden)
        self.second = SAGEConv(hidden, classes)

    def forward(self, blocks, x: torch.Tensor) -> torch.Tensor:
        h = functional.dropout(functional.relu(self.first(blocks[0], x)), 0.5, self.training)
        return self.second(blocks[1], h)


def scores(model: GraphSAGE, batch) -> torch.Tensor:
    """A row for each seed of the batch, also for one that it has twice."""
    return model(batch.blocks, batch.x)[batch.output_index]


def load_graph(data: datasets.Debian) -> pgs.Graph:
    """The relations of packages, in both directions, on the CPU."""
    src, dst = torch.from_numpy(data.src), torch.from_numpy(data.dst)
    both = torch.cat([src, dst]), torch.cat([dst, src])
    return pgs.Graph.from_coo(*both, num_nodes=data.num_nodes)


def train(data: datasets.Debian, device: str, epochs: int, seed: int) -> float:
    """Test accuracy after ``epochs`` passes over the training packages."""
    graph = load_graph(data).to(device)  # .pin() instead leaves it in page-locked host memory
    features = torch.from_numpy(data.features()).to(device)
    labels = torch.from_numpy(data.labels).to(device).long()
    given = {"features": {"x": features}, "labels": labels, "seed": seed}
    loader = DataLoader(graph, data.train, [10, 10], batch_size=1024, shuffle=True, **given)
    model = GraphSAGE(data.num_features, 128, data.num_classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        # Losses stay where they are until the end: reading one waits for the GPU.
        start, losses = time.perf_counter(), []
        model.train()
        for batch in loader:
            loss = functional.cross_entropy(scores(model, batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        mean = torch.stack(losses).mean().item()
        print(f"epoch {epoch}: loss {mean:.3f}, {time.perf_counter() - start:.2f} s")

    model.eval()
    right = torch.zeros((), dtype=torch.int64, device=device)
    with torch.no_grad():
        for batch in DataLoader(graph, data.test, [10, 10], batch_size=4096, **given):
            right += (scores(model, batch).argmax(1) == batch.y).sum()
    return right.item() / len(data.test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu or cuda"
    )
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    accuracy = train(datasets.debian(), arguments.device, arguments.epochs, arguments.seed)
    print(f"test accuracy: {accuracy:.1%}")


if __name__ == "__main__":
    main()
