"""One of the processes of ``python -m benchmarks.rgat``: ``python -m benchmarks.rgat.rank JSON``.

Process 0 prints a line of JSON for each batch size.
"""

from __future__ import annotations

import functools
import json
import mmap
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import pygsampler as pgs
from pygsampler import distributed
from pygsampler._arrays.array import as_array
from pygsampler._cli.bench.check import CheckError
from pygsampler._features.quantization import Quantization
from pygsampler.torch import DataLoader, capture

from ..gpu.shared_epoch import passed
from . import igbh
from .model import FANOUTS, RGAT

# Rows of each type that are not zeros, and are compared with what was stored.
_WRITTEN = 4_096
# DistributedDataParallel has its buckets after eleven steps.
_WARMUP = 11
_ROUNDS = 3


class Process:
    """The settings of the process, and its device."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.rank, self.world = given["rank"], given["world"]
        self.cuda = given["device"] == "cuda"
        self.device = f"cuda:{self.rank}" if self.cuda else "cpu"
        self.steps, self.hidden, self.width = given["steps"], given["hidden"], given["width"]
        self.classes = given["classes"]
        if self.cuda:
            torch.cuda.set_device(self.rank)
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if self.cuda else "gloo",
            init_method=f"file://{given['meeting']}",
            rank=self.rank,
            world_size=self.world,
            timeout=timedelta(seconds=600),
            device_id=torch.device(self.device) if self.cuda else None,
        )

    def synchronize(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()

    def slowest(self, value: float) -> float:
        """The greatest value of all processes."""
        greatest = torch.tensor([value])
        dist.all_reduce(greatest, dist.ReduceOp.MAX)
        return float(greatest)

    def milliseconds(self, run: Callable[[], object], steps: int) -> float:
        """Milliseconds of a step of the slowest process: the median of some runs after a first."""
        times = []
        for _ in range(_ROUNDS + 1):
            self.synchronize()
            dist.barrier()
            begin = time.perf_counter()
            run()
            self.synchronize()
            times.append(self.slowest(1e3 * (time.perf_counter() - begin) / steps))
        return statistics.median(times[1:])

    def autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast("cuda" if self.cuda else "cpu", torch.bfloat16, enabled=self.cuda)


def features(process: Process, kind: str, count: int) -> pgs.Features:
    """Rows of a node type in fp8, read as bfloat16 on a GPU; zeros but for some, which are proven.

    Pages of zeros take no memory of the host, so that each process holds the rows that it writes
    to its GPU and no others.
    """
    width, read_as = process.width, "bfloat16" if process.cuda else "float32"
    random = torch.Generator().manual_seed(sum(kind.encode()))
    some = torch.randperm(count, generator=random)[:_WRITTEN]
    rows = torch.randn(len(some), width, generator=random)
    written = pgs.Features.from_tensor(rows).quantize("float8_e4m3", read_as=read_as)
    scheme = written._quantization
    assert scheme is not None and scheme.scales is not None
    stride = written._open_array().shape[1]
    # Pages, since rows have to begin at a line of memory.
    stored = torch.frombuffer(mmap.mmap(-1, count * stride), dtype=torch.uint8).view(count, stride)
    scales = torch.zeros(count, dtype=torch.float32)
    stored[some] = torch.from_numpy(written._open_array().numpy())
    scales[some] = torch.from_numpy(scheme.scales.numpy())
    whole = pgs.Features._from_array(
        as_array(stored, kind),
        Quantization("float8_e4m3", "row", read_as, (width,), as_array(scales, kind)),
    )
    if process.cuda:
        whole = distributed.share_features(whole, device=process.device)
    got = whole[some.to(process.device)].cpu()
    if not got.equal(written[torch.arange(len(some))]):
        raise CheckError(f"features of {kind}: other rows than those that were stored")
    return whole


class Power:
    """Watts of the process's GPU while it runs, by nvidia-smi; None where that says nothing."""

    def __init__(self, process: Process) -> None:
        self._index, self._ended = process.rank, threading.Event()
        self._readings: list[float] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._asks = process.cuda

    def __enter__(self) -> Power:
        if self._asks:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._asks:
            self._thread.join()

    @property
    def watts(self) -> float | None:
        return round(statistics.median(self._readings), 1) if self._readings else None

    def _read(self) -> None:
        command = ["nvidia-smi", f"--id={self._index}", "--query-gpu=power.draw"]
        while not self._ended.wait(0.2):
            try:
                said = subprocess.run(
                    [*command, "--format=csv,noheader,nounits"],
                    capture_output=True,
                    text=True,
                    timeout=10,
                )
                self._readings.append(float(said.stdout))
            except (OSError, ValueError, subprocess.TimeoutExpired):
                return


