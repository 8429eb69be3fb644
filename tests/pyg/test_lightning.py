"""PyG's data modules for Lightning, ours and with a sampler of ours in PyG's.

What samples is PyG's module and what it passes to loaders; Lightning's trainer calls its methods.
So where there is no Lightning, PyG is told that there is.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
from pyg_reference import content
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.lightning import datamodule
from torch_geometric.testing import MyFeatureStore, MyGraphStore

from pygsampler.pyg import PGSampler
from pygsampler.pyg import lightning as ours

CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")


@pytest.fixture(autouse=True)
def _lightning(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        importlib.import_module("pytorch_lightning")
    except ImportError:
        monkeypatch.setattr(datamodule, "_pl_is_available", True)


def ends(sources: int, targets: int, count: int) -> torch.Tensor:
    random = torch.Generator().manual_seed(count)
    return torch.stack(
        [torch.randint(0, of, (count,), generator=random) for of in (sources, targets)]
    )


def plain() -> Any:
    data = Data(x=torch.arange(200.0).view(-1, 1), edge_index=ends(200, 200, 1000))
    data.train_mask = torch.arange(200) < 120
    data.val_mask = torch.arange(200) >= 170
    data.time = torch.arange(200)
    return data


def typed() -> Any:
    data = HeteroData()
    data["paper"].x = torch.arange(150.0).view(-1, 1)
    data["author"].x = torch.arange(60.0).view(-1, 1)
    data["paper"].train_mask = torch.arange(150) < 100
    data["paper"].val_mask = torch.arange(150) >= 120
    data[CITES].edge_index = ends(150, 150, 700)
    data[WRITES].edge_index = ends(60, 150, 300)
    return data


OPTIONS: dict[str, Any] = {"batch_size": 40, "pin_memory": False}


@pytest.mark.parametrize("hetero", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_nodes(hetero: bool, workers: int) -> None:
    data = typed() if hetero else plain()
    made = ours.LightningNodeData(
        data,
        num_neighbors=[3, 2],
        seed=4,
        num_workers=workers,
        # Workers that live on end when their loader is collected, which may take torch seconds.
        persistent_workers=False,
        eval_loader_kwargs={"batch_size": 25, "num_neighbors": [-1]},
        **OPTIONS,
    )
    assert made.graph_sampler.is_hetero == hetero
    made.graph_sampler.set_epoch(1)
    batches = list(made.train_dataloader())
    assert len(batches) == 3
    seeds = []
    for batch in batches:
        papers = batch["paper"] if hetero else batch
        assert papers.x.flatten().long().equal(papers.n_id)
        seeds += papers.n_id[: papers.batch_size].tolist()
    assert sorted(seeds) == list(range(100 if hetero else 120))
    assert seeds != sorted(seeds)
    evaluated = list(made.val_dataloader())
    of = [batch["paper"] if hetero else batch for batch in evaluated]
    first = 120 if hetero else 170
    assert [batch.batch_size for batch in of] == [25, 5]
    assert torch.cat([batch.n_id[: batch.batch_size] for batch in of]).tolist() == list(
        range(first, first + 30)
    )
    # All in-edges of the seeds, in one hop.
    kind, whole = evaluated[0], data
    (index, known) = (
        (kind[CITES].edge_index, whole[CITES].edge_index)
        if hetero
        else (kind.edge_index, whole.edge_index)
    )
    within = (known[1] >= first) & (known[1] < first + 25)
    assert index.shape[1] == int(within.sum())


def test_times() -> None:
    data = plain()
    train, val = (mask.nonzero().flatten() for mask in (data.train_mask, data.val_mask))
    made = ours.LightningNodeData(
        data, train, train, val, val, num_neighbors=[5, 5], time_attr="time", **OPTIONS
    )
    for batch in made.train_dataloader():
        assert (data.time[batch.n_id] <= batch.seed_time[batch.batch]).all()


@pytest.mark.parametrize("hetero", [False, True])
def test_links(hetero: bool) -> None:
    data = typed() if hetero else plain()
    known = (data[CITES] if hetero else data).edge_index
    train, val = known[:, :200], known[:, 200:260]
    made = ours.LightningLinkData(
        data,
        input_train_edges=(CITES, train) if hetero else train,
        input_val_edges=(CITES, val) if hetero else val,
        loader="link_neighbor",
        num_neighbors=[3, 2],
        neg_sampling="binary",
        **OPTIONS,
    )
    count = 0
    for batch in made.train_dataloader():
        links = batch[CITES] if hetero else batch
        papers = batch["paper"] if hetero else batch
        count += 1
        positive = papers.n_id[links.edge_label_index[:, links.edge_label == 1]]
        assert positive.equal(train[:, links.input_id])
        assert links.edge_label_index.shape[1] == 2 * positive.shape[1]
    assert count == 5
    assert len(list(made.val_dataloader())) == 2


@pytest.mark.parametrize("hetero", [False, True])
def test_stores(hetero: bool) -> None:
    """PyG's own stores: those with types get the sampler of types."""
    kind = CITES if hetero else None
    group = "paper" if hetero else None
    features, graph = MyFeatureStore(), MyGraphStore()
    features.put_tensor(torch.arange(150), group_name=group, attr_name="x", index=None)
    index = ends(150, 150, 700)
    graph.put_edge_index(
        edge_index=(index[0], index[1]), edge_type=kind, layout="coo", size=(150, 150)
    )
    seeds = torch.arange(40)
    nodes = ours.LightningNodeData(
        (features, graph),
        input_train_nodes=("paper", seeds) if hetero else seeds,
        loader="neighbor",
        num_neighbors=[5, 5],
        **OPTIONS,
    )
    assert nodes.graph_sampler.is_hetero == hetero
    (batch,) = nodes.train_dataloader()
    papers = batch["paper"] if hetero else batch
    assert papers.x.equal(papers.n_id)
    assert papers.batch_size == 40
    if not hetero:
        return  # Links of stores have types in PyG.
    links = ours.LightningLinkData(
        (features, graph),
        input_train_edges=(CITES, index[:, :30]),
        loader="neighbor",
        num_neighbors=[5],
        **OPTIONS,
    )
    (batch,) = links.train_dataloader()
    found = batch["paper"].n_id[batch[CITES].edge_label_index]
    assert sorted(found.T.tolist()) == sorted(index[:, :30].T.tolist())


def test_samplers_in_their_modules() -> None:
    """A sampler that is given is used; other loaders than by neighbours are PyG's."""
    data = plain()
    sampler = PGSampler(data, [2], seed=1)
    batches = []
    for module in (ours.LightningNodeData, datamodule.LightningNodeData):
        made = module(data, node_sampler=sampler, **OPTIONS)
        assert made.graph_sampler is sampler
        made.graph_sampler.set_epoch(0)
        torch.manual_seed(1)
        batches.append([content(batch) for batch in made.train_dataloader()])
    assert batches[0] == batches[1]
    assert len(batches[0]) == 3
    (whole,) = ours.LightningNodeData(data, loader="full", pin_memory=False).train_dataloader()
    assert whole is data
    with pytest.raises(ValueError, match="Undefined 'loader' option"):
        ours.LightningNodeData(data, loader="other")
    with pytest.raises(TypeError, match="num_neighbors"):
        ours.LightningNodeData(data)
