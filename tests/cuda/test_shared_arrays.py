"""Graphs in the memory of several GPUs: the batches of one, byte for byte.

Parts that all lie on one device are as good a test of the cuts as parts on several. The tests with
two devices say so, and fail without them where PYGSAMPLER_REQUIRE names cuda2.
"""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.gpu import need_cuda
from tests.support.assertions import assert_equal
from tests.support.parity import RESEARCH_MODES, Csc, compare, emulated, random_graph, scaled
from tests.support.partners import partner
from tests.support.ranks import run_ranks

SEEDS = list(range(0, 200, 3))
# The bytes of a piece on the emulator, whose graphs are small.
SMALL = "4096"


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CUDA_GRANULARITY", SMALL)


@pytest.fixture(scope="module")
def csc() -> Csc:
    return random_graph(scaled(300_000, 2000), seed=7, most=70)


def furnished(csc: Csc, ids: int = 32, offsets: int = 64, edge_ids: int = 0) -> pgs.Graph:
    random = np.random.default_rng(4)
    count = len(csc.indices)
    return csc.graph(ids, offsets, edge_ids).with_data(
        edge_data={
            "w": random.choice([0.0, 0.5, 2.0, 1e6], count),
            "m": random.random(count) < 0.7,
            "t": random.integers(0, 50, count),
        }
    )


@pytest.mark.parametrize(
    ("over", "replicate", "widths"),
    [
        ([0, 0], 0, (32, 64, 0)),
        ([0, 0, 0], 0.3, (64, 32, 64)),
        ([0, 0], 1, (32, 32, 32)),
        ([0, 1], 0.1, (32, 64, 64)),
    ],
)
def test_batches_of_one_device(
    csc: Csc, over: list[int], replicate: float, widths: tuple[int, int, int]
) -> None:
    need_cuda(max(over) + 1)
    cpu = furnished(csc, *widths)
    graphs = cpu.share(over, replicate=replicate)
    assert [graph.device for graph in graphs] == [f"cuda:{device}" for device in over]
    for graph in graphs:
        assert graph.shared and not graph.pinned and repr(graph).endswith("shared)")
        compare(cpu, graph, SEEDS, [4, 3], modes=("auto", *RESEARCH_MODES))
        compare(cpu, graph, SEEDS, [-1, 40], modes=("auto",), exclude=range(0, 3000, 7))
        compare(cpu, graph, SEEDS, [5, 4], modes=("auto",), disjoint=True)
        compare(cpu, graph, SEEDS, [6, 40], modes=("auto",), prob="w")
        compare(cpu, graph, SEEDS, [6, 4], modes=("auto",), prob="w", edge_weights="ht")
        compare(cpu, graph, SEEDS, [6, 4], modes=("auto",), mask="m")
        assert np.array_equal(graph.indices.cpu().numpy(), cpu.indices.numpy())
        graph.close()


def test_walks_and_times(csc: Csc) -> None:
    cpu = furnished(csc, edge_ids=64)
    numbers = {"epoch": 1, "batch": 2}
    for graph in cpu.share([0, 0], replicate=0.25):
        for options in ({}, {"prob": "w"}, {"p": 0.5, "q": 2.0}, {"direction": "in"}):
            walks = pgs.RandomWalk(length=6, seed=3, edge_ids=True, **options)
            got, want = walks.sample(graph, SEEDS, **numbers), walks.sample(cpu, SEEDS, **numbers)
            for name in ("nodes", "edge_ids"):
                mine, theirs = (getattr(found, name).cpu().numpy() for found in (got, want))
                assert np.array_equal(mine, theirs), (options, name)
        late = pgs.PGSampler([4, 3], seed=1, temporal="t")
        bounds = np.full(len(SEEDS), 25)
        assert_equal(
            late.sample(graph, SEEDS, seed_time=bounds, **numbers),
            late.sample(cpu, SEEDS, seed_time=bounds, **numbers),
        )


