"""Texts and tables of results, as consoles and notebooks show them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling, skip_gram
from tests.support.research import HAS_RESEARCH

random = np.random.default_rng(4)
GRAPH = pgs.Graph.from_coo(
    *random.integers(0, 30, (2, 200)), num_nodes=30, edge_data={"w": np.ones(200, np.float32)}
)
BUYS, OF = ("user", "buys", "item"), ("item", "of", "user")
TYPES = pgs.Graph.from_coo(
    {kind: random.integers(0, 10, (2, 60)) for kind in (BUYS, OF)},
    num_nodes={"user": 10, "item": 10},
)
SEEDS = [3, 4, 9]


def cells(html: str) -> list[list[list[str]]]:
    """The rows of the tables of a page, heads first, with the captions before them."""
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [
        [[table.findtext("caption") or ""]]
        + [[cell.text or "" for cell in row] for row in table.iter("tr")]
        for table in root.iter("table")
    ]


def first(loader: Any) -> Any:
    return next(iter(loader))


def steps() -> dict[str, Any]:
    samples = pgs.research.KHop([3, 2], seed=1).sample(GRAPH, SEEDS)
    forms = {"": samples, " in NumPy": samples.numpy(), " in torch": samples.torch()}
    return {f"StepSamples{form}": value for form, value in forms.items()}


def batches() -> dict[str, Any]:
    sampler, walk = pgs.PGSampler([3, 2], seed=1), pgs.RandomWalk(12, walks_per_seed=3, seed=1)
    both = {"user": [3, 4], "item": [1]}
    roots = pgs.walks.MultiRW(2, 6, seed=1).sample(GRAPH, SEEDS[:2])
    options: dict[str, Any] = {"batch_size": 3, "seed": 1}
    batch, walks = sampler.sample(GRAPH, SEEDS), walk.sample(GRAPH, SEEDS)
    subgraph = samplers.shadow(fanouts=[3, 2], seed=1).sample(GRAPH, SEEDS)
    negatives = NegativeSampling(amount=2)
    triplets = NegativeSampling(amount=2, mode="triplet")
    links = {BUYS: [0, 1], OF: [5]}
    return {
        "MiniBatch": batch,
        "MiniBatch in torch": first(DataLoader(GRAPH, SEEDS, [3, 2], **options)),
        "MiniBatch in NumPy": batch.numpy(),
        "MiniBatch in Arrow": batch.arrow(),
        "Subgraph": subgraph,
        "Subgraph in torch": subgraph.torch(),
        "MiniBatch by type": sampler.sample(TYPES, both),
        "MiniBatch by type in torch": first(DataLoader(TYPES, both, [3, 2], **options)),
        "Walks": walks,
        "Walks in NumPy": walks.numpy(),
        "Walks in torch": walks.torch(),
        "Walks by type": pgs.walks.MetaPathWalk([BUYS, OF], seed=1).sample(TYPES, SEEDS),
        "Walks of several roots": roots,
        **(steps() if HAS_RESEARCH else {}),
        "Visits": pgs.walks.PinSAGE(num_neighbors=3, seed=1).sample(GRAPH, SEEDS),
        "Visits in torch": pgs.walks.PinSAGE(num_neighbors=3, seed=1).sample(GRAPH, SEEDS).torch(),
        "Visits of walks": walks.torch().visits(2),
        "SkipGram": skip_gram(GRAPH, walks, 2, negatives=3),
        "LinkBatch": first(
            LinkLoader(GRAPH, [0, 1, 2], [3], negative_sampling=negatives, **options)
        ),
        "LinkBatch of triplets": first(
            LinkLoader(GRAPH, [0, 1, 2], [3], negative_sampling=triplets, **options)
        ),
        "LinkBatch of types": first(
            LinkLoader(TYPES, links, [3], negative_sampling=negatives, **options)
        ),
    }


BATCHES = batches()


@pytest.mark.parametrize("name", BATCHES)
def test_every_batch_has_a_table_and_a_short_text(name: str) -> None:
    batch = BATCHES[name]
    kind = name.partition(" ")[0]
    assert type(batch).__name__ == kind
    assert repr(batch).startswith(f"{kind}(") and len(repr(batch)) < 400
    assert "tensor" not in repr(batch)
    tables = cells(batch._repr_html_())
    assert all(len(rows) >= 3 and re.match(r"\w+\(|\w+ of", rows[0][0]) for rows in tables)
    assert kind in tables[0][0][0]
    widths = [{len(row) for row in rows[1:]} for rows in tables]
    assert all(len(found) == 1 for found in widths)


def test_a_table_of_blocks_has_their_sizes() -> None:
    for name in ("MiniBatch", "MiniBatch in torch", "MiniBatch in NumPy", "MiniBatch in Arrow"):
        batch = BATCHES[name]
        ((_, head, *rows),) = cells(batch._repr_html_())
        assert head == ["block", "sources", "destinations", "edges"]
        assert rows == [
            [f"blocks[{i}]", *map(str, (b.num_src_nodes, b.num_dst_nodes, b.num_edges))]
            for i, b in enumerate(batch.blocks)
        ]
    large = DataLoader(GRAPH, np.arange(30).repeat(100), [-1], batch_size=3000)
    assert "3,000 seeds" in first(large)._repr_html_()


def test_a_table_of_types_has_those_with_edges() -> None:
    for name in ("MiniBatch by type", "MiniBatch by type in torch"):
        batch = BATCHES[name]
        ((_, _, *rows),) = cells(batch._repr_html_())
        assert [row[0] for row in rows] == [
            f"blocks[{i}][{kind!r}]"
            for i, hop in enumerate(batch.blocks)
            for kind, block in hop.items()
            if block.num_edges
        ]
        assert sum(int(row[-1]) for row in rows) == batch.num_edges


def test_a_table_of_walks_has_the_first_of_them() -> None:
    walks = BATCHES["Walks"]
    for name in ("Walks", "Walks in NumPy", "Walks in torch"):
        ((_, head, *rows),) = cells(BATCHES[name]._repr_html_())
        assert head == ["walk", *map(str, range(9)), "", "steps"]
        assert [row[0] for row in rows] == ["0", "1", "2", "3", "4", "5", "…"]
        for row, nodes, length in zip(rows[:6], walks.nodes.tolist(), walks.lengths, strict=False):
            assert row[1:10] == [str(v) if v >= 0 else "" for v in nodes[:9]]
            assert row[-1] == str(length)


def test_link_batches_print_counts() -> None:
    assert repr(BATCHES["LinkBatch"]).startswith("LinkBatch(edges=3, links=9, minibatch=MiniBatch(")
    assert repr(BATCHES["LinkBatch of triplets"]).startswith(
        "LinkBatch(edges=3, links=3, minibatch="
    )
    assert repr(BATCHES["LinkBatch of types"]).startswith(
        f"LinkBatch(edges={BUYS!r}: 2, {OF!r}: 1, links={BUYS!r}: 6, {OF!r}: 3, minibatch="
    )
    table, minibatch = cells(BATCHES["LinkBatch"]._repr_html_())
    assert table[2:] == [
        ["input_id", "int64", "3"],
        ["edge_label_index", "int64", "2 x 9"],
        ["edge_label", "float32", "9"],
    ]
    assert minibatch[0][0].startswith("MiniBatch of")


def test_data_of_a_graph_print_dtypes_and_shapes() -> None:
    assert repr(GRAPH.edata) == "{'w': float32 [200]}"
    assert repr(GRAPH.ndata) == "{}"
    more = GRAPH.with_data(node_data={"x": torch.ones(30, 2), "n": np.arange(30)})
    assert repr(more.ndata) == "{'x': float32 [30, 2], 'n': int64 [30]}"


def test_types_print_as_tuples() -> None:
    fanouts = [{BUYS: 3, OF: 2}, {BUYS: 1, OF: 0}]
    sampler = pgs.PGSampler(fanouts, seed=1)
    assert repr(sampler) == f"PGSampler({fanouts!r}, seed=1)"
    # Another one of it, too.
    assert repr(sampler.with_seed(2)) == f"PGSampler({fanouts!r}, seed=2)"
    assert f"{fanouts!r}" in repr(DataLoader(TYPES, {"user": [0]}, fanouts, batch_size=1, seed=1))
    assert f"  {BUYS!r}: 60 edges\n" in repr(TYPES)
    again = pgs.PGSampler(eval(repr(fanouts)), seed=1)
    assert again.plan == sampler.plan
