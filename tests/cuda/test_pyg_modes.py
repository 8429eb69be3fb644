"""PGSampler in PyG's loaders on a device: the CPU's batches, wherever edges and features are."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="needs PyG")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.loader import NodeLoader  # noqa: E402
from torch_geometric.sampler import NodeSamplerInput  # noqa: E402

import pygsampler as pgs  # noqa: E402
from pygsampler.pyg import (  # noqa: E402
    LinkNeighborLoader,
    NeighborLoader,
    PGSampler,
    Sampler,
)
from tests.support.program_functions import around  # noqa: E402

# PyG and torch warn of each other, and Python of the forks of torch's loader.
pytestmark = pytest.mark.filterwarnings("ignore")
# Tests without it run on the emulator, too.
on_a_gpu = pytest.mark.usefixtures("gpu")
on_devices = pytest.mark.usefixtures("host_tensors")
NODES, EDGES = 500, 4000
SEEDS = torch.cat([torch.arange(300), torch.tensor([7, 7, 3, 7])])
PLAIN: list[dict[str, Any]] = [
    {},
    {"replace": True},
    {"disjoint": True},
    {"subgraph_type": "bidirectional"},
    {"subgraph_type": "induced"},
]
MORE: list[dict[str, Any]] = [
    {"weight_attr": "edge_attr"},
    {"weight_attr": "edge_attr", "edge_weights": "ht"},
    {"disjoint": True, "edge_weights": "ht"},
    {"weight_attr": "edge_attr", "subgraph_type": "induced"},
    {"labor": "exact"},
    {"labor": "poisson", "subgraph_type": "induced"},
    {"time_attr": "edge_time", "input_time": SEEDS % 45, "temporal_strategy": "uniform"},
    {"time_attr": "edge_time", "input_time": SEEDS % 45, "temporal_strategy": "last"},
]


def make_data(edges_on: str = "cpu", features_on: str = "cpu", dtype: Any = torch.int64) -> Any:
    random = torch.Generator().manual_seed(0)
    src = torch.randint(0, NODES, (EDGES,), generator=random)
    dst = (torch.rand(EDGES, generator=random) ** 3 * NODES * 0.9).long()
    return Data(
        x=torch.randn(NODES, 4, generator=random).to(features_on),
        edge_attr=torch.arange(EDGES).to(features_on),
        edge_time=(torch.arange(EDGES) % 50).to(features_on),
        edge_index=torch.stack([src, dst]).to(dtype).to(edges_on),
    )


def content(batch: Any) -> dict[str, Any]:
    """A batch as something to compare: of the reverse of an edge PyG keeps any id."""
    return {k: v.tolist() if hasattr(v, "tolist") else v for k, v in batch.to_dict().items()}


def batches(make: Any, data: Any, **options: Any) -> list[Any]:
    """The batches of the second epoch, which a device samples where it is given one."""
    loader = make(data, [5, 4], seed=3, **options)
    loader.set_epoch(1)
    sampler = getattr(loader, "node_sampler", None) or loader.link_sampler
    assert sampler.device == ("cpu" if options.get("device", "cpu") == "cpu" else "cuda:0")
    return list(loader)


def compare(options: dict[str, Any], data: Any, dtype: Any = torch.int64) -> list[Any]:
    options = {"input_nodes": SEEDS, "batch_size": 76, **options}
    want = batches(NeighborLoader, make_data(dtype=dtype), **options)
    found = batches(NeighborLoader, data, device="cuda", **options)
    for mine, theirs in zip(found, want, strict=True):
        if options.get("subgraph_type") == "bidirectional":
            assert mine.n_id.cpu().equal(theirs.n_id)
            assert mine.edge_index.cpu().equal(theirs.edge_index)
        else:
            assert content(mine) == content(theirs)
    return found


@on_devices
@pytest.mark.parametrize("options", PLAIN + MORE, ids=str)
def test_batches_of_the_cpu(options: dict[str, Any]) -> None:
    compare(options, make_data())


@on_devices
@pytest.mark.parametrize("options", [PLAIN[0], *MORE[4:6]], ids=str)
def test_batches_of_edges_of_32_bits(options: dict[str, Any]) -> None:
    compare(options, make_data(dtype=torch.int32), torch.int32)


@on_a_gpu
@pytest.mark.parametrize("features_on", ["cpu", "cuda"])
@pytest.mark.parametrize("edges_on", ["cpu", "cuda"])
@pytest.mark.parametrize("options", PLAIN, ids=str)
def test_edges_and_features_are_where_the_data_has_them(
    options: dict[str, Any], edges_on: str, features_on: str
) -> None:
    for batch in compare(options, make_data(edges_on, features_on)):
        assert batch.n_id.is_cuda
        assert batch.e_id.is_cuda
        assert batch.x.device.type == batch.edge_attr.device.type == features_on
        assert batch.edge_index.device.type == edges_on


@on_devices
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_links_of_data_on_the_cpu(dtype: Any) -> None:
    options = {"neg_sampling": "binary", "batch_size": 500}
    want = batches(LinkNeighborLoader, make_data(dtype=dtype), **options)
    found = batches(LinkNeighborLoader, make_data(dtype=dtype), device="cuda", **options)
    assert [*map(content, found)] == [*map(content, want)]


@on_devices
@pytest.mark.parametrize("labor", ["exact", "poisson"])
def test_factors_of_links(labor: str) -> None:
    options = {"labor": labor, "edge_weights": "ht", "batch_size": 1000}
    want = batches(LinkNeighborLoader, make_data(), **options)
    found = batches(LinkNeighborLoader, make_data(), device="cuda", **options)
    assert [*map(content, found)] == [*map(content, want)]


@pgs.program
def two_hops(A: Any, seeds: Any) -> Any:
    B = A[:, A[:, seeds].row()].individual_sample(3)
    return [A[:, B.row()].individual_sample(2).edata["t"], B.edata["t"]]


@on_devices
@pytest.mark.parametrize("program", [around, two_hops], ids=["around", "two_hops"])
def test_programs_of_the_cpu(program: Any) -> None:
    sampler = program(seed=0)
    data = make_data()
    data.t = torch.arange(EDGES) % 3 + 1.0
    for seeds in ([7, 3, 9], [7, 3, 7, 7], [5, 5]):
        results = []
        for device in ("cpu", "cuda"):
            on_device = Sampler(data, sampler, device=device)
            on_device.set_epoch(1)
            ids = NodeSamplerInput(None, torch.tensor(seeds))
            results.append(on_device.sample_from_nodes(ids))
        for name in ("node", "row", "col", "edge", "edge_weights"):
            want, found = (getattr(out, name) for out in results)
            assert torch.equal(found.cpu(), want), (seeds, name)
        assert on_device.device == "cuda:0" and len(found)


@on_devices
@pytest.mark.parametrize("kind", ["directional", "induced"])
def test_a_pinned_graph(kind: str) -> None:
    data = make_data()
    graph = pgs.Graph.from_pyg(data)
    with graph.pin("cuda") as pinned:
        results = []
        for each in (graph, pinned):
            sampler = PGSampler(each, [5, 4], seed=1, subgraph_type=kind)
            sampler.set_epoch(0)
            results.append([content(b) for b in NodeLoader(data, sampler, batch_size=99)])
        assert results[0] == results[1]


@on_a_gpu
@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("disjoint", [False, True])
def test_links_of_data_on_a_gpu(disjoint: bool, mode: str) -> None:
    common = {"neg_sampling": mode, "batch_size": 500, "seed": 3, "disjoint": disjoint}
    on_cpu = LinkNeighborLoader(make_data(), [4, 3], **common)
    on_gpu = LinkNeighborLoader(make_data("cuda", "cuda"), [4, 3], **common)
    for loader in (on_cpu, on_gpu):
        loader.set_epoch(1)
    for expected, found in zip(on_cpu, on_gpu, strict=True):
        assert content(found) == content(expected)
        names = ("edge_label_index", "edge_label") if mode == "binary" else ("dst_neg_index",)
        assert all(found[name].is_cuda for name in names)


@on_a_gpu
def test_data_on_a_gpu_is_sampled_there() -> None:
    data = make_data("cuda", "cuda")
    assert PGSampler(data, [2]).device == "cuda:0"
    assert PGSampler(data, [2], device="cpu").device == "cpu"


@on_a_gpu
def test_workers_sample_on_the_cpu() -> None:
    data = make_data("cuda", "cuda")
    loader = NeighborLoader(data, [5, 4], batch_size=100, num_workers=2)
    assert loader.node_sampler.device == "cpu"
    for batch in loader:
        assert batch.x.is_cuda
        assert batch.x.equal(data.x[batch.n_id])


@on_a_gpu
def test_training_on_the_gpu() -> None:
    """A step reads what a batch is while the next one is sampled."""
    data = make_data("cuda", "cuda")
    weight = torch.zeros(4, 1, device="cuda", requires_grad=True)
    for batch in NeighborLoader(data, [5, 4], batch_size=50, shuffle=True):
        src, dst = batch.edge_index
        mean = torch.zeros_like(batch.x).index_add_(0, dst, batch.x[src])
        (mean[: batch.batch_size] @ weight).sum().backward()
    assert bool(weight.grad.isfinite().all())
