"""Tasks of relational databases, as RelBench's example scripts have them, by PyG's loaders.

The graph is made of tables as RelBench's ``make_pkey_fkey_graph`` makes it, and seeds are rows of a
task's table: an entity, a time and a label, an entity more than once.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from partners import partner
from pyg_reference import stored
from torch_geometric.data import HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput
from torch_geometric.utils import sort_edge_index

import pygsampler as pgs
from pygsampler.datasets import from_relbench
from pygsampler.pyg import NeighborLoader, NeighborSampler
from pygsampler.samplers import Temporal
from pygsampler.torch import DataLoader

SIZES = {"customer": 30, "product": 8, "review": 400}
KEYS = {"customer_id": "customer", "product_id": "product"}
RANDOM = np.random.default_rng(3)
# In seconds; some reviews are of one time.
TIMES = np.sort(RANDOM.integers(0, 300, SIZES["review"])) * 86_400
COLUMNS = {name: RANDOM.integers(0, SIZES[to], SIZES["review"]) for name, to in KEYS.items()}
SEEDS = torch.from_numpy(RANDOM.integers(0, SIZES["customer"], 50))
SEED_TIMES = torch.from_numpy(RANDOM.integers(50, 300, 50) * 86_400)
LABELS = torch.arange(50) % 2


@pytest.fixture(scope="module")
def data() -> HeteroData:
    data, rows = HeteroData(), torch.arange(SIZES["review"])
    for kind, count in SIZES.items():
        data[kind].x = torch.arange(count, dtype=torch.float32).reshape(-1, 1)
    data["review"].time = torch.from_numpy(TIMES)
    for name, target in KEYS.items():
        edges = torch.stack([rows, torch.from_numpy(COLUMNS[name])])
        data["review", f"f2p_{name}", target].edge_index = sort_edge_index(edges)
        data[target, f"rev_f2p_{name}", "review"].edge_index = sort_edge_index(edges.flip(0))
    return data


class AttachTarget:
    """RelBench's transform: labels are of rows of a task, not of nodes."""

    def __call__(self, batch: HeteroData) -> HeteroData:
        batch["customer"].y = LABELS[batch["customer"].input_id]
        return batch


def task(fanouts: list[int], strategy: str, **more: Any) -> dict[str, Any]:
    """The options of RelBench's scripts."""
    return {
        **{"num_neighbors": fanouts, "time_attr": "time", "temporal_strategy": strategy},
        **{"input_nodes": ("customer", SEEDS), "input_time": SEED_TIMES, "batch_size": 16},
        **{"transform": AttachTarget(), "shuffle": False, **more},
    }


def expected(data: HeteroData, places: list[int], fanouts: list[int]) -> Any:
    """The nodes and edges of a batch with the latest neighbors, and how many each hop has.

    It is what pyg-lib does: a list of nodes of each type, of which a hop expands what the hop
    before has added, edge type by edge type.
    """
    nodes: dict[str, list[tuple[int, int]]] = {kind: [] for kind in SIZES}
    nodes["customer"] = [(tree, int(SEEDS[place])) for tree, place in enumerate(places)]
    edges: dict[Any, list[tuple[int, ...]]] = {kind: [] for kind in data.edge_types}
    num_nodes = {kind: [len(found)] for kind, found in nodes.items()}
    num_edges: dict[Any, list[int]] = {kind: [] for kind in data.edge_types}
    begin = dict.fromkeys(SIZES, 0)
    for fanout in fanouts:
        end = {kind: len(found) for kind, found in nodes.items()}
        for kind in data.edge_types:
            (sources, targets), before = data[kind].edge_index.numpy(), len(edges[kind])
            for tree, target in nodes[kind[2]][begin[kind[2]] : end[kind[2]]]:
                found = np.flatnonzero(targets == target)
                if kind[0] == "review":
                    times = TIMES[sources[found]]
                    found = found[times.argsort(kind="stable")]
                    found = found[np.sort(times) <= int(SEED_TIMES[places[tree]])]
                for edge in found if fanout < 0 else found[-fanout:]:
                    source = int(sources[edge])
                    if (tree, source) not in nodes[kind[0]]:
                        nodes[kind[0]].append((tree, source))
                    edges[kind].append((tree, source, target, int(edge)))
            num_edges[kind].append(len(edges[kind]) - before)
        begin = end
        for kind, found in nodes.items():
            num_nodes[kind].append(len(found) - end[kind])
    return nodes, edges, num_nodes, num_edges


