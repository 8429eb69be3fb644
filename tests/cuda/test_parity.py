"""The batches of a GPU are those of the CPU, byte for byte, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import (
    MODES,
    Csc,
    awkward,
    compare,
    emulated,
    of_rows,
    random_graph,
    scaled,
    with_degrees,
)

pytestmark = pytest.mark.once

DEGREES = 71
FANOUTS_A_LAUNCH = 5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("replace", [False, True])
def test_every_degree_and_fanout(mode: str, replace: bool) -> None:
    """Sources begin with the destinations, so every hop sees every degree again."""
    csc = with_degrees(range(DEGREES), scaled(4000, 150))
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    seeds = np.arange(DEGREES)
    fanouts = list(range(1, 41))
    if emulated():
        # Each mode another part of the table, all of it together.
        fanouts = fanouts[MODES.index(mode) :: len(MODES)]
    for first in range(0, len(fanouts), FANOUTS_A_LAUNCH):
        part = fanouts[first : first + FANOUTS_A_LAUNCH]
        compare(cpu, there, seeds, part, modes=[mode], replace=replace)


@pytest.mark.parametrize("mode", MODES)
def test_larger_degrees_and_fanouts(mode: str) -> None:
    """Around warps, blocks and what fits shared memory."""
    degrees = [0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 5000]
    csc = with_degrees(degrees, 9000)
    cpu = csc.graph(64)
    there = cpu.to("cuda")
    cases = (41, 64, 65, 128, 129, 256, 257, 512, 1000, 1024, 1025, 4999, 5000, -1)
    for fanout in cases[:: scaled(1, 4)]:
        for replace in (False, True):
            compare(cpu, there, np.arange(len(degrees)), [fanout], modes=[mode], replace=replace)


@pytest.mark.parametrize("name", sorted(awkward()))
@pytest.mark.parametrize("ids", [32, 64])
def test_awkward_graphs(name: str, ids: int) -> None:
    csc = awkward()[name]
    cpu = csc.graph(ids)
    there = cpu.to("cuda")
    seeds = np.arange(min(csc.num_nodes, scaled(300, 60)))[::-1].copy()
    shapes = [[3], [-1, 2], [5, 0, 5], [4, 4, 4]]
    for fanouts in shapes[:: scaled(1, 2)]:
        compare(cpu, there, seeds, fanouts)
        compare(cpu, there, seeds, [abs(f) for f in fanouts], replace=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_hub(mode: str) -> None:
    """A vertex of 10 million in-neighbours costs what its fanout does."""
    degree = scaled(10_000_000, 20_000)
    indptr = np.concatenate([[0], np.arange(degree, degree + 101)])
    indices = np.concatenate([np.arange(degree) % 1_000_000, np.zeros(100, np.int64)])
    cpu = Csc(indptr, indices, max(1_000_000, len(indptr) - 1)).graph(32)
    there = cpu.to("cuda")
    seeds = np.arange(101)
    for fanouts in ([10, 10], [40, 3, 2]):
        compare(cpu, there, seeds, fanouts, modes=[mode])
        compare(cpu, there, seeds, fanouts, modes=[mode], replace=True)
    if not emulated():
        compare(cpu, there, [0], [-1], modes=[mode])


@pytest.mark.parametrize("ids", [32, 64])
@pytest.mark.parametrize("offsets", [32, 64])
@pytest.mark.parametrize("edge_ids", [0, 32, 64])
def test_every_kind_of_graph(ids: int, offsets: int, edge_ids: int) -> None:
    csc = random_graph(scaled(3000, 200), seed=ids + offsets)
    cpu = csc.graph(ids, offsets, edge_ids)
    there = cpu.to("cuda")
    assert there.device == "cuda:0"
    assert there.dtype == cpu.dtype
    seeds = np.arange(0, csc.num_nodes, 7)
    compare(cpu, there, seeds.astype(np.int32), [4, 3])
    compare(cpu, there, seeds, [4, 3], replace=True)


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1023, 1024, 1025, 10_240])
def test_batch_sizes(count: int) -> None:
    if emulated() and count > 100:
        count //= 8
    csc = random_graph(scaled(30_000, 2000), seed=3)
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    seeds = np.random.default_rng(count).choice(csc.num_nodes, count, replace=False)
    compare(cpu, there, seeds, [scaled(10, 3), 5])


def test_repeated_seeds() -> None:
    csc = random_graph(scaled(2000, 200), seed=4)
    cpu = csc.graph()
    there = cpu.to("cuda")
    random = np.random.default_rng(4)
    for seeds in (
        [7] * 100,
        [1, 2, 1, 2, 0],
        random.integers(0, 40, scaled(3000, 200)),
        random.integers(0, csc.num_nodes, scaled(5000, 200)),
    ):
        compare(cpu, there, seeds, [3, 4])


@pytest.mark.parametrize("hops", [0, 1, 2, 3, 4, 5])
def test_hops(hops: int) -> None:
    csc = random_graph(scaled(20_000, 300), seed=hops, most=12)
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    if hops == 0:
        with pytest.raises(ValueError, match="fanouts"):
            pgs.PGSampler([])
        return
    compare(cpu, there, np.arange(scaled(500, 20)), [4] * hops)
    compare(cpu, there, np.arange(scaled(500, 20)), [3] * hops, replace=True)


@pytest.mark.parametrize(
    "fanouts", [[-1], [-1, -1], [0], [0, 0], [3, 0, 3], [0, 3], [-1, 0, 2], [1, -1]], ids=str
)
def test_all_and_none(fanouts: list[int]) -> None:
    csc = random_graph(scaled(3000, 120), seed=6, most=30)
    cpu = csc.graph()
    there = cpu.to("cuda")
    seeds = np.arange(scaled(200, 20))
    compare(cpu, there, seeds, fanouts)
    compare(cpu, there, seeds, fanouts, replace=True)


@pytest.mark.parametrize("seed", range(8))
def test_random_graphs(seed: int) -> None:
    """Sizes, fanouts, widths and seeds by chance."""
    random = np.random.default_rng(seed)
    for _ in range(scaled(6, 1)):
        nodes = int(random.integers(1, scaled(50_000, 300)))
        csc = random_graph(nodes, int(random.integers(1 << 30)), int(random.integers(1, 100)))
        cpu = csc.graph(*(int(random.choice([32, 64])) for _ in range(2)))
        fanouts = random.integers(-1, 12, int(random.integers(1, 4))).tolist()
        if -1 in fanouts and nodes > 1000:
            fanouts = [abs(f) for f in fanouts]
        seeds = random.integers(0, nodes, int(random.integers(0, scaled(3000, 50))))
        options = {"replace": bool(random.integers(2))}
        numbers = {"batch": int(random.integers(1 << 40)), "epoch": int(random.integers(1 << 24))}
        compare(cpu, cpu.to("cuda"), seeds, fanouts, **numbers, **options)


@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_times_the_same(mode: str) -> None:
    """Repeats a batch until a dependence on the order of threads would show."""
    csc = random_graph(scaled(30_000, 100), seed=8)
    there = csc.graph(32).to("cuda")
    sampler = pgs.PGSampler([5, 5, 5], seed=1, mode=mode)
    seeds = np.arange(scaled(512, 8))
    first = sampler.sample(there, seeds, batch=0)
    assert_equal(first, pgs.PGSampler([5, 5, 5], seed=1).sample(csc.graph(32), seeds, batch=0))
    for repeat in range(scaled(200, 3)):
        assert_equal(sampler.sample(there, seeds, batch=0), first, f"repeat {repeat}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("edge_ids", [0, 64])
def test_exclude(mode: str, edge_ids: int) -> None:
    csc = random_graph(scaled(5000, 200), seed=9, most=20)
    cpu = csc.graph(64, 64, edge_ids)
    there = cpu.to("cuda")
    random = np.random.default_rng(9)
    edges = len(csc.indices)
    seeds = np.arange(0, csc.num_nodes, 3)
    for count in (1, edges // 10, edges):
        without = random.choice(edges, count, replace=False)
        compare(cpu, there, seeds, [5, 4], modes=[mode], exclude=without)
        compare(cpu, there, seeds, [5, 4], modes=[mode], exclude=without, replace=True)


@pytest.mark.parametrize("edge_ids", [0, 64])
def test_pinned_graphs(edge_ids: int) -> None:
    """The CSC stays in the host's memory."""
    csc = random_graph(scaled(20_000, 200), seed=10)
    cpu = csc.graph(32, 64, edge_ids, to_pin=True)
    there = cpu.pin()
    assert there.pinned
    assert there.device == "cuda:0"
    seeds = np.arange(0, csc.num_nodes, scaled(20, 8))
    compare(cpu, there, seeds, [6, 5])
    compare(cpu, there, seeds, [6, 5], replace=True, exclude=np.arange(0, 500, 2))
    # The graph can be sampled on the CPU, too, while its pages are locked.
    compare(cpu, cpu, seeds, [6, 5], modes=MODES[-1:])


