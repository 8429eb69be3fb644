"""Processes that share a graph on their GPUs: tests/cuda/test_shared_arrays.py runs them."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

import numpy as np
import torch.distributed as dist

import pygsampler as pgs
from pygsampler import distributed
from tests.support.parity import MODES, compare, random_graph

SEEDS = list(range(0, 200, 3))


def shared(rank: int, world: int, apart: str, emulated: str, nodes: str) -> None:
    """All that three processes do, or two, one after another, since to start them takes seconds."""
    cpu = random_graph(int(nodes), seed=7, most=70).graph(32, 64, 64)
    random = np.random.default_rng(4)
    cpu = cpu.with_data(edge_data={"w": random.choice([0.0, 0.5, 2.0], cpu.num_edges)})
    device = rank if int(apart) else 0
    batches(rank, cpu, device)
    refusals(rank, world, cpu, device)
    if int(emulated):
        one_fails(rank, cpu)
    one_leaves(rank, world, cpu, device)


def batches(rank: int, cpu: pgs.Graph, device: int) -> None:
    """Compares batches with the whole graph's, also after the process that has a part closed it."""
    for replicate in (0.0, 0.3):
        named: dict[str, Any] = {"prob": ["w"], "out_edges": True} if replicate else {}
        there = distributed.share(cpu, device=device, replicate=replicate, **named)
        assert there.shared and there.device == f"cuda:{device}"
        compare(cpu, there, SEEDS, [4, 3], modes=("auto", *({"bsp"} & {*MODES})))
        # An array that was not named is there too, as a copy.
        compare(cpu, there, SEEDS, [4, 40], modes=("auto",), prob="w")
        walks = pgs.RandomWalk(length=5, seed=3, edge_ids=True)
        mine, theirs = (walks.sample(g, SEEDS, epoch=0, batch=1) for g in (there, cpu))
        assert np.array_equal(mine.nodes.cpu().numpy(), theirs.nodes.numpy())
        if rank == 0:
            there.close()
        dist.barrier()
        if rank:
            compare(cpu, there, SEEDS, [4, 3], modes=("auto",))
        dist.barrier()
        there.close()
    values = np.random.default_rng(1).random((cpu.num_nodes, 9)).astype(np.float32)
    rows = distributed.share_features(
        pgs.Features.from_tensor(values), device=device, replicate=0.2, graph=cpu
    )
    assert np.array_equal(rows.to("cpu")._open_array().numpy(), values)
    rows.close()


def fails(kind: type[Exception], text: str, cpu: pgs.Graph, *group: Any, **options: Any) -> None:
    try:
        distributed.share(cpu, *group, **options)
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"expected {kind.__name__}: {text}")


def refusals(rank: int, world: int, cpu: pgs.Graph, device: int) -> None:
    alike = "expected the same in all processes, got"
    fails(ValueError, f"options: {alike}", cpu, device=device, replicate=rank / 10)
    other = cpu if rank else random_graph(50, seed=1).graph()
    fails(ValueError, f"graph: {alike}", other, device=device)
    fails(
        ValueError, "prob[0]: expected the name of an edge array", cpu, prob=["nothing"], device=0
    )
    fails(TypeError, "prob: expected names of edge arrays", cpu, prob="w", device=0)
    fails(ValueError, 'device: expected a CUDA device, got "cpu"', cpu, device="cpu")
    fails(ValueError, "timeout: expected seconds > 0", cpu, device=0, timeout=0)
    if world > 2:
        group = dist.new_group([0, 1])
        if rank < 2:
            there = distributed.share(cpu, group, device=device)
            compare(cpu, there, SEEDS, [4, 3], modes=("auto",))
            there.close()
        else:
            fails(ValueError, "group: expected one that this process is in", cpu, group, device=0)


def one_fails(rank: int, cpu: pgs.Graph) -> None:
    """Checks that an error of one process is raised in all, by its rank; the next call works."""
    if rank == 1:
        os.environ["FAKE_CUDA_MEMORY"] = "65536"
    try:
        distributed.share(cpu, device=rank % 2, timeout=30)
    except pgs.errors.CudaError as error:
        assert str(error).startswith("rank 1: ") == (rank != 1), str(error)
        assert "asked for" in str(error), str(error)
    else:
        raise AssertionError("expected a CudaError")
    os.environ.pop("FAKE_CUDA_MEMORY", None)
    there = distributed.share(cpu, device=0)
    compare(cpu, there, SEEDS, [4, 3], modes=("auto",))
    there.close()


def one_leaves(rank: int, world: int, cpu: pgs.Graph, device: int) -> None:
    group = dist.new_group(backend="gloo", timeout=timedelta(seconds=5))
    if rank == world - 1:
        os._exit(7)
    start = time.monotonic()
    try:
        distributed.share(cpu, group, device=device, timeout=5)
    except RuntimeError:
        assert time.monotonic() - start < 30
        # Else the interpreter ends first: a Gloo thread that then holds a Python object aborts it.
        dist.destroy_process_group()
        print("ended by an error")
    else:
        raise AssertionError("expected a RuntimeError")
