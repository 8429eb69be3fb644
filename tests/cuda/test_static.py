"""Static batches and captured training steps on a GPU: the batches and losses of a plain loop."""

from __future__ import annotations

import itertools
import pickle
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pygsampler as pgs
from tests.support.partners import partner

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler._loader.capture import CapturedLoop  # noqa: E402
from pygsampler.torch import DataLoader, capture  # noqa: E402
from tests.support.assertions import assert_equal, contents  # noqa: E402
from tests.support.ddp_static import Sage  # noqa: E402
from tests.support.parity import RESEARCH_MODES, emulated  # noqa: E402
from tests.support.static_batches import assert_static, make_graph  # noqa: E402

pytestmark = pytest.mark.once
# Tests without it run on the emulator, too.
on_a_gpu = pytest.mark.usefixtures("gpu")
on_devices = pytest.mark.usefixtures("host_tensors")
NODES, CLASSES, WIDTH = 5000, 7, 20
SEEDS = torch.arange(0, 3000)
OPTIONS: dict[str, Any] = {"batch_size": 256, "shuffle": True, "seed": 3}
FEW_NODES = 1000
FEW = torch.cat([torch.arange(300), torch.tensor([5, 5, 7])])


def loaders(
    graph: pgs.Graph, sampler: Any, static: Any = True, **options: Any
) -> tuple[DataLoader, DataLoader]:
    """A plain loader of few seeds, and a static one."""
    options = {**OPTIONS, "batch_size": 64, **options}
    plain = DataLoader(graph, FEW, sampler, **options)
    return plain, DataLoader(graph, FEW, sampler, static=static, **options)


@pytest.fixture(scope="module")
def graph(torch: Any) -> pgs.Graph:
    return make_graph(torch.int32, NODES, 40).to("cuda")


@pytest.fixture
def few(host_tensors: None) -> pgs.Graph:
    """A small graph on the device."""
    return make_graph().to("cuda")


