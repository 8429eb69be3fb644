"""Graph files when something goes wrong: damage, Ctrl-C, a kill, a disk without room."""

from __future__ import annotations

import errno
import gc
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from graphs import circulant

import pygsampler as pgs
from pygsampler._engine import library


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.pgs"


def test_a_damaged_graph_never_ends_the_process(path, run_python):
    circulant(2000, 8).save(path)
    run_python(
        f"""
        import random
        import pygsampler as pgs
        from pygsampler._sampling.extensions import MODES
        research = [{{"mode": mode}} for mode in MODES if mode == "queue"]
        path = {str(path)!r}
        with open(path, "rb") as file:
            good = file.read()
        first = 64 + 2 * 160
        # The ends of indptr are looked at; the rest is not.
        indptr = range(first + 8, first + 8 * 2000)
        everything = [*indptr, *range(len(good) - 8 * 16_000, len(good))]
        draw = random.Random(7)
        errors = 0
        for i in range(30):
            bad = bytearray(good)
            for at in draw.choices(indptr if i % 2 else everything, k=draw.choice((1, 30, 900))):
                bad[at] ^= 0xff
            with open(path, "wb") as file:
                file.write(bad)
            graph = pgs.Graph.open(path)
            for options in ({{}}, {{"replace": True}}, *research, {{"map_bytes": 1}}):
                for fanouts in ([3, 3], [-1, -1]):
                    try:
                        pgs.PGSampler(fanouts, seed=i, **options).sample(graph, range(2000))
                    except (pgs.Error, MemoryError, OverflowError):
                        errors += 1
            graph.close()
        assert errors > 50, errors
        """
    )


def test_a_file_that_becomes_shorter_is_an_error(path, run_python):
    circulant(30_000, 8).save(path)
    run_python(
        f"""
        import os
        import pygsampler as pgs
        path = {str(path)!r}
        graph = pgs.Graph.open(path)
        os.truncate(path, 4096)
        for seeds in (range(50), range(20_000)):
            try:
                pgs.PGSampler([3, 3], seed=0).sample(graph, seeds)
            except pgs.Error as error:
                assert "changed" in str(error), error
            else:
                raise AssertionError("sampled from nothing")
        """
    )


def test_an_interrupted_save_leaves_the_old_file(path):
    circulant(5, 1).save(path)
    before = path.read_bytes()
    arrays = {"x": np.zeros(5_000_000)}
    for stop in (1, 2, 3, 4):
        calls = iter(range(stop - 1))

        def interrupt(done, total, calls=calls):
            if next(calls, None) is None:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            circulant(5, 2).save(path, arrays=arrays, progress=interrupt)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]


def test_ctrl_c_twice_leaves_no_file(path, monkeypatch):
    """The second comes while the first is being heeded, before the engine hears of it."""
    alive, presses = library.alive, [KeyboardInterrupt]

    def interrupted(generation):
        if presses:
            raise presses.pop()
        return alive(generation)

    monkeypatch.setattr(library, "alive", interrupted)

    def interrupt(done, total):
        assert os.listdir(path.parent)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised:
        circulant(5, 1).save(path, progress=interrupt)
    assert presses == []
    # The frames that it went through have the writer until then.
    del raised
    gc.collect()
    assert os.listdir(path.parent) == []


def test_ctrl_c_at_any_moment_leaves_a_whole_file(path, run_python):
    run_python(
        f"""
        import os, random, signal
        import pygsampler as pgs
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        folder = {str(path.parent)!r}
        path = folder + "/graph"
        graphs = [pgs.Graph.from_csc(range(n + 1), range(n)) for n in (200_000, 100_000)]
        graphs[0].save(path)
        draw, hits = random.Random(11), 0
        for i in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 4e-3))
                graphs[i % 2].save(path)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                hits += 1
            assert os.listdir(folder) == ["graph"], os.listdir(folder)
            assert pgs.Graph.open(path, verify=True).num_nodes in (200_000, 100_000)
        assert hits, "never interrupted"
        """
    )


def test_a_killed_save_leaves_the_old_file(path):
    circulant(5, 1).save(path)
    before = path.read_bytes()
    script = (
        "import sys, os, signal, numpy, pygsampler as pgs\n"
        "def die(done, total): os.kill(os.getpid(), signal.SIGKILL)\n"
        "graph = pgs.Graph.from_csc([0, 1], [0])\n"
        "graph.save(sys.argv[1], arrays={'x': numpy.zeros(10**6)}, progress=die)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], timeout=240)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == before
    assert pgs.Graph.open(path, verify=True).num_edges == 5


FULL = """
import errno, os, sys
import pygsampler as pgs
path = sys.argv[1] + "/graph"
small = pgs.Graph.from_csc([0, 1], [0])
large = pgs.Graph.from_csc(range(100_001), range(100_000))
small.save(path)
for graph in (large, small, large):
    try:
        graph.save(path)
    except OSError as error:
        assert graph is large and error.errno == errno.{number}, error
        assert error.filename == path and "expected room for a file of 16" in str(error), error
    else:
        assert graph is small
    assert os.listdir(sys.argv[1]) == ["graph"], os.listdir(sys.argv[1])
    assert pgs.Graph.open(path, verify=True).num_nodes == 1
print("held")
"""


def test_a_full_disk_leaves_the_old_file(tmp_path):
    script = FULL.format(number=errno.errorcode[errno.ENOSPC])
    mount = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -W error -c "$3" "$1"'
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    able = subprocess.run(
        [*inside[:-3], "-c", 'mount -t tmpfs none "$1"', "sh", str(tmp_path)], capture_output=True
    )
    if able.returncode:
        pytest.skip("needs a system that lets users mount a tmpfs in a namespace")
    done = subprocess.run(
        [*inside, str(tmp_path), sys.executable, script],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stdout) == (0, "held\n"), done.stdout + done.stderr


def test_a_file_that_may_not_grow_leaves_the_old_one(tmp_path):
    script = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
    ) + FULL.format(number=errno.errorcode[errno.EFBIG])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stdout) == (0, "held\n"), done.stdout + done.stderr
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
