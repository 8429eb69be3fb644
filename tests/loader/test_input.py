"""What DataLoader refuses, and how it says so."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler.torch import DataLoader


@pytest.fixture
def graph() -> pgs.Graph:
    return pgs.Graph.from_csc(torch.tensor([0, 1, 2, 3]), torch.tensor([1, 2, 0]))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"batch_size": 0}, ValueError, "batch_size: expected an integer >= 1, got 0"),
        ({"batch_size": -4}, ValueError, "batch_size: expected an integer >= 1, got -4"),
        ({"batch_size": True}, TypeError, "batch_size: expected an integer"),
        ({"batch_size": 2.0}, TypeError, "batch_size: expected an integer"),
        ({"batch_size": "2"}, TypeError, "batch_size: expected an integer"),
        ({"batch_size": None}, TypeError, "batch_size: expected an integer"),
        ({"prefetch": -1}, ValueError, "prefetch: expected an integer >= 0, got -1"),
        ({"prefetch": 1.5}, TypeError, "prefetch: expected an integer"),
        ({"shuffle": 1}, TypeError, "shuffle: expected True or False"),
        ({"drop_last": "no"}, TypeError, "drop_last: expected True or False"),
        ({"progress": 3}, TypeError, "progress: expected True or False"),
        ({"seed": 1 << 64}, ValueError, "seed: expected an integer"),
        ({"seed": 0.5}, TypeError, "seed: expected an integer"),
        ({"world_size": 0}, ValueError, "world_size: expected an integer >= 1, got 0"),
        ({"rank": 1}, ValueError, "rank: expected an integer from 0 to 0, got 1"),
        ({"rank": -1, "world_size": 2}, ValueError, "rank: expected an integer"),
        ({"rank": 0, "world_size": 4}, ValueError, "got 4 ranks for 3 seeds"),
    ],
)
def test_options(
    graph: pgs.Graph, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        DataLoader(graph, [0, 1, 2], [2], **{"batch_size": 2, **options})


@pytest.mark.parametrize(
    ("seeds", "error", "text"),
    [
        (torch.tensor([True, False, True]), TypeError, r"boolean mask; mask.nonzero\(\)"),
        (np.array([True, False, True]), TypeError, r"boolean mask; mask.nonzero\(\)"),
        ([0.0, 1.0], TypeError, "seeds: expected int32 or int64"),
        ([float("nan")], TypeError, "seeds: expected int32 or int64"),
        (torch.tensor([1], dtype=torch.int16), TypeError, "got torch.int16"),
        (torch.tensor([[0, 1]]), ValueError, r"1-D array, got shape \(1, 2\)"),
        (torch.tensor(1), ValueError, r"1-D array, got shape \(\)"),
        ([0, 1, -1], IndexError, r"seeds\[2\]: expected a node in \[0, 3\), got -1"),
        ([0, 3], IndexError, r"seeds\[1\]: expected a node in \[0, 3\), got 3"),
        (["a"], TypeError, "seeds: expected a 1-D array"),
        (None, TypeError, "seeds: expected a 1-D array"),
        ({"a": 1}, TypeError, "seeds: expected a 1-D array"),
        (torch.zeros(2, dtype=torch.int64, device="meta"), ValueError, "on the CPU, got meta"),
    ],
)
def test_seeds(graph: pgs.Graph, seeds: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        DataLoader(graph, seeds, [2], batch_size=2)


def test_ranks_that_shuffle_need_a_seed(graph: pgs.Graph) -> None:
    """Each process draws its own otherwise, and their parts are not those of one order."""
    options: dict[str, Any] = {"batch_size": 1, "shuffle": True, "rank": 1, "world_size": 3}
    text = "seed: expected an integer, the same on all 3 ranks, .* got None"
    for sampler in ([2], pgs.PGSampler([2])):
        with pytest.raises(ValueError, match=text):
            DataLoader(graph, [0, 1, 2], sampler, **options)
    drawn = pgs.PGSampler([2])
    for sampler in (pgs.PGSampler([2], seed=0), pickle.loads(pickle.dumps(drawn))):
        assert len(DataLoader(graph, [0, 1, 2], sampler, **options)) == 1
    assert len(DataLoader(graph, [0, 1, 2], drawn, seed=4, **options)) == 1
    assert len(DataLoader(graph, [0, 1, 2], drawn, **options | {"shuffle": False})) == 1


def test_weights(graph: pgs.Graph) -> None:
    wrong = graph.with_data({"w": [1.0, -2.0, 3.0]})
    with pytest.raises(ValueError, match=r"edata\['w'\]\[1\]: expected .* >= 0, got -2"):
        DataLoader(wrong, [0, 1, 2], pgs.PGSampler([2], prob="w"), batch_size=2)
    for kind in ("prob", "mask"):
        sampler = pgs.PGSampler([2], **{kind: "w"})  # type: ignore[arg-type]
        text = rf"^{kind}: expected the name of an edge array .*\(none\), got 'w'"
        with pytest.raises(ValueError, match=text):
            DataLoader(graph, [0, 1, 2], sampler, batch_size=2)


def test_samplers_of_other_libraries(graph: pgs.Graph) -> None:
    class PGSampler:
        """As an adapter's is called."""

    text = "sampler: expected a pygsampler.PGSampler or a list of int, got a "
    for wrong in (PGSampler(), torch.tensor([5, 5])):
        with pytest.raises(TypeError, match=text + ".*; the arguments are graph, seeds, fanouts"):
            DataLoader(graph, [0], wrong, batch_size=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("fanouts", [[], [-2], [1.5], "ab", None, [True], 5])
def test_fanouts(graph: pgs.Graph, fanouts: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="fanouts"):
        DataLoader(graph, [0], fanouts, batch_size=2)


def test_graph() -> None:
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler.Graph, .*Graph.from_csc"):
        DataLoader(object(), [0], [2], batch_size=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("epoch", [-1, 1 << 24, 1.0, True])
def test_epoch(graph: pgs.Graph, epoch: Any) -> None:
    loader = DataLoader(graph, [0, 1], [2], batch_size=2)
    with pytest.raises((TypeError, ValueError), match="epoch: expected an integer"):
        loader.set_epoch(epoch)
    assert loader.epoch == 0
    assert len(list(loader)) == 1


def test_the_last_epoch_is_followed_by_the_first(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, [0, 1], [2], batch_size=2)
    loader.set_epoch((1 << 24) - 1)
    list(loader)
    assert loader.epoch == 0


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), None])
def test_device_of_the_graph(graph: pgs.Graph, device: Any) -> None:
    loader = DataLoader(graph, [0, 1], [2], batch_size=2, device=device)
    assert loader.graph is graph
    assert loader.device == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch finds a GPU, which is no error")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", torch.device("cuda")])
def test_device_that_is_not_there(graph: pgs.Graph, device: Any) -> None:
    with pytest.raises(
        pgs.errors.CudaError, match="device: expected the CUDA device cuda:0, found no"
    ):
        DataLoader(graph, [0, 1], [2], batch_size=2, device=device)


@pytest.mark.parametrize("device", ["gpu", "meta", 1.5, ""])
def test_device_that_makes_no_sense(graph: pgs.Graph, device: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="device: expected"):
        DataLoader(graph, [0, 1], [2], batch_size=2, device=device)
