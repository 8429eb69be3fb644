"""Reductions of blocks by the kernels, on the emulator of tests/emulator.

Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host stand
in for those of a device.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver

CODE = """
import warnings
import numpy as np
import torch
import pygsampler as pgs
from pygsampler._ops import segments
from pygsampler._ops.relations import reduce_by_relation
from pygsampler.torch import segment_reduce

# The driver is older than torch would have it, says the first gradient.
warnings.filterwarnings("ignore", "CUDA initialization")
there = False
segments._device = lambda x: 0 if there else -1
segments.current_stream = lambda index: 0
torch.manual_seed(0)
KINDS = ("sum", "mean", "max")

def blocks(dtype):
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 300, (2, 1500)).astype(dtype)
    src[500:], dst[500:] = src[:1000], dst[:1000]  # parallel edges
    graph = pgs.Graph.from_coo(src, dst % 200, num_nodes=300)
    seeds = np.concatenate([np.arange(20), np.arange(290, 295)]).astype(dtype)
    return pgs.PGSampler([7, 5], seed=1).sample(graph, seeds).torch().blocks

def both(make):
    # What make gives on the CPU and on the device, with gradients.
    global there
    for there in (False, True):
        yield make()

def run(dtype, floats):
    for shape in ((), (1,), (7,), (32,), (3, 8), (140,), (0,)):
        for csr in blocks(dtype):
            values = torch.randn(csr.num_src_nodes, *shape).to(floats)
            values = (values * 4).round() / 4  # with equals
            for kind in KINDS:
                def make():
                    # A block keeps what it has made for one of them.
                    csr.__dict__.pop("_csr", None)
                    x = values.clone().requires_grad_()
                    made = getattr(csr, kind)(x)
                    (made * made.detach().sin()).sum().backward()
                    return made, x.grad
                cpu, gpu = both(make)
                assert torch.equal(cpu[0], gpu[0]) and torch.equal(cpu[1], gpu[1]), (kind, shape)
                table, of = torch.randn(300, *shape).to(floats), csr.src_nodes
                def make():
                    csr.__dict__.pop("_csr", None)
                    x = table.clone().requires_grad_()
                    made = getattr(csr, kind)(x, of=of)
                    (made * made.detach().sin()).sum().backward()
                    return made, x.grad
                cpu, gpu = both(make)
                assert torch.equal(cpu[0], gpu[0]) and torch.equal(cpu[1], gpu[1]), (kind, shape)
            relations = torch.randint(3, (csr.num_edges,))
            def make():
                csr.__dict__.pop("_csr", None)
                x = values.clone().requires_grad_()
                made = reduce_by_relation(csr._segments(), x, relations, 3)
                (made * made.detach().sin()).sum().backward()
                return made, x.grad
            cpu, gpu = both(make)
            assert torch.equal(cpu[0], gpu[0]) and torch.equal(cpu[1], gpu[1]), shape
            heads = shape[0] if len(shape) == 2 else 0
            weights = torch.randn((csr.num_edges, heads) if heads else (csr.num_edges,)).to(floats)
            def make():
                csr.__dict__.pop("_csr", None)
                x, w = values.clone().requires_grad_(), weights.clone().requires_grad_()
                made = csr.weighted_sum(x, w)
                (made * made.detach().sin()).sum().backward()
                return made, x.grad, w.grad
            cpu, gpu = both(make)
            assert torch.equal(cpu[0], gpu[0]) and torch.equal(cpu[1], gpu[1]), shape
            same = dict(rtol=1e-2, atol=1e-1) if floats.itemsize == 2 else {}
            torch.testing.assert_close(cpu[2], gpu[2], **same)

def empty():
    none = torch.zeros(1, dtype=torch.int64)
    for kind in KINDS:
        for starts in (none, none.repeat(4)):
            def make():
                x = torch.randn(3, 5, requires_grad=True)
                made = segment_reduce(x, starts, none[:0], kind)
                made.sum().backward()
                return made, x.grad
            cpu, gpu = both(make)
            assert torch.equal(cpu[0], gpu[0]) and torch.equal(cpu[1], gpu[1])
"""


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("floats", ["bfloat16", "float16", "float32", "float64"])
def test_bits_of_the_cpu(emulator: Path, dtype: str, floats: str) -> None:
    code = CODE + f'run(np.{dtype}, torch.{floats})\nempty()\nprint("same")'
    assert run_with_driver(emulator, code) == "same\n"
