"""LaborSampler against a slow reference and exact chances, and in torch's loader."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import reference_labor
import torch

import pygsampler as pgs
from pygsampler.samplers import layer_wise
from pygsampler.torch import DataLoader

WRITES, CITES, REVIEWS = ("a", "writes", "p"), ("p", "cites", "p"), ("a", "reviews", "p")
HAS = ("p", "has", "a")
NODES = {"a": 30, "p": 50}
BATCHES = 4000


def labor(fanouts: Any, **options: Any) -> pgs.LaborSampler:
    return pgs.LaborSampler(fanouts, **{"edge_weights": "ht", **options})


def make(weighted: bool = False) -> tuple[Any, Any, pgs.Graph]:
    """Edges, their weights, and the graph; one type has no weights."""
    random = np.random.default_rng(3)
    edges = {}
    for kind, count in {WRITES: 200, CITES: 300, REVIEWS: 150, HAS: 120}.items():
        edges[kind] = tuple(random.integers(0, NODES[end], count) for end in (kind[0], kind[2]))
    weights = {
        kind: random.random(len(edges[kind][0])) * (random.random(len(edges[kind][0])) > 0.2)
        for kind in (WRITES, CITES, HAS)
    }
    data = {kind: {"w": w} for kind, w in weights.items()} if weighted else None
    return edges, weights, pgs.Graph.from_coo(edges, num_nodes=NODES, edge_data=data)


FANOUTS = [{WRITES: 2, CITES: 3, REVIEWS: 0, HAS: 2}, {WRITES: 1, CITES: -1, REVIEWS: 2, HAS: 1}]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"importance": 1},
        {"importance": 3, "layer_dependency": True},
        {"exact": True},
        {"prob": "w"},
        {"prob": "w", "importance": 2},
        {"prob": "w", "exact": True},
    ],
)
@pytest.mark.parametrize("excluded", [False, True])
def test_reference(options: dict[str, Any], excluded: bool) -> None:
    edges, weights, graph = make("prob" in options)
    exclude = {WRITES: [0, 5, 9, 11, 100], CITES: list(range(0, 300, 7))} if excluded else None
    sampler = labor(FANOUTS, seed=11, **options)
    seeds = {"p": [4, 7, 30, 31], "a": [2]}
    for number in range(3):
        nodes, hops = reference_labor.sample(
            edges,
            seeds,
            list(NODES),
            FANOUTS,
            rounds=options.get("importance", 0),
            exact="exact" in options,
            same_layers="layer_dependency" in options,
            weights=weights if "prob" in options else None,
            exclude=exclude,
            seed=11,
            batch=number,
        )
        batch = sampler.sample(graph, seeds, epoch=0, batch=number, exclude=exclude)
        assert {kind: ids.tolist() for kind, ids in batch.input_nodes.items()} == nodes
        for blocks, rows in zip(batch.blocks, hops, strict=True):
            assert set(blocks) == set(rows)
            for kind, block in blocks.items():
                want = [edge for row in rows[kind] for edge in row]
                assert np.diff(block.indptr.numpy()).tolist() == [len(row) for row in rows[kind]]
                src = block.src_nodes.numpy()[block.indices.numpy()]
                assert list(zip(src, block.edge_ids.tolist(), strict=True)) == [
                    (u, e) for u, e, _ in want
                ]
                assert block.edge_weights is not None
                assert block.edge_weights.numpy() == pytest.approx(
                    [w for _, _, w in want], rel=1e-5
                )


@pytest.mark.parametrize("options", [{}, {"importance": 2}, {"exact": True}])
def test_one_type_is_samplers_labor(options: dict[str, Any]) -> None:
    random = np.random.default_rng(0)
    ends = random.integers(0, 100, 1500), random.integers(0, 100, 1500)
    plain = layer_wise.labor(fanouts=[3, 4], seed=5, **options).sample(
        pgs.Graph.from_coo(*ends, num_nodes=100), range(9), epoch=1, batch=7
    )
    typed = labor([3, 4], seed=5, **options).sample(
        pgs.Graph.from_coo({("v", "e", "v"): ends}, num_nodes={"v": 100}),
        {"v": range(9)},
        epoch=1,
        batch=7,
    )
    for a, b in zip(plain.blocks, typed.blocks, strict=True):
        block = b["v", "e", "v"]
        assert a.edge_ids.tolist() == block.edge_ids.tolist()
        assert block.edge_weights is not None
        assert np.allclose(a.edge_data["w"].numpy(), block.edge_weights.numpy())


def star() -> pgs.Graph:
    """The paper's {a, b} and {b, c, d} in one relation, and again in another; 0 to 3 in a third."""
    ends = np.array([0, 1, 1, 2, 3]), np.array([0, 0, 1, 1, 1])
    return pgs.Graph.from_coo(
        {("u", "x", "v"): ends, ("u", "y", "v"): ends, ("z", "x", "v"): ends},
        num_nodes={"u": 4, "v": 2, "z": 4},
    )


