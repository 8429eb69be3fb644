"""DataLoader(static=True) of graphs with types, and by time, through the engine on the emulator.

tests/cuda/test_static_hetero.py has streams and captures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver
from tests.support.partners import partner
from tests.support.static_scripts import PRELUDE, ROWS, TYPED

pytestmark = pytest.mark.once

PRELUDE += (
    TYPED
    + """
TYPED_SEEDS = {"a": torch.arange(70), "b": torch.arange(90) % 60}
"""
)


def test_trimmed_batches_are_those_of_a_loader_without(emulator: Path) -> None:
    """Whatever the sampler; what fills them up is harmless."""
    code = """
by_time = {"seed_time": {"a": torch.arange(70) % 50, "b": torch.arange(90) % 40}}
by_float = {"seed_time": {kind: of / 100.0 - 0.3 for kind, of in by_time["seed_time"].items()}}
before = Temporal("f", inclusive=False, carry="edge")
ranks = {"drop_last": True, "rank": 1, "world_size": 3, "batch_size": 20}
kinds = [("a", "r", "b"), ("b", "s", "a"), ("a", "t", "a"), ("b", "e", "alone")]
graphs = [typed_graph(dtype).to("cuda") for dtype in (torch.int32, torch.int64)]
for wide, sampler, more in (
    (0, pgs.PGSampler([5, 3], seed=3), {}),
    (1, pgs.PGSampler([{kinds[0]: 4, kinds[1]: -1}, 3], default_fanout=2, seed=3), ranks),
    (0, pgs.PGSampler([5, 3], seed=3, prob="w"), {}),
    (1, pgs.PGSampler([5], seed=3, mask="m", replace=True), {}),
    (1, pgs.PGSampler([5, 3], seed=3, disjoint=True, edge_weights="ht"), {}),
    (0, pgs.PGSampler([4, 3], seed=3, temporal=Temporal("t", window=20)), by_time),
    (1, pgs.PGSampler([4, 3], seed=3, temporal=before, prob="w"), by_float),
):
    options = {"batch_size": 64, "shuffle": True} | more
    eager = DataLoader(graphs[wide], TYPED_SEEDS, sampler, **options)
    fixed = DataLoader(graphs[wide], TYPED_SEEDS, sampler, static=True, **options)
    assert fixed.static and fixed.capacities is None
    for _ in range(2):
        seen = set()
        for expected, batch in zip(eager, fixed, strict=True):
            seen.add(batch.input_nodes["a"].data_ptr())
            assert_equal(batch.trimmed(), expected)
            for kind in COUNTS:
                assert int(batch.node_mask[kind].sum()) == len(expected.input_nodes[kind])
                assert int(batch.seed_mask[kind].sum()) == len(expected.output_nodes[kind])
                assert (batch.input_nodes[kind] < COUNTS[kind]).all()
                if batch.subgraph_ids is not None:
                    rest = batch.subgraph_ids[kind][len(expected.input_nodes[kind]):]
                    assert (rest >= sum(map(len, expected.output_nodes.values()))).all()
            for hop, real_hop in zip(batch.blocks, expected.blocks, strict=True):
                for kind, block in hop.items():
                    real = real_hop[kind]
                    counts = [real.num_src_nodes, real.num_dst_nodes, real.num_edges]
                    assert block.counts.tolist() == counts
                    masks = block.src_mask, block.dst_mask, block.edge_mask
                    assert [int(mask.sum()) for mask in masks] == counts
                    src, dst = block.edge_index
                    assert torch.equal(block.edge_index[:, :counts[2]], real.edge_index)
                    assert (src[counts[2]:] >= counts[0]).all()
                    assert (dst[counts[2]:] >= counts[1]).all()
                    assert (src < block.num_src_nodes).all() and (dst < block.num_dst_nodes).all()
                    assert (block.edge_ids < max(graphs[wide][kind].num_edges, 1)).all()
                    if block.edge_weights is not None:
                        assert not block.edge_weights[counts[2]:].any()
        assert len(seen) <= 1 + fixed._static.epochs.remade
    nodes, edges = fixed.capacities[0]
    assert nodes["none"] == nodes["alone"] == edges["b", "e", "alone"] == 0 < nodes["a"]
