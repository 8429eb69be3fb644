"""Links and their negatives on a GPU: as on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402
from pygsampler.torch import LinkLoader, NegativeSampling  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
NODES = 700


def edges(dtype: Any) -> Any:
    random = torch.Generator().manual_seed(1)
    return torch.randint(0, NODES - 20, (2, 4000), generator=random).to(dtype)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("kind", ["uniform", "degree", "in_batch", "structural"])
def test_negatives_of_the_cpu(kind: str, dtype: Any) -> None:
    src, dst = edges(dtype)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES)
    there = graph.to("cuda")
    negatives = NegativeSampling(kind, 7)
    numbers: dict[str, int] = {"seed": 5, "epoch": 2, "batch": 9}
    made = negatives.draw(there, src.cuda(), dst.cuda(), **numbers)
    assert made.is_cuda
    assert made.cpu().equal(negatives.draw(graph, src, dst, **numbers))


@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("kind", ["uniform", "degree", "in_batch", "structural"])
def test_loader_of_the_cpu(kind: str, mode: str) -> None:
    src, dst = edges(torch.int64)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES)
    options: dict[str, Any] = {"batch_size": 300, "seed": 3, "shuffle": True}
    options |= {
        "negative_sampling": NegativeSampling(kind, 2, mode=mode),
        "features": {"x": torch.eye(NODES)},
    }
    loaders = [
        LinkLoader(graph, torch.arange(0, 4000, 3), [4, 3], device=where, **options)
        for where in ("cpu", "cuda")
    ]
    for cpu, gpu in zip(*loaders, strict=True):
        assert cpu.input_id.equal(gpu.input_id)
        for one, other in zip(cpu[2:], gpu[2:], strict=True):
            if one is None:
                assert other is None
            else:
                assert other.is_cuda
                assert one.equal(other.cpu())
        assert cpu.minibatch.input_nodes.equal(gpu.minibatch.input_nodes.cpu())
        assert cpu.minibatch.x.equal(gpu.minibatch.x.cpu())
        for mine, theirs in zip(cpu.minibatch.blocks, gpu.minibatch.blocks, strict=True):
            assert mine.edge_ids.equal(theirs.edge_ids.cpu())


@pytest.mark.parametrize("exclude", ["self", "reverse_id", None])
def test_loader_of_the_cpu_by_time(exclude: str | None) -> None:
    """What the batch's own edges are left out of are rows by time."""
    src, dst = edges(torch.int64)
    when = torch.arange(4000) % 90
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data={"t": when})
    options: dict[str, Any] = {"batch_size": 300, "seed": 3, "shuffle": True, "exclude": exclude}
    if exclude == "reverse_id":
        options["reverse_eids"] = torch.arange(3999, -1, -1)
    ids = torch.arange(0, 4000, 3)
    sampler = pgs.PGSampler([40, 3], seed=2, temporal="t")
    loaders = [
        LinkLoader(graph, ids, sampler, device=where, seed_time=when[ids], **options)
        for where in ("cpu", "cuda")
    ]
    for cpu, gpu in zip(*loaders, strict=True):
        assert cpu.minibatch.subgraph_ids.equal(gpu.minibatch.subgraph_ids.cpu())
        for mine, theirs in zip(cpu.minibatch.blocks, gpu.minibatch.blocks, strict=True):
            assert mine.edge_ids.equal(theirs.edge_ids.cpu())
            if exclude is not None:
                assert not torch.isin(mine.edge_ids, ids[cpu.input_id]).any()


@pytest.mark.parametrize("static", [False, True])
def test_reverses_of_another_type_are_left_out(static: bool) -> None:
    """By ids of their own, by a callable, and as the graph knows them."""
    random = torch.Generator().manual_seed(2)
    buys, bought = ("user", "buys", "item"), ("item", "bought", "user")
    pairs = torch.randperm(60 * 50, generator=random)[:900]
    order = torch.randperm(900, generator=random)
    users, items, place = pairs // 50, pairs % 50, order.argsort()
    graph = pgs.Graph.from_coo(
        {buys: (users, items), bought: (items[place], users[place])},
        num_nodes={"user": 60, "item": 50},
    )
    given, turned = torch.arange(0, 900, 2), {"reverse_etypes": {"buys": "bought"}}
    for how in (
        {"exclude": "reverse_id", "reverse_eids": {buys: order}, **turned},
        {"exclude": "reverse_id", **turned},
        {"exclude": lambda ids: {buys: ids[buys], "bought": order[ids[buys]]}},
    ):
        options: dict[str, Any] = {"batch_size": 64, "seed": 3, "shuffle": True, **how}
        there = LinkLoader(graph, {"buys": given}, [8, 8], device="cuda", static=static, **options)
        here = LinkLoader(graph, {"buys": given}, [8, 8], **options)
        for cpu, gpu in zip(here, there, strict=True):
            made = gpu.trimmed() if static else gpu
            predicted = given[made.input_id[buys].cpu()]
            for one, other in zip(cpu.minibatch.blocks, made.minibatch.blocks, strict=True):
                for kind, gone in ((buys, predicted), (bought, order[predicted])):
                    ids = other[kind[1]].edge_ids.cpu()
                    assert ids.equal(one[kind].edge_ids)
                    assert not torch.isin(ids, gone).any()
