"""``PinSAGE``, ``RestartNeighbors`` and ``MultiRW``: the reference's, without others' mistakes."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import reference_walks as reference
import torch
from walk_graphs import Shape, of_rows, shapes

import pygsampler as pgs
from pygsampler._batch import layout as at
from pygsampler.torch import DataLoader
from pygsampler.walks.visits import Visits

SHAPES = shapes()
AT = {"epoch": 5, "batch": 1 << 33}


def form_of(shape: Shape, **options: Any) -> reference.Form:
    weights = shape.weights if options.get("prob") else None
    types = shape.types if options.get("edge_types") else None
    return reference.Form(
        shape.indptr,
        shape.indices,
        edge_ids=shape.edge_ids,
        weights=weights,
        types=types,
        direction=options.get("direction", "out"),
    )


# ---- PinSAGE ---------------------------------------------------------------------------------


def wanted(shape: Shape, seeds: list[int], given: tuple[Any, ...], **options: Any) -> Any:
    traversals, stop, count, top = given
    path = options.get("metapath")
    every = len(path or [0])
    walker = reference.Walker(
        form_of(shape, **options), traversals * every, stop=stop, metapath=path, visit_every=every
    )
    found = reference.walks(walker, seeds, walks_per_seed=count, seed=9, **AT)
    return reference.most_visited(found, count, every, top)


PINSAGE: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((2, 0.5, 10, 3), {}),
    ((1, 1.0, 7, 20), {"direction": "in"}),
    ((5, 0.2, 4, 4), {"prob": "w"}),
    ((3, 0.0, 3, 1), {"direction": "in", "prob": "w"}),
    ((2, 0.3, 6, 5), {"metapath": [0, 2], "edge_types": "t"}),
    ((4, 0.3, 512, 8), {}),
]


@pytest.mark.parametrize("case", range(len(PINSAGE)))
def test_visits_are_those_of_the_reference(case: int) -> None:
    given, options = PINSAGE[case]
    for name, shape in SHAPES.items():
        if "metapath" in options and not shape.indices:
            continue
        seeds = [*range(shape.num_nodes), 0, shape.num_nodes - 1]
        nodes, counts = wanted(shape, seeds, given, **options)
        for bits in (32, 64):
            sampler = pgs.walks.PinSAGE(*given, **options, seed=9)
            got = sampler.sample(shape.graph(bits), seeds, **AT)
            assert isinstance(got, Visits) and len(got) == len(seeds)
            assert got.nodes.tolist() == nodes, name
            assert got.counts.tolist() == counts, name
            assert (got.nodes.dtype, got.counts.dtype) == (f"int{bits}", "int32")
            assert got.nodes.shape == got.counts.shape == (len(seeds), given[3])
            arrays = got.numpy()
            assert (arrays.form, got.cpu() is got, arrays.torch().form) == ("numpy", True, "torch")
            assert arrays.nodes.tolist() == arrays.torch().nodes.tolist() == nodes
            assert arrays.output_nodes.tolist() == arrays.torch().numpy().output_nodes.tolist()


def test_however_visits_are_asked_for() -> None:
    shape = SHAPES["ids"]
    graph, seeds = shape.graph(), list(range(40))
    sampler = pgs.walks.PinSAGE(3, 0.3, 8, 4, seed=9)
    want = wanted(shape, seeds, (3, 0.3, 8, 4))
    jobs = [
        sampler.sample(graph, seeds, **AT),
        sampler.sample(graph, seeds, threads=1, **AT),
        sampler.submit(graph, seeds, **AT).result(),
        *sampler.sample_many(graph, [seeds], **AT),
        pickle.loads(pickle.dumps(sampler)).sample(graph, seeds, **AT),
    ]
    for got in jobs:
        assert (got.nodes.tolist(), got.counts.tolist()) == want
        assert (got.epoch, got.batch) == (5, 1 << 33)
    other = sampler.with_seed(10).sample(graph, seeds, **AT)
    assert other.counts.tolist() != want[1]
    loader = DataLoader(graph, seeds, sampler, batch_size=16)
    for number, got in enumerate(loader):
        own = sampler.sample(graph, seeds[16 * number : 16 * number + 16], epoch=0, batch=number)
        assert isinstance(got, Visits) and got.form == "torch"
        assert got.nodes.tolist() == own.nodes.tolist()
        assert got.counts.tolist() == own.counts.tolist()


@pytest.mark.parametrize("prefetch", [0, 3])
def test_a_loader_tells_whose_visits_they_are(prefetch: int) -> None:
    shape = SHAPES["scattered"]
    graph, x = shape.graph(32), torch.randn(40, 3)
    sampler = pgs.walks.PinSAGE(3, 0.3, 8, 4, seed=9)
    loader = DataLoader(
        graph,
        range(40),
        sampler,
        batch_size=16,
        shuffle=True,
        features={"x": x},
        labels=x[:, 0],
        prefetch=prefetch,
    )
    seen = []
    for number, made in enumerate(loader):
        again = sampler.sample(graph, made.output_nodes, epoch=0, batch=number).torch()
        for got in (made, pickle.loads(pickle.dumps(made))):
            assert got.form == "torch" and (got.epoch, got.batch) == (0, number)
            assert torch.equal(got.nodes, again.nodes) and torch.equal(got.counts, again.counts)
            assert got.output_nodes.dtype == got.input_nodes.dtype == torch.int32
            assert torch.equal(got.x, x[got.input_nodes.long()]) and set(got.features) == {"x", "y"}
            assert torch.equal(got.y, x[got.output_nodes.long(), 0])
            assert torch.equal(got.input_nodes[got.output_index], got.output_nodes)
            assert len(got.input_nodes.unique()) == len(got.input_nodes)
            there = got.nodes >= 0
            assert torch.equal(got.input_nodes[got.neighbor_index[there]], got.nodes[there])
            near = got.neighbor_rows(got.x)
            assert torch.equal(near[there], x[got.nodes[there].long()]) and there.any()
            assert near.shape == (*got.nodes.shape, 3) and not near[~there].any()
        seen += made.output_nodes.tolist()
    assert sorted(seen) == list(range(40)) != seen
    with pytest.raises(ValueError, match=r"x: expected a row for each of \d+ nodes, got 41"):
        made.neighbor_rows(torch.zeros(41, 3))


def test_seeds_of_visits_are_a_copy() -> None:
    """Duplicates too, however the visits are asked for, and whatever becomes of the caller's."""
    graph = SHAPES["scattered"].graph(64)
    sampler, given = pgs.walks.PinSAGE(seed=9), np.array([3, 3, 7], np.int32)
    jobs = [
        sampler.submit(graph, given, batch=0),
        sampler.submit(graph, torch.tensor([3, 3, 7]), batch=0),
    ]
    found = [sampler.sample(graph, given, batch=0), *sampler.sample_many(graph, [given], batch=0)]
    given[:] = 0
    for visits in (*found, *(job.result() for job in jobs)):
        assert visits.output_nodes.tolist() == [3, 3, 7]
        there = visits.torch()
        assert there.output_nodes.tolist() == [3, 3, 7]
        assert there.output_nodes.dtype == torch.int64
        assert there.output_index.tolist() == [0, 0, 1]
    none = sampler.sample(graph, []).torch()
    assert none.output_nodes.shape == none.input_nodes.shape == (0,)
    assert none.neighbor_rows(torch.zeros(0, 5)).shape[::2] == (0, 5)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("width", [32, 64])
