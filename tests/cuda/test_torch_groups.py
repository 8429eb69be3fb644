"""Batches of a loader that a device samples by one call: they share a tensor, and nothing else."""

from __future__ import annotations

import ctypes
import gc
import os
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler import samplers  # noqa: E402
from pygsampler._batch import coo_expansion  # noqa: E402
from pygsampler._engine import library  # noqa: E402
from pygsampler._sampling.torch_group import TorchGroup, TorchLauncher  # noqa: E402
from pygsampler.torch import DataLoader  # noqa: E402
from tests.support.assertions import assert_equal, content, contents  # noqa: E402
from tests.support.interrupts import at_every_moment  # noqa: E402
from tests.support.research import HAS_RESEARCH  # noqa: E402
from tests.support.static_batches import make_graph  # noqa: E402

pytestmark = pytest.mark.usefixtures("host_tensors")
SEEDS = torch.cat([torch.arange(300), torch.tensor([5, 5, 7])])


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of batches of the groups that are launched, in their order."""
    sizes: list[int] = []
    launch = TorchLauncher.__call__

    def noted(self: TorchLauncher, seeds: Any, batches: Any) -> TorchGroup:
        sizes.append(len(batches))
        return launch(self, seeds, batches)

    monkeypatch.setattr(TorchLauncher, "__call__", noted)
    return sizes


def idle() -> bool:
    return pgs.cuda.memory_stats(0)["flights"] == 0


SAMPLERS = [
    pgs.RandomWalk(6, edge_ids=True, seed=3),
    pgs.walks.Node2Vec(6, p=0.25, q=4.0, walks_per_seed=2, seed=3),
    pgs.RandomWalk(9, prob="w", stop=0.2, restart=0.1, mode_options={"layout": "csr"}, seed=3),
    pgs.RandomWalk(5, mode_options={"execution": "transit", "layout": "csr"}, seed=3),
    pgs.walks.PinSAGE(2, 0.5, 4, 3, seed=3),
    pgs.walks.MultiRW(3, 7, edge_ids=True, seed=3),
    *([pgs.research.KHop([3, 2], seed=3)] if HAS_RESEARCH else []),
    *([pgs.research.LayerSample([4, 3], seed=3)] if HAS_RESEARCH else []),
]
PROGRAMS = [
    samplers.ladies(nodes=[20, 10], seed=3),
    samplers.shadow(fanouts=[3], seed=3),
    samplers.saint_node(budget=30, seed=3),
]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
def test_walks_of_the_cpu(groups: list[int], sampler: Any, dtype: str) -> None:
    graph = make_graph(getattr(torch, dtype))
    compare(graph, graph.to("cuda"), sampler, groups)


@pytest.mark.parametrize("sampler", PROGRAMS, ids=["ladies", "shadow", "saint"])
def test_programs_of_the_cpu(groups: list[int], sampler: Any) -> None:
    graph = make_graph()
    compare(graph, graph.to("cuda"), sampler, groups)


def compare(graph: pgs.Graph, there: pgs.Graph, sampler: Any, groups: list[int]) -> None:
    for prefetch in (1, 4):
        options: dict[str, Any] = {"batch_size": 60, "shuffle": True, "prefetch": prefetch}
        cpu = DataLoader(graph, SEEDS[:300], sampler, device="cpu", **options)
        gpu = DataLoader(there, SEEDS[:300], sampler, **options)
        groups.clear()
        for _ in range(2):
            # Edges that were not asked for are made when all batches are there.
            for batch, expected in zip(list(gpu), cpu, strict=True):
                assert_equal(batch, expected)
        assert groups == ([2, 2, 1] * 2 if prefetch == 4 else [])
    assert idle()


def test_writes_to_a_batch_are_not_seen_by_gradients_of_another() -> None:
    graph = make_graph().to("cuda")
    first, second = (
        walks.nodes for walks in DataLoader(graph, SEEDS[:4], SAMPLERS[0], batch_size=2)
    )
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    version = second._version
    first += 1
    assert second._version == version


def test_samplers_with_a_launch_of_their_own_launch_each_batch() -> None:
    class Own(pgs.PGSampler):
        launched = 0

        def launch(self, *args: Any, **options: Any) -> Any:
            Own.launched += 1
            return super().launch(*args, **options)

    class OwnWalk(pgs.RandomWalk):
        def launch(self, *args: Any, **options: Any) -> Any:
            return super().launch(*args, **options)

    graph = make_graph()
    there = graph.to("cuda")
    options: dict[str, Any] = {"batch_size": 32, "prefetch": 8}
    expected = contents(DataLoader(graph, SEEDS, [5, 3], seed=1, **options))
    assert contents(DataLoader(there, SEEDS, Own([5, 3], seed=1), **options)) == expected
    assert Own.launched == 10
    assert OwnWalk(3).group_launcher(there, epoch=0, form="torch") is None
    assert SAMPLERS[0].group_launcher(there, epoch=0) is None
    assert SAMPLERS[0].group_launcher(graph, epoch=0, form="torch") is None


def test_groups_share_a_tensor_and_nothing_else() -> None:
    graph = make_graph(torch.int32)
    options: dict[str, Any] = {"batch_size": 32, "prefetch": 8, "seed": 1}
    batches: list[Any] = list(DataLoader(graph, SEEDS, [5, 3], device="cuda", **options))
    storages = [batch.input_nodes.untyped_storage().data_ptr() for batch in batches]
    assert [storages.count(one) for one in dict.fromkeys(storages)] == [4, 4, 2]
    for ours, theirs in zip(batches, DataLoader(graph, SEEDS, [5, 3], **options), strict=True):
        moved = ours.to("cpu")
        assert content(ours) == content(moved) == content(theirs)
        assert edges(ours) == edges(theirs) == edges(moved)
    # Writing to one batch leaves the others as they are.
    first, second = batches[:2]
    before, versions = content(second), versions_of(second)
    for tensor in (first.input_nodes, *(block.edge_ids for block in first.blocks)):
        tensor.fill_(-1)
    assert content(second) == before
    assert versions_of(second) == versions


def versions_of(batch: Any) -> list[int]:
    return [batch.input_nodes._version, batch.blocks[0].indptr._version]


def edges(batch: Any, kinds: tuple[str, ...] = ("coo", "pair")) -> list[Any]:
    """The edges of all blocks, as ``coo`` and ``edge_index`` have them."""
    lists = []
    for block in batch.blocks:
        if "coo" in kinds:
            lists += [ends.tolist() for ends in block.coo()]
        if "pair" in kinds:
            pair = block.edge_index
            assert pair.dtype == torch.int64 and pair.shape == (2, block.num_edges)
            lists += pair.tolist()
    return lists


# Streams are numbers, which no GPU would know.
@pytest.mark.backends("emulator")
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_edges_of_a_group_are_made_together(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    """Once a loop has asked twice, by one launch a group; in each stream anew."""
    graph = make_graph(getattr(torch, dtype))
    there = graph.to("cuda")
    options: dict[str, Any] = {"batch_size": 32, "seed": 1}
    launches: list[int] = []
    stream, call = 0, coo_expansion.call

    def noted(name: str, *args: Any) -> Any:
        launches.append(args[1])
        assert args[3] == stream
        return call(name, *args)

    monkeypatch.setattr(coo_expansion, "call", noted)
    monkeypatch.setattr(coo_expansion.devices, "current_stream", lambda index: stream)

    def counts(*kinds: str) -> list[int]:
        launches.clear()
        loader = DataLoader(there, SEEDS, [5, 3], prefetch=8, **options)
        for ours, theirs in zip(loader, DataLoader(graph, SEEDS, [5, 3], **options), strict=True):
            assert edges(ours, kinds) == edges(theirs, kinds)
        return [*launches]

    assert counts("coo", "pair") == ([1, 1, 6, 8, 4] if dtype == "int32" else [1, 1, 3, 4, 2])
    assert counts("coo") == counts("pair") == [1, 3, 4, 2]
    most = coo_expansion._MOST_AHEAD
    monkeypatch.setattr(coo_expansion, "_MOST_AHEAD", 0)
    assert sum(counts("coo", "pair")) == (20 if dtype == "int32" else 11)
    monkeypatch.setattr(coo_expansion, "_MOST_AHEAD", most)
    launches.clear()
    for batch in DataLoader(there, SEEDS[:128], [5, 3], prefetch=8, **options):
        # Edges that were made ahead are in another stream.
        edges(batch, ("coo",))
        stream = (stream + 1) % 3
    assert launches == [1, 3, 1, 1]


@pytest.mark.parametrize("small", [(), (1,), (0, 2), (0, 1, 2, 3)], ids=str)
def test_batches_that_do_not_fit_are_sampled_again(
    monkeypatch: pytest.MonkeyPatch, small: tuple[int, ...]
) -> None:
    """The others of the group are as they were."""
    graph = make_graph()
    there = graph.to("cuda")
    expected = contents(DataLoader(graph, SEEDS, [5, 3], batch_size=32, seed=1))
    calls: list[str] = []
    call = library.call

    def noted(name: str, *args: Any, **options: Any) -> Any:
        calls.append(name)
        if name == "SubmitMany" and calls.count(name) == 1:
            # Eight words a batch; the last is for how many bytes there is room.
            words = (ctypes.c_int64 * (8 * args[3])).from_address(args[2])
            for place in small:
                words[8 * place + 7] = 640
        return call(name, *args, **options)

    monkeypatch.setattr(library, "call", noted)
    loader = DataLoader(there, SEEDS, [5, 3], batch_size=32, seed=1, prefetch=8)
    assert contents(loader) == expected
    assert (calls.count("SubmitMany"), calls.count("Submit")) == (3, len(small))
    assert idle()


def test_an_error_names_the_seed_after_the_batches_before_it() -> None:
    there = make_graph().to("cuda")
    gc.collect()
    live = pgs.engine.memory_stats()["live"]
    for place in (0, 1, 3, 4, 6, 9):
        loader: Any = DataLoader(there, SEEDS, [5, 3], batch_size=30, seed=1, prefetch=8)
        loader._source._seeds[30 * place + 7] = 1234
        numbers: list[int] = []
        with pytest.raises(IndexError, match=r"seeds\[7\]: expected an id in \[0, 1000\), got 123"):
            numbers.extend(batch.batch for batch in loader)
        assert numbers == list(range(place))
        del loader
        gc.collect()
        assert idle() and pgs.engine.memory_stats()["live"] == live


@pytest.mark.backends("emulator")
def test_ctrl_c_at_every_moment_of_a_loop() -> None:
    there = make_graph().to("cuda")
    sampler = pgs.PGSampler([2], seed=1)
    loader = DataLoader(there, SEEDS[:20], sampler, batch_size=4, prefetch=4)
    expected = contents(loader)

    def work() -> None:
        loader.set_epoch(0)
        for _ in loader:
            pass

    def held() -> tuple[int, ...]:
        stats = pgs.cuda.memory_stats()
        return stats["flights"], stats["used"], pgs.engine.memory_stats()["live"]

    work()
    gc.collect()
    before = held()
    for moment in at_every_moment(work):
        if held() != before:
            gc.collect()
        assert held() == before, moment
    loader.set_epoch(0)
    assert moment > 50 and contents(loader) == expected


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.backends("emulator")
def test_a_forked_child_hears_why() -> None:
    loader = DataLoader(make_graph(), SEEDS, [5, 3], batch_size=30, seed=1, device="cuda")
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if not child:
        status = 1
        try:
            next(iter(loader))
        except pgs.errors.CudaError as error:
            on_cpu = DataLoader(loader.graph, SEEDS, [5, 3], batch_size=30, seed=1, device="cpu")
            status = 0 if "forked" in str(error) and sum(1 for _ in on_cpu) == 11 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sum(1 for _ in batches) == 10


# A device with other memory has room for other groups.
@pytest.mark.backends("emulator")
def test_groups_are_as_large_as_a_budget_has_room_for(groups: list[int]) -> None:
    ends = np.random.default_rng(3).integers(0, 500, (2, 6000))
    graph = pgs.Graph.from_coo(*ends, num_nodes=500).to("cuda")

    def epoch(memory: int | None) -> list[Any]:
        groups.clear()
        options: dict[str, Any] = {"batch_size": 16, "prefetch": 8, "seed": 1}
        return contents(
            DataLoader(graph, np.arange(320), [4, 3], prefetch_memory=memory, **options)
        )

    expected = epoch(None)
    assert groups == [4] * 5
    sizes = []
    for memory in [1, *(1 << bits for bits in range(12, 30))]:
        assert epoch(memory) == expected
        # All groups of an epoch have one size, but for the last.
        assert set(groups[:-1]) == {groups[0]}
        sizes.append(groups[0])
    assert sizes[0] == 1 and sizes[-1] == 4 and sorted(sizes) == sizes and {2, 3} & {*sizes}
