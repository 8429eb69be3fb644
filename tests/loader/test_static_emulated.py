"""DataLoader(static=True) through the CUDA engine and its kernels, on the emulator.

Torch does not take the emulator for a GPU, so tensors on the host stand in for those on the device,
and there are no streams: tests/cuda/test_static.py has those, and captures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver
from tests.support.partners import partner
from tests.support.static_scripts import PRELUDE, REPLAYS, ROWS

pytestmark = pytest.mark.once


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_trimmed_batches_are_those_of_a_loader_without(emulator: Path, dtype: str) -> None:
    code = f"""
graph = make_graph(torch.{dtype}, ids={dtype == "int32"}).to("cuda")
for options in ({{}}, {{"drop_last": True, "rank": 1, "world_size": 3}}, {{"prob": "w"}}):
    sampler = pgs.PGSampler([5, 3], prob=options.pop("prob", None), seed=3)
    options |= dict(batch_size=64, shuffle=True, seed=3)
    eager = DataLoader(graph, SEEDS, sampler, **options)
    fixed = DataLoader(graph, SEEDS, sampler, static=True, **options)
    assert fixed.static and not eager.static and fixed.capacities is None
    for _ in range(2):
        seen = set()
        for expected, batch in zip(eager, fixed, strict=True):
            assert_equal(batch.trimmed(), expected)
            seen.add(batch.input_nodes.data_ptr())
            for block, real in zip(batch.blocks, expected.blocks):
                counts = [real.num_src_nodes, real.num_dst_nodes, real.num_edges]
                assert block.counts.tolist() == counts
                masks = block.src_mask, block.dst_mask, block.edge_mask
                assert [int(mask.sum()) for mask in masks] == counts
                assert block.edge_mask[:counts[2]].all()
                # Edges that fill up are between rows that the batch does not use.
                src, dst = block.edge_index
                assert torch.equal(block.edge_index[:, :counts[2]], real.edge_index)
                assert torch.equal(torch.stack(block.coo()).long(), block.edge_index)
                assert (src[counts[2]:] >= counts[0]).all() and (dst[counts[2]:] >= counts[1]).all()
                assert (src < block.num_src_nodes).all() and (dst < block.num_dst_nodes).all()
            assert int(batch.seed_mask.sum()) == len(expected.output_nodes)
            assert int(batch.node_mask.sum()) == len(expected.input_nodes)
        assert len(seen) == 1
    assert fixed.capacities[1].num_nodes >= 64
"""
    run_with_driver(emulator, PRELUDE + code)


def test_trees_factors_and_frontiers_of_what_was_found(emulator: Path) -> None:
    """What the kernel of graphs with types makes of others, of those with repeated seeds too."""
    code = """