def training(
    process: Process, graph: pgs.Graph, *, dropout: bool = True
) -> tuple[Callable[[Any], torch.Tensor], Any]:
    """A training step of a fresh model in all processes, and the stream to call it in."""
    torch.manual_seed(0)
    model: Any = RGAT(graph.edge_types, process.width, process.classes, process.hidden)
    model = model.to(process.device).train(dropout)
    stream = torch.cuda.Stream() if process.cuda else None
    if process.world > 1:
        # Its nodes of autograd belong to the stream in which they are created.
        with torch.cuda.stream(stream):
            model = DistributedDataParallel(
                model,
                device_ids=[process.rank] if process.cuda else None,
                gradient_as_bucket_view=True,
                find_unused_parameters=not process.cuda,
            )
        process.synchronize()
    optimizer = torch.optim.Adam(
        model.parameters(), lr=1e-3, fused=process.cuda, capturable=process.cuda
    )

    def step(batch: Any) -> torch.Tensor:
        optimizer.zero_grad()
        with process.autocast():
            scores = model(batch)
        loss = functional.cross_entropy(scores.float(), batch.y["paper"])
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step, stream


def check_captured(process: Process, graph: pgs.Graph, loader: Callable[..., Any]) -> None:
    """CheckError where a captured step without dropout has other losses than an eager one."""
    step, stream = training(process, graph, dropout=False)
    losses = torch.stack([step(batch) for batch in loader()])
    step, stream = training(process, graph, dropout=False)
    captured = capture(step, loader(static=True), warmup=_WARMUP, stream=stream).run()
    if not torch.allclose(captured, losses, rtol=5e-2, atol=5e-2):
        raise CheckError(f"losses: captured {captured.tolist()}, eager {losses.tolist()}")


def measure(process: Process, graph: pgs.Graph, rows: dict[str, Any], batch: int) -> dict[str, Any]:
    """Sampling alone, with rows, and whole steps, eager and captured."""
    papers = graph.num_nodes["paper"]
    random = torch.Generator().manual_seed(7)
    count = min(batch * process.steps * process.world, papers)
    seeds = torch.randperm(papers, generator=random)[:count]
    labels = torch.randint(process.classes, (papers,), generator=random)
    of = functools.partial(
        DataLoader, graph, sampler=pgs.PGSampler(FANOUTS, seed=3), batch_size=batch, shuffle=True,
        seed=0, rank=process.rank, world_size=process.world, drop_last=True,
    )  # fmt: skip
    few = {"paper": seeds[: (_WARMUP + 3) * batch * process.world]}
    of, few_of = functools.partial(of, seeds={"paper": seeds}), functools.partial(of, seeds=few)
    with_rows = {"features": {"x": rows}, "labels": {"paper": labels.to(process.device)}}
    steps = len(of())
    found: dict[str, Any] = {"batch": batch, "gpus": process.world, "steps": steps}
    first = next(iter(of()))
    found["input_nodes"] = sum(len(ids) for ids in first.input_nodes.values())
    found["edges"] = sum(block.num_edges for hop in first.blocks for block in hop.values())
    found["sampling_ms"] = process.milliseconds(lambda: passed(of()), steps)
    found["loader_ms"] = process.milliseconds(lambda: passed(of(**with_rows)), steps)
    if process.cuda:
        check_captured(process, graph, functools.partial(few_of, **with_rows))
    step, stream = training(process, graph)
    losses: list[torch.Tensor] = []

    def eager() -> None:
        losses[:] = [step(each) for each in of(**with_rows)]

    if process.cuda:
        torch.cuda.reset_peak_memory_stats()
    with Power(process) as power:
        found["eager_ms"] = process.milliseconds(eager, steps)
        found["step_ms"] = found["eager_ms"]
        if process.cuda:
            del step
            step, stream = training(process, graph)
            loop = capture(step, of(**with_rows, static=True), warmup=_WARMUP, stream=stream)

            def captured() -> None:
                losses[:] = [loop.run()]

            found["step_ms"] = process.milliseconds(captured, steps)
            found["captured"] = loop.captured
    if not all(bool(each.isfinite().all()) for each in losses):
        raise CheckError(f"losses that are not finite: {losses}")
    fastest = min(found["eager_ms"], found["step_ms"])
    found["seeds_per_second_per_gpu"] = 1e3 * batch / fastest
    found["sampling_share"] = found["sampling_ms"] / fastest
    found["watts"] = power.watts
    if process.cuda:
        found["torch_gb"] = process.slowest(torch.cuda.max_memory_allocated() / 1e9)
        found["engine_gb"] = process.slowest(pgs.cuda.memory_stats(process.rank)["used"] / 1e9)
    return found


def main(given: dict[str, Any]) -> None:
    process = Process(given)
    sizes = igbh.Sizes.at(given["scale"])
    begin = time.perf_counter()
    graph = igbh.generate(sizes, process.device).to(process.device)
    process.synchronize()
    generated = time.perf_counter() - begin
    rows = {kind: features(process, kind, count) for kind, count in sizes.nodes.items()}
    about = {
        "nodes": sum(sizes.nodes.values()),
        "edges_of_graph": sum(graph.num_edges.values()),
        "generate_s": generated,
        "features_s": time.perf_counter() - begin - generated,
    }
    for batch in given["batches"]:
        row = measure(process, graph, rows, batch)
        if process.rank == 0:
            every = {**row, **about}
            rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in every.items()}
            line = json.dumps(rounded)
            print(line, flush=True)
            # Before the next batch size, which may be the one that does not fit.
            with Path(given["rows"]).open("a") as file:
                file.write(line + "\n")
    process.synchronize()
    for each in rows.values():
        each.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