class Borrowed:
    """An array of a library that has no DLPack, only ``__cuda_array_interface__``."""

    def __init__(self, array: pgs.Array) -> None:
        self.keep = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class Exported:
    """One that has DLPack alone."""

    def __init__(self, array: pgs.Array) -> None:
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


@pytest.mark.parametrize("wrap", [lambda array: array, Borrowed, Exported])
def test_graphs_born_on_the_device(wrap: Any) -> None:
    """Without a graph on the host: validated by a kernel, arrays used where they lie."""
    csc = random_graph(scaled(20_000, 200), seed=11)
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    born = pgs.Graph.from_csc(wrap(there.indptr), wrap(there.indices), num_nodes=csc.num_nodes)
    assert born.device == "cuda:0"
    assert born.num_edges == cpu.num_edges
    seeds = np.arange(0, csc.num_nodes, scaled(20, 8))
    compare(cpu, born, seeds, [6, 5])
    compare(cpu, born, seeds, [6, 5], exclude=np.arange(100))
    compare(born.to("cpu"), born, seeds, [6, 5])


def test_the_device_refuses_what_the_cpu_does() -> None:
    """Broken arrays on a device: the errors are the CPU's, word for word."""
    good = random_graph(100, seed=12)
    broken = {
        "indptr not monotone": ([0, 5, 3, 7], np.zeros(7, np.int64)),
        "indptr begins late": ([1, 3, 7], np.zeros(7, np.int64)),
        "indptr ends early": ([0, 3, 6], np.zeros(7, np.int64)),
        "an id too large": ([0, 3, 7], [0, 1, 0, 1, 99, 1, 1]),
        "a negative id": ([0, 3, 7], [0, 1, -1, 1, 0, 1, 1]),
    }
    for what, (indptr, indices) in broken.items():
        arrays = [np.asarray(indptr, np.int64), np.asarray(indices, np.int64)]
        with pytest.raises((ValueError, IndexError)) as expected:
            pgs.Graph.from_csc(*arrays)
        # Any graph's arrays of the right lengths carry the values there.
        there = [_uploaded(array) for array in arrays]
        with pytest.raises(type(expected.value)) as got:
            pgs.Graph.from_csc(*there)
        assert str(got.value) == str(expected.value), what
    # And the next good one works.
    compare(good.graph(), good.graph().to("cuda"), np.arange(50), [3, 3], modes=["auto"])


