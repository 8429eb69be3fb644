"""PinSAGESampler and RandomWalkNeighborSampler: the graphs of DGL's, and their law."""

from __future__ import annotations

from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import PinSAGESampler, RandomWalkNeighborSampler
from tests.dgl.graphs import DTYPES, random_graph


def users_and_items(dtype: torch.dtype = torch.int64) -> Any:
    """Users a, b and items i, j, k with a-i, a-j, b-j, b-k."""
    users, items = [0, 0, 1, 1], [0, 1, 1, 2]
    edges = {("user", "buys", "item"): (users, items), ("item", "of", "user"): (items, users)}
    return dgl.heterograph(edges, idtype=dtype)


def larger(dtype: torch.dtype = torch.int64) -> Any:
    random = torch.Generator().manual_seed(0)
    users = torch.randint(0, 90, (500,), generator=random)
    items = torch.randint(0, 40, (500,), generator=random)
    return dgl.heterograph(
        {("user", "buys", "item"): (users, items), ("item", "of", "user"): (items, users)},
        num_nodes_dict={"user": 100, "item": 40},
        idtype=dtype,
    )


def rows(made: Any, column: str = "weights") -> dict[int, list[tuple[int, int]]]:
    """The neighbours and visits of each node, in the order of the edges."""
    found: dict[int, list[tuple[int, int]]] = {}
    u, v = made.edges(order="eid")
    for a, b, n in zip(u.tolist(), v.tolist(), made.edata[column].tolist(), strict=True):
        found.setdefault(b, []).append((a, n))
    return found


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_graph(dtype: torch.dtype) -> None:
    g = larger(dtype)
    nodes = torch.arange(100, dtype=dtype)
    sampler = PinSAGESampler(g, "user", "item", 3, 0.4, 20, 5, "visits", seed=1)
    theirs = dgl.sampling.PinSAGESampler(g, "user", "item", 3, 0.4, 20, 5, "visits")(nodes)
    made = sampler(nodes)
    assert made.ntypes == theirs.ntypes and made.canonical_etypes == theirs.canonical_etypes
    assert made.num_nodes() == 100 and made.idtype == dtype
    assert made.edata["visits"].dtype == theirs.edata["visits"].dtype == dtype
    found = rows(made, "visits")
    around = {u: set() for u in range(100)}
    users, items = (ids.tolist() for ids in g.edges(etype="buys"))
    buyers: dict[int, set[int]] = {}
    for user, item in zip(users, items, strict=True):
        buyers.setdefault(item, set()).add(user)
    for user, item in zip(users, items, strict=True):
        around[user] |= buyers[item]
    alone = {user for user in range(100) if not around[user]}
    assert alone and set(found) == set(range(100)) - alone
    for user, neighbours in found.items():
        ids, visits = zip(*neighbours, strict=True)
        assert len(set(ids)) == len(ids) <= 5
        assert list(visits) == sorted(visits, reverse=True)
        # A first traversal is always made.
        within = set(ids) <= around[user]
        assert 1 <= sum(visits) <= 60 and (within or any(around[i] & around[user] for i in ids))
    # With room for all of them every walk has a visit at least, and the most visited are the same.
    whole = rows(PinSAGESampler(g, "user", "item", 3, 0.4, 20, 100, seed=1)(nodes))
    for user, neighbours in found.items():
        assert 20 <= sum(n for _, n in whole[user]) <= 60
        assert neighbours == whole[user][:5]


def test_law() -> None:
    g = users_and_items()
    zeros = torch.zeros(4000, dtype=torch.int64)
    made = PinSAGESampler(g, "user", "item", 2, 0.5, 10, 2, seed=2)(zeros)
    u, _ = made.edges()
    visits = made.edata["weights"].double()
    for user, law in ((0, 17 / 16), (1, 7 / 16)):
        mean = visits[u == user].sum() / (10 * len(zeros))
        # A walk visits a vertex twice at most, so its variance is at most 1.
        assert abs(mean - law) < 5 / (10 * len(zeros)) ** 0.5


