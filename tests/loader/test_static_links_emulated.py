"""LinkLoader(static=True) through the CUDA engine and its kernels, on the emulator.

tests/cuda/test_static_links.py has streams and captures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu import run_with_driver
from tests.support.static_scripts import LINKS, PRELUDE, REPLAYS, TYPED

pytestmark = pytest.mark.once

PRELUDE += (
    TYPED
    + LINKS
    + """
from pygsampler.torch import LinkLoader, NegativeSampling

def rows(fields):
    # What a batch says of its links.
    return [
        {kind: each.tolist() for kind, each in of.items()} if isinstance(of, dict)
        else None if of is None else of.tolist()
        for of in fields
    ]
"""
)


def test_trimmed_batches_are_those_of_a_loader_without(emulator: Path) -> None:
    """Links, negatives and labels too; what fills them up are rows that no seed has."""
    code = """
graph, edges = make_graph(torch.int32, ids=True).to("cuda"), torch.arange(0, 1500, 4)
pairs = torch.stack([torch.arange(200), torch.arange(200).flip(0) + 300])
ones = torch.ones(1000)
for given, options in (
    (edges, {}),
    (edges, {"negative_sampling": NegativeSampling("structural", 2), "prob": "w"}),
    (pairs, {"negative_sampling": NegativeSampling("uniform", 3, src_weight=ones), "rank": 1,
             "world_size": 3}),
    (edges, {"negative_sampling": NegativeSampling("in_batch", 2, mode="triplet"),
             "drop_last": True}),
    (pairs, {"labels": torch.arange(200)}),
    # Far fewer seeds than there might be.
    (pairs % 3, {"negative_sampling": NegativeSampling("in_batch", 2)}),
    (pairs, {"labels": torch.rand(200, 3), "negative_sampling": NegativeSampling(mode="triplet")}),
):
    sampler = pgs.PGSampler([5, 3], prob=options.pop("prob", None), seed=3)
    options |= dict(batch_size=64, shuffle=True, seed=3, exclude=None)
    eager = LinkLoader(graph, given, sampler, **options)
    fixed = LinkLoader(graph, given, sampler, static=True, **options)
    assert fixed.static and not eager.static and fixed.capacities is None
    for _ in range(2):
        seen = set()
        for expected, batch in zip(eager, fixed, strict=True):
            made = batch.trimmed()
            assert_equal(made.minibatch, expected.minibatch)
            assert rows(made[1:]) == rows(expected[1:])
            for mine, theirs in zip(made[1:], expected[1:], strict=True):
                assert mine is None or mine.dtype == theirs.dtype
            seen.add((batch.minibatch.input_nodes.data_ptr(), batch.input_id.data_ptr()))
            edges_, links_ = batch.counts.tolist()
            assert batch.edge_mask.tolist() == [i < edges_ for i in range(len(batch.input_id))]
            assert int(batch.link_mask.sum()) == links_
            seeds, room = len(made.minibatch.output_nodes), len(batch.minibatch.output_nodes)
            index = batch.edge_label_index
            if index is None:
                rest = [of[edges_:] for of in batch[4:7]]
            else:
                assert len(batch.link_mask) == index.shape[1]
                rest = [index[:, links_:]]
            for of in rest:
                assert (of >= seeds).all() and (of < room).all()
            if batch.edge_label is not None:
                whole = batch.edge_label.dtype == torch.int64
                assert (batch.edge_label[links_:] == (-100 if whole else 0)).all()
        assert len(seen) == 1
        assert rows(batch.to("cpu")[1:]) == rows(expected[1:])
        with pytest.raises(TypeError, match="got a static one; see trimmed"):
            pickle.dumps(batch)
"""
    run_with_driver(emulator, PRELUDE + code)


def test_links_of_graphs_with_types(emulator: Path) -> None:
    """Of several relations, how many of which changes from batch to batch; by time, with trees."""
    code = """
