"""Static batches and captured training steps on a GPU: the batches and losses of a plain loop."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from torch_graphs import csc

import pygsampler as pgs
from tests.support.partners import partner

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.torch import DataLoader, capture  # noqa: E402
from tests.support.assertions import content  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
NODES, CLASSES, WIDTH = 5000, 7, 20
SEEDS = torch.arange(0, 3000)
OPTIONS: dict[str, Any] = {"batch_size": 256, "shuffle": True, "seed": 3}


def make_graph(dtype: Any = torch.int32) -> pgs.Graph:
    random = torch.Generator().manual_seed(7)
    indptr, indices = csc(NODES, 40, random, dtype)
    weights = torch.rand(len(indices), generator=random)
    return pgs.Graph.from_csc(indptr, indices, edge_data={"w": weights}).to("cuda")


@pytest.fixture(scope="module")
def graph(torch: Any) -> pgs.Graph:
    return make_graph()


@pytest.fixture(scope="module")
def data(graph: pgs.Graph) -> dict[str, Any]:
    random = torch.Generator().manual_seed(1)
    x = torch.randn(NODES, WIDTH, generator=random).cuda()
    y = torch.randint(CLASSES, (NODES,), generator=random).cuda()
    e = torch.randn(graph.num_edges, 3, generator=random).cuda()
    return {"features": {"x": x}, "labels": y, "edge_features": {"e": e}}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("prob", [None, "w"])
def test_batches_of_a_plain_loader(data: dict[str, Any], dtype: str, prob: str | None) -> None:
    graph = make_graph(getattr(torch, dtype))
    sampler = pgs.PGSampler([7, 5], prob=prob, seed=OPTIONS["seed"])
    eager = DataLoader(graph, SEEDS, sampler, **data, **OPTIONS)
    fixed = DataLoader(graph, SEEDS, sampler, static=True, **data, **OPTIONS)
    for _ in range(2):
        for expected, batch in zip(eager, fixed, strict=True):
            assert content(batch.trimmed()) == content(expected)
            assert (batch.y[len(expected.y) :] == -100).all()
            for block, real in zip(batch.blocks, expected.blocks, strict=True):
                index = block.edge_index
                assert torch.equal(index[:, : real.num_edges], real.edge_index)
                assert (index[0, real.num_edges :] >= real.num_src_nodes).all()
                assert (index[1, real.num_edges :] >= real.num_dst_nodes).all()


@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "bool", "uint8"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_labels_of_what_fills_up(graph: pgs.Graph, dtype: str, shape: tuple[int, ...]) -> None:
    y = torch.randint(1, 2, (NODES, *shape)).to(getattr(torch, dtype)).cuda()
    fixed = DataLoader(graph, SEEDS, [5], labels=y, static=True, **OPTIONS)
    for batch in fixed:
        mask = batch.seed_mask
        assert batch.y[mask].equal(y[batch.output_nodes[mask].long()])
        assert (batch.y[~mask] == (-100 if dtype.startswith("int") else 0)).all()


def test_labels_of_seeds(graph: pgs.Graph) -> None:
    places = torch.arange(len(SEEDS))
    eager = DataLoader(graph, SEEDS, [5], seed_labels=places, **OPTIONS)
    fixed = DataLoader(graph, SEEDS, [5], seed_labels=places, static=True, **OPTIONS)
    loop = capture(lambda batch: batch.y.clone(), fixed)
    for _ in range(3):
        for labels, expected in zip(loop.run(), eager, strict=True):
            count = len(expected.y)
            assert expected.y.device == expected.output_nodes.device
            assert SEEDS[expected.y.cpu()].equal(expected.output_nodes.cpu().long())
            assert labels[:count].equal(expected.y) and (labels[count:] == -100).all()
    assert loop.captured


def test_no_seeds(graph: pgs.Graph) -> None:
    fixed = DataLoader(graph, SEEDS[:0], [5], static=True, **OPTIONS)
    assert list(fixed) == []
    assert capture(lambda batch: None, fixed).run() is None


@pytest.mark.parametrize("kind", ["sum", "mean", "max"])
def test_reductions_ignore_what_fills_up(graph: pgs.Graph, kind: str) -> None:
    eager = DataLoader(graph, SEEDS, [7, 5], **OPTIONS)
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **OPTIONS)
    for expected, batch in zip(eager, fixed, strict=True):
        for block, real in zip(batch.blocks, expected.blocks, strict=True):
            x = torch.randn(block.num_src_nodes, 12, device="cuda", requires_grad=True)
            mine = getattr(block, kind)(x)
            made = x.detach()[: real.num_src_nodes].clone().requires_grad_()
            want = getattr(real, kind)(made)
            assert torch.equal(mine[: len(want)], want)
            assert not mine[len(want) :].any()
            ways = torch.randn_like(want)
            want.backward(ways)
            mine[: len(want)].backward(ways)
            assert torch.equal(x.grad[: len(made)], made.grad)
            assert not x.grad[len(made) :].any()


class Sage(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        pairs = list(itertools.pairwise([WIDTH, 32, CLASSES]))
        self.own = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairs)
        self.others = torch.nn.ModuleList(torch.nn.Linear(a, b, bias=False) for a, b in pairs)

    def forward(self, batch: Any) -> Any:
        h = batch.x
        for place, block in enumerate(batch.blocks):
            h = self.own[place](h[: block.num_dst_nodes]) + self.others[place](block.mean(h))
            if place == 0:
                h = torch.relu(h)
        return h[batch.output_index]


def trainer(model: Any, **options: Any) -> Any:
    """A step of training of a model, which starts as any other of this kind."""
    torch.manual_seed(0)
    net = model().cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, capturable=True)

    def step(batch: Any) -> Any:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=bool(options.get("amp"))):
            out = net(batch)
        loss = torch.nn.functional.cross_entropy(out.float(), batch.y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def test_captured_batches_are_those_of_a_plain_loop(graph: pgs.Graph, data: Any) -> None:
    """What a replayed graph works on, batch by batch, and that the sample is part of it."""
    eager = DataLoader(graph, SEEDS, [7, 5], **data, **OPTIONS)
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)

    def step(batch: Any) -> Any:
        first, last = batch.blocks
        return [
            tensor.clone()
            for tensor in (
                batch.counts, batch.input_nodes, batch.x, batch.y, first.indptr, first.indices,
                first.edge_ids, first.e, last.indptr, last.indices, last.edge_ids, last.edge_index,
            )
        ]  # fmt: skip

    loop = capture(step, fixed, warmup=2)
    for epoch in range(3):
        seen = loop.run()
        for place, expected in enumerate(eager):
            counts, nodes, x, y, *rest = (values[place] for values in seen)
            first, last = expected.blocks
            sizes = [len(expected.output_nodes)]
            for block in expected.blocks:
                sizes += block.num_src_nodes, block.num_dst_nodes, block.num_edges
            assert counts.tolist() == sizes, (epoch, place)
            assert torch.equal(nodes[: sizes[1]], expected.input_nodes)
            assert torch.equal(x[: sizes[1]], expected.x)
            assert torch.equal(y[: sizes[0]], expected.y)
            assert (y[sizes[0] :] == -100).all()
            wanted = first.indptr, first.indices, first.edge_ids, first.e
            wanted += last.indptr, last.indices, last.edge_ids
            pairs = zip(rest[:7], wanted, strict=True)
            assert all(torch.equal(mine[: len(want)], want) for mine, want in pairs)
            assert torch.equal(rest[7][:, : last.num_edges], last.edge_index)
        assert loop.captured


def test_losses_of_a_plain_loop(graph: pgs.Graph, data: Any) -> None:
    eager = DataLoader(graph, SEEDS, [7, 5], **data, **OPTIONS)
    plain = trainer(Sage)
    want = torch.stack([plain(batch).detach() for _ in range(3) for batch in eager])
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(trainer(Sage), fixed)
    got = torch.cat([loop.run() for _ in range(3)])
    # Steps that the device has not done yet are not counted.
    torch.cuda.synchronize()
    told, edges = fixed.stats(), sum(batch.num_edges for batch in eager)
    assert told["batches"] == len(eager)
    assert told["steps"] >= len(eager) - 2
    # Another epoch has other samples.
    assert abs(told["edges"] - edges) < 0.1 * edges
    assert len(got) == len(want) == 3 * len(eager)
    assert want[-1] < 0.99 * want[0]
    torch.testing.assert_close(got, want, rtol=2e-3, atol=2e-3)


def test_a_batch_that_needs_more_room(graph: pgs.Graph, data: Any) -> None:
    """It is trained by a call of the step, and the graph is captured once more."""
    eager = DataLoader(graph, SEEDS, [7, 5], **data, **OPTIONS)
    plain = trainer(Sage)
    want = torch.stack([plain(batch).detach() for _ in range(2) for batch in eager])
    sizes = [
        [(block.num_src_nodes, block.num_edges) for block in batch.blocks]
        for batch in DataLoader(graph, SEEDS, [7, 5], **OPTIONS)
    ]
    middle = []
    for block in zip(*sizes, strict=True):
        sources, edges = (sorted(of)[len(sizes) // 2] for of in zip(*block, strict=True))
        middle.append((sources, edges))
    options = {**data, **OPTIONS, "static": middle}
    fixed = DataLoader(graph, SEEDS, [7, 5], **options)
    calls = []
    step = trainer(Sage)
    loop = capture(lambda batch: calls.append(1) or step(batch), fixed, warmup=1)
    got = torch.cat([loop.run() for _ in range(2)])
    assert fixed._static.epochs.remade > 0
    assert fixed.capacities != middle
    # Each time that there was more room: one batch by a call, and one call that is captured; where
    # an epoch ended in between, the first batch of the next by a call too.
    assert 2 <= len(calls) <= 2 * (1 + fixed._static.epochs.remade) + 1
    torch.testing.assert_close(got, want, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("policy", ["degree", "exact", "presampled"])
@pytest.mark.parametrize("warmup", [1, len(SEEDS) // OPTIONS["batch_size"] + 1])
def test_features_behind_a_cache(graph: pgs.Graph, data: Any, policy: str, warmup: int) -> None:
    """Their rows are the same, and the cache may change between epochs: before the first capture
    too, where all batches of an epoch are calls. Replays read what is cached where it is."""
    host = pgs.Features.from_tensor(data["features"]["x"].cpu())
    options = {**OPTIONS, "labels": data["labels"], "static": True}
    cached = host.cache(rows=500, policy=policy)
    fixed = DataLoader(graph, SEEDS, [7, 5], features={"x": cached}, **options)
    eager = DataLoader(graph, SEEDS, [7, 5], features=data["features"], **OPTIONS)

    def step(batch: Any) -> Any:
        return batch.counts.clone(), batch.input_nodes.clone(), batch.x.clone()

    loop = capture(step, fixed, warmup=warmup)
    assert warmup in (1, len(fixed))
    sets = []
    for epoch in range(4):
        counts, nodes, rows = loop.run()
        assert loop.captured == (warmup == 1 or epoch > 0)
        assert torch.equal(rows, data["features"]["x"][nodes.long()])
        for place, expected in enumerate(eager):
            assert int(counts[place][1]) == len(expected.input_nodes)
            assert torch.equal(rows[place][: len(expected.x)], expected.x)
        held = cached._cache.cached_rows().cuda()
        near = int(torch.isin(nodes, held.to(nodes.dtype)).sum())
        told = fixed.stats()["features"]["x"]
        assert (told["rows"], told["hits"]) == (nodes.numel(), near)
        assert 0 < near < nodes.numel()
        sets.append(held.sort().values)
    changes = sum(not torch.equal(a, b) for a, b in itertools.pairwise(sets))
    assert (changes > 0) == (policy == "exact")
    with pytest.raises(ValueError, match="does not change while it is read"):
        lru = {"x": host.cache(rows=500, policy="lru")}
        next(iter(DataLoader(graph, SEEDS, [7, 5], features=lru, **options)))


def square(block: Any) -> Any:
    """Edges of which all sources are targets too: what fills up ends in none that is in use."""
    src, dst = block.edge_index
    mask = getattr(block, "edge_mask", None)
    return torch.stack([src, dst if mask is None else torch.where(mask, dst, src)])


class OfPyg(torch.nn.Module):
    """Two layers of PyG on the edges of a batch, those that fill it up too."""

    def __init__(self, kind: str) -> None:
        nn = partner("torch_geometric.nn")
        super().__init__()
        layer = getattr(nn, kind)
        options = {"add_self_loops": False} if kind != "SAGEConv" else {}
        self.layers = torch.nn.ModuleList(
            [layer(WIDTH, 32, **options), layer(32, CLASSES, **options)]
        )

    def forward(self, batch: Any) -> Any:
        h = batch.x
        for place, (layer, block) in enumerate(zip(self.layers, batch.blocks, strict=True)):
            sizes = block.num_src_nodes, block.num_dst_nodes
            if type(layer).__name__ == "GCNConv":
                h = layer(h, square(block))[: sizes[1]]
            else:
                h = layer((h, h[: sizes[1]]), block.edge_index, size=sizes)
            if place == 0:
                h = torch.relu(h)
        return h[batch.output_index]


@pytest.mark.parametrize("kind", ["SAGEConv", "GATConv", "GCNConv"])
@pytest.mark.parametrize("amp", [False, True])
def test_layers_of_pyg(graph: pgs.Graph, data: Any, kind: str, amp: bool) -> None:
    eager = DataLoader(graph, SEEDS, [7, 5], **data, **OPTIONS)
    plain = trainer(lambda: OfPyg(kind), amp=amp)
    want = torch.stack([plain(batch).detach() for _ in range(2) for batch in eager])
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(trainer(lambda: OfPyg(kind), amp=amp), fixed)
    got = torch.cat([loop.run() for _ in range(2)])
    rough = 5e-2 if amp else 5e-3
    torch.testing.assert_close(got, want, rtol=rough, atol=rough)


def test_a_compiled_model(graph: pgs.Graph, data: Any) -> None:
    class Dense(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lines = torch.compile(
                torch.nn.Sequential(
                    torch.nn.Linear(WIDTH, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES)
                )
            )

        def forward(self, batch: Any) -> Any:
            h = self.lines(batch.x)
            for block in batch.blocks:
                h = h[: block.num_dst_nodes] + block.mean(h)
            return h[batch.output_index]

    eager = DataLoader(graph, SEEDS, [7, 5], **data, **OPTIONS)
    plain = trainer(Dense)
    want = torch.stack([plain(batch).detach() for batch in eager])
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    got = capture(trainer(Dense), fixed).run()
    torch.testing.assert_close(got, want, rtol=5e-3, atol=5e-3)


def test_every_kernel_is_in_the_graph(graph: pgs.Graph, data: Any) -> None:
    """Capturing runs nothing, and a replay runs the sample and all that a call of the step does."""
    from torch.profiler import ProfilerActivity, profile

    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(trainer(Sage), fixed, warmup=1)

    def kernels(work: Any) -> Counter[str]:
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            work()
            torch.cuda.synchronize()
        return Counter(
            event.name
            for event in seen.events()
            if event.device_type == torch.autograd.DeviceType.CUDA
            and not event.name.startswith(("Mem", "mem", "Context", "Activity"))
        )

    kernels(lambda: None)
    batches = iter(loop)
    called = kernels(lambda: next(batches))
    captured = kernels(lambda: next(batches))
    replayed = kernels(lambda: next(batches))
    assert loop.captured
    # The first batch has two more sampled ahead.
    assert called["static32"] == called["static_turn"] - 1 == 3
    for ours in ("static32", "static_turn", "static_spread", "gather"):
        assert replayed[ours] == 1, (ours, replayed)
    assert called["static_spread"] == called["gather"] == 1
    # The call that captures launches nothing itself, but that torch puts down what its random
    # numbers begin with: what ran is the first replay.
    captured = Counter({name: n for name, n in captured.items() if "FillFunctor<long>" not in name})
    replayed = Counter({name: n for name, n in replayed.items() if "FillFunctor<long>" not in name})
    assert not captured - replayed, captured - replayed
    assert not replayed - captured, replayed - captured
    batches.close()


def test_what_cannot_be_captured(graph: pgs.Graph, data: Any) -> None:
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(lambda batch: batch.x.sum().item(), fixed, warmup=1)
    batches = iter(loop)
    next(batches)
    with pytest.raises(pgs.Error, match="capture: expected a step that only launches work"):
        next(batches)
    # The loader and the device are as good as before.
    assert len(list(fixed)) == len(fixed)


def test_a_loop_that_is_left_or_closed(data: Any) -> None:
    graph = make_graph()
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(trainer(Sage), fixed, warmup=1)
    for _ in range(3):
        for place, _ in enumerate(loop):
            if place == 4:
                break
    assert loop.captured
    assert len(loop.run()) == len(fixed) == len(loop)
    batches = iter(loop)
    next(batches)
    graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        next(batches)


def test_the_example_learns() -> None:
    example = Path(__file__).parents[2] / "examples" / "cuda_graph.py"
    done = subprocess.run(
        [sys.executable, str(example), "--epochs", "2"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"test accuracy: ([\d.]+)%", done.stdout)
    assert found is not None, done.stdout
    # An MLP that sees no edges reaches 60 % (docs/guide/debian.md).
    assert float(found[1]) > 60