"""
    run_with_driver(emulator, PRELUDE + code)


def test_frontiers_of_what_was_found(emulator: Path) -> None:
    """Destinations are elsewhere in each batch; edges of all hops may be joined."""
    code = """
by_time = {"seed_time": {"a": torch.arange(70) % 50, "b": torch.arange(90) % 40}}
kinds = [("a", "r", "b"), ("b", "s", "a"), ("a", "t", "a"), ("b", "e", "alone")]
graphs = [typed_graph(dtype).to("cuda") for dtype in (torch.int32, torch.int64)]
x = {kind: torch.randn(n, 4) for kind, n in COUNTS.items()}
for wide, how, more in (
    (0, dict(fanouts=[4, 3, 2]), {}),
    (1, dict(fanouts=[5, {kinds[0]: 4, kinds[1]: -1}, 3], default_fanout=2, prob="w"), {}),
    (0, dict(fanouts=[5, 3], disjoint=True, edge_weights="ht", replace=True), {}),
    (1, dict(fanouts=[4, 3, 3], temporal=Temporal("t", window=20)), by_time),
):
    sampler = pgs.PGSampler(how.pop("fanouts"), seed=3, frontier="new", **how)
    options = {"batch_size": 64, "shuffle": True} | more
    eager = DataLoader(graphs[wide], TYPED_SEEDS, sampler, **options)
    for capacities in (True, "max", [({}, {})] * len(sampler.fanouts)):
        if capacities == "max" and "default_fanout" in how:
            continue
        eager.set_epoch(0)
        fixed = DataLoader(
            graphs[wide], TYPED_SEEDS, sampler, static=capacities, **options
        )
        for expected, batch in zip(eager, fixed, strict=True):
            made = batch.trimmed()
            assert_equal(made, expected)
            used = {kind: len(ids) for kind, ids in expected.input_nodes.items()}
            room = {kind: len(ids) for kind, ids in batch.input_nodes.items()}
            for hop, real_hop, own in zip(batch.blocks, expected.blocks, made.blocks, strict=True):
                for kind, block in hop.items():
                    real, src_kind, dst_kind = real_hop[kind], kind[0], kind[2]
                    counts = [real.num_src_nodes, real.num_dst_nodes, real.num_edges]
                    assert block.counts.tolist() == counts
                    assert int(block.dst_offset) == real.dst_offset == own[kind].dst_offset
                    assert block.num_src_nodes == room[src_kind]
                    src, dst = block.edge_index
                    assert torch.equal(block.edge_index[:, :counts[2]], real.edge_index)
                    assert torch.equal(torch.stack(block.coo()).long(), block.edge_index)
                    assert block.coo()[1].dtype == block.indices.dtype
                    for ends, end in ((src, src_kind), (dst, dst_kind)):
                        rest = ends[counts[2]:]
                        assert (rest >= used[end]).all() and (rest < room[end]).all()
                    index = block.dst_index
                    assert torch.equal(index[:counts[1]], real.dst_index)
                    rest = index[counts[1]:]
                    assert (rest >= used[dst_kind]).all() and (rest < room[dst_kind]).all()
                    assert torch.equal(
                        block.dst_nodes[:counts[1]], batch.input_nodes[dst_kind][index[:counts[1]]]
                    )
                    assert (block.dst_nodes < COUNTS[dst_kind]).all()
            # Sums along all edges, as layers of PyG make them.
            for kind, index in batch.edge_index_dict.items():
                summed = torch.zeros(room[kind[2]], 4).index_add_(
                    0, index[1], x[kind[0]][batch.input_nodes[kind[0]]][index[0]]
                )
                index = expected.edge_index_dict[kind]
                want = torch.zeros(used[kind[2]], 4).index_add_(
                    0, index[1], x[kind[0]][expected.input_nodes[kind[0]]][index[0]]
                )
                torch.testing.assert_close(summed[:used[kind[2]]], want)
        assert (fixed._static.epochs.remade > 0) == isinstance(capacities, list)
    # A batch with rows of its own to take.
    block = batch.blocks[0]["a", "r", "b"]
    x_dst = torch.randn(len(batch.input_nodes["b"]), 3)
    own = x_dst.index_select(0, block.dst_index)
    assert torch.equal(own, x_dst[block.dst_index])