@pytest.mark.parametrize(
    ("importance", "shared", "vertices"), [(0, 1 / 3, 5 / 3), (1, 4 / 9, 43 / 27)]
)
def test_law(importance: int, shared: float, vertices: float) -> None:
    """Relations share numbers of the same vertices, and types do not; chances are the paper's."""
    sampler = pgs.LaborSampler([1], importance=importance, seed=6, edge_weights="ht")
    other = 8 / 27 if importance else 1 / 3
    chances = {0: 1 / 2, 1: 1 / 2, 2: shared, 3: other, 4: other}
    seen, both, met = Counter[int](), 0, 0
    crossed = Counter[tuple[bool, bool]]()
    graph = star()
    for number in range(BATCHES):
        (blocks,) = sampler.sample(graph, {"v": [0, 1]}, epoch=0, batch=number).blocks
        x, y, z = (
            blocks[kind].edge_ids.tolist()
            for kind in (("u", "x", "v"), ("u", "y", "v"), ("z", "x", "v"))
        )
        assert x == y
        for edge, weight in zip(x, blocks["u", "x", "v"].edge_weights.tolist(), strict=True):
            assert weight == pytest.approx(1 / chances[edge])
        seen.update(x)
        both += {1, 2} <= set(x)
        met += len(set(blocks["u", "x", "v"].indices.tolist()))
        crossed[0 in x, 0 in z] += 1
    # Chi-square of each edge's count, one degree of freedom: below 20 but for one of 130,000.
    for edge, p in chances.items():
        assert (seen[edge] - BATCHES * p) ** 2 / (BATCHES * p * (1 - p)) < 20
    assert (both - BATCHES * shared) ** 2 / (BATCHES * shared * (1 - shared)) < 20
    assert abs(met / BATCHES - vertices) < 0.06
    quarter = BATCHES / 4
    assert sum((crossed[a, b] - quarter) ** 2 / quarter for a in (0, 1) for b in (0, 1)) < 30


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"importance": 2},
        {"importance": -1},
        {"exact": True},
        {"prob": "w"},
        {"prob": "w", "exact": True},
    ],
)
def test_sums_are_unbiased_and_there_are_fewer_vertices(options: dict[str, Any]) -> None:
    edges, weights, graph = make("prob" in options)
    seeds = list(range(30))
    sampler = labor([3], seed=2, **options)
    x = np.random.default_rng(1).random(NODES["p"])
    w = weights[CITES] if "prob" in options else np.ones(300)
    src, dst = edges[CITES]
    want = sum(w[e] * x[src[e]] for e in range(300) if dst[e] in seeds)
    sums, met, uniform = [], [], []
    plain = pgs.PGSampler([3], prob=options.get("prob"), seed=2)
    for number in range(600):
        block = sampler.sample(graph, {"p": seeds}, epoch=0, batch=number).blocks[0][CITES]
        ids = block.edge_ids.numpy()
        assert block.edge_weights is not None
        sums.append(float((block.edge_weights.numpy() * w[ids] * x[src[ids]]).sum()))
        met.append(len(set(src[ids])))
        other = plain.sample(graph, {"p": seeds}, epoch=0, batch=number).blocks[0][CITES]
        uniform.append(len(set(src[other.edge_ids.numpy()])))
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - want) < 5 * error
    assert np.mean(met) <= np.mean(uniform)


def test_more_rounds_have_fewer_vertices() -> None:
    _, _, graph = make()
    found = []
    for importance in (0, 1, -1):
        sampler = pgs.LaborSampler([2], importance=importance, seed=2, edge_weights="ht")
        found.append(
            np.mean(
                [
                    len(
                        set(
                            sampler.sample(graph, {"p": range(50)}, epoch=0, batch=i)
                            .blocks[0][CITES]
                            .indices.tolist()
                        )
                    )
                    for i in range(300)
                ]
            )
        )
    assert found[2] < found[1] < found[0]


