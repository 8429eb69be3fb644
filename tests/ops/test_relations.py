"""Reductions by relation: what a loop over relations gives, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch_graphs import sampled

from pygsampler._ops import segments
from pygsampler._ops.relations import reduce_by_relation, split_by_relation
from pygsampler._ops.segments import Segments
from pygsampler.torch import segment_reduce

KINDS = {"sum": segments.SUM, "mean": segments.MEAN, "max": segments.MAX}


def one_by_one(block: Any, x: Any, relations: Any, number: int, kind: str) -> Any:
    made = []
    rows = torch.arange(block.num_dst_nodes).repeat_interleave(block.indptr.diff().long())
    for relation in range(number):
        mask = relations == relation
        counts = torch.bincount(rows[mask], minlength=block.num_dst_nodes)
        indptr = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(block.indices.dtype)
        made.append(segment_reduce(x, indptr, block.indices[mask].contiguous(), kind))
    return torch.stack(made, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 3, 40])
def test_relations_one_by_one(number: int, kind: str) -> None:
    for ids in (np.int32, np.int64):
        for block in sampled(ids).blocks:
            relations = torch.randint(number, (block.num_edges,))
            x = torch.randn(block.num_src_nodes, 3, 2, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            got = reduce_by_relation(block._segments(), x, relations, number, KINDS[kind])
            want = one_by_one(block, y, relations, number, kind)
            assert torch.equal(got, want)
            weight = torch.randn_like(got)
            (got * weight).sum().backward()
            (want * weight).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)


def test_gradients_by_differences() -> None:
    block = sampled(fanouts=(3,), seeds=12).blocks[0]
    relations = torch.randint(4, (block.num_edges,))
    x = torch.randn(block.num_src_nodes, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: reduce_by_relation(block._segments(), x, relations, 4), (x,)
    )


def test_padding_and_blocks_without_edges() -> None:
    none = torch.zeros(3, dtype=torch.int64)
    empty = Segments(none, none[:0], 4)
    assert not reduce_by_relation(empty, torch.ones(4, 2), none[:0], 5).any()
    block = sampled().blocks[0]
    edges, n = block.num_edges, block.num_src_nodes
    padded = Segments(block.indptr, torch.cat([block.indices, torch.full((7,), n)]), n)
    relations = torch.randint(3, (edges + 7,))
    x = torch.randn(n, 2)
    want = reduce_by_relation(block._segments(), x, relations[:edges], 3)
    assert torch.equal(reduce_by_relation(padded, x, relations, 3), want)
    _, order = split_by_relation(padded, relations, 3)
    assert sorted(order[:edges].tolist()) == list(range(edges))


def test_wrong_relations_are_refused() -> None:
    block = sampled().blocks[0]
    edges, x = block._segments(), torch.zeros(block.num_src_nodes, 2)
    relations = torch.zeros(block.num_edges, dtype=torch.int64)
    for change, error, text in (
        ({"relations": relations[1:]}, ValueError, r"relations: expected shape \["),
        ({"relations": relations.float()}, TypeError, "relations: expected a tensor of integers"),
        ({"num_relations": 0}, ValueError, "num_relations: expected at least 1, got 0"),
        ({"relations": relations + 2}, IndexError, "expected a row of x in"),
        ({"relations": relations - 1}, IndexError, "expected a row of x in"),
    ):
        given = {"relations": relations, "num_relations": 2, **change}
        with pytest.raises(error, match=text):
            reduce_by_relation(edges, x, **given)
