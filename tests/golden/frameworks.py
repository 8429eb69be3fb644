"""Cases of the loaders and samplers that take the place of DGL's and PyG's.

Nothing is shuffled here: orders are torch's, which may be others in another version.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from .cases import SEEDS, SEEDS_BY_TYPE, Case
from .graphs import EDGES, NODES, RELATIONS, TYPES, edges, feature_rows, graph, integers

DGL = ("torch", "dgl")
PYG = ("torch", "torch_geometric")


def _quietly(name: str) -> Any:
    """Imports a package whose import warns of others."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def _tensor(array: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(array.copy())


def _tensors(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: _tensor(array) for name, array in arrays.items()}


def _times(count: int) -> Any:
    return _tensor(integers(count, 0, 1000, 6101))


# ---- DGL -------------------------------------------------------------------------------------


def dgl() -> Iterator[Case]:
    blocks: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
        "": ("PGSampler", [[5, 4]], {}),
        "replace": ("PGSampler", [[5, 4]], {"replace": True}),
        "weighted": ("PGSampler", [[5, 4]], {"prob": "w"}),
        "mask": ("PGSampler", [[5, 4]], {"mask": "m"}),
        "out": ("PGSampler", [[5, 4]], {"edge_dir": "out"}),
        "features": ("PGSampler", [[5]], {"prefetch_node_feats": ["x"]}),
        "full": ("MultiLayerFullNeighborSampler", [2], {}),
        "labor": ("LaborSampler", [[5, 4]], {}),
        "labor importance": ("LaborSampler", [[5, 4]], {"importance_sampling": 1}),
        "labor layers": ("LaborSampler", [[5, 4]], {"layer_dependency": True}),
        "labor weighted": ("LaborSampler", [[5, 4]], {"prob": "w"}),
        "shadow": ("ShaDowKHopSampler", [[4, 3]], {}),
        "shadow replace": ("ShaDowKHopSampler", [[4, 3]], {"replace": True}),
        "saint nodes": ("SAINTSampler", ["node", 200], {}),
        "saint edges": ("SAINTSampler", ["edge", 200], {}),
        "saint walks": ("SAINTSampler", ["walk", (40, 3)], {}),
    }
    for added, (name, arguments, options) in blocks.items():
        yield Case(f"dgl {added}".strip(), partial(_dgl, name, arguments, options), DGL)
    typed: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
        "": ("PGSampler", [[4, 3]], {}),
        "replace": ("PGSampler", [[4, 3]], {"replace": True}),
        "weighted": ("PGSampler", [[4, 3]], {"prob": "w"}),
        "labor": ("LaborSampler", [[4, 3]], {}),
        "shadow": ("ShaDowKHopSampler", [[4, 3]], {}),
    }
    for added, (name, arguments, options) in typed.items():
        make = partial(_dgl, name, arguments, options, hetero=True)
        yield Case(f"dgl heterogeneous {added}".strip(), make, DGL)
    yield Case("dgl edges", _dgl_edges, DGL)
    yield Case("dgl pinsage", _dgl_pinsage, DGL)
    yield Case("dgl walk", partial(_dgl_walk, length=8), DGL)
    yield Case("dgl walk weighted", partial(_dgl_walk, length=8, prob="w"), DGL)
    yield Case("dgl node2vec", _dgl_node2vec, DGL)
    yield Case("block as dgl", partial(_converted, "to_dgl"), DGL)


def _dgl_graph(hetero: bool = False) -> Any:
    dgl = _quietly("dgl")
    if not hetero:
        src, dst = map(_tensor, edges())
        g = dgl.graph((src, dst), num_nodes=NODES)
        g.ndata["x"] = _tensor(feature_rows(NODES, 3))
        data = graph().edata
        g.edata["w"] = _tensor(np.from_dlpack(data["w"]))
        g.edata["m"] = _tensor(integers(EDGES, 0, 4) > 0)
        return g
    source = graph("several types")
    ends = {kind: tuple(map(_tensor, pair)) for kind, pair in _hetero_edges().items()}
    g = dgl.heterograph(ends, num_nodes_dict=TYPES)
    for kind in RELATIONS:
        g.edges[kind].data["w"] = _tensor(np.from_dlpack(source.edata[kind]["w"]))
    return g


