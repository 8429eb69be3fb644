"""Programs over relations in PyG's loaders: subgraphs of a HeteroData."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from partners import partner

# First: PyG's import warns of torch.
partner("torch_geometric")
from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.loader import LinkLoader, NodeLoader  # noqa: E402

import pygsampler as pgs  # noqa: E402
from pygsampler.pyg import NeighborLoader, Sampler  # noqa: E402

WRITES, CITES, BY = ("a", "writes", "p"), ("p", "cites", "p"), ("p", "by", "a")
NODES = {"a": 30, "p": 50}


def typed_data() -> HeteroData:
    torch.manual_seed(3)
    data = HeteroData()
    for kind, count in NODES.items():
        data[kind].x = torch.randn(count, 3)
        data[kind].num_nodes = count
    for kind, count in ((WRITES, 150), (CITES, 220), (BY, 90)):
        src, dst = (torch.randint(0, NODES[kind[end]], (count,)) for end in (0, 2))
        data[kind].edge_index = torch.stack([src, dst])
        data[kind].t = torch.rand(count) + 0.5
    return data


@pgs.program
def authors(A: Any, seeds: Any, K: int) -> Any:
    papers = seeds["p"]
    C = A["p", "cites", "p"][:, papers]
    B = C.individual_sample(K, C)
    return [A["a", "writes", "p"][:, papers | B.row()].individual_sample(2), B]


def check(data: HeteroData, batch: Any, seeds: torch.Tensor, K: int) -> None:
    assert batch["p"].batch_size == len(seeds)
    assert batch["p"].n_id[: len(seeds)].tolist() == seeds.tolist()
    for kind in NODES:
        assert torch.equal(batch[kind].x, data[kind].x[batch[kind].n_id])
        assert sum(batch[kind].num_sampled_nodes) == len(batch[kind].n_id)
    for kind in (WRITES, CITES, BY):
        edges = data[kind].edge_index[:, batch[kind].e_id]
        found = batch[kind].edge_index
        assert torch.equal(batch[kind[0]].n_id[found[0]], edges[0])
        assert torch.equal(batch[kind[2]].n_id[found[1]], edges[1])
        assert sum(batch[kind].num_sampled_edges) == len(batch[kind].e_id)
    assert batch[CITES].num_sampled_edges[1] == batch[WRITES].num_sampled_edges[0] == 0
    assert not len(batch[BY].e_id)
    degrees = torch.bincount(data[CITES].edge_index[1], minlength=NODES["p"])
    into = torch.bincount(batch[CITES].edge_index[1], minlength=len(seeds))
    assert torch.equal(into[: len(seeds)], degrees[seeds].clamp(max=K))


def test_batches_of_pygs_loader() -> None:
    data = typed_data()
    sampler = Sampler(data, authors(K=3, weight="t", seed=2))
    assert sampler.num_edges == {WRITES: 150, CITES: 220, BY: 90}
    sampler.set_epoch(1)
    index = torch.randperm(NODES["p"])[:20]
    loader = NodeLoader(data, sampler, input_nodes=("p", index), batch_size=6)
    first = []
    for number, batch in enumerate(loader):
        check(data, batch, index[6 * number : 6 * number + 6], 3)
        first.append(batch["a"].n_id.tolist())
    assert len(first) == 4 and first == [batch["a"].n_id.tolist() for batch in loader]
    for other in (pickle.loads(pickle.dumps(sampler)), copy.copy(sampler)):
        again = NodeLoader(data, other, input_nodes=("p", index), batch_size=6)
        assert next(iter(again))["a"].n_id.tolist() == first[0]


def test_repeated_seeds_and_links() -> None:
    data = typed_data()
    sampler = Sampler(data, authors(K=-1, seed=2))
    seeds = torch.tensor([4, 9, 4, 30])
    loader = NodeLoader(data, sampler, input_nodes=("p", seeds), batch_size=4)
    check(data, next(iter(loader)), seeds, 1000)
    links = LinkLoader(
        data, sampler, edge_label_index=(CITES, data[CITES].edge_index[:, :6]), batch_size=6
    )
    batch = next(iter(links))
    ends = batch["p"].n_id[batch[CITES].edge_label_index]
    assert torch.equal(ends, data[CITES].edge_index[:, :6])


def test_our_loader_has_values_of_edges() -> None:
    data = typed_data()
    sampler = Sampler(data, authors(K=3, weight="t", seed=2))
    loader = NeighborLoader(
        data,
        num_neighbors=[1],
        input_nodes=("p", torch.arange(8)),
        batch_size=8,
        neighbor_sampler=sampler,
    )
    batch = next(iter(loader))
    check(data, batch, torch.arange(8), 3)
    for kind in (CITES, WRITES):
        assert torch.allclose(batch[kind].edge_weights, data[kind].t[batch[kind].e_id])


def test_attributes_of_types_are_read() -> None:
    @pgs.program
    def near(A: Any, seeds: Any) -> Any:
        C = A["p", "cites", "p"][:, seeds]
        X = A.features("x")
        return C.where(C.dot(X, X) > 0)

    data = typed_data()
    loader = NodeLoader(
        data, Sampler(data, near(seed=1)), input_nodes=("p", torch.arange(9)), batch_size=9
    )
    batch, x = next(iter(loader)), data["p"].x
    src, dst = data[CITES].edge_index
    wanted = ((x[src] * x[dst]).sum(1) > 0) & (dst < 9)
    assert sorted(batch[CITES].e_id.tolist()) == wanted.nonzero().flatten().tolist()


def test_features_of_homogeneous_data_are_read() -> None:
    """PASS reads rows of the nodes of data, of one number too."""
    for width in (3, 1):
        data = Data(edge_index=torch.randint(0, 40, (2, 300)), x=torch.randn(40, width))
        weights = {name: torch.ones(width, 2) for name in ("W1", "W2")}
        sampler = pgs.samplers.learned.pass_sampler(
            fanouts=[2], **weights, W3=torch.ones(3), seed=1
        )
        loader = NodeLoader(data, Sampler(data, sampler), input_nodes=torch.arange(9), batch_size=9)
        assert len(next(iter(loader)).e_id)


def test_what_is_not_offered_is_told() -> None:
    @pgs.program
    def among(A: Any, seeds: Any) -> Any:
        V = seeds.unique()
        return V, A["p", "cites", "p"][V, V]

    data, program = typed_data(), authors(K=1, seed=1)
    for sampler, options, message in (
        (among(seed=1), {}, "returns blocks, got one of a subgraph"),
        (program, {"subgraph_type": "induced"}, "subgraph_type: expected 'directional' for a prog"),
        (program, {"sample_direction": "backward"}, "expected 'forward' for a program over rel"),
    ):
        with pytest.raises(NotImplementedError, match=message):
            Sampler(data, sampler, **options)
    with pytest.raises(TypeError, match="data: expected a HeteroData, or stores with edge types"):
        Sampler(Data(edge_index=torch.zeros(2, 1, dtype=torch.int64), num_nodes=1), program)
    for loader, wrong in ((NeighborLoader, Data(edge_index=torch.zeros(2, 1), num_nodes=1)),):
        with pytest.raises(
            TypeError, match=r"expected a Sampler of Data .*, got a Sampler of heter"
        ):
            loader(
                wrong, [1], input_nodes=None, neighbor_sampler=Sampler(data, program), batch_size=1
            )
