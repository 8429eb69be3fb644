"""Cases of graphs, features and layers, and of loaders in torch tensors."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import pygsampler as pgs
from pygsampler import samplers

from .cases import RESEARCH, SEEDS, SEEDS_BY_TYPE, Case, of_research
from .graphs import EDGES, NODES, RELATIONS, TYPES, edges, feature_rows, graph, integers

if find_spec("pygsampler.research") is not None:
    from pygsampler.research import nextdoor

TORCH = ("torch",)


@dataclass(frozen=True)
class Loaded(Case):
    """The batches of a loader, which are the same on every device.

    ``make`` takes the device and ``static``: the same batches in memory that stays where it is,
    which only loaders on a GPU have. ``emulated`` is False for what tensors of torch on the CPU
    cannot stand in for.
    """

    static: bool = False
    emulated: bool = True

    def __call__(self, device: str = "cpu", form: str = "") -> Any:
        """Returns the batches, on a device; copies of static ones in the form ``"static"``."""
        return self.make(device=device, static=form == "static")


# ---- without torch ---------------------------------------------------------------------------


def plain() -> Iterator[Case]:
    yield Case("graph", _csc)
    yield Case("graph file", _file)
    yield Case("graph of names", _renumbered)
    yield Case("graph of several types", _hetero_arrays)
    yield Case("graph file of several types", _hetero_file)
    yield Case("many batches", _many_batches)
    yield Case("many batches disjoint", partial(_many_batches, disjoint=True))
    yield Case("stream", _stream)
    yield Case("saint norms of nodes", partial(_norms, "saint_node", budget=300))
    yield Case("saint norms of walks", partial(_norms, "saint_walk", roots=60, length=2))
    yield Case("clusters of a batch", _clusters)
    yield Case("labels of seal", _drnl)
    scores = partial(of_research, "locality_scores")
    yield Case("locality scores", lambda: scores(graph()), RESEARCH)
    published = partial(scores, measure="published", step=3)
    yield Case("locality scores as published", lambda: published(graph()), RESEARCH)
    yield Case("nextdoor class", _nextdoor, RESEARCH)
    lists = ("pyarrow",)
    yield Case("walk arrow", partial(_arrow, pgs.RandomWalk(9, stop=0.1, seed=3)), lists)
    edge_ids = pgs.RandomWalk(9, edge_ids=True, direction="in", seed=3)
    yield Case("walk edges arrow", partial(_arrow, edge_ids), lists)
    hops = partial(of_research, "KHop", [5, 4], seed=2)
    yield Case("khop arrow", lambda: _arrow(hops()), (*lists, *RESEARCH))


def _csc() -> list[Any]:
    src, dst = edges(5000, 300)
    g = pgs.Graph.from_coo(src, dst, num_nodes=300)
    return [g.indptr, g.indices, g.edge_ids, g.in_degrees(), g.out_degrees()]


def _file() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.pgs"
        graph().save(path)
        with pgs.Graph.open(path) as g:
            batch = pgs.PGSampler([5, 4], prob="w", seed=6).sample(g, SEEDS, epoch=0, batch=0)
            return [batch]


def _renumbered() -> list[Any]:
    src, dst = edges(3000, 400)
    g = pgs.Graph.from_coo(src * 1_000_003, dst * 1_000_003, renumber=True)
    return [g.indptr, g.indices, g.node_ids]


def _hetero_arrays() -> list[Any]:
    g = graph("several types")
    return [
        {kind: (g[kind].indptr, g[kind].indices, g[kind].edge_ids) for kind in RELATIONS},
        {kind: (g.in_degrees(edge_type=kind), g.out_degrees(edge_type=kind)) for kind in RELATIONS},
    ]


def _hetero_file() -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.pgs"
        graph("several types").save(path)
        with pgs.Graph.open(path) as g:
            sampler = pgs.PGSampler([4, 3], prob="w", seed=6)
            return [sampler.sample(g, SEEDS_BY_TYPE, epoch=0, batch=0)]


def _many_batches(**options: Any) -> list[Any]:
    sampler = pgs.PGSampler([5, 4], seed=1, **options)
    return [sampler.sample_many(graph(), [SEEDS[:9], SEEDS[9:30]], epoch=1, batch=2)]


def _stream() -> list[Any]:
    sampler = pgs.PGSampler([5, 4], seed=1)
    return list(pgs.stream(graph(), sampler, SEEDS, batch_size=30, shuffle=True, epoch=2))


class _Unique:
    """Steps of distinct nodes from several roots, which change, with edges: all draws that are."""

    def steps(self) -> int:
        return nextdoor.INF

    def samplingType(self) -> nextdoor.SamplingType:
        return nextdoor.SamplingType.Individual

    def sampleSize(self, step: int) -> int:
        return 3 if step else 2

    def unique(self, step: int) -> bool:
        return step > 0

    def numTransits(self, step: int) -> int:
        return 2

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        v = srcEdges[nextdoor.randInt(0, srcEdges.size())]
        s.roots.replace(transits[0], v)
        s.addEdge(step, transits[0], v)
        return np.where(nextdoor.randFloat() < 0.3, nextdoor.NULL, v)

    def stepTransits(self, step: int, s: Any, transitIdx: Any) -> Any:
        chosen = s.roots[nextdoor.randInt(0, s.numRoots())]
        return np.where(s.prevVertex(1, transitIdx) < 0, nextdoor.NULL, chosen)


def _nextdoor() -> list[Any]:
    sampler = nextdoor.NextDoor(_Unique(), max_steps=5, batched=True, seed=5)
    samples = sampler.sample(graph(), SEEDS[:60].reshape(20, 3), epoch=3, batch=4)
    return [samples.roots, *samples.steps, samples.edges, samples.complete]


def _norms(name: str, **options: Any) -> list[Any]:
    norms = samplers.saint_norms(graph(), getattr(samplers, name)(seed=5, **options), coverage=2)
    return [norms.node, norms.edge]


def _clusters() -> list[Any]:
    sampler = samplers.cluster_gcn_parts(integers(NODES, 0, 40), seed=5)
    return [sampler.sample(graph(), [3, 17, 20], epoch=0, batch=0)]


def _drnl() -> list[Any]:
    sampler = samplers.seal(fanouts=[6, 5], seed=5)
    return [samplers.drnl(sampler.sample(graph(), np.array(link), batch=0)) for link in LINKS]


LINKS = ((3, 8), (8, 7), (14, 21))


def _arrow(sampler: Any) -> list[Any]:
    """Returns the columns of a table, whose lists are of several lengths, or have gaps."""
    table = sampler.sample(graph(), SEEDS, epoch=3, batch=11).arrow()
    results = []
    for name in table.column_names:
        lists = [row if isinstance(row, list) else [row] for row in table[name].to_pylist()]
        values = [-1 if value is None else value for row in lists for value in row]
        results.append({name: (np.array(values), np.array([len(row) for row in lists]))})
    return results


# ---- features and layers ---------------------------------------------------------------------


def layers() -> Iterator[Case]:
    yield Case("features", _features, TORCH)
    for dtype in ("float16", "bfloat16", "float64", "int8", "int64", "bool"):
        yield Case(f"features {dtype}", partial(_features_of, dtype), TORCH)
    yield Case("block sums", _block_sums, TORCH)
    for dtype in ("float32", "float16", "bfloat16", "float64"):
        yield Case(f"block reductions {dtype}", partial(_reductions, dtype), TORCH)
        yield Case(f"segment reductions {dtype}", partial(_segments, dtype), TORCH)
        yield Case(f"weighted sums {dtype}", partial(_weighted, dtype), TORCH)
        yield Case(f"attention of 8 edges {dtype}", partial(_attention, dtype), TORCH)
    yield Case("skip-gram", _skip_gram, TORCH)


def _tensor(array: np.ndarray, dtype: str = "float32") -> Any:
    import torch

    return torch.from_numpy(array).to(getattr(torch, dtype))


def _block(**options: Any) -> Any:
    sampler = pgs.PGSampler([9, 5], seed=6, **options)
    return sampler.sample(graph(), SEEDS, epoch=0, batch=0).torch().blocks[0]


def _features() -> list[Any]:
    import torch

    table = integers(NODES * 5, 0, 10**6).astype(np.float32).reshape(NODES, 5)
    source = pgs.Features.from_tensor(torch.from_numpy(table))
    return [source.read(torch.from_numpy(SEEDS))]


def _features_of(dtype: str) -> list[Any]:
    import torch

    source = pgs.Features.from_tensor(_tensor(feature_rows(NODES, 7) * 64, dtype))
    ids = np.concatenate([SEEDS, SEEDS[::-3]])
    return [source.read(torch.from_numpy(ids)), source.read(torch.from_numpy(SEEDS).int())]


def _block_sums() -> list[Any]:
    block = _block()
    x = _tensor(integers(block.num_src_nodes * 20, -500, 500).astype(np.float32) / 7)
    x = x.reshape(block.num_src_nodes, 20)
    return [block.sum(x), block.mean(x), block.max(x)]


def _with_gradients(x: Any, *results: Any) -> list[Any]:
    """Returns results, and the gradient of x of their sum."""
    sum(result.sum() for result in results).backward()
    return [*results, x.grad]


def _reductions(dtype: str) -> list[Any]:
    block = _block()
    x = _tensor(feature_rows(block.num_src_nodes, 12), dtype).requires_grad_()
    own, mean = block.self_and_reduce(x, "mean")
    return _with_gradients(x, block.sum(x), block.max(x), own, mean)


def _segments(dtype: str) -> list[Any]:
    from pygsampler.torch import segment_reduce

    block = _block()
    x = _tensor(feature_rows(block.num_src_nodes, 3), dtype).requires_grad_()
    kinds = ("sum", "mean", "max")
    results = [segment_reduce(x, block.indptr, block.indices, kind) for kind in kinds]
    return _with_gradients(x, *results)


def _weighted(dtype: str) -> list[Any]:
    block = _block()
    x = _tensor(feature_rows(block.num_src_nodes, 8), dtype).requires_grad_()
    weights = _tensor(feature_rows(block.num_edges, 2), dtype)
    by_heads = block.weighted_sum(x.reshape(-1, 2, 4), weights)
    return _with_gradients(x, block.weighted_sum(x, weights[:, 0]), by_heads)


def _attention(dtype: str) -> list[Any]:
    """Returns a result without a rounding: other exponentials and fractions are the machine's.

    A row has no edges or 8, each of which gets 1/8.
    """
    sampler = pgs.PGSampler([8], seed=6, replace=True)
    block = sampler.sample(graph(), SEEDS, epoch=0, batch=0).torch().blocks[0]
    x = _tensor(feature_rows(block.num_src_nodes, 8), dtype).reshape(-1, 2, 4).requires_grad_()
    source = np.zeros(block.num_src_nodes * 2)
    target = np.zeros(block.num_dst_nodes * 2)
    scores = (_tensor(array, dtype).reshape(-1, 2) for array in (source, target))
    return _with_gradients(x, block.attention(x, *scores))


def _skip_gram() -> list[Any]:
    from pygsampler.torch import skip_gram

    walks = pgs.RandomWalk(12, walks_per_seed=2, seed=3).sample(graph(), SEEDS, epoch=1, batch=2)
    return [tuple(skip_gram(graph(), walks, 4, negatives=3)), tuple(skip_gram(graph(), walks, 2))]


# ---- loaders ---------------------------------------------------------------------------------

# Options that static loaders have too.
STATIC = ("", "shuffled", "ranks", "weighted", "mask", "new", "replace new", "disjoint", "temporal")
STATIC += ("binary", "triplet")


def loaders() -> Iterator[Case]:
    plain: dict[str, dict[str, Any]] = {
        "": {},
        "shuffled": {"shuffle": True},
        "ranks": {"shuffle": True, "rank": 1, "world_size": 3},
        "ranks by batches": {"shuffle": True, "rank": 1, "world_size": 2, "shard_by": "batches"},
        "later start": {"shuffle": True, "skip_batches": 2, "drop_last": True},
        "seed weights": {"seed_weights": integers(len(SEEDS), 0, 5), "num_samples": 70},
        "replace new": {"sampler": pgs.PGSampler([5, 4], frontier="new", replace=True, seed=6)},
        "weighted": {"sampler": pgs.PGSampler([4, 3], prob="w", edge_weights="ht", seed=6)},
        "mask": {"sampler": pgs.PGSampler([4, 3], mask="mask", seed=6)},
        "labor": {"sampler": pgs.LaborSampler([4, 3], seed=6)},
        "labor exact": {"sampler": pgs.LaborSampler([4, 3], exact=True, seed=6)},
        "features": {
            "features": {"x": feature_rows(NODES, 3)},
            "labels": integers(NODES, 0, 9),
            "edge_features": {"t": integers(EDGES, 0, 1000)},
        },
        "disjoint": {"sampler": pgs.PGSampler([3, 2], disjoint=True, seed=6)},
        "temporal": {
            "sampler": pgs.PGSampler([5, 4], temporal="t", seed=6),
            "seed_time": integers(len(SEEDS), 0, 1000),
        },
        "walks": {"sampler": pgs.RandomWalk(8, seed=6)},
        "pinsage": {"sampler": pgs.walks.PinSAGE(2, 0.5, 9, 4, seed=6)},
        "ladies": {"sampler": samplers.ladies(nodes=[40, 20], seed=6)},
        "shadow": {"sampler": samplers.shadow(fanouts=[4, 3], seed=6)},
    }
    for added, options in plain.items():
        make = partial(_loaded, "homogeneous", SEEDS, **options)
        yield _listed(f"loader {added}".strip(), make, added)

    def of_steps(**place: Any) -> list[Any]:
        sampler = of_research("KHop", [4, 3], seed=6)
        return _loaded("homogeneous", SEEDS, sampler=sampler, **place)

    yield Loaded("loader khop", of_steps, (*TORCH, *RESEARCH), static="khop" in STATIC)
    typed: dict[str, dict[str, Any]] = {
        "": {},
        "shuffled": {"shuffle": True},
        "new": {"sampler": pgs.PGSampler([4, 3], frontier="new", seed=6)},
        "features": {
            "features": {"x": {kind: feature_rows(count, 3) for kind, count in TYPES.items()}},
            "labels": {kind: integers(TYPES[kind], 0, 9) for kind in SEEDS_BY_TYPE},
        },
        "labor": {"sampler": pgs.LaborSampler([4, 3], seed=6)},
        "hgt": {"sampler": pgs.samplers.HGTSampler([20, 10], seed=6)},
    }
    for added, options in typed.items():
        make = partial(_loaded, "several types", SEEDS_BY_TYPE, **options)
        yield _listed(f"heterogeneous loader {added}".strip(), make, added)


def _listed(name: str, make: Callable[..., Any], options: str) -> Loaded:
    emulated = options != "features" and not name.startswith("heterogeneous links")
    return Loaded(name, make, TORCH, static=options in STATIC, emulated=emulated)


def _loaded(name: str, seeds: Any, *, device: str, static: bool, **options: Any) -> list[Any]:
    """Returns the batches of two epochs."""
    from pygsampler.torch import DataLoader

    options = {"sampler": [4, 3], "batch_size": 30, "seed": 6, **options}
    loader = DataLoader(graph(name, device=device), seeds, static=static, **options)
    return [_batches(loader), _batches(loader)]


def _batches(loader: Any) -> list[Any]:
    return [batch.trimmed() if loader.static else batch for batch in loader]


# ---- links -----------------------------------------------------------------------------------


def links() -> Iterator[Case]:
    yield Case("negatives", _negatives, TORCH)
    for kind in ("uniform", "degree", "structural", "in_batch"):
        yield Case(f"negatives {kind}", partial(_drawn, kind), TORCH)
    plain: dict[str, Callable[[], dict[str, Any]]] = {
        "": dict,
        "shuffled": lambda: {"shuffle": True},
        "binary": lambda: {"negative_sampling": _law("uniform", 2)},
        "triplet": lambda: {"negative_sampling": _law("degree", 2, mode="triplet")},
        "structural": lambda: {"negative_sampling": _law("structural", 1)},
        "labels": lambda: {"labels": integers(598, 0, 5)},
        "not excluded": lambda: {"exclude": None},
        "reverse excluded": lambda: {
            "exclude": "reverse_id",
            "reverse_eids": np.arange(EDGES)[::-1].copy(),
        },
        "weighted": lambda: {"sampler": pgs.PGSampler([3, 2], prob="w", edge_weights="ht", seed=6)},
        "labor": lambda: {"sampler": pgs.LaborSampler([3, 2], seed=6)},
        "disjoint": lambda: {"sampler": pgs.PGSampler([3, 2], disjoint=True, seed=6)},
        "temporal": lambda: {
            "sampler": pgs.PGSampler([3, 2], temporal="t", seed=6),
            "seed_time": integers(598, 0, 1000),
            "exclude": None,
        },
    }
    for added, options in plain.items():
        make = partial(_linked, options)
        yield _listed(f"links {added}".strip(), make, added)
    typed: dict[str, Callable[[], dict[str, Any]]] = {
        "": dict,
        "binary": lambda: {"negative_sampling": _law("uniform", 2)},
        "triplet": lambda: {"negative_sampling": _law("degree", 1, mode="triplet")},
        "new": lambda: {"sampler": pgs.PGSampler([3, 2], frontier="new", seed=6)},
    }
    for added, options in typed.items():
        make = partial(_linked_by_type, options)
        yield _listed(f"heterogeneous links {added}".strip(), make, added)


def _law(*arguments: Any, **options: Any) -> Any:
    from pygsampler.torch import NegativeSampling

    return NegativeSampling(*arguments, **options)


def _pairs() -> tuple[Any, Any]:
    import torch

    src, dst = edges()
    return torch.from_numpy(src[:600].copy()), torch.from_numpy(dst[:600].copy())


def _negatives() -> list[Any]:
    from pygsampler.torch import LinkLoader

    results = []
    for kind in ("uniform", "degree", "structural"):
        loader = LinkLoader(
            graph(), _pairs(), pgs.PGSampler([3, 2], seed=6), batch_size=200,
            negative_sampling=_law(kind, 2), exclude=None, shuffle=True, seed=6,
        )  # fmt: skip
        results += [batch.minibatch.input_nodes for batch in loader]
    return [results]


def _drawn(kind: str) -> list[Any]:
    src, dst = _pairs()
    law = _law(kind, 3)
    return [law.draw(graph(), src, dst, seed=2, epoch=1, batch=place) for place in (0, 7)]


def _linked(options: Callable[[], dict[str, Any]], *, device: str, static: bool) -> list[Any]:
    """Links are edges by their ids, so that they can be left out of the samples."""
    import torch

    from pygsampler.torch import LinkLoader

    ids = torch.arange(0, EDGES, 67)
    arguments = {"sampler": [3, 2], "batch_size": 200, "seed": 6, **options()}
    return _batches(LinkLoader(graph(device=device), ids, static=static, **arguments))


def _linked_by_type(
    options: Callable[[], dict[str, Any]], *, device: str, static: bool
) -> list[Any]:
    import torch

    from pygsampler.torch import LinkLoader

    ids = {RELATIONS[0]: torch.arange(0, 9000, 41), RELATIONS[4]: torch.arange(0, 5000, 37)}
    arguments = {"sampler": [3, 2], "batch_size": 90, "seed": 6, **options()}
    types = graph("several types", device=device)
    return _batches(LinkLoader(types, ids, static=static, **arguments))


def computed() -> list[Case]:
    """Returns the cases of this file."""
    return [case for family in (plain, layers, loaders, links) for case in family()]
