"""Tests of graphs in parts, by process: tests/distributed/test_partitioned.py runs them."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import flight_graphs
import numpy as np
import partitioned_graphs
import torch
import torch.distributed as dist
from assertions import assert_equal, content
from partitioned_graphs import EDGES, NODES

import pygsampler as pgs
from pygsampler import distributed, samplers
from pygsampler.distributed.process_group import ProcessGroup
from pygsampler.samplers import Temporal, layer_wise
from pygsampler.torch import DataLoader
from tests.support.research import HAS_RESEARCH


def fails(kind: type[Exception], text: str, what: Callable[[], Any]) -> None:
    try:
        what()
    except kind as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"expected {kind.__name__}: {text}")


WALKS = (
    pgs.RandomWalk(6, seed=5, edge_ids=True),
    pgs.RandomWalk(6, seed=5, prob="w", walks_per_seed=3, edge_ids=True),
    pgs.RandomWalk(7, seed=5, stop=0.2, restart=0.3, edge_ids=True),
    pgs.RandomWalk(7, seed=5, restart=0.3, count_jumps=True, edge_ids=True),
    pgs.RandomWalk(6, seed=5, metapath=[0, 2], edge_types="k", restart=0.1, edge_ids=True),
    pgs.RandomWalk(5, seed=5, metapath=[1], edge_types="k", prob="w", edge_ids=True),
    pgs.walks.PinSAGE(3, num_random_walks=5, seed=5),
    pgs.RandomWalk(0, seed=5, edge_ids=True),
    pgs.walks.Node2Vec(5, p=0.25, q=2, seed=5),
    pgs.RandomWalk(5, p=1e9, q=1e-9, seed=5, prob="w", restart=0.1, edge_ids=True),
    pgs.RandomWalk(5, p=0.1, q=4, seed=5, metapath=[0, 2], edge_types="k", edge_ids=True),
    pgs.RandomWalk(4, p=3, q=1e9, seed=5, prob="w", metapath=[1, 1], edge_types="k", edge_ids=True),
    pgs.walks.MultiRW(5, 9, seed=5, edge_ids=True),
)


# Programs over columns, LABOR among them.
COLUMNS = (
    layer_wise.labor(fanouts=[4, -1, 3], seed=5),
    layer_wise.labor(fanouts=[4, 0, 3], seed=5, weight="w", importance=2, layer_dependency=True),
    layer_wise.labor(fanouts=[4, 3], seed=5, weight="w", exact=True, batch_dependency=4),
    layer_wise.labor(fanouts=[3, 3], seed=5, importance=1, normalize="mean"),
    samplers.ladies(nodes=[20, 12], seed=5, method="iid"),
    samplers.ladies(nodes=[20, 12], seed=5, method="conditioned", weight="k", normalize=False),
    samplers.shadow(fanouts=[4, 3], seed=5),
    samplers.graphsage(fanouts=[4, 3], seed=5),
)

# Samplers of heterogeneous graphs: HGT cuts a row once per batch, and LABOR's edges depend on other
# rows.
TOGETHER = (
    pgs.samplers.HGTSampler([5, 4, 3], seed=5),
    pgs.samplers.HGTSampler({"paper": [3, -1], "author": [0, 4]}, max_neighbors=3, seed=5),
    pgs.samplers.HGTSampler([2, 0], max_neighbors=None, seed=5),
    pgs.LaborSampler([3, -1, 2], seed=5, edge_weights="ht"),
    pgs.LaborSampler([3, 0, 2], prob="w", importance=1, frontier="new", seed=5, edge_weights="ht"),
    pgs.LaborSampler(
        [3, 2], mask="t", importance=-1, layer_dependency=True, seed=5, edge_weights="ht"
    ),
    pgs.LaborSampler([3, 2], prob="w", exact=True, edge_weights="mean", seed=5),
)


SOME_WALKS = WALKS[2], WALKS[4], WALKS[9], WALKS[-1]


def along(walk: pgs.RandomWalk, direction: str) -> pgs.RandomWalk:
    """The same walks along in-edges, or out-edges."""
    other = walk.with_seed(walk.seed)
    other._begin(walk.seed, **{**walk._fields(), "direction": direction})
    return other


def check_walks(rank: int, world: int, graph: pgs.Graph, whole: pgs.Graph) -> None:
    rng = np.random.default_rng(rank)
    for direction in ("in", "out"):
        # Each step is an exchange of all processes, so larger groups compare fewer walks.
        # One process alone compares all of them (test_walks_in_one_process).
        for walk in WALKS if world < 2 else SOME_WALKS if world < 5 else SOME_WALKS[:2]:
            sampler = along(walk, direction)
            for number in range(1 + rank % 2):
                seeds = rng.integers(0, NODES, 40).astype(whole.dtype)
                want = sampler.sample(whole, seeds, epoch=1, batch=number)
                made = sampler.sample(graph, seeds, epoch=1, batch=number)
                assert_equal(made, want, sampler)
    plain = pgs.RandomWalk(4, seed=1)
    made, want = (plain.sample(g, [3, 9], epoch=0, batch=2) for g in (graph, whole))
    assert made.edge_ids.tolist() == want.edge_ids.tolist()
    jobs = [plain.submit(graph, range(50), epoch=0, batch=i) for i in range(6)]
    jobs[1].cancel()
    del jobs[2]
    found = jobs[-1].result()
    assert content(found) == content(plain.sample(whole, range(50), epoch=0, batch=5))
    assert plain.sample(graph, [], epoch=0, batch=0).nodes.tolist() == []


def samples(rank: int, world: int, folder: str, *kinds: str) -> None:
    for kind in kinds:
        whole, rng = partitioned_graphs.of(kind), np.random.default_rng(rank)
        with distributed.open_graph(f"{folder}/{kind} {world}") as graph:
            assert (graph.num_nodes, graph.num_edges) == (NODES, EDGES)
            assert graph.dtype == whole.dtype
            for how in (
                {},
                {"replace": True},
                {"frontier": "new"},
                {"disjoint": True},
                {"prob": "w"},
                {"mask": "m"},
                {"edge_weights": "ht"},
                {"prob": "w", "replace": True, "edge_weights": "ht"},
                {"prob": "w", "disjoint": True, "frontier": "new"},
            ):
                fanouts = [3, 2, 40] if "replace" in how else [3, -1, 4]
                sampler = pgs.PGSampler(fanouts, seed=5, **how)
                for number in range(2 + rank):
                    seeds = rng.integers(0, NODES, 20).astype(whole.dtype)
                    want = sampler.sample(whole, seeds, epoch=1, batch=number)
                    assert content(sampler.sample(graph, seeds, epoch=1, batch=number)) == content(
                        want
                    ), how
                    without = rng.integers(0, EDGES, 300)
                    want = sampler.sample(whole, seeds, epoch=1, batch=number, exclude=without)
                    made = sampler.sample(graph, seeds, epoch=1, batch=number, exclude=without)
                    assert_equal(made, want, (how, "exclude"))
            for how in (
                {},
                {"temporal": Temporal("t", inclusive=False)},
                {"temporal": Temporal("t", window=9)},
                {"temporal": Temporal("t", "last")},
                {"temporal": Temporal("t", carry="edge")},
                {
                    "temporal": Temporal("t", window=20, carry="edge"),
                    "frontier": "new",
                    "mask": "m",
                },
                {"prob": "w"},
                {"edge_weights": "ht"},
                {"temporal": "born"},
                {"temporal": Temporal("born", window=9, carry="edge"), "prob": "w"},
                {"temporal": Temporal("t", window=20), "prob": "w", "edge_weights": "ht"},
            ):
                sampler = pgs.PGSampler([3, -1, 2], seed=5, **{"temporal": "t", **how})
                seeds, times = rng.integers(0, NODES, 20), rng.integers(0, 50, 20)
                want = sampler.sample(whole, seeds, epoch=0, batch=3, seed_time=times)
                made = sampler.sample(graph, seeds, epoch=0, batch=3, seed_time=times)
                assert_equal(made, want, how)
                about = {"seed_time": times, "exclude": rng.integers(0, EDGES, 300)}
                want = sampler.sample(whole, seeds, epoch=0, batch=4, **about)
                made = sampler.sample(graph, seeds, epoch=0, batch=4, **about)
                assert_equal(made, want, (how, "exclude"))
            for fanouts in ([0], [5, 0]):
                sampler = pgs.PGSampler(fanouts, seed=1)
                assert content(sampler.sample(graph, [4, 4, 9], epoch=0, batch=0)) == content(
                    sampler.sample(whole, [4, 4, 9], epoch=0, batch=0)
                )
                assert content(sampler.sample(graph, [], epoch=0, batch=0)) == content(
                    sampler.sample(whole, [], epoch=0, batch=0)
                )
            for sampler in COLUMNS[:2] if world < 5 else COLUMNS[3:4]:
                for number in range(1 + rank % 2):
                    seeds = rng.integers(0, NODES, 20).astype(whole.dtype)
                    for about in ({}, {"exclude": rng.integers(0, EDGES, 300)}):
                        made, want = (
                            sampler.sample(g, seeds, epoch=1, batch=number, **about)
                            for g in (graph, whole)
                        )
                        assert_equal(made, want, (sampler, about))
            # Many on their way at once, of which some are dropped; other ranks do not know.
            sampler = pgs.PGSampler([5, 5], seed=1)
            many = [rng.integers(0, NODES, 30) for _ in range(12)]
            jobs = [sampler.submit(graph, seeds, epoch=2, batch=i) for i, seeds in enumerate(many)]
            for i in range(0, 12, 3):
                jobs[i].cancel()
            for i in range(1, 12, 3):
                jobs[i] = None
            for i in range(2, 12, 3):
                assert content(jobs[i].result()) == content(
                    sampler.sample(whole, many[i], epoch=2, batch=i)
                )
            found = sampler.sample_many(graph, many[:4], epoch=2, batch=0)
            assert [content(b) for b in found] == [
                content(b) for b in sampler.sample_many(whole, many[:4], epoch=2, batch=0)
            ]
            check_walks(rank, world, graph, whole)


def typed(rank: int, world: int, folder: str) -> None:
    whole, rng = flight_graphs.typed(), np.random.default_rng(rank)
    cites, by = whole.edge_types[0], whole.edge_types[2]
    with distributed.open_graph(f"{folder}/typed {world}") as graph:
        assert isinstance(graph, distributed.DistributedGraph)
        assert not graph.is_homogeneous
        assert dict(graph.num_nodes) == dict(whole.num_nodes)
        assert dict(graph.num_edges) == dict(whole.num_edges)
        for how in (
            {},
            {"replace": True},
            {"frontier": "new"},
            {"disjoint": True},
            {"prob": "w", "edge_weights": "ht"},
            {"mask": "t"},
            {"prob": "w", "disjoint": True},
        ):
            fanouts = [{cites: 2, by: 0}, 2 if "replace" in how else -1, 3]
            sampler = pgs.PGSampler(fanouts, default_fanout=3, seed=5, **how)
            for number in range(1 + rank % 2):
                seeds = {"paper": rng.integers(0, 90, 12), "author": rng.integers(0, 40, 5)}
                want = sampler.sample(whole, seeds, epoch=1, batch=number)
                made = sampler.sample(graph, seeds, epoch=1, batch=number)
                assert_equal(made, want, how)
            without = {cites: rng.integers(0, 700, 200), by: rng.integers(0, 200, 50)}
            want = sampler.sample(whole, seeds, epoch=1, batch=7, exclude=without)
            made = sampler.sample(graph, seeds, epoch=1, batch=7, exclude=without)
            assert_equal(made, want, (how, "exclude"))
        for how in (
            {"temporal": "t"},
            {"temporal": "born"},
            {"temporal": Temporal("t", window=3, carry="edge"), "frontier": "new"},
            {"temporal": Temporal("born", inclusive=False, carry="edge"), "prob": "w"},
            {"temporal": Temporal("t", strategy="last"), "mask": "t"},
        ):
            sampler = pgs.PGSampler([3, -1, 2], seed=5, **how)
            seeds = {"paper": rng.integers(0, 90, 12), "author": rng.integers(0, 40, 5)}
            about = {"seed_time": {"paper": rng.integers(0, 9, 12), "author": [5, 6, 7, 8, 9]}}
            for _ in range(2):
                made, want = (
                    sampler.sample(g, seeds, epoch=0, batch=3, **about) for g in (graph, whole)
                )
                assert_equal(made, want, (how, about))
                about["exclude"] = {cites: rng.integers(0, 700, 200)}
        for sampler in TOGETHER[1::3]:
            for number in range(1 + rank % 2):
                seeds = {"paper": rng.integers(0, 90, 12), "author": rng.integers(0, 40, 5)}
                for about in ({}, {"exclude": {cites: rng.integers(0, 700, 200)}}):
                    made, want = (
                        sampler.sample(g, seeds, epoch=1, batch=number, **about)
                        for g in (graph, whole)
                    )
                    assert_equal(made, want, sampler)
        writes = whole.edge_types[1]
        for walk in (
            pgs.walks.MetaPathWalk([cites, by, writes], 7, seed=3, edge_ids=True),
            pgs.walks.MetaPathWalk([by, writes], walks_per_seed=3, prob="w", direction="in", seed=3)
            if world < 3
            else pgs.walks.MetaPathWalk([cites], seed=3),
            pgs.walks.MetaPathWalk([writes], prob="w", direction="in", edge_ids=True, seed=3),
        ):
            roots = rng.integers(0, whole.num_nodes[walk.node_types[0]], 30)
            for given in (roots, {walk.node_types[0]: roots}):
                made, want = (walk.sample(g, given, epoch=0, batch=1) for g in (graph, whole))
                assert_equal(made, want, walk)
        plain = pgs.PGSampler([3, 3], seed=1)
        jobs = [plain.submit(graph, {"paper": range(30)}, epoch=0, batch=i) for i in range(5)]
        jobs[1].cancel()
        del jobs[2]
        want = plain.sample(whole, {"paper": range(30)}, epoch=0, batch=4)
        assert content(jobs[-1].result()) == content(want)
        x = np.asarray(whole.ndata["paper"]["x"])
        features = graph.features("x", "paper")
        ids = rng.integers(0, 90, 50)
        for rows in (features, features.cache(range(0, 90, 4))):
            assert np.array_equal(rows.read(ids).numpy(), x[ids])
        about = {"batch_size": 20, "shuffle": True, "seed": 1, "rank": rank, "world_size": world}
        seeds, table = {"paper": np.arange(90)}, {"x": {"paper": features}}
        ours = DataLoader(graph, seeds, [3, 2], features=table, **about)
        for a, b in zip(ours, DataLoader(whole, seeds, [3, 2], **about), strict=True):
            assert all(
                torch.equal(a.input_nodes[kind], b.input_nodes[kind]) for kind in b.input_nodes
            )
            assert np.array_equal(a.x["paper"].numpy(), x[a.input_nodes["paper"].numpy()])
        if rank == 0:
            one = {"paper": [1]}
            fails(KeyError, "expected the name of a node", lambda: graph.features("x", "author"))
            fails(
                IndexError,
                "expected an id in [0, 90)",
                lambda: plain.sample(graph, {"paper": [90]}),
            )
            fails(
                ValueError, "expected types of the graph", lambda: plain.sample(graph, {"z": [1]})
            )
            fails(
                ValueError,
                "exclude: expected types of the graph",
                lambda: plain.sample(graph, one, exclude={"z": [1]}),
            )
            fails(
                ValueError,
                "time: expected the name of an edge or node array of the partitioned graph",
                lambda: pgs.PGSampler([2], temporal="z").sample(graph, one, seed_time=3),
            )
            fails(
                ValueError,
                "partition(..., times=['x']) and pygsampler partition --times write them",
                lambda: pgs.PGSampler([2], temporal="x").sample(graph, one, seed_time=3),
            )
            fails(
                ValueError,
                "prob: expected the name of an edge array",
                lambda: pgs.PGSampler([2], prob="z").sample(graph, one),
            )
            fails(
                ValueError,
                "num_samples: expected numbers for each node type",
                partial(pgs.samplers.HGTSampler({"paper": [2]}).sample, graph, one),
            )
            fails(
                ValueError,
                "prob: expected the name of an edge array",
                partial(pgs.LaborSampler([2], prob="z", edge_weights="ht").sample, graph, one),
            )
            for other in (pgs.PGSampler([2]), pgs.RandomWalk(2)):
                fails(
                    ValueError,
                    "got one relation of a partitioned heterogeneous graph",
                    partial(other.sample, graph[cites], [1]),
                )
            for hidden in ("indptr", "indices", "edge_ids"):
                fails(
                    ValueError,
                    f"for its {hidden}, got one in {world} parts",
                    partial(getattr, graph[cites], hidden),
                )
            assert graph[cites].num_edges == whole.num_edges[cites]
            # Edge types by the names of their relations.
            assert graph.num_edges[cites[1]] == whole.num_edges[cites]
            named = pgs.PGSampler([{cites[1]: 2}], default_fanout=1, seed=3)
            for each in (
                named,
                pgs.LaborSampler([{cites[1]: 2}], default_fanout=1, seed=3, edge_weights="ht"),
            ):
                made, want = (
                    each.sample(of, {"paper": [1, 7]}, batch=0, exclude={cites[1]: [0, 5]})
                    for of in (graph, whole)
                )
                assert made.input_nodes["paper"].tolist() == want.input_nodes["paper"].tolist()
            ways = [
                pgs.walks.MetaPathWalk([way], 3, seed=3)
                .sample(graph, [1, 7], batch=0)
                .nodes.tolist()
                for way in (cites, cites[1])
            ]
            assert ways[0] == ways[1]
            along = pgs.walks.MetaPathWalk([cites])
            fails(
                IndexError,
                "seeds[1]: expected an id in [0, 90), got 90",
                partial(along.sample, graph, [1, 90]),
            )
            fails(
                ValueError,
                "seeds: expected ids of 'paper'",
                partial(along.sample, graph, {"author": [1]}),
            )
            fails(
                NotImplementedError,
                "exclude: expected None for walks",
                partial(along.sample, graph, one, exclude=[1]),
            )
            fails(
                ValueError,
                "metapath: expected types of the graph",
                partial(pgs.walks.MetaPathWalk([("a", "b", "a")]).sample, graph, [1]),
            )
            fails(
                ValueError,
                "prob: expected the name of an edge array of the graph",
                partial(pgs.walks.MetaPathWalk([cites], prob="z").sample, graph, one),
            )
            around = pgs.walks.PinSAGE(3, metapath=[cites])
            fails(ValueError, f"got one in {world} parts", partial(around.sample, graph, one))
            for refuse in (
                lambda: graph.to("cuda"),
                graph.pin,
                lambda: graph.share(["cuda:0", "cuda:1"]),
                lambda: graph.save("there"),
            ):
                fails(ValueError, f"got one in {world} parts", refuse)
            fails(TypeError, "DistributedGraph", lambda: pickle.dumps(graph))


def loaders(rank: int, world: int, folder: str) -> None:
    whole = partitioned_graphs.of("ids")
    x = torch.from_dlpack(whole.ndata["x"])
    with distributed.open_graph(f"{folder}/ids {world}") as graph:
        features = graph.features("x")
        assert (len(features), features.shape, features.dtype) == (NODES, (NODES, 3), torch.float32)
        ids = torch.randint(0, NODES, (90,), generator=torch.Generator().manual_seed(rank))
        for rows in (
            features,
            features.cache(torch.arange(0, NODES, 3)),
            features.cache(range(NODES)),
        ):
            assert torch.equal(rows.read(ids), x[ids])
            assert torch.equal(rows.read(ids[:0]), x[:0])
            assert torch.equal(rows.read(ids.int()), x[ids])
        stats = features.stats()
        assert stats["reads"] == 5 and stats["rows"] == 180 + NODES // 3 + 1 + NODES
        fails(
            IndexError, "ids: expected integers in [0, 203), got 203", lambda: features.read([203])
        )
        fails(IndexError, "got -1", lambda: features.read([-1]))
        fails(TypeError, "ids: expected int32 or int64", lambda: features.read([0.5]))
        fails(KeyError, "expected the name of a node array", lambda: graph.features("z"))
        for deal in ("seeds", "batches"):
            about = {
                "batch_size": 16,
                "shuffle": True,
                "seed": 3,
                "labels": torch.arange(NODES),
                "rank": rank,
                "world_size": world,
                "shard_by": deal,
            }
            ours = DataLoader(graph, np.arange(NODES), [3, 4], features={"x": features}, **about)
            theirs = DataLoader(whole, np.arange(NODES), [3, 4], features={"x": x}, **about)
            for _ in range(2):
                # Ranks stop where they like.
                pairs = list(zip(ours, theirs, strict=False))[: 3 + rank]
                assert pairs
                for a, b in pairs:
                    assert (
                        torch.equal(a.input_nodes, b.input_nodes)
                        and torch.equal(a.x, b.x)
                        and torch.equal(a.y, b.y)
                    )
                    for p, q in zip(a.blocks, b.blocks, strict=False):
                        assert torch.equal(p.indices, q.indices) and torch.equal(
                            p.edge_ids, q.edge_ids
                        )
        labor = pgs.LaborSampler([3, 4], exact=True, prob="w", seed=3)
        about = {"batch_size": 64, "shuffle": True, "seed": 3}
        pair = (DataLoader(g, np.arange(NODES), labor, **about) for g in (graph, whole))
        for a, b in zip(*pair, strict=True):
            assert torch.equal(a.input_nodes, b.input_nodes)
            for p, q in zip(a.blocks, b.blocks, strict=True):
                assert torch.equal(p.edge_ids, q.edge_ids)
        ours = iter(DataLoader(graph, np.arange(NODES), [3, 4], batch_size=8))
        next(ours)
        del ours


def nccl(rank: int, world: int, folder: str) -> None:
    torch.cuda.set_device(rank)
    exchange = distributed.TorchExchange(dist.new_group(backend="nccl"))
    whole, rng = partitioned_graphs.of("ids"), np.random.default_rng(rank)
    x = torch.from_dlpack(whole.ndata["x"])
    with distributed.open_graph(f"{folder}/ids {world}", exchange, device="cuda") as graph:
        features = graph.features("x")
        for sampler in (pgs.PGSampler([3, -1, 4], seed=5, prob="w"), WALKS[2]):
            for number in range(3 + rank):
                seeds = rng.integers(0, NODES, 20)
                made, want = (
                    sampler.sample(g, seeds, epoch=1, batch=number) for g in (graph, whole)
                )
                assert content(made) == content(want), sampler
                assert torch.equal(features.read(seeds), x[seeds])
        loader = DataLoader(
            graph, np.arange(NODES), [3, 4], batch_size=64, features={"x": features}
        )
        for batch in loader:
            there = batch.to("cuda")
            assert there.x.is_cuda and torch.equal(there.x.cpu(), x[batch.input_nodes])


def refused(rank: int, world: int, folder: str) -> None:
    whole = partitioned_graphs.of("ids")
    graph = distributed.open_graph(f"{folder}/in {world}")
    if rank == 0:
        # The other process asks nothing, and answers all the same.
        def sample(how=None, **more):
            if how is None:
                how = {}
            return pgs.PGSampler([3, 2], seed=1, **how).sample(
                graph, [1, 2], epoch=0, batch=0, **more
            )

        fails(
            IndexError,
            "seeds[1]: expected an id in [0, 203), got 203",
            lambda: pgs.PGSampler([2], seed=0).sample(graph, [0, 203], epoch=0, batch=0),
        )
        fails(
            ValueError,
            "prob: expected the name of an edge array of the graph ('w', 't', 'm', 'k'), got 'z'",
            lambda: sample({"prob": "z"}),
        )
        fails(
            ValueError,
            "time: expected the name of an edge or node array of the partitioned graph",
            lambda: sample({"temporal": "z"}, seed_time=3),
        )
        fails(
            ValueError,
            "partition(..., times=['y']) and pygsampler partition --times write them",
            lambda: sample({"temporal": "y"}, seed_time=3),
        )
        fails(
            ValueError,
            "seed_time: expected a time for each seed",
            lambda: sample({"temporal": "t"}),
        )
        of_research = [
            lambda: sample({"mode": "queue"}),
            lambda: pgs.research.KHop([3]).sample(graph, [1]),
        ]
        for call in of_research if HAS_RESEARCH else []:
            text = "expected one of neighbors, walks or a program for a partitioned graph"
            fails(ValueError, text, call)
        fails(
            IndexError,
            "seeds[1]: expected an id in [0, 203), got 203",
            partial(COLUMNS[0].sample, graph, [1, 203]),
        )
        fails(ValueError, "whose edges are counted", lambda: COLUMNS[0].explain(graph))
        for program, text in (
            (
                samplers.fastgcn(nodes=[3]),
                "expected one on this machine for a program with 'whole'",
            ),
            (samplers.saint_walk(roots=3, length=2), "for a program with 'walk'"),
            (
                layer_wise.labor(fanouts=[2], weight="z"),
                "weight: expected the name of an edge array",
            ),
            (
                samplers.asgcn(nodes=[3], source="y", target="born"),
                "expected a graph on this machine for its node arrays ('born', 'y')",
            ),
        ):
            fails(ValueError, text, partial(program.sample, graph, [1]))
        fails(
            ValueError,
            "direction: expected 'in' for parts without out-edges",
            lambda: pgs.RandomWalk(3).sample(graph, [1]),
        )
        fails(
            ValueError,
            "seeds: expected a multiple of 2, the roots of a walk, got 1",
            lambda: pgs.walks.MultiRW(2, 3, direction="in").sample(graph, [1]),
        )
        fails(
            ValueError,
            "edge_types: expected the name of an edge array of the graph",
            lambda: pgs.RandomWalk(3, metapath=[0], edge_types="z", direction="in").sample(
                graph, [1]
            ),
        )
        fails(
            ValueError,
            "graph: expected a graph on this machine for its indptr",
            lambda: graph.indptr,
        )
        fails(ValueError, "got one in 2 parts", lambda: graph.indices)
        fails(ValueError, "got one in 2 parts", lambda: graph.to("cuda"))
        fails(ValueError, "got one in 2 parts", lambda: graph.pin())
        fails(ValueError, "got one in 2 parts", lambda: graph.share(["cuda:0", "cuda:1"]))
        for name in (
            *("in_degrees", "out_degrees", "reverse_edge_ids"),
            *("to_networkx", "to_scipy", "to_dgl", "to_pyg"),
        ):
            fails(ValueError, "for its edges, got one in 2 parts", getattr(graph, name))
        fails(ValueError, "for its names, got one in 2 parts", lambda: graph.index_of(["a"]))
        fails(TypeError, "DistributedGraph", lambda: pickle.dumps(graph))
        assert graph.to("cpu") is graph and "part 0 of 2" in repr(graph)
        assert content(sample()) == content(
            pgs.PGSampler([3, 2], seed=1).sample(whole, [1, 2], epoch=0, batch=0)
        )
        pid = os.fork()
        if not pid:
            try:
                fails(pgs.Error, "this process has opened", sample)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    graph.close()
    fails(
        pgs.errors.ClosedError,
        "graph: expected an open one",
        lambda: pgs.PGSampler([2], seed=0).sample(graph, [1], epoch=0, batch=0),
    )
    fails(
        ValueError,
        "exchange: expected 3 processes, one for each part, got 2",
        lambda: distributed.open_graph(f"{folder}/ids 3"),
    )


def groups(rank: int, world: int) -> None:
    """Destroys groups while a thread of Gloo may still have a collective's tensors."""
    for number in range(40):
        group = ProcessGroup("groups", None, 30)
        assert group.gather((rank, number)) == [[other, number] for other in range(world)]
        group.close()


