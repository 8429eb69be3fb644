"""Walks on a GPU: the CPU's, byte for byte, and where their arrays are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import Csc, awkward, random_graph, scaled, with_degrees


def layouts(options: dict[str, Any]) -> tuple[str, ...]:
    """Returns the layouts that exist: with edge types, rows are read as they are."""
    return ("csr", "auto") if "metapath" in options else ("csr", "packed", "auto")


NUMBERS = {"epoch": 3, "batch": 1 << 33}
OPTIONS: dict[str, dict[str, Any]] = {
    "uniform": {"length": 12, "edge_ids": True},
    "weighted": {"length": 9, "prob": "w", "walks_per_seed": 2},
    "no steps": {"length": 0, "edge_ids": True},
    "stop": {"length": 9, "stop": 0.2, "edge_ids": True},
    "restart": {"length": 9, "restart": 0.3, "prob": "w", "edge_ids": True},
    "jumps": {"length": 9, "restart": 0.3, "count_jumps": True, "stop": 0.05, "edge_ids": True},
    "types": {"length": 9, "metapath": [2, 0, 1], "edge_types": "t", "edge_ids": True},
    "types, weighted": {"length": 7, "metapath": [0, 1], "edge_types": "t", "prob": "w"},
    "return": {"length": 9, "p": 0.25, "q": 4.0, "edge_ids": True},
    "far": {"length": 9, "p": 4.0, "q": 0.25, "prob": "w", "edge_ids": True},
    "hard": {"length": 6, "p": 1e30, "q": 1e30, "walks_per_seed": 2},
    "hard, weighted": {"length": 6, "p": 1e30, "q": 1e30, "prob": "w", "stop": 0.1},
    "in": {"length": 9, "direction": "in", "edge_ids": True},
    "in, far": {"length": 9, "direction": "in", "p": 2.0, "q": 0.5, "restart": 0.1, "prob": "w"},
}


def both(csc: Csc, ids: int = 64, edge_ids: int = 0, *, pinned: bool = False) -> Any:
    """The graph with weights and types, here and there."""
    random = np.random.default_rng(3)
    count = len(csc.indices)
    graph = csc.graph(ids, ids, edge_ids, to_pin=pinned)
    cpu = graph.with_data(
        edge_data={
            "w": random.choice([0.0, 0.5, 1.0, 3.0, 1e6], count),
            "t": random.integers(0, 3, count).astype(np.int16),
        }
    )
    return cpu, cpu.pin() if pinned else cpu.to("cuda")


def sampler_of(options: dict[str, Any], **more: Any) -> pgs.RandomWalk:
    given = {**options, **more}
    return pgs.RandomWalk(given.pop("length"), **given, seed=77)


@pytest.mark.parametrize("name", list(OPTIONS))
@pytest.mark.parametrize(("ids", "edge_ids"), [(32, 0), (64, 32)])
def test_every_option(name: str, ids: int, edge_ids: int) -> None:
    csc = random_graph(scaled(20000, 300), 2)
    cpu, there = both(csc, ids, edge_ids)
    seeds = np.random.default_rng(1).integers(0, csc.num_nodes, scaled(5000, 300))
    want = sampler_of(OPTIONS[name]).sample(cpu, seeds, **NUMBERS)
    for layout in layouts(OPTIONS[name]):
        sampler = sampler_of(OPTIONS[name], mode_options={"layout": layout})
        assert_equal(sampler.sample(there, seeds, **NUMBERS), want, layout)


@pytest.mark.parametrize("graph", sorted(awkward()))
def test_awkward_graphs(graph: str) -> None:
    csc = awkward()[graph]
    cpu, there = both(csc)
    seeds = np.arange(min(csc.num_nodes, scaled(300, 40)))
    for name in ("weighted", "jumps", "return", "hard, weighted", "in"):
        for layout in layouts(OPTIONS[name]):
            sampler = sampler_of(OPTIONS[name], mode_options={"layout": layout})
            want = sampler.sample(cpu, seeds, **NUMBERS)
            assert_equal(sampler.sample(there, seeds, **NUMBERS), want, (name, layout))


def test_every_degree() -> None:
    cpu, there = both(with_degrees(range(71), scaled(4000, 71)))
    for name in ("uniform", "weighted", "far", "return"):
        sampler = sampler_of({**OPTIONS[name], "direction": "in"})
        want = sampler.sample(cpu, np.arange(71), **NUMBERS)
        assert_equal(sampler.sample(there, np.arange(71), **NUMBERS), want, name)


def test_pinned_graphs() -> None:
    cpu, there = both(random_graph(scaled(2000, 100), 5), pinned=True)
    for name in ("uniform", "weighted", "far", "types"):
        sampler = sampler_of(OPTIONS[name])
        want = sampler.sample(cpu, range(100), **NUMBERS)
        assert_equal(sampler.sample(there, range(100), **NUMBERS), want, name)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_graph_that_was_made_on_the_device(direction: str) -> None:
    csc = random_graph(300, 8)
    cpu = csc.graph(64, 64, 0)
    lent = cpu.to("cuda")
    there = pgs.Graph.from_csc(lent.indptr, lent.indices)
    for options in ({}, {"p": 2.0, "q": 0.5}, {"p": 0.25, "q": 4.0, "stop": 0.1}):
        sampler = pgs.RandomWalk(9, direction=direction, seed=2, **options)
        want = sampler.sample(cpu, np.arange(300), **NUMBERS)
        assert_equal(sampler.sample(there, np.arange(300), **NUMBERS), want, options)


def test_however_they_are_asked_for() -> None:
    cpu, there = both(random_graph(scaled(2000, 100), 5))
    for name in ("weighted", "jumps", "far"):
        sampler, seeds = sampler_of(OPTIONS[name]), np.arange(60)
        want = sampler.sample(cpu, seeds, **NUMBERS)
        jobs = [sampler.submit(there, seeds, **NUMBERS) for _ in range(3)]
        for job in jobs:
            assert_equal(job.result(), want, name)
        assert_equal(sampler.with_gpu_share(0.3).sample(there, seeds, **NUMBERS), want, name)
        many = sampler.sample_many(there, [seeds, seeds[:7], [3]], epoch=2, batch=9)
        for number, (got, own) in enumerate(zip(many, (seeds, seeds[:7], [3]), strict=True)):
            assert_equal(got, sampler.sample(cpu, own, epoch=2, batch=9 + number), (name, number))


def test_seeds_from_the_device() -> None:
    cpu, there = both(random_graph(100, 5))
    first = sampler_of(OPTIONS["uniform"]).sample(there, range(50), **NUMBERS)
    # The lengths are int32 on the device, and vertices of the graph.
    sampler = sampler_of(OPTIONS["weighted"])
    got = sampler.sample(there, first.lengths, **NUMBERS)
    assert_equal(got, sampler.sample(cpu, first.lengths.cpu(), **NUMBERS))


def test_errors_are_the_cpus() -> None:
    cpu, there = both(random_graph(100, 5))
    for seeds in ([0, 100], [-1], [1 << 40]):
        said = []
        for graph in (cpu, there):
            with pytest.raises(IndexError) as caught:
                sampler_of(OPTIONS["uniform"]).sample(graph, seeds)
            said.append(str(caught.value))
        assert said[0] == said[1]
    with pytest.raises(NotImplementedError, match="exclude"):
        sampler_of(OPTIONS["uniform"]).sample(there, [0], exclude=[1])
    assert len(sampler_of(OPTIONS["uniform"]).sample(there, [])) == 0


def test_arrays_are_on_the_device() -> None:
    _, there = both(random_graph(100, 5))
    walks = sampler_of(OPTIONS["jumps"]).sample(there, range(100), **NUMBERS)
    assert walks.device == "cuda:0" and "device=cuda:0" in repr(walks)
    nodes = walks.nodes
    about = nodes.__cuda_array_interface__
    assert about["shape"] == (100, 10) and about["strides"] == (8, 800)
    assert walks.per_step().__cuda_array_interface__["strides"] is None
    assert nodes.__dlpack_device__() == (2, 0)
    for name in ("numpy", "arrow"):
        with pytest.raises(TypeError, match=f"Walks.{name}: expected walks on the CPU"):
            getattr(walks, name)()
    with pytest.raises(TypeError, match=r"Walks\.pickle: expected walks on the CPU"):
        pickle.dumps(walks)
    with pytest.raises(TypeError, match="on the CPU"):
        nodes.tolist()
    # Shapes alone: no value is copied from the device.
    assert walks._repr_html_().count("<tr>") == 3
    here = walks.cpu()
    assert here.device == "cpu" and here.cpu() is here
    assert here.nodes.tolist() == nodes.cpu().tolist() == nodes.cpu().numpy().tolist()
    # A copy in the order of its shape, for those who know no strides.
    copied = pgs.Features.from_tensor(nodes)._array
    assert copied.device == "cuda:0" and copied.__cuda_array_interface__["strides"] is None
    assert copied.cpu().tolist() == here.nodes.tolist()
    assert pickle.loads(pickle.dumps(here)).nodes.tolist() == here.nodes.tolist()


def test_edges_are_made_where_the_walks_are() -> None:
    cpu, there = both(random_graph(100, 5))
    options = {**OPTIONS["far"], "edge_ids": False}
    walks = sampler_of(options).sample(there, range(100), **NUMBERS)
    copied = sampler_of(options).sample(there, range(100), **NUMBERS).cpu()
    want = sampler_of(OPTIONS["far"]).sample(cpu, range(100), **NUMBERS).edge_ids.tolist()
    assert walks.edge_ids.device == "cuda:0"
    assert walks.edge_ids.cpu().tolist() == want
    # A copy on the CPU asks the device for them.
    assert copied.edge_ids.device == "cpu"
    assert copied.edge_ids.tolist() == want


def test_nothing_is_kept() -> None:
    _, there = both(random_graph(100, 5))
    sampler = sampler_of(OPTIONS["far"])
    sampler.sample(there, range(100))
    before = pgs.cuda.memory_stats()["used"]
    for number in range(scaled(50, 10)):
        walks = sampler.sample(there, range(100 - number))
        del walks
    assert pgs.cuda.memory_stats()["used"] == before


@pytest.mark.parametrize("name", [name for name in OPTIONS if "types" not in name])
def test_by_transits(name: str) -> None:
    """The other execution, which groups walks by where they are."""
    cpu, there = both(random_graph(scaled(20000, 300), 2), 32)
    seeds = np.random.default_rng(1).integers(0, cpu.num_nodes, scaled(5000, 300))
    seeds[::3] = 5  # a third of all walks from one vertex
    want = sampler_of(OPTIONS[name]).sample(cpu, seeds, **NUMBERS)
    sampler = sampler_of(OPTIONS[name], mode_options={"execution": "transit", "layout": "csr"})
    assert_equal(sampler.sample(there, seeds, **NUMBERS), want, name)


@pytest.mark.parametrize("graph", ["random", *sorted(awkward())])
def test_visits(graph: str) -> None:
    csc = random_graph(scaled(20000, 300), 2) if graph == "random" else awkward()[graph]
    cpu, there = both(csc)
    seeds = np.arange(min(csc.num_nodes, scaled(2000, 60)))
    for given, options in (
        ((2, 0.5, 10, 3), {}),
        ((1, 1.0, 3, 9), {"direction": "in"}),
        ((4, 0.1, 512, 5), {"prob": "w"}),
    ):
        sampler = pgs.walks.PinSAGE(*given, **options, seed=77)
        want = sampler.sample(cpu, seeds, **NUMBERS)
        got = sampler.sample(there, seeds, **NUMBERS)
        assert got.device == "cuda:0" and (got.epoch, got.batch) == (want.epoch, want.batch)
        (many,) = sampler.sample_many(there, [seeds], **NUMBERS)
        for one in (got, want, many):
            assert one.output_nodes.tolist() == seeds.tolist()
        here = got.cpu()
        assert here.device == "cpu" and want.cpu() is want
        assert here.output_nodes.tolist() == seeds.tolist()
        for mine, theirs in ((here.nodes, want.nodes), (here.counts, want.counts)):
            assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
            np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


@pytest.mark.parametrize("roots", [1, 7, 300])
def test_several_roots(roots: int) -> None:
    cpu, there = both(random_graph(scaled(20000, 300), 2), 32, 32)
    seeds = np.random.default_rng(1).integers(0, cpu.num_nodes, 20 * roots)
    for direction in ("out", "in"):
        sampler = pgs.walks.MultiRW(roots, 60, direction=direction, edge_ids=True, seed=77)
        want, got = (sampler.sample(graph, seeds, **NUMBERS) for graph in (cpu, there))
        assert_equal(got, want, direction)
        np.testing.assert_array_equal(got.slots.cpu().numpy(), want.slots.numpy())
