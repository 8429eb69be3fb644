"""pygsampler.torch.DataLoader on a GPU: the CPU's batches, in torch's memory, beside training."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest
from torch_graphs import csc

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.torch import DataLoader  # noqa: E402
from tests.support.assertions import content, contents  # noqa: E402
from tests.support.parity import scaled  # noqa: E402

# Tests without it run on the emulator, too.
on_a_gpu = pytest.mark.usefixtures("gpu")
on_devices = pytest.mark.usefixtures("host_tensors")

NODES = 5000
SEEDS = torch.arange(0, 3000)
# About a millisecond of a GPU.
MILLISECOND = 2_000_000


def make_graph(dtype: Any = torch.int64, ids: bool = False) -> pgs.Graph:
    """5000 vertices of in-degree 0 to 80, parallel edges among them."""
    random = torch.Generator().manual_seed(7)
    indptr, indices = csc(NODES, 80, random, dtype)
    edge_ids = torch.randperm(len(indices), generator=random) if ids else None
    return pgs.Graph.from_csc(indptr, indices, edge_ids=edge_ids)


def seeds() -> Any:
    return SEEDS[: scaled(3000, 303)]


def batch_size() -> int:
    """The number of seeds of all of an epoch's 12 batches but the last."""
    return scaled(256, 26)


@pytest.fixture(scope="module")
def expected() -> list[dict[str, Any]]:
    """Two epochs of batches, by the CPU."""
    options = {"batch_size": batch_size(), "shuffle": True, "seed": 3}
    loader = DataLoader(make_graph(), seeds(), [10, 5], **options)
    return contents(loader) + contents(loader)


def on_gpu(**options: Any) -> DataLoader:
    return DataLoader(
        make_graph(),
        seeds(),
        [10, 5],
        **{"batch_size": batch_size(), "shuffle": True, "seed": 3, "device": "cuda", **options},
    )


@on_devices
@pytest.mark.parametrize("prefetch", [0, 1, 2, 3, 4, 8, 50])
def test_batches_of_the_cpu(expected: list[Any], prefetch: int) -> None:
    loader = on_gpu(prefetch=prefetch)
    assert loader.device == "cuda:0"
    assert contents(loader) + contents(loader) == expected


@on_devices
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("how", ["to", "pin"])
def test_every_kind_of_graph(dtype: Any, ids: bool, replace: bool, how: str) -> None:
    graph = make_graph(dtype, ids)
    there = graph.to("cuda") if how == "to" else graph.pin("cuda")
    sampler = pgs.PGSampler([-1, 7, 3], replace=replace, seed=9)
    some = SEEDS[torch.randperm(3000)[: scaled(500, 100)]].int()
    want = contents(DataLoader(graph, some, sampler, batch_size=64))
    for prefetch in (1, 8):
        gpu = DataLoader(there, some, sampler, batch_size=64, prefetch=prefetch)
        assert gpu.graph is there
        assert gpu.device == "cuda:0"
        assert contents(gpu) == want
    assert pgs.cuda.memory_stats(0)["flights"] == 0


@on_devices
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_factors_of_edges(dtype: Any) -> None:
    graph = make_graph(dtype)
    weights = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(1))
    graph = graph.with_data(edge_data={"w": weights})
    sampler = pgs.PGSampler([5, 3], seed=3, prob="w", edge_weights="ht")
    found = []
    for device in ("cpu", "cuda"):
        loader = DataLoader(graph, seeds(), sampler, batch_size=batch_size(), device=device)
        batches = list(loader)
        assert batches[0].blocks[0].edge_weights.dtype == torch.float32
        # Copies of the batches have the same contents.
        found += [contents(batches), contents(batch._map(torch.clone) for batch in batches)]
    assert all(each == found[0] for each in found)


@pytest.mark.research
@on_devices
@pytest.mark.parametrize("prefetch", [0, 4])
@pytest.mark.parametrize(
    "switches", [None, {"degree_threshold": 5, "streams": 2}, {"memory": "global"}]
)
def test_reservoirs(switches: dict[str, Any] | None, prefetch: int) -> None:
    """Checks a mode whose batches the host takes part in, one at a time and ahead."""
    graph = make_graph()
    sampler = pgs.PGSampler([5, 3], seed=3, mode="reservoir", mode_options=switches)
    options: dict[str, Any] = {"batch_size": batch_size(), "shuffle": True, "prefetch": prefetch}
    want = contents(DataLoader(graph, seeds(), sampler, **options))
    assert len(want) == 12
    assert contents(DataLoader(graph.to("cuda"), seeds(), sampler, **options)) == want