def test_a_type_that_is_added_changes_no_other() -> None:
    edges, _, graph = make()
    more = pgs.Graph.from_coo(
        {("t", "of", "p"): ([0, 1], [3, 4]), **edges}, num_nodes={"t": 2, **NODES}
    )
    sampler = pgs.LaborSampler([2, 2], seed=3, edge_weights="ht")
    one = sampler.sample(graph, {"p": range(10)}, epoch=0, batch=1)
    two = sampler.sample(more, {"p": range(10)}, epoch=0, batch=1)
    for a, b in zip(one.blocks, two.blocks, strict=True):
        for kind in edges:
            assert a[kind].edge_ids.tolist() == b[kind].edge_ids.tolist()


def test_numbers_of_hops_and_batches() -> None:
    ends = np.arange(40) % 20, np.arange(40) // 20
    graph = pgs.Graph.from_coo(
        {("v", "x", "v"): ends, ("v", "y", "v"): ([0], [0])}, num_nodes={"v": 20}
    )
    of = ("v", "x", "v")

    def kept(number: int, **options: Any) -> list[list[int]]:
        batch = labor([4, 4], seed=6, **options).sample(graph, {"v": [0, 1]}, epoch=0, batch=number)
        return [
            block[of].edge_ids.numpy()[: block[of].indptr.numpy()[2]].tolist()
            for block in batch.blocks
        ]

    for number in range(6):
        outer, inner = kept(number, layer_dependency=True)
        assert outer == inner
        outer, inner = kept(number)
        assert outer != inner
    # Numbers are those of the program, on the way from one period to the next too.
    graph = pgs.Graph.from_coo({of: ends}, num_nodes={"v": 20})
    alone = layer_wise.labor(fanouts=[4, 4], batch_dependency=3, seed=6)
    for number in range(7):
        typed = pgs.LaborSampler([4, 4], batch_dependency=3, seed=6, edge_weights="ht").sample(
            graph, {"v": [0, 1]}, epoch=0, batch=number
        )
        plain = alone.sample(graph[of], [0, 1], epoch=0, batch=number)
        for one, other in zip(typed.blocks, plain.blocks, strict=True):
            assert sorted(one[of].edge_ids.tolist()) == sorted(other.edge_ids.tolist())


def test_weights_scaled() -> None:
    _, _, graph = make(weighted=True)
    sampler = pgs.LaborSampler([3], prob="w", edge_weights="mean", seed=1)
    block = sampler.sample(graph, {"p": range(20)}, epoch=0, batch=0).blocks[0][CITES]
    assert block.edge_weights is not None
    sums = np.add.reduceat(
        np.append(block.edge_weights.numpy(), 0), block.indptr.numpy()[:-1].clip(0)
    )
    counts = np.diff(block.indptr.numpy())
    assert sums[counts > 0] == pytest.approx(counts[counts > 0], rel=1e-5)
    none = pgs.LaborSampler([3], prob="w", edge_weights=None, seed=1)
    same = none.sample(graph, {"p": range(20)}, epoch=0, batch=0).blocks[0][CITES]
    assert same.edge_weights is None
    assert same.edge_ids.tolist() == block.edge_ids.tolist()


def test_in_the_loader() -> None:
    _, _, graph = make()
    x = {kind: torch.randn(count, 4) for kind, count in NODES.items()}
    labels = {"p": torch.arange(50)}
    sampler = pgs.LaborSampler([2, {WRITES: 2}], default_fanout=1, seed=4, edge_weights="ht")
    loader = DataLoader(
        graph,
        {"p": torch.arange(50)},
        sampler,
        batch_size=16,
        shuffle=True,
        features={"x": x},
        labels=labels,
    )
    seen = []
    for batch in loader:
        for kind in NODES:
            assert torch.equal(batch.x[kind], x[kind][batch.input_nodes[kind].long()])
        assert torch.equal(batch.y["p"], batch.output_nodes["p"].long())
        block = batch.blocks[0][WRITES]
        out = block.weighted_sum(batch.x["a"], block.edge_weights)
        assert out.shape == (block.num_dst_nodes, 4)
        seen += batch.output_nodes["p"].tolist()
    assert sorted(seen) == list(range(50))