def rows_of(graph: pgs.Graph) -> dict[str, Any]:
    """Features, labels and features of edges, on the device."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(graph.num_nodes, WIDTH, generator=random)
    y = torch.randint(CLASSES, (graph.num_nodes,), generator=random)
    e = torch.randn(graph.num_edges, 3, generator=random)
    x, y, e = (rows if emulated() else rows.cuda() for rows in (x, y, e))
    return {"features": {"x": x}, "labels": y, "edge_features": {"e": e}}


@pytest.fixture(scope="module")
def data(graph: pgs.Graph) -> dict[str, Any]:
    return rows_of(graph)


PLAIN: dict[str, dict[str, Any]] = {
    "all seeds": {},
    "a rank": {"drop_last": True, "rank": 1, "world_size": 3},
    "weighted": {"prob": "w"},
}


@on_devices
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", PLAIN)
def test_batches_of_a_plain_loader(name: str, dtype: str) -> None:
    graph = make_graph(getattr(torch, dtype), ids=dtype == "int32").to("cuda")
    options = {**PLAIN[name]}
    sampler = pgs.PGSampler([5, 3], prob=options.pop("prob", None), seed=3)
    eager, fixed = loaders(graph, sampler, **rows_of(graph), **options)
    assert fixed.static and not eager.static and fixed.capacities is None
    for _ in range(2):
        addresses = set()
        for expected, batch in zip(eager, fixed, strict=True):
            assert_static(batch, expected)
            assert (batch.y[len(expected.y) :] == -100).all()
            addresses.add(batch.input_nodes.data_ptr())
        assert len(addresses) == 1
    assert fixed.capacities[1].num_nodes >= 64


FRONTIERS: dict[str, tuple[Any, list[int], dict[str, Any], Any]] = {
    "new": (torch.int32, [5, 3], {"frontier": "new"}, [(1064, 960), (256, 192)]),
    "new, weighted": (
        torch.int64,
        [3, 4, 3],
        {"frontier": "new", "prob": "w"},
        [(1064, 2304), (1024, 768), (256, 192)],
    ),
    "new, trees": (torch.int32, [-1, 2], {"frontier": "new", "disjoint": True}, None),
    "trees": (torch.int64, [5, 3], {"disjoint": True}, [(256 * 6, 256 * 5), (256, 192)]),
    "factors": (
        torch.int32,
        [5, 3],
        {"prob": "w", "edge_weights": "ht"},
        [(1064, 1280), (256, 192)],
    ),
    "new, factors": (
        torch.int64,
        [5, 3],
        {"prob": "w", "edge_weights": "ht", "replace": True, "frontier": "new"},
        None,
    ),
}


@on_devices
@pytest.mark.parametrize("name", FRONTIERS)
def test_trees_factors_and_new_frontiers(name: str) -> None:
    """The kernel of heterogeneous graphs samples them, for seeds that are repeated, too."""
    dtype, fanouts, how, most = FRONTIERS[name]
    graph = make_graph(dtype, ids=dtype == torch.int32).to("cuda")
    sampler = pgs.PGSampler(fanouts, seed=3, **how)
    for capacities in (True, *(["max"] if most else []), [(70, 9)] * len(fanouts)):
        eager, fixed = loaders(graph, sampler, capacities)
        if capacities == "max":
            assert fixed.capacities == most
        for _ in range(2 if capacities is True else 1):
            for expected, batch in zip(eager, fixed, strict=True):
                trimmed = assert_static(batch, expected, sampler.frontier)
                assert (trimmed.subgraph_ids is None) == (not sampler.disjoint)
                if sampler.disjoint:
                    assert (batch.subgraph_ids[len(trimmed.subgraph_ids) :] == 64).all()
        assert (fixed._static.epochs.remade > 0) == isinstance(capacities, list)


@on_devices
def test_larger_batches_get_more_room(few: pgs.Graph) -> None:
    eager, small = loaders(few, [5, 3], [(70, 9), (64, 1)])
    assert small.capacities == [(70, 9), (64, 1)]
    for _ in range(2):
        for expected, batch in zip(eager, small, strict=True):
            assert_equal(batch.trimmed(), expected)
    assert small._static.epochs.remade > 0
    most = small.capacities
    assert most[0][0] > 70 and most[1][1] > 1
    # Batches of the next loader, which begins with that room, need no more.
    _, again = loaders(few, [5, 3], most)
    assert len([batch for _ in range(2) for batch in again]) and again._static.epochs.remade == 0
    assert pickle.loads(pickle.dumps(again)).capacities == again.capacities == most


@on_devices
def test_a_rank_with_fewer_seeds_than_a_batch(few: pgs.Graph) -> None:
    options = {"batch_size": 90, "seed": 3, "rank": 1, "world_size": 3}
    eager = DataLoader(few, range(100), [1], **options)
    fixed = DataLoader(few, range(100), [1], static=True, **options)
    assert contents(batch.trimmed() for batch in fixed) == contents(eager)


@on_devices
@pytest.mark.parametrize("replace", [False, True])
def test_max_is_the_most_that_a_batch_can_need(few: pgs.Graph, replace: bool) -> None:
    sampler = pgs.PGSampler([5, 3], seed=3, replace=replace)
    eager, fixed = loaders(few, sampler, "max")
    # 64 seeds have 3 edges each at most; their ends have 5. All sources but seeds are distinct.
    assert fixed.capacities == [(64 + FEW_NODES, 5 * 256), (256, 3 * 64)]
    for _ in range(3):
        for expected, batch in zip(eager, fixed, strict=True):
            assert_equal(batch.trimmed(), expected)
    assert fixed._static.epochs.remade == 0
    assert fixed.capacities == [(64 + FEW_NODES, 5 * 256), (256, 3 * 64)]


@on_devices
def test_a_tree_fills_the_room_of_max() -> None:
    """Each seed has more neighbors than are sampled, and no two seeds share one."""
    indices = torch.arange(100, 100 + 4 * 8)
    indptr = torch.zeros(201, dtype=torch.int64)
    indptr[1:9] = torch.arange(4, 33, 4)
    indptr[9:] = 32
    tree = pgs.Graph.from_csc(indptr, indices).to("cuda")
    fixed = DataLoader(tree, range(8), [4], batch_size=8, static="max")
    (block,) = next(iter(fixed)).trimmed().blocks
    assert (block.num_src_nodes, block.num_edges) == fixed.capacities[0] == (40, 32)
    assert fixed._static.epochs.remade == 0
    with pytest.raises(ValueError, match="with a fanout of -1, which has no bound, got 'most'"):
        DataLoader(tree, range(8), [-1, 3], batch_size=8, static="max")


@on_devices
@pytest.mark.parametrize("policy", [None, "degree", "exact"])
def test_rows_are_counted(few: pgs.Graph, policy: str | None) -> None:
    x = torch.randn(FEW_NODES, 4)
    table = pgs.Features.from_tensor(x)
    if policy:
        table = table.cache(rows=200, policy=policy)
    eager, _ = loaders(few, [5, 3])
    _, fixed = loaders(few, [5, 3], features={"x": table})
    for _ in range(3):
        hits, cached = 0, None
        for expected, batch in zip(eager, fixed, strict=True):
            nodes, count = batch.input_nodes.cpu(), len(expected.input_nodes)
            assert torch.equal(nodes[:count], expected.input_nodes.cpu())
            assert torch.equal(batch.x.cpu(), x[nodes])
            if policy:
                cached = table._cache.cached_rows() if cached is None else cached
                hits += int(torch.isin(nodes, cached.cpu()).sum())
        counted = fixed.stats()["features"]["x"]
        rows = len(eager) * len(batch.input_nodes)
        assert (counted["reads"], counted["rows"]) == (len(eager), rows)
        if policy:
            assert counted["hits"] == hits > 0
            assert counted["bytes"] == {"cuda:0": 16 * hits, "pinned": 16 * (rows - hits)}


@on_devices
def test_a_cache_that_changes_while_it_is_read_is_refused(few: pgs.Graph) -> None:
    table = pgs.Features.from_tensor(torch.randn(FEW_NODES, 4)).cache(rows=200, policy="lru")
    _, fixed = loaders(few, [5, 3], features={"x": table})
    for _ in range(2):
        with pytest.raises(ValueError, match="a cache that does not change while it is read"):
            next(iter(fixed))


@on_devices
@pytest.mark.filterwarnings("ignore")
def test_layers_of_pyg_ignore_what_fills_up(
    few: pgs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs and gradients of the layers that are timed, with either kind of edges."""
    partner("torch_geometric")
    from benchmarks import models
    from benchmarks.gpu.pyg_steps import LAYERS, LAYOUTS, OfPyg

    for name, width in (("FEATURES", 12), ("HIDDEN", 16), ("CLASSES", 5)):
        monkeypatch.setattr(models, name, width)
    x = torch.randn(FEW_NODES, 12)

    def trained(batch: Any, model: Any, seeds: int, ways: Any) -> tuple[Any, list[Any]]:
        place = batch.input_nodes.device
        model.to(place).zero_grad()
        batch._attach("x", x[batch.input_nodes.long().cpu()].to(place))
        out = model(batch)[:seeds]
        out.backward(ways.to(place))
        # Copies: `to` moves gradients in place.
        return out.detach().cpu(), [each.grad.clone().cpu() for each in model.parameters()]

    for expected, batch in itertools.islice(zip(*loaders(few, [5, 3]), strict=True), 3):
        seeds = len(expected.output_nodes)
        ways = torch.randn(seeds, 5)
        for name in LAYERS:
            results = []
            for layout in LAYOUTS:
                torch.manual_seed(0)
                model = OfPyg(name, 2, layout)
                # On the host: layers reduce what lies there.
                results.append(trained(expected.to("cpu"), model, seeds, ways))
                results.append(trained(batch, model, seeds, ways))
            (want, slopes), *others = results
            assert want.abs().max() > 0.01 and len(slopes) >= 4
            for result in others:
                torch.testing.assert_close(result, (want, slopes), rtol=1e-3, atol=1e-4)