def test_arrays_added_later_and_small_graphs() -> None:
    tiny = pgs.Graph.from_csc([0, 2, 3, 3], [1, 2, 0])
    empty = pgs.Graph.from_csc([0, 0, 0], np.array([], np.int32))
    for cpu in (tiny, empty):
        for graph in cpu.share(["cuda:0", "cuda:0"], replicate=0.5):
            compare(cpu, graph, [0, 1], [2, 2])
            count = cpu.num_edges
            more = graph.with_data(edge_data={"w": np.arange(1.0, count + 1)})
            assert more.shared
            assert_equal(
                pgs.PGSampler([1], seed=2, prob="w").sample(more, [0, 1], batch=0),
                pgs.PGSampler([1], seed=2, prob="w").sample(more.to("cpu"), [0, 1], batch=0),
            )


@pytest.mark.parametrize("over", [[0, 0], [0, 1]])
def test_graphs_with_types(csc: Csc, over: list[int]) -> None:
    need_cuda(max(over) + 1)
    kinds = [("a", "likes", "a"), ("b", "of", "a")]
    random, n = np.random.default_rng(6), csc.num_nodes
    edges = {kind: (random.integers(0, n, 9000), random.integers(0, n, 9000)) for kind in kinds}
    cpu = pgs.Graph.from_coo(edges, num_nodes={"a": n, "b": n})
    sampler = pgs.PGSampler([4, 3], seed=1)
    want = sampler.sample(cpu, {"a": SEEDS}, batch=1)
    for graph in cpu.share(over, replicate=0.3):
        assert repr(graph).endswith("shared)")
        got = sampler.sample(graph, {"a": SEEDS}, batch=1).cpu()
        for mine, theirs in zip(got.blocks, want.blocks, strict=True):
            for kind in kinds:
                for name in ("indptr", "indices", "edge_ids"):
                    a, b = (getattr(block[kind], name).numpy() for block in (mine, theirs))
                    assert np.array_equal(a, b), (kind, name)
        with pytest.raises(TypeError, match="one that devices share"):
            pickle.dumps(graph)
        graph.close()


@pytest.mark.parametrize("over", [[0, 0], [0, 1]])
def test_loader(torch: Any, csc: Csc, over: list[int]) -> None:
    from pygsampler.torch import DataLoader

    need_cuda(max(over) + 1)
    cpu = csc.graph(32)
    options = {"batch_size": 64, "shuffle": True, "seed": 0, "shard_by": "batches", "world_size": 2}
    for rank, graph in enumerate(cpu.share(over, replicate=0.2)):
        torch.cuda.set_device(over[rank])
        both = [
            list(DataLoader(each, range(1000), [4, 3], rank=rank, **options))
            for each in (graph, cpu)
        ]
        assert len(both[0]) == len(both[1]) > 5
        for mine, theirs in zip(*both, strict=True):
            assert torch.equal(mine.input_nodes.cpu(), theirs.input_nodes)
    torch.cuda.set_device(0)


@pytest.mark.parametrize("over", [[0, 0, 0], [0, 1]])
def test_features(csc: Csc, over: list[int]) -> None:
    need_cuda(max(over) + 1)
    cpu = csc.graph()
    rows = np.random.default_rng(5).random((csc.num_nodes, 25)).astype(np.float32)
    rows[7, 3] = np.nan
    features = pgs.Features.from_tensor(rows)
    for replicate, graph in ((0.0, None), (0.3, cpu), (1.0, None)):
        for device, there in zip(
            over, features.share(over, replicate=replicate, graph=graph), strict=True
        ):
            assert (there.device, there.shape) == (f"cuda:{device}", rows.shape)
            assert repr(there).endswith("shared)")
            if not emulated():
                torch = partner("torch")
                ids = torch.randint(len(rows), (5000,), device=f"cuda:{device}")
                assert torch.equal(
                    there[ids].cpu().view(torch.int32),
                    torch.from_numpy(rows)[ids.cpu()].view(torch.int32),
                )
            back = there.to("cpu")._open_array().numpy()
            assert np.array_equal(back.view(np.int32), rows.view(np.int32))
            with pytest.raises(ValueError, match="read-only"):
                there.update(0.0, [1])
            with pytest.raises(TypeError, match="ones that devices share"):
                pickle.dumps(there)
    with pytest.raises(ValueError, match="graph: expected one with"):
        features.share(over, graph=pgs.Graph.from_csc([0, 0], []))
    none = pgs.Features.from_tensor(np.empty((0, 3), np.float32))
    assert [each.shape for each in none.share(over)] == [(0, 3)] * len(over)


