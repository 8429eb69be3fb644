"""Work of torch's and CuPy's streams comes before and after ours as the program has it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import random_graph, values
from tests.support.partners import partner

# About a millisecond of a GPU: what is not ordered shows.
MILLISECOND = 2_000_000
NODES = 20_000


@pytest.fixture(scope="module")
def graphs() -> tuple[pgs.Graph, pgs.Graph]:
    cpu = random_graph(NODES, seed=41).graph()
    return cpu, cpu.to("cuda")


def want(cpu: pgs.Graph, seeds: Any, number: int) -> pgs.MiniBatch:
    return pgs.PGSampler([6, 5], seed=2).sample(cpu, seeds, batch=number)


def test_seeds_made_in_a_side_stream(torch: Any, graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    """The batch waits for the stream that is current when it is asked for."""
    cpu, there = graphs
    sampler = pgs.PGSampler([6, 5], seed=2)
    streams = [torch.cuda.Stream() for _ in range(3)]
    for number in range(12):
        expected = np.arange(number, NODES, 40)
        with torch.cuda.stream(streams[number % 3]):
            seeds = torch.full((len(expected),), -1, device="cuda")
            torch.cuda._sleep(MILLISECOND)
            seeds.copy_(torch.arange(number, NODES, 40, device="cuda"))
            got = sampler.sample(there, seeds, batch=number)
        assert_equal(got, want(cpu, expected, number), number)


def test_consumer_in_another_stream(torch: Any, graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    """The memory goes back only after what the consumer put into its stream."""
    cpu, there = graphs
    sampler = pgs.PGSampler([6, 5], seed=2)
    side, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    kept = []
    for number in range(20):
        with torch.cuda.stream(side):
            batch = sampler.sample(there, range(0, NODES, 40), batch=number)
        with torch.cuda.stream(consumer):
            nodes = torch.from_dlpack(batch.input_nodes)
            torch.cuda._sleep(MILLISECOND)
            kept.append(nodes.clone())
        # The next batch may have this memory, but not yet.
        del batch, nodes
    gc.collect()
    torch.cuda.synchronize()
    for number, nodes in enumerate(kept):
        expected = want(cpu, range(0, NODES, 40), number)
        np.testing.assert_array_equal(nodes.cpu().numpy(), expected.input_nodes.numpy())


def test_a_capsule_for_a_stream(torch: Any, graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    cpu, there = graphs
    stream = torch.cuda.Stream()
    job = pgs.PGSampler([6, 5], seed=2).submit(there, range(0, NODES, 3), batch=1)
    array = job.result().input_nodes
    capsule = array.__dlpack__(stream=stream.cuda_stream, max_version=(1, 0))
    with torch.cuda.stream(stream):
        nodes = torch.utils.dlpack.from_dlpack(capsule).clone()
    stream.synchronize()
    expected = want(cpu, range(0, NODES, 3), 1)
    np.testing.assert_array_equal(nodes.cpu().numpy(), expected.input_nodes.numpy())


def test_batches_are_torchs_memory(torch: Any, graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    """Through the launch that the loaders use."""
    cpu, there = graphs
    sampler = pgs.PGSampler([6, 5], seed=2)
    for own_stream in (False, True):
        jobs = [
            sampler.launch(
                there,
                torch.arange(0, NODES, 7),
                epoch=0,
                batch=number,
                form="torch",
                asynchronous=own_stream,
            )
            for number in range(8)
        ]
        for number, job in enumerate(jobs):
            batch = job.result()
            expected = want(cpu, range(0, NODES, 7), number)
            np.testing.assert_array_equal(
                batch.input_nodes.cpu().numpy(), expected.input_nodes.numpy()
            )
            for mine, theirs in zip(batch.blocks, expected.blocks, strict=True):
                for name in ("indptr", "indices", "edge_ids"):
                    np.testing.assert_array_equal(
                        getattr(mine, name).cpu().numpy(), getattr(theirs, name).numpy()
                    )


def test_torch_memory_that_is_too_small(torch: Any) -> None:
    """A tiny batch teaches a small capacity; the huge one after it is made again."""
    cpu = random_graph(NODES, seed=42, most=200).graph(32)
    there = cpu.to("cuda")
    sampler = pgs.PGSampler([-1, 20], seed=2)
    isolated = int(np.argmin(np.diff(cpu.indptr.numpy())))
    for seeds in ([isolated] * 1000, range(1000)):
        got = sampler.launch(
            there, torch.tensor(list(seeds)), epoch=0, batch=0, form="torch", asynchronous=True
        )
        expected = sampler.sample(cpu, seeds, epoch=0, batch=0)
        np.testing.assert_array_equal(
            got.result().input_nodes.cpu().numpy(), expected.input_nodes.numpy()
        )


@pytest.mark.backends("cuda")
def test_cupy_streams(graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    cupy = partner("cupy")
    cpu, there = graphs
    sampler = pgs.PGSampler([6, 5], seed=2)
    kept = []
    for number in range(10):
        with cupy.cuda.Stream(non_blocking=True):
            batch = sampler.sample(there, range(0, NODES, 40), batch=number)
            nodes = cupy.from_dlpack(batch.input_nodes)
            big = cupy.ones(1 << 22)
            for _ in range(20):
                big = cupy.sin(big)
            kept.append(nodes.copy())
            del batch, nodes, big
    cupy.cuda.Device().synchronize()
    for number, nodes in enumerate(kept):
        expected = want(cpu, range(0, NODES, 40), number)
        np.testing.assert_array_equal(cupy.asnumpy(nodes), expected.input_nodes.numpy())


def test_the_context_is_left_as_it_was(torch: Any, graphs: tuple[pgs.Graph, pgs.Graph]) -> None:
    before = torch.ones(10, device="cuda")
    batch = pgs.PGSampler([6, 5], seed=2).sample(graphs[1], [1, 2, 3])
    assert torch.cuda.current_device() == 0
    assert float((before + torch.ones(10, device="cuda")).sum()) == 20
    assert values(batch)[1].tolist() == [1, 2, 3]