@on_devices
def test_a_pinned_graph_is_not_copied(expected: list[Any]) -> None:
    pinned = make_graph().pin("cuda")
    options = {"batch_size": batch_size(), "shuffle": True, "seed": 3, "device": "cuda:0"}
    loader = DataLoader(pinned, seeds(), [10, 5], **options)
    assert loader.graph is pinned
    assert contents(loader) + contents(loader) == expected


@on_a_gpu
def test_seeds_on_the_gpu_and_twice() -> None:
    seeds = torch.tensor([5, 7, 5, 5, 4999, 0])
    graph = make_graph()
    cpu = DataLoader(graph, seeds, [6, 4], batch_size=5, seed=1)
    gpu = DataLoader(graph, seeds.cuda(), [6, 4], batch_size=5, seed=1, device="cuda")
    assert contents(gpu) == contents(cpu)


@on_devices
def test_ranks_share_the_seeds() -> None:
    some = SEEDS[: scaled(1000, 303)]
    for rank in range(3):
        options = {"batch_size": 100, "shuffle": True, "seed": 3, "rank": rank, "world_size": 3}
        cpu = DataLoader(make_graph(), some, [10, 5], **options)
        gpu = DataLoader(make_graph(), some, [10, 5], device="cuda", **options)
        assert contents(gpu) == contents(cpu)


def tensors_of(batch: Any) -> list[Any]:
    tensors = [batch.input_nodes, batch.output_nodes, batch.output_index]
    for block in batch.blocks:
        tensors += [block.indptr, block.indices, block.edge_ids, block.src_nodes, block.dst_nodes]
    return tensors


@on_a_gpu
def test_a_batch_is_one_tensor_of_torch() -> None:
    batches = iter(on_gpu())
    batch = next(batches)
    tensors = tensors_of(batch)
    of_the_cpu = tensors_of(next(iter(on_gpu(device="cpu"))))
    assert [tensor.dtype for tensor in tensors] == [tensor.dtype for tensor in of_the_cpu]
    assert {tensor.device for tensor in tensors} == {torch.device("cuda", 0)}
    (memory,) = {tensor.untyped_storage().data_ptr() for tensor in tensors}
    blocks = [part for place in torch.cuda.memory_snapshot() for part in place["blocks"]]
    assert memory in [part["address"] for part in blocks if part["state"] == "active_allocated"]
    # A part keeps the whole.
    nodes, values = batch.input_nodes, batch.input_nodes.tolist()
    del batch, tensors
    batches.close()  # type: ignore[attr-defined]
    torch.empty(1 << 22, device="cuda").fill_(-1)
    assert nodes.tolist() == values


@on_a_gpu
def test_memory_does_not_grow() -> None:
    loader = on_gpu(prefetch=8)
    used = []
    for _ in range(6):
        for _batch in loader:
            pass
        del _batch
        torch.cuda.synchronize()
        used.append((torch.cuda.memory_allocated(), pgs.cuda.memory_stats(0)["reserved"]))
    assert used[3] == used[4] == used[5]


@on_a_gpu
def test_a_batch_dropped_while_the_gpu_still_reads_it(expected: list[Any]) -> None:
    """The memory goes back to torch at once, and a later batch takes it: only after the reader."""
    kept = []
    loader = on_gpu(prefetch=2)
    for _ in range(2):
        for batch in loader:
            torch.cuda._sleep(MILLISECOND)
            kept.append([batch.input_nodes.clone(), batch.blocks[0].indices.clone()])
            del batch
            torch.full((100_000,), -1, device="cuda")
    for (nodes, indices), batch in zip(kept, expected, strict=True):
        assert content(nodes) == {"": batch[".input_nodes"]}
        assert content(indices) == {"": batch[".blocks[0].indices"]}