"""
    run_with_driver(emulator, PRELUDE + code)


def test_batches_that_need_more_room_get_it(emulator: Path) -> None:
    code = """
graph = typed_graph().to("cuda")
options = dict(batch_size=64, shuffle=True, seed=3)
small = [({"a": 70}, {("a", "r", "b"): 9}), ({}, {("b", "s", "a"): 1})]
eager = DataLoader(graph, TYPED_SEEDS, [5, 3], **options)
fixed = DataLoader(graph, TYPED_SEEDS, [5, 3], static=small, **options)
# A hop has room for what those before it have.
assert fixed.capacities[1][0] == {"a": 64, "b": 64, "none": 0, "alone": 0}
assert fixed.capacities[0][0] == {"a": 70, "b": 64, "none": 0, "alone": 0}
assert fixed.capacities[0][1]["b", "s", "a"] == 0
for _ in range(2):
    for expected, batch in zip(eager, fixed, strict=True):
        assert_equal(batch.trimmed(), expected)
assert fixed._static.epochs.remade > 0
# As small again, the next loader needs none.
most = fixed.capacities
again = DataLoader(graph, TYPED_SEEDS, [5, 3], static=most, **options)
assert len([batch for _ in range(2) for batch in again]) and again._static.epochs.remade == 0
again.__dict__["graph"] = None
assert pickle.loads(pickle.dumps(again._static.layout)).grown(most, most) == most
for replace, disjoint in ((False, False), (True, True)):
    sampler = pgs.PGSampler(
        [{("a", "r", "b"): 2}, 3], default_fanout=4, seed=3, replace=replace, disjoint=disjoint
    )
    fixed = DataLoader(graph, TYPED_SEEDS, sampler, static="max", **options)
    inner = dict.fromkeys(graph.edge_types, 192) | {("b", "e", "alone"): 0}
    nodes = {"a": 448, "b": 256, "none": 0, "alone": 0}
    if not disjoint:
        nodes = {"a": 300, "b": 200, "none": 0, "alone": 0}
    assert fixed.capacities[1] == (nodes, inner)
    assert fixed.capacities[0][1]["a", "r", "b"] == 2 * nodes["b"]
    eager = DataLoader(graph, TYPED_SEEDS, sampler, **options)
    for expected, batch in zip(eager, fixed, strict=True):
        assert_equal(batch.trimmed(), expected)
    assert fixed._static.epochs.remade == 0
"""
    run_with_driver(emulator, PRELUDE + code)


def test_rows_and_layers(emulator: Path) -> None:
    """Features, labels and features of edges by type; sums are those without the rest."""
    code = """
