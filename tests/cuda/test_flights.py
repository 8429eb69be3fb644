"""Several batches at once, one after another for long, and out of order."""

from __future__ import annotations

import gc
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler._sampling import device_job
from tests.support.assertions import assert_equal
from tests.support.parity import MODES, edges_of, random_graph, scaled


@pytest.fixture(scope="module")
def graphs() -> tuple[pgs.Graph, pgs.Graph]:
    cpu = random_graph(scaled(50_000, 300), seed=21).graph(32, 64, 64)
    return cpu, cpu.to("cuda")


def seeds_of(number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    count = scaled(1000, 12) + number % 7
    return np.random.default_rng(number).integers(0, scaled(50_000, 300), count)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flights", [1, 2, 8])
def test_in_flight(graphs: tuple[pgs.Graph, pgs.Graph], mode: str, flights: int) -> None:
    cpu, there = graphs
    sampler = pgs.PGSampler([5, 4], seed=3, mode=mode)
    reference = pgs.PGSampler([5, 4], seed=3)
    jobs = []
    for number in range(scaled(64, flights + 1)):
        jobs.append((number, sampler.submit(there, seeds_of(number), batch=number)))
        if len(jobs) == flights:
            first, job = jobs.pop(0)
            assert_equal(job.result(), reference.sample(cpu, seeds_of(first), batch=first), first)
    for number, job in reversed(jobs):
        assert_equal(job.result(), reference.sample(cpu, seeds_of(number), batch=number), number)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("count", [1, 2, 8, 16])
def test_sample_many(graphs: tuple[pgs.Graph, pgs.Graph], mode: str, count: int) -> None:
    cpu, there = graphs
    count = min(count, scaled(16, 3))
    lists = [seeds_of(number) for number in range(count)]
    got = pgs.PGSampler([5, 4], seed=3, mode=mode).sample_many(there, lists, epoch=2, batch=10)
    want = pgs.PGSampler([5, 4], seed=3).sample_many(cpu, lists, epoch=2, batch=10)
    assert len(got) == len(want) == count
    assert [batch.batch for batch in got] == list(range(10, 10 + count))
    for number, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        assert_equal(mine, theirs, number)
        alone = pgs.PGSampler([5, 4], seed=3).sample(cpu, lists[number], epoch=2, batch=10 + number)
        assert_equal(mine, alone, number)


@pytest.mark.parametrize("fit", [1, 2, 5])
def test_as_many_at_once_as_fit(
    graphs: tuple[pgs.Graph, pgs.Graph], monkeypatch: pytest.MonkeyPatch, fit: int
) -> None:
    """Checks that short memory means fewer batches per launch, and the same batches."""
    cpu, there = graphs
    sampler, flying = pgs.PGSampler([3, 2], seed=4), []
    call, submit = device_job.call, device_job.DeviceLaunch.__init__

    def short(name: str, *arguments: Any) -> Any:
        found = call(name, *arguments)
        return min(found, fit) if name == "DeviceConcurrency" else found

    def counted(self: Any, graph: Any, by: Any, views: list[Any], *numbers: int) -> None:
        flying.append(len(views))
        submit(self, graph, by, views, *numbers)

    monkeypatch.setattr(device_job, "call", short)
    monkeypatch.setattr(device_job.DeviceLaunch, "__init__", counted)
    many = [np.arange(i, i + 5) for i in range(9)]
    got = sampler.sample_many(there, many, epoch=0, batch=0)
    size = max(fit // 2, 1)
    assert flying == [min(size, 9 - i) for i in range(0, 9, size)]
    for mine, want in zip(got, sampler.sample_many(cpu, many, epoch=0, batch=0), strict=True):
        assert mine.cpu().input_nodes.tolist() == want.input_nodes.tolist()


def test_sample_many_of_none_and_of_a_bad_one(graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    _, there = graphs
    sampler = pgs.PGSampler([5, 4], seed=3)
    assert sampler.sample_many(there, []) == []
    with pytest.raises(IndexError, match=r"^seeds\[1\]\[0\]: .* got 1073741824"):
        sampler.sample_many(there, [[0], [1 << 30], [1]])
    with pytest.raises(IndexError, match=r"^seeds\[20\]\[2\]: .* got -1"):
        sampler.sample_many(there, [*[[0]] * 20, [1, 2, -1]])
    assert pgs.cuda.memory_stats(0)["flights"] == 0
    assert len(sampler.sample_many(there, [[0], [], [1]])) == 3


@pytest.mark.research
def test_any_order_has_the_same_edges(graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    cpu, there = graphs
    loose = pgs.PGSampler([5, 4, 3], seed=3, mode="queue", mode_options={"ordered": False})
    for number in range(scaled(8, 1)):
        got = loose.sample(there, seeds_of(number), batch=number)
        want = pgs.PGSampler([5, 4, 3], seed=3).sample(cpu, seeds_of(number), batch=number)
        assert edges_of(got) == edges_of(want)
        for block, other in zip(got.cpu().blocks, want.blocks, strict=True):
            assert set(block.src_nodes.tolist()) == set(other.src_nodes.tolist())
        assert got.output_nodes.cpu().tolist() == want.output_nodes.tolist()


@pytest.mark.parametrize("mode", MODES)
def test_memory_is_flat(mode: str) -> None:
    """Once sizes are learned, batches take nothing more of the device and give all back."""
    csc = random_graph(scaled(50_000, 100), seed=22)
    there = csc.graph(32).to("cuda")
    sampler = pgs.PGSampler([5, 4], seed=3, mode=mode)
    seeds = np.arange(scaled(2000, 10))

    def after(rounds: int) -> dict[str, int]:
        for _ in range(rounds):
            jobs = [sampler.submit(there, seeds) for _ in range(4)]
            for job in jobs:
                job.result()
        del jobs, job
        gc.collect()
        return dict(pgs.cuda.memory_stats(0))

    first = after(scaled(50, 3))
    last = after(scaled(200, 5))
    assert first["flights"] == last["flights"] == 0
    assert last["used"] <= first["used"]
    assert last["workspaces"] == first["workspaces"]
    assert last["reserved"] <= first["reserved"]


def test_trim_gives_back() -> None:
    there = random_graph(scaled(50_000, 300), seed=23).graph(32).to("cuda")
    sampler = pgs.PGSampler([5, 4], seed=3)
    want = sampler.sample(there, [1, 2, 3], batch=0)
    before = pgs.cuda.memory_stats(0)
    pgs.cuda.trim(0)
    after = pgs.cuda.memory_stats(0)
    assert after["workspaces"] == 0
    assert after["used"] < before["used"]
    assert_equal(sampler.sample(there, [1, 2, 3], batch=0), want)


def test_dropped_and_cancelled_jobs(graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    cpu, there = graphs
    sampler = pgs.PGSampler([5, 4], seed=3)
    for number in range(scaled(50, 4)):
        job = sampler.submit(there, seeds_of(number))
        if number % 2:
            job.cancel()
            with pytest.raises(pgs.Error, match="cancelled"):
                job.result()
        del job
    gc.collect()
    assert pgs.cuda.memory_stats(0)["flights"] == 0
    assert_equal(
        sampler.sample(there, seeds_of(1), batch=5),
        pgs.PGSampler([5, 4], seed=3).sample(cpu, seeds_of(1), batch=5),
    )


def test_a_closed_graph_and_a_batch_that_outlives_it() -> None:
    cpu = random_graph(scaled(5000, 200), seed=24).graph()
    there = cpu.to("cuda")
    sampler = pgs.PGSampler([3, 3], seed=3)
    batch = sampler.sample(there, [1, 2, 3], batch=0)
    job = sampler.submit(there, [1, 2, 3], batch=0)
    there.close()
    with pytest.raises(pgs.errors.ClosedError):
        sampler.sample(there, [1])
    want = sampler.sample(cpu, [1, 2, 3], batch=0)
    assert_equal(batch, want)
    assert_equal(job.result(), want)


def test_threads(graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    """One sampler, one graph, many threads: the numbers decide, not who was first."""
    cpu, there = graphs
    sampler = pgs.PGSampler([5, 4], seed=3)
    gate = threading.Barrier(8)
    got: dict[int, pgs.MiniBatch] = {}
    errors: list[BaseException] = []

    def work(first: int) -> None:
        try:
            gate.wait(60)
            for number in range(first, first + scaled(20, 2)):
                got[number] = sampler.sample(there, seeds_of(number), batch=number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    reference = pgs.PGSampler([5, 4], seed=3)
    for number, batch in got.items():
        assert_equal(batch, reference.sample(cpu, seeds_of(number), batch=number), number)


@pytest.mark.backends("emulator")
def test_a_batch_is_one_call_of_the_driver(
    run_script: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Once sizes are known a batch is its launch: nothing is copied, filled or freed around it."""
    log = tmp_path / "log"
    script = """
        import os
        from pathlib import Path
        import torch
        import pygsampler as pgs
        from pygsampler.samplers import layer_wise
        from tests.support import torch_cpu
        from tests.support.parity import random_graph

        log = Path(os.environ["FAKE_CUDA_LOG"])
        there = random_graph(300, seed=21).graph(32, 64, 64).to("cuda")
        seeds = torch.arange(12)
        for sampler in (
            pgs.PGSampler([5, 4], seed=3),
            layer_wise.labor(fanouts=[3, 2], seed=1),
        ):
            for number in range(6):
                before = len(log.read_text())
                sampler.launch(there, seeds, epoch=0, batch=number % 2, form="torch").result()
            print(*[line.split()[0] for line in log.read_text()[before:].splitlines()])
    """
    done = run_script(script, FAKE_CUDA_LOG=str(log))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["cuLaunchCooperativeKernel"] * 2