@pytest.mark.parametrize(
    "fanouts, workers", [([-1, -1], 0), ([1000, 500], 0), ([4, 2], 0), ([4, 2], 1), ([3, 2, 2], 0)]
)
def test_batches_have_what_pygs_loader_samples(
    data: HeteroData, fanouts: list[int], workers: int
) -> None:
    more = {"num_workers": workers, "persistent_workers": workers > 0}
    loader = NeighborLoader(data, **task(fanouts, "last", **more))
    assert len(loader) == 4
    for _ in range(2):
        for number, batch in enumerate(loader):
            places = list(range(50)[16 * number : 16 * (number + 1)])
            nodes, edges, num_nodes, num_edges = expected(data, places, fanouts)
            assert batch.num_sampled_nodes_dict == num_nodes
            assert batch.num_sampled_edges_dict == num_edges
            for kind in SIZES:
                ids = zip(batch[kind].batch.tolist(), batch[kind].n_id.tolist(), strict=True)
                # Hop by hop, of which each has no order.
                assert by_hop(list(ids), num_nodes[kind]) == by_hop(nodes[kind], num_nodes[kind])
                assert torch.equal(batch[kind].x, data[kind].x[batch[kind].n_id])
            for kind in data.edge_types:
                row, col = batch[kind].edge_index
                columns = (
                    batch[kind[2]].batch[col],
                    batch[kind[0]].n_id[row],
                    batch[kind[2]].n_id[col],
                    batch[kind].e_id,
                )
                found = list(zip(*(column.tolist() for column in columns), strict=True))
                assert by_hop(found, num_edges[kind]) == by_hop(edges[kind], num_edges[kind])
            seeds = batch["customer"]
            assert seeds.batch_size == len(places)
            assert seeds.input_id.tolist() == places
            assert torch.equal(seeds.n_id[: len(places)], SEEDS[places])
            assert torch.equal(seeds.seed_time, SEED_TIMES[places])
            assert torch.equal(seeds.y, LABELS[places])
            review = batch["review"]
            assert torch.equal(review.time, data["review"].time[review.n_id])
            # RelBench's temporal encoder: the age of a row, in its seed's eyes.
            assert bool((seeds.seed_time[review.batch] >= review.time).all())
            assert "time" not in batch["product"]


