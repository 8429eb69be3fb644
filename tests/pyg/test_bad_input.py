"""What goes wrong in a loader's arguments is said when it is made, by the user's names."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import pytest
import torch
from pyg_reference import EDGES, NODES, content, random_data
from torch_geometric.data import Data, HeteroData

import pygsampler as pgs
from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler

LOADERS = pytest.mark.parametrize("make", [NeighborLoader, LinkNeighborLoader])


@LOADERS
@pytest.mark.parametrize(
    ("of_sampler", "text"),
    [
        ({"nodes": NODES + 1}, f"data: expected {NODES + 1} nodes .* got {NODES};"),
        ({"edges": EDGES - 1}, f"data: expected {EDGES - 1} edges .* got {EDGES};"),
    ],
)
def test_a_sampler_of_another_graph(make: Any, of_sampler: dict[str, int], text: str) -> None:
    sampler = PGSampler(random_data(**of_sampler), [2])
    with pytest.raises(ValueError, match=text):
        make(random_data(), [2], neighbor_sampler=sampler)


def test_features_of_another_graph() -> None:
    sampler = PGSampler(random_data(), [2])
    for features in (Data(x=torch.zeros(7, 1)), Data(num_nodes=7), Data(node_type=torch.zeros(7))):
        with pytest.raises(ValueError, match=f"data: expected {NODES} nodes .* got 7;"):
            NeighborLoader(features, [2], torch.arange(7), neighbor_sampler=sampler)
    with pytest.raises(NotImplementedError, match=r"data: .* HeteroData"):
        NeighborLoader(HeteroData(), [2], torch.arange(7), neighbor_sampler=sampler)


def test_nodes_that_only_the_sampler_counts() -> None:
    """PyG's guess from the edges is no reason to refuse, and is not made."""
    graph = pgs.Graph.from_pyg(random_data())
    data = Data(edge_index=random_data().edge_index)
    loader = NeighborLoader(data, [2], [NODES - 1], neighbor_sampler=PGSampler(graph, [2]))
    # PyG itself warns where it filters.
    with pytest.warns(UserWarning, match="Unable to accurately infer"):
        assert next(iter(loader)).n_id.tolist() == [NODES - 1]


@LOADERS
@pytest.mark.parametrize("filter_per_worker", [False, True])
def test_data_that_was_changed(make: Any, filter_per_worker: bool) -> None:
    data = random_data()
    loader = make(data, [2], batch_size=50, filter_per_worker=filter_per_worker)
    next(iter(loader))
    kept = data.edge_index, data.edge_attr
    data.edge_index, data.edge_attr = kept[0][:, :9], kept[1][:9]
    with pytest.raises(
        ValueError, match=f"data: expected {EDGES} edges .* got 9; .* from this data"
    ):
        next(iter(loader))
    data.edge_index, data.edge_attr = kept
    next(iter(loader))
    data.x = data.x[:9]
    with pytest.raises(
        ValueError, match=f"data: expected {NODES} nodes .* got 9; .* from this data"
    ):
        next(iter(loader))


