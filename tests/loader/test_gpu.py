"""DataLoader on a GPU, as far as that can be told without one: what it submits, when, and where.

A graph that says it is on a GPU, a sampler whose launches are sampled by the CPU, and host memory
in place of the device's. tests/cuda/test_torch_loader.py has the same questions for a real one.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch_graphs import csc

import pygsampler as pgs
from pygsampler._arrays.ids import IdView
from pygsampler._loader import arguments, node_seeds
from pygsampler.torch import DataLoader
from tests.support.assertions import contents

NODES = 2000
SEEDS = torch.arange(0, 1000)
DEVICE = "cuda:0"


class OnGpu(pgs.Graph):
    """A graph that is where it says by its word alone."""

    device = DEVICE  # type: ignore[assignment]


class Launched:
    """A batch on its way to the GPU; the CPU samples it."""

    def __init__(self, desk: Desk, job: Any) -> None:
        self.desk, self.job = desk, job
        desk.in_flight += 1
        desk.most = max(desk.most, desk.in_flight)

    def result(self) -> Any:
        self.desk.in_flight -= 1
        return self.job.result().torch()

    def done(self) -> bool:
        return bool(self.job.done())

    def cancel(self) -> None:
        self.desk.in_flight -= 1
        self.desk.cancelled += 1
        self.job.cancel()


class Desk(pgs.PGSampler):
    """A sampler that remembers what was launched."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.in_flight = self.most = self.cancelled = 0
        self.launched: list[tuple[int, int, IdView]] = []

    def launch(self, graph: pgs.Graph, seeds: Any, *, epoch: int, batch: int, **how: Any) -> Any:
        if how.get("form", "array") == "array":
            return super().launch(graph, seeds, epoch=epoch, batch=batch, **how)
        assert graph.device == DEVICE
        assert how["asynchronous"]
        self.launched.append((epoch, batch, seeds))
        return Launched(self, self.submit(graph, seeds, epoch=epoch, batch=batch))


@pytest.fixture
def graph() -> pgs.Graph:
    return OnGpu.from_csc(*csc(NODES, 39))


