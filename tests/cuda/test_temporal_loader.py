"""Loaders of seeds with times on a GPU: the CPU's batches, from torch's loader and from PyG's."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")
from pygsampler.torch import DataLoader  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
NODES, EDGES, SEEDS = 300, 4000, 90


def made() -> tuple[Any, Any, Any, Any]:
    """Edges, their times, seeds and theirs."""
    random = torch.Generator().manual_seed(0)
    draw = lambda most, *shape: torch.randint(0, most, shape, generator=random)  # noqa: E731
    return draw(NODES, 2, EDGES), draw(50, EDGES), draw(NODES, SEEDS), draw(50, SEEDS)


def test_batches_of_torch() -> None:
    (src, dst), times, seeds, bounds = made()
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data={"t": times})
    found = []
    for one in (graph, graph.to("cuda")):
        loader = DataLoader(
            one,
            seeds,
            pgs.PGSampler([4, 3], seed=2, temporal="t"),
            batch_size=32,
            shuffle=True,
            seed=5,
            seed_time=bounds,
        )
        found.append([[ids.tolist() for ids in (b.input_nodes, b.subgraph_ids)] for b in loader])
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_batches_of_pyg() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torch_geometric", reason="needs PyG")
    from torch_geometric.data import Data

    from pygsampler.pyg import NeighborLoader

    edges, times, seeds, bounds = made()
    found = []
    for device in (None, "cuda"):
        loader = NeighborLoader(
            Data(edge_index=edges, edge_time=times, num_nodes=NODES),
            [4, 3],
            input_nodes=seeds,
            input_time=bounds,
            time_attr="edge_time",
            batch_size=32,
            seed=1,
            device=device,
        )
        loader.set_epoch(1)
        found.append([[b.n_id.tolist(), b.e_id.tolist(), b.batch.tolist()] for b in loader])
    assert found[0] == found[1]
    assert len(found[0]) == 3
