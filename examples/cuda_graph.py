"""GraphSAGE on the Debian packages: each training step is one CUDA graph, the sample included.

Predicts the section of the archive that each of 63,666 packages belongs to, as graphsage_cuda.py
does. Needs a GPU.

    python examples/cuda_graph.py --epochs 8
"""

from __future__ import annotations

import argparse
import time

import torch
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets
from pygsampler.torch import DataLoader, capture


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

    def forward(self, batch) -> torch.Tensor:
        first, second = batch.blocks
        h = functional.relu(self.first(first, batch.x))
        h = self.second(second, functional.dropout(h, 0.5, self.training))
        return h.index_select(0, batch.output_index)  # a row for each seed


def train(data: datasets.Debian, epochs: int, seed: int) -> float:
    """Test accuracy after ``epochs`` passes over the training packages."""
    src, dst = torch.from_numpy(data.src), torch.from_numpy(data.dst)
    both = torch.cat([src, dst]), torch.cat([dst, src])
    graph = pgs.Graph.from_coo(*both, num_nodes=data.num_nodes).to("cuda")
    features = torch.from_numpy(data.features()).cuda()
    labels = torch.from_numpy(data.labels).cuda().long()
    given = {"features": {"x": features}, "labels": labels, "seed": seed}
    loader = DataLoader(
        graph, data.train, [10, 10], batch_size=1024, shuffle=True, static=True, **given
    )
    torch.manual_seed(seed)
    model = GraphSAGE(data.num_features, 128, data.num_classes).cuda()
    # capturable: what counts its steps is on the GPU.
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, capturable=True, fused=True)

    def step(batch) -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        return loss

    train_epoch = capture(step, loader)
    for epoch in range(epochs):
        start = time.perf_counter()
        mean = train_epoch.run().mean().item()
        print(f"epoch {epoch}: loss {mean:.3f}, {time.perf_counter() - start:.3f} s")

    model.eval()
    right = torch.zeros((), dtype=torch.int64, device="cuda")
    with torch.no_grad():
        for batch in DataLoader(graph, data.test, [10, 10], batch_size=4096, **given):
            right += (model(batch).argmax(1) == batch.y).sum()
    return right.item() / len(data.test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(1, "expected a GPU that torch can use, found none\n")
    accuracy = train(datasets.debian(), options.epochs, options.seed)
    print(f"test accuracy: {100 * accuracy:.1f}%")


if __name__ == "__main__":
    main()
