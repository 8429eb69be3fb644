"""PyG's loaders on a HeteroData on a device: the CPU's batches, wherever edges and features are."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="needs PyG")

from torch_geometric.data import HeteroData  # noqa: E402
from torch_geometric.nn import SAGEConv, to_hetero  # noqa: E402

from pygsampler.pyg import EdgeIndex, HGTLoader, LinkNeighborLoader, NeighborLoader  # noqa: E402

# PyG and torch warn of each other, and Python of the forks of torch's loader.
pytestmark = pytest.mark.filterwarnings("ignore")
# Tests without it run on the emulator, too.
on_a_gpu = pytest.mark.usefixtures("gpu")
on_devices = pytest.mark.usefixtures("host_tensors")
CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")
WRITTEN, NEVER = ("paper", "rev_writes", "author"), ("place", "of", "author")
NODES = {"paper": 300, "author": 200}
EDGES = {CITES: 2000, WRITES: 900, WRITTEN: 900}


def make_data(edges_on: str = "cpu", features_on: str = "cpu", dtype: Any = torch.int64) -> Any:
    random = torch.Generator().manual_seed(0)
    data = HeteroData()
    for kind, count in NODES.items():
        data[kind].x = torch.randn(count, 4, generator=random).to(features_on)
    data["paper"].y = (torch.arange(NODES["paper"]) % 3).to(features_on)
    for kind, count in EDGES.items():
        ends = [torch.randint(0, NODES[of], (count,), generator=random) for of in kind[::2]]
        data[kind].edge_index = torch.stack(ends).to(dtype).to(edges_on)
        data[kind].edge_attr = torch.arange(count).to(features_on)
    data[CITES].w = (torch.arange(EDGES[CITES]) % 3 / 2).to(features_on)
    return data


def content(batch: Any) -> dict[Any, Any]:
    return {
        key: {k: v.tolist() if hasattr(v, "tolist") else v for k, v in store.items()}
        for key, store in batch.to_dict().items()
        if isinstance(store, dict)
    }


def loaded(make: Any, **where: Any) -> list[Any]:
    loader = make(**where)
    loader.set_epoch(1)
    return list(loader)


def few_data(dtype: Any) -> Any:
    """Data with node types and an edge type that have no edges, and parallel edges."""
    random = torch.Generator().manual_seed(0)
    data, nodes = HeteroData(), {"paper": 60, "author": 40, "place": 5, "alone": 3}
    for kind, count in nodes.items():
        data[kind].x = torch.randn(count, 4, generator=random)
    for kind, count in {CITES: 300, WRITES: 150, WRITTEN: 150, NEVER: 0}.items():
        ends = [torch.randint(0, nodes[end], (count,), generator=random) for end in kind[::2]]
        data[kind].edge_index = torch.stack(ends).to(dtype)
        data[kind].edge_attr = torch.arange(count)
    data[CITES].w = torch.arange(300) % 3 / 2
    return data


def compare(make: Any, data: Any, **options: Any) -> None:
    """Fails unless a device gives the CPU's batches; the data is on the CPU."""
    options = {"seed": 3, **options}
    want = loaded(lambda **where: make(data, **options, **where), device="cpu")
    found = loaded(lambda **where: make(data, **options, **where), device="cuda")
    assert [content(batch) for batch in found] == [content(batch) for batch in want]
    assert len(want) > 1


@on_devices
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"replace": True},
        {"num_neighbors": {CITES: [3, 1], WRITES: [3, 2], WRITTEN: [3, 3], NEVER: [3, 4]}},
        {"disjoint": True},
        {"weight_attr": "w"},
        {"edge_weights": "ht"},
        {"subgraph_type": "induced", "weight_attr": "w"},
        {"subgraph_type": "induced", "disjoint": True},
        {"labor": "exact", "edge_weights": "ht"},
        {"labor": "exact", "subgraph_type": "induced"},
        {"labor": "exact", "weight_attr": "w"},
        {"labor": "poisson"},
        {"labor": "poisson", "edge_weights": "ht"},
        {"labor": "poisson", "subgraph_type": "induced"},
        {"labor": "poisson", "weight_attr": "w"},
    ],
    ids=str,
)
def test_batches_of_the_cpu(options: dict[str, Any], dtype: Any) -> None:
    options = {"num_neighbors": [4, 3], "batch_size": 16, **options}
    seeds = torch.cat([torch.arange(40), torch.tensor([7, 7, 3, 7])])
    for nodes in (("paper", seeds), "author"):
        compare(NeighborLoader, few_data(dtype), input_nodes=nodes, **options)


@on_devices
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_links_of_the_cpu(dtype: Any) -> None:
    options = {"num_neighbors": [4, 3], "batch_size": 40, "edge_label_index": WRITES}
    compare(LinkNeighborLoader, few_data(dtype), neg_sampling="binary", **options)


@on_devices
def test_both_directions_and_hgt() -> None:
    data = few_data(torch.int64).edge_type_subgraph([CITES, WRITES, WRITTEN])
    options = {"num_neighbors": [4, 3], "input_nodes": "paper", "batch_size": 16}
    compare(NeighborLoader, data, subgraph_type="bidirectional", **options)
    compare(HGTLoader, data, num_samples=[8, 4], input_nodes="paper", batch_size=20)