@on_devices
@pytest.mark.parametrize(("warmup", "expected"), [(1, 1), (3, 3), (5, 1), (6, 1), (7, 2), (10, 1)])
def test_the_first_batch_of_an_epoch_is_never_captured(
    few: pgs.Graph, monkeypatch: pytest.MonkeyPatch, warmup: int, expected: int
) -> None:
    """A call waits for the rows that came into a cache as the epoch began."""
    captures, stream = [], torch.cuda.Stream()
    original = CapturedLoop._capture

    def noted(self: Any, epochs: Any, epoch_number: int, step: int) -> None:
        assert self._stream is stream
        captures.append(step)
        original(self, epochs, epoch_number, step)

    monkeypatch.setattr(CapturedLoop, "_capture", noted)
    eager, fixed = loaders(few, [5, 3], "max")
    assert len(fixed) == 5
    loop = capture(lambda batch: batch.input_nodes, fixed, warmup=warmup, stream=stream)
    for _ in range(4):
        for nodes, plain in zip(loop, eager, strict=True):
            assert nodes[: len(plain.input_nodes)].equal(plain.input_nodes)
    assert captures == [expected]


@on_devices
def test_one_epoch_at_a_time(few: pgs.Graph) -> None:
    eager, loader = loaders(few, [5, 3], shuffle=False)
    first = iter(loader)
    next(first)
    kept = next(first).trimmed()
    second = iter(loader)
    batch = next(second)
    with pytest.raises(pgs.Error, match="one epoch at a time"):
        next(first)
    assert_equal(kept, list(eager)[1])
    with pytest.raises(TypeError, match="trimmed"):
        pickle.dumps(batch)
    # Another seed is another sampler, in other memory.
    loader.set_seed(4)
    eager, _ = loaders(few, [5, 3], shuffle=False, seed=4)
    assert contents(batch.trimmed() for batch in loader) == contents(eager)
    # A loop that was left may begin again.
    next(iter(loader))
    assert len(list(loader)) == len(loader)
    few.close()
    with pytest.raises(pgs.errors.ClosedError):
        next(iter(loader))


