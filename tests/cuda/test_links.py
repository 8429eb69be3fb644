"""Links and their negatives on a GPU: as on the CPU."""

from __future__ import annotations

import gc
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402
from pygsampler.torch import LinkLoader, NegativeSampling  # noqa: E402
from tests.support.assertions import content  # noqa: E402

on_gpu = pytest.mark.usefixtures("gpu")
NODES = 700


def edges(dtype: Any) -> Any:
    random = torch.Generator().manual_seed(1)
    return torch.randint(0, NODES - 20, (2, 4000), generator=random).to(dtype)


@on_gpu
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


@pytest.mark.usefixtures("host_tensors")
@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("kind", ["uniform", "degree", "in_batch", "structural"])
def test_loader_of_the_cpu(backend: str, kind: str, mode: str) -> None:
    graph = pgs.Graph.from_coo(*edges(torch.int64), num_nodes=NODES)
    options: dict[str, Any] = {"batch_size": 300, "seed": 3, "shuffle": True}
    options["negative_sampling"] = NegativeSampling(kind, 2, mode=mode)
    if backend == "cuda":
        options["features"] = {"x": torch.eye(NODES)}
    for exclude in ("self", None):
        for prefetch in (0, 3, 12) if kind == "structural" else (2,):
            options |= {"exclude": exclude, "prefetch": prefetch}
            made = []
            for where in ("cpu", "cuda"):
                loader = LinkLoader(
                    graph, torch.arange(0, 4000, 3), [4, 3], device=where, **options
                )
                assert loader.device.startswith(where)
                batches = list(loader)
                assert len(batches) == 5
                made.append([content(batch) for batch in batches])
            assert made[0] == made[1], options
            if backend == "cuda":
                assert all(part is None or part.is_cuda for batch in batches for part in batch[2:])
                for each in (batch.minibatch for batch in batches):
                    assert each.x.is_cuda
                    assert each.x.cpu().equal(torch.eye(NODES)[each.input_nodes.cpu()])
    del batches, loader
    gc.collect()
    assert pgs.cuda.memory_stats(0)["flights"] == 0


@pytest.mark.usefixtures("host_tensors")
@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize("exclude", ["self", "reverse_id", None])
def test_loader_of_the_cpu_by_time(exclude: str | None, prob: str | None) -> None:
    """Checks that the batch's own edges are left out of temporal rows."""
    src, dst = edges(torch.int64)
    when = torch.arange(4000) % 90
    data = {"t": when, "w": when / 3}
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data=data)
    options: dict[str, Any] = {"batch_size": 300, "seed": 3, "shuffle": True, "exclude": exclude}
    if exclude == "reverse_id":
        options["reverse_eids"] = torch.arange(3999, -1, -1)
    ids = torch.arange(0, 4000, 3)
    sampler = pgs.PGSampler([40, 3], seed=2, temporal="t", prob=prob)
    loaders = [
        LinkLoader(graph, ids, sampler, device=where, seed_time=when[ids], **options)
        for where in ("cpu", "cuda")
    ]
    for cpu, gpu in zip(*loaders, strict=True):
        assert content(cpu) == content(gpu)
        assert cpu.minibatch.subgraph_ids.equal(gpu.minibatch.subgraph_ids.cpu())
        for block in cpu.minibatch.blocks:
            assert block.num_edges
            if exclude is not None:
                assert not torch.isin(block.edge_ids, ids[cpu.input_id]).any()


@on_gpu
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
