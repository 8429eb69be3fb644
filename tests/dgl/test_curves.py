"""Training by our batches and reductions has the loss curve that DGL's have, and plain torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dgl
import numpy
import pytest
import torch
from dgl.nn.pytorch import SAGEConv
from torch.nn import functional

from pygsampler import datasets
from pygsampler.torch import DataLoader

SEEDS, EPOCHS, BATCH, TRAINED, WINDOW = range(3), 3, 512, 4096, 8
FANOUTS = [10, 10]
# The margin of means over three runs and a window of batches; a curve falls by about 2 in all.
MARGIN = 0.05

Batch = tuple[Any, torch.Tensor, torch.Tensor]


class Model(torch.nn.Module):
    """DGL's layers for the parameters; who calls it says how rows are reduced."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            [SAGEConv(features, 32, "mean"), SAGEConv(32, classes, "mean")]
        )

    def forward(self, blocks: Any, h: torch.Tensor, layer: Callable[..., torch.Tensor]) -> Any:
        for place, (module, block) in enumerate(zip(self.layers, blocks, strict=True)):
            h = layer(module, block, h)
            if place == 0:
                h = functional.relu(h)
        return h


def by_dgl(module: Any, block: Any, h: torch.Tensor) -> torch.Tensor:
    made: torch.Tensor = module(block, h)
    return made


def by_helpers(module: Any, block: Any, h: torch.Tensor) -> torch.Tensor:
    own = module.fc_self(h[: block.num_dst_nodes])
    made: torch.Tensor = own + block.mean(module.fc_neigh(h))
    return made


def by_torch(module: Any, block: Any, h: torch.Tensor) -> torch.Tensor:
    src, dst = block.coo()
    others = module.fc_neigh(h)
    sums = others.new_zeros((block.num_dst_nodes, others.shape[1])).index_add(0, dst, others[src])
    made: torch.Tensor = sums / block.indptr.diff().clamp(min=1).unsqueeze(1)
    return module.fc_self(h[: block.num_dst_nodes]) + made


def curve(
    data: Any, batches: Callable[[], Iterator[Batch]], layer: Callable[..., torch.Tensor], seed: int
) -> list[float]:
    torch.manual_seed(seed)
    dgl.seed(seed)
    model = Model(data.num_features, data.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(EPOCHS):
        for blocks, x, y in batches():
            loss = functional.cross_entropy(model(blocks, x, layer), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")
def test_loss_curves() -> None:
    """Means over three seeds, by windows of batches, lie within MARGIN of each other at every
    window: with the same first weights and seeds of batches, and samples of each one's own."""
    data = datasets.debian()
    x, y = torch.from_numpy(data.features()), torch.from_numpy(data.labels).long()
    graph = data.graph()
    indptr, indices = graph.indptr.torch().long(), graph.indices.torch().long()
    of_dgl = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))))
    found: dict[str, list[list[float]]] = {"dgl": [], "helpers": [], "torch": []}
    for seed in SEEDS:
        random = torch.Generator().manual_seed(seed)
        train = torch.from_numpy(data.train)
        train = train[torch.randperm(len(train), generator=random)[:TRAINED]]
        sampler = dgl.dataloading.NeighborSampler(FANOUTS)
        loader = DataLoader(
            graph, train, FANOUTS, batch_size=BATCH, seed=seed, features={"x": x}, labels=y
        )

        def theirs(train: Any = train, sampler: Any = sampler) -> Iterator[Batch]:
            for ids in train.split(BATCH):
                nodes, _, blocks = sampler.sample_blocks(of_dgl, ids)
                yield blocks, x[nodes], y[ids]

        def ours(loader: DataLoader = loader) -> Iterator[Batch]:
            for batch in loader:
                yield batch.blocks, batch.x, batch.y

        found["dgl"].append(curve(data, theirs, by_dgl, seed))
        found["helpers"].append(curve(data, ours, by_helpers, seed))
        found["torch"].append(curve(data, ours, by_torch, seed))
    curves = {
        name: numpy.mean(numpy.mean(runs, 0).reshape(-1, WINDOW), 1) for name, runs in found.items()
    }
    assert curves["dgl"][-1] < curves["dgl"][0] - 1
    assert numpy.abs(curves["helpers"] - curves["dgl"]).max() < MARGIN, curves
    assert numpy.abs(curves["helpers"] - curves["torch"]).max() < MARGIN, curves
