"""``pyg.NeighborLoader`` and ``pyg.PGSampler`` on graphs with types."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from pyg_reference import content, random_data
from torch_geometric.data import HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import HeteroConv, SAGEConv, to_hetero
from torch_geometric.sampler import NodeSamplerInput, NumNeighbors
from torch_geometric.utils import trim_to_layer

from pygsampler.pyg import HGTSampler, NeighborLoader, PGSampler

CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")
WRITTEN, NEVER = ("paper", "rev_writes", "author"), ("place", "of", "author")
ALL = [CITES, WRITES, WRITTEN, NEVER]
NODES = {"paper": 60, "author": 40, "place": 5, "alone": 3}


def typed_data(dtype: torch.dtype = torch.int64) -> Any:
    """Types without edges, an edge type without edges, parallel edges, weights in one type."""
    random = torch.Generator().manual_seed(0)
    data = HeteroData()
    for kind, count in NODES.items():
        data[kind].x = torch.randn(count, 4, generator=random)
    data["paper"].y = torch.arange(60) % 2
    for kind, count in {CITES: 300, WRITES: 150, WRITTEN: 150, NEVER: 0}.items():
        ends = [torch.randint(0, NODES[of], (count,), generator=random) for of in kind[::2]]
        data[kind].edge_index = torch.stack(ends).to(dtype)
        data[kind].edge_attr = torch.arange(count)
    data[CITES].w = torch.arange(300) % 3 / 2
    return data


def reached() -> Any:
    """The types that have edges."""
    data = typed_data()
    kinds = [CITES, WRITES, WRITTEN]
    return data.edge_type_subgraph(kinds).node_type_subgraph(["paper", "author"])


def expected(
    data: Any, out: Any, counts: Any, kind: str, seeds: list[int], subgraph_ids: bool
) -> Any:
    """PyG's rules in plain Python, given which edges each node has drawn."""
    nodes: dict[str, list[Any]] = {of: [] for of in data.node_types}
    nodes[kind] = [(tree if subgraph_ids else -1, v) for tree, v in enumerate(seeds)]
    found: dict[Any, list[Any]] = {of: [] for of in data.edge_types}
    num_nodes = {of: [len(ids)] for of, ids in nodes.items()}
    num_edges: dict[Any, list[int]] = {of: [] for of in data.edge_types}
    begin = dict.fromkeys(nodes, 0)
    for hop in range(len(next(iter(counts.values())))):
        ends = {of: len(ids) for of, ids in nodes.items()}
        for of in data.edge_types:
            src, _, dst = of
            sources, targets = data[of].edge_index.tolist()
            col, edge = out.col[of].tolist(), out.edge[of].tolist()
            before = len(found[of])
            for into in range(begin[dst], ends[dst]):
                tree, v = nodes[dst][into]
                drawn = [e for e, c in zip(edge, col, strict=True) if c == into]
                around = [e for e, target in enumerate(targets) if target == v]
                count = counts[of][hop]
                assert set(drawn) <= set(around)
                if count < 0 or count >= len(around):
                    assert drawn == around
                else:
                    assert len(drawn) == len(set(drawn)) == count
                for e in drawn:
                    if (tree, sources[e]) not in nodes[src]:
                        nodes[src].append((tree, sources[e]))
                    found[of].append((nodes[src].index((tree, sources[e])), into, e))
            num_edges[of].append(len(found[of]) - before)
        begin = ends
        for of, ids in nodes.items():
            num_nodes[of].append(len(ids) - ends[of])
    return nodes, found, num_nodes, num_edges


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("seeds", [[3, 0, 17], [5, 5, 2, 5, 9, 2], []])
@pytest.mark.parametrize(
    "counts",
    [
        {CITES: [2, 3], WRITES: [-1, 1], WRITTEN: [4, 2], NEVER: [1, 1]},
        {kind: [3, 0, 2] for kind in ALL},
        {kind: [] for kind in ALL},
    ],
)
def test_contents(counts: Any, seeds: list[int], disjoint: bool, dtype: torch.dtype) -> None:
    data = typed_data(dtype)
    sampler = PGSampler(data, counts, disjoint=disjoint, seed=3)
    given = torch.tensor(seeds, dtype=torch.int64)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, given, input_type="paper"))
    nodes, edges, num_nodes, num_edges = expected(data, out, counts, "paper", seeds, disjoint)
    assert {of: ids.tolist() for of, ids in out.node.items()} == {
        of: [v for _, v in ids] for of, ids in nodes.items()
    }
    for of, found in edges.items():
        got = zip(out.row[of].tolist(), out.col[of].tolist(), out.edge[of].tolist(), strict=True)
        assert list(got) == found
        assert out.row[of].dtype == out.col[of].dtype == dtype
    assert (out.num_sampled_nodes, out.num_sampled_edges) == (num_nodes, num_edges)
    if disjoint:
        assert {of: ids.tolist() for of, ids in out.batch.items()} == {
            of: [tree for tree, _ in ids] for of, ids in nodes.items()
        }
    else:
        assert out.batch is None


