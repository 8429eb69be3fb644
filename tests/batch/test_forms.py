"""A batch is the same class for every graph and every library's arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pygsampler as pgs

pytest.importorskip("torch")
pytest.importorskip("pyarrow")

RANDOM = np.random.default_rng(3)
KINDS = ("user", "buys", "item"), ("item", "of", "user")
TYPES = pgs.Graph.from_coo(
    {kind: RANDOM.integers(0, 10, (2, 60)) for kind in KINDS}, num_nodes={"user": 10, "item": 10}
)
GRAPH = pgs.Graph.from_coo(*RANDOM.integers(0, 30, (2, 200)), num_nodes=30)
SAMPLER = pgs.PGSampler([3, 2], seed=1)


@pytest.mark.parametrize("form", ["torch", "numpy", "arrow"])
@pytest.mark.parametrize("hetero", [False, True])
def test_numbers_of_a_batch_are_equal_in_every_form(hetero: bool, form: str) -> None:
    batch = SAMPLER.sample(TYPES if hetero else GRAPH, {"user": [1, 2, 1]} if hetero else [1, 2, 1])
    other = getattr(batch, form)()
    for made in (other, pickle.loads(pickle.dumps(other)), getattr(other, form)()):
        assert type(made) is pgs.MiniBatch and made.form == form and batch.form == "array"
        assert made.is_homogeneous is not hetero and str(made.device) == "cpu"
        assert made.num_edges == batch.num_edges and made.cpu().form == form
        assert made.num_sampled_nodes == batch.num_sampled_nodes
        assert made.num_sampled_edges == batch.num_sampled_edges
        assert len(made.blocks) == 2
    with pytest.raises(TypeError, match="expected a batch in pygsampler's arrays"):
        (other.numpy if form != "numpy" else other.torch)()


def test_sampled_nodes_of_a_homogeneous_batch_add_up() -> None:
    batch = SAMPLER.sample(GRAPH, [1, 2, 1])
    assert batch.num_sampled_nodes[0] == 2
    assert sum(batch.num_sampled_nodes) == len(batch.input_nodes)
    assert batch.num_sampled_edges == [block.num_edges for block in reversed(batch.blocks)]


@pytest.mark.parametrize("form", ["arrow", "numpy"])
def test_reductions_need_torch_tensors(form: str) -> None:
    block = getattr(SAMPLER.sample(GRAPH, [1]), form)().blocks[0]
    with pytest.raises(TypeError, match=r"use the blocks of batch.torch\(\)"):
        block.in_degrees()
    src, dst = block.coo()
    assert len(src) == len(dst) == block.num_edges