@on_devices
def test_errors(few: pgs.Graph) -> None:
    options: dict[str, Any] = {"batch_size": 64, "static": True}
    with pytest.raises(ValueError, match="static: expected a graph on a CUDA device, got one on"):
        DataLoader(make_graph(), FEW, [5, 3], **options)
    for mode in RESEARCH_MODES:
        sampler = pgs.PGSampler([5, 3], mode=mode)
        with pytest.raises(ValueError, match=f"static: expected a sampler of mode .*'{mode}'"):
            DataLoader(few, FEW, sampler, **options)
    refused: list[tuple[Any, type[Exception], str]] = [
        ([(1, 2)], ValueError, "a pair of sizes for each of 2 blocks"),
        (3, ValueError, "got int 3"),
        ("least", ValueError, "True, False or 'max', got str 'least'"),
        ([(1, 2), 3], TypeError, r"static\[1\]: expected \(num_nodes, num_edges\)"),
        ([(0, 2), (1, 2)], ValueError, r"static\[0\]\[0\]: expected an integer >= 1, got 0"),
    ]
    for static, error, text in refused:
        with pytest.raises(error, match=text):
            DataLoader(few, FEW, [5, 3], batch_size=64, static=static)
    with pytest.raises(ValueError, match="loader: expected a loader with static=True"):
        capture(print, DataLoader(few, FEW, [5, 3], batch_size=64))
    fixed: Any = DataLoader(few, FEW, [5, 3], **options)
    with pytest.raises(TypeError, match="step: expected a function"):
        capture(3, fixed)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"stream: expected a torch\.cuda\.Stream or None"):
        capture(print, fixed, stream=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one that can be captured, got the default stream"):
        capture(print, fixed, stream=torch.cuda.default_stream())


@on_a_gpu
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "bool", "uint8"])
@pytest.mark.parametrize("shape", [(), (3,)])
def test_labels_of_what_fills_up(graph: pgs.Graph, dtype: str, shape: tuple[int, ...]) -> None:
    y = torch.randint(1, 2, (NODES, *shape)).to(getattr(torch, dtype)).cuda()
    fixed = DataLoader(graph, SEEDS, [5], labels=y, static=True, **OPTIONS)
    for batch in fixed:
        mask = batch.seed_mask
        assert batch.y[mask].equal(y[batch.output_nodes[mask].long()])
        assert (batch.y[~mask] == (-100 if dtype.startswith("int") else 0)).all()


PLACES = torch.arange(len(FEW))


@on_devices
@pytest.mark.parametrize(
    "options",
    [
        {"prefetch": 0},
        {"prefetch": 4},
        {"drop_last": True, "rank": 1, "world_size": 3},
        {"shuffle": False, "seed_weights": PLACES},
        {"features": {"x": torch.rand(FEW_NODES, 2)}},
    ],
    ids=["", "prefetch", "a rank", "weights", "features"],
)
def test_labels_of_seeds(few: pgs.Graph, options: dict[str, Any]) -> None:
    eager, fixed = loaders(few, [5, 3], seed_labels=PLACES, **options)
    _, grown = loaders(few, [5, 3], [(70, 9), (64, 1)], seed_labels=PLACES.float(), **options)
    addresses = set()
    for _ in range(2):
        for expected, batch, other in zip(eager, fixed, grown, strict=True):
            count = len(expected.y)
            assert expected.y.device == expected.output_nodes.device
            assert FEW[expected.y.cpu()].equal(expected.output_nodes.cpu())
            assert batch.trimmed().y.equal(expected.y)
            assert len(batch.y) == len(batch.output_nodes)
            assert (batch.y[count:] == -100).all()
            assert other.trimmed().y.equal(expected.y.float())
            assert (other.y[count:] == 0).all()
            addresses.add(batch.y.data_ptr())
    assert len(addresses) == 1 and grown._static.epochs.remade > 0
    assert len(list(pickle.loads(pickle.dumps(fixed)))) == len(fixed)


