"""Ranks of links on a GPU: as on the CPU."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402
from pygsampler.evaluate import Ranks, hits_at, rank, rank_scores  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
NODES = 700


def whole(seed: int, dtype: Any = torch.float32) -> Any:
    """Rows whose products are exact, whatever the order of sums."""
    random = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, (NODES, 16), generator=random).to(dtype)


def pairs(count: int, seed: int) -> Any:
    return torch.randint(0, NODES, (2, count), generator=torch.Generator().manual_seed(seed))


def same(gpu: Ranks, cpu: Ranks) -> bool:
    assert gpu.ranks.is_cuda
    assert gpu.num_candidates.is_cuda
    return gpu.ranks.cpu().equal(cpu.ranks) and gpu.num_candidates.cpu().equal(cpu.num_candidates)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("chunk", [None, 20_000])
@pytest.mark.parametrize("side", ["src", "dst", "both"])
def test_ranks_of_the_cpu(side: str, chunk: int | None, dtype: Any) -> None:
    x, links = whole(1, dtype), pairs(150, 2)
    known = pairs(20_000, 3)
    known[1, :600] = 5
    graph = pgs.Graph.from_coo(*known, num_nodes=NODES)
    expected = rank(x, links, side=side, filters=graph, chunk=chunk)
    for filters in (graph, graph.to("cuda"), graph.pin()):
        for ends in (links, links.cuda()):
            options: dict[str, Any] = {"side": side, "filters": filters, "chunk": chunk}
            assert same(rank(x.cuda(), ends, **options), expected)


@pytest.mark.parametrize("own", [False, True])
def test_candidates_and_functions_of_the_cpu(own: bool) -> None:
    x, links = whole(1), pairs(150, 2)
    graph = pgs.Graph.from_coo(*pairs(20_000, 3), num_nodes=NODES)
    candidates = pairs(150 * 40, 4)[0].view(150, 40) if own else torch.arange(0, NODES, 3)
    options: dict[str, Any] = {"filters": graph}
    expected = rank(x, links, candidates=candidates, **options)
    there = x.cuda()
    for nodes in (candidates, candidates.cuda()):
        assert same(rank(there, links, candidates=nodes, **options), expected)
        by_rows = rank(
            there, links, candidates=nodes, decoder=lambda a, b: (a * b).sum(1), **options
        )
        assert same(by_rows, expected)
        by_ids = rank(
            lambda u, v: (there[u] * there[v]).sum(1), links.cuda(), candidates=nodes, **options
        )
        assert same(by_ids, expected)


def test_on_a_stream_of_the_callers() -> None:
    x, links = whole(1), pairs(150, 2)
    graph = pgs.Graph.from_coo(*pairs(20_000, 3), num_nodes=NODES)
    expected = rank(x, links, filters=graph)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert same(rank(x.cuda(), links, filters=graph, chunk=5000), expected)


def test_measures_from_scores_of_the_cpu() -> None:
    positive, negative = whole(1)[:, 0], whole(2)[:, 1:]
    assert same(rank_scores(positive.cuda(), negative.cuda()), rank_scores(positive, negative))
    pool = negative.flatten()
    assert hits_at(positive.cuda(), pool.cuda(), 50) == hits_at(positive, pool, 50)
    with pytest.raises(ValueError, match="negative: expected it on cuda:0, got cpu"):
        rank_scores(positive.cuda(), negative)


def test_nan_is_refused() -> None:
    x = whole(1).cuda()
    x[3] = math.nan
    with pytest.raises(ValueError, match=r"NaN for links\[:, 0\]"):
        rank(x, pairs(5, 2))