def misses(rank: int, world: int, folder: str) -> None:
    """Checks meetings to which the last of three processes comes late, or after the others left."""
    if rank == 2:
        time.sleep(1)
    distributed.open_graph(f"{folder}/plain {world}").close()
    if rank < 2:
        start = time.monotonic()
        fails(
            TimeoutError,
            "TorchExchange: expected all 3 processes within 2 s, got nothing from rank 2",
            lambda: distributed.open_graph(
                f"{folder}/plain {world}", distributed.TorchExchange(wait=2)
            ),
        )
        assert 2 <= time.monotonic() - start < 120
        dist.barrier()
        for name in ("wait", "timeout"):
            options = {name: 0}
            fails(
                ValueError,
                f"{name}: expected seconds > 0, got 0",
                lambda options=options: distributed.TorchExchange(**options),
            )
    else:
        dist.barrier()
        fails(
            TimeoutError,
            "expected all 3 processes within 0.2 s, got nothing from ranks 0, 1",
            lambda: distributed.open_graph(
                f"{folder}/plain {world}", distributed.TorchExchange(wait=0.2)
            ),
        )
    # All may try again.
    dist.barrier()
    distributed.open_graph(f"{folder}/plain {world}").close()


def worlds(rank: int, world: int, folder: str) -> None:
    """One process has met in a world that the other was not in, and was interrupted once."""
    dist.destroy_process_group()
    if rank == 0:
        alone = {"init_method": f"file://{folder}/store alone", "rank": 0, "world_size": 1}
        dist.init_process_group("gloo", **alone)
        for _ in range(2):
            distributed.TorchExchange().close()
        dist.destroy_process_group()
    both = {"init_method": f"file://{folder}/store of both", "rank": rank, "world_size": world}
    dist.init_process_group("gloo", **both)
    if rank == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            distributed.TorchExchange(wait=60)
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError("nothing was interrupted")
        dist.barrier()
    else:
        dist.barrier()
        fails(
            TimeoutError,
            "expected all 2 processes within 0.2 s, got nothing from rank 0",
            lambda: distributed.TorchExchange(wait=0.2),
        )
    dist.barrier()
    distributed.TorchExchange(wait=60).close()


def dies(rank: int, world: int, folder: str, how: str) -> None:
    exchange = distributed.TorchExchange(timeout=4)
    graph = distributed.open_graph(f"{folder}/plain {world}", exchange)
    sampler = pgs.PGSampler([3, 3], seed=0)
    sampler.sample(graph, [1, 2, 3], epoch=0, batch=0)
    # All have their first batch before one of them is gone.
    dist.barrier()
    if rank == 1:
        if how == "dies":
            os._exit(7)
        if how == "raises":
            # It ends in order, though nobody closes the graph.
            raise KeyError("a mistake of one process")
        # Its thread does not come to the next exchange.
        exchange.ask = lambda *given, **more: time.sleep(60)
        time.sleep(9)
        os._exit(0)
    start = time.monotonic()
    try:
        for number in range(10**9):
            sampler.sample(graph, range(100), epoch=0, batch=number)
    except pgs.Error as error:
        assert "could not go on" in str(error), str(error)
        print(f"failed after {time.monotonic() - start:.0f} s", flush=True)
    fails(pgs.Error, "could not go on", lambda: sampler.sample(graph, [1], epoch=0, batch=0))
    graph.close()
    os._exit(0)
