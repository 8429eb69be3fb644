"""torch's loader on graphs with types on a GPU: the CPU's batches, and a model on them."""

from __future__ import annotations

from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch")
from pygsampler.torch import DataLoader  # noqa: E402
from tests.support.assertions import content, contents  # noqa: E402
from tests.support.hetero_graphs import random_edges  # noqa: E402

on_a_gpu = pytest.mark.usefixtures("gpu")
on_devices = pytest.mark.usefixtures("host_tensors")
KINDS = {("a", "to", "b"): 900, ("b", "to", "a"): 700, ("b", "by", "b"): 800}
NODES = {"a": 60, "b": 90}


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return pgs.Graph.from_coo(random_edges(NODES, KINDS, 1), num_nodes=NODES)


def with_rows() -> dict[str, Any]:
    """Features and labels."""
    random = torch.Generator().manual_seed(3)
    return {
        "features": {"x": {k: torch.randn(n, 8, generator=random) for k, n in NODES.items()}},
        "labels": {k: torch.randint(0, 5, (n,), generator=random) for k, n in NODES.items()},
    }


def loaders(graph: pgs.Graph, seeds: Any = None, **options: Any) -> tuple[Any, Any]:
    """The same loader on the CPU and on a device."""
    seeds = seeds or {"a": torch.arange(60), "b": torch.arange(50)}
    options |= {"batch_size": 16, "shuffle": True}
    sampler = pgs.PGSampler([4, dict(zip(KINDS, (3, 2, -1), strict=True))], seed=3)
    here = DataLoader(graph, seeds, sampler, **options)
    return here, DataLoader(graph, seeds, sampler, device="cuda", **options)


@on_devices
@pytest.mark.parametrize("prefetch", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("seeds", [{"b": torch.arange(90)}, None], ids=["of a type", "of types"])
def test_batches_of_the_cpu(graph: pgs.Graph, seeds: Any, prefetch: int) -> None:
    here, there = loaders(graph, seeds, prefetch=prefetch)
    assert there.device == "cuda:0"
    for _ in range(2):
        want = contents(here)
        assert len(want) == len(here)
        assert contents(there) == want
    for _ in there:
        break
    there.graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        list(there)
    assert pgs.cuda.memory_stats(0)["flights"] == 0


@on_devices
@pytest.mark.parametrize("prefetch", [0, 3])
@pytest.mark.parametrize("caps", [None, {"a": 15, "b": 3}])
def test_neighbors_by_types(caps: dict[str, int] | None, prefetch: int) -> None:
    """Some walks have to go on, after other batches have begun."""
    kinds = dict.fromkeys(KINDS, 300)
    graph = pgs.Graph.from_coo(random_edges(NODES, kinds, 1), num_nodes=NODES)
    seeds = {"a": torch.arange(60), "b": torch.arange(50)}
    sampler = pgs.walks.RestartNeighbors(None, {"a": 4, "b": 2}, caps=caps, collect=18, seed=3)
    options: dict[str, Any] = {"batch_size": 32, "shuffle": True, "prefetch": prefetch}
    want = contents(DataLoader(graph, seeds, sampler, **options))
    there = DataLoader(graph, seeds, sampler, device="cuda", **options)
    assert there.device == "cuda:0" and len(want) == 4
    assert contents(there) == want
    assert pgs.cuda.memory_stats(0)["flights"] == 0


@on_a_gpu
@pytest.mark.parametrize("prefetch", [0, 1, 4, 8])
def test_rows_of_batches_are_the_cpus(graph: pgs.Graph, prefetch: int) -> None:
    here, there = loaders(graph, prefetch=prefetch, **with_rows())
    for _ in range(2):
        want = [content(batch) for batch in here]
        got = []
        for batch in there:
            tensors = [*batch.input_nodes.values(), *batch.x.values(), *batch.y.values()]
            for hop in batch.blocks:
                tensors += [t for b in hop.values() for t in (b.indptr, b.indices, b.edge_ids)]
            assert {t.device.type for t in tensors} == {"cuda"}
            got.append(content(batch))
        assert got == want


@on_a_gpu
def test_a_model_trains_on_both(graph: pgs.Graph) -> None:
    """A layer of R-GCN a hop: losses of the GPU are the CPU's, to single precision."""

    def losses(loader: Any, device: str) -> list[float]:
        torch.manual_seed(0)
        own = {kind: torch.nn.Linear(8, 8) for kind in NODES}
        of = {kind: torch.nn.Linear(8, 8, bias=False) for kind in KINDS}
        parts = torch.nn.ModuleList([*own.values(), *of.values()]).to(device)
        optimizer = torch.optim.SGD(parts.parameters(), lr=0.05)
        found = []
        for batch in loader:
            h = dict(batch.x)
            for hop in batch.blocks:
                made: dict[str, Any] = {}
                for kind, block in hop.items():
                    src, _, dst = kind
                    if dst not in made:
                        made[dst] = own[dst](h[dst][: block.num_dst_nodes])
                    rows = h[src][: block.num_src_nodes]
                    made[dst] = made[dst] + of[kind](block.mean(rows))
                h = {kind: rows.relu() for kind, rows in made.items()}
            terms = [
                torch.nn.functional.cross_entropy(h[kind][: len(y)], y)
                for kind, y in batch.y.items()
                if len(y)
            ]
            loss = torch.stack(terms).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    here, there = loaders(graph, **with_rows())
    assert losses(there, "cuda") == pytest.approx(losses(here, "cpu"), rel=1e-4)


@on_a_gpu
@pytest.mark.parametrize("exact", [True, False])
def test_labor(graph: pgs.Graph, exact: bool) -> None:
    sampler = pgs.LaborSampler([4, 3], exact=exact, edge_weights="ht", seed=3)
    seeds = {"a": torch.arange(60), "b": torch.arange(50)}
    want = list(DataLoader(graph, seeds, sampler, batch_size=16))
    for batch, other in zip(
        DataLoader(graph, seeds, sampler, batch_size=16, device="cuda"), want, strict=True
    ):
        assert {ids.device.type for ids in batch.input_nodes.values()} == {"cuda"}
        assert {k: v.tolist() for k, v in batch.input_nodes.items()} == {
            k: v.tolist() for k, v in other.input_nodes.items()
        }
        for mine, theirs in zip(batch.blocks, other.blocks, strict=True):
            for kind, block in theirs.items():
                assert mine[kind].edge_ids.tolist() == block.edge_ids.tolist()
                assert mine[kind].edge_weights.tolist() == block.edge_weights.tolist()
