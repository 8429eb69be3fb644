"""DataLoader.stats(), trace() and the queue: what they count, and that batches are the same."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_graphs import csc

import pygsampler as pgs
from pygsampler._loader import cuda_events, prefetch_control
from pygsampler._loader.prefetch import prefetch_in_order
from pygsampler._loader.prefetch_control import PrefetchController
from pygsampler.samplers import CompletedJob
from pygsampler.torch import DataLoader
from tests.support.assertions import contents

NODES = 3000
SEEDS = torch.arange(2000)
X = torch.rand(NODES, 8, generator=torch.Generator().manual_seed(1))
Y = torch.arange(NODES) % 7


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return pgs.Graph.from_csc(*csc(NODES, 29))


class Slow(pgs.Sampler):
    """Takes so many seconds for a batch, on the loader's own thread or beside it."""

    plan = ("slow",)

    def __init__(self, seconds: float, *, beside: bool) -> None:
        super().__init__(1)
        self.seconds, self.beside = seconds, beside

    def launch(self, graph: pgs.Graph, seeds: Any, *, epoch: int, batch: int, **how: Any) -> Any:
        block = [0] * (len(seeds) + 1), [], []
        made = pgs.MiniBatch.from_blocks(seeds, seeds, [block], epoch=epoch, batch=batch)
        if self.beside:
            return Later(made, self.seconds)
        time.sleep(self.seconds)
        return CompletedJob(made)


class Later:
    """A batch that is there after so many seconds."""

    def __init__(self, batch: Any, seconds: float) -> None:
        self.batch, self.at = batch, time.perf_counter() + seconds

    def result(self) -> Any:
        if not self.done():
            time.sleep(self.at - time.perf_counter())
        return self.batch

    def done(self) -> bool:
        return time.perf_counter() >= self.at

    def cancel(self) -> None:
        self.at = 0.0


# ---- what is counted ----


def test_before_a_pass_there_is_nothing(graph: pgs.Graph) -> None:
    found = DataLoader(graph, SEEDS, [3], batch_size=100, features={"x": X}).stats()
    assert found["batches"] == found["edges"] == found["seconds"] == found["waiting_share"] == 0
    assert found["features"] == {"x": {"reads": 0, "rows": 0, "bytes": {"cpu": 0}}}


@pytest.mark.parametrize("prefetch", [0, 1, 2, 4, 9])
def test_batches_edges_and_bytes_are_those_of_the_pass(graph: pgs.Graph, prefetch: int) -> None:
    features = pgs.Features.from_tensor(X)
    features.read([1, 2, 3])
    loader = DataLoader(
        graph, SEEDS, [5, 3], batch_size=64, seed=1, prefetch=prefetch,
        features={"x": features}, labels=Y,
    )  # fmt: skip
    for epoch in range(2):
        batches = list(loader)
        found = loader.stats()
        rows = sum(len(batch.input_nodes) for batch in batches)
        assert found["epoch"] == epoch
        assert found["batches"] == len(batches) == 32
        assert found["edges"] == sum(b.num_edges for batch in batches for b in batch.blocks)
        assert found["edges"] == sum(batch.num_edges for batch in batches)
        assert found["features"]["x"] == {"reads": 32, "rows": rows, "bytes": {"cpu": 32 * rows}}
        assert found["bytes"] == {"cpu": 32 * rows + 8 * len(SEEDS)}
        assert 0 <= found["waiting_seconds"] <= found["seconds"]
        assert found["waiting_share"] == found["waiting_seconds"] / found["seconds"]
        assert found["waiting_seconds"] <= found["next_seconds"] <= found["seconds"]
        assert set(found["queues"]) == {"sampled", "gathered"}
    assert json.loads(json.dumps(found)) == found


def test_they_go_on_while_the_pass_does(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=64, seed=1)
    edges = 0
    for step, batch in enumerate(loader, 1):
        edges += batch.num_edges
        found = loader.stats()
        assert (found["batches"], found["edges"]) == (step, edges)
    seconds = loader.stats()["seconds"]
    assert loader.stats()["seconds"] == seconds


