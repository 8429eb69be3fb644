#!/usr/bin/env python3
"""Every kernel a few times on small graphs, checked: what tools/gpu_check.sh runs in a sanitizer.

    python tools/gpu_check_small.py [--kernels] [PART...]

Parts are those of PARTS, all of them if none is named. Each compares what the kernels make with the
CPU engine's; the status is not 0 where anything differs. ``--kernels`` also notes which kernels the
GPU ran, by torch's profiler, which no sanitizer allows beside it, and fails unless these are all of
``kernels/*/*.cu``.

Small, since a sanitizer makes a kernel a hundred times slower; with more than one block a launch
all the same, so that what blocks tell each other is looked at, too.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import Temporal, layer_wise
from tests.support import context_graphs, hetero_parity
from tests.support.assertions import assert_equal
from tests.support.parity import (
    MODES,
    SWITCHES,
    awkward,
    compare,
    compare_reservoirs,
    edges_of,
    on_own_pages,
    random_graph,
    scaled,
)


def gathers(device: str) -> None:
    """Rows of every width of a vector, on the device, page-locked and cached, and a loader's."""
    import torch

    from pygsampler.torch import DataLoader

    torch.manual_seed(3)
    graph = random_graph(3000, seed=1, most=70).graph(32)
    for shape, dtype in (
        *(((), "int8"), ((3,), "uint8"), ((1,), "float16"), ((5,), "float32"), ((100,), "float32")),
        *(((602,), "float32"), ((2, 8), "float64"), ((0,), "float32")),
    ):
        x = (torch.randn(3000, *shape) * 5).to(getattr(torch, dtype))
        if x.numel():
            x = torch.from_numpy(on_own_pages(x.numpy().ravel())).reshape(x.shape)
        host = pgs.Features.from_tensor(x)
        placed = [host.to(device)]
        if device != "cpu":
            placed += [host.pin(device), host.cache(device, rows=400, graph=graph)]
            placed += [host.cache(device, rows=40, policy="lru")]
            placed += [host.cache(device, rows=40, graph=graph.to(device))]
        for features in placed:
            for ids in (torch.randint(0, 3000, (333,)), torch.arange(0), torch.full((40,), 2999)):
                for given in (ids.to(device), ids.int().to(device)):
                    assert torch.equal(features[given].cpu(), x[ids]), (shape, dtype)
            try:
                features[torch.tensor([0, 3000, -1], device=device)]
            except IndexError as error:
                assert "ids[1]" in str(error)
            else:
                raise AssertionError("a row beyond the table was read")
    x = torch.randn(3000, 33)
    for kind in ("float16", "float8_e4m3", "int8", "int4"):
        for per, columns in (("row", 33), ("column", 32)):
            host = pgs.Features.from_tensor(x[:, :columns]).quantize(kind, per)
            placed = [host.to(device)]
            if device != "cpu":
                placed += [host.pin(device), host.cache(device, rows=40, policy="lru")]
            for features in placed:
                for ids in (torch.randint(0, 3000, (333,)), torch.full((40,), 2999)):
                    assert torch.equal(features[ids.to(device)].cpu(), host[ids]), (kind, per)
    x, y = torch.randn(3000, 40), torch.arange(3000)
    loaders = [
        DataLoader(
            graph.to(at), torch.arange(900), [5, 4], batch_size=300, seed=1,
            features={"x": pgs.Features.from_tensor(x).to(at)},
            labels=pgs.Features.from_tensor(y).to(at),
        )
        for at in (device, "cpu")
    ]  # fmt: skip
    for got, want in zip(*loaders, strict=True):
        assert torch.equal(got.x.cpu(), want.x)
        assert torch.equal(got.y.cpu(), want.y)