def test_memory_is_divided_and_given_back(csc: Csc) -> None:
    def used() -> int:
        gc.collect()
        return pgs.cuda.memory_stats()["used"]

    cpu = furnished(csc, edge_ids=64)
    sampler = pgs.PGSampler([3], seed=1)
    # Workspaces stay.
    sampler.sample(cpu.to("cuda"), SEEDS, batch=0)
    before = used()
    edges, rows = 12 * cpu.num_edges, 8 * (cpu.num_nodes + 1)
    unit = 4096 if emulated() else 2 << 20
    for replicate, copies in ((0.0, 1.0), (0.5, 1.5), (1.0, 2.0)):
        first, second = cpu.share([0, 0], replicate=replicate)
        taken = used() - before - 2 * rows
        assert abs(taken - copies * edges) < 8 * unit, (replicate, taken, edges)
        first.close()
        assert_equal(sampler.sample(second, SEEDS, batch=0), sampler.sample(cpu, SEEDS, batch=0))
        with pytest.raises(pgs.errors.ClosedError):
            sampler.sample(first, SEEDS)
        second.close()
        assert used() <= before, replicate


def test_what_is_refused(csc: Csc, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = furnished(csc)
    for over, kind, text in (
        (["cuda:0"], ValueError, "devices: expected two CUDA devices or more, got ['cuda:0']"),
        (["cuda:0", "cpu"], ValueError, "devices: expected two CUDA devices or more"),
        (["cuda:0", "cuda:99"], pgs.errors.CudaError, "99"),
    ):
        with pytest.raises(kind) as caught:
            cpu.share(over)
        assert text in str(caught.value)
    wrongs = (1.5, ValueError), (-0.1, ValueError), ("a", TypeError), (True, TypeError)
    for replicate, wrong in wrongs:
        with pytest.raises(wrong, match="replicate: expected a share from 0 to 1"):
            cpu.share([0, 0], replicate=replicate)
    graph, _ = cpu.share([0, 0])
    with pytest.raises(TypeError, match="one that devices share"):
        pickle.dumps(graph)
    assert pickle.loads(pickle.dumps(graph.to("cpu"))).num_edges == cpu.num_edges


@pytest.mark.backends("emulator")
def test_what_devices_cannot_do(run_script: Any) -> None:
    """The emulator alone can lack an ability."""
    script = """
    import pygsampler as pgs
    cpu = pgs.Graph.from_csc([0, 2, 3, 3], [1, 2, 0])
    try:
        cpu.share([0, 1])
    except pgs.errors.CudaError as error:
        print(error)
    """
    for variable, text in (
        ("FAKE_CUDA_PEERS", "got cuda:0, which cannot read that of cuda:1 (no NVLink"),
        ("FAKE_CUDA_MAPS", "device 0 (Emulated GPU 0) cannot map memory of other devices"),
    ):
        done = run_script(script, **{variable: "0"})
        assert text in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("apart", [False, True])
def test_processes(apart: bool) -> None:
    """Three on one device, and one on each of two devices: what they share, and how they fail."""
    partner("torch")
    if apart and emulated():
        pytest.skip("needs two GPUs: on the emulator it would be the same once more")
    need_cuda(2 if apart else 1)
    arguments = str(int(apart)), str(int(emulated())), str(scaled(300_000, 1000))
    options = {"module": "shared_ranks", "leaves": False, "fresh": True}
    found = run_ranks(2 if apart else 3, "shared", *arguments, **options)
    for status, printed, said in found[:-1]:
        assert status == 0 and printed == "ended by an error\ndone\n", said
    assert found[-1][0] == 7, found[-1]
