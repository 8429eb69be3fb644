"""Links and their negatives on a GPU: as on the CPU."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import pygsampler as pgs  # noqa: E402
from pygsampler.torch import Negatives  # noqa: E402

NODES = 700


def edges(dtype: Any) -> Any:
    random = torch.Generator().manual_seed(1)
    return torch.randint(0, NODES - 20, (2, 4000), generator=random).to(dtype)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("kind", ["uniform", "degree", "in_batch", "structural"])
def test_negatives_of_the_cpu(kind: str, dtype: Any) -> None:
    src, dst = edges(dtype)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES)
    there = graph.to("cuda")
    negatives = Negatives(kind, 7)
    numbers: dict[str, int] = {"seed": 5, "epoch": 2, "batch": 9}
    made = negatives.draw(there, src.cuda(), dst.cuda(), **numbers)
    assert made.is_cuda
    assert made.cpu().equal(negatives.draw(graph, src, dst, **numbers))