graph = typed_graph().to("cuda")
x = {kind: torch.randn(n, 4) for kind, n in COUNTS.items()}
y = {"a": torch.randint(0, 5, (300,)), "b": torch.rand(200)}
e = {("a", "r", "b"): torch.randn(2000, 2)}
options = dict(batch_size=64, shuffle=True, seed=3)
eager = DataLoader(graph, TYPED_SEEDS, [5, 3], **options)
fixed = DataLoader(
    graph, TYPED_SEEDS, [5, 3], static=True, features={"x": x}, labels=y, edge_features={"e": e},
    **options,
)
for expected, batch in zip(eager, fixed, strict=True):
    made = batch.trimmed()
    for kind, ids in expected.input_nodes.items():
        assert torch.equal(made.x[kind], x[kind][ids])
    for kind, of in y.items():
        seeds = expected.output_nodes[kind]
        assert torch.equal(made.y[kind], of[seeds])
        assert (batch.y[kind][len(seeds):] == (-100 if kind == "a" else 0)).all()
    for hop, real_hop in zip(made.blocks, expected.blocks, strict=True):
        assert torch.equal(hop["a", "r", "b"].e, e["a", "r", "b"][real_hop["a", "r", "b"].edge_ids])
    summed = []
    for block, rows in (
        (batch.blocks[0], batch.x["a"]), (expected.blocks[0], x["a"][expected.input_nodes["a"]])
    ):
        block = block["a", "r", "b"]
        src, dst = block.edge_index
        summed.append(torch.zeros(block.num_dst_nodes, 4).index_add_(0, dst, rows[src]))
    assert torch.equal(summed[0][:len(summed[1])], summed[1])
assert fixed.stats()["features"]["x['a']"]["reads"] == len(eager)
"""
    run_with_driver(emulator, PRELUDE + ROWS + code)


def test_frames_of_types(emulator: Path) -> None:
    """Tensors of a frame stay where they are; trimmed ones have the rows of the batch."""
    partner("torch_frame")
    code = """
import warnings
warnings.simplefilter("ignore")
import torch_frame
from torch_frame.data import MultiEmbeddingTensor
from pygsampler._loader import feature_fetcher

frame_on = feature_fetcher.frame_on
feature_fetcher.frame_on = lambda frame, device: frame_on(frame, "cpu")
kinds = torch_frame.numerical, torch_frame.embedding
frames = {
    kind: torch_frame.TensorFrame(
        {kinds[0]: torch.randn(n, 3), kinds[1]: MultiEmbeddingTensor.from_tensor_list(
            [torch.randn(n, 2), torch.randn(n, 4)])},
        {kinds[0]: ["a", "b", "c"], kinds[1]: ["d", "e"]},
    )
    for kind, n in COUNTS.items()
}
graph = typed_graph().to("cuda")
options = dict(batch_size=64, shuffle=True, seed=3)
eager = DataLoader(graph, TYPED_SEEDS, [5, 3], **options)
fixed = DataLoader(graph, TYPED_SEEDS, [5, 3], static=True, features={"tf": frames}, **options)
places = set()
for expected, batch in zip(eager, fixed, strict=True):
    made = batch.trimmed()
    places.add(batch.tf["a"].feat_dict[kinds[1]].values.data_ptr())
    assert sum(map(len, expected.input_nodes.values())) > 64
    for kind, ids in expected.input_nodes.items():
        assert made.tf[kind] == frames[kind][ids.long()]
        assert batch.tf[kind] == frames[kind][batch.input_nodes[kind].long()]
assert len(places) == 1
assert fixed.stats()["features"]["tf.embedding['a']"]["reads"] == len(eager)
"""
    run_with_driver(emulator, PRELUDE + ROWS + code)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_batches_by_time(emulator: Path, dtype: str) -> None:
    """Of a graph without types: those of a loader without static, trees too."""
    code = f"""
