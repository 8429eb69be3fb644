"""Batches on the CPU, which the engine joins, are those that torch makes of their blocks."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
import torch
from partners import partner

partner("torch_geometric")

from pyg_reference import random_data  # noqa: E402
from torch_geometric.data import HeteroData  # noqa: E402
from torch_geometric.sampler import (  # noqa: E402
    EdgeSamplerInput,
    NodeSamplerInput,
    SamplerOutput,
)

import pygsampler as pgs  # noqa: E402
from pygsampler._engine.memory import Memory  # noqa: E402
from pygsampler.pyg import HGTSampler, PGSampler, Sampler, base_sampler, hetero_output  # noqa: E402
from pygsampler.pyg.engine_output import edge_lists, hetero_edge_lists  # noqa: E402
from pygsampler.pyg.loader_inputs import inputs_at  # noqa: E402
from pygsampler.pyg.sampler_output import output_edges, output_nodes  # noqa: E402

SEEDS = (
    torch.tensor([3, 50, 3, 7, 3]),
    torch.arange(20),
    torch.tensor([99]),
    torch.tensor([7, 7]),
    torch.arange(0),
)


def told(value: Any) -> Any:
    """All of an output, dtypes too, for comparison."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.tolist()
    if isinstance(value, dict):
        return [(key, told(each)) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [told(each) for each in value]
    return value


def by_torch(made: Any) -> SamplerOutput:
    """A batch without types, as those on a GPU become PyG's."""
    batch = made.torch()
    node, nodes = output_nodes(batch)
    edges, counts = output_edges(batch)
    subgraph_ids = None if batch.subgraph_ids is None else batch.subgraph_ids.to(node.dtype)
    out = (
        node,
        edges.row,
        edges.col,
        edges.edge,
        edges.weight,
        subgraph_ids,
        nodes,
        counts,
        edges.ordered,
    )
    return told(out)


def by_engine(made: Any) -> SamplerOutput:
    found = edge_lists(made)
    edges, subgraph_ids = (
        found.edges(),
        None if found.subgraph_ids is None else found.subgraph_ids[0],
    )
    nodes, counts = found.num_nodes[0], found.num_edges[0]
    about = edges.row, edges.col, edges.edge, edges.weight
    return told((found.nodes[0], *about, subgraph_ids, nodes, counts, found.in_order))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"replace": True},
        {"disjoint": True},
        {"edge_weights": "ht"},
        {"frontier": "new"},
        {"frontier": "new", "disjoint": True},
        {"frontier": "new", "replace": True, "edge_weights": "ht"},
    ],
)
def test_batches_without_types(dtype: torch.dtype, options: dict[str, Any]) -> None:
    graph = pgs.Graph.from_pyg(random_data(dtype=dtype))
    for fanouts in ([4, 3], [-1], [0], [2, 0, 3, 1]):
        sampler = pgs.PGSampler(fanouts, seed=1, **options)
        if options.get("frontier") != "new" and options.get("disjoint"):
            continue
        for seeds in SEEDS:
            made = sampler.sample(graph, seeds.to(dtype), epoch=0, batch=3)
            assert by_engine(made) == by_torch(made)


def test_blocks_of_ones_own() -> None:
    """All vertices are expanded in each hop."""
    seeds = torch.tensor([5, 9, 5], dtype=torch.int32)
    nodes = torch.tensor([5, 9, 4, 1], dtype=torch.int32)

    def hop(indptr: list[int], indices: list[int]) -> tuple[torch.Tensor, ...]:
        arrays = indptr, indices, list(range(7, 7 + len(indices)))
        return tuple(torch.tensor(values, dtype=torch.int32) for values in arrays)

    blocks = [hop([0, 1, 3, 4], [3, 0, 2, 1]), hop([0, 2, 3], [1, 2, 0])]
    index = torch.tensor([0, 1, 0], dtype=torch.int32)
    made = pgs.MiniBatch.from_blocks(seeds, nodes, blocks, output_index=index)
    found = edge_lists(made)
    assert by_engine(made) == by_torch(made)
    # 5 is there twice, each time with its edges; what comes out of it comes from the first.
    assert found.nodes[0].tolist() == [5, 9, 5, 4, 1]
    assert found.rows[0].tolist()[:5] == [1, 3, 0, 1, 3]
    assert found.cols[0].tolist()[:5] == [0, 0, 1, 2, 2]
    assert found.num_edges == [[5, 5]]
    assert not found.in_order
    assert found.ids[0].tolist() == [7, 8, 9, 7, 8, 7, 8, 9, 7, 10]
    assert found.ids[0].dtype == torch.int32