def test_the_same_as_dgl_where_there_is_one_way() -> None:
    g = dgl.heterograph(
        {
            ("A", "AB", "B"): ([0, 2], [1, 3]),
            ("B", "BC", "C"): ([1, 3], [2, 1]),
            ("C", "CA", "A"): ([2, 1], [0, 2]),
        }
    )
    for chance, walks in ((0.0, 4), (1.0, 3)):
        arguments = (g, 4, chance, walks, 2, ["AB", "BC", "CA"])
        ours = RandomWalkNeighborSampler(*arguments)
        theirs = dgl.sampling.RandomWalkNeighborSampler(*arguments)
        assert ours.ntype == theirs.ntype and ours.metapath_hops == theirs.metapath_hops
        for nodes in ([0, 2], [1], [2, 0, 2]):
            mine, other = ours(torch.tensor(nodes)), theirs(torch.tensor(nodes))
            assert all(m.equal(o) for m, o in zip(mine.edges(), other.edges(), strict=True))
            assert mine.edata["weights"].equal(other.edata["weights"])
            assert mine.canonical_etypes == other.canonical_etypes == [("A", "_E", "A")]


def test_nodes_of_one_type() -> None:
    ring = torch.arange(9)
    g = dgl.graph((ring, (ring + 1) % 9))
    assert rows(RandomWalkNeighborSampler(g, 3, 0.0, 2, 5)([4])) == {4: [(5, 2), (6, 2), (7, 2)]}
    two = RandomWalkNeighborSampler(g, 2, 0.0, 3, 5, g.etypes * 2)
    assert rows(two([4, 8])) == {4: [(6, 3), (8, 3)], 8: [(1, 3), (3, 3)]}
    # A walk that ends visits nothing more.
    path = dgl.graph(([0, 1], [1, 2]))
    assert rows(RandomWalkNeighborSampler(path, 3, 0.0, 2, 5)([0, 1, 2])) == {
        0: [(1, 2), (2, 2)],
        1: [(2, 2)],
    }


def test_random_numbers() -> None:
    g = larger()
    nodes = torch.arange(100)
    sampler = PinSAGESampler(g, "user", "item", 3, 0.4, 20, 5)
    torch.manual_seed(1)
    first, second = rows(sampler(nodes)), rows(sampler(nodes))
    assert first != second
    torch.manual_seed(1)
    assert rows(sampler(nodes)) == first
    sampler.seed = 4
    assert rows(sampler(nodes)) == rows(sampler(nodes))
    # A value that is assigned later counts.
    sampler.num_neighbors = 1
    assert all(len(each) == 1 for each in rows(sampler(nodes)).values())


def test_twice_and_none() -> None:
    g = larger()
    sampler = PinSAGESampler(g, "item", "user", 2, 0.5, 10, 3)
    made = sampler([3, 5, 3])
    assert made.num_nodes() == 40 and made.num_edges() <= 9
    _, v = made.edges(order="eid")
    assert v.unique_consecutive().tolist() == [3, 5, 3]
    for nothing in ([], torch.empty(0, dtype=torch.int64)):
        assert sampler(nothing).num_edges() == 0


def test_mistakes() -> None:
    g, plain = users_and_items(), random_graph()
    with pytest.raises(IndexError, match=r"seed_nodes\[1\]: expected an id of 'user' in \[0, 2\)"):
        PinSAGESampler(g, "user", "item", 2, 0.5, 10, 3)([0, 2])
    with pytest.raises(dgl.DGLError, match=r"seed_nodes\[0\]: expected an id"):
        RandomWalkNeighborSampler(plain, 2, 0.5, 10, 3)([500])
    with pytest.raises(ValueError, match="from 'user' back to it, got one to 'item'"):
        RandomWalkNeighborSampler(g, 2, 0.5, 10, 3, ["buys"])
    with pytest.raises(ValueError, match="metapath: expected one for a graph of 2 node types"):
        RandomWalkNeighborSampler(g, 2, 0.5, 10, 3)
    with pytest.raises(ValueError, match="edges from 'user' to 'shop'"):
        PinSAGESampler(g, "user", "shop", 2, 0.5, 10, 3)
    with pytest.raises(ValueError, match="num_traversals: expected an integer >= 1"):
        PinSAGESampler(g, "user", "item", 0, 0.5, 10, 3)
    with pytest.raises(ValueError, match=r"expected a number in \[0, 1\], got 1.5"):
        PinSAGESampler(g, "user", "item", 2, 1.5, 10, 3)
    with pytest.raises(ValueError, match="2048"):
        PinSAGESampler(g, "user", "item", 2, 0.5, 1025, 3)
    for kind in (PinSAGESampler, RandomWalkNeighborSampler):
        with pytest.raises(TypeError, match=r"G: expected a dgl.DGLGraph, got int 3"):
            kind(3, "user", "item", 2, 0.5, 10, 3)