@pytest.fixture(autouse=True)
def copies(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """What was copied to the device, which is host memory here."""
    made: list[torch.Tensor] = []

    def copied(order: torch.Tensor, index: int) -> torch.Tensor:
        assert index == 0
        made.append(order.clone())
        return made[-1]

    monkeypatch.setattr(arguments, "_check", lambda index: None)
    monkeypatch.setattr(node_seeds, "to_device", copied)
    return made


@pytest.mark.parametrize("prefetch", [0, 1, 2, 8, 50])
@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_of_the_cpu(graph: pgs.Graph, prefetch: int, shuffle: bool) -> None:
    options: dict[str, Any] = {"batch_size": 64, "shuffle": shuffle, "prefetch": prefetch}
    sampler = Desk([5, 3], seed=3)
    loader = DataLoader(graph, SEEDS, sampler, **options)
    assert loader.device == DEVICE
    plain = DataLoader(pgs.Graph.from_csc(*csc(NODES, 39)), SEEDS, [5, 3], seed=3, **options)
    assert plain.device == "cpu"
    assert [contents(loader), contents(loader)] == [contents(plain), contents(plain)]
    assert sampler.in_flight == sampler.cancelled == 0
    assert sampler.most == min(max(prefetch, 1), 8)


def test_ranks_and_epochs(graph: pgs.Graph) -> None:
    options: dict[str, Any] = {"batch_size": 60, "shuffle": True, "world_size": 3, "seed": 1}
    plain = pgs.Graph.from_csc(*csc(NODES, 39))
    for rank in range(3):
        loader = DataLoader(graph, SEEDS, Desk([4], seed=1), rank=rank, **options)
        other = DataLoader(plain, SEEDS, [4], rank=rank, **options)
        loader.set_epoch(5)
        other.set_epoch(5)
        assert contents(loader) == contents(other)


def test_seeds_are_copied_once_an_epoch(graph: pgs.Graph, copies: list[torch.Tensor]) -> None:
    sampler = Desk([3], seed=0)
    loader = DataLoader(graph, SEEDS.int(), sampler, batch_size=100, shuffle=True)
    batches = iter(loader)
    assert copies == [], "nothing is copied before the first batch is asked for"
    list(batches)
    list(loader)
    assert len(copies) == 2
    for epoch, batch, seeds in sampler.launched:
        order = copies[epoch]
        assert order.dtype == torch.int32
        assert seeds.bits == 32
        assert seeds.owner is order
        assert seeds.address == order.data_ptr() + 4 * 100 * batch
    assert loader._source._seeds.equal(SEEDS.int())


def test_leaving_early_cancels_what_is_in_flight(graph: pgs.Graph) -> None:
    sampler = Desk([3], seed=0)
    loader = DataLoader(graph, SEEDS, sampler, batch_size=20, prefetch=4)
    for step, _ in enumerate(loader):
        if step == 2:
            break
    assert (sampler.cancelled, sampler.in_flight) == (4, 0)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 / 0  # noqa: B018
    assert (sampler.cancelled, sampler.in_flight) == (8, 0)


@pytest.mark.parametrize("where", ["launch", "result"])
def test_an_error_has_its_turn(
    graph: pgs.Graph, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    class Failing(Desk):
        def launch(self, graph: pgs.Graph, seeds: Any, **how: Any) -> Any:
            job = super().launch(graph, seeds, **how)
            if how.get("form", "array") == "array" or how["batch"] != 6:
                return job
            if where == "launch":
                job.result()
                raise pgs.errors.CudaError("launch 6")
            job.job = Broken()
            return job

    class Broken:
        def result(self) -> Any:
            raise pgs.errors.CudaError("result 6")

    sampler = Failing([3], seed=0)
    seen = 0
    with pytest.raises(pgs.errors.CudaError, match=f"{where} 6"):
        for _ in DataLoader(graph, SEEDS, sampler, batch_size=20, prefetch=4):
            seen += 1
    assert (seen, sampler.in_flight) == (6, 0)


def test_bar(graph: pgs.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    loader = DataLoader(graph, SEEDS, Desk([5], seed=2), batch_size=100, progress=True)
    assert len(list(loader)) == 10
    assert "10/10" in capsys.readouterr().err


def test_no_seeds(graph: pgs.Graph) -> None:
    assert list(DataLoader(graph, [], Desk([2]), batch_size=8, shuffle=True)) == []


class Moving(pgs.Graph):
    """A graph that remembers where it was asked to go."""

    asked: list[str]

    def to(self, device: Any) -> pgs.Graph:
        self.asked.append(str(device))
        return OnGpu.from_csc(*csc(NODES, 39))


@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda", 0)])
def test_a_graph_elsewhere_is_moved_once(monkeypatch: pytest.MonkeyPatch, device: Any) -> None:
    monkeypatch.setattr(Moving, "asked", [], raising=False)
    graph = Moving.from_csc(*csc(NODES, 39))
    loader = DataLoader(graph, SEEDS, Desk([2], seed=1), batch_size=100, device=device)
    assert loader.device == DEVICE
    assert "device='cuda:0'" in repr(loader)
    list(loader)
    list(loader)
    assert len(Moving.asked) == 1


@pytest.mark.parametrize("device", [None, "cuda", "cuda:0"])
def test_a_graph_in_its_place_stays(graph: pgs.Graph, device: Any) -> None:
    assert DataLoader(graph, SEEDS, [2], batch_size=100, device=device).graph is graph


def test_nothing_moves_when_something_else_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moving, "asked", [], raising=False)
    graph = Moving.from_csc(*csc(NODES, 39))
    with pytest.raises(IndexError):
        DataLoader(graph, [NODES], [2], batch_size=100, device="cuda")
    with pytest.raises(ValueError, match="batch_size"):
        DataLoader(graph, SEEDS, [2], batch_size=0, device="cuda")
    assert Moving.asked == []


def test_a_torch_without_the_gpu_that_the_engine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(arguments.devices, "require", lambda index: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    arguments._check(0)
    with pytest.raises(
        pgs.errors.CudaError, match=r"that torch can use, got 'cuda:1'; torch .* of them"
    ):
        arguments._check(1)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(pgs.errors.CudaError, match=r"got 'cuda:0'; torch .* is built without CUDA"):
        arguments._check(0)