@pytest.mark.parametrize(
    ("nodes", "error", "text"),
    [
        ([1, 2, NODES], IndexError, rf"input_nodes\[2\]: expected a node .* got {NODES}"),
        (torch.tensor([-1, 2]), IndexError, r"input_nodes\[0\]: .* got -1"),
        (torch.ones(NODES + 3).bool(), ValueError, f"a mask .* {NODES} nodes, got {NODES + 3}"),
        (torch.ones(NODES - 3).bool(), ValueError, f"a mask .* {NODES} nodes, got {NODES - 3}"),
        (numpy.ones(3, bool), ValueError, f"a mask .* {NODES} nodes, got 3"),
        ("paper", TypeError, r"input_nodes: expected ids or a mask of nodes, got str 'paper'"),
        (5, ValueError, r"input_nodes: .* one dimension, got \(\)"),
        (torch.zeros(3), TypeError, r"input_nodes: expected int32 or int64 ids"),
        (torch.zeros(3, 2).long(), ValueError, r"input_nodes: .* one dimension, got \(3, 2\)"),
    ],
)
def test_input_nodes(nodes: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        NeighborLoader(random_data(), [2], nodes)


@pytest.mark.parametrize(
    ("edges", "error", "text"),
    [
        ([[0, 1], [2, NODES]], IndexError, rf"edge_label_index\[1\]\[1\]: .* got {NODES}"),
        ([[-3, 1], [2, 4]], IndexError, r"edge_label_index\[0\]\[0\]: .* got -3"),
        ([[0.0], [1.0]], TypeError, r"edge_label_index\[0\]: expected int32 or int64 ids"),
    ],
)
def test_edge_label_index(edges: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        LinkNeighborLoader(random_data(), [2], torch.tensor(edges))


def test_masks_of_any_kind() -> None:
    """Those that are no tensors are not ids 0 and 1, as PyG takes them for."""
    data = random_data()
    mask = torch.arange(NODES) % 3 == 0
    for given in (mask, mask.numpy(), mask.tolist()):
        loader = NeighborLoader(data, [2], given, batch_size=NODES)
        assert next(iter(loader)).input_id.equal(mask.nonzero().view(-1))


def test_one_for_each() -> None:
    """PyG looks times and labels up by place, whatever their number."""
    data = random_data()
    data.when = torch.arange(EDGES)
    mask = torch.arange(NODES) % 3 == 0
    times = {"time_attr": "when", "input_time": torch.arange(NODES)}
    with pytest.raises(ValueError, match=r"input_time: expected one for each of 34 input nodes"):
        NeighborLoader(data, [2], mask, **times)
    with pytest.raises(TypeError, match=r"input_time: expected integers, as 'when' has them"):
        floats = {**times, "input_time": torch.rand(NODES)}
        next(iter(NeighborLoader(data, [2], **floats)))
    links = data.edge_index[:, :20]
    for name, more in (("edge_label", {}), ("edge_label_time", {"time_attr": "when"})):
        for count in (19, 21):
            with pytest.raises(ValueError, match=rf"{name}: expected one for each of 20 links"):
                LinkNeighborLoader(data, [2], links, **{name: torch.arange(count)}, **more)
    given = links.tolist(), [1] * 20
    batch = next(iter(LinkNeighborLoader(data, [2], *given, batch_size=20)))
    assert batch.n_id[batch.edge_label_index].equal(links)
    assert batch.edge_label.tolist() == given[1]


@LOADERS
def test_a_sampler_of_another_kind(make: Any) -> None:
    with pytest.raises(TypeError) as caught:
        make(random_data(), [5, 5], neighbor_sampler=pgs.PGSampler([5, 5]))
    assert str(caught.value) == (
        "neighbor_sampler: expected a pygsampler.pyg.PGSampler, got a pygsampler.PGSampler; "
        "pygsampler.pyg.PGSampler(data, fanouts) makes one, and Sampler(data, sampler) of any other"
    )
    # Its module is all that is known of it: DGL need not be there.
    known = "pygsampler.dgl" in sys.modules
    other = type("PGSampler", (), {"__module__": "pygsampler.dgl"})
    with pytest.raises(TypeError, match=r"got a pygsampler\.dgl\.PGSampler;"):
        make(random_data(), [5, 5], neighbor_sampler=other())
    assert ("pygsampler.dgl" in sys.modules) == known


@pytest.mark.parametrize("hops", [numpy.array([3, -1]), torch.tensor([3, -1]), (3, -1)])
def test_num_neighbors_of_any_kind(hops: Any) -> None:
    data = random_data()
    batches = []
    for num_neighbors in ([3, -1], hops):
        loader = NeighborLoader(data, num_neighbors, batch_size=50, seed=1)
        loader.set_epoch(0)
        assert loader.node_sampler.num_neighbors.values == [3, -1]
        batches.append([content(batch) for batch in loader])
    assert batches[0] == batches[1]