@pytest.mark.parametrize("options", [{}, {"disjoint": True}, {"replace": True}])
def test_one_type_is_a_data(options: Any) -> None:
    """Batches of a graph of one type are those of the same graph without types."""
    plain = random_data()
    data = HeteroData()
    data["v"].x = plain.x
    data["v", "e", "v"].edge_index = plain.edge_index
    ids = torch.tensor([4, 7, 4, 80])
    ours = PGSampler(data, [3, 4], seed=5, **options)
    theirs = PGSampler(plain, [3, 4], seed=5, **options)
    for sampler in (ours, theirs):
        sampler.set_epoch(2)
    got = content(ours.sample_from_nodes(NodeSamplerInput(None, ids, input_type="v")))
    want = content(theirs.sample_from_nodes(NodeSamplerInput(None, ids)))
    for name in ("node", "row", "col", "edge", "batch", "num_sampled_nodes", "num_sampled_edges"):
        each = got[name] and next(iter(got[name].values()))
        each = each.tolist() if isinstance(each, torch.Tensor) else each
        assert each == want[name], name


@pytest.mark.parametrize("workers", [0, 2])
def test_batches(workers: int) -> None:
    """Every type and its features; input_nodes in all forms; seed and epoch repeat an epoch."""
    data = typed_data()
    mask = torch.arange(60) % 4 == 0

    def batches(input_nodes: Any, epoch: int, workers: int) -> list[Any]:
        loader = NeighborLoader(
            data, [3, 2], input_nodes, batch_size=8, seed=1, num_workers=workers
        )
        loader.set_epoch(epoch)
        return list(loader)

    made = batches(("paper", mask), 0, workers)
    assert torch.cat([batch["paper"].input_id for batch in made]).equal(mask.nonzero()[:, 0])
    for batch in made:
        assert batch.metadata() == data.metadata()
        for kind in data.node_types:
            assert batch[kind].x.equal(data[kind].x[batch[kind].n_id])
        for kind in data.edge_types:
            store = batch[kind]
            ends = [batch[of].n_id[store.edge_index[i]] for i, of in enumerate(kind[::2])]
            assert torch.stack(ends).equal(data[kind].edge_index[:, store.e_id])
            assert store.edge_attr.equal(store.e_id)
    drawn = [[batch[CITES].e_id.tolist() for batch in made]]
    for given, epoch, processes in ((mask, 0, 2 - workers), (mask, 1, 0), (~mask, 0, 0)):
        others = batches(("paper", given), epoch, processes)
        drawn.append([batch[CITES].e_id.tolist() for batch in others])
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]
    assert drawn[0] != drawn[3]
    for form in ("author", ("author", None)):
        assert sum(batch["author"].batch_size for batch in batches(form, 0, workers)) == 40
    (batch,) = batches(("author", [7, 3]), 0, workers)
    assert batch["author"].n_id[:2].tolist() == [7, 3]