def segments(device: str) -> None:
    """Reductions of blocks and their gradients: the CPU's bits."""
    import torch

    torch.manual_seed(4)
    for bits in (32, 64):
        cpu = random_graph(3000, seed=1, most=70).graph(bits)
        sampler = pgs.PGSampler([7, 5], seed=1)
        batches = [
            sampler.sample(graph, np.arange(200), batch=0).torch()
            for graph in (cpu, cpu.to(device))
        ]
        for mine, theirs in zip(*(batch.blocks for batch in batches), strict=True):
            for shape, heads in (((), 0), ((7,), 0), ((64,), 0), ((4, 25), 4), ((301,), 0)):
                x = torch.randn(mine.num_src_nodes, *shape)
                w = torch.randn((mine.num_edges, heads) if heads else (mine.num_edges,))
                for kind in ("sum", "mean", "max", "weighted_sum"):
                    found = []
                    for block, at in ((mine, "cpu"), (theirs, device)):
                        inputs = [x.to(at, copy=True).requires_grad_()]
                        if kind == "weighted_sum":
                            inputs.append(w.to(at, copy=True).requires_grad_())
                        made = getattr(block, kind)(*inputs)
                        (
                            made * (torch.arange(made.numel()).to(at).reshape(made.shape) % 7)
                        ).sum().backward()
                        found.append([made.detach().cpu(), *(one.grad.cpu() for one in inputs)])
                    for place, (a, b) in enumerate(zip(*found, strict=True)):
                        # Gradients of weights are added in another order.
                        alike = torch.equal(a, b) if place < 2 else torch.allclose(a, b, 1e-4, 1e-3)
                        assert alike, (kind, shape, bits)
                if heads:
                    source = torch.randn(mine.num_src_nodes, heads)
                    target = torch.randn(mine.num_dst_nodes, heads)
                    for kind in (torch.float32, torch.float16):
                        found = []
                        for block, at in ((mine, "cpu"), (theirs, device)):
                            # Numbers of two bytes come from the same ones.
                            inputs = [t.to(kind).to(at, copy=True) for t in (x, source, target)]
                            if at == "cpu":
                                inputs = [t.float() for t in inputs]
                            inputs = [t.detach().requires_grad_() for t in inputs]
                            made = block.attention(*inputs)
                            made.sum().backward()
                            found.append([made.detach(), *(one.grad for one in inputs)])
                        close = 1e-4 if kind == torch.float32 else 5e-2
                        for a, b in zip(*found, strict=True):
                            assert torch.allclose(b.float().cpu(), a, close, close), (kind, bits)
                    scores = torch.randn(mine.num_edges, heads)
                    made = theirs.softmax(scores.to(device))
                    assert torch.allclose(made.cpu(), mine.softmax(scores), atol=1e-5)
            # Rows of a table by their ids, and the gradient of the weights.
            ids = torch.randint(3000, (mine.num_src_nodes,))
            for dtype, kind in product(
                (torch.float32, torch.float16), ("sum", "mean", "max", "weighted_sum")
            ):
                table, weights = torch.randn(3000, 64).to(dtype), torch.randn(mine.num_edges)
                found = []
                for block, at in ((mine, "cpu"), (theirs, device)):
                    # The CPU adds up floats.
                    into = torch.float32 if at == "cpu" else dtype
                    given = [weights.to(dtype).to(at, into, copy=True).requires_grad_()]
                    given = given if kind == "weighted_sum" else []
                    made = getattr(block, kind)(table.to(at, into), *given, of=ids.to(at))
                    if given:
                        made.sum().backward()
                    found.append([made.detach(), *(one.grad for one in given)])
                close = 1e-4 if dtype == torch.float32 else 5e-2
                for a, b in zip(*found, strict=True):
                    assert torch.allclose(b.float().cpu(), a, close, close), (kind, dtype, bits)
            # Numbers of two bytes, in sums of floats.
            half = torch.randn(mine.num_src_nodes, 4, 16).half()
            for kind in ("sum", "mean", "max", "weighted_sum", "heads"):
                weights = torch.randn((mine.num_edges, 4) if kind == "heads" else mine.num_edges)
                given = (weights.half(),) if kind in ("weighted_sum", "heads") else ()
                found = []
                for block, at in ((mine, "cpu"), (theirs, device)):
                    inputs = [t.to(at, copy=True) for t in (half, *given)]
                    inputs = [(t.float() if at == "cpu" else t).requires_grad_() for t in inputs]
                    made = getattr(block, "weighted_sum" if kind == "heads" else kind)(*inputs)
                    made.sum().backward()
                    found.append([made.detach(), *(one.grad for one in inputs)])
                for a, b in zip(*found, strict=True):
                    assert torch.allclose(b.float().cpu(), a, 5e-2, 5e-2), (kind, bits)


