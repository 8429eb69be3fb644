"""Rows of so many edges that they are added in pieces: in one order, by all threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import pygsampler as pgs
from pygsampler._batch.block import Block
from pygsampler._ops import segments
from tests.gpu import run_with_driver

PIECE = segments._PIECE


def block_of(degrees: list[int], sources: int, dtype: Any = torch.int64) -> Block:
    indptr = torch.tensor([0, *degrees]).cumsum(0).to(dtype)
    indices = torch.randint(sources, (int(indptr[-1]),), dtype=dtype)
    ends = torch.arange(sources), torch.arange(len(degrees))
    return Block._of_arrays(indptr, indices, indices, *ends)


def in_pieces(block: Block, x: Any) -> Any:
    """The sums of rows as they are documented: piece after piece, edge after edge."""
    result = torch.zeros(block.num_dst_nodes, *x.shape[1:])
    for row, (low, high) in enumerate(zip(block.indptr[:-1], block.indptr[1:], strict=True)):
        ids = block.indices[low:high].long()
        many = max(1, len(ids) // PIECE)
        for piece in range(many):
            last = len(ids) if piece == many - 1 else (piece + 1) * PIECE
            total = torch.zeros(x.shape[1:])
            for one in ids[piece * PIECE : last]:
                total = total + x[one]
            result[row] = result[row] + total
    return result


def test_sums_are_those_of_pieces_on_any_number_of_threads() -> None:
    torch.manual_seed(0)
    degrees = [0, 3, 2 * PIECE - 1, 2 * PIECE, 5 * PIECE + 7, 1, 4 * PIECE]
    block = block_of(degrees, 50)
    x = torch.randn(50, 4)
    assert torch.equal(block.sum(x), in_pieces(block, x))
    # One row is more than a thread takes at a time.
    block, x = block_of([5, 60_000, 2, 30_000], 50), torch.randn(50, 64)
    weights = torch.randn(block.num_edges, 2)
    before, found = pgs.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            pgs.set_num_threads(threads)
            y = x.clone().requires_grad_()
            made = [block.sum(y), block.mean(y), block.max(y)]
            made.append(block.weighted_sum(y.reshape(50, 2, 32), weights).flatten(1))
            sum(one.sum() for one in made).backward()
            found.append([*made, y.grad])
    finally:
        pgs.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
    one = in_pieces(block, x[:, :1])
    assert torch.equal(found[0][0][:, :1], one)
    assert torch.equal(found[0][1][:, :1], one / block.indptr.diff().unsqueeze(1))
    rows = [x[block.indices[low:high]].amax(0) for low, high in ((5, 60_005), (60_007, 90_007))]
    assert torch.equal(found[0][2][[1, 3]], torch.stack(rows))


CODE = """
import warnings
import torch
import pygsampler as pgs
from pygsampler._batch.block import Block
from pygsampler._ops import attention, segments

warnings.filterwarnings("ignore", "CUDA initialization")
there = False
segments._device = lambda x: 0 if there else -1
segments.current_stream = attention.current_stream = lambda index: 0
segments._PIECE = 8
torch.manual_seed(0)

def block_of(degrees, sources, dtype, padding):
    indptr = torch.tensor([0, *degrees]).cumsum(0).to(dtype)
    indices = torch.randint(sources, (int(indptr[-1]) + padding,), dtype=dtype)
    indices[::3] = 2  # a hub
    ends = torch.arange(sources), torch.arange(len(degrees))
    return Block._of_arrays(indptr, indices, indices, *ends)

def results(csr, leaves):
    x, y, w, source, target, scores, edge = leaves
    made = [csr.sum(x), csr.mean(x), csr.max(x), csr.weighted_sum(x, w)]
    exact = len(made)
    made += [
        csr.softmax(scores), csr.attention(x, source, target, edge=scores),
        csr.attention(x.flatten(1)[:, None], source, target, edge=scores),
        csr.attention_v2(x, y, x[0]), csr.attention_v2(x, y, x[0], edge=edge),
    ]
    return made, exact

def run(dtype, floats, shapes=((1, 1), (2, 3), (1, 140), (4, 8)), threshold=0, degrees=None):
    global there
    segments._MANY = threshold
    same = {2: dict(rtol=3e-2, atol=5e-2), 4: dict(rtol=1e-3, atol=1e-3)}.get(floats.itemsize, {})
    several = [0, 7, 15, 16, 17, 3, 23, 24, 25, 0, 8, 64, 200, 1], [16, 40], [100], [3, 2, 1, 0]
    for degrees in degrees or several:
        csr = block_of(degrees, 9, dtype, 5)
        n, rows, e = csr.num_src_nodes, csr.num_dst_nodes, csr.num_edges
        for shape in shapes:
            h = shape[0]
            sizes = (n, *shape), (rows, *shape), (e, h), (n, h), (rows, h), (e, h), (e, *shape)
            values = [(torch.randn(*s) * 2).round().div(4).to(floats) for s in sizes]
            found = []
            for there in (False, True):
                csr.__dict__.pop("_csr", None)
                leaves = [v.clone().requires_grad_() for v in values]
                made, exact = results(csr, leaves)
                grads = []
                for one in made:
                    total = (one * one.detach().cos()).sum()
                    some = torch.autograd.grad(total, leaves, allow_unused=True)
                    grads += [g for g in some if g is not None]
                found.append((made, grads))
            (cpu, cpu_grads), (gpu, gpu_grads) = found
            for a, b in zip(cpu[:exact], gpu[:exact], strict=True):
                assert torch.equal(a, b), (degrees, shape)
            for a, b in zip([*cpu, *cpu_grads], [*gpu, *gpu_grads], strict=True):
                torch.testing.assert_close(a, b, **same)
            # The gradients of sums and means.
            assert all(torch.equal(a, b) for a, b in zip(cpu_grads[:2], gpu_grads[:2]))
"""


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("floats", ["bfloat16", "float16", "float32", "float64"])
def test_pieces_on_a_device_are_those_of_the_cpu(emulator: Path, dtype: str, floats: str) -> None:
    code = CODE + f"run(torch.{dtype}, torch.{floats})\n"
    # Without room a group of threads has all pieces.
    code += f"run(torch.{dtype}, torch.{floats}, ((2, 3),), 1 << 30)\n"
    assert run_with_driver(emulator, code + 'print("same")') == "same\n"


def test_so_many_edges_that_scores_and_products_are_shared(emulator: Path) -> None:
    code = CODE + "segments._PIECE = 256\n"
    code += "run(torch.int32, torch.float32, ((1, 1),), 1 << 17, [[140_000, 3]])\n"
    assert run_with_driver(emulator, code + 'print("same")') == "same\n"
