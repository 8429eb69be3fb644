from __future__ import annotations

import os
import pickle
from array import array
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from forks import in_child
from graphs import as_lists, cases, circulant
from hypothesis import given, settings
from hypothesis import strategies as st

import pygsampler as pgs
from pygsampler._arrays.dtypes import KINDS
from pygsampler._engine import progress


def same(one: pgs.Graph, other: pgs.Graph) -> None:
    """Two graphs with equal arrays, and so equal samples."""
    assert repr(one) == repr(other)
    for part in ("indptr", "indices", "edge_ids"):
        first, second = getattr(one, part), getattr(other, part)
        assert (first is None) == (second is None)
        if first is not None:
            assert (first.dtype, first.tolist()) == (second.dtype, second.tolist())
    sampler, seeds = pgs.PGSampler([2, 3], seed=1), range(one.num_nodes)
    expected = as_lists(sampler.sample(one, seeds, batch=0))
    assert as_lists(sampler.sample(other, seeds, batch=0)) == expected


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "graph.pgs"


@settings(max_examples=25)
@given(case=cases(), bits=st.sampled_from([32, 64]), wide=st.sampled_from([32, 64]))
def test_a_graph_comes_back_as_it_was(tmp_path_factory, case, bits, wide):
    path = tmp_path_factory.mktemp("files") / "graph"
    graph = case.graph(bits, wide)
    graph.save(path)
    for verify in (False, True):
        with pgs.Graph.open(path, verify=verify) as opened:
            same(graph, opened)
            assert opened.path == path
            assert opened.file_arrays == {}
            assert opened.indptr.readonly
            assert opened.indices.readonly
    assert os.listdir(path.parent) == ["graph"]


def sources() -> dict[str, tuple[object, str, object]]:
    """Arrays of every kind, what their dtype is and what they hold."""
    found: dict[str, tuple[object, str, object]] = {}
    for dtype in KINDS:
        values = [[0, 1, 0], [1, 1, 0]]
        if dtype != "bfloat16":
            found[f"numpy {dtype}"] = (np.array(values, dtype), dtype, values)
        # Older versions of torch have uint8 alone.
        if hasattr(torch, dtype):
            tensor = torch.tensor(values, dtype=getattr(torch, dtype))
            found[f"torch {dtype}"] = (tensor, dtype, values)
    line = [3, 1, 2]
    found |= {
        "cube": (np.arange(24.0).reshape(2, 3, 4).transpose(), "float64", None),
        "big-endian": (np.array(line, ">i4"), "int32", line),
        "every second": (torch.arange(6)[::2], "int64", [0, 2, 4]),
        "with a gradient": (torch.ones(2, requires_grad=True), "float32", [1.0, 1.0]),
        "none of two": (np.zeros((0, 2), "float32"), "float32", []),
        "a number": (7, "int64", 7),
        "0-d": (np.float16(0.5), "float16", 0.5),
        "array": (array("d", line), "float64", line),
        "bytes": (b"\x03\x01\x02", "uint8", line),
        "memoryview": (memoryview(bytes(range(6))).cast("B", (2, 3))[::-1], "uint8", None),
        "list": ([0.5, 1.5], "float64", [0.5, 1.5]),
        "range": (range(3), "int64", [0, 1, 2]),
        "arrow int": (pa.array(line, "int32"), "int32", line),
        "arrow float": (pa.array(line, "float32"), "float32", line),
        "arrow chunks": (pa.chunked_array([[3], [1, 2]]), "int64", line),
        "arrow bool": (pa.array([True, False]), "bool", [True, False]),
        "ours": (circulant(2, 1).indices, "int64", [1, 0]),
    }
    return found


def test_arrays_of_any_kind_stand_beside_a_graph(path):
    given = sources()
    circulant(5, 2).save(path, arrays={name: value for name, (value, _, _) in given.items()})
    opened = pgs.Graph.open(path, verify=True)
    assert set(opened.file_arrays) == set(given)
    for name, (value, dtype, values) in given.items():
        found = opened.file_arrays[name]
        assert isinstance(found, pgs.Array)
        assert found.dtype == dtype
        assert found.readonly
        if values is None:
            values = np.asarray(value).tolist()
        assert found.tolist() == values, name
        assert found.shape == np.shape(values) or found.shape == (0, 2)
        if hasattr(torch, dtype):
            tensor = found.torch()
            assert (str(tensor.dtype), tensor.tolist()) == (f"torch.{dtype}", values)
        if dtype == "bfloat16":
            with pytest.raises(TypeError, match="bfloat16"):
                found.numpy()
            continue
        shown = found.numpy()
        assert (shown.dtype.name, shown.tolist()) == (dtype, values)
        assert not shown.flags.writeable
        # NumPy 1 has no word for read-only tensors.
        if np.__version__ >= "2":
            assert np.from_dlpack(found).tolist() == values