def long_rows(device: str) -> None:
    """Rows that groups of threads share, and attention of GATv2: near the CPU's."""
    import torch

    from pygsampler._batch.block import Block
    from pygsampler._ops import segments as by_edge

    torch.manual_seed(5)
    indptr = torch.tensor([0, 0, 3, 2003, 2008, 2708, 2708, 2709])
    indices = torch.randint(300, (2709,))
    indices[::3] = 7  # a source of many edges
    arrays = indptr, indices, indices, torch.arange(300), torch.arange(7)
    blocks = [Block._of_arrays(*(t.to(at) for t in arrays)) for at in ("cpu", device)]
    values = [torch.randn(*shape) for shape in ((300, 4, 8), (7, 4, 8), (2709, 4))]
    many, by_edge._MANY = by_edge._MANY, 0
    try:
        for dtype, close in ((torch.float32, 1e-4), (torch.float16, 5e-2)):
            found = []
            for block, at in zip(blocks, ("cpu", device), strict=True):
                # Numbers of two bytes come from the same ones; the CPU adds up floats.
                into = torch.float32 if at == "cpu" else dtype
                leaves = [t.to(dtype).to(at, into, copy=True).requires_grad_() for t in values]
                x, own, scores = leaves
                made = [
                    *(getattr(block, kind)(x) for kind in ("sum", "mean", "max")),
                    block.weighted_sum(x, scores),
                    block.softmax(scores),
                    block.attention(x, x.sum(2), own.sum(2), edge=scores),
                    # Heads that share rows.
                    block.attention(x[:, :1], x.sum(2), own.sum(2), edge=scores),
                    block.attention_v2(x, own, x[0]),
                ]
                grads = torch.autograd.grad(sum(one.float().sum() for one in made), leaves)
                found.append([*(one.detach() for one in made), *grads])
            for a, b in zip(*found, strict=True):
                most = max(1.0, float(a.abs().max()))
                assert torch.allclose(b.float().cpu(), a, close, close * most), dtype
    finally:
        by_edge._MANY = many


def statics(device: str) -> None:
    """Batches of fixed sizes, and more of them than a pass has room for at first."""
    import torch

    from pygsampler.torch import DataLoader

    for bits in (32, 64):
        cpu = random_graph(3000, seed=1, most=70).graph(bits)
        weights = np.random.default_rng(1).uniform(1, 2, cpu.num_edges)
        graph = cpu.with_data(edge_data={"w": weights}).to(device)
        x, y = torch.randn(3000, 40, device=device), torch.arange(3000, device=device)
        for prob in (None, "w"):
            about = graph, torch.arange(900), pgs.PGSampler([5, 4], prob=prob, seed=1)
            options = {"batch_size": 200, "features": {"x": x}, "labels": y}
            fixed = DataLoader(*about, static=[(700, 800), (400, 300)], **options)
            for got, want in zip(fixed, DataLoader(*about, **options), strict=True):
                mine = got.trimmed()
                assert torch.equal(mine.x, want.x) and torch.equal(mine.y, want.y)
                for block, real in zip(got.blocks, want.blocks, strict=True):
                    pairs = block.edge_index[:, : real.num_edges]
                    assert torch.equal(pairs, real.edge_index)
                first, real = got.blocks[0], want.blocks[0]
                means = first.self_and_reduce(x, "mean", of=got.input_nodes)[1][
                    : real.num_dst_nodes
                ]
                assert torch.equal(means, real.mean(want.x))
            # All edges of a row: kernels for any fanout.
            about = graph, torch.arange(300), pgs.PGSampler([-1, 4], prob=prob, seed=1)
            options = {"batch_size": 100}
            fixed = DataLoader(*about, static=True, **options)
            for got, want in zip(fixed, DataLoader(*about, **options), strict=True):
                for block, real in zip(got.trimmed().blocks, want.blocks, strict=True):
                    assert torch.equal(block.edge_ids, real.edge_ids)


def statics_of_found(device: str) -> None:
    """Batches of fixed sizes whose frontiers are what a hop found."""
    import torch

    from pygsampler.torch import DataLoader

    for bits in (32, 64):
        cpu = random_graph(3000, seed=1, most=70).graph(bits)
        weights = np.random.default_rng(1).uniform(1, 2, cpu.num_edges)
        graph = cpu.with_data(edge_data={"w": weights}).to(device)
        for prob in (None, "w"):
            sampler = pgs.PGSampler([5, 4], frontier="new", prob=prob, seed=1)
            about: Any = graph, torch.arange(900), sampler
            fixed = DataLoader(*about, batch_size=200, static=True)
            for got, want in zip(fixed, DataLoader(*about, batch_size=200), strict=True):
                mine = got.trimmed()
                assert torch.equal(mine.input_nodes, want.input_nodes)
                for block, real in zip(mine.blocks, want.blocks, strict=True):
                    assert torch.equal(block.edge_ids, real.edge_ids)


