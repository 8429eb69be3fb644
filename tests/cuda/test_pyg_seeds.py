"""Chosen seeds, the older loader and both directions on a GPU: the CPU's batches."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="needs PyG")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.sampler import NodeSamplerInput  # noqa: E402

from pygsampler.pyg import (  # noqa: E402
    BidirectionalNeighborSampler,
    LinkNeighborLoader,
    NeighborLoader,
    NeighborSampler,
    Node2Vec,
)
from pygsampler.pyg import loader as older  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
NODES, EDGES = 300, 2400


def make_data() -> Any:
    random = torch.Generator().manual_seed(0)
    edges = torch.randint(NODES, (2, EDGES), generator=random)
    times = torch.randint(50, (EDGES,), generator=random)
    return Data(torch.arange(NODES), edges, edge_at=times)


def passes(loader: Any, manual: int) -> list[Any]:
    torch.manual_seed(manual)
    return [
        [
            {name: value.tolist() for name, value in batch if torch.is_tensor(value)}
            for batch in loader
        ]
        for _ in range(2)
    ]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (NeighborLoader, {}),
        (NeighborLoader, {"time_attr": "edge_at", "temporal_comparison": "strictly_increasing"}),
        (LinkNeighborLoader, {"neg_sampling": "binary"}),
    ],
)
def test_a_chosen_seed_alone_decides(kind: Any, options: dict[str, Any]) -> None:
    if "time_attr" in options:
        options = options | {"input_time": torch.arange(NODES) % 40}

    def made(device: str) -> Any:
        common = {"batch_size": 64, "shuffle": True, "seed": 1}
        return kind(make_data(), [4, 3], device=device, **common, **options)

    expected = passes(made("cpu"), 1)
    assert expected[0] != expected[1]
    assert passes(made("cuda"), 2) == expected


def test_walks_and_negatives_of_a_chosen_seed_repeat() -> None:
    def made(manual: int) -> Any:
        torch.manual_seed(manual)
        model = Node2Vec(make_data().edge_index, 4, 5, 3, seed=1).cuda()
        loader = model.loader(batch_size=64, shuffle=True)
        before = torch.cuda.get_rng_state()
        found = [[runs.tolist() for runs in batch] for batch in loader]
        assert torch.equal(torch.cuda.get_rng_state(), before)
        return found

    assert made(1) == made(2)


@pytest.mark.parametrize("sizes", [[3], [4, 3], [-1, 2]])
def test_the_older_loader(sizes: list[int]) -> None:
    seeds = torch.tensor([3, 5, 3, 9, 3, 5, 8])
    index = make_data().edge_index
    on_cpu, on_gpu = (
        older.NeighborSampler(index, sizes, seeds, seed=1, batch_size=7, device=device)
        for device in ("cpu", "cuda")
    )
    for (_, expected, _), (size, found, adjs) in zip(on_cpu, on_gpu, strict=True):
        assert size == 7
        assert found.is_cuda
        assert found.tolist() == expected.tolist()
        for edge_index, e_id, _ in adjs if isinstance(adjs, list) else [adjs]:
            assert torch.equal(index.cuda()[:, e_id], found[edge_index])


def test_both_directions_and_attributes() -> None:
    data = make_data()
    seeds = NodeSamplerInput(None, torch.arange(20))
    outs = []
    for device in ("cpu", "cuda"):
        sampler = BidirectionalNeighborSampler(data, [3, 2], seed=1, device=device)
        sampler.set_epoch(0)
        outs.append(sampler.sample_from_nodes(seeds))
    expected, found = outs
    assert found.node.is_cuda
    for name in ("node", "row", "col", "edge"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    one, other = (NeighborSampler(data, [3], device=device) for device in ("cpu", "cuda"))
    for name in ("colptr", "row", "perm"):
        assert getattr(other, name).device.type == "cpu"
        assert torch.equal(getattr(one, name), getattr(other, name))