def test_an_array_is_indexed_as_a_sequence(path):
    circulant(5, 2).save(path, arrays={"x": np.arange(12.0).reshape(4, 3), "y": [5, 6, 7]})
    x, y = pgs.Graph.open(path).file_arrays.values()
    assert len(x) == 4
    assert x[-1].tolist() == [9.0, 10.0, 11.0]
    assert x[1:3].tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    assert x[1][2] == 5.0
    assert [row.tolist() for row in x] == x.tolist()
    assert list(y) == [5, 6, 7]
    assert y[1] == 6
    assert pa.array(y).to_pylist() == [5, 6, 7]
    # One dimension of integers is taken for ids; what is not is refused.
    assert pgs.PGSampler([1], seed=0).sample(circulant(9, 2), y).output_nodes.tolist() == [5, 6, 7]
    with pytest.raises(TypeError, match=r"expected a one-dimensional array of int32 or int64"):
        pgs.PGSampler([1], seed=0).sample(circulant(9, 2), x)
    for bad, error in ((4, IndexError), ("a", TypeError), (slice(None, None, 2), ValueError)):
        with pytest.raises(error):
            x[bad]
    with pytest.raises(TypeError, match="Arrow"):
        pa.array(x)
    for array_ in (x, x[1:], y):
        again = pickle.loads(pickle.dumps(array_))
        assert again.tolist() == array_.tolist()
    assert len(pickle.dumps(x)) < 400


def test_what_torch_writes_stays_in_the_process(path):
    circulant(5, 2).save(path, arrays={"x": np.zeros(3000)})
    before = path.read_bytes()
    opened = pgs.Graph.open(path)
    tensor = opened.file_arrays["x"].torch()
    tensor += 1
    assert opened.file_arrays["x"].torch().sum() == 3000
    assert opened.file_arrays["x"].numpy().sum() == 0
    del tensor, opened
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arrays", "error", "text"),
    [
        ({"indptr": [1]}, ValueError, "names other than indptr"),
        ({1: [1]}, TypeError, "names of type str"),
        ({"": [1]}, ValueError, "name of 1 to 63 bytes"),
        ({"x" * 64: [1]}, ValueError, "name of 1 to 63 bytes"),
        ({"x": None}, TypeError, r"arrays\['x'\]: expected an array"),
        ({"x": ["a"]}, TypeError, r"arrays\['x'\]: expected an array"),
        ({"x": [[1], [1, 2]]}, TypeError, r"arrays\['x'\]"),
        ({"x": np.zeros(2, "complex64")}, TypeError, "complex64"),
        ({"x": np.array([object()])}, TypeError, "object"),
        ({"x": np.ma.array([1, 2], mask=[0, 1])}, TypeError, "masked"),
        ({"x": torch.eye(2).to_sparse()}, TypeError, "sparse"),
        ({"x": torch.ones(2, device="meta")}, (TypeError, NotImplementedError), "meta"),
        ({"x": pa.array([1, None])}, ValueError, "no nulls"),
        ({"x": np.zeros((1,) * 9)}, ValueError, "at most 8 dimensions"),
        ({"node_ids": [1, 2]}, ValueError, "expected 5 elements for 5 nodes"),
        ([1, 2], TypeError, "expected a mapping"),
    ],
)
def test_arrays_that_cannot_be_written_are_named(path, arrays, error, text):
    circulant(5, 1).save(path)
    before = path.read_bytes()
    with pytest.raises(error, match=text):
        circulant(5, 2).save(path, arrays=arrays)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_damaged_cut_foreign_and_newer_files_are_named(path):
    circulant(50, 3).save(path, arrays={"x": np.arange(100)})
    good = path.read_bytes()

    def refused(data: bytes, text: str, **options: bool) -> None:
        path.write_bytes(data)
        with pytest.raises(ValueError, match=text) as caught:
            pgs.Graph.open(path, **options)
        assert str(caught.value).startswith(str(path))

    refused(good[:-1], "cut short")
    refused(good[:70], "cut short")
    refused(good + b"x", "more was appended")
    refused(good[:40] + b"\xff" + good[41:], "damaged")
    refused(good[:8] + b"\x03" + good[9:], "newer pygsampler")
    refused(b"", "expected a graph file")
    refused(pickle.dumps(good), "expected a graph file")
    refused(good[:-1] + b"\xff", "section 'x': expected the checksum", verify=True)
    pgs.Graph.open(path)
    path.write_bytes(good)
    pgs.Graph.open(path, verify=True)