def _uploaded(values: np.ndarray[Any, Any]) -> pgs.Array:
    """The values as an array on the device, by way of a graph that has them as edge ids."""
    order = values.astype(np.int64)
    rows = np.array([0, len(order)], np.int64)
    carrier = pgs.Graph.from_csc(rows, np.zeros(len(order), np.int64), edge_ids=order)
    array = carrier.to("cuda").edge_ids
    assert array is not None
    return array


def test_seeds_on_the_device() -> None:
    csc = random_graph(scaled(5000, 200), seed=13)
    for ids in (32, 64):
        cpu = csc.graph(ids)
        there = cpu.to("cuda")
        for dtype in (np.int32, np.int64):
            seeds = np.arange(0, csc.num_nodes, 9).astype(dtype)
            compare(cpu, there, seeds, [4, 4], change=lambda s: _uploaded_seeds(s))
    with pytest.raises(ValueError, match="seeds"):
        pgs.PGSampler([3]).sample(csc.graph(), _uploaded_seeds(np.arange(3)))


def _uploaded_seeds(seeds: np.ndarray[Any, Any]) -> pgs.Array:
    graph = pgs.Graph.from_csc(
        np.array([0, len(seeds)], seeds.dtype), seeds, num_nodes=int(seeds.max()) + 1
    )
    return graph.to("cuda").indices


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_that_is_no_vertex(mode: str) -> None:
    csc = random_graph(200, seed=14)
    cpu, there = csc.graph(), csc.graph().to("cuda")
    for seeds in ([0, 1, 200], [0, -1, 5], [1 << 40]):
        with pytest.raises(IndexError) as expected:
            pgs.PGSampler([3, 3]).sample(cpu, seeds)
        with pytest.raises(IndexError) as got:
            pgs.PGSampler([3, 3], mode=mode).sample(there, seeds)
        assert str(got.value) == str(expected.value)
        # The workspace of the failed batch is fit for the next one.
        compare(cpu, there, np.arange(100), [3, 3], modes=[mode])


@pytest.mark.parametrize("mode", MODES)
def test_a_tiny_batch_then_huge_ones(mode: str) -> None:
    """Buffers learn their sizes from batches; the first huge one overflows and is made again."""
    csc = with_degrees([40] * scaled(60_000, 400), scaled(60_000, 400))
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    everything = np.arange(csc.num_nodes)
    for seeds, fanouts in (
        ([5], [1, 1]),
        (everything, [20, 20]),
        ([5], [1, 1]),
        (everything[: scaled(5000, 50)], [-1, 30]),
    ):
        compare(cpu, there, seeds, fanouts, modes=[mode])


def test_one_row_of_one_graph_and_then_another_graph() -> None:
    """Workspaces go from graph to graph, small ones and large ones."""
    small, large = of_rows([[0]], 1), random_graph(scaled(100_000, 500), seed=15)
    pairs = [(csc.graph(bits), bits) for csc in (small, large, small) for bits in (32, 64)]
    there = [cpu.to("cuda") for cpu, _ in pairs]
    for _ in range(2):
        for (cpu, _), gpu in zip(pairs, there, strict=True):
            compare(cpu, gpu, [0, 0], [7, 7])