def test_pickles_and_mistakes() -> None:
    _, _, graph = make()
    sampler = pgs.LaborSampler(
        FANOUTS, importance=-1, batch_dependency=2, seed=9, edge_weights="ht"
    )
    sampler.sample(graph, {"p": [1]})
    again = pickle.loads(pickle.dumps(sampler))
    assert repr(again) == repr(sampler)
    a, b = (each.sample(graph, {"p": range(9)}) for each in (sampler, again))
    assert a.batch == b.batch == 1
    assert a.blocks[0][CITES].edge_ids.tolist() == b.blocks[0][CITES].edge_ids.tolist()
    for wrong, message in (
        ({"importance": -2}, "importance: expected an integer from -1"),
        ({"importance": 1, "exact": True}, "importance: expected 0 with exact=True, got 1"),
        ({"batch_dependency": 0}, "batch_dependency: expected an integer from 1"),
        ({"edge_weights": "all"}, "edge_weights: expected None or 'ht' or 'mean' or 'sum'"),
        ({"prob": "w", "mask": "m"}, "prob, mask: expected at most one"),
    ):
        with pytest.raises(ValueError, match=message):
            pgs.LaborSampler([2], **wrong)
    with pytest.raises(ValueError, match=r"fanouts\[0\]: expected a number for each edge type"):
        pgs.LaborSampler([{WRITES: 2}], edge_weights="ht").sample(graph, {"p": [1]})
    with pytest.raises(ValueError, match="edge_weights: expected 'ht', 'mean' or None for a hete"):
        pgs.LaborSampler([2], edge_weights="sum").sample(graph, {"p": [1]})
    for wrong, message in (
        ({"frontier": "new"}, "frontier: expected 'all' for a homogeneous graph, got 'new'"),
        ({"mask": "m"}, "mask: expected None for a homogeneous graph, got 'm'; prob takes"),
        ({"importance": -1}, "importance: expected an integer >= 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            pgs.LaborSampler([2], **wrong).sample(pgs.Graph.from_csc([0, 1], [0]), [0])
    with pytest.raises(ValueError, match=r"fanouts\[0\]: expected an integer for a homogeneous"):
        pgs.LaborSampler([{WRITES: 2}]).sample(pgs.Graph.from_csc([0, 1], [0]), [0])
    with pytest.raises(IndexError, match=r'seeds\["p"\]'):
        pgs.LaborSampler([2], edge_weights="ht").sample(graph, {"p": [50]})


@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize("edge_weights", [None, "ht", "mean", "sum"])
@pytest.mark.parametrize(
    "options",
    [{}, {"exact": True}, {"importance": 2, "layer_dependency": True}, {"batch_dependency": 3}],
)
def test_a_homogeneous_graph_is_sampled_by_the_program(
    options: dict[str, Any], edge_weights: str | None, prob: str | None
) -> None:
    random = np.random.default_rng(0)
    ends = random.integers(0, 100, 1500), random.integers(0, 100, 1500)
    weights = {"w": random.random(1500).astype(np.float32)}
    graph = pgs.Graph.from_coo(*ends, num_nodes=100, edge_data=weights)
    sampler = pgs.LaborSampler([3, 4], prob=prob, edge_weights=edge_weights, seed=5, **options)
    program = layer_wise.labor(
        fanouts=[3, 4],
        weight=prob,
        weights="ht" if edge_weights == "ht" else edge_weights is not None,
        normalize=edge_weights if edge_weights in ("mean", "sum") else None,
        seed=5,
        **options,
    )
    want = program.sample(graph, range(9), epoch=1, batch=7)
    pickled = pickle.loads(pickle.dumps(sampler))
    many = sampler.sample_many(graph, [range(9)], epoch=1, batch=7)
    for got in (
        sampler.sample(graph, range(9), epoch=1, batch=7),
        sampler.submit(graph, range(9), epoch=1, batch=7).result(),
        pickled.sample(graph, range(9), epoch=1, batch=7),
        *many,
    ):
        assert got.input_nodes.tolist() == want.input_nodes.tolist()
        for a, b in zip(got.blocks, want.blocks, strict=True):
            assert a.edge_ids.tolist() == b.edge_ids.tolist()
            assert a.indptr.tolist() == b.indptr.tolist()
            # Without a kind of weights and prob there are none.
            for values in (a.edge_weights, b.edge_weights):
                assert (values is None) == (edge_weights is None and prob is None)
            if a.edge_weights is not None and b.edge_weights is not None:
                assert a.edge_weights.tolist() == b.edge_weights.tolist()
