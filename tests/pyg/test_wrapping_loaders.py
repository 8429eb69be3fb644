"""PyG's loaders that stand around others, and its samplers of seeds, with ours in them."""

from __future__ import annotations

from typing import Any

import torch
from pyg_reference import NODES, random_data
from torch_geometric.data import Data
from torch_geometric.loader import CachedLoader, ImbalancedSampler, PrefetchLoader, ZipLoader

from pygsampler.pyg import NeighborLoader


class Wide(Data):  # type: ignore[misc]
    """With nodes along the second dimension of an attribute."""

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return 1 if key == "wide" else super().__cat_dim__(key, value, *args, **kwargs)


def check(data: Data, batch: Data) -> None:
    assert batch.num_edges
    assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])


def test_prefetch_loader() -> None:
    data = random_data()
    loader = PrefetchLoader(NeighborLoader(data, [3, 3], batch_size=64))
    seeds = []
    for batch in loader:
        check(data, batch)
        seeds.append(batch.n_id[: batch.batch_size])
    assert torch.cat(seeds).equal(torch.arange(NODES))


def test_cached_loader_gives_a_pass_again() -> None:
    data = random_data()
    loader = CachedLoader(NeighborLoader(data, [3, 3], batch_size=64))
    first = [batch.e_id.tolist() for batch in loader]
    assert len(first) > 1
    assert [batch.e_id.tolist() for batch in loader] == first


def test_zip_loader() -> None:
    data = random_data()
    loaders = [NeighborLoader(data, [3, 3], range(50)), NeighborLoader(data, [2], range(10, 60))]
    count = 0
    for first, second in ZipLoader(loaders, batch_size=20):
        check(data, first)
        check(data, second)
        assert len(first.num_sampled_nodes) == 3 and len(second.num_sampled_nodes) == 2
        assert (second.n_id[: second.batch_size] >= 10).all()
        count += second.batch_size
    assert count == 50


def test_imbalanced_sampler() -> None:
    data = random_data()
    data.y = (torch.arange(NODES) < 10).long()
    torch.manual_seed(0)
    loader = NeighborLoader(data, [3], batch_size=64, sampler=ImbalancedSampler(data))
    drawn = torch.cat([batch.y[: batch.batch_size] for batch in loader])
    # Half of them, where one in ten would be drawn alike.
    assert len(drawn) == NODES and 0.3 < drawn.float().mean() < 0.7


def test_a_class_of_data_of_ones_own() -> None:
    data = Wide(**random_data().to_dict())
    data.wide = torch.randn(4, NODES)
    batch = next(iter(NeighborLoader(data, [3, 3], range(20), batch_size=20)))
    assert type(batch) is Wide
    check(data, batch)
    assert batch.wide.equal(data.wide[:, batch.n_id])
