"""Programs over relations on a device: the CPU's batches, directly and by a loader."""

from __future__ import annotations

from typing import Any

import pytest
from relation_programs import CITES, EMPLOYS, WRITES, cited_and_written, make_graph

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.torch import DataLoader  # noqa: E402
from tests.programs.test_hetero import (  # noqa: E402
    SEEDS,
    both,
    fastgcn,
    over,
    typed,
    writers,
)
from tests.support.assertions import content, contents  # noqa: E402

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("written_on_the_device")]


@pytest.fixture
def written_on_the_device(
    backend: str, host_tensors: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the emulator, tensors that torch writes a batch to are in the memory of the device."""
    if backend == "emulator":
        from tests.support.host_tensors import upload

        tensor, empty = torch.tensor, torch.empty
        monkeypatch.setattr(
            torch, "tensor", lambda values, device=None, **options: tensor(values, **options)
        )
        monkeypatch.setattr(
            torch, "empty", lambda *size, **options: upload(empty(*size, **options), 0)
        )


CASES = {
    "both": (both(K=2, seed=5, weight="w"), SEEDS),
    "fastgcn": (over(fastgcn, CITES), {"paper": [7, 3]}),
    "induce": (
        pgs.program(lambda A, seeds: A[CITES].induce(seeds.unique()))(seed=1),
        {"paper": list(range(0, 60, 2))},
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["to", "pin"])
def test_batches_of_the_cpu(name: str, how: str) -> None:
    graph = typed(EMPLOYS, WRITES, CITES)
    sampler, seeds = CASES[name]
    want = content(sampler.sample(graph, seeds, epoch=1, batch=2))
    there: Any = graph.to("cuda") if how == "to" else graph.pin("cuda")
    assert content(sampler.sample(there, seeds, epoch=1, batch=2)) == want
    many = sampler.sample_many(there, [seeds] * 3, epoch=1, batch=0)
    assert content(many[2]) == want
    assert there._joint(*next(iter(there._joints))).graph.device == "cuda:0"
    assert pgs.cuda.memory_stats(0)["flights"] == 0


def test_excluded_edges() -> None:
    graph = typed(EMPLOYS, WRITES, CITES)
    options: dict[str, Any] = {"epoch": 1, "batch": 2}
    options["exclude"] = {CITES: list(range(0, 220, 2)), WRITES: list(range(100))}
    sampler = writers(K=2, seed=5, weight="w")
    want, found = (sampler.sample(g, SEEDS, **options) for g in (graph, graph.to("cuda")))
    assert content(found) == content(want)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_batches_of_a_loader(dtype: str) -> None:
    graph = make_graph(dtype)
    there, sampler = graph.to("cuda"), cited_and_written(K=2, seed=5, weight="w")
    seeds = {"paper": range(0, 60, 7), "author": [3, 0, 39]}
    batch = sampler.sample(there, seeds, batch=3)
    assert batch.device == batch.input_nodes["paper"].device == "cuda:0"
    expected = content(sampler.sample(graph, seeds, batch=3))
    assert content(batch) == content(batch.cpu()) == content(batch.torch()) == expected
    options: dict[str, Any] = {"batch_size": 4, "shuffle": True, "prefetch": 3}
    want = contents(DataLoader(graph, seeds, sampler, **options))
    assert contents(DataLoader(there, seeds, sampler, **options)) == want
    assert pgs.cuda.memory_stats(0)["flights"] == 0