graph = typed_graph().to("cuda")
r, s = ("a", "r", "b"), ("b", "s", "a")
# Between types of the graph, of a relation that has no edges.
new = ("a", "new", "alone")
given = {r: torch.arange(0, 2000, 9), new: torch.stack([torch.arange(60), torch.arange(60) % 40])}
given[s] = torch.arange(0, 1500, 20)
negatives = {r: NegativeSampling("structural", 2), new: NegativeSampling(amount=3, mode="triplet")}
sizes = set()
when = {kind: torch.arange(of.shape[-1]) % 50 for kind, of in given.items()}
for sampler, more in (
    (pgs.PGSampler([5, 3], seed=3), {}),
    (pgs.PGSampler([5, 3], seed=3), {"rank": 2, "world_size": 5}),
    (pgs.PGSampler([4], seed=3, disjoint=True, edge_weights="ht"), {"labels": {s: when[s]}}),
    (pgs.PGSampler([4, 3], seed=3, temporal="t"), {"seed_time": when, "rank": 1, "world_size": 2}),
):
    options = dict(batch_size=90, shuffle=True, exclude=None, negative_sampling=negatives) | more
    eager = LinkLoader(graph, given, sampler, **options)
    for capacities in (True, "max"):
        fixed = LinkLoader(graph, given, sampler, static=capacities, **options)
        for expected, batch in zip(eager, fixed, strict=True):
            made = batch.trimmed()
            assert_equal(made.minibatch, expected.minibatch)
            assert rows(made[1:]) == rows(expected[1:])
            sizes.add(tuple(int(of[0]) for of in batch.counts.values()))
            seeds = {kind: len(ids) for kind, ids in expected.minibatch.output_nodes.items()}
            room = {kind: len(ids) for kind, ids in batch.minibatch.output_nodes.items()}
            for kind, index in batch.edge_label_index.items():
                rest = index[:, int(batch.counts[kind][1]):]
                assert int(batch.link_mask[kind].sum()) == index.shape[1] - rest.shape[1]
                for end, of in zip((kind[0], kind[2]), rest):
                    assert (of >= seeds[end]).all() and (of < room[end]).all()
            for kind, mask in batch.edge_mask.items():
                assert int(mask.sum()) == len(expected.input_id[kind])
        assert fixed._static.epochs.remade == 0
        eager.set_epoch(0)
assert len(sizes) > 4
"""
    run_with_driver(emulator, PRELUDE + code)


def test_links_by_time_without_types(emulator: Path) -> None:
    """A batch that needs more room gets it; passes go on, and are pickled."""
    code = """
random = torch.Generator().manual_seed(7)
ends = torch.randint(0, 400, (2, 6000), generator=random)
times = torch.randint(0, 50, (6000,), generator=random)
data = {"t": times, "f": times / 10.0}
graph = pgs.Graph.from_coo(*ends, num_nodes=400, edge_data=data).to("cuda")
edges = torch.arange(0, 6000, 40)
for time, of in (("t", times), ("f", times / 10.0)):
    sampler = pgs.PGSampler([4, 3], seed=2, temporal=Temporal(time, inclusive=False))
    options = dict(
        batch_size=40, shuffle=True, seed=5, seed_time=of[edges], exclude=None,
        negative_sampling=NegativeSampling("structural"),
    )
    eager = LinkLoader(graph, edges, sampler, **options)
    small = [(170, 40), (165, 3)]
    fixed = LinkLoader(graph, edges, sampler, static=small, **options)
    for _ in range(2):
        for expected, batch in zip(eager, fixed, strict=True):
            made = batch.trimmed()
            assert_equal(made.minibatch, expected.minibatch)
            assert made.minibatch.subgraph_ids.tolist() == expected.minibatch.subgraph_ids.tolist()
            assert rows(made[1:]) == rows(expected[1:])
    assert fixed._static.epochs.remade > 0 and fixed.capacities[0] != small[0]
    again = pickle.loads(pickle.dumps(fixed))
    assert again.capacities == fixed.capacities and again.epoch == 2
    for expected, batch in zip(eager, again, strict=True):
        assert rows(batch.trimmed()[1:]) == rows(expected[1:])
    assert again.stats()["batches"] == len(fixed) and again._static.epochs.remade == 0
first, second = iter(fixed), iter(fixed)
next(first), next(second)
with pytest.raises(pgs.Error, match="one epoch at a time"):
    next(first)
"""
    run_with_driver(emulator, PRELUDE + code)


def test_edges_that_batches_leave_out(emulator: Path) -> None:
    """Their own, and the reverses: without types, by time, and with types; of another epoch too."""
    code = """
