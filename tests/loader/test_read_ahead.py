"""Which rows are read in which stream, and when, with streams and tables made of Python."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pygsampler._loader import read_ahead
from pygsampler._loader.epoch_state import EpochRun
from pygsampler._loader.pipeline import _count_on_gpu
from pygsampler._loader.read_ahead import MOST_STALE, START, WINDOW, ReadAhead, Trial
from pygsampler._loader.stats import EpochStats


class Device:
    """Two streams, and a list of what was put into which."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.current = Stream(self, "current")
        self.fails = False
        self.looks = 0
        monkeypatch.setattr(torch.cuda, "current_stream", lambda _: self.current)
        monkeypatch.setattr(torch.cuda, "Stream", lambda *_, **__: Stream(self, "reading"))
        monkeypatch.setattr(torch.cuda, "stream", self.inside)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "Event", lambda: self)
        monkeypatch.setattr(read_ahead, "gather_on_device", self.gather)
        monkeypatch.setattr(read_ahead, "_streams", {})
        monkeypatch.setattr(Trial, "step", lambda *_: True)

    def record(self, stream: Stream) -> None:
        """As an event of the current stream."""
        assert stream is self.current

    def query(self) -> bool:
        """True once nothing is to be waited for."""
        self.looks += 1
        return self.looks > 3

    @contextmanager
    def inside(self, stream: Stream) -> Any:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def gather(self, _: int, parts: list[Any], *, concurrent: bool = False) -> None:
        self.log.append((self.current.name, *(part.name for part in parts)))
        assert concurrent == (self.current.name == "reading")
        if self.fails:
            raise torch.cuda.OutOfMemoryError("no memory")


class Stream:
    def __init__(self, device: Device, name: str) -> None:
        self.device, self.name = device, name

    def wait_stream(self, other: Stream) -> None:
        self.device.log.append((self.name, "waits for", other.name))


class Batch(SimpleNamespace):
    form = "torch"


IDS = SimpleNamespace(length=10)


class Table:
    _writes = 0, 0

    def __init__(self, is_external: bool) -> None:
        self._is_external, self.counted = is_external, 0

    def _count(self, rows: int) -> None:
        self.counted += rows


class Fetcher:
    """Has a table on the device and one on the host."""

    step_times: Any = None

    def __init__(self) -> None:
        self.near, self.far = Table(False), Table(True)

    def external_tables(self) -> list[Table]:
        return [self.far]

    def attach_on_device(self, batch: Any) -> list[Any]:
        return [
            (table, None, SimpleNamespace(name=f"{name} {batch.number}", ids=IDS))
            for table, name in ((self.near, "near"), (self.far, "far"))
        ]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    return Device(monkeypatch)


@pytest.fixture
def reader(device: Device) -> ReadAhead:
    made: Any = ReadAhead
    meter = SimpleNamespace(reading=lambda: None, waited=lambda start, end: None)
    reader: ReadAhead = made(Fetcher(), 0, meter)
    reader._record_request()
    return reader


def test_far_rows_are_read_beside_the_step_before(device: Device, reader: ReadAhead) -> None:
    batches = [Batch(number=number) for number in range(3)]
    for number, batch in enumerate(batches):
        assert reader.fetch(batch) is batch
        reader.upcoming.find = lambda: batches[number + 1] if number < 2 else None  # noqa: B023
        reader.begin()
        device.log.append((f"step {number}",))
    reader.close()
    assert device.log == [
        ("current", "near 0", "far 0"),
        ("reading", "waits for", "current"),
        ("reading", "far 1"),
        ("step 0",),
        ("current", "waits for", "reading"),
        ("current", "near 1"),
        ("reading", "waits for", "current"),
        ("reading", "far 2"),
        ("step 1",),
        ("current", "waits for", "reading"),
        ("current", "near 2"),
        ("step 2",),
    ]


def test_a_busy_device_is_waited_for_and_no_longer(device: Device, reader: ReadAhead) -> None:
    reader.upcoming.is_pending = lambda: True
    reader.begin()
    assert device.looks == 4 and device.log == []
    device.looks = 0
    batch = Batch(number=1)
    reader.upcoming.find = lambda: batch if device.looks == 2 else None
    reader.begin()
    assert device.looks == 2 and device.log[-1] == ("reading", "far 1")
    # Nothing is begun, as at the end of an epoch.
    reader.close()
    device.looks = 0
    reader.upcoming.is_pending = lambda: False
    reader.begin()
    assert device.looks == 0


def test_what_was_written_meanwhile_is_read_again(device: Device, reader: ReadAhead) -> None:
    batch = Batch(number=1)
    reader.upcoming.find = lambda: batch
    reader.begin()
    fetcher: Any = reader._fetcher
    fetcher.far._writes = (1, 0)
    reader.fetch(batch)
    assert device.log[-2:] == [("current", "waits for", "reading"), ("current", "near 1", "far 1")]


