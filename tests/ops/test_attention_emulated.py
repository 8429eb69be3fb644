"""Attention by the kernels, on the emulator of tests/emulator, as in test_segments_emulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver

CODE = """
import warnings
import numpy as np
import torch
import pygsampler as pgs
from pygsampler._ops import attention, segments

# The driver is older than torch would have it, says the first gradient.
warnings.filterwarnings("ignore", "CUDA initialization")
there = False
segments._device = lambda x: 0 if there else -1
segments.current_stream = attention.current_stream = lambda index: 0
torch.manual_seed(0)

def blocks(dtype):
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 300, (2, 1500)).astype(dtype)
    src[500:], dst[500:] = src[:1000], dst[:1000]  # parallel edges
    graph = pgs.Graph.from_coo(src, dst % 200, num_nodes=300)
    seeds = np.concatenate([np.arange(20), np.arange(290, 295)]).astype(dtype)
    return pgs.PGSampler([7, 5], seed=1).sample(graph, seeds).torch().blocks

def run(dtype, floats):
    global there
    same = {2: dict(rtol=2e-2, atol=5e-2), 4: dict(rtol=1e-4, atol=1e-4)}.get(
        floats.itemsize, dict(rtol=1e-7, atol=1e-7)
    )

    def compare(mine, theirs):
        for a, b in zip(mine, theirs, strict=True):
            # A gradient is a sum whose terms may be far larger than it is.
            most = max(1, float(a.detach().abs().max())) if a.numel() else 1
            torch.testing.assert_close(a, b, rtol=same["rtol"], atol=same["atol"] * most)

    for shape in ((1, 1), (2, 3), (4, 16), (1, 140), (3, 112), (5, 33), (8, 0), (3,)):
        for csr in blocks(dtype):
            heads = shape[0]
            n, rows, edges = csr.num_src_nodes, csr.num_dst_nodes, csr.num_edges
            sizes = (n, *shape), (n, heads), (rows, heads), (edges, heads)
            values = [torch.randn(*s).to(floats) for s in sizes]
            found = []
            for there in (False, True):
                csr.__dict__.pop("_csr", None)
                *given, scores = (v.clone().requires_grad_() for v in values)
                made, weights = csr.attention(*given), csr.softmax(scores)
                shared = csr.attention(given[0].flatten(1)[:, None], *given[1:], edge=scores)
                total = made.square().sum() + shared.square().sum()
                (total + (weights * values[3].cos()).sum()).backward()
                found.append([made, shared, weights, *(t.grad for t in (*given, scores))])
            compare(*found)
            sizes = (n, *shape), (rows, *shape), shape, (edges, heads), (edges, *shape)
            values = [(torch.randn(*s) / 2).to(floats) for s in sizes]
            for with_edge in (False, True):
                found = []
                for there in (False, True):
                    csr.__dict__.pop("_csr", None)
                    *given, score, edge = (v.clone().requires_grad_() for v in values)
                    x = given[0]
                    parts = (t.flatten(1)[:, :heads] for t in (x, given[1]))
                    usual = x.numel() and len(shape) > 1
                    first = csr.attention(x, *parts, edge=score) if usual else score
                    made = csr.attention_v2(*given, 0.3, edge if with_edge else None)
                    (made.square().sum() + first.square().sum()).backward()
                    found.append([first, made, *(t.grad for t in (*given, score))])
                    if with_edge:
                        found[-1].append(edge.grad)
                compare(*found)
"""


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("floats", ["bfloat16", "float16", "float32", "float64"])
def test_as_on_the_cpu(emulator: Path, dtype: str, floats: str) -> None:
    code = CODE + f'run(np.{dtype}, torch.{floats})\nprint("same")'
    assert run_with_driver(emulator, code) == "same\n"
