"""Static batches of links and captured steps on them: those of a plain loop."""

from __future__ import annotations

from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from torch.nn import functional  # noqa: E402

from pygsampler.torch import LinkLoader, NegativeSampling, capture  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
NODES, WIDTH = 3000, 16
OPTIONS: dict[str, Any] = {"batch_size": 256, "shuffle": True, "exclude": None}


@pytest.fixture(scope="module")
def graph(torch: Any) -> pgs.Graph:
    random = torch.Generator().manual_seed(7)
    src, dst = torch.randint(0, NODES, (2, 40000), generator=random)
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES).to("cuda")


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_captured_batches_are_those_of_a_plain_loop(graph: pgs.Graph, mode: str) -> None:
    """In three epochs, of which most batches are replays; the last of each is not full."""
    negatives = NegativeSampling("structural", 2, mode=mode)
    about = {**OPTIONS, "seed": 3, "negative_sampling": negatives}
    edges = torch.arange(0, 40000, 21)
    eager = LinkLoader(graph, edges, [4, 3], **about)
    fixed = LinkLoader(graph, edges, [4, 3], static=True, **about)
    batch: Any = None

    def step(given: Any) -> Any:
        nonlocal batch
        batch = given
        index = given.edge_label_index
        rows = given.src_index if index is None else index[0]
        return given.minibatch.output_nodes[rows] * given.link_mask

    loop = capture(step, fixed, warmup=2)
    for _ in range(3):
        for out, expected in zip(loop, eager, strict=True):
            made = batch.trimmed()
            assert made.minibatch.input_nodes.equal(expected.minibatch.input_nodes)
            for mine, theirs in zip(made.minibatch.blocks, expected.minibatch.blocks, strict=True):
                assert mine.edge_ids.equal(theirs.edge_ids)
            for mine, theirs in zip(made[1:], expected[1:], strict=True):
                assert (mine is None) == (theirs is None)
                assert mine is None or mine.equal(theirs)
            assert not made.input_id.is_cuda
            index = expected.edge_label_index
            rows = expected.src_index if index is None else index[0]
            assert out[: len(rows)].equal(expected.minibatch.output_nodes[rows])
            assert not out[len(rows) :].any()
    assert loop.captured