def test_a_slow_sampler_is_waited_for(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, range(120), Slow(20e-3, beside=True), batch_size=10, prefetch=1)
    for _ in loader:
        time.sleep(4e-3)
    found = loader.stats()
    # Of 20 milliseconds a batch four are training, where nobody else has the cores.
    assert 0.4 < found["waiting_share"] < 0.9
    # Other work may keep the loop from a batch or two until they are there.
    assert 8 <= found["waits"] <= 12
    assert 8 / 12 <= found["queues"]["sampled"]["empty"] <= 1
    assert 0 <= found["queues"]["sampled"]["mean"] <= 4 / 12
    assert found["waiting_seconds"] <= found["next_seconds"] * 1.05


def test_a_slow_consumer_waits_for_the_first_alone(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, range(120), Slow(1e-3, beside=True), batch_size=10, prefetch=2)
    for _ in loader:
        time.sleep(10e-3)
    found = loader.stats()
    # A thread that others keep from the cores looks as if it waited.
    assert 1 <= found["waits"] < 6
    assert found["queues"]["sampled"]["mean"] > 1


def test_samplers_that_sample_in_launch_are_no_wait_but_time_in_next(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, range(120), Slow(2e-3, beside=False), batch_size=10)
    for _ in loader:
        pass
    found = loader.stats()
    assert found["waits"] < 6
    assert found["next_seconds"] > 0.5 * found["seconds"]


def test_a_thread_may_ask_while_another_trains(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=20, seed=1, features={"x": X})
    seen: list[int] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            seen.append(loader.stats()["batches"])

    thread = threading.Thread(target=watch)
    thread.start()
    count = sum(1 for _ in loader)
    stop.set()
    thread.join()
    assert count == 100
    assert seen == sorted(seen)


def test_closed_features_are_left_out(graph: pgs.Graph) -> None:
    features = pgs.Features.from_tensor(X)
    loader = DataLoader(graph, SEEDS, [3], batch_size=500, features={"x": features}, labels=Y)
    list(loader)
    features.close()
    assert set(loader.stats()["features"]) == {"y"}


