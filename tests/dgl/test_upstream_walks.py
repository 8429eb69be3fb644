"""DGL's own tests of walks (tests/python/common/sampling/test_sampling.py), on these."""

from __future__ import annotations

import dgl
import pytest
import torch

from pygsampler.dgl import (
    PinSAGESampler,
    RandomWalkNeighborSampler,
    node2vec_random_walk,
    pack_traces,
    random_walk,
)
from tests.dgl.test_walks import check_walks

FOLLOW = ("user", "follow", "user")
RING = ([0, 1, 2], [1, 2, 0])
FOUR = ([0, 1, 1, 2, 3], [1, 2, 3, 0, 0])
VIEWS = ([0, 0, 1, 2, 3, 3], [0, 1, 1, 2, 2, 1])
VIEWED = ([0, 1, 1, 2, 2, 1], [0, 0, 1, 2, 3, 3])
PATH = ["follow", "view", "viewed-by"] * 2
G1 = {FOLLOW: RING}
G2 = {FOLLOW: FOUR}
G3 = {
    FOLLOW: RING,
    ("user", "view", "item"): ([0, 1, 2], [0, 1, 2]),
    ("item", "viewed-by", "user"): ([0, 1, 2], [0, 1, 2]),
}
G4 = {FOLLOW: FOUR, ("user", "view", "item"): VIEWS, ("item", "viewed-by", "user"): VIEWED}
THREE = torch.tensor([0, 1, 2, 0, 1, 2])
NODES = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])


def test_non_uniform_random_walk() -> None:
    g2, g4 = dgl.heterograph(G2), dgl.heterograph(G4)
    g2.edata["p"] = torch.tensor([3.0, 0, 3, 3, 3])
    g2.edata["p2"] = g2.edata["p"].view(5, 1)
    g4.edges["follow"].data["p"] = torch.tensor([3.0, 0, 3, 3, 3])
    g4.edges["viewed-by"].data["p"] = torch.ones(6)
    found = random_walk(g2, NODES, length=4, prob="p", return_eids=True)
    check_walks(g2, ["follow"] * 4, NODES, found, "p")
    with pytest.raises(dgl.DGLError):
        random_walk(g2, NODES, length=4, prob="p2")
    for restart in (None, 0.0, torch.zeros(6)):
        found = random_walk(
            g4, NODES, metapath=PATH, prob="p", restart_prob=restart, return_eids=True
        )
        check_walks(g4, PATH, NODES, found, "p")
    restart = torch.tensor([0.0, 0, 0, 0, 0, 0, 1])
    path = [*PATH, "follow"]
    traces, eids, types = random_walk(
        g4, NODES, metapath=path, prob="p", restart_prob=restart, return_eids=True
    )
    check_walks(
        g4, PATH, NODES, (traces[:, :7].contiguous(), eids[:, :6].contiguous(), types[:7]), "p"
    )
    assert (traces[:, 7] == -1).all() and (eids[:, 6] == -1).all()


def test_uniform_random_walk() -> None:
    g1, g2, g3, g4 = map(dgl.heterograph, (G1, G2, G3, G4))
    for restart in (None, 0.0, torch.zeros(4)):
        found = random_walk(g1, THREE, length=4, restart_prob=restart, return_eids=True)
        check_walks(g1, ["follow"] * 4, THREE, found)
    with pytest.raises(IndexError):
        random_walk(g1, torch.tensor([0, 1, 2, 10]), length=4, return_eids=True)
    restart = torch.tensor([0.0, 0, 0, 0, 1])
    traces, eids, types = random_walk(g1, THREE, length=5, restart_prob=restart, return_eids=True)
    check_walks(
        g1, ["follow"] * 4, THREE, (traces[:, :5].contiguous(), eids[:, :4].contiguous(), types[:5])
    )
    assert (traces[:, 5] == -1).all()
    found = random_walk(g2, NODES, length=4, return_eids=True)
    check_walks(g2, ["follow"] * 4, NODES, found)
    for g, nodes in ((g3, THREE), (g4, NODES), (g4, THREE)):
        found = random_walk(g, nodes, metapath=PATH, return_eids=True)
        check_walks(g, PATH, nodes, found)


def test_node2vec() -> None:
    g1, g2 = dgl.heterograph(G1), dgl.heterograph(G2)
    g2.edata["p"] = torch.tensor([3.0, 0, 3, 3, 3])
    types = torch.zeros(5, dtype=torch.int64)
    found = node2vec_random_walk(g1, THREE.tolist(), 1, 1, 4, return_eids=True)
    check_walks(g1, ["follow"] * 4, THREE, (*found, types))
    found = node2vec_random_walk(g2, NODES.tolist(), 1, 1, 4, prob="p", return_eids=True)
    check_walks(g2, ["follow"] * 4, NODES, (*found, types), "p")


def test_pack_traces() -> None:
    traces = torch.tensor([[0, 1, -1, -1, -1, -1, -1], [0, 1, 1, 3, 0, 0, 0]])
    found = pack_traces(traces, torch.tensor([0, 0, 1, 0, 0, 1, 0]))
    assert [part.tolist() for part in found] == [
        [0, 1, 0, 1, 1, 3, 0, 0, 0],
        [0, 0, 0, 0, 1, 0, 0, 1, 0],
        [2, 7],
        [0, 2],
    ]


BUYS = ([0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 2, 3, 2, 3])


def test_pinsage_sampling() -> None:
    bought_by, bought = ("item", "bought-by", "user"), ("user", "bought", "item")
    g = dgl.heterograph({bought_by: BUYS, bought: BUYS[::-1]})
    plain = dgl.graph(BUYS)
    cycle = dgl.heterograph(
        {
            ("A", "AB", "B"): ([0, 2], [1, 3]),
            ("B", "BC", "C"): ([1, 3], [2, 1]),
            ("C", "CA", "A"): ([2, 1], [0, 2]),
        }
    )
    for sampler, kind in (
        (PinSAGESampler(g, "item", "user", 4, 0.5, 3, 2), "item"),
        (RandomWalkNeighborSampler(g, 4, 0.5, 3, 2, ["bought-by", "bought"]), "item"),
        (RandomWalkNeighborSampler(g, 4, 0.5, 3, 2, [bought_by, bought]), "item"),
        (RandomWalkNeighborSampler(plain, 4, 0.5, 3, 2), plain.ntypes[0]),
        (RandomWalkNeighborSampler(cycle, 4, 0.5, 3, 2, ["AB", "BC", "CA"]), "A"),
    ):
        found = sampler(torch.tensor([0, 2]))
        assert found.ntypes == [kind]
        pairs = set(zip(*(ids.tolist() for ids in found.edges(order="eid")), strict=True))
        assert pairs & {(1, 0), (0, 0)} and pairs & {(2, 2), (3, 2)}