random = torch.Generator().manual_seed(7)
edges = torch.randint(0, 400, (2, 6000), generator=random).to(torch.{dtype})
times = torch.randint(0, 50, (6000,), generator=random)
data = {{"t": times, "f": times / 10.0, "w": torch.rand(6000, generator=random)}}
node_times = torch.randint(0, 50, (400,), generator=random)
graph = pgs.Graph.from_coo(
    *edges, num_nodes=400, edge_data=data, node_data={{"n": node_times}}
).to("cuda")
seeds, bounds = torch.arange(150) % 140, torch.arange(150) % 50
for rule, of, options in (
    (Temporal("t", window=20), bounds, {{}}),
    (Temporal("f", "last", inclusive=False), bounds / 10.0, {{}}),
    (Temporal("n", carry="edge"), bounds, dict(edge_weights="ht")),
    (Temporal("t"), bounds, dict(prob="w", replace=True)),
):
    sampler = pgs.PGSampler([4, 3], seed=2, temporal=rule, **options)
    about = dict(batch_size=40, shuffle=True, seed=5, seed_time=of, rank=1, world_size=2)
    eager = DataLoader(graph, seeds, sampler, **about)
    for capacities in (True, "max", [(50, 40), (41, 3)]):
        fixed = DataLoader(graph, seeds, sampler, static=capacities, **about)
        for _ in range(2 if capacities is True else 1):
            for expected, batch in zip(eager, fixed, strict=True):
                made = batch.trimmed()
                assert_equal(made, expected)
                assert made.subgraph_ids.tolist() == expected.subgraph_ids.tolist()
                assert (batch.subgraph_ids[len(made.subgraph_ids):] == 40).all()
                assert batch.counts.tolist()[0] == len(made.output_nodes)
                assert int(batch.seed_mask.sum()) == len(made.output_nodes)
                for block, real in zip(made.blocks, expected.blocks, strict=True):
                    weights = block.edge_weights, real.edge_weights
                    assert (weights[0] is None) == (weights[1] is None)
                    assert weights[0] is None or weights[0].tolist() == weights[1].tolist()
        eager.set_epoch(0)
        assert (fixed._static.epochs.remade > 0) == (type(capacities) is list)
    fixed = DataLoader(graph, seeds, sampler, static="max", **about)
    assert fixed.capacities == [(160 * 5, 4 * 160), (160, 120)]
"""
    run_with_driver(emulator, PRELUDE + code)


def test_what_cannot_be_static(emulator: Path) -> None:
    code = """
graph = typed_graph()
there = graph.to("cuda")
options = dict(batch_size=64, static=True)
with pytest.raises(ValueError, match="static: expected a graph on a CUDA device, got one on the C"):
    DataLoader(graph, TYPED_SEEDS, [5, 3], **options)
with pytest.raises(TypeError, match="static: expected a PGSampler"):
    DataLoader(there, TYPED_SEEDS, pgs.LaborSampler([5, 3]), **options)
for given, error, text in (
    ([({}, {})], ValueError, "a pair of mappings for each of 2 hops"),
    ([({}, {}), 3], TypeError, r"static\\[1\\]: expected mappings of node types and of edge"),
    ([({}, {}), ({"z": 1}, {})], ValueError, r"\\[1\\]\\[0\\]: expected types of the graph"),
    ([({}, {}), ([], {})], TypeError, r"static\\[1\\]\\[0\\]: expected a mapping of types"),
    ([({}, {}), ({"a": -1}, {})], ValueError, r"\\[0\\]\\['a'\\]: expected an integer >= 0"),
    ([({}, {}), ({}, {("b", "e", "alone"): 2})], ValueError, "no room for .* type 'alone'"),
):
    with pytest.raises(error, match=text):
        DataLoader(there, TYPED_SEEDS, [5, 3], **{**options, "static": given})
with pytest.raises(ValueError, match="with a fanout of -1, which has no bound"):
    DataLoader(there, TYPED_SEEDS, [-1, 3], **{**options, "static": "max"})
loader = DataLoader(there, TYPED_SEEDS, [5, 3], **options)
batch = next(iter(loader))
for name in ("num_sampled_nodes", "num_sampled_edges", "edge_index_dict"):
    with pytest.raises(AttributeError, match=f"{name}: expected a batch .* got a static one"):
        getattr(batch, name)
with pytest.raises(TypeError, match="trimmed"):
    pickle.dumps(batch)
assert batch.num_edges == sum(b.num_edges for hop in batch.blocks for b in hop.values())
# No seeds at all.
empty = {"a": torch.arange(0)}
assert list(DataLoader(there, empty, [5], **options)) == []
there.close()
with pytest.raises(pgs.errors.ClosedError):
    next(iter(loader))
"""
    run_with_driver(emulator, PRELUDE + code)
