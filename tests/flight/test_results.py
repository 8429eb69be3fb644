"""What a client gets is what the sampler gives where the graph is, byte for byte."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from flight_graphs import BY, CITES, WRITES, typed, untyped
from partners import partner

import pygsampler as pgs
from pygsampler import samplers
from pygsampler._batch import layout as at
from pygsampler.samplers import layer_wise

partner("pyarrow")

from pygsampler.flight import Client, Server, results  # noqa: E402
from tests.support.assertions import content  # noqa: E402
from tests.support.research import HAS_RESEARCH  # noqa: E402

SEEDS = [5, 3, 3, 9, 100, 44]
# Of a batch that has no types and more hops than a loop ends with.
EMPTY_WORDS = [at.MAGIC, 64, 2**60, 0, 0, 0, 64, 0]


@pgs.program
def named(A: Any, seeds: Any) -> Any:
    B = A[:, seeds].individual_sample(3)
    D = A[:, seeds | B.row()].individual_sample(2)
    return [{"twice": D * 2, "half": D / 2}, {"w": B, "p": B * B}], {"x": A.degree()[B.row()]}


UNTYPED: dict[str, Any] = {
    "uniform": pgs.PGSampler([3, 2], seed=1),
    "all": pgs.PGSampler([-1, 2], frontier="new", seed=2**64 - 1),
    "weights": pgs.PGSampler([3, 2], prob="w", edge_weights="ht", seed=3),
    "mask": pgs.PGSampler([2], mask="m", replace=True, seed=4),
    "trees": pgs.PGSampler([2, 2], disjoint=True, seed=5),
    "walks": pgs.RandomWalk(6, stop=0.1, walks_per_seed=3, seed=7),
    "node2vec": pgs.walks.Node2Vec(6, p=0.5, q=2, prob="w", edge_ids=True, seed=8),
    "roots": pgs.walks.MultiRW(3, 8, edge_ids=True, seed=9),
    "visits": pgs.walks.PinSAGE(seed=10),
    "program": layer_wise.labor(fanouts=[3, 2], seed=13),
    "subgraph": samplers.saint_walk(roots=5, length=3, seed=14),
    "named values": named(weight="w", seed=15),
}
if HAS_RESEARCH:
    UNTYPED |= {
        "queue": pgs.PGSampler([2, 2], mode="queue", seed=6),
        "reservoir": pgs.PGSampler([2, 2], mode="reservoir", seed=6),
        "k hops": pgs.research.KHop([3, 2], edge_ids=True, seed=11),
        "layers": pgs.research.LayerSample([5, 4], seed=12),
    }


@pytest.mark.parametrize("name", UNTYPED)
def test_samplers(client: Client, name: str) -> None:
    sampler = UNTYPED[name]
    for batch in (0, 3):
        given = client.sample(sampler, SEEDS, epoch=2, batch=batch)
        here = sampler.sample(untyped(), SEEDS, epoch=2, batch=batch)
        if isinstance(here, pgs.walks.Visits):
            assert content(given) == content(here)
            assert given.output_nodes.tolist() == here.output_nodes.tolist() == list(SEEDS)
            continue
        # Walks that are elsewhere than the graph have no edges that were not asked for.
        expected = content(pickle.loads(pickle.dumps(here)))
        assert content(given) == content(pickle.loads(pickle.dumps(given))) == expected


TYPED: dict[str, Any] = {
    "by type": (
        pgs.PGSampler([{CITES: 2, WRITES: 3}, 2], default_fanout=1, seed=1),
        {"paper": [3, 4, 3]},
    ),
    "weights": (
        pgs.PGSampler([2, 2], prob="w", edge_weights="ht", disjoint=True, seed=2),
        {"author": [1], "paper": [2]},
    ),
    "hgt": (pgs.samplers.HGTSampler([4, 3], seed=3), {"paper": [3, 4]}),
    "labor": (pgs.LaborSampler([2, 2], seed=4, edge_weights="ht"), {"paper": [3, 4]}),
    "walks": (
        pgs.walks.MetaPathWalk([BY, WRITES], 6, direction="in", edge_ids=True, seed=5),
        [1, 2],
    ),
    "visits": (pgs.walks.PinSAGE(metapath=[BY, WRITES], seed=6), {"paper": [1, 2]}),
    "names": (
        pgs.PGSampler([{CITES[1]: 2, WRITES: 3}], default_fanout=1, seed=1),
        {"paper": [3, 4]},
    ),
    "walks by names": (pgs.walks.MetaPathWalk([BY[1], WRITES], 6, seed=5), [1, 2]),
    "visits by names": (pgs.walks.PinSAGE(metapath=[BY[1], WRITES[1]], seed=6), {"paper": [1, 2]}),
}


@pytest.mark.parametrize("name", TYPED)
def test_graphs_with_types(typed_client: Client, name: str) -> None:
    sampler, seeds = TYPED[name]
    given = typed_client.sample(sampler, seeds, epoch=1, batch=2)
    here = sampler.sample(typed(), seeds, epoch=1, batch=2)
    assert content(given) == content(here)
    if isinstance(here, pgs.walks.Visits):
        assert given.torch().output_nodes["paper"].tolist() == seeds["paper"]


@pytest.mark.parametrize("many", [1, 100], ids=["as JSON", "as arrays"])
def test_times_and_excluded_edges(client: Client, typed_client: Client, many: int) -> None:
    seeds = SEEDS * many
    sampler = pgs.PGSampler([4, 4], temporal="t", seed=1)
    for times in (20, np.arange(len(seeds)) % 50):
        about: Any = {"seed_time": times, "exclude": list(range(9 * many)), "batch": 0}
        given = content(client.sample(sampler, seeds, **about))
        assert given == content(sampler.sample(untyped(), seeds, **about))
    by_type = {"paper": [7] * many, "author": np.array([3] * many, np.int32)}
    about["seed_time"] = {"paper": [4] * many, "author": np.full(many, 5)}
    about["exclude"] = {CITES: range(6 * many), BY: [1]}
    given = content(typed_client.sample(sampler, by_type, **about))
    assert given == content(sampler.sample(typed(), by_type, **about))
    about["exclude"] = {CITES[1]: range(6 * many), "__".join(BY): [1]}
    assert given == content(typed_client.sample(sampler, by_type, **about))


def test_ids_of_relations_in_two_widths() -> None:
    wide = typed().edata[CITES]["t"]
    graph = typed()
    edges = {kind: (graph[kind].indptr, graph[kind].indices) for kind in graph.edge_types}
    narrow = {
        kind: tuple(np.asarray(each).astype(np.int32) for each in parts)
        for kind, parts in edges.items()
    }
    ids = np.arange(len(wide), dtype=np.int64) + 1
    narrow[CITES] = (*narrow[CITES], np.roll(ids - 1, 1))
    graph = pgs.HeteroGraph(narrow)
    sampler = pgs.PGSampler([3, 3], seed=1)
    with Server(graph) as server, Client(server.location) as one:
        given = one.sample(sampler, {"paper": [3, 4]}, batch=0)
    expected = sampler.sample(graph, {"paper": [3, 4]}, batch=0)
    kinds = {block.edge_ids.dtype for block in expected.blocks[0].values()}
    assert kinds == {"int32", "int64"}
    assert content(given) == content(expected)


def test_no_seeds_and_no_edges() -> None:
    graph = pgs.Graph.from_csc([0, 0], np.zeros(0, np.int64), num_nodes=3)
    sampler = pgs.PGSampler([2, 2], seed=0)
    with Server(graph) as server, Client(server.location) as one:
        for seeds in ([], [1, 2]):
            given = content(one.sample(sampler, seeds, batch=0))
            assert given == content(sampler.sample(graph, seeds, batch=0))


def test_plans(client: Client) -> None:
    expected = content(pgs.PGSampler([3, 2], seed=5).sample(untyped(), SEEDS, epoch=1, batch=2))
    plan = pgs.PGSampler([3, 2]).plan
    for given in (plan, {"family": "neighbor", "fanouts": [3, 2]}):
        assert content(client.sample(given, SEEDS, seed=5, epoch=1, batch=2)) == expected


def test_numbers_of_batches_go_on(client: Client) -> None:
    here, there = pgs.PGSampler([3], seed=5), pgs.PGSampler([3], seed=5)
    for sampler in (here, there):
        sampler.set_epoch(4)
    for _ in range(2):
        assert content(client.sample(there, SEEDS)) == content(here.sample(untyped(), SEEDS))


@pytest.mark.parametrize("seeds", [None, list(range(90, 0, -1))])
def test_streams(client: Client, seeds: Any) -> None:
    sampler = pgs.PGSampler([3], seed=5)
    about: Any = {"batch_size": 40, "shuffle": True, "epoch": 3}
    given = [content(one) for one in client.stream(sampler, seeds, prefetch=3, **about)]
    assert given == [content(one) for one in pgs.stream(untyped(), sampler, seeds, **about)]
    assert len(given) > 2


def test_what_is_served(client: Client, typed_client: Client) -> None:
    about = client.about()
    assert (about["num_nodes"], about["num_edges"]) == (untyped().num_nodes, untyped().num_edges)
    assert about["max_seeds"] == 1 << 16
    about = typed_client.about()
    assert about["num_nodes"] == {"paper": 90, "author": 40}
    assert about["num_edges"]["paper__cites__paper"] == 700


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"version": 1}, "result: expected version 2, got int 1"),
        ({"words": [0x50475342]}, "words: expected those of blocks, got 1 words"),
        (
            {"kind": "typed", "node_types": [], "edge_types": [], "words": EMPTY_WORDS},
            "words: expected those of typed, got 8 words",
        ),
    ],
)
def test_words_of_other_versions_are_refused(changed: dict[str, Any], text: str) -> None:
    sent = results.SentResult(pgs.PGSampler([2], seed=0).sample(untyped(), SEEDS))
    about = {**json.loads(sent.schema.metadata[results.KEY]), **changed}
    schema = sent.schema.with_metadata({results.KEY: json.dumps(about)})
    with pytest.raises(ValueError, match=text):
        results.decode_result(schema, sent.batches())