def test_memory_stays_until_its_rows_are_there(device: Device, reader: ReadAhead) -> None:
    """A loop that is left, and a read that fails: its batch is read when it is fetched."""
    batch = Batch(number=1)
    reader.upcoming.find = lambda: batch
    reader.begin()
    reader.close()
    assert device.log[-1] == ("current", "waits for", "reading")
    reader.close()
    assert len(device.log) == 3
    device.fails = True
    reader.begin()
    assert device.log[-1] == ("current", "waits for", "reading")
    device.fails = False
    assert reader.fetch(batch) is batch
    assert device.log[-1] == ("current", "near 1", "far 1")


def test_rows_are_counted_once_they_are_read(device: Device, reader: ReadAhead) -> None:
    fetcher: Any = reader._fetcher
    batch = Batch(number=1)
    reader.upcoming.find = lambda: batch
    reader.begin()
    assert (fetcher.near.counted, fetcher.far.counted) == (0, 10)
    fetcher.far._writes = (1, 0)
    reader.fetch(batch)
    # What is read again comes over the link again.
    assert (fetcher.near.counted, fetcher.far.counted) == (10, 20)


def test_features_that_are_written_each_time_are_not_read_ahead(
    device: Device, reader: ReadAhead
) -> None:
    fetcher: Any = reader._fetcher
    for number in range(5):
        batch = Batch(number=number)
        reader.upcoming.find = lambda batch=batch: batch
        reader.begin()
        fetcher.far._writes = (number + 1, 0)
        reader.fetch(batch)
    reads = [each for each in device.log if each[0] == "reading" and each[1] != "waits for"]
    assert reads == [("reading", f"far {number}") for number in range(MOST_STALE)]
    assert device.log[-1] == ("current", "near 4", "far 4")


def test_an_interrupt_leaves_no_memory_that_is_written_to(
    device: Device, reader: ReadAhead, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = Batch(number=1)
    reader.upcoming.find = lambda: batch
    reader.begin()

    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reader, "_record_request", interrupt)
    with pytest.raises(KeyboardInterrupt):
        reader.fetch(batch)
    reader.close()
    assert device.log[-1] == ("current", "waits for", "reading")


def test_an_object_that_comes_again_is_read_at_its_turn(device: Device, reader: ReadAhead) -> None:
    batch = Batch(number=1)
    reader.fetch(batch)
    reader.upcoming.find = lambda: batch
    reader.begin()
    assert device.log == [("current", "near 1", "far 1")]


def test_a_batch_that_an_interrupt_ends_is_not_counted_as_handed_over() -> None:
    run = EpochRun(0, 1, SimpleNamespace(steps=3), False)  # type: ignore[arg-type]
    run.stats = EpochStats()

    class Reader:
        def begin(self) -> None:
            raise KeyboardInterrupt

        def close(self) -> None:
            closed.append(run.handed)

    closed: list[int] = []
    batches = (SimpleNamespace(num_edges=5) for _ in range(3))
    reader: Any = Reader()
    with pytest.raises(KeyboardInterrupt):
        next(_count_on_gpu(run, batches, lambda batch: batch, reader=reader))
    # Who resumes gets it, and what it has begun is over.
    assert run.handed == 0 and closed == [0]


@pytest.mark.parametrize(("without", "ahead", "choice"), [(10, 9, True), (10, 9.9, False)])
def test_the_faster_way_is_chosen(
    monkeypatch: pytest.MonkeyPatch, without: float, ahead: float, choice: bool
) -> None:
    class Clock:
        """An event of a device that is five steps behind the host."""

        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self, stream: Any) -> None:
            self.step = step

        def query(self) -> bool:
            return step >= self.step + 5

        def elapsed_time(self, other: Any) -> float:
            return WINDOW * (ahead if self.step == START else without)

    monkeypatch.setattr(torch.cuda, "Event", Clock)
    fetcher: Any = Fetcher()
    trial, stream, found = Trial(fetcher), Stream(None, "current"), []  # type: ignore[arg-type, var-annotated]
    for step in range(START + 2 * WINDOW + 20):  # noqa: B007
        found.append(trial.step(stream))  # type: ignore[arg-type]
    decided = START + 2 * WINDOW + 5
    expected = [False] * START + [True] * WINDOW + [False] * (WINDOW + 5)
    assert found == expected + [choice] * (len(found) - decided)
    assert fetcher.step_times == (without, ahead)
    # The next epoch knows.
    assert Trial(fetcher).step(stream) is choice  # type: ignore[arg-type]
