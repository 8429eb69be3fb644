"""Readings of features: beside other work, in the way of it, ended in every way, and large."""

from __future__ import annotations

import gc
import pickle
import signal
import threading
import time
from array import array
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from engine_usage import held
from feature_bytes import IDS, ROWS, busy
from interrupts import at_every_moment

import pygsampler as pgs

# ---- while the caller does something else ----


def test_a_reading_is_waited_for_as_often_as_one_likes(points, features) -> None:
    for ids in (IDS, torch.tensor(IDS)):
        reading = features.read_async(ids, threads=2)
        rows = reading.wait()
        assert rows.tolist() == points[IDS].tolist()
        assert reading.wait() is rows and reading.done()
        reading.cancel()
        assert reading.wait() is rows
        assert repr(reading) == "Reading(5 rows, done)"
        with pytest.raises(TypeError, match="pickle its result"):
            pickle.dumps(reading)


@pytest.mark.parametrize("threads", [-1, True, 1.0, "2", 1 << 31])
def test_threads_that_are_no_number(features, threads: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^threads: expected an integer from 0"):
        features.read_async(IDS, threads=threads)


def test_a_reading_that_waits_its_turn(points, features) -> None:
    before = held()
    with busy():
        waiting, ended, dropped = (features.read_async(IDS) for _ in range(3))
        assert not waiting.done()
        assert repr(waiting) == "Reading(5 rows, on its way)"
        ended.cancel()
        ended.cancel()
        assert ended.done()
        with pytest.raises(pgs.Error, match="got one that was cancelled"):
            ended.wait()
        # The sampling, and the one that is waited for.
        del dropped
        assert held()[1] == 2
    assert waiting.wait().tolist() == points[IDS].tolist()
    del waiting, ended
    assert held() == before


def test_a_reading_keeps_what_it_reads(points) -> None:
    """The array and the ids are nobody else's."""
    with busy():
        readings = [
            pgs.Features.from_tensor(points.copy()).read_async(np.array(IDS)) for _ in range(20)
        ]
        gc.collect()
        others = [np.full((ROWS, 3), -7, np.float32) for _ in range(200)]
    assert [reading.wait().tolist() for reading in readings] == [points[IDS].tolist()] * 20
    assert len(others) == 200


def test_cancel_in_another_thread_ends_the_wait(features) -> None:
    with busy(), ThreadPoolExecutor(1) as pool:
        reading = features.read_async(IDS)
        waits = pool.submit(reading.wait)
        time.sleep(0.05)
        reading.cancel()
        with pytest.raises(pgs.Error, match="cancelled"):
            waits.result(60)


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("how", ["read", "read_async"])
def test_ctrl_c_ends_a_reading(features, how: str) -> None:
    def press() -> None:
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = held()
    with busy():
        thread = threading.Thread(target=press)
        thread.start()
        reading = features.read_async(IDS)
        with pytest.raises(KeyboardInterrupt):
            features.read(IDS) if how == "read" else reading.wait()
        thread.join()
        if how == "read":
            reading.cancel()
        with pytest.raises(pgs.Error, match="cancelled"):
            reading.wait()
        # The sampling alone.
        assert held()[1] == 1
    assert held() == before
    assert features[[0]].tolist() == [[0, 1, 2]]


def test_ctrl_c_at_every_moment(features) -> None:
    ids, out = array("q", IDS), np.empty((5, 3), np.float32)
    for work in (
        lambda: features.read(ids),
        lambda: features.read(ids, out),
        lambda: features.read_async(ids).wait(),
        lambda: features.read_async(ids),
    ):
        work()
        before = held()
        for moment in at_every_moment(work):
            stats = pgs.engine.memory_stats()
            if (stats["live"], stats["jobs"]) != before:
                # The frames of the exception may have it.
                assert held() == before, moment
        assert moment > 5


def test_nothing_is_kept_of_what_failed_or_was_dropped(features) -> None:
    large = pgs.Features.from_tensor(np.zeros((1000, 1000)))
    before = held()
    for _ in range(30):
        features[IDS], features[torch.tensor(IDS)], features.read_async(IDS)
        reading = large.read_async(range(1000))
        reading.cancel()
        large.read_async(range(1000))
        for call in (
            lambda: features[[99]],
            lambda: features.read_async([99]).wait(),
            lambda: features.read(IDS, np.empty(3)),
            lambda: features.update(0, [99]),
        ):
            with pytest.raises((IndexError, ValueError)):
                call()
    del reading
    assert held() == before


# ---- many rows, many threads ----


@pytest.fixture(scope="module")
def many() -> np.ndarray[Any, Any]:
    """20 MB of rows of 400 bytes."""
    return np.random.default_rng(0).integers(0, 1 << 30, (50_000, 100), np.int32)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("bits", [32, 64])
def test_large_reads(many, threads: int, bits: int) -> None:
    features = pgs.Features.from_tensor(many)
    ids = np.random.default_rng(bits).integers(0, len(many), 30_000).astype(f"int{bits}")
    before = pgs.set_num_threads(threads)
    try:
        assert (features[ids].numpy() == many[ids]).all()
        assert (features.read_async(ids, threads=threads).wait().numpy() == many[ids]).all()
        out = np.empty((len(ids), 100), np.int32)
        assert (features.read(ids, out) == many[ids]).all()
        # Of one word each, and at an odd address.
        words = pgs.Features.from_tensor(np.ascontiguousarray(many[:, 3]))
        assert (words[ids].numpy() == many[ids, 3]).all()
        odd = np.frombuffer(many.tobytes()[:-99], np.uint8)[1:].reshape(-1, 100)
        assert (pgs.Features.from_tensor(odd)[ids].numpy() == odd[ids]).all()
    finally:
        pgs.set_num_threads(before)


def test_threads_may_read_at_once(many) -> None:
    features = pgs.Features.from_tensor(many)

    def work(place: int) -> bool:
        draw = np.random.default_rng(place)
        good = True
        for count in (3, 500, 20_000):
            ids = draw.integers(0, len(many), count)
            reading = features.read_async(ids)
            good &= bool((features[ids].numpy() == many[ids]).all())
            good &= bool((reading.wait().numpy() == many[ids]).all())
        return good

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(24)))
        reading = features.read_async(range(20_000))
        waits = [pool.submit(reading.wait) for _ in range(8)]
        assert all((wait.result().numpy() == many[:20_000]).all() for wait in waits)
