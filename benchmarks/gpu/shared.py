"""Graphs and features in the memory of several GPUs, beside a copy on each.

With one GPU it shares with itself: that checks all but the wires, and its times say what pieces and
mappings cost. Bounds are those of random reads between two H200s of one host, over 18 NVLinks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch

from . import check
from .direct import Direct
from .graphs import Made, make
from .record import Budget, Record
from .throughput import in_flight, many

# G random reads a second of one GPU: of its own memory, and of another one's.
LOCAL, REMOTE = 38.0, 6.6
# The parts of the shared arrays that each GPU has a copy of; at the last ones the links should
# cost little.
REPLICATED = (0.0, 0.1, 0.3, 0.7)
# shape, hot vertices first, fanouts as PGSampler takes them, outermost hop first, and batches
# that take some 50 ms
CASES = (
    ("products", False, (10, 10), 4096),
    ("papers100m", False, (5, 10, 15), 1024),
    ("papers100m", True, (5, 10, 15), 1024),
)
THREADS = ((10, 10), (5, 10, 15))
BATCH, FLIGHTS, ROUNDS = 1024, 8, 7
# The programs of processes; each has a GPU.
RANK = "benchmarks.gpu.shared_rank"
EPOCH = "benchmarks.gpu.shared_epoch"
# The ways of one process with a thread for each GPU.
WAYS = ("engine", "engine, many to a call", "sample_many")


def bound(share: float) -> float:
    """G random reads a second where that share of them goes to other GPUs."""
    return min(LOCAL, REMOTE / share) if share else LOCAL


def processes(
    about: dict[str, Any], world: int, timeout: float, module: str = RANK
) -> list[dict[str, Any]]:
    """The rows of a module in so many processes; RuntimeError where one fails."""
    # Torch's notes on CUDA graphs of collectives ask for it.
    environment = {**os.environ, "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        started = []
        for rank in range(world):
            given = json.dumps({**about, "rank": rank, "world": world, "meeting": meeting})
            command = [sys.executable, "-m", module, given]
            with (Path(folder) / f"out{rank}").open("w") as out:
                started.append(
                    subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)
                )
        end = time.monotonic() + timeout
        try:
            # Others wait for one that failed, and would never say why.
            while any(one.poll() is None for one in started) and time.monotonic() < end:
                if any(one.poll() for one in started):
                    break
                time.sleep(0.1)
        finally:
            codes = [one.poll() for one in started]
            for one in started:
                one.kill()
                one.wait()
        said = [(Path(folder) / f"out{rank}").read_text() for rank in range(world)]
    if any(codes) or None in codes:
        ends = "\n".join(text[-3000:] for text in said)
        raise RuntimeError(f"processes ended by {codes}\n{ends}")
    return [json.loads(line) for line in said[0].splitlines() if line.startswith("{")]


def in_threads(
    shape: str, fanouts: tuple[int, ...], devices: list[int], count: int
) -> dict[str, Any]:
    """Batches a second of one process, by one thread for one GPU and by one for each."""
    graphs: list[tuple[Made, Any]] = []
    for index in devices:
        with torch.cuda.device(index):
            made = make(shape, device=f"cuda:{index}")
            graphs.append((made, made.on_cpu() if not graphs else None))
    check.parity(graphs[0][0], graphs[0][1], fanouts, "auto")
    rates: dict[str, float] = {}
    for name, some in (("one", graphs[:1]), ("each", graphs)):
        for way in WAYS:
            rates[f"{way}, {name}"] = max(_round(some, fanouts, way, count) for _ in range(3))
    return {
        "shape": shape,
        "fanouts": list(fanouts),
        "ways": "threads",
        "gpus": len(devices),
        "batches_per_second": {name: round(rate) for name, rate in rates.items()},
        "times_one": {way: round(rates[f"{way}, each"] / rates[f"{way}, one"], 3) for way in WAYS},
    }


def _round(graphs: list[tuple[Made, Any]], fanouts: tuple[int, ...], way: str, count: int) -> float:
    """Batches a second of all threads together."""
    meeting = threading.Barrier(len(graphs) + 1)
    failed: list[BaseException] = []

    def work(made: Made) -> None:
        try:
            torch.cuda.set_device(made.indptr.device)
            direct = Direct(made, fanouts)
            batches = made.seeds(BATCH, count, made.indices.dtype)
            direct.learn(batches[:8])
            in_flight(direct, batches[: 2 * FLIGHTS], FLIGHTS)
            many(direct, batches[:64], 16)
            torch.cuda.synchronize()
            meeting.wait()
            if way == "engine":
                in_flight(direct, batches, FLIGHTS)
            elif way == "engine, many to a call":
                many(direct, batches, 16)
            else:
                for start in range(0, count, 64):
                    direct.sampler.sample_many(
                        made.graph, batches[start : start + 64], epoch=0, batch=start
                    )
            torch.cuda.synchronize()
            meeting.wait()
        except BaseException as error:
            failed.append(error)
            meeting.abort()

    threads = [threading.Thread(target=work, args=(made,)) for made, _ in graphs]
    for thread in threads:
        thread.start()
    seconds = 0.0
    try:
        meeting.wait(120)
        begin = time.perf_counter()
        meeting.wait(120)
        seconds = time.perf_counter() - begin
    except threading.BrokenBarrierError:
        pass
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return len(graphs) * count / seconds


def line(row: dict[str, Any]) -> str:
    """One line for a row."""
    about = f"{row['shape']:11} {row['ways']:22}"
    if row["ways"] == "threads":
        return (
            f"{about} {row['fanouts']} {row['gpus']} GPUs, batches/s {row['batches_per_second']}  "
            f"times one {row['times_one']}"
        )
    if row["ways"] == "epoch":
        return (
            f"{about} {row['gpus']} GPUs, {row['steps']} steps each, seconds: sampling "
            f"{row['sampling_s']}, and rows {row['loader_s']}, and training {row['training_s']}; "
            f"of fixed sizes {row['fixed_s']}, in one CUDA graph {row['captured_s']}"
        )
    if "feature_gb" in row:
        return f"{about} rows of {row['row']} B: {row['feature_gb']} GB/s a GPU"
    return (
        f"{about} {row['batches_per_second']:9.0f} batches/s in all ({row['times_one']:.2f} times "
        f"one, {row['of_replicated']:.3f} of copies)  {row['greads']:.2f} G edges/s a GPU  remote "
        f"{row['remote']:.3f}, bound {row['bound']:.1f}  walks {row['gsteps']:.2f} G steps/s, "
        f"bound {row['walk_bound']:.1f}  "
        f"{row['graph_gb']:.2f} GB a GPU"
    )


def run(record: Record, budget: Budget, trial: bool) -> None:
    """Threads, then processes: copies on all GPUs, and shared with more and more of it copied."""
    found = torch.cuda.device_count()
    devices = list(range(found)) if found > 1 else [0, 0]
    if found < 2:
        print("one GPU, which shares with itself: nothing of the wires", flush=True)
    for fanouts in THREADS[:1] if trial else THREADS:
        threads = in_threads(
            "tiny" if trial else "products", fanouts, devices, 64 if trial else 2048
        )
        print(line(threads), flush=True)
        record.add(threads)
        torch.cuda.empty_cache()
    cases = (("tiny", False, (3, 4), 16),) if trial else CASES
    for shape, hot_first, fanouts, count in cases:
        if budget.left() < (0 if trial else 45):
            record.skip((shape, hot_first, fanouts))
            continue
        if shape == "papers100m" and found < 2:
            record.skip((shape, hot_first, fanouts, "of one GPU"))
            continue
        about = {
            "shape": shape,
            "hot_first": hot_first,
            "fanouts": fanouts,
            "devices": devices,
            "batch": 64 if trial else BATCH,
            "replicated": REPLICATED[1::2] if trial else REPLICATED,
            "rounds": 2 if trial else ROUNDS,
            "walks": 1000 if trial else 1 << 20,
            "count": count,
        }
        for row in processes(about, len(devices), max(budget.left(), 120)):
            print(line(row), flush=True)
            record.add(row)
    for world in (1, len(set(devices))) if found > 1 else (1,):
        if budget.left() < (0 if trial else 60):
            record.skip(("epoch", world))
            continue
        about = {
            "shape": "tiny" if trial else "papers100m",
            "fanouts": (3, 4, 5) if trial else (5, 10, 15),
            "devices": devices,
            "batch": 64 if trial else BATCH,
        }
        for row in processes(about, world, max(budget.left(), 120), EPOCH):
            print(line(row), flush=True)
            record.add(row)
