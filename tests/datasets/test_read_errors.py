"""Files of edges that are wrong, options that are wrong, and what is left after an end midway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import datasets


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file that takes much longer to read than to press Ctrl-C."""
    path = tmp_path / "large.txt"
    block = "".join(f"{i}\t{i * 7919 % 100003}\n" for i in range(100_000))
    with path.open("w") as file:
        for _ in range(60):
            file.write(block)
    return path


def test_options(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("0,1\n")
    for wrong, error, text in (
        ({"format": "xml"}, ValueError, "format: expected one of snap, csv, .* got str 'xml'"),
        ({"src": 1.5}, TypeError, "src: expected the name of a column or its place from 0, got"),
        ({"src": -1}, ValueError, "src: expected an integer from 0"),
        ({"dst": ""}, ValueError, "dst: expected the name of a column"),
        ({"num_nodes": -1}, ValueError, "num_nodes: expected an integer from 0"),
        ({"num_nodes": 1}, ValueError, "e.csv:1: expected ids below 1, as num_nodes says, got 1"),
        ({"num_nodes": 5, "renumber": True}, ValueError, "num_nodes: expected None with renumber"),
        ({"undirected": 1}, TypeError, "undirected: expected True or False, got int 1"),
        ({"renumber": 1}, TypeError, "renumber: expected True or False, got int 1"),
        ({"dtype": "int16"}, ValueError, 'dtype: expected "int32", "int64" or None, got'),
        ({"progress": 1}, TypeError, "progress: expected True, False, None or a function"),
        ({"src": 2}, ValueError, "e.csv: src: expected at least 3 columns, got 2"),
        ({"dst": 0}, ValueError, "e.csv: expected src= in addition to dst=, which is column 0"),
        ({"src": 0, "dst": 0}, ValueError, "e.csv: src, dst: expected two columns, got column 0"),
        ({"dtype": np.int16}, ValueError, 'dtype: expected "int32", "int64" or None, got'),
        ({"dtype": int}, ValueError, 'dtype: expected "int32", "int64" or None, got'),
        ({"dtype": []}, ValueError, 'dtype: expected "int32", "int64" or None, got'),
    ):
        with pytest.raises(error, match=text):
            datasets.read(path, **wrong)
        with pytest.raises(error, match=text):
            datasets.convert(path, tmp_path / "g", **wrong)
    assert os.listdir(tmp_path) == ["e.csv"]
    with pytest.raises(TypeError, match=r"source\[0\]: expected a str or os.PathLike, got int"):
        datasets.read([1])
    with pytest.raises(FileNotFoundError):
        datasets.read(tmp_path / "e")
    (tmp_path / "e").touch()
    with pytest.raises(ValueError, match=r"the name 'e' does not say"):
        datasets.read(tmp_path / "e")
    with pytest.raises(ValueError, match="target: expected another file than the source"):
        datasets.convert(path, str(path))
    with pytest.raises(ValueError, match="target: expected the name of a file, got ''"):
        datasets.convert(path, "")


def test_a_file_that_is_no_graph_is_not_replaced(tmp_path):
    path, other = tmp_path / "e.csv", tmp_path / "victim.csv"
    path.write_text("0,1\n")
    npz = tmp_path / "e.npz"
    np.savez(npz, src=[0], dst=[1])
    for content in (b"5,6\n7,8\n", b"\x93PG", b"PK\x03\x04"):
        other.write_bytes(content)
        for source in (path, npz):
            with pytest.raises(
                ValueError, match=r"^target: expected a new file or a graph file"
            ) as e:
                datasets.convert(source, other)
            assert str(e.value).endswith(f"to replace, got {str(other)!r}, which is neither")
            assert other.read_bytes() == content
    other.write_bytes(b"")
    for _ in ("an empty file", "a graph file"):
        with pgs.Graph.open(datasets.convert(path, other)) as graph:
            assert graph.num_edges == 1
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(ValueError, match="target: expected another file than the source"):
        datasets.convert(path, tmp_path / "link")


def test_graph_files_and_lists_of_edges_are_told_apart(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("0,1\n")
    made = datasets.convert(path, tmp_path / "e.pgs")
    renamed = made.with_suffix(".txt")
    renamed.write_bytes(made.read_bytes())
    for file in (made, renamed):
        with pytest.raises(
            ValueError,
            match=rf"^{file.name}: expected a file of edges, got a graph file, which pgs",
        ):
            datasets.read(file)
    with pytest.raises(ValueError, match=r'begin with "0,1.*; datasets.convert, and .* make one'):
        pgs.Graph.open(path)
    renamed.write_bytes(b"\x93PGS")
    with pytest.raises(ValueError, match=r"cut short$"):
        pgs.Graph.open(renamed)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        datasets.read(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match="expected files of edges in the folder"):
        datasets.read(tmp_path, format="csv")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match=r"pipe.csv: expected a regular file, .* got a pipe"):
        datasets.read(tmp_path / "pipe.csv")
    (tmp_path / "e.csv").write_text("0,1\n")
    with pytest.raises(FileNotFoundError) as caught:
        datasets.convert(tmp_path / "e.csv", tmp_path / "none" / "g")
    assert caught.value.filename == str(tmp_path / "none" / "g")
    assert caught.value.strerror == f"there is no folder {str(tmp_path / 'none')!r}"
    with pytest.raises(FileNotFoundError, match="there is no folder") as caught:
        pgs.Graph.from_csc([0, 0], []).save(tmp_path / "none" / "g")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "g")
    with pytest.raises(FileNotFoundError, match=f"there is no folder '{tmp_path}/far'"):
        datasets.convert(tmp_path / "e.csv", tmp_path / "link")