graphs = [make_graph(torch.int32, ids=True).to("cuda"), make_graph(torch.int64).to("cuda")]
x = torch.randn(1000, 3)
for wide, fanouts, how, most in (
    (0, [5, 3], dict(frontier="new"), [(1064, 960), (256, 192)]),
    (1, [3, 4, 3], dict(frontier="new", prob="w"), [(1064, 2304), (1024, 768), (256, 192)]),
    (0, [-1, 2], dict(frontier="new", disjoint=True), None),
    (1, [5, 3], dict(disjoint=True), [(256 * 6, 256 * 5), (256, 192)]),
    (0, [5, 3], dict(prob="w", edge_weights="ht"), [(1064, 1280), (256, 192)]),
    (1, [5, 3], dict(prob="w", edge_weights="ht", replace=True, frontier="new"), None),
):
    sampler = pgs.PGSampler(fanouts, seed=3, **how)
    options = dict(batch_size=64, shuffle=True, seed=3)
    eager = DataLoader(graphs[wide], SEEDS, sampler, **options)
    for capacities in (True, *(["max"] if most else []), [(70, 9)] * len(fanouts)):
        eager.set_epoch(0)
        fixed = DataLoader(
            graphs[wide], SEEDS, sampler, static=capacities, **options
        )
        if capacities == "max":
            assert fixed.capacities == most, fixed.capacities
        for _ in range(2):
            for expected, batch in zip(eager, fixed, strict=True):
                made = batch.trimmed()
                assert_equal(made, expected)
                assert (made.subgraph_ids is None) == (not sampler.disjoint)
                assert (expected.subgraph_ids is None) == (not sampler.disjoint)
                if made.subgraph_ids is not None:
                    assert made.subgraph_ids.tolist() == expected.subgraph_ids.tolist()
                    assert (batch.subgraph_ids[len(made.subgraph_ids):] == 64).all()
                used, room = len(expected.input_nodes), len(batch.input_nodes)
                assert int(batch.node_mask.sum()) == used
                new = sampler.frontier == "new"
                for block, real, own in zip(batch.blocks, expected.blocks, made.blocks):
                    counts = [real.num_src_nodes, real.num_dst_nodes, real.num_edges]
                    assert block.counts.tolist() == counts
                    assert own.dst_offset == real.dst_offset == int(block.dst_offset)
                    assert (own.edge_weights is None) == (real.edge_weights is None)
                    if own.edge_weights is not None:
                        assert own.edge_weights.tolist() == real.edge_weights.tolist()
                        assert not block.edge_weights[counts[2]:].any()
                    assert torch.equal(block.edge_index[:, :counts[2]], real.edge_index)
                    src, dst = block.edge_index[:, counts[2]:]
                    assert (src >= (used if new else counts[0])).all()
                    assert (dst >= (used if new else counts[1])).all()
                    assert torch.equal(block.dst_index[:counts[1]], real.dst_index)
                    assert block.num_src_nodes == room or not new
        assert (fixed._static.epochs.remade > 0) == isinstance(capacities, list)
assert SEEDS.unique().numel() < SEEDS.numel()
"""
    run_with_driver(emulator, PRELUDE + code)


def test_batches_that_need_more_room_get_it(emulator: Path) -> None:
    code = """
graph = make_graph().to("cuda")
options = dict(batch_size=64, shuffle=True, seed=3)
eager = DataLoader(graph, SEEDS, [5, 3], **options)
small = DataLoader(graph, SEEDS, [5, 3], static=[(70, 9), (64, 1)], **options)
assert small.capacities == [(70, 9), (64, 1)]
for _ in range(2):
    for expected, batch in zip(eager, small, strict=True):
        assert_equal(batch.trimmed(), expected)
assert small._static.epochs.remade > 0
most = small.capacities
assert most[0][0] > 70 and most[1][1] > 1
# As small again, the next loader needs none.
again = DataLoader(graph, SEEDS, [5, 3], static=most, **options)
assert len([batch for _ in range(2) for batch in again]) and again._static.epochs.remade == 0
assert pickle.loads(pickle.dumps(again)).capacities == again.capacities == most
# A rank that never has as many seeds as a batch may have.
few = dict(batch_size=90, seed=3, rank=1, world_size=3)
eager = DataLoader(graph, range(100), [1], **few)
fixed = DataLoader(graph, range(100), [1], static=True, **few)
assert [content(batch.trimmed()) for batch in fixed] == [content(batch) for batch in eager]
"""
    run_with_driver(emulator, PRELUDE + code)


def test_the_most_that_a_batch_can_need(emulator: Path) -> None:
    code = """
graph = make_graph().to("cuda")
options = dict(batch_size=64, shuffle=True, seed=3)
for replace in (False, True):
    sampler = pgs.PGSampler([5, 3], seed=3, replace=replace)
    eager = DataLoader(graph, SEEDS, sampler, **options)
    fixed = DataLoader(graph, SEEDS, sampler, static="max", **options)
    # 64 seeds have 3 edges each at most; their ends have 5. All sources but seeds are distinct.
    assert fixed.capacities == [(64 + 1000, 5 * 256), (256, 3 * 64)]
    for _ in range(3):
        for expected, batch in zip(eager, fixed, strict=True):
            assert_equal(batch.trimmed(), expected)
    assert fixed._static.epochs.remade == 0
    assert fixed.capacities == [(64 + 1000, 5 * 256), (256, 3 * 64)]