def _hetero_edges() -> dict[Any, tuple[np.ndarray, np.ndarray]]:
    """Returns sources and destinations of the relations in the order of their ids."""
    result = {}
    for kind in RELATIONS:
        relation = graph("several types")[kind]
        indptr, indices, ids = (
            np.from_dlpack(array)
            for array in (relation.indptr, relation.indices, relation.edge_ids)
        )
        src, dst = np.empty_like(indices), np.empty_like(indices)
        src[ids] = indices
        dst[ids] = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        result[kind] = src, dst
    return result


def _dgl(
    name: str, arguments: list[Any], options: dict[str, Any], hetero: bool = False
) -> list[Any]:
    dgl = _quietly("dgl")
    from pygsampler import dgl as ours

    sampler = getattr(ours, name)(*arguments, seed=6, **options)
    seeds: Any = _tensors(SEEDS_BY_TYPE) if hetero else _tensor(SEEDS)
    if name == "SAINTSampler":
        seeds = range(3)
    size = 1 if name == "SAINTSampler" else 30
    loader = dgl.dataloading.DataLoader(
        _dgl_graph(hetero), seeds, sampler, batch_size=size, num_workers=0
    )
    return _unaware(loader)


def _unaware(loader: Any) -> list[Any]:
    """Returns the batches; DGL warns of how processes are bound to cores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(loader)


def _dgl_edges() -> list[Any]:
    dgl = _quietly("dgl")
    from pygsampler.dgl import PGSampler

    sampler = dgl.dataloading.as_edge_prediction_sampler(PGSampler([5, 4], seed=6), exclude="self")
    ids = _tensor(np.arange(0, EDGES, 331))
    return _unaware(dgl.dataloading.DataLoader(_dgl_graph(), ids, sampler, batch_size=50))


def _dgl_pinsage() -> list[Any]:
    dgl = _quietly("dgl")
    from pygsampler.dgl import PinSAGESampler

    ends = _hetero_edges()
    relations = {kind: tuple(map(_tensor, ends[kind])) for kind in RELATIONS[:2]}
    g = dgl.heterograph(relations, num_nodes_dict={kind: TYPES[kind] for kind in ("user", "item")})
    sampler = PinSAGESampler(g, "user", "item", 3, 0.4, 9, 5, seed=6)
    return [sampler(_tensor(np.arange(0, 900, 19))), sampler(_tensor(np.arange(3, 900, 29)))]


def _dgl_walk(**options: Any) -> list[Any]:
    _quietly("dgl")
    from pygsampler.dgl import random_walk

    return list(random_walk(_dgl_graph(), _tensor(SEEDS), return_eids=True, seed=6, **options))


def _dgl_node2vec() -> list[Any]:
    _quietly("dgl")
    from pygsampler.dgl import node2vec_random_walk

    return [node2vec_random_walk(_dgl_graph(), _tensor(SEEDS), 0.5, 2.0, 8, seed=6)]


def _converted(method: str, without: Sequence[str] = ()) -> list[Any]:
    """Returns batches of the package as those of a framework, ``without`` some attributes."""
    import pygsampler as pgs

    _quietly("dgl" if method == "to_dgl" else "torch_geometric")
    sampler = pgs.PGSampler([5, 4], seed=6)
    batches = [sampler.sample(graph(), SEEDS, epoch=0, batch=0)]
    batches += [sampler.sample(graph("several types"), SEEDS_BY_TYPE, epoch=0, batch=0)]
    results = [getattr(batch, method)() for batch in batches]
    for store in [store for data in results if without for store in data.stores]:
        for name in without:
            store.pop(name, None)
    return results


# ---- PyG -------------------------------------------------------------------------------------


def pyg() -> Iterator[Case]:
    nodes: dict[str, dict[str, Any]] = {
        "": {},
        "replace": {"replace": True},
        "disjoint": {"disjoint": True},
        "weighted": {"weight_attr": "w"},
        "induced": {"subgraph_type": "induced"},
        "bidirectional": {"subgraph_type": "bidirectional"},
        "temporal": {"time_attr": "time", "input_time": _seed_times},
        "temporal last": {
            "time_attr": "time",
            "input_time": _seed_times,
            "temporal_strategy": "last",
        },
        "labor": {"labor": "poisson"},
        "labor exact": {"labor": "exact"},
    }
    for added, options in nodes.items():
        yield Case(f"pyg {added}".strip(), partial(_pyg_nodes, **options), PYG)
        if added not in ("bidirectional", "labor exact"):
            name = f"pyg heterogeneous {added}".strip()
            yield Case(name, partial(_pyg_nodes, hetero=True, **options), PYG)
    links: dict[str, dict[str, Any]] = {
        "": {},
        "binary": {"neg_sampling": ("binary", 2)},
        "triplet": {"neg_sampling": ("triplet", 2)},
        "disjoint": {"disjoint": True},
    }
    for added, options in links.items():
        yield Case(f"pyg links {added}".strip(), partial(_pyg_links, **options), PYG)
        name = f"pyg heterogeneous links {added}".strip()
        yield Case(name, partial(_pyg_links, hetero=True, **options), PYG)
    yield Case("pyg hgt", _pyg_hgt, PYG)
    yield Case("pyg shadow", _pyg_shadow, PYG)
    yield Case("pyg saint nodes", partial(_pyg_saint, "GraphSAINTNodeSampler"), PYG)
    yield Case("pyg saint edges", partial(_pyg_saint, "GraphSAINTEdgeSampler"), PYG)
    walks = partial(_pyg_saint, "GraphSAINTRandomWalkSampler", walk_length=3)
    yield Case("pyg saint walks", walks, PYG)
    # It was recorded before batches had the numbers of hops.
    counts = "num_sampled_nodes", "num_sampled_edges"
    yield Case("batch as pyg", partial(_converted, "to_pyg", counts), PYG)
    yield Case("batch as pyg with numbers of hops", partial(_converted, "to_pyg"), PYG)


def _seed_times(count: int) -> Any:
    return _tensor(integers(count, 0, 1000))


def _pyg_data(hetero: bool = False) -> Any:
    _quietly("torch_geometric")
    import torch
    from torch_geometric.data import Data, HeteroData

    if not hetero:
        data = Data(edge_index=torch.stack(list(map(_tensor, edges()))), num_nodes=NODES)
        data.x, data.time = _tensor(feature_rows(NODES, 3)), _times(NODES)
        data.w = _tensor(np.from_dlpack(graph().edata["w"]))
        return data
    data = HeteroData()
    for kind, count in TYPES.items():
        data[kind].num_nodes = count
        data[kind].x, data[kind].time = _tensor(feature_rows(count, 3)), _times(count)
    for kind, ends in _hetero_edges().items():
        data[kind].edge_index = torch.stack(list(map(_tensor, ends)))
        data[kind].w = _tensor(np.from_dlpack(graph("several types").edata[kind]["w"]))
    return data


def _pyg_nodes(hetero: bool = False, **options: Any) -> list[Any]:
    data = _pyg_data(hetero)
    from pygsampler.pyg import NeighborLoader

    seeds = SEEDS_BY_TYPE["item"] if hetero else SEEDS
    if "input_time" in options:
        options["input_time"] = options["input_time"](len(seeds))
    nodes = ("item", _tensor(seeds)) if hetero else _tensor(seeds)
    loader = NeighborLoader(data, [4, 3], input_nodes=nodes, batch_size=30, seed=6, **options)
    return [list(loader), list(loader)]


def _pyg_links(hetero: bool = False, **options: Any) -> list[Any]:
    data = _pyg_data(hetero)
    import torch
    from torch_geometric.sampler import NegativeSampling

    from pygsampler.pyg import LinkNeighborLoader

    if "neg_sampling" in options:
        mode, amount = options["neg_sampling"]
        options["neg_sampling"] = NegativeSampling(mode, amount=amount)
    ends = _hetero_edges()[RELATIONS[0]] if hetero else edges()
    pairs = torch.stack([_tensor(end[:8000:83]) for end in ends])
    links = (RELATIONS[0], pairs) if hetero else pairs
    loader = LinkNeighborLoader(
        data, [3, 2], edge_label_index=links, batch_size=40, seed=6, **options
    )
    return list(loader)


def _pyg_hgt() -> list[Any]:
    data = _pyg_data(hetero=True)
    from pygsampler.pyg import HGTLoader

    seeds = ("item", _tensor(SEEDS_BY_TYPE["item"]))
    return list(HGTLoader(data, [20, 10], seeds, batch_size=30, seed=6))


def _pyg_shadow() -> list[Any]:
    data = _pyg_data()
    from pygsampler.pyg import ShaDowKHopSampler

    return list(ShaDowKHopSampler(data, 2, 3, _tensor(SEEDS[:40]), batch_size=20, seed=6))


def _pyg_saint(name: str, **options: Any) -> list[Any]:
    data = _pyg_data()
    from pygsampler import pyg

    loader = getattr(pyg, name)(data, 60, num_steps=3, log=False, seed=6, **options)
    return list(loader)


def computed() -> list[Case]:
    """Returns the cases of this file."""
    return [*dgl(), *pyg()]
