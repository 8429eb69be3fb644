"""Factors of edges, ``edge_weights="ht"``: values that are known, means, and who shows them."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest
import reference
from weighted_graphs import alike

import pygsampler as pgs

WAYS: list[dict[str, Any]] = [
    {},
    {"replace": True},
    {"frontier": "new"},
    {"disjoint": True},
    {"exclude": True},
    {"exclude": True, "replace": True, "disjoint": True},
]
KINDS = {
    "none": None,
    "even": lambda draw: draw.uniform(1, 5),
    "heavy": lambda draw: draw.choice([1e-300, 1e300, 1.0, 1e-6, 0.0]),
    "subnormal": lambda draw: draw.choice([5e-324, 1e-322, 0.0]),
}


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("bits", [32, 64])
def test_equal_to_the_reference(kind: str, bits: int) -> None:
    draw = random.Random(kind)
    rows = [
        [draw.randrange(60) for _ in range(draw.choice([0, 1, 3, 8, 20, 45]))] for _ in range(60)
    ]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([u for row in rows for u in row], f"int{bits}")
    edges = len(indices)
    ids = draw.sample(range(edges), edges)
    make = KINDS[kind]
    weights = None if make is None else [make(draw) for _ in range(edges)]
    data = {} if weights is None else {"w": weights}
    graph = pgs.Graph.from_csc(indptr, indices, edge_ids=ids, edge_data=data)
    exclude = draw.sample(range(edges), edges // 4)
    seeds = [5, 3, 59, 0, 3, 17]
    for fanouts in ([4, 3], [-1, 2], [40], [7, 0], [33]):
        for way in WAYS:
            how = {"exclude": exclude} if "exclude" in way else {}
            options = {k: v for k, v in way.items() if k != "exclude"}
            prob = None if weights is None else "w"
            sampler = pgs.PGSampler(fanouts, seed=9, prob=prob, edge_weights="ht", **options)
            got = sampler.sample(graph, seeds, epoch=2, batch=7, **how)
            want = reference.sample(
                indptr.tolist(), indices.tolist(), seeds, fanouts, edge_ids=ids, weights=weights,
                seed=9, epoch=2, batch=7, edge_weights="ht", **options, **how,
            )  # fmt: skip
            assert reference.Batch.of(got) == want, (fanouts, way)
            plain = pgs.PGSampler(fanouts, seed=9, prob=prob, **options)
            assert reference.Batch.of(plain.sample(graph, seeds, epoch=2, batch=7, **how)) == (
                reference.Batch(
                    want.nodes,
                    want.output_nodes,
                    want.output_index,
                    [block._replace(edge_weights=None) for block in want.blocks],
                    want.subgraph_ids,
                )
            )


# ---- means -----------------------------------------------------------------------------------

ROWS = 40_000


def sums(weights: list[float], y: list[float], fanout: int, **options: Any) -> Any:
    """Of factor times y over the sampled edges, for each of ROWS rows with these weights."""
    graph = alike(weights, ROWS)
    sampler = pgs.PGSampler([fanout], seed=3, edge_weights="ht", **options)
    block = sampler.sample(graph, np.arange(ROWS)).blocks[0]
    factors, edges = block.edge_weights, block.edge_ids.numpy()
    assert factors is not None and factors.dtype == "float32"
    terms = factors.numpy().astype(float) * np.asarray(y)[edges % len(weights)]
    rows = np.repeat(np.arange(ROWS), np.diff(block.indptr.numpy()))
    return np.bincount(rows, terms, ROWS)


HEAVY = [1.0] * 39 + [1e4]
RAMP = [float(i % 7 + 1) for i in range(60)]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    ("weights", "fanout"),
    [
        ([1.0, 2.0, 3.0], 2),
        ([1.0, 1.0, 2.0, 4.0], 3),
        ([0.0, 1.0, 2.0, 3.0, 0.0], 2),
        ([5e-324, 1e-323, 5e-324, 2e-323], 2),
        ([2e300, 1e300, 3e300], 1),
        (HEAVY, 5),
        (RAMP, 20),
    ],
)
def test_sums_are_unbiased(weights: list[float], fanout: int, replace: bool) -> None:
    y = [5.0, 1.0, 2.0] if len(weights) == 3 else [float(i % 5 + 1) for i in range(len(weights))]
    if replace and weights is HEAVY:
        # Few draws are of any other edge: their sums are far from normal.
        y = [1.0] * len(HEAVY)
        weights = [1.0] * 39 + [20.0]
    for options in ({"prob": "w"}, {"mask": "w"}, {}):
        found = sums(weights, y, fanout, replace=replace, **options)
        drawn = [v for v, w in zip(y, weights, strict=True) if w or not options]
        error = found.std() / ROWS**0.5
        assert abs(found.mean() - sum(drawn)) < max(4 * error, 1e-4), options


def test_values_that_are_known() -> None:
    """(1, 2, 3), two of three: 8 in the mean, and 9.05 by what W / (K w) would say."""
    weights, y = [1.0, 2.0, 3.0], [5.0, 1.0, 2.0]
    assert abs(sums(weights, y, 2, prob="w").mean() - 8) < 0.1
    graph = alike(weights, ROWS)
    for options, expected in (
        ({"prob": "w", "replace": True}, [3, 1.5, 1]),
        ({"replace": True}, [1.5] * 3),
        ({}, [1.5] * 3),
    ):
        sampler = pgs.PGSampler([2], seed=3, edge_weights="ht", **options)
        block = sampler.sample(graph, np.arange(ROWS)).blocks[0]
        want = np.array(expected, "float32")[block.edge_ids.numpy() % 3]
        assert (block.edge_weights.numpy() == want).all()
    for fanout in (3, 7, -1):
        sampler = pgs.PGSampler([fanout], edge_weights="ht", prob="w")
        assert set(sampler.sample(graph, [0, 1]).blocks[0].edge_weights) == {1.0}


def test_a_power_of_two_changes_nothing() -> None:
    y = [1.0, 2.0, 3.0]
    one, other = (sums([w * unit for w in y], y, 2, prob="w") for unit in (1.0, 2.0**-900))
    assert (one == other).all()


# ---- who shows them --------------------------------------------------------------------------


def sampled(bits: int = 64, **options: Any) -> pgs.MiniBatch:
    src = np.random.default_rng(2).integers(0, 500, 9000).astype(f"int{bits}")
    dst = np.random.default_rng(3).integers(0, 500, 9000).astype(f"int{bits}")
    w = np.random.default_rng(4).random(9000)
    graph = pgs.Graph.from_coo(src, dst, num_nodes=500, edge_data={"w": w})
    options = {"edge_weights": "ht", "prob": "w", **options}
    return pgs.PGSampler([5, 4], seed=1, **options).sample(graph, np.arange(100))


def lists(batch: Any) -> list[Any]:
    return [block.edge_weights.tolist() for block in batch.blocks]


@pytest.mark.parametrize("bits", [32, 64])
def test_every_form(bits: int) -> None:
    batch = sampled(bits)
    want = lists(batch)
    assert [len(w) for w in want] == [block.num_edges for block in batch.blocks]
    assert len({x for w in want for x in w}) > 500
    assert lists(batch.numpy()) == want
    assert batch.numpy().blocks[0].edge_weights.dtype == np.float32
    assert lists(batch.cpu()) == want
    for protocol in (2, 5):
        assert lists(pickle.loads(pickle.dumps(batch, protocol))) == want
    array = batch.blocks[0].edge_weights
    assert array is not None
    assert "float32" in repr(array)
    assert array[3:5].tolist() == want[0][3:5]
    assert batch.blocks[0].edge_weights is array
    with pytest.raises(TypeError, match=r"expected one dimension of int32 or int64 for Arrow"):
        array.__arrow_c_array__()


def test_a_batch_with_room_to_spare() -> None:
    """Pickles leave out what was reserved for vertices: all offsets move."""
    graph = pgs.Graph.from_csc([0, 3, *[3] * 99_999], [1, 2, 3])
    batch = pgs.PGSampler([2, 2, 2, 2, 2], edge_weights="ht", seed=1).sample(graph, [0] * 5)
    raw = pickle.dumps(pgs.PGSampler([2] * 12, edge_weights="ht").sample(graph, list(range(40))))
    assert lists(pickle.loads(pickle.dumps(batch))) == lists(batch)
    assert {x for w in lists(pickle.loads(raw)) for x in w} == {1.5}


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    batch = sampled()
    made = batch.torch()
    assert made.blocks[0].edge_weights.dtype == torch.float32
    assert lists(made) == lists(batch)
    assert lists(made.to("cpu")) == lists(batch)
    assert lists(pickle.loads(pickle.dumps(made))) == lists(batch)
    assert "edge_weights" in dir(made.blocks[0])
    without = sampled(edge_weights=None).torch()
    for each in (without, without.to("cpu"), pickle.loads(pickle.dumps(without))):
        assert each.blocks[0].edge_weights is None

    from pygsampler.torch import DataLoader

    graph = pgs.Graph.from_csc([0, 3, 3, 3], [0, 1, 2], edge_data={"w": [1, 2, 3]})
    for options in ({"edge_weights": "ht"}, {"edge_weights": "ht", "prob": "w"}):
        sampler = pgs.PGSampler([2], seed=1, **options)
        loader = DataLoader(graph, [0, 1, 2], sampler, batch_size=2)
        assert [len(block.edge_weights) for b in loader for block in b.blocks] == [2, 0]


def test_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    batch = sampled()
    values = batch.arrow().blocks[1].edge_weights
    want = lists(batch)[1]
    del batch
    assert values.type == pyarrow.float32()
    assert values.to_pylist() == want


def test_none_without_the_option() -> None:
    for batch in (
        sampled(edge_weights=None),
        pgs.MiniBatch.from_blocks([0], [0], [([0, 0], [], [])]),
    ):
        assert all(block.edge_weights is None for block in batch.blocks)
        assert all(block.edge_weights is None for block in batch.numpy().blocks)


def test_the_option() -> None:
    sampler = pgs.PGSampler([3], edge_weights="ht", seed=1)
    assert sampler.edge_weights == "ht" and sampler.plan["edge_weights"] == "ht"
    assert repr(sampler) == "PGSampler([3], edge_weights='ht', seed=1)"
    assert pickle.loads(pickle.dumps(sampler)).edge_weights == "ht"
    assert sampler.with_seed(2).edge_weights == "ht"
    assert sampler.plan != pgs.PGSampler([3], seed=1).plan
    assert pgs.PGSampler([3]).edge_weights is None
    for wrong in ("HT", 1, True, ["ht"]):
        with pytest.raises(ValueError, match=r"edge_weights: expected None or 'ht', got "):
            pgs.PGSampler([3], edge_weights=wrong)