def test_the_bar_shows_them(graph: pgs.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in DataLoader(graph, SEEDS, [5], batch_size=100, progress=True):
        pass
    shown = capsys.readouterr().err
    for part in ("20/20", "M edges/s", "% waiting for data", " batches ahead"):
        assert part in shown


def test_stats_print_as_a_table_with_plain_names(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=64, seed=1, features={"x": X})
    batches = list(loader)
    found = loader.stats()
    lines = dict(line.split("  ", 1) for line in str(found).splitlines())
    lines = {label: text.strip() for label, text in lines.items()}
    rows = sum(len(batch.input_nodes) for batch in batches)
    assert lines["batches"] == "32"
    assert lines["sampled edges"] == f"{found['edges']:,}"
    assert lines["share of time waiting for data"] == f"{found['waiting_share']:.1%}"
    assert lines["share of rows from caches"] == "no cache"
    assert lines["features 'x'"].startswith(f"{rows:,} rows in 32 reads, ")
    assert "on average" in lines["batches ahead, sampled"]
    assert len(lines) == len(str(found).splitlines())
    # To programs it is a dict, whose repr can be read back.
    assert isinstance(found, dict)
    assert eval(repr(found)) == found == pickle.loads(pickle.dumps(found))


def test_every_figure_has_a_plain_name(graph: pgs.Graph) -> None:
    from pygsampler._loader.summary import _LABELS

    found = DataLoader(graph, SEEDS, [5], batch_size=9).stats()
    assert set(found) - {"queues", "features", "bytes"} == set(_LABELS)


def test_a_trace_that_is_never_written_warns(
    graph: pgs.Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    loader = DataLoader(graph, SEEDS, [5], batch_size=500)
    loader.trace(first)
    loader.trace(first)
    assert not caplog.messages
    loader.trace(second)
    (said,) = caplog.messages
    assert said == (
        f"trace: {first} was not written, since no epoch has ended after loader.trace(path)"
    )
    list(loader)
    assert second.exists()
    assert len(caplog.messages) == 1


def test_a_pending_trace_warns_when_the_process_ends(tmp_path: Path) -> None:
    script = f"""
import pygsampler as pgs
from pygsampler.torch import DataLoader
loader = DataLoader(pgs.Graph.from_coo([0], [1]), [0], [1], batch_size=1)
loader.trace({str(tmp_path / "trace.json")!r})
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.count("trace.json was not written") == 1


# ---- the queue ----


class Machine:
    """What ``Pacer`` says, written down as its docstring does."""

    def __init__(self, high: int, low: int) -> None:
        self.high, self.low, self.until = high, low, low
        self.looks: list[int] = []
        self.pauses = 0

    def saw(self, finished: int) -> None:
        if self.looks and finished < self.looks[-1]:
            self.looks = []
        self.looks.append(finished)
        if len(self.looks) == prefetch_control.GROWTH + 1:
            if self.looks[-1] > self.looks[0] and self.high // 2 < self.until:
                self.until = self.high // 2
                self.pauses += 1
            self.looks = self.looks[-1:]


@pytest.mark.parametrize(("high", "low"), [(4, 3), (8, 7), (8, 4), (9, 6), (2, 1), (1, 0), (5, 0)])
def test_growth_makes_a_rest(high: int, low: int) -> None:
    random = torch.Generator().manual_seed(high * 10 + low)
    ours, theirs = PrefetchController(high, low), Machine(high, low)
    theirs.looks = [0]
    finished = 0
    for step in range(2000):
        finished += int(torch.randint(-1, 3, (), generator=random)) if step % 40 < 30 else -2
        finished = min(max(finished, 0), high)
        ours.observe(finished)
        theirs.saw(finished)
        assert (ours.until, ours.pauses) == (theirs.until, theirs.pauses), step
        if step % 23 == 0:
            assert ours.free_slots(ours.until) == high - theirs.until
            theirs.until = low
    assert (ours.pauses > 0) == (high // 2 < low)


class Job:
    def __init__(self, step: int, now: list[int], takes: int) -> None:
        self.step, self.now, self.at = step, now, now[0] + takes

    def result(self) -> int:
        self.now[0] = max(self.now[0], self.at)
        return self.step

    def done(self) -> bool:
        return self.now[0] >= self.at

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
@pytest.mark.parametrize("low", [None, 0, 1, 3])
@pytest.mark.parametrize("takes", [0, 3, 30])
def test_batches_are_begun_between_the_marks(
    depth: int, low: int | None, takes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until ``depth`` are ahead, and then not before ``low`` are left."""
    monkeypatch.setattr("pygsampler._loader.prefetch.LOOK", float("inf"))
    if low is not None and low >= depth:
        low = depth - 1
    mark = depth - 1 if low is None else low
    now, begun = [0], []

    def submit(step: int) -> Any:
        begun.append(step)
        return Job(step, now, takes)

    before = depth
    for step, got in enumerate(prefetch_in_order(submit, 60, depth, low=low)):
        assert got == step
        left, ahead = before - step - 1, len(begun) - step - 1
        assert ahead == (min(depth, 59 - step) if left <= mark else left)
        before = len(begun)
        now[0] += 10
    assert begun == list(range(60))


def test_a_sampler_that_is_faster_rests(graph: pgs.Graph, monkeypatch: Any) -> None:
    """Its queue grows from step to step; the looks are in each."""
    monkeypatch.setattr("pygsampler._loader.prefetch.LOOK", 0.0)
    now: list[int] = [0]
    seen: list[int] = []
    from pygsampler._loader.stats import EpochStats

    meter = EpochStats()
    jobs = prefetch_in_order(lambda step: Job(step, now, 40 if step < 8 else 0), 60, 8, meter=meter)
    for _ in jobs:
        now[0] += 11
        seen.append(meter.pacer.pauses)
    assert meter.pacer.pauses > 0
    assert meter.pacer.held >= meter.pacer.pauses
    assert seen[0] == 0


PIPELINES: list[dict[str, Any]] = [
    {"prefetch": prefetch if low is None else (low, prefetch)}
    for prefetch in (0, 1, 2, 3, 4, 8, 20)
    for low in (None, 0, 1, 2, 7)
    if low is None or low < prefetch
]


@pytest.mark.parametrize("rows", [False, True])
def test_batches_do_not_depend_on_the_queue(graph: pgs.Graph, rows: bool) -> None:
    more: dict[str, Any] = {"features": {"x": X}, "labels": Y} if rows else {}
    options: dict[str, Any] = {"batch_size": 150, "shuffle": True, "seed": 3, **more}
    expected = None
    for pipeline in PIPELINES:
        loader = DataLoader(graph, SEEDS, [5, 3], gpu_share=0.3, **pipeline, **options)
        found = contents(loader)
        expected = expected or found
        assert found == expected, pipeline


class OwnLaunch(pgs.PGSampler):
    """A sampler whose batches are launched one by one."""

    def launch(self, *args: Any, **options: Any) -> Any:
        return super().launch(*args, **options)


FEW = SEEDS[:300]


@pytest.fixture
def few(host_tensors: None) -> tuple[pgs.Graph, pgs.Graph]:
    """A graph on the CPU and on a device."""
    graph = pgs.Graph.from_csc(*csc(1000, 29))
    return graph, graph.to("cuda")


@pytest.mark.backends("emulator", "cuda")
@pytest.mark.parametrize("kind", [pgs.PGSampler, OwnLaunch])
def test_batches_of_a_device_do_not_depend_on_the_queue(
    few: tuple[pgs.Graph, pgs.Graph], kind: type[pgs.PGSampler]
) -> None:
    graph, there = few
    options: dict[str, Any] = {"batch_size": 32, "shuffle": True}
    sampler = kind([5, 3], seed=3)
    expected = contents(DataLoader(graph, FEW, sampler, **options))
    for number, pipeline in enumerate(PIPELINES):
        share = None if kind is OwnLaunch else [None, 0.001, 0.25, 1][number % 4]
        loader = DataLoader(there, FEW, sampler, gpu_share=share, **pipeline, **options)
        assert contents(loader) == expected, pipeline
        stats = loader.stats()
        assert stats["batches"] == len(expected)
        assert stats["edges"] == sum(batch[".num_edges"] for batch in expected)
    assert pgs.cuda.memory_stats(0)["flights"] == 0


@pytest.mark.research
@pytest.mark.backends("emulator", "cuda")
@pytest.mark.parametrize("mode", ["fused", "queue"])
def test_batches_do_not_depend_on_the_share_of_a_device(
    few: tuple[pgs.Graph, pgs.Graph], mode: str
) -> None:
    graph, there = few
    options: dict[str, Any] = {"batch_size": 32, "shuffle": True}
    sampler = pgs.PGSampler([5, 3], seed=3, mode=mode)
    loader = DataLoader(there, FEW, sampler, gpu_share=0.01, **options)
    want = DataLoader(graph, FEW, pgs.PGSampler([5, 3], seed=3), **options)
    assert contents(loader) == contents(want)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"prefetch": (4, 4)},
            ValueError,
            r"^prefetch\[0\]: expected an integer from 0 to 3, got 4",
        ),
        ({"prefetch": (-1, 4)}, ValueError, r"^prefetch\[0\]: expected an integer"),
        ({"prefetch": ("1", 4)}, TypeError, r"^prefetch\[0\]: expected an integer"),
        ({"prefetch": (0, 0)}, ValueError, r"^prefetch\[1\]: expected an integer"),
        ({"prefetch": (1, 2, 3)}, ValueError, r"^prefetch: expected a number or \(low, high\)"),
        ({"gpu_share": 0}, ValueError, r"^gpu_share: expected a number in \(0, 1\], got 0"),
        ({"gpu_share": 1.5}, ValueError, r"^gpu_share: expected a number in \(0, 1\]"),
        ({"gpu_share": float("nan")}, ValueError, "^gpu_share: expected a number in"),
        ({"gpu_share": True}, TypeError, '^gpu_share: expected a number or "auto", got bool'),
        ({"gpu_share": "all"}, TypeError, '^gpu_share: expected a number or "auto", got str'),
    ],
)
def test_what_is_refused(
    graph: pgs.Graph, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        DataLoader(graph, SEEDS, [2], batch_size=8, **options)


def test_a_share_of_a_sampler_of_ones_own_is_refused(graph: pgs.Graph) -> None:
    class Own(pgs.PGSampler):
        pass

    for sampler in (Slow(0, beside=False), Own([2])):
        with pytest.raises(ValueError, match=r"^gpu_share: expected None with"):
            DataLoader(graph, SEEDS, sampler, batch_size=8, gpu_share=0.5)


# ---- events of a device ----


class Clock:
    """Events of a stream that stands where ``now`` is."""

    now = 0.0

    def __init__(self, **options: Any) -> None:
        assert options == {"enable_timing": True}
        self.at: float | None = None

    def record(self, stream: Any) -> None:
        assert stream == "stream"
        self.at = Clock.now

    def query(self) -> bool:
        return self.at is not None and self.at <= Clock.done

    def elapsed_time(self, other: Clock) -> float:
        assert self.at is not None and other.at is not None
        return other.at - self.at

    done = float("inf")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.cuda, "Event", Clock)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: "stream")
    monkeypatch.setattr(cuda_events.devices, "current_stream", lambda index: 5)
    monkeypatch.setattr(Clock, "now", 0.0)
    monkeypatch.setattr(Clock, "done", float("inf"))
    return Clock


