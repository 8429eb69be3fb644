"""Who samples which graph for which seeds, told without a GPU.

DGL from PyPI is built for the CPU: what a GPU does with it is in tests/cuda/test_dgl_modes.py.
"""

from __future__ import annotations

import threading
from typing import Any

import dgl
import pytest
import torch
from dgl.dataloading.dataloader import CollateWrapper

import pygsampler as pgs
from pygsampler._sampling import dispatch
from pygsampler.dgl import PGSampler, hetero
from pygsampler.dgl import block as dgl_block
from pygsampler.dgl import graph as dgl_graph
from pygsampler.dgl import sampler as adapter
from pygsampler.dgl.graph import EdgePlaces, edge_places, graph_of
from tests.dgl.graphs import DTYPES, check_blocks, content, random_graph

CPU = torch.device("cpu")
GPU = torch.device("cuda", 0)
OTHER = torch.device("cuda", 1)


class Elsewhere:
    """A graph of ours that is on a GPU, as far as anyone asks it."""

    edge_ids = None

    def __init__(self, device: str) -> None:
        self.device = device


@pytest.fixture
def pins(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The GPUs that a graph was pinned for."""
    asked: list[str] = []

    def pin(self: pgs.Graph, device: str = "cuda") -> Any:
        asked.append(device)
        return Elsewhere(device)

    monkeypatch.setattr(pgs.Graph, "pin", pin, raising=False)
    return asked


def test_a_pinned_graph_is_sampled_where_the_seeds_are(
    monkeypatch: pytest.MonkeyPatch, pins: list[str]
) -> None:
    g = random_graph()
    monkeypatch.setattr(dgl.DGLGraph, "is_pinned", lambda self: True)
    own = graph_of(g, CPU)
    pinned = graph_of(g, GPU)
    assert (own.device, pinned.device) == ("cpu", "cuda:0")
    assert graph_of(g, CPU) is own
    assert graph_of(g, GPU) is pinned
    assert graph_of(g, OTHER).device == "cuda:1"
    assert pins == ["cuda:0", "cuda:1"]
    assert edge_places(g, pinned) is None, "the host's ids are known"


def test_a_graph_in_pageable_memory_is_not_for_a_gpu(
    monkeypatch: pytest.MonkeyPatch, pins: list[str]
) -> None:
    g = random_graph()
    with pytest.raises(ValueError, match=r"expected ids on the CPU, .* got cuda:0; .*use_uva=True"):
        graph_of(g, GPU)
    with monkeypatch.context() as now:
        now.setattr(dgl.DGLGraph, "is_pinned", lambda self: True)
        graph_of(g, GPU)
    # Unpinned in place, which leaves DGL's index object as it was.
    with pytest.raises(ValueError, match="use_uva=True"):
        graph_of(g, GPU)
    assert pins == ["cuda:0"]


def test_a_graph_on_a_gpu_is_sampled_there(monkeypatch: pytest.MonkeyPatch) -> None:
    g = random_graph()
    on_gpu = Elsewhere("cuda:0")
    monkeypatch.setattr(dgl_graph, "_take", lambda g: (on_gpu, None))
    assert graph_of(g, GPU) is on_gpu
    for device in (CPU, OTHER):
        with pytest.raises(ValueError, match=f"expected ids on cuda:0, where g is, got {device}"):
            graph_of(g, device)


def test_the_prefetch_thread_of_a_loader_with_a_gpu_gets_blocks_of_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DGL's loader for a CPU graph and device="cuda" calls the sampler from a thread, and pins and
    copies what it returns: the sampler must leave CUDA alone there."""

    def touched(*args: Any, **options: Any) -> Any:
        raise AssertionError("CUDA was touched")

    for name in ("_lazy_init", "current_device", "current_stream", "is_available", "device_count"):
        monkeypatch.setattr(torch.cuda, name, touched)
    monkeypatch.setattr(dispatch, "TorchJob", touched)
    g = random_graph()
    collate = CollateWrapper(PGSampler([4, 3]).sample, g, False, GPU)
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(collate(torch.arange(100))))
    thread.start()
    thread.join()
    ((input_nodes, output_nodes, blocks),) = got
    assert input_nodes.device == output_nodes.device == CPU
    assert {block.device for block in blocks} == {CPU}


@pytest.mark.parametrize("dtype", DTYPES)
def test_excluding_by_places_is_excluding_by_ids(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    """Excludes edges as for a graph on a GPU, whose engine knows places in the CSC only."""
    g = random_graph(dtype=dtype)
    seeds, excluded = torch.arange(60, dtype=dtype), torch.arange(0, 4000, 3, dtype=dtype)
    sampler = PGSampler([5, 4], seed=3)
    sampler.set_epoch(1)
    expected = sampler.sample(g, seeds, excluded)
    made = dgl_graph._make_places(g)
    monkeypatch.setattr(adapter, "edge_places", lambda g, graph: made)
    got = sampler.sample(g, seeds, excluded)
    check_blocks(g, [5, 4], seeds, got, excluded=excluded)
    assert content(got) == content(expected)
    # Ids without an edge exclude nothing.
    expected = sampler.sample(g, seeds, [3])
    assert content(sampler.sample(g, seeds, [-1, 3, 4000])) == content(expected)


def test_places_are_made_once_and_where_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    g = random_graph()
    assert edge_places(g, graph_of(g, CPU)) is None
    taken = dgl_graph._cached_graph(g)
    monkeypatch.setattr(Elsewhere, "edge_ids", object())
    taken.own = Elsewhere("cuda:0")  # type: ignore[assignment]
    made = edge_places(g, taken.own)
    assert isinstance(made, EdgePlaces)
    assert made.place[made.edge_ids].equal(torch.arange(4000))
    assert made.graph.edge_ids is None
    assert edge_places(g, taken.own) is made
    monkeypatch.setattr(Elsewhere, "edge_ids", None)
    assert edge_places(g, taken.own) is None, "ids are places"


def test_features_are_to_follow_a_block_to_its_device() -> None:
    g = random_graph()
    frames = dgl_block._frames_on(g, GPU)
    (nodes,), (edges,) = frames._node_frames, frames._edge_frames
    rows = torch.tensor([5, 1, 5])
    # They move when they are read.
    assert nodes.subframe(rows)._columns["feat"].device[0] == GPU
    assert edges.subframe(rows)._columns["weight"].device[0] == GPU
    assert g._node_frames[0]._columns["feat"].device is None
    assert g.ndata["feat"].device == CPU


def test_a_device_without_a_number_is_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert hetero._complete(torch.device("cuda")) == OTHER
    assert hetero._complete(GPU) == GPU
    assert hetero._complete(CPU) == CPU


def test_lists_go_where_the_graph_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Asked(Exception):
        pass

    def ask(g: Any, device: torch.device) -> pgs.Graph:
        raise Asked(device.type)

    g = random_graph()
    monkeypatch.setattr(adapter, "graph_of", ask)
    monkeypatch.setattr(dgl.DGLGraph, "device", torch.device("meta"))
    with pytest.raises(Asked, match="meta"):
        PGSampler([3]).sample(g, [1, 2])
    with pytest.raises(Asked, match="cpu"):
        PGSampler([3]).sample(g, torch.tensor([1, 2]))