def test_weights_replacement_and_both_ways() -> None:
    data = typed_data()
    loader = NeighborLoader(data, [4, 4], "paper", batch_size=60, weight_attr="w", seed=2)
    (batch,) = loader
    assert bool((batch[CITES].w > 0).all())
    assert batch[WRITES].e_id.numel() > 0
    (batch,) = NeighborLoader(data, [200], ("paper", [1]), replace=True, seed=2)
    into = int((data[WRITES].edge_index[1] == 1).sum())
    assert into > 0
    assert batch[WRITES].e_id.numel() == 200
    loader = NeighborLoader(
        reached(), [2], "paper", batch_size=60, subgraph_type="bidirectional", seed=2
    )
    (batch,) = loader
    assert batch[WRITES].edge_index.equal(batch[WRITTEN].edge_index.flip(0))
    assert batch[WRITES].edge_index.shape[1] > 0


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("weight_attr", [None, "w"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_induced(dtype: torch.dtype, weight_attr: str | None, disjoint: bool) -> None:
    """All edges between the nodes, but those of weight 0, and of no other tree."""
    data = typed_data(dtype)
    seeds = torch.tensor([5, 9, 5, 30])
    options: Any = {"disjoint": disjoint, "weight_attr": weight_attr, "seed": 2}
    loaders = [
        NeighborLoader(
            data, [3, 2], ("paper", seeds), batch_size=4, subgraph_type=subgraph, **options
        )
        for subgraph in ("induced", "directional")
    ]
    for loader in loaders:
        loader.set_epoch(0)
    (batch,), (drawn,) = loaders
    assert "num_sampled_nodes" not in batch["paper"]
    for kind in NODES:
        assert batch[kind].n_id.equal(drawn[kind].n_id)
    for src, relation, dst in ALL:
        edges = data[src, relation, dst]
        ends = [
            list(
                zip(
                    (batch[of].batch if disjoint else torch.zeros_like(batch[of].n_id)).tolist(),
                    batch[of].n_id.tolist(),
                    strict=True,
                )
            )
            for of in (src, dst)
        ]
        kept = edges.w > 0 if weight_attr and "w" in edges else torch.ones(edges.num_edges)
        want = [
            (ends[0].index((tree, source)), into, e)
            for into, (tree, v) in enumerate(ends[1])
            for e, (source, target) in enumerate(edges.edge_index.t().tolist())
            if target == v and (tree, source) in ends[0] and kept[e]
        ]
        found = batch[src, relation, dst]
        got = zip(*found.edge_index.tolist(), found.e_id.tolist(), strict=True)
        assert sorted(got) == sorted(want)
        assert (found.edge_attr == found.e_id).all()
        assert set(drawn[src, relation, dst].e_id.tolist()) <= set(found.e_id.tolist())


@pytest.mark.parametrize("subgraph_type", ["directional", "induced"])
def test_backward_is_forward_in_the_reversed_data(subgraph_type: str) -> None:
    """Out-neighbours, with the types, ends and weights that the edges have in the data."""
    data = typed_data()
    turned = HeteroData()
    for kind in NODES:
        turned[kind].num_nodes = NODES[kind]
    for src, relation, dst in ALL:
        turned[dst, relation, src].edge_index = data[src, relation, dst].edge_index.flip(0)
    turned[CITES].w = data[CITES].w
    counts = {WRITES: [3, 1], CITES: [2, 2], WRITTEN: [0, 2], NEVER: [1, 1]}
    options: Any = {"weight_attr": "w", "subgraph_type": subgraph_type, "seed": 4}
    backward = PGSampler(data, counts, sample_direction="backward", **options)
    reverse = {kind[::-1]: n for kind, n in counts.items()}
    forward = PGSampler(turned, reverse, **options)
    assert backward.num_edges == {kind: data[kind].num_edges for kind in ALL}
    found = []
    for sampler in (backward, forward):
        sampler.set_epoch(1)
        seeds = torch.tensor([4, 8, 4])
        found.append(sampler.sample_from_nodes(NodeSamplerInput(None, seeds, None, "paper")))
    got, want = found
    for of in NODES:
        assert got.node[of].equal(want.node[of])
    for kind in ALL:
        src, _, dst = kind
        assert got.row[kind].equal(want.col[kind[::-1]])
        assert got.col[kind].equal(want.row[kind[::-1]])
        edges = got.edge[kind]
        assert edges.equal(want.edge[kind[::-1]])
        assert data[kind].edge_index[0][edges].equal(got.node[src][got.row[kind]])
        assert data[kind].edge_index[1][edges].equal(got.node[dst][got.col[kind]])
        if subgraph_type == "directional":
            assert got.num_sampled_edges[kind] == want.num_sampled_edges[kind[::-1]]
    assert got.edge[CITES].numel() > 0


def test_options_may_be_assigned() -> None:
    data = typed_data()
    sampler = PGSampler(data, [2], seed=1, weight_attr="w")
    sampler.num_neighbors = NumNeighbors({CITES: [0, 0]}, default=[1, 1])
    sampler.weight_attr = None
    sampler.disjoint = True
    assert repr(sampler).startswith(f"pygsampler.pyg.PGSampler({{{CITES}: [0, 0]}}, replace=F")
    other = copy.copy(sampler)
    other.set_seed(8)
    assert sampler.seed == 1
    (batch,) = NodeLoader(data, sampler, input_nodes="paper", batch_size=60)
    assert batch[CITES].num_sampled_edges == [0, 0]
    assert batch[WRITES].num_sampled_edges[0] > 0
    assert batch["paper"].batch.tolist()[:60] == list(range(60))


def test_types_of_seeds_are_other_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ids of two types do not share random numbers in an epoch."""
    sampler = PGSampler(typed_data(), [2], seed=1)
    sampler.set_epoch(0)
    of, numbers = sampler._identity.number, []
    monkeypatch.setattr(
        sampler._identity, "number", lambda *ids: numbers.append(of(*ids)) or of(*ids)
    )
    for kind in ("paper", "author", "paper"):
        sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(4), input_type=kind))
    assert numbers[0] == numbers[2] != numbers[1]


def test_a_model_trains() -> None:
    """``to_hetero`` of a SAGE model, on the types that are a destination and their sources."""
    torch.manual_seed(0)
    data = reached()
    data["paper"].x[:, 0] = data["paper"].y * 2.0 - 1

    class Sage(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = SAGEConv((4, 4), 16), SAGEConv((16, 16), 2)

        def forward(self, x: Any, edge_index: Any) -> Any:
            return self.second(self.first(x, edge_index).relu(), edge_index)

    model: Any = to_hetero(Sage(), data.metadata())
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    loader = NeighborLoader(data, [4, 4], "paper", batch_size=20, shuffle=True, seed=1)
    losses = []
    for _ in range(15):
        for batch in loader:
            size = batch["paper"].batch_size
            out = model(batch.x_dict, batch.edge_index_dict)["paper"][:size]
            loss = torch.nn.functional.cross_entropy(out, batch["paper"].y[:size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert sum(losses[-3:]) < 0.5 * sum(losses[:3])


def test_relations_without_a_name() -> None:
    """PyG calls them "to", and takes pairs of types for them."""
    data = HeteroData()
    data["a"].num_nodes, data["b"].num_nodes = 6, 4
    data["a", "b"].edge_index = torch.tensor([[0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 1, 1]])
    data["b", "of", "a"].edge_index = torch.tensor([[0, 1, 2], [1, 1, 1]])
    for kind in (("a", "b"), ("a", "to", "b"), "a__to__b"):
        counts = {kind: [3, 1], ("b", "of", "a"): [0, 2]}
        (batch,) = NeighborLoader(data, counts, "b", batch_size=4, seed=1)
        assert batch["a", "to", "b"].num_sampled_edges == [5, 0]
    with pytest.raises(ValueError, match=r"got \('b', 'to', 'a'\)"):
        NeighborLoader(data, {("a", "b"): [2], ("b", "a"): [2]}, "b")


def test_trimmed_layers() -> None:
    """With ``trim_to_layer`` the seeds get the same vectors, of fewer rows."""
    torch.manual_seed(0)
    data = reached()
    layers = [HeteroConv({kind: SAGEConv((4, 4), 4) for kind in data.edge_types}) for _ in range(3)]
    (batch,) = NeighborLoader(data, [2, 2, 1], ("paper", [3, 9, 3]), batch_size=3, seed=1)
    of_nodes, of_edges = batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict
    whole, part, edges = batch.x_dict, batch.x_dict, batch.edge_index_dict
    for i, layer in enumerate(layers):
        whole = layer(whole, batch.edge_index_dict)
        part, edges, _ = trim_to_layer(i, of_nodes, of_edges, part, edges)
        part = layer(part, edges)
    assert len(part["paper"]) < len(whole["paper"])
    torch.testing.assert_close(part["paper"][:3], whole["paper"][:3])


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_neighbors": {CITES: [2]}}, ValueError, r"num_neighbors: .* none for .*writes"),
        (
            {"num_neighbors": {**{kind: [2] for kind in ALL}, ("a", "b", "c"): [2]}},
            ValueError,
            r"num_neighbors: expected types of data, got \('a', 'b', 'c'\); there are \('",
        ),
        (
            {"num_neighbors": NumNeighbors({CITES: [2]}, default=[1, 2])},
            ValueError,
            "num_neighbors: the number of hops must be the same",
        ),
        (
            {"num_neighbors": {kind: [-2] for kind in ALL}},
            ValueError,
            r"num_neighbors\[.*\]\[0\]: ",
        ),
        ({"input_nodes": None}, TypeError, "input_nodes: expected a type of nodes"),
        ({"input_nodes": torch.arange(3)}, TypeError, "input_nodes: expected a type of nodes"),
        ({"input_nodes": "book"}, ValueError, r"input_nodes: expected one of .* got str 'book'"),
        ({"input_nodes": ("paper", [60])}, IndexError, "input_nodes"),
        ({"time_attr": "when"}, ValueError, "time_attr: .* of some type of data, got 'when'"),
        ({"input_time": torch.arange(3)}, ValueError, "input_time"),
        ({"edge_weights": "hat"}, ValueError, "edge_weights: expected None or 'ht'"),
        ({"edge_weights": "ht", "subgraph_type": "induced"}, ValueError, "edge_weights"),
        ({"features": {"x": torch.ones(3)}}, TypeError, r"features\['x'\]: expected a mapping of"),
        (
            {"features": {"x": {"book": torch.ones(3)}}},
            ValueError,
            "types of data, got 'book'",
        ),
        (
            {"features": {"x": {"paper": torch.ones(3)}}},
            ValueError,
            "a row for each of 60 nodes of 'paper', got 3",
        ),
        ({"edge_features": torch.ones(3)}, TypeError, "edge_features: expected a mapping of names"),
        ({"edge_index": "csr"}, ValueError, "edge_index: expected 'coo' or 'edge_index'"),
        ({"subgraph_type": "whole"}, ValueError, "subgraph_type: expected one of"),
        ({"weight_attr": "nothing"}, ValueError, "weight_attr: .*'w'.* got 'nothing'"),
        ({"weight_attr": 3}, TypeError, "weight_attr"),
    ],
)
def test_mistakes(options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        NeighborLoader(typed_data(), **{"num_neighbors": [2], "input_nodes": "paper", **options})


def test_mistakes_in_data() -> None:
    data = typed_data()
    sampler = PGSampler(data, [2])
    with pytest.raises(TypeError, match=r"neighbor_sampler: .* got a PGSampler of heterogeneous"):
        NeighborLoader(random_data(), [2], neighbor_sampler=sampler)
    ids = torch.tensor([1])
    with pytest.raises(ValueError, match=r"input_type: .* got None"):
        sampler.sample_from_nodes(NodeSamplerInput(None, ids))
    with pytest.raises(ValueError, match="sample_direction"):
        PGSampler(data, [2], sample_direction="sideways")
    with pytest.raises(TypeError, match=r"data: expected a HeteroData, or stores .* got Data"):
        HGTSampler(random_data(), [2])
    loader = NeighborLoader(data, [2], "paper")
    data[CITES].edge_index = data[CITES].edge_index[:, 1:]
    with pytest.raises(ValueError, match=r"data\[.*cites.*\]: expected 300 edges .* got 299"):
        next(iter(loader))
    for edges, error, text in (
        (torch.tensor([[40], [0]]), IndexError, r"data\[.*writes.*\]\.edge_index\[0\]"),
        (torch.tensor([[0], [0]], dtype=torch.int32), TypeError, "one dtype"),
        (torch.zeros(3, 1).long(), ValueError, r"edge_index of shape \(2, E\)"),
    ):
        data[WRITES].edge_index = edges
        with pytest.raises(error, match=text):
            PGSampler(data, [2])