# Every seed of a graph in which all have more neighbours than asked for, and no two the same one.
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
    DataLoader(graph, SEEDS, [-1, 3], static="max", **options)
"""
    run_with_driver(emulator, PRELUDE + code)


def test_rows_of_static_batches_are_counted(emulator: Path) -> None:
    """Those that are read, of each batch; and features that are refused stay refused."""
    code = """
graph, x = make_graph().to("cuda"), torch.randn(1000, 4)
options = dict(batch_size=64, shuffle=True, seed=3)
for policy in (None, "degree", "exact"):
    given = Features.from_tensor(x)
    if policy:
        given = given.cache(rows=200, policy=policy)
    eager = DataLoader(graph, SEEDS, [5, 3], **options)
    fixed = DataLoader(graph, SEEDS, [5, 3], static=True, features={"x": given}, **options)
    for _ in range(3):
        near = 0
        held = None
        for expected, batch in zip(eager, fixed, strict=True):
            assert torch.equal(batch.x[:len(expected.input_nodes)], x[expected.input_nodes])
            assert torch.equal(batch.x, x[batch.input_nodes])
            if policy:
                held = given._cache.cached_rows() if held is None else held
                near += int(torch.isin(batch.input_nodes, held).sum())
        told = fixed.stats()["features"]["x"]
        rows = len(eager) * len(batch.input_nodes)
        assert (told["reads"], told["rows"]) == (len(eager), rows)
        if policy:
            assert told["hits"] == near > 0
            assert told["bytes"] == {"cuda:0": 16 * near, "pinned": 16 * (rows - near)}
lru = Features.from_tensor(x).cache(rows=200, policy="lru")
fixed = DataLoader(graph, SEEDS, [5, 3], static=True, features={"x": lru}, **options)
for _ in range(2):
    with pytest.raises(ValueError, match="a cache that does not change while it is read"):
        next(iter(fixed))
"""
    run_with_driver(emulator, PRELUDE + ROWS + code)


def test_layers_of_pyg_ignore_what_fills_up(emulator: Path) -> None:
    """Outputs and gradients of the layers that are timed, with either kind of edges."""
    partner("torch_geometric")
    code = """
import warnings
warnings.simplefilter("ignore")
from benchmarks import models
from benchmarks.gpu.pyg_steps import LAYERS, LAYOUTS, OfPyg

models.FEATURES, models.HIDDEN, models.CLASSES = 12, 16, 5
graph, x = make_graph().to("cuda"), torch.randn(1000, 12)
options = dict(batch_size=64, shuffle=True, seed=3)
eager = DataLoader(graph, SEEDS, [5, 3], **options)
fixed = DataLoader(graph, SEEDS, [5, 3], static=True, **options)

def trained(batch, model, seeds, ways):
    batch._attach("x", x[batch.input_nodes.long()])
    model.zero_grad()
    out = model(batch)[:seeds]
    out.backward(ways)
    return out.detach(), [each.grad.clone() for each in model.parameters()]

for _, (expected, batch) in zip(range(3), zip(eager, fixed, strict=True)):
    seeds = len(expected.output_nodes)
    ways = torch.randn(seeds, 5)
    for name in LAYERS:
        found = []
        for layout in LAYOUTS:
            torch.manual_seed(0)
            model = OfPyg(name, 2, layout)
            # On the host: layers reduce what lies there.
            found += trained(expected.to("cpu"), model, seeds, ways), trained(
                batch, model, seeds, ways
            )
        (want, slopes), *others = found
        assert want.abs().max() > 0.01 and len(slopes) >= 4
        for out, gradients in others:
            torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5)
            for mine, theirs in zip(gradients, slopes, strict=True):
                torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)
"""
    run_with_driver(emulator, PRELUDE + code)


def test_which_batch_is_captured(emulator: Path) -> None:
    """Never the first of an epoch: what came into a cache then is waited for by a call."""
    code = """
