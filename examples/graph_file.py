"""A graph, its features and its labels in one file, which training maps into memory.

Opening takes no time whatever the size, and processes that open the same file share its pages. The
features are not read before a batch needs them, so they may be larger than the memory.

    python examples/graph_file.py --path debian.pgs
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from torch.nn import functional

from pygsampler import Graph, datasets
from pygsampler.torch import DataLoader


def write(path: Path) -> None:
    """Builds the graph and writes its file, which is done once."""
    data = datasets.debian()
    arrays = {
        "features": data.features("float16"),
        "labels": data.labels,
        "train": data.train,
        "val": data.val,
    }
    with data.graph() as graph:
        graph.save(path, arrays=arrays, progress=True)


def train(path: Path, epochs: int, seed: int) -> float:
    """Trains a GraphSAGE of one layer, as every run does; returns the validation accuracy."""
    start = time.perf_counter()
    graph = Graph.open(path)
    milliseconds = 1e3 * (time.perf_counter() - start)
    print(f"{path.stat().st_size / 1e6:.0f} MB opened in {milliseconds:.1f} ms: {graph}")
    features, labels = graph.file_arrays["features"].torch(), graph.file_arrays["labels"].torch()

    model = torch.nn.Linear(2 * features.shape[1], int(labels.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def logits(batch) -> torch.Tensor:
        block = batch.blocks[0]
        src, dst = block.coo()
        h = features[batch.input_nodes].float()  # only these rows are read from the file
        own = h[: block.num_dst_nodes]
        mean = torch.zeros_like(own).index_add_(0, dst, h[src])
        mean /= block.indptr.diff().clamp(min=1).unsqueeze(1)
        return model(torch.cat([own, mean], dim=1))[batch.output_index]

    options = {"batch_size": 1024, "seed": seed}
    loader = DataLoader(graph, graph.file_arrays["train"], [10], shuffle=True, **options)
    for epoch in range(epochs):
        for batch in loader:
            loss = functional.cross_entropy(logits(batch), labels[batch.output_nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}")
    held_out, right = graph.file_arrays["val"], 0
    with torch.no_grad():
        for batch in DataLoader(graph, held_out, [10], **options):
            right += (logits(batch).argmax(1) == labels[batch.output_nodes]).sum().item()
    return right / len(held_out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", type=Path, help="written where it is not there yet")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.path or Path(folder) / "debian.pgs"
        if not path.exists():
            write(path)
        accuracy = train(path, arguments.epochs, arguments.seed)
    print(f"validation accuracy: {accuracy:.1%}")


if __name__ == "__main__":
    main()