def statics_of_types(device: str) -> None:
    """Batches of fixed sizes of a graph with types."""
    import torch

    from pygsampler.torch import DataLoader

    random = np.random.default_rng(2)
    for dtype in ("int32", "int64"):
        kinds = {
            kind: tuple(random.integers(0, 200, 3000).astype(dtype) for _ in range(2))
            for kind in (("a", "x", "b"), ("b", "y", "a"))
        }
        data = {kind: {"w": random.random(3000) + 0.1} for kind in kinds}
        graph = pgs.Graph.from_coo(kinds, num_nodes={"a": 200, "b": 200}, edge_data=data).to(device)
        x = {kind: torch.randn(200, 8, device=device) for kind in "ab"}
        for prob in (None, "w"):
            sampler = pgs.PGSampler([3, 2], prob=prob, seed=1)
            about: Any = graph, {"a": torch.arange(150)}, sampler
            options: Any = {"batch_size": 50, "features": {"x": x}}
            fixed = DataLoader(*about, static=True, **options)
            for got, want in zip(fixed, DataLoader(*about, **options), strict=True):
                mine = got.trimmed()
                for kind in "ab":
                    assert torch.equal(mine.input_nodes[kind], want.input_nodes[kind])
                    assert torch.equal(mine.x[kind], want.x[kind])
                for hop, others in zip(mine.blocks, want.blocks, strict=True):
                    for edge, block in hop.items():
                        assert torch.equal(block.edge_ids, others[edge].edge_ids)


def walks() -> None:
    """Walks of every kind, visits, and steps of samples: the CPU's bytes."""
    csc = random_graph(scaled(3000, 400), seed=1, most=70)
    draw = np.random.default_rng(5)
    for bits in (32, 64):
        edges = csc.graph(bits).num_edges
        data = {"w": draw.pareto(0.6, edges), "t": draw.integers(0, 2, edges)}
        cpu = csc.graph(bits).with_data(edge_data=data)
        there = cpu.to("cuda")
        for options in (
            {"edge_ids": True},
            {"prob": "w", "stop": 0.1},
            {"prob": "w"},
            {"restart": 0.2, "count_jumps": True},
            {"p": 0.25, "q": 4.0},
            {"p": 2.0, "q": 0.5, "prob": "w"},
            {"metapath": [0, 1], "edge_types": "t"},
        ):
            for way in ({"layout": "packed"}, {"layout": "csr"}, {"execution": "transit"}):
                if "metapath" in options and way == {"layout": "packed"}:
                    continue
                sampler = pgs.RandomWalk(12, walks_per_seed=2, seed=1, mode_options=way, **options)
                got = sampler.sample(there, np.arange(300), batch=0).cpu().numpy()
                want = sampler.sample(cpu, np.arange(300), batch=0).numpy()
                assert (got.nodes == want.nodes).all(), (options, way)
                assert (got.edge_ids == want.edge_ids).all(), (options, way)
        for sampler in (
            pgs.walks.PinSAGE(2, 0.5, 10, 5, seed=1),
            pgs.walks.MultiRW(150, 40, seed=1),
        ):
            found = [sampler.sample(g, np.arange(300), batch=0).nodes for g in (there, cpu)]
            assert (found[0].cpu().numpy() == found[1].numpy()).all(), sampler
        # Steps of one sample, of several tasks a hub, and of sums that are not in shared memory.
        for by_steps in (
            pgs.research.KHop([7, 5], edge_ids=True, seed=1),
            pgs.research.KHop([7, 5], unique="transit", edge_ids=True, execution="transit", seed=1),
            pgs.research.KHop([7, 5], unique=True, edge_ids=True, seed=1),
            pgs.research.KHop([40, 30], unique=True, edge_ids=True, seed=1),
            pgs.research.LayerSample([2100, 40], edge_ids=True, seed=1),
            pgs.research.LayerSample([40, 30], unique=True, edge_ids=True, seed=1),
            pgs.research.LayerSample([2100, 40], unique=True, edge_ids=True, seed=1),
        ):
            got, want = (
                by_steps.sample(g, np.arange(300), batch=0).cpu().numpy() for g in (there, cpu)
            )
            for mine, theirs in zip(
                (*got.steps, *got.edge_ids), (*want.steps, *want.edge_ids), strict=True
            ):
                assert (mine == theirs).all(), by_steps
        # So many that blocks are full, and what lies behind ended walks is filled before.
        many = pgs.RandomWalk(4, stop=0.3, walks_per_seed=scaled(200, 20), seed=1)
        found = [many.sample(g, np.arange(300), batch=0).cpu().numpy() for g in (there, cpu)]
        assert (found[0].nodes == found[1].nodes).all()


