"""Static batches of links and captured steps on them: the ones of a plain loop."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from torch.nn import functional  # noqa: E402

from pygsampler.torch import LinkLoader, NegativeSampling, capture  # noqa: E402
from tests.support.assertions import assert_equal, content  # noqa: E402
from tests.support.parity import RESEARCH_MODES  # noqa: E402
from tests.support.static_batches import (  # noqa: E402
    assert_between,
    lengths,
    make_graph,
    small_hetero_graph,
)

pytestmark = pytest.mark.once
# Tests without it run on the emulator, too.
on_a_gpu = pytest.mark.usefixtures("gpu")
on_devices = pytest.mark.usefixtures("host_tensors")
NODES, WIDTH = 3000, 16
OPTIONS: dict[str, Any] = {"batch_size": 256, "shuffle": True, "exclude": None}
EDGES = torch.arange(0, 1500, 4)
PAIRS = torch.stack([torch.arange(200), torch.arange(200).flip(0) + 300])
# Edge types of the small graph, and one that it has no edges of.
R, S, T, NEW = ("a", "r", "b"), ("b", "s", "a"), ("a", "t", "a"), ("a", "new", "alone")


@pytest.fixture(scope="module")
def graph(torch: Any) -> pgs.Graph:
    random = torch.Generator().manual_seed(7)
    src, dst = torch.randint(0, NODES, (2, 40000), generator=random)
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES).to("cuda")


@pytest.fixture
def few(host_tensors: None) -> pgs.Graph:
    """A small graph on the device."""
    return make_graph(torch.int32, ids=True).to("cuda")


def loaders(
    graph: pgs.Graph, edges: Any, sampler: Any, static: Any = True, **options: Any
) -> tuple[LinkLoader, LinkLoader]:
    """A plain loader of links, and a static one."""
    options = {"batch_size": 64, "shuffle": True, "exclude": None, **options}
    plain = LinkLoader(graph, edges, sampler, **options)
    return plain, LinkLoader(graph, edges, sampler, static=static, **options)


def assert_links(batch: Any, expected: Any) -> Any:
    """Fails unless the trimmed batch is the batch of a plain loader; returns it."""
    trimmed = batch.trimmed()
    assert_equal(trimmed.minibatch, expected.minibatch)
    assert_equal(trimmed[1:], expected[1:])
    return trimmed


KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "edges": (EDGES, {}),
    "weighted": (
        EDGES,
        {"negative_sampling": NegativeSampling("structural", 2), "prob": "w"},
    ),
    "pairs of a rank": (
        PAIRS,
        {
            "negative_sampling": NegativeSampling("uniform", 3, src_weight=torch.ones(1000)),
            "rank": 1,
            "world_size": 3,
        },
    ),
    "triplets": (
        EDGES,
        {"negative_sampling": NegativeSampling("in_batch", 2, mode="triplet"), "drop_last": True},
    ),
    "integer labels": (PAIRS, {"labels": torch.arange(200)}),
    # Far fewer seeds than there might be.
    "few seeds": (PAIRS % 3, {"negative_sampling": NegativeSampling("in_batch", 2)}),
    "labels of triplets": (
        PAIRS,
        {"labels": torch.rand(200, 3), "negative_sampling": NegativeSampling(mode="triplet")},
    ),
}


@on_devices
@pytest.mark.parametrize("name", KINDS)
def test_batches_of_a_plain_loader(few: pgs.Graph, name: str) -> None:
    """Links, negatives and labels, too; rows that no seed has fill them up."""
    links, options = KINDS[name][0], {**KINDS[name][1]}
    sampler = pgs.PGSampler([5, 3], prob=options.pop("prob", None), seed=3)
    eager, fixed = loaders(few, links, sampler, seed=3, **options)
    assert fixed.static and not eager.static and fixed.capacities is None
    for _ in range(2):
        addresses = set()
        for expected, batch in zip(eager, fixed, strict=True):
            trimmed = assert_links(batch, expected)
            addresses.add((batch.minibatch.input_nodes.data_ptr(), batch.input_id.data_ptr()))
            num_edges, num_links = batch.counts.tolist()
            places = range(len(batch.input_id))
            assert batch.edge_mask.tolist() == [place < num_edges for place in places]
            assert int(batch.link_mask.sum()) == num_links
            seeds, room = len(trimmed.minibatch.output_nodes), len(batch.minibatch.output_nodes)
            index = batch.edge_label_index
            if index is None:
                padding = [rows[num_edges:] for rows in batch[4:7]]
            else:
                assert len(batch.link_mask) == index.shape[1]
                padding = [index[:, num_links:]]
            for rows in padding:
                assert_between(rows, seeds, room)
            if batch.edge_label is not None:
                label = -100 if batch.edge_label.dtype == torch.int64 else 0
                assert (batch.edge_label[num_links:] == label).all()
        assert len(addresses) == 1
        assert_equal(batch.to("cpu")[1:], expected[1:])
        with pytest.raises(TypeError, match="got a static one; see trimmed"):
            pickle.dumps(batch)


LINKS = {R: torch.arange(0, 2000, 9), NEW: torch.stack([torch.arange(60), torch.arange(60) % 40])}
LINKS[S] = torch.arange(0, 1500, 20)
TIMES = {kind: torch.arange(links.shape[-1]) % 50 for kind, links in LINKS.items()}
TYPED: dict[str, tuple[pgs.PGSampler, dict[str, Any]]] = {
    "uniform": (pgs.PGSampler([5, 3], seed=3), {}),
    "a rank": (pgs.PGSampler([5, 3], seed=3), {"rank": 2, "world_size": 5}),
    "trees": (
        pgs.PGSampler([4], seed=3, disjoint=True, edge_weights="ht"),
        {"labels": {S: TIMES[S]}},
    ),
    "temporal": (
        pgs.PGSampler([4, 3], seed=3, temporal="t"),
        {"seed_time": TIMES, "rank": 1, "world_size": 2},
    ),
}


@on_devices
def test_links_of_several_edge_types() -> None:
    """The number of links of each type changes from batch to batch."""
    graph = small_hetero_graph().to("cuda")
    negatives = {
        R: NegativeSampling("structural", 2),
        NEW: NegativeSampling(amount=3, mode="triplet"),
    }
    sizes = set()
    for sampler, options in TYPED.values():
        for static in (True, "max"):
            eager, fixed = loaders(
                graph, LINKS, sampler, static, batch_size=90, negative_sampling=negatives, **options
            )
            for expected, batch in zip(eager, fixed, strict=True):
                assert_links(batch, expected)
                sizes.add(tuple(int(counts[0]) for counts in batch.counts.values()))
                seeds = lengths(expected.minibatch.output_nodes)
                room = lengths(batch.minibatch.output_nodes)
                for kind, index in batch.edge_label_index.items():
                    padding = index[:, int(batch.counts[kind][1]) :]
                    links = index.shape[1] - padding.shape[1]
                    assert int(batch.link_mask[kind].sum()) == links
                    for end, rows in zip(kind[::2], padding, strict=True):
                        assert_between(rows, seeds[end], room[end])
                for kind, mask in batch.edge_mask.items():
                    assert int(mask.sum()) == len(expected.input_id[kind])
            assert fixed._static.epochs.remade == 0
    assert len(sizes) > 4


@on_devices
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_temporal_links_of_a_homogeneous_graph(dtype: str) -> None:
    """A batch that needs more room gets it; epochs go on, also of a pickled loader."""
    random = torch.Generator().manual_seed(7)
    ends = torch.randint(0, 400, (2, 6000), generator=random)
    times = torch.randint(0, 50, (6000,), generator=random)
    times = times / 10.0 if dtype == "float32" else times
    graph = pgs.Graph.from_coo(*ends, num_nodes=400, edge_data={"t": times}).to("cuda")
    edges = torch.arange(0, 6000, 40)
    sampler = pgs.PGSampler([4, 3], seed=2, temporal=pgs.samplers.Temporal("t", inclusive=False))
    options: dict[str, Any] = {"batch_size": 40, "seed": 5, "seed_time": times[edges]}
    options["negative_sampling"] = NegativeSampling("structural")
    small = [(170, 40), (165, 3)]
    eager, fixed = loaders(graph, edges, sampler, small, **options)
    for _ in range(2):
        for expected, batch in zip(eager, fixed, strict=True):
            assert_links(batch, expected)
    assert fixed._static.epochs.remade > 0 and fixed.capacities[0] != small[0]
    again = pickle.loads(pickle.dumps(fixed))
    assert again.capacities == fixed.capacities and again.epoch == 2
    for expected, batch in zip(eager, again, strict=True):
        assert_links(batch, expected)
    assert again.stats()["batches"] == len(fixed) and again._static.epochs.remade == 0
    first, second = iter(fixed), iter(fixed)
    next(first), next(second)
    with pytest.raises(pgs.Error, match="one epoch at a time"):
        next(first)


REVERSE = (torch.arange(3000) + 1500) % 3000
LEFT_OUT: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "self": (torch.int32, {}, {}),
    "reverse": (torch.int64, {}, {"exclude": "reverse_id", "reverse_eids": REVERSE}),
    "reverse, weighted": (
        torch.int32,
        {"prob": "w"},
        {"exclude": "reverse_id", "reverse_eids": REVERSE, "rank": 1, "world_size": 2},
    ),
    "new": (torch.int64, {"frontier": "new"}, {"drop_last": True}),
    "trees": (torch.int32, {"disjoint": True, "edge_weights": "ht", "prob": "w"}, {}),
    "temporal": (
        torch.int64,
        {"temporal": "t", "replace": True},
        {"seed_time": torch.arange(500) % 50},
    ),
}


@on_devices
@pytest.mark.parametrize("name", LEFT_OUT)
def test_edges_that_batches_leave_out(name: str) -> None:
    dtype, how, options = LEFT_OUT[name]
    random = torch.Generator().manual_seed(7)
    ends = torch.randint(0, 300, (2, 1500), generator=random)
    both = torch.cat([ends, ends.flip(0)], 1).to(dtype)
    data = {
        "t": torch.randint(0, 50, (3000,), generator=random),
        "w": torch.rand(3000, generator=random),
    }
    graph = pgs.Graph.from_coo(*both, num_nodes=300, edge_data=data).to("cuda")
    edges = torch.arange(0, 1500, 3)
    sampler = pgs.PGSampler([6, 4 if how else -1], seed=3, **how)
    options = {"exclude": "self", "seed": 5, **options}
    options["negative_sampling"] = NegativeSampling("structural")
    every, _ = loaders(graph, edges, sampler, **{**options, "exclude": None, "reverse_eids": None})
    for static in (True, [(130, 40), (129, 3)]):
        every.set_epoch(0)
        eager, fixed = loaders(graph, edges, sampler, static, **options)
        assert fixed.exclude == eager.exclude == options["exclude"]
        others = 0
        for _ in range(2 if static is True else 1):
            for expected, batch, full in zip(eager, fixed, every, strict=True):
                trimmed = assert_links(batch, expected)
                others += content(expected.minibatch) != content(full.minibatch)
                ids = edges[trimmed.input_id]
                gone = torch.cat([ids, REVERSE[ids]]) if "reverse_eids" in options else ids
                for block in trimmed.minibatch.blocks:
                    assert not torch.isin(block.edge_ids.cpu(), gone).any()
        assert others
        assert (fixed._static.epochs.remade > 0) == (static is not True)


def reverse_graph(random: Any) -> pgs.Graph:
    """A graph whose edges of type S are the reverse edges of those of type R, in some order."""
    edges = {kind: torch.randint(0, 200, (2, 800), generator=random) for kind in (R, S)}
    return pgs.Graph.from_coo(edges, num_nodes={"a": 300, "b": 200})


def both_ways(ids: Any) -> dict[str, Any]:
    """Edges of type R and their reverse edges."""
    return {"r": ids[R], "s": OTHER[ids[R]]}


OTHER = torch.randperm(800, generator=torch.Generator().manual_seed(7))
SOME = {R: torch.arange(0, 1500, 5), T: torch.arange(0, 900, 7)}
SOME_TIMES = {kind: torch.arange(len(ids)) % 50 for kind, ids in SOME.items()}
RS = {R: torch.arange(0, 800, 3)}
LEFT_OUT_OF_TYPES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "self": (SOME, {}, {}),
    "new, weighted": (SOME, {"prob": "w", "frontier": "new"}, {"rank": 1, "world_size": 2}),
    "reverse, trees": (
        {T: SOME[T]},
        {"disjoint": True, "edge_weights": "ht"},
        {"exclude": "reverse_id", "reverse_eids": {T: torch.arange(900).flip(0)}},
    ),
    "temporal": (SOME, {"temporal": "t"}, {"seed_time": SOME_TIMES}),
    "reverse types": (RS, {}, {"exclude": "reverse_types", "reverse_etypes": {R: S, S: R}}),
    "reverse ids": (
        RS,
        {},
        {"exclude": "reverse_id", "reverse_etypes": {R: S}, "reverse_eids": {R: OTHER}},
    ),
    "a function": (RS, {}, {"exclude": both_ways}),
}


@on_devices
@pytest.mark.parametrize("name", LEFT_OUT_OF_TYPES)
def test_edges_of_types_that_batches_leave_out(name: str) -> None:
    links, how, options = LEFT_OUT_OF_TYPES[name]
    options = {"exclude": "self", "negative_sampling": NegativeSampling("uniform"), **options}
    is_reverse = links is RS
    random = torch.Generator().manual_seed(7)
    graph = (reverse_graph(random) if is_reverse else small_hetero_graph()).to("cuda")
    eager, fixed = loaders(graph, links, pgs.PGSampler([5, 3], seed=3, **how), **options)
    for _ in range(2):
        for expected, batch in zip(eager, fixed, strict=True):
            trimmed = assert_links(batch, expected)
            for kind, places in trimmed.input_id.items():
                gone = links[kind][places]
                back = gone if options["exclude"] == "reverse_types" else OTHER[gone % 800]
                for hop in trimmed.minibatch.blocks:
                    assert not torch.isin(hop[kind].edge_ids.cpu(), gone).any()
                    if is_reverse:
                        assert not torch.isin(hop[S].edge_ids.cpu(), back).any()
    again = pickle.loads(pickle.dumps(fixed))
    for expected, batch in zip(eager, again, strict=True):
        assert_equal(batch.trimmed().minibatch, expected.minibatch)


@on_devices
def test_errors(few: pgs.Graph) -> None:
    edges, options = torch.arange(300), {"batch_size": 64, "static": True, "exclude": None}
    refused: list[tuple[Any, Any, dict[str, Any], str]] = [
        (
            make_graph(torch.int32, ids=True),
            [5, 3],
            {},
            "static: expected a graph on a CUDA device, got one on the C",
        ),
        (few, [5, 3], {"static": 1}, "static: expected a pair of sizes for .*, got int 1"),
        (few, [5, 3], {"static": [(1, 2)]}, "a pair of sizes for each of 2 blocks"),
        (few, [5, 3], {"shard_by": "batches"}, "expected 'seeds' with static, got 'batches'"),
        (few, [5, 3], {"skip_batches": 2}, "skip_batches: expected 0 with static, got 2"),
        *(
            (few, pgs.PGSampler([5, 3], mode=mode), {}, f"a sampler of mode .*, got '{mode}'")
            for mode in RESEARCH_MODES
        ),
    ]
    for graph, sampler, more, text in refused:
        with pytest.raises(ValueError, match=text):
            LinkLoader(graph, edges, sampler, **{**options, **more})
    with pytest.raises(TypeError, match="static: expected a PGSampler"):
        LinkLoader(few, edges, pgs.LaborSampler([5, 3], exact=True), **options)
    loader = LinkLoader(few, edges, [5, 3], **options)
    state = loader.state_dict() | {"start": 3}
    with pytest.raises(ValueError, match="one between epochs with static=True, got one after 3"):
        loader.load_state_dict(state)
    with pytest.raises(ValueError, match="loader: expected a loader with static=True, got one wit"):
        capture(print, LinkLoader(few, edges, [5, 3], batch_size=64))
    with pytest.raises(
        TypeError, match="loader: expected a DataLoader or LinkLoader of pygsampler"
    ):
        capture(print, [])
    assert list(LinkLoader(few, edges[:0], [5, 3], **options)) == []


@on_devices
@pytest.mark.parametrize("static", [True, [(300, 400), (256, 300)]], ids=["", "small"])
@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_captured_batches_are_those_of_a_plain_loop(few: pgs.Graph, mode: str, static: Any) -> None:
    """In three epochs, of which most batches are replays; the last of each is not full."""
    negatives = NegativeSampling("structural", 2, mode=mode)
    eager, fixed = loaders(few, EDGES, [5, 3], static, seed=3, negative_sampling=negatives)
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
            trimmed = batch.trimmed()
            # The number of the batch is the host's, which replays nothing.
            for name in ("input_nodes", "output_nodes", "output_index", "blocks"):
                pair = (getattr(one.minibatch, name) for one in (trimmed, expected))
                assert_equal(*pair, name)
            assert_equal(trimmed[1:], expected[1:])
            assert not trimmed.input_id.is_cuda
            index = expected.edge_label_index
            rows = expected.src_index if index is None else index[0]
            assert out[: len(rows)].equal(expected.minibatch.output_nodes[rows])
            assert not out[len(rows) :].any()
    assert loop.captured
    assert (fixed._static.epochs.remade > 0) == (static is not True)


EXCLUDED: dict[str, dict[str, Any]] = {
    "plain": {},
    "new": {"frontier": "new"},
    "trees": {"disjoint": True, "edge_weights": "ht"},
}


@on_a_gpu
@pytest.mark.parametrize("name", EXCLUDED)
def test_captured_batches_leave_edges_out(graph: pgs.Graph, name: str) -> None:
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


@on_a_gpu
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


@on_a_gpu
@pytest.mark.parametrize("exclude", [None, "self"])
def test_captured_links_of_several_edge_types(exclude: str | None) -> None:
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