def test_visits_pickle(again: Any, width: int) -> None:
    sampler = pgs.walks.PinSAGE(seed=9)
    for given in ([3, 3, 7], []):
        made = sampler.sample(SHAPES["scattered"].graph(width), given, epoch=1, batch=2)
        got = again(made)
        for name in ("nodes", "counts", "output_nodes"):
            one, other = getattr(made, name), getattr(got, name)
            assert (other.tolist(), other.shape) == (one.tolist(), one.shape)
            assert other.dtype == one.dtype
        assert (got.epoch, got.batch, got.device) == (1, 2, "cpu")
        assert torch.equal(got.torch().input_nodes, made.torch().input_nodes)


def test_gradients_of_visits() -> None:
    graph = of_rows([[1, 2], [0], []], 3).graph()
    found = pgs.walks.PinSAGE(4, 0.2, 6, 3, direction="in", seed=5).sample(graph, [0, 2]).torch()
    x = torch.ones(len(found.input_nodes), 2, requires_grad=True)
    (found.neighbor_rows(x) * found.counts.unsqueeze(2)).sum().backward()
    told = [found.counts[found.nodes == v].sum().item() for v in found.input_nodes]
    assert x.grad[:, 0].tolist() == told and sum(told) > 0
    # Vertex 2 hears nobody.
    assert found.nodes[1].tolist() == [-1, -1, -1]