def negatives() -> None:
    """Nodes that walks are compared with."""
    import torch

    from pygsampler.torch import skip_gram

    for bits in (32, 64):
        cpu = random_graph(3000, seed=1, most=70).graph(bits)
        walk = pgs.RandomWalk(4, stop=0.3, walks_per_seed=20, seed=1)
        graphs = cpu.to("cuda"), cpu
        found = [walk.sample(g, np.arange(300), batch=0).torch() for g in graphs]
        pairs = [skip_gram(g, w, 3, negatives=2) for g, w in zip(graphs, found, strict=True)]
        assert torch.equal(pairs[0].negatives.cpu(), pairs[1].negatives)


def batches() -> None:
    """Batches of blocks, by every mode."""
    graphs = {"random": random_graph(scaled(3000, 200), seed=1, most=70), **awkward()}
    for name in ("random", "star", "parallel_edges", "trailing"):
        csc = graphs[name]
        for ids in (32, 64):
            cpu = csc.graph(ids)
            there = cpu.to("cuda")
            seeds = np.arange(min(200, csc.num_nodes))
            for fanouts in ([5, 4], [3, 0, -1] if name != "two_cliques" else [3]):
                compare(cpu, there, seeds, fanouts)
            compare(cpu, there, seeds, [40, 3], replace=True)
            compare(
                cpu,
                there,
                np.append(seeds, seeds),
                [4, 4],
                exclude=np.arange(len(csc.indices) // 2),
            )
            compare_reservoirs(cpu, there, np.append(seeds, seeds), [5, 4], SWITCHES.values())
            compare_reservoirs(cpu, there, seeds, [40], SWITCHES.values())
            compare_reservoirs(
                cpu, there, seeds, [3], [{}], exclude=np.arange(len(csc.indices) // 2)
            )
    # By weights that rows draw from with few repeats, and with so many that the sums take over.
    draw = np.random.default_rng(2)
    count = len(graphs["random"].indices)
    for ids, weights in ((32, draw.uniform(1, 5, count)), (64, draw.pareto(0.3, count))):
        plain = graphs["random"].graph(ids)
        cpu = plain.with_data(edge_data={"w": weights, "m": weights > 1.5})
        there = cpu.to("cuda")
        seeds = np.arange(200)
        for fanouts in ([5, 4], [40, 3], [-1, 12]):
            compare(cpu, there, seeds, fanouts, modes=["auto"], prob="w")
        compare(cpu, there, seeds, [5, 4], modes=["auto"], mask="m")
        compare(cpu, there, seeds, [5, 4], modes=["auto"], prob="w", disjoint=True)
        compare(cpu, there, seeds, [5, 4], modes=["auto"], disjoint=True)
        without = np.arange(0, plain.num_edges, 2)
        compare(cpu, there, seeds, [5, 4], modes=["auto"], prob="w", exclude=without)
        for options in ({}, {"prob": "w"}, {"prob": "w", "replace": True}, {"mask": "m"}):
            compare(cpu, there, seeds, [5, 4], modes=["auto"], edge_weights="ht", **options)
        lists = [np.arange(i, scaled(2000, 200), 7) for i in range(4)]
        for prob in (None, "w"):
            sampler = pgs.PGSampler([6, 5], seed=1, prob=prob)
            for got, want in zip(
                *(sampler.sample_many(g, lists, batch=0) for g in (there, cpu)), strict=True
            ):
                assert_equal(got, want)
    cpu = graphs["random"].graph(32, 32, 64, to_pin=True)
    there = cpu.to("cuda")
    pinned = cpu.pin()
    compare(cpu, pinned, np.arange(100), [4, 4])
    # Validated by a kernel, without a graph on the host.
    compare(
        cpu,
        pgs.Graph.from_csc(there.indptr, there.indices, edge_ids=there.edge_ids),
        np.arange(100),
        [4, 4],
    )
    made = [pgs.PGSampler([6, 5], seed=1).sample(g, np.arange(100), batch=0) for g in (there, cpu)]
    for got, want in zip(made[0].blocks, made[1].blocks, strict=True):
        assert got.coo()[1].cpu().tolist() == want.coo()[1].tolist()
    for mode in MODES:
        sampler = pgs.PGSampler([6, 5], seed=1, mode=mode)
        lists = [np.arange(i, scaled(2000, 200), 7) for i in range(4)]
        jobs = [sampler.submit(there, seeds, batch=i) for i, seeds in enumerate(lists)]
        many = sampler.sample_many(there, lists, batch=0)
        for i, seeds in enumerate(lists):
            want = sampler.sample(cpu, seeds, batch=i)
            assert_equal(jobs[i].result(), want)
            assert_equal(many[i], want)
    loose = pgs.PGSampler([6, 5], seed=1, mode="queue", mode_options={"ordered": False})
    want = loose.sample(cpu, np.arange(100), batch=0)
    assert edges_of(loose.sample(there, np.arange(100), batch=0)) == edges_of(want)


def large() -> None:
    """A map that no cache holds: edges in bins. The first batch says that there are as many."""
    rows, degree, nodes = 1 << 14, 20, (1 << 25) + 1000
    random = np.random.default_rng(3)
    indptr, indices = np.arange(rows + 1) * degree, random.integers(0, nodes, rows * degree)
    for ids in (np.int32, np.int64):
        plain = pgs.Graph.from_csc(indptr, indices.astype(ids), num_nodes=nodes)
        cpu = plain.with_data(edge_data={"w": random.uniform(1, 2, len(indices))})
        there = cpu.to("cuda")
        for prob in (None, "w"):
            sampler = pgs.PGSampler([18], seed=1, prob=prob)
            for batch in range(3):
                got, want = (sampler.sample(g, np.arange(rows), batch=batch) for g in (there, cpu))
                assert_equal(got, want)


def types() -> None:
    """Graphs with types: neighbours, by weight and by time, HGT's nodes, LABOR's edges."""
    numbers: Any = {"epoch": 3, "batch": 1 << 33}
    for dtype in ("int32", "int64"):
        random = np.random.default_rng(5)
        graph = hetero_parity.make(5, 3, 6, dtype, 40)
        there, seeds = graph.to("cuda"), hetero_parity.seeds_of(graph, random)
        without = hetero_parity.half_of(graph, random)
        labor: list[dict[str, Any]] = [
            {},
            {"exact": True, "edge_weights": "mean"},
            {"exact": True, "prob": "w", "batch_dependency": 3},
            {"importance": -1, "frontier": "new"},
            {"importance": 2, "prob": "w"},
        ]
        made: list[Any] = [
            pgs.PGSampler([3, 2], seed=1),
            pgs.PGSampler([3, -1], prob="w", edge_weights="ht", seed=1),
            pgs.PGSampler([40, 2], replace=True, frontier="new", seed=1),
            pgs.PGSampler([3, 2], disjoint=True, seed=1),
            pgs.samplers.HGTSampler([8, 40], seed=1),
            *(
                pgs.LaborSampler([3, 2], seed=1, **{"edge_weights": "ht", **options})
                for options in labor
            ),
        ]
        for sampler in made:
            for exclude in (
                ({}, without) if not isinstance(sampler, pgs.samplers.HGTSampler) else ({},)
            ):
                options = {"exclude": exclude} if exclude else {}
                want = sampler.sample(graph, seeds, **numbers, **options)
                got = sampler.sample(there, seeds, **numbers, **options)
                hetero_parity.assert_equal_batches(got, want, sampler)
        ends = [random.integers(0, 60, 800).astype(dtype) for _ in range(4)]
        kinds = {("a", "x", "b"): tuple(ends[:2]), ("b", "y", "a"): tuple(ends[2:])}
        when = {kind: {"t": np.arange(800) % 50, "w": random.random(800)} for kind in kinds}
        dated = pgs.Graph.from_coo(kinds, num_nodes={"a": 60, "b": 60}, edge_data=when)
        about: Any = {"seed_time": {"a": np.full(20, 30)}, **numbers}
        for options in ({"prob": "w"}, {"temporal": Temporal("t", "last")}):
            timed = pgs.PGSampler([3, 2], disjoint=True, seed=1, **{"temporal": "t", **options})
            found = [
                timed.sample(g, {"a": np.arange(20)}, **about) for g in (dated.to("cuda"), dated)
            ]
            hetero_parity.assert_equal_batches(*found, timed)


def programs() -> None:
    """Generated kernels: at least one of each step that a program may have."""
    csc = random_graph(300, seed=1, most=60)
    draw = np.random.default_rng(6)
    nodes = {name: draw.random(300) for name in ("up", "down", "share", "bound")}
    cpu = csc.graph(32).with_data(
        edge_data={"w": draw.random(len(csc.indices))},
        node_data={**nodes, "rows": draw.random((300, 6)).astype(np.float32)},
    )
    there = cpu.to("cuda")
    w1, w2 = (draw.random((6, 8)).astype(np.float32) for _ in range(2))
    tensors = {"W1": w1, "W2": w2, "W3": draw.random(3).astype(np.float32)}
    made: dict[str, Any] = {
        "labor": layer_wise.labor(fanouts=[3, 4], seed=1),
        "labor, rounds": layer_wise.labor(fanouts=[3, 4], importance=2, seed=1),
        "labor, weights": layer_wise.labor(fanouts=[3, 4], importance=1, weight="w", seed=1),
        "labor, exact": layer_wise.labor(
            fanouts=[3, 4], exact=True, batch_dependency=2, weight="w", seed=1
        ),
        "ladies": samplers.ladies(nodes=[20, 40], weight="w", seed=1),
        "ladies, poisson": samplers.ladies(nodes=[20, 40], method="poisson", weight="w", seed=1),
        "fastgcn": samplers.fastgcn(nodes=[30, 30], weight="w", seed=1),
        "asgcn": samplers.asgcn(nodes=[20, 30], source="up", target="down", weight="w", seed=1),
        "exp3m": samplers.learned.exp3m(fanouts=[3, 5], eta=0.4, log_weights="w", seed=1),
        "graphsage": samplers.graphsage(fanouts=[40, 3], seed=1),
        "kgcn": samplers.kgcn(fanouts=[4, 8], weight="w", seed=1),
        "vrgcn": samplers.vrgcn(fanouts=[2, 2], seed=1),
        "pass": samplers.learned.pass_sampler(
            fanouts=[4, 3], **tensors, features="rows", scope=20, weight="w", seed=1
        ),
        "shadow": samplers.shadow(fanouts=[3, 2], seed=1),
        "saint_walk": samplers.saint_walk(roots=20, length=3, seed=1),
        "seal": samplers.seal(fanouts=[4, 3], seed=1),
        "mvs": samplers.mvs(size=20, fanouts=[4, -1], bound="bound", seed=1),
    }
    seeds = np.arange(0, 80, 2)
    for name, sampler in made.items():
        got, want = (sampler.sample(g, seeds, epoch=1, batch=3) for g in (there, cpu))
        assert_equal(got, want, name)
    # A bandit, whose new values are written on the device.
    bandit = samplers.learned.gcn_bs(there, fanouts=[3, 5], seed=1)
    for version in range(3):
        batch, found = (bandit.sample(g, seeds[:2], batch=version) for g in (cpu, there))
        assert_equal(found, batch, version)
        bandit.update(batch, [np.ones(len(block.indices)) for block in batch.blocks])


def times() -> None:
    """Rows by the times of their edges, in the kernel of graphs with types."""
    for bits in (32, 64):
        csc = random_graph(300, seed=2, most=40)
        when = np.random.default_rng(3).integers(0, 50, len(csc.indices))
        cpu = csc.graph(bits).with_data(edge_data={"t": when})
        sampler = pgs.PGSampler([4, 3], temporal="t", disjoint=True, seed=1)
        about: Any = {"seed_time": np.full(60, 25), "epoch": 1, "batch": 2}
        found = [sampler.sample(g, np.arange(60), **about) for g in (cpu.to("cuda"), cpu)]
        assert_equal(*found, sampler)


def contexts() -> None:
    """Contexts of fixed length, by times of nodes and of edges and without, of several warps."""
    for times in ("node", "edge", None):
        for bits in (32, 64):
            made = context_graphs.ContextGraph(bits, times, types=3)
            graph = made.graph(f"int{bits}")
            there = graph.to("cuda")
            seeds, _, kinds = made.seeds(40)
            seed_time, _ = made.bounds(kinds)
            more = {} if times is None else {"seed_time": seed_time}
            for options in (
                {"budget": 5},
                {"budget": 90, "width": None},
                {"budget": 70, "by": "cell"},
            ):
                sampler = samplers.context(time=None if times is None else "t", **options)
                got, want = (sampler.sample(g, seeds, **more) for g in (there, graph))
                context_graphs.assert_equal_contexts(got, want, (times, bits, options))
    # More lists in a hop than a warp has lanes' groups of.
    random = np.random.default_rng(4)
    ends = random.integers(0, 1500, (2, 20_000))
    graph = pgs.Graph.from_coo(
        *ends, num_nodes=1500, edge_data={"t": random.integers(0, 99, 20_000)}
    )
    sampler = samplers.context(budget=1400, time="t")
    got, want = (sampler.sample(g, np.arange(6), seed_time=70) for g in (graph.to("cuda"), graph))
    context_graphs.assert_equal_contexts(got, want)


# The names of the kernels of each file, with {a,b} for either of two: test_gpu_check.py in
# tests/packaging compares them with the sources, whose macros make most of the names.
KERNELS = {
    "attention": "attention_{forward,backward}{,_shared} "
    "attention_{fold,pieces,scores,scores_back}",
    "attention_half": "attention_half_{forward,backward}{,_shared} "
    "attention_half_{fold,pieces,scores,scores_back}",
    "bsp": "bsp_{seeds,count,draw,choose,gather,check,number}{32,64}",
    "cache": "cache_{tally,touch,bid,put}",
    "context": "context{32,64}",
    "dequantize": "dequantize",
    "edge_factors": "edge_factors",
    "expand_coo": "expand_coo",
    "fused": "fused{32,64}",
    "gather": "gather",
    "hetero": "hetero{32,64}{,_all}",
    "hgt": "hgt{32,64}",
    "khop": "khop_{begin,step,enter,transits,layer,unique,layer_unique}{32,64} khop_finish",
    "labor": "labor{32,64}",
    "negatives": "negatives",
    "neighbor": "neighbor{32,64}{,_bins,_any,_trees,_many}",
    "queue": "queue{32,64}",
    "reservoir": "reservoir_order reservoir_{count,draw}{32,64}",
    "segment": "segment_{sum,weighted,placed,by_degree,sum_of,weighted_of,max,max_of,taken,dots}"
    " segment_{dots_of,fold,fold_max}",
    "segment_half": "segment_half_{sum,weighted,placed,by_degree,sum_of,weighted_of,max,max_of}"
    " segment_half_{taken,dots,dots_of,fold,fold_max}",
    "softmax": "softmax{,_pieces}",
    "static": "static{32,64}{,_any,_weighted,_weighted_any} static_{turn,spread,edges}",
    "static_hetero": "static_hetero{32,64}{,_all} static_hetero_{turn,spread}",
    "transit": "transit_{begin,open,place,finish} transit_step{,_alias}{,_first,_second}{32,64}",
    "transpose": "transpose_{clear,count,scan,place,order}",
    "validate": "validate",
    "visit_counts": "visit_{counts,roots}{32,64}",
    "write_values": "write_values",
    "walk": "walk{,_alias}_{csr,packed}{,_first,_second}{32,64} walk_pack{,_alias} walk_offsets"
    " walk_filter",
    "weighted": "weighted{32,64}{,_bins,_any,_trees,_many}",
}
# A generated kernel, of every program and of the recognised ones.
GENERATED = "program"


def kernels() -> dict[str, set[str]]:
    """The names of the kernels of each file."""
    return {file: set(chain(*map(spelled, text.split()))) for file, text in KERNELS.items()}


def spelled(pattern: str) -> list[str]:
    """A name for each choice of what stands in braces."""
    parts = [part.split(",") for part in re.split(r"[{}]", pattern)]
    return ["".join(one) for one in product(*parts)]


def check_launched(names: set[str]) -> None:
    """Exits with the kernels that are not among the names of those which the GPU ran."""
    every = {GENERATED}.union(*kernels().values())
    if missing := sorted(every - names):
        raise SystemExit(f"{len(missing)} of {len(every)} kernels were not run: {missing}")
    print(f"all {len(every)} kernels ran")


PARTS: dict[str, Callable[[], None]] = {
    "batches": batches,
    "large": large,
    "types": types,
    "times": times,
    "programs": programs,
    "gathers": lambda: gathers("cuda"),
    "segments": lambda: segments("cuda"),
    "long rows": lambda: long_rows("cuda"),
    "statics": lambda: statics("cuda"),
    "statics of found": lambda: statics_of_found("cuda"),
    "statics of types": lambda: statics_of_types("cuda"),
    "contexts": contexts,
    "walks": walks,
    "negatives": negatives,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--skip", nargs="+", default=(), metavar="PART", help="all parts but these")
    parser.add_argument("--kernels", action="store_true", help="fail if a kernel was not run")
    options = parser.parse_args()
    if unknown := [part for part in (*options.parts, *options.skip) if part not in PARTS]:
        raise SystemExit(f"parts: expected some of {list(PARTS)}, got {unknown}")
    parts = [part for part in options.parts or PARTS if part not in options.skip]
    if not options.kernels:
        run(parts)
        return
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as found:
        run(parts)
    check_launched({event.key for event in found.key_averages()})


def run(parts: list[str]) -> None:
    """Runs each part of the comparison; AssertionError where something differs."""
    for part in parts:
        PARTS[part]()
    print(f"{', '.join(parts)}: all that was made is the CPU's")


if __name__ == "__main__":
    main()
