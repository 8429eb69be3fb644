#!/usr/bin/env python3
"""Every kernel a few times on small graphs, checked: what tools/gpu_check.sh runs in a sanitizer.

Names of parts (PARTS) choose among them.

Small, since a sanitizer makes a kernel a hundred times slower; with more than one block a launch
all the same, so that what blocks tell each other is looked at, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np

import pygsampler as pgs
from tests.support.parity import (
    MODES,
    SWITCHES,
    awkward,
    compare,
    compare_reservoirs,
    edges_of,
    on_own_pages,
    random_graph,
    same,
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
                        # Those of weights are added in another order.
                        alike = torch.equal(a, b) if place < 2 else torch.allclose(a, b, 1e-4, 1e-3)
                        assert alike, (kind, shape, bits)
                if heads:
                    source = torch.randn(mine.num_src_nodes, heads)
                    target = torch.randn(mine.num_dst_nodes, heads)
                    made = theirs.attend(*(t.to(device) for t in (x, source, target)))
                    want = mine.attend(x, source, target)
                    assert torch.allclose(made.cpu(), want, atol=1e-5)


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
            about = graph, torch.arange(900), [5, 4]
            options = {"batch_size": 200, "seed": 1, "prob": prob}
            options |= {"features": {"x": x}, "labels": y}
            fixed = DataLoader(*about, static=True, capacities=[(700, 800), (400, 300)], **options)
            for got, want in zip(fixed, DataLoader(*about, **options), strict=True):
                mine = got.trimmed()
                assert torch.equal(mine.x, want.x) and torch.equal(mine.y, want.y)
                for block, real in zip(got.blocks, want.blocks, strict=True):
                    pairs = block.edge_index[:, : real.num_edges]
                    assert torch.equal(pairs, real.edge_index)
                first, real = got.blocks[0], want.blocks[0]
                means = first.own_and(x, "mean", of=got.input_nodes)[1][: real.num_dst_nodes]
                assert torch.equal(means, real.mean(want.x))


def walks(device: str) -> None:
    """Walks of every kind, visits and negatives: the CPU's bytes."""
    import torch

    from pygsampler.torch import skip_gram

    csc = random_graph(3000, seed=1, most=70)
    draw = np.random.default_rng(5)
    for bits in (32, 64):
        edges = csc.graph(bits).num_edges
        data = {"w": draw.pareto(0.6, edges), "t": draw.integers(0, 2, edges)}
        cpu = csc.graph(bits).with_data(edge_data=data)
        there = cpu.to(device)
        for options in (
            {"edge_ids": True},
            {"prob": "w", "stop": 0.1},
            {"restart": 0.2, "count_jumps": True},
            {"p": 0.25, "q": 4.0},
            {"p": 2.0, "q": 0.5, "prob": "w"},
            {"metapath": [0, 1], "edge_types": "t"},
        ):
            for way in ({"layout": "packed"}, {"layout": "csr"}, {"execution": "transit"}):
                if "metapath" in options and way == {"layout": "packed"}:
                    continue
                sampler = pgs.RandomWalk(12, walks_per_seed=2, seed=1, **options, **way)
                got = sampler.sample(there, np.arange(300), batch=0).cpu().numpy()
                want = sampler.sample(cpu, np.arange(300), batch=0).numpy()
                assert (got.nodes == want.nodes).all(), (options, way)
                assert (got.edge_ids == want.edge_ids).all(), (options, way)
        for sampler in (pgs.PinSAGE(2, 0.5, 10, 5, seed=1), pgs.MultiRW(150, 40, seed=1)):
            found = [sampler.sample(g, np.arange(300), batch=0).torch() for g in (there, cpu)]
            assert torch.equal(found[0].nodes.cpu(), found[1].nodes), sampler
        # Steps of one sample, of several tasks a hub, and of sums that are not in shared memory.
        for by_steps in (
            pgs.KHop([7, 5], edge_ids=True, seed=1),
            pgs.KHop([7, 5], unique="transit", edge_ids=True, execution="transit", seed=1),
            pgs.KHop([7, 5], unique=True, edge_ids=True, seed=1),
            pgs.KHop([40, 30], unique=True, edge_ids=True, seed=1),
            pgs.LayerSample([2100, 40], edge_ids=True, seed=1),
        ):
            got, want = (
                by_steps.sample(g, np.arange(300), batch=0).cpu().numpy() for g in (there, cpu)
            )
            for mine, theirs in zip(
                (*got.steps, *got.edge_ids), (*want.steps, *want.edge_ids), strict=True
            ):
                assert (mine == theirs).all(), by_steps
        # So many that blocks are full, and what lies behind ended walks is filled before.
        many = pgs.RandomWalk(4, stop=0.3, walks_per_seed=200, seed=1)
        found = [many.sample(g, np.arange(300), batch=0).torch() for g in (there, cpu)]
        assert torch.equal(found[0].nodes.cpu(), found[1].nodes)
        pairs = [skip_gram(g, w, 3, negatives=2) for g, w in zip((there, cpu), found, strict=True)]
        assert torch.equal(pairs[0].negatives.cpu(), pairs[1].negatives)


def batches() -> None:
    """Batches of blocks, by every mode."""
    graphs = {"random": random_graph(3000, seed=1, most=70), **awkward()}
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
    plain = graphs["random"].graph(32)
    draw = np.random.default_rng(2)
    for weights in (draw.uniform(1, 5, plain.num_edges), draw.pareto(0.3, plain.num_edges)):
        cpu = plain.with_data(edge_data={"w": weights, "m": weights > 1.5})
        there = cpu.to("cuda")
        seeds = np.arange(200)
        for fanouts in ([5, 4], [40, 3], [-1, 12]):
            compare(cpu, there, seeds, fanouts, modes=["auto"], prob="w")
        compare(cpu, there, seeds, [5, 4], modes=["auto"], mask="m")
        compare(cpu, there, seeds, [5, 4], modes=["auto"], prob="w", disjoint=True)
        without = np.arange(0, plain.num_edges, 2)
        compare(cpu, there, seeds, [5, 4], modes=["auto"], prob="w", exclude=without)
        for options in ({}, {"prob": "w"}, {"prob": "w", "replace": True}, {"mask": "m"}):
            compare(cpu, there, seeds, [5, 4], modes=["auto"], edge_weights="ht", **options)
        sampler = pgs.PGSampler([6, 5], seed=1, prob="w")
        lists = [np.arange(i, 2000, 7) for i in range(4)]
        for got, want in zip(
            *(sampler.sample_many(g, lists, batch=0) for g in (there, cpu)), strict=True
        ):
            same(got, want)
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
        lists = [np.arange(i, 2000, 7) for i in range(4)]
        jobs = [sampler.submit(there, seeds, batch=i) for i, seeds in enumerate(lists)]
        many = sampler.sample_many(there, lists, batch=0)
        for i, seeds in enumerate(lists):
            want = sampler.sample(cpu, seeds, batch=i)
            same(jobs[i].result(), want)
            same(many[i], want)
    loose = pgs.PGSampler([6, 5], seed=1, mode="queue", ordered=False)
    want = loose.sample(cpu, np.arange(100), batch=0)
    assert edges_of(loose.sample(there, np.arange(100), batch=0)) == edges_of(want)


PARTS: dict[str, Callable[[], None]] = {
    "batches": batches,
    "gathers": lambda: gathers("cuda"),
    "segments": lambda: segments("cuda"),
    "statics": lambda: statics("cuda"),
    "walks": lambda: walks("cuda"),
}


def main() -> None:
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
    print("all batches, rows, reductions and walks are the CPU's")


if __name__ == "__main__":
    main()