def step(
    ring: cuda_events.CudaEvents, clock: Any, waits: float, gathers: float, trains: float
) -> None:
    ring.ask()
    clock.now += waits
    ring.had()
    clock.now += gathers
    ring.hand()
    clock.now += trains


@pytest.mark.parametrize(
    ("steps", "every", "measured"),
    [
        *((1, 8, 1), (64, 8, 64), (72, 8, 65), (73, 8, 66), (800, 8, 156), (4000, 8, 254)),
        *((100, 1, 100), (256, 1, 254), (775, 1, 254)),
    ],
)
def test_shares_are_those_of_the_stream(clock: Any, steps: int, every: int, measured: int) -> None:
    ring = cuda_events.CudaEvents(0, every=every)
    for _ in range(steps):
        step(ring, clock, 3, 1, 6)
    ring.ask()
    found = ring.shares()
    assert found["steps"] == measured
    assert found["waiting_share"] == pytest.approx(0.3)
    assert found["gathering_share"] == pytest.approx(0.1)


def test_only_the_last_steps_count(clock: Any) -> None:
    ring = cuda_events.CudaEvents(0)
    last = cuda_events.RING * cuda_events.EVERY
    for number in range(2 * last):
        step(ring, clock, *((9, 0, 1) if number < last else (0, 0, 10)))
    ring.ask()
    assert ring.shares()["waiting_share"] == 0