def captured(self, passes, begun, step):
    assert self._stream is stream
    at.append(step)
    replayed(self, passes, begun, step)

capture.CapturedLoop._capture = captured
graph, stream = make_graph().to("cuda"), Stream()
options = dict(batch_size=64, shuffle=True, seed=3)
for warmup, expected in ((1, 1), (3, 3), (5, 1), (6, 1), (7, 2), (10, 1)):
    fixed = DataLoader(graph, SEEDS, [5, 3], static="max", **options)
    eager = DataLoader(graph, SEEDS, [5, 3], **options)
    assert len(fixed) == 5
    at = []
    loop = capture.capture(lambda batch: batch.trimmed(), fixed, warmup=warmup, stream=stream)
    for _ in range(4):
        for mine, theirs in zip(loop, eager, strict=True):
            assert mine.input_nodes.equal(theirs.input_nodes)
    assert at == [expected], (warmup, at)
with pytest.raises(ValueError, match="one that can be captured, got the default stream"):
    capture.capture(print, fixed, stream=Default())
"""
    run_with_driver(emulator, PRELUDE + REPLAYS + code)


def test_one_pass_at_a_time(emulator: Path) -> None:
    code = """
graph = make_graph().to("cuda")
loader = DataLoader(graph, SEEDS, [5, 3], static=True, batch_size=64, seed=3)
first = iter(loader)
next(first)
held = next(first).trimmed()
second = iter(loader)
batch = next(second)
with pytest.raises(pgs.Error, match="one epoch at a time"):
    next(first)
eager = list(DataLoader(graph, SEEDS, [5, 3], batch_size=64, seed=3))
assert_equal(held, eager[1])
with pytest.raises(TypeError, match="trimmed"):
    pickle.dumps(batch)
# Another seed is another sampler, in other memory.
loader.set_seed(4)
eager = DataLoader(graph, SEEDS, [5, 3], batch_size=64, seed=4)
assert [content(b.trimmed()) for b in loader] == [content(b) for b in eager]
# Who leaves in the middle may come back.
next(iter(loader))
assert len(list(loader)) == len(loader)
graph.close()
with pytest.raises(pgs.errors.ClosedError):
    next(iter(loader))
"""
    run_with_driver(emulator, PRELUDE + code)


def test_what_cannot_be_static(emulator: Path) -> None:
    code = """
graph = make_graph()
there = graph.to("cuda")
options = dict(batch_size=64, static=True)
with pytest.raises(ValueError, match="static: expected a graph on a CUDA device, got one on the C"):
    DataLoader(graph, SEEDS, [5, 3], **options)
for mode in ("queue", "bsp"):
    sampler = pgs.PGSampler([5, 3], mode=mode)
    with pytest.raises(ValueError, match=f"static: expected a sampler of mode .*, got '{mode}'"):
        DataLoader(there, SEEDS, sampler, **options)
for given, error, text in (
    ([(1, 2)], ValueError, "a pair of sizes for each of 2 blocks"), (3, ValueError, "got int 3"),
    ("least", ValueError, "True, False or 'max', got str 'least'"),
    ([(1, 2), 3], TypeError, r"static\\[1\\]: expected \\(num_nodes, num_edges\\)"),
    ([(0, 2), (1, 2)], ValueError, r"static\\[0\\]\\[0\\]: expected an integer >= 1, got 0"),
):
    with pytest.raises(error, match=text):
        DataLoader(there, SEEDS, [5, 3], **{**options, "static": given})
with pytest.raises(ValueError, match="loader: expected a loader with static=True"):
    pgs.torch.capture(print, DataLoader(there, SEEDS, [5, 3], batch_size=64))
with pytest.raises(TypeError, match="step: expected a function"):
    pgs.torch.capture(3, DataLoader(there, SEEDS, [5, 3], **options))
with pytest.raises(TypeError, match="stream: expected a torch.cuda.Stream or None, got int 3"):
    pgs.torch.capture(print, DataLoader(there, SEEDS, [5, 3], **options), stream=3)
"""
    run_with_driver(emulator, PRELUDE + code)