def by_hop(found: list[Any], sizes: list[int]) -> list[list[Any]]:
    ends = np.cumsum(sizes)
    assert ends[-1] == len(found)
    return [sorted(found[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def test_uniform_neighbors_are_as_many_as_pygs(data: HeteroData) -> None:
    sizes = []
    for batch in NeighborLoader(data, **task([6, 3], "uniform", seed=5)):
        bought = batch["review", "f2p_customer_id", "customer"]
        first = bought.edge_index[:, : bought.num_sampled_edges[0]]
        degrees = first[1].bincount(minlength=batch["customer"].batch_size)
        for seed, time, degree in zip(
            batch["customer"].n_id.tolist(),
            batch["customer"].seed_time.tolist(),
            degrees.tolist(),
            strict=False,
        ):
            earlier = (COLUMNS["customer_id"] == seed) & (time >= TIMES)
            assert degree == min(6, earlier.sum())
            sizes.append(degree)
    assert len(sizes) == 50
    assert {6} < set(sizes)


def test_a_sampler_in_a_loader_of_ones_own_gives_the_same(data: HeteroData) -> None:
    """RelBench's loader of links calls ``sample_from_nodes`` and ``filter_fn`` of a NodeLoader."""
    options = {"num_neighbors": [-1, -1], "time_attr": "time"}
    sampler = NeighborSampler(
        data, **options, subgraph_type="directional", disjoint=False, temporal_strategy="uniform"
    )
    loader = NodeLoader(data, sampler, "customer")
    asked = NodeSamplerInput(SEEDS[:16], SEEDS[:16], SEED_TIMES[:16], "customer")
    found = loader.filter_fn(sampler.sample_from_nodes(asked))
    batch = next(iter(NeighborLoader(data, **task([-1, -1], "uniform"))))
    assert torch.equal(found["customer"].input_id, SEEDS[:16])
    assert torch.equal(batch["customer"].input_id, torch.arange(16))
    for of in (found, batch):
        del of["customer"].input_id
    del batch["customer"].y
    assert stored(found) == stored(batch)


def test_bidirectional_batches_have_each_edge_both_ways(data: HeteroData) -> None:
    """RelBench's identity-aware script, whose rows it finds by ``batch`` and ``n_id``."""
    loader = NeighborLoader(data, **task([4, 2], "last", subgraph_type="bidirectional"))
    for number, batch in enumerate(loader):
        places = list(range(50)[16 * number : 16 * (number + 1)])
        nodes, edges, *_ = expected(data, places, [4, 2])
        for kind in SIZES:
            assert pairs(batch[kind].batch, batch[kind].n_id) == sorted(nodes[kind])
        for name, target in KEYS.items():
            kinds = ("review", f"f2p_{name}", target), (target, f"rev_f2p_{name}", "review")
            there, back = (batch[kind].edge_index for kind in kinds)
            want = {(tree, a, b) for tree, a, b, _ in edges[kinds[0]]}
            want |= {(tree, b, a) for tree, a, b, _ in edges[kinds[1]]}
            for review, other in (there, back.flip(0)):
                ids = batch["review"].n_id[review], batch[target].n_id[other]
                assert pairs(batch["review"].batch[review], *ids) == sorted(want)


def test_from_relbench_gives_the_same_batches(data: HeteroData) -> None:
    pandas = partner("pandas")
    partner("pyarrow")
    days = pandas.to_datetime(pandas.Series(TIMES), unit="s")
    frames = {
        "customer": (pandas.DataFrame({"customer_id": range(30)}), "customer_id", {}, None),
        "product": (pandas.DataFrame({"product_id": range(8)}), "product_id", {}, None),
        "review": (pandas.DataFrame({"day": days, **COLUMNS}), None, KEYS, "day"),
    }
    names = ("df", "pkey_col", "fkey_col_to_pkey_table", "time_col")
    tables = {
        name: SimpleNamespace(**dict(zip(names, table, strict=True)))
        for name, table in frames.items()
    }
    graph = from_relbench(SimpleNamespace(table_dict=tables))
    assert set(graph.edge_types) == set(data.edge_types)
    loader = DataLoader(
        graph,
        {"customer": SEEDS},
        pgs.PGSampler([2, 4], temporal=Temporal("time", strategy="last"), frontier="new"),
        batch_size=16,
        seed_time=SEED_TIMES.numpy().astype("datetime64[s]"),
        guard=True,
    )
    batches = NeighborLoader(data, **task([4, 2], "last"))
    for number, (theirs, ours) in enumerate(zip(batches, loader, strict=True)):
        assert ours.output_nodes["customer"].tolist() == SEEDS[16 * number :][:16].tolist()
        for kind in SIZES:
            found = ours.subgraph_ids[kind], ours.input_nodes[kind]
            want = theirs[kind].batch, theirs[kind].n_id
            assert pairs(*found) == pairs(*want)


def pairs(*columns: torch.Tensor) -> list[tuple[int, ...]]:
    return sorted(zip(*(column.tolist() for column in columns), strict=True))
