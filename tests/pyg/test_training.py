"""A model of PyG's trains the same with our sampler as with PyG's contract in plain Python."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import ReferenceSampler, random_data
from torch.nn import functional
from torch_geometric.loader import NeighborLoader as PygNeighborLoader
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE
from torch_geometric.utils import trim_to_layer

from pygsampler.pyg import NeighborLoader, PGSampler


class ThreeLayers(torch.nn.Module):
    """With ``trim``, each layer computes only what the layers after it need."""

    def __init__(self, trim: bool) -> None:
        super().__init__()
        self.trim = trim
        sizes = (5, 16, 16, 5)
        self.convs = torch.nn.ModuleList(
            SAGEConv(sizes[i], sizes[i + 1], aggr="mean") for i in range(3)
        )

    def forward(self, batch: Any) -> torch.Tensor:
        x, edges = batch.x, batch.edge_index
        for i, conv in enumerate(self.convs):
            if self.trim:
                x, edges, _ = trim_to_layer(
                    i, batch.num_sampled_nodes, batch.num_sampled_edges, x, edges
                )
            x = conv(x, edges)
            x = x.relu() if i < 2 else x
        return x[: batch.batch_size]


def graph() -> Any:
    data = random_data(nodes=300, edges=1500)
    data.y = torch.randint(5, (300,), generator=torch.Generator().manual_seed(1))
    data.x = functional.one_hot(data.y, 5) + 0.1 * torch.sin(torch.arange(300.0))[:, None]
    return data


def trained(loader: Any, sampler: Any, trim: bool, epochs: int = 6) -> tuple[list[float], Any]:
    torch.manual_seed(7)
    model = ThreeLayers(trim)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    losses = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = functional.cross_entropy(model(batch), batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses, torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.mark.parametrize("trim", [True, False])
@pytest.mark.parametrize("hops", [[-1, -1, -1], [4, 3, 2]])
def test_trains_as_the_reference(hops: list[int], trim: bool) -> None:
    """The reference is given our draws; the rest of the contract it makes by itself."""
    data = graph()
    sampler = PGSampler(data, hops, seed=0)
    options = {"input_nodes": data.train_mask, "batch_size": 25}
    ours = trained(NodeLoader(data, sampler, **options), sampler, trim)
    slow = ReferenceSampler(data, sampler)
    expected = trained(NodeLoader(data, slow, **options), sampler, trim)
    assert ours[0] == expected[0]
    assert ours[1].equal(expected[1])
    assert ours[0][-1] < 0.7 * ours[0][0]


def test_trimming_changes_nothing_but_the_work() -> None:
    data = graph()
    sampler = PGSampler(data, [4, 3, 2], seed=0)
    loader = NodeLoader(data, sampler, input_nodes=data.train_mask, batch_size=25)
    (trimmed, _), (whole, _) = (trained(loader, sampler, trim) for trim in (True, False))
    torch.testing.assert_close(torch.tensor(trimmed), torch.tensor(whole))


@pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without a 'pyg-lib'")
def test_trains_as_pygs_own_sampler() -> None:
    """With all neighbours nothing is drawn, so the two must agree."""
    if not (WITH_PYG_LIB or WITH_TORCH_SPARSE):
        pytest.skip("needs pyg-lib or torch-sparse, of which PyPI has no wheels")
    data = graph()
    # Sorted here: PyG's own sort need not keep the order of edges into the same node.
    data.edge_index = data.edge_index[:, data.edge_index[1].argsort(stable=True)]
    options = {"input_nodes": data.train_mask, "batch_size": 25, "is_sorted": True}
    ours = NeighborLoader(data, [-1, -1, -1], **options)
    theirs = PygNeighborLoader(data, [-1, -1, -1], **options)
    for mine, other in zip(ours, theirs, strict=True):
        for name in ("n_id", "edge_index", "e_id"):
            assert mine[name].equal(other[name])
    losses, _ = trained(ours, ours, trim=False)
    torch.testing.assert_close(losses, trained(theirs, ours, trim=False)[0])
