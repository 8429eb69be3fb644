"""PyG's GraphSAGE on a graph, features and labels that stay in one file, which is mapped.

PyG's stores stand for them, so nothing is loaded before a batch needs it, and all may be larger
than the memory. Batches have their edges as an EdgeIndex, by which PyG's layers add up by segments.

    python examples/graph_file_pyg.py --path debian.pgs

Prints the loss and the seconds of each epoch, and at the end the accuracy on the validation
packages: about 67 % after two epochs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from torch.nn import functional
from torch_geometric.nn import GraphSAGE

from pygsampler import Features, Graph, datasets
from pygsampler.pyg import FeatureStore, GraphStore, NeighborLoader


def write(path: Path) -> None:
    """Builds the graph and writes its file, which is done once."""
    data = datasets.debian()
    graph = data.graph().with_data(
        node_data={"x": data.features("float16"), "y": data.labels},
    )
    graph.save(path, arrays={"train": data.train, "val": data.val})


def train(path: Path, epochs: int) -> float:
    """Trains, as every run does; returns the validation accuracy."""
    graph = Graph.open(path)
    store = FeatureStore({name: Features.open(path, name) for name in ("x", "y")})
    stores, hops = (store, GraphStore(graph)), [10, 10]
    seeds, held_out = (graph.file_arrays[name].torch() for name in ("train", "val"))

    def batches(seeds: torch.Tensor, **options):
        return NeighborLoader(stores, hops, seeds, edge_index="edge_index", **options)

    width, classes = graph.ndata["x"].shape[1], int(graph.ndata["y"].numpy().max()) + 1
    model = GraphSAGE(width, 128, len(hops), classes, dropout=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    def logits(batch) -> torch.Tensor:
        out = model(
            batch.x.float(),
            batch.edge_index,
            num_sampled_nodes_per_hop=batch.num_sampled_nodes,
            num_sampled_edges_per_hop=batch.num_sampled_edges,
        )
        return out[: batch.batch_size]

    for epoch in range(epochs):
        start, total = time.perf_counter(), 0.0
        model.train()
        loader = batches(seeds, batch_size=1024, shuffle=True)
        for batch in loader:
            loss = functional.cross_entropy(logits(batch), batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        seconds = time.perf_counter() - start
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, {seconds:.1f} s")

    model.eval()
    right = 0
    with torch.no_grad():
        for batch in batches(held_out, batch_size=4096):
            right += int((logits(batch).argmax(1) == batch.y[: batch.batch_size]).sum())
    return right / len(held_out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", type=Path, help="made where it is missing; kept")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.path or Path(folder, "debian.pgs")
        if not path.exists():
            write(path)
        print(f"validation accuracy: {train(path, arguments.epochs):.1%}")


if __name__ == "__main__":
    main()