def test_content_is_named_by_its_line(tmp_path):
    path = tmp_path / "e.csv"
    for content, text in (
        ("src,dst\n0,1\n2,x\n", "e.csv:3: dst: expected an integer >= 0, got 'x'"),
        ("0,1\n-2,0\n", "e.csv:2: src: expected an integer >= 0, got '-2'"),
        ("w,x\n0,1\n0.5,0\n", r"e.csv:3: src \(column 'w'\): expected an integer >= 0, got '0.5'"),
        (
            "at,w,x\n5,0,1\n",
            "e.csv: expected src= and dst=, as no pair of columns has a usual name",
        ),
        ("0,1\n\n3\n", "e.csv:3: expected at least 2 columns, got 1"),
        ("0,9223372036854775808", "e.csv:1: dst: expected an integer below 2.63, got"),
        (
            "0,1\n0,99999999999999\n",
            "e.csv:2: expected ids below .*renumber=True.*got 99999999999999",
        ),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=text):
            datasets.read(path)
        with pytest.raises(ValueError, match=text):
            datasets.convert(path, tmp_path / "g")
        assert os.listdir(tmp_path) == ["e.csv"]


def test_text_with_commas_is_told_from_that_with_blanks(tmp_path):
    path = tmp_path / "e.txt"
    for content in ("0,1\n", "0, 1\n", "src,dst\n0,1\n"):
        path.write_text(content)
        with pytest.raises(ValueError, match=r'got .*; format="csv" reads fields between commas$'):
            datasets.read(path)
        assert datasets.read(path, format="csv").num_edges == 1


def test_vertices_that_are_gaps_are_told_of_once(tmp_path, caplog):
    path, npz = tmp_path / "e.csv", tmp_path / "e.npz"
    path.write_text("0,1000000\n")
    np.savez(npz, src=[0], dst=[1_000_000])
    for source in (path, npz):
        for make in (datasets.read, lambda file: datasets.convert(file, tmp_path / "g.pgs")):
            caplog.clear()
            make(source)
            (record,) = caplog.records
            assert (record.name, record.levelname) == ("pygsampler", "WARNING")
            assert record.getMessage() == (
                f"{source.name}: 1,000,001 nodes for 1 edge; "
                "renumber=True numbers those that have edges"
            )
    caplog.clear()
    for options in ({"renumber": True}, {"renumber": False}, {"num_nodes": 2_000_000}):
        datasets.read(path, **options)
        datasets.read(npz, **options)
    path.write_text("0,1000000\n" * 50_001)
    datasets.read(path)
    path.write_text("0,999999\n")
    datasets.read(path)
    datasets.read(path, format="csv", undirected=True)
    assert not caplog.records