EXCLUDED: dict[str, dict[str, Any]] = {
    "plain": {},
    "new": {"frontier": "new"},
    "trees": {"disjoint": True, "edge_weights": "ht"},
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_edges_that_batches_leave_out(graph: pgs.Graph, name: str) -> None:
    """Their own by default, or with their reverses: most batches are replays."""
    sampler = pgs.PGSampler([6, 5], seed=3, **EXCLUDED[name])
    back, edges = torch.arange(40000).flip(0), torch.arange(0, 40000, 11)
    options: dict[str, Any] = {"batch_size": 512, "shuffle": True}
    options["negative_sampling"] = NegativeSampling()
    if name == "plain":
        options |= {"exclude": "reverse_id", "reverse_eids": back}
    eager = LinkLoader(graph, edges, sampler, **options)
    fixed = LinkLoader(graph, edges, sampler, static=True, **options)
    batch: Any = None

    def step(given: Any) -> Any:
        nonlocal batch
        batch = given
        return [torch.where(of.edge_mask, of.edge_ids, -1) for of in given.minibatch.blocks]

    loop = capture(step, fixed, warmup=2)
    for _ in range(3):
        for out, expected in zip(loop, eager, strict=True):
            made = batch.trimmed().minibatch
            assert made.input_nodes.equal(expected.minibatch.input_nodes)
            gone = edges[expected.input_id]
            gone = torch.cat([gone, back[gone]]) if name == "plain" else gone
            for mine, theirs, ids in zip(made.blocks, expected.minibatch.blocks, out, strict=True):
                assert mine.indptr.equal(theirs.indptr)
                assert mine.indices.equal(theirs.indices)
                assert mine.edge_ids.equal(theirs.edge_ids)
                assert not torch.isin(ids.cpu(), gone).any()
    assert loop.captured


def test_losses_of_a_plain_loop(graph: pgs.Graph) -> None:
    """A batch that needs more room is trained by a call, and captured anew."""
    torch.manual_seed(1)
    x = torch.randn(NODES, WIDTH, device="cuda")
    about = {**OPTIONS, "seed": 3, "features": {"x": x}}
    about["negative_sampling"] = NegativeSampling()
    edges = torch.arange(0, 40000, 21)

    def losses(loader: Any, captured: bool) -> Any:
        torch.manual_seed(0)
        net = torch.nn.Linear(WIDTH, WIDTH).cuda()
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, capturable=True)

        def step(batch: Any) -> Any:
            optimizer.zero_grad()
            h = batch.minibatch.x
            for block in batch.minibatch.blocks:
                h = net(h[: block.num_dst_nodes] + block.mean(h))
            src, dst = batch.edge_label_index
            scores = (h[src] * h[dst]).sum(1)
            loss = functional.binary_cross_entropy_with_logits(
                scores, batch.edge_label, reduction="none"
            )
            mask = batch.link_mask if captured else torch.ones_like(loss)
            loss = (loss * mask).sum() / mask.sum()
            loss.backward()
            optimizer.step()
            return loss

        if not captured:
            return torch.stack([step(batch).detach() for _ in range(3) for batch in loader])
        loop = capture(step, loader, warmup=2)
        made = torch.cat([loop.run() for _ in range(3)])
        assert loop.captured
        assert loader._static.epochs.remade > 0
        return made

    small = [(900, 900), (800, 700)]
    fixed = LinkLoader(graph, edges, [4, 3], static=small, **about)
    want = losses(LinkLoader(graph, edges, [4, 3], **about), False)
    torch.testing.assert_close(losses(fixed, True), want, rtol=1e-3, atol=1e-4)
    assert want[-1] < want[0]


@pytest.mark.parametrize("exclude", [None, "self"])
def test_links_of_graphs_with_types(exclude: str | None) -> None:
    random = torch.Generator().manual_seed(7)
    kinds = ("a", "w", "b"), ("b", "c", "b"), ("b", "w", "a")
    counts = {"a": 900, "b": 700}
    edges = {
        kind: tuple(torch.randint(0, counts[end], (6000,), generator=random) for end in kind[::2])
        for kind in kinds
    }
    graph = pgs.Graph.from_coo(edges, num_nodes=counts).to("cuda")
    given = {kinds[0]: torch.arange(0, 6000, 5), kinds[1]: torch.arange(0, 6000, 9)}
    about: dict[str, Any] = {**OPTIONS, "seed": 3}
    about["negative_sampling"] = {kinds[0]: NegativeSampling("structural", 2)}
    about["exclude"] = exclude
    eager = LinkLoader(graph, given, [4, 3], **about)
    fixed = LinkLoader(graph, given, [4, 3], static="max", **about)
    batch: Any = None

    def step(one: Any) -> Any:
        nonlocal batch
        batch = one
        return {kind: mask.sum() for kind, mask in one.link_mask.items()}

    loop = capture(step, fixed, warmup=2)
    for _ in range(3):
        for links, expected in zip(loop, eager, strict=True):
            made = batch.trimmed()
            for end, ids in expected.minibatch.input_nodes.items():
                assert made.minibatch.input_nodes[end].equal(ids)
            for mine, theirs in zip(made.minibatch.blocks, expected.minibatch.blocks, strict=True):
                for kind, block in theirs.items():
                    assert mine[kind].edge_ids.equal(block.edge_ids)
                    own = given[kind][expected.input_id[kind]] if kind in given else []
                    gone = torch.isin(block.edge_ids.cpu(), torch.as_tensor(own))
                    assert exclude is None or not gone.any()
            for kind, index in expected.edge_label_index.items():
                assert int(links[kind]) == index.shape[1]
                assert made.edge_label_index[kind].equal(index)
                assert made.edge_label[kind].equal(expected.edge_label[kind])
                assert made.input_id[kind].equal(expected.input_id[kind])
    assert loop.captured