def test_nobody_waits_for_steps_that_the_device_is_not_through_with(clock: Any) -> None:
    ring = cuda_events.CudaEvents(0)
    for _ in range(10):
        step(ring, clock, 1, 1, 8)
    ring.ask()
    clock.done = 45.0
    assert ring.shares()["steps"] == 4
    clock.done = -1.0
    assert ring.shares() == {"waiting_share": 0.0, "gathering_share": 0.0, "steps": 0}


# ---- traces ----


def read(path: Path) -> tuple[dict[int, str], list[dict[str, Any]]]:
    """The threads' names, and the spans, which are checked: none begins within another of its
    thread unless it ends there too."""
    made = json.loads(path.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in made if e["name"] == "thread_name"}
    spans = [event for event in made if event["ph"] == "X"]
    assert {event["ph"] for event in made} == {"M", "X"}
    assert {span["tid"] for span in spans} == set(names)
    for thread in names:
        open_until: list[float] = []
        mine = [span for span in spans if span["tid"] == thread]
        for span in sorted(mine, key=lambda span: (span["ts"], -span["dur"])):
            start, end = span["ts"], span["ts"] + span["dur"]
            assert span["dur"] >= 0
            while open_until and open_until[-1] <= start + 1e-3:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3
            open_until.append(end)
    return names, spans


def by_batch(spans: list[dict[str, Any]], name: str) -> dict[int, tuple[float, float]]:
    return {
        batch: (span["ts"], span["ts"] + span["dur"])
        for span in spans
        if span["name"] == name
        for batch in range(
            span["args"]["batch"], span["args"]["batch"] + span["args"].get("batches", 1)
        )
    }