@on_a_gpu
def test_every_batch_in_another_stream(expected: list[Any]) -> None:
    streams = [torch.cuda.Stream() for _ in range(3)]
    batches = iter(on_gpu(prefetch=4))
    got = []
    while True:
        stream = streams[len(got) % 3]
        with torch.cuda.stream(stream):
            batch = next(batches, None)
            if batch is None:
                break
            torch.cuda._sleep(MILLISECOND)
            got.append(content(batch))
            for other in streams:
                batch.input_nodes.record_stream(other)
    assert got == expected[: len(got)]
    assert len(got) == 12


@on_devices
def test_every_batch_in_another_thread(expected: list[Any]) -> None:
    batches = iter(on_gpu(prefetch=4))
    got: list[Any] = []
    for _ in range(12):
        thread = threading.Thread(target=lambda: got.append(content(next(batches))))
        thread.start()
        thread.join()
    assert got == expected[:12]


@on_devices
def test_two_iterators_at_once(expected: list[Any]) -> None:
    loader = on_gpu(prefetch=8)
    pairs = list(zip(loader, loader, strict=True))
    assert [content(a) for a, _ in pairs] == expected[:12]
    assert [content(b) for _, b in pairs] == expected[12:]


@on_a_gpu
def test_beside_training(expected: list[Any]) -> None:
    """Features gathered and a matrix multiplied in the loop change nothing and see each batch."""
    features = torch.randn(NODES, 64, device="cuda")
    weight = torch.randn(64, 64, device="cuda")
    copies = []
    for batch in on_gpu(prefetch=4):
        h = features[batch.input_nodes]
        for _ in range(20):
            h = torch.nn.functional.normalize(h @ weight)
        copies.append(batch.input_nodes.clone())
        src, dst = batch.blocks[0].coo()
        out = torch.zeros(batch.blocks[0].num_dst_nodes, 64, device="cuda")
        out.index_add_(0, dst, h[src])
    assert contents(copies) == [{"": batch[".input_nodes"]} for batch in expected[:12]]


@on_devices
def test_leaving_early_and_again(expected: list[Any]) -> None:
    loader = on_gpu(prefetch=8)
    for _ in range(20):
        loader.set_epoch(0)
        for step, batch in enumerate(loader):
            assert batch.output_nodes.numel() == batch_size()
            if step == 1:
                break
    loader.set_epoch(0)
    assert contents(loader) == expected[:12]
    assert pgs.cuda.memory_stats(0)["flights"] == 0


@on_devices
def test_an_error_in_the_loop() -> None:
    loader = on_gpu(prefetch=8)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 / 0  # noqa: B018
    assert sum(1 for _ in loader) == 12


@on_devices
def test_a_closed_graph() -> None:
    loader = on_gpu(prefetch=3)
    batches = iter(loader)
    kept = next(batches)
    values = content(kept)
    loader.graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        list(batches)
    assert content(kept) == values
    with pytest.raises(pgs.errors.ClosedError):
        next(iter(loader))


@on_devices
def test_bar(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm", reason="needs tqdm")
    assert len(list(on_gpu(progress=True))) == 12
    assert "12/12" in capsys.readouterr().err


@on_a_gpu
@pytest.mark.parametrize("device", ["cuda:99", torch.device("cuda", 99)])
def test_a_gpu_that_is_not_there(device: Any) -> None:
    with pytest.raises((pgs.errors.CudaError, IndexError), match="device"):
        DataLoader(make_graph(), SEEDS, [2], batch_size=8, device=device)


@on_a_gpu
def test_moved_batches(expected: list[Any]) -> None:
    batch = next(iter(on_gpu()))
    assert content(batch.to("cpu")) == expected[0]
    assert content(batch.to("cuda")) == expected[0]


PRELUDE = """
import torch
import pygsampler as pgs
from pygsampler.torch import DataLoader
n = 50000
indptr = torch.arange(0, (n + 1) * 50, 50)
graph = pgs.Graph.from_csc(indptr, torch.randint(0, n, (n * 50,)))
loader = DataLoader(graph, torch.arange(n), [15, 15], batch_size=500, prefetch=8, device="cuda")
"""


def run(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@on_a_gpu
def test_ctrl_c() -> None:
    process = run(
        """
        next(iter(loader))
        print("ready", flush=True)
        try:
            while True:
                for batch in loader:
                    # So that there is always something to wait for.
                    torch.cuda._sleep(50_000_000)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        del batch
        print(sum(1 for _ in loader), pgs.cuda.memory_stats(0)["flights"], flush=True)
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (0, "stopped\n100 0\n", "")
