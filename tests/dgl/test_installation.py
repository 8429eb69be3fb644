"""``install("dgl")`` without PyG: DGL's own loop samples by our engine."""

from __future__ import annotations

from collections.abc import Iterator

import dgl
import pytest
import torch

import pygsampler as pgs


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    yield
    pgs.uninstall()


def test_a_loop_of_dgl_samples_by_our_engine() -> None:
    pgs.install("dgl")
    g = dgl.rand_graph(50, 400)
    sampler = dgl.dataloading.NeighborSampler([3, 2])
    assert type(sampler).__module__.startswith("pygsampler.dgl")
    nodes, seeds, blocks = sampler.sample_blocks(g, torch.arange(10))
    assert seeds.tolist() == list(range(10)) and len(blocks) == 2
    src, dst = blocks[-1].edges()
    assert g.has_edges_between(blocks[-1].srcdata[dgl.NID][src], seeds[dst]).all()
    assert len(nodes) == blocks[0].num_src_nodes()