@on_devices
def test_a_captured_loop_copies_labels_of_seeds(few: pgs.Graph) -> None:
    eager, fixed = loaders(few, [5, 3], seed_labels=PLACES)
    loop = capture(lambda batch: batch.y.clone(), fixed, warmup=2)
    for _ in range(3):
        for labels, expected in zip(loop, eager, strict=True):
            count = len(expected.y)
            assert labels[:count].equal(expected.y) and (labels[count:] == -100).all()
    assert loop.captured


@on_a_gpu
def test_no_seeds(graph: pgs.Graph) -> None:
    fixed = DataLoader(graph, SEEDS[:0], [5], static=True, **OPTIONS)
    assert list(fixed) == []
    assert capture(lambda batch: None, fixed).run() is None


@on_a_gpu
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


def sage() -> Any:
    return Sage(WIDTH, CLASSES)


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


@on_a_gpu
def test_captured_batches_are_those_of_a_plain_loop(graph: pgs.Graph, data: Any) -> None:
    """Checks each batch that a replayed graph works on, and that it samples the batch itself."""
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


@on_a_gpu
def test_losses_of_a_plain_loop(graph: pgs.Graph, data: Any) -> None:
    eager = DataLoader(graph, SEEDS, [7, 5], **data, **OPTIONS)
    plain = trainer(sage)
    want = torch.stack([plain(batch).detach() for _ in range(3) for batch in eager])
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(trainer(sage), fixed)
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


@on_a_gpu
def test_a_batch_that_needs_more_room(graph: pgs.Graph, data: Any) -> None:
    """It is trained by a call of the step, and the graph is captured once more."""
    eager = DataLoader(graph, SEEDS, [7, 5], **data, **OPTIONS)
    plain = trainer(sage)
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
    step = trainer(sage)
    loop = capture(lambda batch: calls.append(1) or step(batch), fixed, warmup=1)
    got = torch.cat([loop.run() for _ in range(2)])
    assert fixed._static.epochs.remade > 0
    assert fixed.capacities != middle
    # Each time that there was more room: one batch by a call, and one call that is captured; where
    # an epoch ended in between, the first batch of the next by a call too.
    assert 2 <= len(calls) <= 2 * (1 + fixed._static.epochs.remade) + 1
    torch.testing.assert_close(got, want, rtol=2e-3, atol=2e-3)


@on_a_gpu
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


@on_a_gpu
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


@on_a_gpu
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


@on_a_gpu
def test_every_kernel_is_in_the_graph(graph: pgs.Graph, data: Any) -> None:
    """Capturing runs nothing, and a replay runs the sample and all that a call of the step does."""
    from torch.profiler import ProfilerActivity, profile

    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(trainer(sage), fixed, warmup=1)

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


@on_a_gpu
def test_what_cannot_be_captured(graph: pgs.Graph, data: Any) -> None:
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(lambda batch: batch.x.sum().item(), fixed, warmup=1)
    batches = iter(loop)
    next(batches)
    stream = torch.cuda.current_stream()
    with pytest.raises(pgs.Error, match="capture: expected a step that only launches work"):
        next(batches)
    # The loader, torch's stream and its random numbers are as good as before.
    assert torch.cuda.current_stream() == stream
    assert torch.rand(3, device="cuda").max() < 1
    assert len(list(fixed)) == len(fixed)


@on_a_gpu
def test_a_loop_that_is_left_or_closed(data: Any) -> None:
    graph = make_graph(torch.int32, NODES, 40).to("cuda")
    fixed = DataLoader(graph, SEEDS, [7, 5], static=True, **data, **OPTIONS)
    loop = capture(trainer(sage), fixed, warmup=1)
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


@on_a_gpu
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
