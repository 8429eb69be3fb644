"""GraphSAGE on the Debian packages with PyG: its layers and Data, our NeighborLoader.

Predicts the section of the archive that each of 63,666 packages belongs to. One line of the
training differs from the same with PyG's own loader, which would need pyg-lib or torch-sparse: the
import. The evaluation takes all neighbors of all packages, by ``pygsampler.inference``.

    python examples/graphsage_pyg.py --epochs 8

Takes about a minute on two cores. Prints the loss and the seconds of each epoch, and at the end the
accuracy on the validation packages: about 77 %, and about 68 % after two epochs.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.utils import trim_to_layer

import pygsampler
from pygsampler import datasets
from pygsampler.pyg import NeighborLoader  # from torch_geometric.loader import NeighborLoader


class GraphSAGE(torch.nn.Module):
    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([SAGEConv(features, hidden), SAGEConv(hidden, classes)])

    def forward(self, batch: Data) -> torch.Tensor:
        h, edge_index = batch.x, batch.edge_index
        for number, layer in enumerate(self.layers):
            # A layer needs only what the layers after it will read.
            h, edge_index, _ = trim_to_layer(
                number, batch.num_sampled_nodes, batch.num_sampled_edges, h, edge_index
            )
            h = layer(h, edge_index)
            if layer is not self.layers[-1]:
                h = functional.dropout(functional.relu(h), 0.5, self.training)
        return h[: batch.batch_size]


def load_graph() -> tuple[Data, datasets.Debian]:
    debian = datasets.debian()
    edges = torch.stack([torch.from_numpy(debian.src), torch.from_numpy(debian.dst)])
    data = Data(
        x=torch.from_numpy(debian.features()),
        y=torch.from_numpy(debian.labels),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
    )
    return data, debian


def train(data: Data, debian: datasets.Debian, epochs: int) -> float:
    """Validation accuracy after ``epochs`` passes over the training packages."""
    hops = [10, 10]
    seeds = torch.from_numpy(debian.train)
    loader = NeighborLoader(data, hops, input_nodes=seeds, batch_size=1024, shuffle=True)
    model = GraphSAGE(debian.num_features, 128, debian.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        start, total = time.perf_counter(), 0.0
        model.train()
        for batch in loader:
            loss = functional.cross_entropy(model(batch), batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, {seconds:.1f} s")

    # Both layers of all packages, from all of their neighbors.
    graph, (first, second) = pygsampler.Graph.from_pyg(data), model.layers
    scores = pygsampler.inference([first, functional.relu, second], graph, data.x)
    held_out = torch.from_numpy(debian.val)
    return float((scores[held_out].argmax(1) == data.y[held_out]).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    data, debian = load_graph()
    accuracy = train(data, debian, arguments.epochs)
    print(f"validation accuracy: {accuracy:.1%}")


if __name__ == "__main__":
    main()
