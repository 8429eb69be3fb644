"""Long rows on a GPU, which groups of threads share: the bits of the CPU, without waiting."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("deterministic")
DEGREES = [0, 200_000, 5, 511, 512, 513, 0, 30_000, 1]


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has blocks of fewer edges searched for long rows."""
    monkeypatch.setattr("pygsampler._ops.segments._MANY", 1 << 17)


def blocks(torch: Any, dtype: str) -> tuple[Any, Any]:
    from pygsampler._batch.block import Block

    kind = getattr(torch, dtype)
    indptr = torch.tensor([0, *DEGREES]).cumsum(0).to(kind)
    indices = torch.randint(40_000, (int(indptr[-1]) + 77,), dtype=kind)
    indices[::5] = 3  # a hub
    made = []
    for device in ("cpu", "cuda"):
        arrays = [t.to(device) for t in (indptr, indices, indices)]
        ends = torch.arange(40_000), torch.arange(len(DEGREES))
        made.append(Block._of_arrays(*arrays, *(t.to(device) for t in ends)))
    return made[0], made[1]


def results(block: Any, leaves: list[Any]) -> list[Any]:
    x, x_dst, weights, edge = leaves
    scores = x.flatten(2).sum(2), x_dst.flatten(2).sum(2)
    return [
        block.sum(x),
        block.mean(x),
        block.max(x),
        block.weighted_sum(x, weights),
        block.softmax(weights),
        block.attention(x, *scores, edge=weights),
        block.attention(x.flatten(1)[:, None], *scores, edge=weights),
        block.attention_v2(x, x_dst, x[0], edge=edge),
    ]


@pytest.mark.parametrize("ids", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 8), (2, 35)])
def test_long_rows_are_those_of_the_cpu(
    torch: Any, shape: tuple[int, ...], dtype: str, ids: str
) -> None:
    mine, theirs = blocks(torch, ids)
    floats = getattr(torch, dtype)
    n, rows, edges = mine.num_src_nodes, mine.num_dst_nodes, mine.num_edges
    sizes = (n, *shape), (rows, *shape), (edges, shape[0]), (edges, *shape)
    values = [(torch.randn(*s) / 4).to(floats) for s in sizes]
    found = []
    for block, device in ((mine, "cpu"), (theirs, "cuda"), (theirs, "cuda")):
        leaves = [v.to(device, copy=True).requires_grad_() for v in values]
        made = results(block, leaves)
        sums = torch.autograd.grad(made[0].sum() + made[1].sum(), leaves[0])
        grads = torch.autograd.grad(sum(one.sum() for one in made[3:]), leaves)
        found.append([[one.detach().cpu() for one in (*made[:4], *sums)], [*made[4:], *grads]])
    for exact, _ in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0][0], exact, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(found[1][1], found[2][1], strict=True))
    same = {2: 0.1, 4: 2e-2, 8: 1e-6}[floats.itemsize]
    for a, b in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=same, atol=same * max(1, float(a.abs().max())))


def test_nothing_waits_for_long_rows(torch: Any) -> None:
    _, block = blocks(torch, "int32")
    n, rows, edges = block.num_src_nodes, block.num_dst_nodes, block.num_edges
    sizes = (n, 2, 4), (rows, 2, 4), (edges, 2), (edges, 2, 4)
    leaves = [torch.randn(*s, device="cuda", requires_grad=True) for s in sizes]

    def step() -> Any:
        made = results(block, leaves)
        return torch.autograd.grad(sum(one.sum() for one in made), leaves)

    step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