@pytest.mark.parametrize("prefetch", [0, 1, 2, 4])
@pytest.mark.parametrize("rows", [False, True])
def test_a_trace_has_the_stages_of_each_batch(
    graph: pgs.Graph, tmp_path: Path, rows: bool, prefetch: int
) -> None:
    more: dict[str, Any] = {"features": {"x": X}} if rows else {}
    options: dict[str, Any] = {"batch_size": 100, "seed": 1, "prefetch": prefetch, **more}
    loader = DataLoader(graph, SEEDS, [5, 3], **options)
    expected = contents(DataLoader(graph, SEEDS, [5, 3], **options))
    loader.trace(tmp_path / "trace.json")
    assert contents(loader) == expected
    names, spans = read(tmp_path / "trace.json")
    assert names[1] == "training loop"
    assert {name.rstrip("0123456789 ") for name in names.values()} == {
        "training loop", "sample", *(["gather"] if rows else [])
    }  # fmt: skip
    asked, trained, sampled = (by_batch(spans, name) for name in ("next", "train", "sample"))
    assert set(asked) == set(trained) == set(sampled) == set(range(20))
    gathered = by_batch(spans, "gather")
    assert set(gathered) == (set(range(20)) if rows else set())
    for batch in range(20):
        ready = gathered[batch] if rows else sampled[batch]
        assert sampled[batch][1] <= ready[0] or not rows
        assert ready[1] <= asked[batch][1] <= trained[batch][0] + 1e-3
    # The next pass is not traced.
    (tmp_path / "trace.json").unlink()
    list(loader)
    assert not (tmp_path / "trace.json").exists()


def test_a_trace_of_waits(graph: pgs.Graph, tmp_path: Path) -> None:
    loader = DataLoader(graph, range(60), Slow(4e-3, beside=True), batch_size=10, prefetch=1)
    loader.trace(tmp_path / "trace.json")
    list(loader)
    _, spans = read(tmp_path / "trace.json")
    waits, asked = by_batch(spans, "wait"), by_batch(spans, "next")
    assert set(waits) == set(range(6))
    assert sum(end - start for start, end in waits.values()) / 1e6 == pytest.approx(
        loader.stats()["waiting_seconds"]
    )
    for batch, (start, end) in waits.items():
        assert asked[batch][0] <= start <= end <= asked[batch][1]