random = torch.Generator().manual_seed(7)
ends = torch.randint(0, 300, (2, 1500), generator=random)
both = torch.cat([ends, ends.flip(0)], 1)
times = torch.randint(0, 50, (3000,), generator=random)
data = {"w": torch.rand(3000, generator=random), "t": times}
graphs = [
    pgs.Graph.from_coo(*both.to(dtype), num_nodes=300, edge_data=data).to("cuda")
    for dtype in (torch.int32, torch.int64)
]
back = (torch.arange(3000) + 1500) % 3000
edges = torch.arange(0, 1500, 3)
for wide, how, more in (
    (0, {}, {}),
    (1, {}, {"exclude": "reverse_id", "reverse_eids": back}),
    (0, {"prob": "w"}, {"exclude": "reverse_id", "reverse_eids": back, "rank": 1, "world_size": 2}),
    (1, {"frontier": "new"}, {"drop_last": True}),
    (0, {"disjoint": True, "edge_weights": "ht", "prob": "w"}, {}),
    (1, {"temporal": "t", "replace": True}, {"seed_time": torch.arange(500) % 50}),
):
    sampler = pgs.PGSampler([6, -1 if not how else 4], seed=3, **how)
    options = dict(batch_size=64, shuffle=True, seed=5) | more
    options.setdefault("negative_sampling", NegativeSampling("structural"))
    eager = LinkLoader(graphs[wide], edges, sampler, **options)
    every = LinkLoader(graphs[wide], edges, sampler, **more_of_all(options))
    assert eager.exclude in ("self", "reverse_id")
    for capacities in (True, [(130, 40), (129, 3)]):
        eager.set_epoch(0)
        every.set_epoch(0)
        fixed = LinkLoader(
            graphs[wide], edges, sampler, static=capacities, **options
        )
        assert fixed.exclude == eager.exclude
        others = 0
        for _ in range(2):
            for expected, batch, whole in zip(eager, fixed, every, strict=True):
                made = batch.trimmed()
                assert_equal(made.minibatch, expected.minibatch)
                assert rows(made[1:]) == rows(expected[1:])
                others += content(expected.minibatch) != content(whole.minibatch)
                ids = edges[made.input_id]
                gone = torch.cat([ids, back[ids]]) if "reverse_eids" in more else ids
                blocks = made.minibatch.blocks, expected.minibatch.blocks
                for block, real in zip(*blocks, strict=True):
                    assert not torch.isin(block.edge_ids, gone).any()
                    weights = block.edge_weights, real.edge_weights
                    assert weights[0] is None or weights[0].tolist() == weights[1].tolist()
                trees = made.minibatch.subgraph_ids, expected.minibatch.subgraph_ids
                assert trees[0] is None or trees[0].tolist() == trees[1].tolist()
        assert others
        assert (fixed._static.epochs.remade > 0) == (capacities is not True)

graph = typed_graph().to("cuda")
r, s, t = ("a", "r", "b"), ("b", "s", "a"), ("a", "t", "a")
given = {r: torch.arange(0, 1500, 5), t: torch.arange(0, 900, 7)}
when = {kind: torch.arange(len(ids)) % 50 for kind, ids in given.items()}
turned, other = torch.arange(900).flip(0), torch.randperm(800, generator=random)

def with_others(ids):
    return {"r": ids[r], "s": other[ids[r]]}

reverse = pgs.Graph.from_coo(
    {r: torch.randint(0, 200, (2, 800), generator=random),
     s: torch.randint(0, 200, (2, 800), generator=random)}, num_nodes={"a": 300, "b": 200},
).to("cuda")
for of, links, how, more in (
    (graph, given, {}, {}),
    (graph, given, {"prob": "w", "frontier": "new"}, {"rank": 1, "world_size": 2}),
    (graph, {t: given[t]}, {"disjoint": True, "edge_weights": "ht"},
     {"exclude": "reverse_id", "reverse_eids": {t: turned}}),
    (graph, given, {"temporal": "t"}, {"seed_time": when}),
    (reverse, {r: torch.arange(0, 800, 3)}, {},
     {"exclude": "reverse_types", "reverse_etypes": {r: s, s: r}}),
    (reverse, {r: torch.arange(0, 800, 3)}, {},
     {"exclude": "reverse_id", "reverse_etypes": {r: s}, "reverse_eids": {r: other}}),
    (reverse, {r: torch.arange(0, 800, 3)}, {}, {"exclude": with_others}),
):
    sampler = pgs.PGSampler([5, 3], seed=3, **how)
    options = dict(batch_size=64, shuffle=True) | more
    options["negative_sampling"] = NegativeSampling("uniform")
    eager = LinkLoader(of, links, sampler, **options)
    fixed = LinkLoader(of, links, sampler, static=True, **options)
    for _ in range(2):
        for expected, batch in zip(eager, fixed, strict=True):
            made = batch.trimmed()
            assert_equal(made.minibatch, expected.minibatch)
            assert rows(made[1:]) == rows(expected[1:])
            for kind, places in made.input_id.items():
                for hop in made.minibatch.blocks:
                    assert not torch.isin(hop[kind].edge_ids, links[kind][places]).any()
                    if of is reverse:
                        back = links[kind][places]
                        if more["exclude"] != "reverse_types":
                            back = other[back]
                        assert not torch.isin(hop[s].edge_ids, back).any()
    again = pickle.loads(pickle.dumps(fixed))
    for expected, batch in zip(eager, again, strict=True):
        assert_equal(batch.trimmed().minibatch, expected.minibatch)
