"""Digests of results, one for each family: the same for every build, Python and processor.

    python tests/packaging/digests.py          # prints them as JSON, by family
    python tests/packaging/digests.py --check  # compares them with those that are kept

NumPy is enough, on a machine without a GPU. Families that need torch are left out where torch is
missing. ``digests.json`` has those that an x86-64 wheel gave; a sample that
changes is a fault of the change, so nothing here writes that file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import pygsampler as pgs
from pygsampler import samplers

KEPT = Path(__file__).with_name("digests.json")
NEED_TORCH = ("block sums", "features", "negatives", "shadow disjoint")
NODES = 3000
SEEDS = np.arange(0, NODES, 37)
# Two batches of two epochs, so that their counters count too.
BATCHES = ((0, 0), (3, 11))


# ---- graphs ----------------------------------------------------------------------------------


def edges(count: int = 40_000, nodes: int = NODES) -> tuple[np.ndarray, np.ndarray]:
    """Ends of edges: hubs, nodes without edges, parallel edges and self loops among them.

    By integer arithmetic alone, since the generators of NumPy may change.
    """
    state = np.arange(1, 2 * count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(29)
    src, dst = (state % np.uint64(nodes)).astype(np.int64).reshape(2, count)
    dst[: count // 8] = 7
    src[count // 8 : count // 4] = 11
    dst[dst % 13 == 5] = 8
    src[-100:], dst[-100:] = src[-200:-100], dst[-200:-100]
    return src, dst


def numbers(count: int, low: int, high: int, step: int = 7919) -> np.ndarray:
    return low + np.arange(count, dtype=np.int64) * step % (high - low)


def graph(bits: int = 64) -> pgs.Graph:
    src, dst = edges()
    weights = numbers(len(src), 1, 900).astype(np.float32) / 64
    weights[::17] = 0
    data = {
        "w": weights,
        "w64": weights.astype(np.float64) + 1 / 3,
        "mask": numbers(len(src), 0, 4) > 0,
        "t": numbers(len(src), 0, 1000),
        "kind": numbers(len(src), 0, 3).astype(np.int32),
    }
    ids = f"int{bits}"
    nodes = {"time": numbers(NODES, 0, 1000, 6101)}
    made = pgs.Graph.from_coo(src.astype(ids), dst.astype(ids), num_nodes=NODES, edge_data=data)
    return made.with_data({}, nodes)


def typed() -> pgs.HeteroGraph:
    sizes = {"user": 900, "item": 1500, "tag": 60}
    relations = (
        *(("user", "buys", "item"), ("item", "bought", "user"), ("item", "has", "tag")),
        *(("tag", "of", "item"), ("user", "knows", "user")),
    )
    made, data = {}, {}
    for at, (source, name, target) in enumerate(relations):
        count = 9000 - 900 * at
        src, dst = edges(count)
        made[source, name, target] = (
            (src * 3 + at) % sizes[source],
            (dst * 5 + at) % sizes[target],
        )
        data[source, name, target] = {
            "w": numbers(count, 1, 500, 6007 + at).astype(np.float32) / 32,
            "t": numbers(count, 0, 1000, 4001 + at),
        }
    return pgs.HeteroGraph.from_coo(made, sizes, edge_data=data)


# ---- digests ---------------------------------------------------------------------------------


def arrays(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays of a result, by the names of attributes and keys that lead to them."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif isinstance(value, bool | int):
        yield name, np.array([value], dtype=np.int64)
    elif hasattr(value, "__dlpack__"):
        yield name, np.from_dlpack(value)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from arrays(f"{name}[{key}]", value[key], depth + 1)
    elif isinstance(value, list | tuple):
        for at, item in enumerate(value):
            yield from arrays(f"{name}[{at}]", item, depth + 1)
    elif type(value).__module__.startswith("pygsampler") and depth < 6:
        for key in sorted(dir(value)):
            if not key.startswith("_") and key not in ("cpu", "device", "parent"):
                try:
                    item = getattr(value, key)
                except (AttributeError, ValueError, TypeError):
                    continue  # a field that a result of this kind has not
                if not callable(item) or hasattr(item, "__dlpack__"):
                    yield from arrays(f"{name}.{key}", item, depth + 1)


def digest(*results: Any) -> str:
    """Returns a digest of names, shapes, widths and bytes of all arrays of the results."""
    made, count = hashlib.sha256(), 0
    for name, array in arrays("", results):
        made.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        made.update(np.ascontiguousarray(array).tobytes())
        count += array.size
    assert count > 100, f"expected results to have arrays, got {count} numbers"
    return made.hexdigest()[:16]


def sampled(sampler: Any, of: Any, seeds: Any = SEEDS, **options: Any) -> str:
    return digest(
        *(sampler.sample(of, seeds, epoch=epoch, batch=at, **options) for epoch, at in BATCHES)
    )


# ---- families --------------------------------------------------------------------------------


def plain() -> Iterator[tuple[str, Callable[[], str]]]:
    g, narrow = graph(), graph(32)

    def node_wise(of: pgs.Graph = g, fanouts: Any = (5, 4, 3), **options: Any) -> str:
        return sampled(pgs.PGSampler(list(fanouts), seed=1, **options), of)

    yield "neighbors", node_wise
    yield "neighbors int32", lambda: node_wise(narrow)
    yield "neighbors all", lambda: node_wise(fanouts=(-1, 2, -1))
    yield "neighbors many", lambda: node_wise(fanouts=(70, 33))
    yield "neighbors replace", lambda: node_wise(replace=True)
    yield "neighbors new", lambda: node_wise(frontier="new")
    yield "neighbors disjoint", lambda: node_wise(disjoint=True)
    yield "neighbors mask", lambda: node_wise(mask="mask")
    yield "neighbors weighted", lambda: node_wise(prob="w")
    yield "neighbors weighted float64", lambda: node_wise(prob="w64", replace=True)
    yield "neighbors reservoir", lambda: node_wise(mode="reservoir")
    yield "neighbors queue", lambda: node_wise(mode="queue")
    yield (
        "neighbors temporal",
        lambda: sampled(
            pgs.PGSampler([5, 4], seed=1, time="t"), g, seed_time=numbers(len(SEEDS), 0, 1000)
        ),
    )
    yield (
        "neighbors temporal last",
        lambda: sampled(
            pgs.PGSampler([5, 4], seed=1, time="t", strategy="last"),
            g,
            seed_time=numbers(len(SEEDS), 0, 1000),
        ),
    )
    yield (
        "neighbors exclude",
        lambda: sampled(pgs.PGSampler([5, 4], seed=1), g, exclude=np.arange(0, 40_000, 3)),
    )
    yield "khop", lambda: sampled(pgs.KHop([5, 4], seed=2), g)
    yield "khop unique", lambda: sampled(pgs.KHop([5, 4], unique=True, seed=2), g)
    yield "layers", lambda: sampled(pgs.LayerSample([40, 30], seed=2), g)
    yield (
        "many batches",
        lambda: digest(
            pgs.PGSampler([5, 4], seed=1).sample_many(g, [SEEDS[:9], SEEDS[9:30]], epoch=1, batch=2)
        ),
    )


def walks() -> Iterator[tuple[str, Callable[[], str]]]:
    g = graph()
    walkers = {
        "walk": pgs.RandomWalk(20, seed=3, edge_ids=True),
        "walk weighted": pgs.RandomWalk(20, prob="w", seed=3),
        "walk in": pgs.RandomWalk(9, direction="in", seed=3),
        "walk restart": pgs.RandomWalk(12, restart=0.3, walks_per_seed=2, seed=3),
        "walk relations": pgs.RandomWalk(8, metapath=[0, 1, 2], edge_types="kind", seed=3),
        "deepwalk": pgs.DeepWalk(10, seed=3),
        "node2vec": pgs.Node2Vec(12, p=0.25, q=4.0, seed=3),
        "node2vec weighted": pgs.Node2Vec(6, p=2.0, q=0.5, prob="w", seed=3),
        "pagerank": pgs.PersonalizedPageRank(0.15, seed=3),
        "multi-dimensional": pgs.MultiRW(5, 30, seed=3),
        "pinsage": pgs.PinSAGE(3, 0.4, 9, 5, seed=3),
    }
    for name, sampler in walkers.items():
        yield name, lambda sampler=sampler: sampled(sampler, g, SEEDS[:80])


def heterogeneous() -> Iterator[tuple[str, Callable[[], str]]]:
    g = typed()
    seeds = {"item": numbers(60, 0, 1500, 271), "user": numbers(20, 0, 900, 97)}

    def typed_sample(sampler: Any, **options: Any) -> str:
        return sampled(sampler, g, seeds, **options)

    yield "heterogeneous", lambda: typed_sample(pgs.PGSampler([4, 3], seed=4))
    yield "heterogeneous weighted", lambda: typed_sample(pgs.PGSampler([4, 3], prob="w", seed=4))
    yield (
        "heterogeneous temporal",
        lambda: typed_sample(
            pgs.PGSampler([4, 3], time="t", seed=4),
            seed_time={name: numbers(len(ids), 0, 1000) for name, ids in seeds.items()},
        ),
    )
    yield "hgt", lambda: typed_sample(pgs.HGTSampler([20, 10], seed=4))
    yield "heterogeneous labor", lambda: typed_sample(pgs.HeteroLaborSampler([4, 3], seed=4))
    yield (
        "heterogeneous labor exact",
        lambda: typed_sample(pgs.HeteroLaborSampler([4, 3], exact=True, seed=4)),
    )
    path = [("user", "buys", "item"), ("item", "bought", "user")]
    yield "metapath", lambda: sampled(pgs.MetaPathWalk(path, 6, seed=4), g, np.arange(0, 900, 11))


def programs() -> Iterator[tuple[str, Callable[[], str]]]:
    g = graph()
    features = numbers(NODES * 8, -90, 90, 101).astype(np.float32).reshape(NODES, 8) / 64
    scores = {"h_source": np.abs(features[:, 0]) + 1, "h_target": np.abs(features[:, 1])}
    own = g.with_data({}, {"x": features, **scores})
    dense = {
        "W1": features[:8, :6].copy(),
        "W2": features[8:16, :6].copy(),
        "W3": np.array([0.5, 0.25, 0.125], dtype=np.float32),
    }
    made = {
        "graphsage": samplers.graphsage(fanouts=[5, 4], seed=5),
        "ladies": samplers.ladies(nodes=[64, 32], seed=5),
        "ladies weighted": samplers.ladies(nodes=[64, 32], weight="w", seed=5),
        "fastgcn": samplers.fastgcn(nodes=[64, 32], seed=5),
        "labor": samplers.labor(fanouts=[4, 3], seed=5),
        "labor weighted": samplers.labor(fanouts=[4, 3], weight="w", seed=5),
        "labor importance": samplers.labor(fanouts=[4, 3], importance=2, seed=5),
        "labor exact": samplers.labor(fanouts=[4, 3], exact=True, seed=5),
        "asgcn": samplers.asgcn(nodes=[50, 30], seed=5),
        "pass": samplers.pass_sampler(fanouts=[4, 3], seed=5, **dense),
        "kgcn": samplers.kgcn(fanouts=[4, 3], seed=5),
        "shadow": samplers.shadow(fanouts=[4, 3], seed=5),
        "saint nodes": samplers.saint_node(budget=200, seed=5),
        "saint edges": samplers.saint_edge(budget=200, seed=5),
        "saint walks": samplers.saint_walk(roots=40, length=3, seed=5),
    }
    for name, sampler in made.items():
        yield name, lambda sampler=sampler: sampled(sampler, own)


def data() -> Iterator[tuple[str, Callable[[], str]]]:
    def csc() -> str:
        src, dst = edges(5000, 300)
        g = pgs.Graph.from_coo(src, dst, num_nodes=300)
        return digest(g.indptr, g.indices, g.edge_ids, g.in_degrees(), g.out_degrees())

    def files() -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.pgs"
            graph().save(path)
            with pgs.Graph.open(path) as g:
                drawn = pgs.PGSampler([5, 4], prob="w", seed=6).sample(g, SEEDS, epoch=0, batch=0)
                return digest(drawn)

    def renumbered() -> str:
        src, dst = edges(3000, 400)
        g = pgs.Graph.from_coo(src * 1_000_003, dst * 1_000_003, renumber=True)
        return digest(g.indptr, g.indices, g.node_ids)

    yield "graph", csc
    yield "graph file", files
    yield "graph of names", renumbered
    if torch_is_there():
        yield "features", features
        yield (
            "shadow disjoint",
            lambda: sampled(samplers.shadow_disjoint(fanouts=[3, 2], seed=5), graph(), SEEDS[:20]),
        )
        yield "block sums", block_sums
        yield "negatives", negatives


def features() -> str:
    import torch

    table = numbers(NODES * 5, 0, 10**6).astype(np.float32).reshape(NODES, 5)
    source = pgs.Features.from_tensor(torch.from_numpy(table))
    return digest(source.read(torch.from_numpy(SEEDS)).numpy())


def block_sums() -> str:
    import torch

    block = pgs.PGSampler([9, 5], seed=6).sample(graph(), SEEDS, epoch=0, batch=0).torch().blocks[0]
    x = torch.from_numpy(numbers(block.num_src_nodes * 20, -500, 500).astype(np.float32) / 7)
    x = x.reshape(block.num_src_nodes, 20)
    return digest(block.sum(x).numpy(), block.mean(x).numpy(), block.max(x).numpy())


def negatives() -> str:
    import torch

    from pygsampler.torch import LinkLoader, NegativeSampling

    src, dst = edges()
    pairs = (torch.from_numpy(src[:600].copy()), torch.from_numpy(dst[:600].copy()))
    results = []
    for kind in ("uniform", "degree", "structural"):
        loader = LinkLoader(
            graph(), pairs, pgs.PGSampler([3, 2], seed=6), batch_size=200,
            negatives=NegativeSampling(kind, 2), exclude=None, shuffle=True, seed=6,
        )  # fmt: skip
        results += [batch.sampled.input_nodes.numpy() for batch in loader]
    return digest(results)


def torch_is_there() -> bool:
    return importlib.util.find_spec("torch") is not None


def families() -> Iterator[tuple[str, Callable[[], str]]]:
    for part in (plain, walks, heterogeneous, programs, data):
        yield from part()


def check(found: dict[str, str]) -> str:
    """Returns how many families are as kept; SystemExit if one is not, or was not run."""
    kept = json.loads(KEPT.read_text())
    left = set() if torch_is_there() else set(NEED_TORCH)
    names = sorted(set(kept) ^ set(found) ^ left)
    wrong = names or sorted(name for name in found if kept[name] != found[name])
    if wrong:
        raise SystemExit(f"digests: expected all families as kept, got others: {', '.join(wrong)}")
    return f"{len(found)} families as kept; not run: {', '.join(sorted(left)) or 'none'}"


def main() -> None:
    found = {name: function() for name, function in families()}
    print(check(found) if "--check" in sys.argv[1:] else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