def schema(seed: int) -> HeteroData:
    """Random types: some without nodes, some relations without edges."""
    rng = random.Random(seed)
    dtype = rng.choice([torch.int32, torch.int64])
    data = HeteroData()
    counts = {f"t{i}": rng.choice([0, 1, 30, 80]) for i in range(rng.randint(1, 5))}
    counts["t0"] = 60
    for kind, count in counts.items():
        data[kind].num_nodes = count
        data[kind].when = torch.randint(0, 9, (count,))
    for i in range(rng.randint(1, 9)):
        src, dst = (rng.choice(list(counts)) for _ in range(2))
        if i == 0:
            src = dst = "t0"
        edges = rng.choice([0, 5, 200]) if counts[src] and counts[dst] else 0
        kind = src, f"r{i}", dst
        ends = [torch.randint(0, max(counts[end], 1), (edges,), dtype=dtype) for end in (src, dst)]
        data[kind].edge_index = torch.stack(ends)
        data[kind].w = torch.rand(edges)
    return data


@pytest.mark.filterwarnings("ignore:Cannot convert to bidirectional:UserWarning")
@pytest.mark.parametrize("seed", range(24))
def test_batches_with_types(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(seed)
    data, rng = schema(seed), random.Random(seed)
    options: dict[str, Any] = rng.choice(
        [
            {},
            {"replace": True},
            {"disjoint": True},
            {"weight_attr": "w", "edge_weights": "ht"},
            {"time_attr": "when", "disjoint": True},
            {"sample_direction": "backward"},
            {"subgraph_type": "induced"},
            {"subgraph_type": "bidirectional"},
        ]
    )
    hops = rng.choice([[3], [4, 2], [2, 2, 2], [0], [], [-1, 1]])
    sampler = PGSampler(data, hops, seed=seed, **options)
    sampler.set_epoch(0)
    few = torch.randint(0, 60, (12,))
    for seeds in (few, few.unique(), few[:0]):
        asked = NodeSamplerInput(None, seeds, None, "t0")
        found = sampler.sample_from_nodes(asked)
        with monkeypatch.context() as patch:
            by_blocks(patch, "t0", sampler._relations)
            expected = sampler.sample_from_nodes(asked)
        assert told(vars(found)) == told(vars(expected))


def by_blocks(patch: pytest.MonkeyPatch, kind: str, kinds: Any) -> None:
    """Batches with types are sampled into blocks, and joined by torch."""
    patch.setattr(base_sampler, "is_pure", lambda sampler: False)
    patch.setattr(hetero_output, "hetero_edge_lists", lambda batch: batch)
    patch.setattr(
        hetero_output,
        "_of_engine",
        lambda batch, schema, of, hops: hetero_output._of_tensors(batch, kind, kinds, hops),
    )


def test_subgraphs_of_hgt(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    data = schema(3)
    sampler = HGTSampler(data, [8, 8], seed=1)
    sampler.set_epoch(0)
    asked = NodeSamplerInput(None, torch.tensor([5, 2, 5, 40]), None, "t0")
    found = sampler.sample_from_nodes(asked)
    by_blocks(monkeypatch, "t0", sampler.graph.edge_types)
    assert told(vars(found)) == told(vars(sampler.sample_from_nodes(asked)))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_a_batch_of_many_types_and_edge_ids_of_both_widths(dtype: torch.dtype) -> None:
    """More words than are read at once."""
    widths = [torch.int32, torch.int64] * 6
    graph = pgs.HeteroGraph(
        {
            ("a", f"r{i}", "a" if i % 3 else "b"): (
                torch.tensor([0, 2, 3]),
                torch.tensor([1, 0, 1], dtype=dtype),
                torch.tensor([7, 8, 9 + i], dtype=width),
            )
            for i, width in enumerate(widths)
        },
        {"a": 2, "b": 2},
    )
    made = pgs.PGSampler([-1, -1], frontier="new", seed=1).sample(
        graph, {"a": torch.tensor([1, 0, 1]), "b": torch.tensor([0])}
    )
    found = hetero_edge_lists(made)
    assert [ids.dtype for ids in found.ids] == widths
    assert found.rows[0].dtype == found.nodes[0].dtype == dtype
    expected = hetero_output._of_tensors(made, "a", graph.edge_types, 2)
    assert told(list(found.ids)) == told(list(expected.edge.values()))
    assert told(list(found.rows)) == told(list(expected.row.values()))
    assert told(list(found.cols)) == told(list(expected.col.values()))
    assert told(list(found.nodes)) == told(list(expected.node.values()))
    assert told(list(found.num_nodes)) == told(list(expected.num_sampled_nodes.values()))


def test_tensors_are_apart() -> None:
    """A write to one is not one to another, and does not count as one."""
    sampler = PGSampler(random_data(), [4, 3], seed=1)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(10)))
    others = [copy.deepcopy(each) for each in (out.node, out.row, out.col)]
    version = out.row._version
    out.edge.fill_(-1)
    assert all(a.equal(b) for a, b in zip(others, (out.node, out.row, out.col), strict=True))
    assert out.row._version == version