"""
    prelude = """
def more_of_all(options):
    # The same without leaving anything out.
    return {name: of for name, of in options.items() if name != "reverse_eids"} | {"exclude": None}
"""
    run_with_driver(emulator, PRELUDE + prelude + code)


def test_captured_links(emulator: Path) -> None:
    """The links of a batch are there before its launch, of one that needs more room too."""
    code = """
graph, edges = make_graph().to("cuda"), torch.arange(0, 1500, 4)
options = dict(batch_size=64, shuffle=True, seed=3, exclude=None)
options["negative_sampling"] = NegativeSampling()
eager = LinkLoader(graph, edges, [5, 3], **options)
small = [(300, 400), (192, 300)]
fixed = LinkLoader(graph, edges, [5, 3], static=small, **options)
loop = capture.capture(lambda batch: [batch.trimmed()], fixed, warmup=2, stream=Stream())
for _ in range(3):
    for (made,), expected in zip(loop, eager, strict=True):
        # A step that is replayed was told another number.
        for name in ("input_nodes", "output_nodes", "output_index", "blocks"):
            assert_equal(getattr(made.minibatch, name), getattr(expected.minibatch, name), name)
        assert rows(made[1:]) == rows(expected[1:])
assert loop.captured and fixed._static.epochs.remade > 0
with pytest.raises(TypeError, match="loader: expected a DataLoader or LinkLoader of pygsampler"):
    pgs.torch.capture(print, [])
"""
    run_with_driver(emulator, PRELUDE + REPLAYS + code)


def test_what_cannot_be_static(emulator: Path) -> None:
    code = """
graph, edges = make_graph(), torch.arange(300)
there = graph.to("cuda")
options = dict(batch_size=64, static=True, exclude=None)
with pytest.raises(ValueError, match="static: expected a graph on a CUDA device, got one on the C"):
    LinkLoader(graph, edges, [5, 3], **options)
with pytest.raises(TypeError, match="static: expected a PGSampler"):
    LinkLoader(there, edges, pgs.LaborSampler([5, 3], exact=True), **options)
with pytest.raises(ValueError, match="static: expected a pair of sizes for .*, got int 1"):
    LinkLoader(there, edges, [5, 3], batch_size=64, exclude=None, static=1)
with pytest.raises(ValueError, match="a pair of sizes for each of 2 blocks"):
    LinkLoader(there, edges, [5, 3], **{**options, "static": [(1, 2)]})
with pytest.raises(ValueError, match="shard_by: expected 'seeds' with static, got 'batches'"):
    LinkLoader(there, edges, [5, 3], shard_by="batches", **options)
with pytest.raises(ValueError, match="skip_batches: expected 0 with static, got 2"):
    LinkLoader(there, edges, [5, 3], skip_batches=2, **options)
with pytest.raises(ValueError, match="static: expected a sampler of mode .*, got 'bsp'"):
    LinkLoader(there, edges, pgs.PGSampler([5, 3], mode="bsp"), **options)
loader = LinkLoader(there, edges, [5, 3], **options)
state = loader.state_dict() | {"start": 3}
with pytest.raises(ValueError, match="one between epochs with static=True, got one after 3"):
    loader.load_state_dict(state)
with pytest.raises(ValueError, match="loader: expected a loader with static=True, got one without"):
    pgs.torch.capture(print, LinkLoader(there, edges, [5, 3], batch_size=64))
assert list(LinkLoader(there, edges[:0], [5, 3], **options)) == []
"""
    run_with_driver(emulator, PRELUDE + code)
