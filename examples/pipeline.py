"""Shows what a training loop waits for: GraphSAGE on the Debian packages.

Trains for 16 steps with each of several settings of the pipeline and prints the loader's figures:
the part of the time that training waited for data, how many batches were ahead, and what was read.
The loss is the same for all: batches do not depend on the pipeline.

    python examples/pipeline.py
    python examples/pipeline.py --device cuda --trace trace.json
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from graphsage_cuda import GraphSAGE, load_graph
from torch.nn import functional

import pygsampler as pgs
from pygsampler import datasets
from pygsampler.torch import DataLoader

SETTINGS: dict[str, dict[str, Any]] = {
    "nothing ahead": {"prefetch": 0},
    "one ahead": {"prefetch": 1},
    "as by default": {},
    "eight, from two on": {"prefetch": (2, 8)},
    "a tenth of a GPU": {"gpu_share": 0.1},
}


def train(loader: DataLoader, model: torch.nn.Module) -> float:
    """The mean loss of a pass."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = []
    for batch in loader:
        loss = functional.cross_entropy(model(batch.blocks, batch.x)[batch.output_index], batch.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()


def told(stats: dict[str, Any]) -> str:
    queues = ", ".join(f"{each['mean']:.1f} {name}" for name, each in stats["queues"].items())
    read = ", ".join(f"{size / 1e6:.0f} MB from {tier}" for tier, size in stats["bytes"].items())
    return f"{stats['seconds']:.2f} s, waits {stats['waiting_share']:.1%}, {queues}; {read}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cpu or cuda"
    )
    parser.add_argument("--trace", help="a file for chrome://tracing, of the last setting")
    arguments = parser.parse_args()
    data, device = datasets.debian(), arguments.device
    graph = load_graph(data).to(device)
    features = pgs.Features.from_tensor(torch.from_numpy(data.features())).to(device)
    labels = torch.from_numpy(data.labels).to(device).long()
    for name, setting in SETTINGS.items():
        torch.manual_seed(0)
        model = GraphSAGE(data.num_features, 128, data.num_classes).to(device).eval()
        loader = DataLoader(
            graph, data.train[:16384], [10, 10], batch_size=1024, shuffle=True, seed=0,
            features={"x": features}, labels=labels, **setting,
        )  # fmt: skip
        if arguments.trace and name == list(SETTINGS)[-1]:
            loader.trace(arguments.trace)
        loss = train(loader, model)
        print(f"{name}: loss {loss:.4f}, {told(loader.stats())}")


if __name__ == "__main__":
    main()
