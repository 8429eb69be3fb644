"""Reductions and attention of blocks by the kernels, on the emulator of tests/emulator.

Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host stand
in for those of a device.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver

BOTH = """
import warnings
import numpy as np
import torch
import pygsampler as pgs
from pygsampler._ops import attention, segments
from pygsampler._ops.relations import reduce_by_relation
from pygsampler.torch import segment_reduce

# The driver is older than torch would have it, says the first gradient.
warnings.filterwarnings("ignore", "CUDA initialization")
on_device = False
segments._device = lambda x: 0 if on_device else -1
segments.current_stream = attention.current_stream = lambda index: 0
torch.manual_seed(0)

def blocks(dtype):
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 300, (2, 1500)).astype(dtype)
    src[500:], dst[500:] = src[:1000], dst[:1000]  # parallel edges
    graph = pgs.Graph.from_coo(src, dst % 200, num_nodes=300)
    seeds = np.concatenate([np.arange(20), np.arange(290, 295)]).astype(dtype)
    return pgs.PGSampler([7, 5], seed=1).sample(graph, seeds).torch().blocks

def both(work, *values, block=None):
    # Returns what work returns, and the gradients of the values, on the CPU and on the device.
    global on_device
    for on_device in (False, True):
        if block is not None:
            # A block keeps what it has made for one of them.
            block.__dict__.pop("_csr", None)
        leaves = [value.clone().requires_grad_() for value in values]
        results, loss = work(*leaves)
        loss.backward()
        yield [*results, *(leaf.grad for leaf in leaves)]
"""

REDUCTIONS = """
def loss_of(result):
    return [result], (result * result.detach().sin()).sum()

def assert_same_bits(work, *values, block=None):
    for cpu, gpu in zip(*both(lambda *x: loss_of(work(*x)), *values, block=block), strict=True):
        assert torch.equal(cpu, gpu)

def run(dtype, floats):
    for shape in ((), (1,), (7,), (32,), (3, 8), (140,), (0,)):
        for csr in blocks(dtype):
            values = torch.randn(csr.num_src_nodes, *shape).to(floats)
            values = (values * 4).round() / 4  # with equals
            table, ids = torch.randn(300, *shape).to(floats), csr.src_nodes
            for kind in KINDS:
                reduce = getattr(csr, kind)
                assert_same_bits(reduce, values, block=csr)
                assert_same_bits(lambda x: reduce(x, of=ids), table, block=csr)
            relations = torch.randint(3, (csr.num_edges,))
            assert_same_bits(
                lambda x: reduce_by_relation(csr._segments(), x, relations, 3), values, block=csr
            )
            heads = shape[0] if len(shape) == 2 else 0
            weights = torch.randn((csr.num_edges, heads) if heads else (csr.num_edges,)).to(floats)
            work = lambda x, w: loss_of(csr.weighted_sum(x, w))
            (*cpu, cpu_w), (*gpu, gpu_w) = both(work, values, weights, block=csr)
            assert all(map(torch.equal, cpu, gpu)), shape
            same = dict(rtol=1e-2, atol=1e-1) if floats.itemsize == 2 else {}
            torch.testing.assert_close(cpu_w, gpu_w, **same)
    none = torch.zeros(1, dtype=torch.int64)
    for kind in KINDS:
        for starts in (none, none.repeat(4)):
            assert_same_bits(lambda x: segment_reduce(x, starts, none[:0], kind), torch.randn(3, 5))

KINDS = ("sum", "mean", "max")
"""

ATTENTION = """
def run(dtype, floats):
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

            def first(x, source, target, scores):
                out, weights = csr.attention(x, source, target), csr.softmax(scores)
                shared = csr.attention(x.flatten(1)[:, None], source, target, edge=scores)
                total = out.square().sum() + shared.square().sum()
                return [out, shared, weights], total + (weights * values[3].cos()).sum()

            compare(*both(first, *values, block=csr))
            sizes = (n, *shape), (rows, *shape), shape, (edges, heads), (edges, *shape)
            others = [(torch.randn(*s) / 2).to(floats) for s in sizes]

            def second(x, x_dst, att, score, edge=None):
                parts = (t.flatten(1)[:, :heads] for t in (x, x_dst))
                usual = x.numel() and len(shape) > 1
                out = csr.attention(x, *parts, edge=score) if usual else score
                other = csr.attention_v2(x, x_dst, att, 0.3, edge)
                return [out, other], other.square().sum() + out.square().sum()

            for given in (others[:4], others):
                compare(*both(second, *given, block=csr))
"""


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("floats", ["bfloat16", "float16", "float32", "float64"])
@pytest.mark.parametrize("code", [REDUCTIONS, ATTENTION], ids=["reductions", "attention"])
def test_layers_give_the_results_of_the_cpu(
    emulator: Path, code: str, dtype: str, floats: str
) -> None:
    call = f'run(np.{dtype}, torch.{floats})\nprint("same")'
    assert run_with_driver(emulator, BOTH + code + call) == "same\n"
