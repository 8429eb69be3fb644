"""Features beside data with types, and its edges as ``EdgeIndex``."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from test_hetero import CITES, WRITES, reached, typed_data
from torch_geometric.nn import HeteroConv, SAGEConv

import pygsampler as pgs
from pygsampler.pyg import EdgeIndex, HGTLoader, LinkNeighborLoader, NeighborLoader, PGSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
SEEDS = torch.cat([torch.arange(40), torch.tensor([7, 7, 3])])


def given(data: Any) -> dict[str, Any]:
    """Rows that say whose they are."""
    nodes = {kind: torch.arange(data[kind].num_nodes).float()[:, None] for kind in data.node_types}
    edges = {kind: torch.arange(data[kind].num_edges) for kind in (CITES, WRITES)}
    return {"features": {"x": nodes}, "edge_features": {"mine": edges}}


def check(data: Any, batch: Any) -> None:
    for kind in data.node_types:
        assert batch[kind].x.flatten().equal(batch[kind].n_id.float())
    for kind in (CITES, WRITES):
        assert batch[kind].mine.equal(batch[kind].e_id)


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"subgraph_type": "induced"}])
def test_batches_have_the_rows_of_their_types(options: Any) -> None:
    data = typed_data()
    options = {"batch_size": 16, "seed": 1, **options, **given(data)}
    loaders = [
        NeighborLoader(data, [4, 3], ("paper", SEEDS), **options),
        LinkNeighborLoader(data, [4, 3], WRITES, neg_sampling="binary", **options),
    ]
    if "subgraph_type" not in options:
        loaders.append(HGTLoader(data, [16, 8], ("paper", SEEDS), **options))
    for loader in loaders:
        assert len([check(data, batch) for batch in loader]) > 1
        assert "mine" not in data[CITES] and data["paper"].x.shape != (60, 1), "data is as it was"


def test_out_of_a_file_and_by_out_neighbours(tmp_path: Path) -> None:
    data = typed_data()
    rows = torch.arange(data["paper"].num_nodes * 2).reshape(-1, 2)
    made = pgs.Graph.from_coo([0], [1], num_nodes=len(rows), node_data={"x": rows})
    made.save(tmp_path / "g.pgs")
    sampler = PGSampler(data, [3], sample_direction="backward", seed=1)
    options = {
        "features": {"x": {"paper": pgs.Features.open(tmp_path / "g.pgs", "x")}},
        "edge_features": given(data)["edge_features"],
    }
    loader = NeighborLoader(
        data, [3], ("paper", SEEDS), neighbor_sampler=sampler, batch_size=16, **options
    )
    for batch in pickle.loads(pickle.dumps(loader)):
        assert batch["paper"].x.equal(rows[batch["paper"].n_id])
        assert batch[WRITES].mine.equal(batch[WRITES].e_id)


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({}, "col"),
        ({"disjoint": True}, "col"),
        ({"subgraph_type": "induced"}, "col"),
        ({"subgraph_type": "bidirectional"}, None),
        ({"sample_direction": "backward"}, "row"),
    ],
)
def test_edges_as_edge_index(options: Any, order: str | None) -> None:
    """They are the edges of ``"coo"``, in the order that they claim, and models train by them."""
    data = typed_data()
    if order is None:
        data = reached()
    found = []
    for layout in ("coo", "edge_index"):
        sampler = PGSampler(data, [4, 3], seed=1, **options)
        sampler.set_epoch(0)
        found.append(NeighborLoader(data, [4, 3], ("paper", SEEDS), neighbor_sampler=sampler,
                                    batch_size=16, edge_index=layout))  # fmt: skip
    for want, got in zip(*found, strict=True):
        for kind in want.edge_types:
            edges = got[kind].edge_index
            assert isinstance(edges, EdgeIndex) and edges.as_tensor().equal(want[kind].edge_index)
            assert edges.sort_order == order or (order and edges.sort_order.value == order)
            if order:
                ends = edges.as_tensor()[["row", "col"].index(order)]
                assert bool((ends.diff() >= 0).all())
            assert edges.sparse_size() == (got[kind[0]].num_nodes, got[kind[2]].num_nodes)


def test_a_model_gives_what_it_gives_by_tensors() -> None:
    data = reached()
    torch.manual_seed(0)
    layer = HeteroConv({kind: SAGEConv((4, 4), 4) for kind in data.edge_types})
    outs = []
    for layout in ("coo", "edge_index"):
        loader = NeighborLoader(
            data, [4, 3], ("paper", SEEDS), batch_size=16, seed=1, edge_index=layout
        )
        loader.set_epoch(0)
        batch = next(iter(loader))
        outs.append(layer(batch.x_dict, batch.edge_index_dict))
        sum(values.sum() for values in outs[-1].values()).backward()
        outs[-1]["gradient"] = layer.convs[CITES].lin_l.weight.grad.clone()
        layer.zero_grad()
    for kind, values in outs[0].items():
        assert torch.allclose(values, outs[1][kind], atol=1e-5)
