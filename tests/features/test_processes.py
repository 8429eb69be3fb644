"""Features of files and in other processes: pickled, forked, in workers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from feature_bytes import IDS, ROWS, busy, saved
from forks import in_child

import pygsampler as pgs

# From Python 3.12 on every fork of a process with threads warns; torch and Arrow have some.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


# ---- files ----


def test_a_file_is_mapped(path) -> None:
    x = saved(path)
    features = pgs.Features.open(path, "x")
    assert (features.shape, features.dtype, features.device) == (x.shape, "float64", "cpu")
    assert (features[IDS].numpy() == x[IDS]).all()
    assert pgs.Features.open(str(path), "e")[[8]].tolist() == [8]
    assert pgs.Features.open(path, "more")[[4]].tolist() == [[16, 17, 18, 19]]
    assert pgs.Features.open(path, "both")[[0]].tolist() == [1]
    # What is written to the file is read, so it was not copied.
    at = path.read_bytes().index(x[5].tobytes())
    with path.open("r+b") as file:
        file.seek(at)
        file.write(np.full(30_000, 2.5).tobytes())
    found = features[[5, 4]].numpy()
    assert (found[0] == 2.5).all() and (found[1] == x[4]).all()


def test_names_and_files_that_are_not_there(path, tmp_path) -> None:
    saved(path)
    text = r"name: expected one of \['both', 'e', 'more', 'x'\] in .*graph.pgs, got 'y'"
    with pytest.raises(KeyError, match=text):
        pgs.Features.open(path, "y")
    with pytest.raises(FileNotFoundError):
        pgs.Features.open(tmp_path / "none", "x")
    (tmp_path / "other").write_bytes(bytes(5000))
    with pytest.raises(ValueError, match="other"):
        pgs.Features.open(tmp_path / "other", "x")


# ---- other processes ----


def test_pickles(points, path) -> None:
    x = saved(path)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for source in (points, torch.from_numpy(points), torch.ones(2, 3, dtype=torch.bfloat16)):
            features = pgs.Features.from_tensor(source)
            again = pickle.loads(pickle.dumps(features, protocol))
            assert repr(again) == repr(features)
            ids = range(len(features))
            assert again[ids].tolist() == features[ids].tolist()
            again.update(-1, [0])
            assert again[[0]].tolist() == [[-1, -1, -1]] != features[[0]].tolist()
        # By its path.
        data = pickle.dumps(pgs.Features.open(path, "x"), protocol)
        assert len(data) < 1000
        assert (pickle.loads(data)[IDS].numpy() == x[IDS]).all()
    assert copy.deepcopy(pgs.Features.from_tensor(points))[IDS].tolist() == points[IDS].tolist()
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(data)


def read_there(features: pgs.Features, results: Any) -> None:
    source = features._array._source  # type: ignore[union-attr]
    features.update(-5, [0])
    results.put((source.is_shared(), features.dtype, features[[0, 3]].tolist()))


def test_torch_tensors_travel_through_shared_memory() -> None:
    features = pgs.Features.from_tensor(torch.arange(5000.0).reshape(1000, 5))
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    worker = context.Process(target=read_there, args=(features, results))
    worker.start()
    found = results.get()
    worker.join()
    assert found == (True, "float32", [[-5] * 5, [15, 16, 17, 18, 19]])
    assert features[[3]].tolist() == [[15, 16, 17, 18, 19]]


def test_a_forked_child_reads_what_its_parent_has(points, features, path) -> None:
    x = saved(path)
    opened, tensor = pgs.Features.open(path, "x"), pgs.Features.from_tensor(torch.ones(ROWS, 2))
    inner = pgs.Features.from_tensor(features[range(ROWS)])
    features[IDS]

    def work() -> Any:
        found = [each[IDS].tolist() for each in (features, inner, tensor)]
        found.append(features.read_async(IDS).wait().tolist())
        features.update(-1, [0])
        return found, (opened[torch.tensor(IDS)].numpy() == x[IDS]).all(), features[[0]].tolist()

    rows = points[IDS].tolist()
    found, good, changed = in_child(work)
    assert found == [rows, rows, [[1, 1]] * 5, rows]
    assert good and changed == [[-1, -1, -1]]
    assert in_child(lambda: in_child(lambda: features[IDS].tolist())) == rows
    assert features[[0]].tolist() == [[0, 1, 2]]


def test_a_reading_belongs_to_the_process_that_began_it(points, features) -> None:
    with busy():
        reading = features.read_async(IDS)

        def work() -> Any:
            texts = [repr(reading)]
            for call in (reading.wait, reading.done):
                with pytest.raises(pgs.Error, match="got one submitted before a fork"):
                    call()
            reading.cancel()
            return texts, features[IDS].tolist()

        assert in_child(work) == (["Reading(5 rows, lost in a fork)"], points[IDS].tolist())
    assert reading.wait().tolist() == points[IDS].tolist()


def test_in_workers_of_torchs_loader(points, features) -> None:
    loader: Any = torch.utils.data.DataLoader(
        range(ROWS),  # type: ignore[arg-type]
        batch_size=4,
        collate_fn=features.read,
        num_workers=2,
        multiprocessing_context="fork",
    )
    assert [rows.tolist() for rows in loader] == [points[i : i + 4].tolist() for i in (0, 4, 8)]