def test_batches_of_samplers_of_ones_own() -> None:
    data = random_data()
    plain = pgs.PGSampler([3, 4], frontier="new", seed=1)
    sampler = Sampler(data, plain)
    sampler.set_epoch(0)
    ours = PGSampler(data, [4, 3], seed=1)
    ours.set_epoch(0)
    for seeds in SEEDS:
        asked = NodeSamplerInput(None, seeds)
        pair = sampler.sample_from_nodes(asked), ours.sample_from_nodes(asked)
        assert told(vars(pair[0])) == told(vars(pair[1]))


@pytest.mark.parametrize("options", [{}, {"disjoint": True}, {"edge_weights": "ht"}])
def test_one_call_gives_what_two_do(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that samples joins, too; small batches at once, begun ones in the background."""
    sampler = PGSampler(random_data(), [4, 3], seed=1, **options)
    sampler.set_epoch(0)
    for seeds in SEEDS:
        asked = NodeSamplerInput(None, seeds)
        found = told(vars(sampler.sample_from_nodes(asked)))
        sampler._beginning.begun = begun = sampler._begin(asked)
        assert type(begun.job.result()) is Memory
        assert told(vars(sampler.sample_from_nodes(asked))) == found
        assert begun.is_used
        with monkeypatch.context() as patch:
            patch.setattr(base_sampler, "is_pure", lambda sampler: False)
            assert told(vars(sampler.sample_from_nodes(asked))) == found


def test_a_batch_that_was_begun_before_its_edges_are_to_be_others() -> None:
    sampler = PGSampler(random_data(), [4, 3], seed=1)
    sampler.set_epoch(0)
    asked = NodeSamplerInput(None, torch.tensor([3, 50, 7]))
    sampler._beginning.begun = begun = sampler._begin(asked)
    sampler.subgraph_type = "induced"
    found = sampler.sample_from_nodes(asked)
    assert begun.is_used
    assert told(vars(found)) == told(vars(sampler.sample_from_nodes(asked)))
    assert found.num_sampled_edges is None


def test_inputs_at_some_places() -> None:
    ids, ends = torch.arange(5) * 10, torch.arange(10).reshape(2, 5)
    label, time = torch.rand(5, 2), torch.arange(5) + 7
    given = (
        NodeSamplerInput(None, ids),
        NodeSamplerInput(ids + 1, ids, time, "t0"),
        EdgeSamplerInput(None, *ends),
        EdgeSamplerInput(ids, *ends, label, time, ("a", "to", "b")),
    )
    for each in given:
        # From the end, too, as PyG takes them.
        for places in ([3, 0, 3], [], [-1, 2]):
            at = torch.tensor(places, dtype=torch.int64)
            found = inputs_at(each, at)
            assert type(found) is type(each)
            assert told(vars(found)) == told(vars(each[at]))
        with pytest.raises(IndexError):
            inputs_at(each, torch.tensor([5]))