@pytest.mark.parametrize(
    ("name", "error"),
    [("none/there", FileNotFoundError), ("", FileNotFoundError), (".", ValueError)],
)
def test_paths_that_hold_no_file(tmp_path, name, error):
    where = tmp_path / name if name else ""
    with pytest.raises(error):
        pgs.Graph.open(where)
    with pytest.raises(error):
        circulant(3, 1).save(where)


def test_arguments_of_a_wrong_type(path):
    graph = circulant(3, 1)
    for bad in (3, None, ["a"]):
        with pytest.raises(TypeError, match="path: expected a str"):
            graph.save(bad)
        with pytest.raises(TypeError, match="path: expected a str"):
            pgs.Graph.open(bad)
    with pytest.raises(TypeError, match="progress: expected True, False, None or a function"):
        graph.save(path, progress="yes")
    graph.save(str(path))
    with pytest.raises(TypeError, match="verify: expected True or False"):
        pgs.Graph.open(path, verify=1)
    odd = path.parent / os.fsdecode(b"odd \xff name")
    graph.save(os.fsencode(odd))
    same(graph, pgs.Graph.open(odd))
    for use in (pgs.Graph.open, graph.save):
        with pytest.raises(ValueError, match="path: expected no null character"):
            use("a\0b")


def test_a_file_may_be_replaced_while_it_is_open(path):
    circulant(50, 3).save(path, arrays={"x": [1, 2]})
    opened = pgs.Graph.open(path)
    opened.save(path)
    assert pgs.Graph.open(path).file_arrays["x"].tolist() == [1, 2]
    # Nothing else changed, so it is the same file.
    same(pickle.loads(pickle.dumps(opened)), opened)
    opened.save(path, arrays={})
    assert pgs.Graph.open(path).file_arrays == {}
    same(opened, circulant(50, 3))
    assert opened.file_arrays["x"].tolist() == [1, 2]
    sent = pickle.dumps(opened)
    with pytest.raises(ValueError, match="got another one of that name"):
        pickle.loads(sent)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(sent)


def test_a_closed_graph_keeps_what_was_taken_from_it(path):
    circulant(50, 3).save(path, arrays={"x": [1, 2]})
    opened = pgs.Graph.open(path)
    x, indices = opened.file_arrays["x"], opened.indices
    opened.close()
    opened.close()
    for use in (
        lambda: opened.file_arrays,
        lambda: opened.path,
        lambda: opened.save(path),
        lambda: pickle.dumps(opened),
        lambda: pgs.PGSampler([1], seed=0).sample(opened, [0]),
    ):
        with pytest.raises(pgs.errors.ClosedError):
            use()
    assert x.tolist() == [1, 2]
    assert indices[0] == 1


def test_other_processes_open_the_same_file(path, run_python):
    graph = circulant(50, 3)
    graph.save(path, arrays={"x": np.zeros((1000, 50))})
    opened = pgs.Graph.open(path)
    sent = pickle.dumps(opened)
    assert len(sent) < 400
    sampler = pgs.PGSampler([2, 2], seed=3)
    expected = as_lists(sampler.sample(graph, range(50), batch=0))
    assert in_child(lambda: as_lists(sampler.sample(opened, range(50), batch=0))) == expected
    assert in_child(lambda: opened.file_arrays["x"].shape) == (1000, 50)
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    # Shared with all who have the file open, and closed to writing.
    assert "r--s" in {line[1] for line in maps if line[-1] == str(path)}
    script = f"""
        import pickle
        import pygsampler as pgs
        graph = pickle.loads({sent!r})
        print(pgs.PGSampler([2, 2], seed=3).sample(graph, range(50), batch=0).input_nodes.tolist())
        print(graph.file_arrays["x"].shape, graph.path)
    """
    nodes = sampler.sample(graph, range(50), batch=0).input_nodes.tolist()
    assert run_python(script) == f"{nodes}\n(1000, 50) {path}\n"


def test_progress_is_told(path, monkeypatch, capsys):
    calls = []
    graph = circulant(1000, 3)
    graph.save(path, progress=lambda done, total: calls.append((done, total)))
    size = 8 * 1001 + 8 * 3000
    assert calls == [(8 * 1001, size), (size, size)]
    calls.clear()
    pgs.Graph.open(path, verify=True, progress=lambda *state: calls.append(state))
    assert calls[-1][0] == size
    graph.save(path, progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(progress, "_BAR_SECONDS", 0.0)
    graph.save(path, progress=True)
    assert "save" in capsys.readouterr().err