def test_equal_counts_stand_by_the_first_visit() -> None:
    """A cycle of three visits each of its vertices as often; the start is no visit."""
    ring = of_rows([[2], [0], [1]], 3)
    got = pgs.walks.PinSAGE(6, 0.0, 5, 3).sample(ring.graph(), [0, 1, 2])
    assert got.nodes.tolist() == [[1, 2, 0], [2, 0, 1], [0, 1, 2]]
    assert got.counts.tolist() == [[10, 10, 10]] * 3
    first = pgs.walks.PinSAGE(1, 1.0, 5, 3).sample(ring.graph(), [0])
    assert first.nodes.tolist() == [[1, -1, -1]] and first.counts.tolist() == [[5, 0, 0]]


def test_importance_and_edges() -> None:
    shape = SHAPES["scattered"]
    visits = pgs.walks.PinSAGE(2, 0.5, 9, 4, seed=1).sample(shape.graph(), range(40)).torch()
    sums = visits.importance.sum(1)
    none = visits.counts.sum(1) == 0
    assert none.any() and (sums[none] == 0).all()
    torch.testing.assert_close(sums[~none], torch.ones(int((~none).sum())))
    nodes, places, counts = visits.coo()
    assert (
        (nodes >= 0).all() and (counts > 0).all() and len(nodes) == int((visits.nodes >= 0).sum())
    )
    for v, place, count in zip(nodes.tolist(), places.tolist(), counts.tolist(), strict=True):
        row = visits.nodes[place].tolist()
        assert visits.counts[place][row.index(v)] == count


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_traversals": 0}, ValueError, "num_traversals: expected an integer >= 1, got 0"),
        ({"termination_prob": 1.5}, ValueError, "expected .* got 1.5"),
        ({"num_random_walks": 0}, ValueError, "num_random_walks: expected an integer >= 1, got 0"),
        ({"num_neighbors": 0}, ValueError, "num_neighbors: expected an integer >= 1, got 0"),
        ({"num_neighbors": 2.0}, TypeError, "num_neighbors: expected an integer"),
        ({"num_random_walks": 2049}, ValueError, "2048"),
        ({"metapath": [0]}, ValueError, "metapath, edge_types: expected both or neither"),
    ],
)
def test_what_is_no_pinsage(options: dict[str, Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        pgs.walks.PinSAGE(**options)


# ---- frontier sampling -----------------------------------------------------------------------


@pytest.mark.parametrize("roots", [1, 2, 5])
@pytest.mark.parametrize("direction", ["out", "in"])
def test_several_roots_are_those_of_the_reference(roots: int, direction: str) -> None:
    for name, shape in SHAPES.items():
        seeds = [v % shape.num_nodes for v in range(0, 37 * roots, 3)]
        seeds = seeds[: len(seeds) // roots * roots]
        form = form_of(shape, direction=direction)
        want, slots = reference.of_several_roots(form, roots, 30, seeds, seed=9, **AT)
        for bits in (32, 64):
            sampler = pgs.walks.MultiRW(roots, 30, direction=direction, edge_ids=True, seed=9)
            got = sampler.sample(shape.graph(bits), seeds, **AT)
            assert got.nodes.numpy().tolist() == want.nodes, name
            assert got.edge_ids.numpy().tolist() == want.edge_ids, name
            assert got.lengths.tolist() == want.lengths, name
            assert got.slots.numpy().tolist() == slots, name


def test_many_roots() -> None:
    """More than a chunk of them."""
    shape = SHAPES["scattered"]
    seeds = [v * 7 % 40 for v in range(1000)]
    want, slots = reference.of_several_roots(form_of(shape), 500, 60, seeds, seed=9, **AT)
    got = pgs.walks.MultiRW(500, 60, seed=9).sample(shape.graph(), seeds, **AT)
    assert got.nodes.numpy().tolist() == want.nodes
    assert got.slots.numpy().tolist() == slots


def test_roots_are_chosen_by_their_degree() -> None:
    """And not evenly: of 99 edges of a hub and one of another vertex each is as likely."""
    rows = [[] for _ in range(103)]
    for v in range(2, 101):
        rows[v] = [0]
    rows[101] = [1]
    # Whatever is arrived at has no edges: the first step says all.
    walks = pgs.walks.MultiRW(2, 1, seed=3).sample(of_rows(rows, 103).graph(), [0, 1] * 20000)
    share = (walks.slots.numpy() == 1).mean()
    assert abs(share - 0.01) < 5 * (0.01 * 0.99 / 20000) ** 0.5


def test_a_root_moves_from_its_first_step_on() -> None:
    ring = of_rows([[(v - 1) % 50] for v in range(50)], 50)
    walks = pgs.walks.MultiRW(3, 40, seed=3).sample(ring.graph(), [0, 10, 20] * 30)
    for nodes, slots in zip(walks.nodes.tolist(), walks.slots.tolist(), strict=True):
        at = [0, 10, 20]
        for slot, v in zip(slots, nodes[1:], strict=True):
            at[slot] = (at[slot] + 1) % 50
            assert v == at[slot]
    assert set(np.unique(walks.slots.numpy())) == {0, 1, 2}


def test_roots_without_edges() -> None:
    shape = of_rows([[], [0], [1], [], []], 5)  # 0 -> 1 -> 2, and two more vertices
    walks = pgs.walks.MultiRW(3, 4, seed=3).sample(shape.graph(), [3, 4, 0, 3, 4, 4])
    assert walks.nodes.tolist() == [[3, 1, 2, -1, -1], [3, -1, -1, -1, -1]]
    assert walks.slots.tolist() == [[2, 2, -1, -1], [-1] * 4]
    assert walks.lengths.tolist() == [2, 0]


def test_what_is_no_frontier() -> None:
    for roots in (0, 4097):
        with pytest.raises(ValueError, match="num_roots: expected"):
            pgs.walks.MultiRW(roots, 5)
    with pytest.raises(ValueError, match="num_roots: expected walks of several roots without"):
        pgs.RandomWalk(5, num_roots=2, restart=0.5)
    with pytest.raises(ValueError, match="length: expected"):
        pgs.walks.MultiRW(3, -1)
    with pytest.raises(ValueError, match=r"seeds: expected a multiple of 3, .* got 4"):
        pgs.walks.MultiRW(3, 5).sample(SHAPES["scattered"].graph(), [0, 1, 2, 3])


# ---- HetGNN ----------------------------------------------------------------------------------


def collected(
    walk: list[int], kinds: Any, caps: dict[int, int], most: int
) -> dict[int, Counter[int]]:
    """Vertices in the order of their arrival: of each type up to its cap, and not the seed."""
    found = {kind: Counter[int]() for kind in caps}
    total = 0
    for v in walk[1:]:
        kind = int(kinds[v])
        if v < 0 or total == most:
            break
        if v == walk[0] or kind not in caps or found[kind].total() == caps[kind]:
            continue
        found[kind][v] += 1
        total += 1
    return found


@pytest.mark.parametrize(
    ("caps", "most"),
    [
        # Enough after twice as many steps; some walks have to go on; and none has enough at last.
        ({0: 9, 1: 20, 2: 4, 3: 60}, 25),
        ({0: 9, 1: 20, 2: 4}, 25),
        ({0: 9, 1: 90, 2: 4}, 99),
    ],
)
def test_neighbours_by_types(caps: dict[int, int], most: int) -> None:
    shape = of_rows(np.random.default_rng(3).integers(0, 60, (60, 6)).tolist(), 60)
    kinds = np.random.default_rng(4).integers(0, 4, 60)
    graph = shape.graph().with_data(node_data={"kind": kinds})
    top = {0: 3, 1: 5, 2: 2}
    sampler = pgs.walks.RestartNeighbors(
        "kind", top, caps=caps, collect=most, restart=0.4, max_steps=200, seed=5
    )
    found = sampler.sample(graph, range(60), epoch=1, batch=2)
    walks = pgs.RandomWalk(200, restart=0.4, seed=5).sample(graph, range(60), epoch=1, batch=2)
    for seed, walk in enumerate(walks.nodes.numpy().tolist()):
        want = collected(walk, kinds, caps, most)
        for kind, count in top.items():
            nodes, counts = found.nodes[kind][seed].tolist(), found.counts[kind][seed].tolist()
            there = [v for v in nodes if v >= 0]
            assert nodes == there + [-1] * (count - len(there))
            assert len(there) == min(count, len(want[kind])) and seed not in there
            # Counter keeps the order of the first visits, and sorts are stable.
            ranked = [v for v, _ in want[kind].most_common(count)]
            assert there == ranked
            assert counts[: len(there)] == [want[kind][v] for v in there]


def test_a_loader_tells_whose_neighbours_they_are() -> None:
    shape = of_rows(np.random.default_rng(3).integers(0, 60, (60, 6)).tolist(), 60)
    kinds, x = np.random.default_rng(4).integers(0, 4, 60), torch.randn(60, 3)
    graph = shape.graph(32).with_data(node_data={"kind": kinds})
    sampler = pgs.walks.RestartNeighbors("kind", {0: 3, 1: 5}, collect=20, seed=5)
    loader = DataLoader(
        graph, range(60), sampler, batch_size=16, shuffle=True, features={"x": x}, labels=x[:, 0]
    )
    seen = []
    for number, made in enumerate(loader):
        again = sampler.sample(graph, made.output_nodes, epoch=0, batch=number)
        for got in (made, pickle.loads(pickle.dumps(made))):
            assert list(got.nodes) == list(got.counts) == [0, 1]
            assert (got.epoch, got.batch, len(got)) == (0, number, len(got.output_nodes))
            assert torch.equal(got.x, x[got.input_nodes.long()])
            assert torch.equal(got.y, x[got.output_nodes.long(), 0])
            assert torch.equal(got.input_nodes[got.output_index], got.output_nodes)
            assert len(got.input_nodes.unique()) == len(got.input_nodes)
            rows = got.neighbor_rows(got.x)
            for kind, nodes in got.nodes.items():
                assert torch.equal(nodes, again.nodes[kind])
                assert torch.equal(got.counts[kind], again.counts[kind])
                near, there = rows[kind], nodes >= 0
                assert torch.equal(near[there], x[nodes[there].long()])
                assert near.shape == (*nodes.shape, 3) and not near[~there].any()
        seen += made.output_nodes.tolist()
    assert sorted(seen) == list(range(60)) != seen
    with pytest.raises(ValueError, match=r"x: expected a row for each of \d+ nodes, got 60"):
        made.neighbor_rows(x)


def test_gradients_of_neighbours() -> None:
    graph = of_rows([[1, 2], [0], []], 3).graph().with_data(node_data={"kind": [0, 0, 1]})
    sampler = pgs.walks.RestartNeighbors("kind", {0: 2, 1: 2}, collect=6, direction="in", seed=5)
    found = sampler.sample(graph, [0, 2])
    x = torch.ones(len(found.input_nodes), 2, requires_grad=True)
    sum(rows.sum() for rows in found.neighbor_rows(x).values()).backward()
    told = torch.cat([nodes[nodes >= 0] for nodes in found.nodes.values()])
    assert x.grad[:, 0].tolist() == [int((told == v).sum()) for v in found.input_nodes]
    # Vertex 2 hears nobody.
    assert found.nodes[0][1].tolist() == found.nodes[1][1].tolist() == [-1, -1]


def test_rows_that_a_loader_refuses() -> None:
    graph = SHAPES["scattered"].graph()
    count, edges = graph.num_nodes, graph.num_edges
    graph = graph.with_data(node_data={"kind": np.zeros(count, int)})
    visits, walks = pgs.walks.RestartNeighbors("kind", {0: 2}), pgs.RandomWalk(3)
    x, w = np.zeros((count, 2)), np.zeros((edges, 2))
    how: dict[str, Any] = {"batch_size": 4}
    for sampler, given, text in (
        (visits, {"edge_features": {"w": w}}, "edge_features: .* batches are visits"),
        (walks, {"features": {"x": x}}, "features: expected None .* batches are walks"),
        (walks, {"labels": x}, "labels: expected None .* batches are walks"),
        (pgs.walks.PinSAGE(), {"edge_features": {"w": w}}, "edge_features: .* batches are visits"),
    ):
        with pytest.raises(ValueError, match=text):
            DataLoader(graph, range(count), sampler, **how, **given)
    for sampler, name in (
        (visits, "neighbor_rows"),
        (pgs.walks.PinSAGE(), "importance"),
        (pgs.walks.PinSAGE(), "counts"),
    ):
        loader = DataLoader(graph, range(count), sampler, **how, features={name: x})
        with pytest.raises(ValueError, match=f"names that visits do not have, got '{name}'"):
            next(iter(loader))


def test_types_that_cannot_be_reached_end() -> None:
    """The public code walks on for ever there."""
    ring = of_rows([[1], [0]], 3)
    graph = ring.graph().with_data(node_data={"kind": [0, 0, 1]})
    found = pgs.walks.RestartNeighbors("kind", {0: 2, 1: 2}, collect=10, seed=5).sample(
        graph, [0, 2]
    )
    assert found.nodes[0].tolist() == [[1, -1], [-1, -1]]
    assert found.counts[0][0, 0] == 10
    assert found.nodes[1].tolist() == [[-1, -1], [-1, -1]]


def test_what_is_no_neighbourhood() -> None:
    graph = SHAPES["scattered"].graph()
    with pytest.raises(ValueError, match="types: expected the name of a node array"):
        pgs.walks.RestartNeighbors("kind", {0: 2}).sample(graph, [0])
    for given, error, text in (
        (("kind", [3]), TypeError, "top: expected a mapping"),
        (("kind", {0: 0}), ValueError, r"top\[0\]: expected an integer >= 1, got 0"),
        ((3, {0: 1}), TypeError, "types: expected the name"),
    ):
        with pytest.raises(error, match=text):
            pgs.walks.RestartNeighbors(*given)


def test_visits_of_any_walks() -> None:
    """Counted by hand, whatever the walks; ends alone, too."""
    graph = pgs.Graph.from_coo([0, 0, 1, 2, 3, 3], [1, 2, 0, 3, 0, 2])
    walks = pgs.walks.PersonalizedPageRank(0.3, walks_per_seed=40, length=12, seed=3)
    found = walks.sample(graph, [0, 3, 0], batch=0).torch()
    for ends in (False, True):
        made = found.visits(3, ends=ends)
        for seed in range(3):
            rows = found.nodes[seed * 40 : seed * 40 + 40].tolist()
            lists = [[v for v in row if v >= 0] for row in rows]
            order = [row[-1] for row in lists] if ends else [v for row in lists for v in row]
            counts = {v: order.count(v) for v in dict.fromkeys(order)}
            want = sorted(counts, key=lambda v: -counts[v])[:3]
            want += [-1] * (3 - len(want))
            assert made.nodes[seed].tolist() == want
            assert made.counts[seed].tolist() == [counts.get(v, 0) for v in want]
    assert made.nodes.dtype == torch.int64 and len(made) == 3
    assert made.output_nodes.tolist() == [0, 3, 0] and made.output_index.tolist() == [0, 1, 0]
    with pytest.raises(TypeError, match=r"Walks.visits: expected walks in torch tensors"):
        walks.sample(graph, [0], batch=0).visits(3)
    with pytest.raises(ValueError, match="top: expected an integer >= 1, got 0"):
        found.visits(0)


def test_visits_of_no_seeds_have_no_rows() -> None:
    """As tensors too, whose shape does not follow from their length then."""
    graph = pgs.Graph.from_csc(np.array([0, 1, 2]), np.array([1, 0]))
    made = pgs.walks.PinSAGE(num_neighbors=3, seed=1).sample(graph, np.zeros(0, np.int64))
    assert made.nodes.shape == (0, 0)
    words = [0] * at.WALK_WORDS
    words[at.WALK_PER_SEED], words[at.ID_BITS] = 10, 64
    tensors = Visits._of_region(torch.zeros(64, dtype=torch.int64), words, 0, 0)
    assert tensors.nodes.shape == tensors.counts.shape == made.torch().nodes.shape