@on_a_gpu
@pytest.mark.parametrize("features_on", ["cpu", "cuda"])
@pytest.mark.parametrize("edges_on", ["cpu", "cuda"])
@pytest.mark.parametrize("options", [{}, {"replace": True}], ids=str)
def test_nodes(options: Any, edges_on: str, features_on: str) -> None:
    about = {"num_neighbors": [4, 3], "input_nodes": "paper", "batch_size": 64, "seed": 2}
    want = loaded(lambda: NeighborLoader(make_data(), **about, **options))
    data = make_data(edges_on, features_on)
    got = loaded(lambda **w: NeighborLoader(data, **about, **options, **w), device="cuda")
    assert [content(batch) for batch in got] == [content(batch) for batch in want]
    # PyG puts edges where the data has them.
    assert {index.device.type for b in got for index in b.edge_index_dict.values()} == {edges_on}


@on_a_gpu
@pytest.mark.parametrize("neg_sampling", [None, "binary", "triplet"])
def test_links(neg_sampling: Any) -> None:
    about = {"num_neighbors": [4, 3], "edge_label_index": WRITES, "batch_size": 128, "seed": 2}
    about["neg_sampling"] = neg_sampling
    want = loaded(lambda: LinkNeighborLoader(make_data(), **about))
    got = loaded(lambda: LinkNeighborLoader(make_data("cuda", "cuda"), **about))
    assert [content(batch) for batch in got] == [content(batch) for batch in want]


@on_a_gpu
@pytest.mark.parametrize(
    "options",
    [
        {"subgraph_type": "induced"},
        {"subgraph_type": "induced", "disjoint": True},
        {"edge_weights": "ht"},
        {"weight_attr": "edge_attr", "edge_weights": "ht"},
        {"labor": "exact", "edge_weights": "ht"},
        {"labor": "poisson"},
    ],
    ids=str,
)
def test_what_else_there_is(options: Any) -> None:
    about = {"num_neighbors": [4, 3], "input_nodes": "paper", "batch_size": 64, "seed": 2}
    mine = {"z": {"author": torch.arange(NODES["author"] * 3).reshape(-1, 3)}}
    of_edges = {"mine": {CITES: torch.arange(2000)}}
    want = loaded(lambda: NeighborLoader(make_data(), **about, **options))
    data = make_data("cuda", "cuda")
    own = {"features": mine, "edge_features": of_edges}
    got = loaded(lambda: NeighborLoader(data, **about, **options, **own))
    for batch in got:
        assert batch["author"].z.device.type == "cuda"
        assert batch["author"].z.cpu().equal(mine["z"]["author"][batch["author"].n_id.cpu()])
        assert batch[CITES].mine.cpu().equal(batch[CITES].e_id.cpu())
        del batch["author"].z, batch[CITES].mine
    assert [content(batch) for batch in got] == [content(batch) for batch in want]


@on_a_gpu
def test_hgt() -> None:
    about = {"num_samples": [16, 8], "input_nodes": "paper", "batch_size": 64, "seed": 2}
    want = loaded(lambda: HGTLoader(make_data(), **about))
    got = loaded(lambda: HGTLoader(make_data("cuda", "cuda"), **about))
    assert [content(batch) for batch in got] == [content(batch) for batch in want]
    assert got[0]["paper"].x.device.type == "cuda"


@on_a_gpu
def test_edges_in_order() -> None:
    data = make_data("cuda", "cuda")
    torch.manual_seed(0)
    convs = {kind: SAGEConv((4, 4), 3).cuda() for kind in (CITES, WRITES)}
    outs = []
    for layout in ("coo", "edge_index"):
        about = {"num_neighbors": [4, 3], "input_nodes": "paper", "batch_size": 64, "seed": 2}
        loader = NeighborLoader(data, **about, edge_index=layout)
        loader.set_epoch(1)
        batch = next(iter(loader))
        assert isinstance(batch[CITES].edge_index, EdgeIndex) == (layout == "edge_index")
        x = batch.x_dict
        outs.append([c((x[k[0]], x[k[2]]), batch[k].edge_index) for k, c in convs.items()])
    for mine, other in zip(*outs, strict=True):
        assert torch.allclose(mine, other, atol=1e-5)


@on_a_gpu
def test_a_model_trains() -> None:
    class SAGE(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = SAGEConv((-1, -1), 16), SAGEConv((-1, -1), 3)

        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.two(self.one(x, edge_index).relu(), edge_index)

    data = make_data("cuda", "cuda")
    torch.manual_seed(0)
    model = to_hetero(SAGE(), data.metadata()).cuda()
    about = {"num_neighbors": [4, 3], "input_nodes": "paper", "batch_size": 64}
    losses = []
    for batch in NeighborLoader(data, seed=2, **about):
        out = model(batch.x_dict, batch.edge_index_dict)["paper"][: batch["paper"].batch_size]
        loss = torch.nn.functional.cross_entropy(out, batch["paper"].y[: len(out)])
        loss.backward()
        losses.append(loss.item())
    assert len(losses) == 5
    assert all(0 < loss < 10 for loss in losses)