def test_names_need_not_be_text(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    Path(path).write_text("0,x\n")
    with pytest.raises(ValueError, match=r"\ufffd.csv:1: dst: expected an integer"):
        datasets.read(path)
    Path(path).write_text("0,1\n")
    target = os.fsdecode(os.fsencode(tmp_path) + b"/\xfe")
    with pgs.Graph.open(datasets.convert(path, target)) as graph:
        assert graph.num_edges == 1


def test_an_error_leaves_the_file_that_was_there(tmp_path):
    good, bad, target = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "g"
    good.write_text("0,1\n")
    bad.write_text("0,1\n1,?\n")
    datasets.convert(good, target)
    before = target.read_bytes()
    with pytest.raises(ValueError, match=r"b.csv:2"):
        datasets.convert(bad, target)
    assert target.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["a.csv", "b.csv", "g"]


def test_progress_and_an_end_by_it(tmp_path, large):
    seen: list[tuple[int, int]] = []

    def follow(done: int, total: int) -> None:
        seen.append((done, total))

    graph = datasets.read(large, progress=follow)
    assert graph.num_edges == 6_000_000
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] >= large.stat().st_size
    assert all(done <= total for done, total in seen)

    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise Enough

    live = pgs.engine.memory_stats()["live"]
    with pytest.raises(Enough):
        datasets.convert(large, tmp_path / "g", progress=stop)
    with pytest.raises(Enough):
        datasets.read(large, progress=stop)
    assert os.listdir(tmp_path) == ["large.txt"]
    assert pgs.engine.memory_stats()["live"] == live


def test_other_threads_run_meanwhile(large):
    turns = 0
    ended = threading.Event()

    def count() -> None:
        nonlocal turns
        while not ended.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        datasets.read(large).close()
    finally:
        ended.set()
        thread.join()
    assert turns > 10


def test_ctrl_c_leaves_no_file(tmp_path, large):
    script = """
import sys
from pygsampler import datasets
first = True
def started(done, total):
    global first
    if first:
        first = False
        print("started", flush=True)
try:
    datasets.convert(sys.argv[1], sys.argv[2], progress=started)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    command = [sys.executable, "-c", script, str(large), str(tmp_path / "g")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
    assert process.returncode == 0
    assert os.listdir(tmp_path) == ["large.txt"]


def test_ctrl_c_at_any_moment_of_a_read_keeps_no_memory(run_python, tmp_path):
    (tmp_path / "e.csv").write_text("".join(f"{i},{i * 7 % 100}\n" for i in range(100)))
    run_python(
        """
        import random, signal, warnings
        import pygsampler as pgs
        import pygsampler.datasets
        # Of Python's own: Ctrl-C between open() and the first line of its block.
        warnings.simplefilter("ignore", ResourceWarning)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        draw, hits = random.Random(5), 0
        want = pgs.datasets.read("e.csv").indices.tolist()
        before = pgs.engine.memory_stats()["live"]
        for _ in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 5e-3))
                got = pgs.datasets.read("e.csv").indices.tolist()
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert got == want
            except KeyboardInterrupt:
                hits += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert hits > 20, hits
        assert pgs.engine.memory_stats()["live"] == before, (pgs.engine.memory_stats(), before)
        """
    )


def test_reading_needs_neither_numpy_nor_torch(run_python, tmp_path):
    (tmp_path / "e.csv").write_text("0,1\n")
    said = run_python(
        """
        import sys
        from pygsampler import datasets
        print(datasets.read("e.csv").num_edges, {"numpy", "torch"} & set(sys.modules))
        """
    )
    assert said.strip() == "1 set()"