def test_a_trace_of_a_pass_that_was_left(graph: pgs.Graph, tmp_path: Path) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=100, seed=1, features={"x": X})
    for stop in (0, 3):
        loader.trace(tmp_path / "trace.json")
        for step_, _ in enumerate(loader):
            if step_ == stop:
                break
        gc.collect()
        _, spans = read(tmp_path / "trace.json")
        assert set(by_batch(spans, "train")) == set(range(stop + 1))
        assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_a_long_trace_keeps_the_last_batches(
    graph: pgs.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pygsampler._loader.trace.MOST", 10)
    loader = DataLoader(graph, SEEDS, [2], batch_size=10, seed=1)
    loader.trace(tmp_path / "trace.json")
    list(loader)
    _, spans = read(tmp_path / "trace.json")
    assert len(spans) <= 10 + 30
    assert max(by_batch(spans, "train")) == 199
    assert set(by_batch(spans, "sample")) == set(range(190, 200))


def test_a_trace_that_cannot_be_written(graph: pgs.Graph, tmp_path: Path) -> None:
    loader = DataLoader(graph, SEEDS, [2], batch_size=1000)
    with pytest.raises(FileNotFoundError, match="missing"):
        loader.trace(tmp_path / "missing" / "trace.json")
    with pytest.raises(TypeError):
        loader.trace(3)
    assert sum(1 for _ in loader) == 2


@pytest.mark.backends("emulator", "cuda")
@pytest.mark.parametrize("prefetch", [0, 2, 8])
def test_a_trace_of_a_device(
    few: tuple[pgs.Graph, pgs.Graph], tmp_path: Path, prefetch: int
) -> None:
    path = tmp_path / "trace.json"
    loader = DataLoader(few[1], FEW, [5, 3], batch_size=32, prefetch=prefetch, seed=1)
    loader.trace(str(path))
    assert len(list(loader)) == 10
    _, spans = read(path)
    for name in ("sample", "next", "train"):
        assert set(by_batch(spans, name)) == set(range(10))
    groups = [span["args"].get("batches", 1) for span in spans if span["name"] == "sample"]
    assert groups == ([4, 4, 2] if prefetch == 8 else [1] * 10)


# ---- ends ----


def test_leaving_in_the_middle_leaves_the_figures(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=100, seed=1)
    for step_, _ in enumerate(loader):
        if step_ == 3:
            break
    gc.collect()
    found = loader.stats()
    assert found["batches"] == 4
    assert loader.stats() == found
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 / 0  # noqa: B018
    assert loader.stats()["batches"] == 1


def test_two_iterators_have_figures_of_their_own(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [5, 3], batch_size=100, seed=1)
    first = iter(loader)
    edges = next(first).num_edges
    assert loader.stats()["edges"] == edges
    second = iter(loader)
    assert loader.stats()["batches"] == 0
    others = [next(second).num_edges for _ in range(3)]
    next(first)
    found = loader.stats()
    assert (found["epoch"], found["batches"], found["edges"]) == (1, 3, sum(others))


def test_a_pickled_loader_begins_anew(graph: pgs.Graph, tmp_path: Path) -> None:
    loader = DataLoader(
        graph, SEEDS, [5, 3], batch_size=100, seed=1, prefetch=(2, 4), gpu_share=0.5,
        features={"x": X},
    )  # fmt: skip
    list(loader)
    loader.trace(tmp_path / "trace.json")
    copy = pickle.loads(pickle.dumps(loader))
    assert copy.stats()["batches"] == 0
    assert (copy.prefetch, copy.gpu_share) == ((2, 4), 0.5)
    list(copy)
    assert not (tmp_path / "trace.json").exists()
    assert copy.stats()["edges"] > 0 < copy.stats()["held_back"]


def test_a_file_that_becomes_shorter_is_an_error_of_its_batch(tmp_path: Path) -> None:
    """In the middle of an epoch; the figures are those until then, and the process lives."""
    script = textwrap.dedent(f"""
        import os, sys
        import torch
        import pygsampler as pgs
        from pygsampler.torch import DataLoader

        path = {str(tmp_path / "x.pgs")!r}
        nodes = 1 << 15
        graph = pgs.Graph.from_coo(torch.zeros(0).long(), torch.zeros(0).long(), num_nodes=nodes)
        graph.with_data(node_data={{"x": torch.rand(nodes, 64)}}).save(path)
        features = pgs.Features.open(path, "x")
        loader = DataLoader(graph, range(nodes), [1], batch_size=256, features={{"x": features}})
        loader.trace({str(tmp_path / "trace.json")!r})
        before = pgs.engine.memory_stats()["jobs"]
        batches = iter(loader)
        for step in range(20):
            assert next(batches).x.shape == (256, 64)
        os.truncate(path, os.path.getsize(path) // 2)
        good = 20
        try:
            for batch in batches:
                good += 1
        except pgs.Error as error:
            print(type(error).__name__, error)
        except OSError as error:
            print(type(error).__name__, error)
        print(20 < good < 128, loader.stats()["batches"] == good)
        del batches
        print(pgs.engine.memory_stats()["jobs"] - before)
        other = DataLoader(graph, range(nodes), [1], batch_size=256)
        print(sum(1 for _ in other))
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told, *rest = done.stdout.splitlines()
    assert "changed" in told or "shorter" in told, told
    assert rest == ["True True", "0", "128"]
    _, spans = read(tmp_path / "trace.json")
    assert set(by_batch(spans, "next")) >= set(range(20))


# Interrupted, Python's own write_text leaves closing the file to its destructor.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_ctrl_c_at_every_moment_of_a_traced_loop(graph: pgs.Graph, tmp_path: Path) -> None:
    from engine_usage import held, held_now
    from interrupts import at_every_moment

    loader = DataLoader(graph, SEEDS[:20], [2], batch_size=5, seed=1, features={"x": X})
    expected = contents(loader)

    def work() -> None:
        loader.set_epoch(0)
        loader.trace(tmp_path / "trace.json")
        for _ in loader:
            pass

    work()
    before = held()
    for moment in at_every_moment(work):
        if held_now() != before:
            gc.collect()
        assert held_now() == before, moment
    assert moment > 100
    loader.set_epoch(0)
    assert contents(loader) == expected
    read(tmp_path / "trace.json")
