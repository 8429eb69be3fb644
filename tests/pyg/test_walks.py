"""Node2Vec and MetaPath2Vec: PyG's interface, walks that are walks, numbers that repeat."""

from __future__ import annotations

import copy
import itertools
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric import nn

import pygsampler as pgs
from pygsampler.pyg import MetaPath2Vec, Node2Vec
from tests.gpu import run_with_driver

NODES = 40


def edges(dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """A random graph, of which some vertices have no out-edges."""
    edge_index = random_data(NODES, 160).edge_index
    return edge_index[:, edge_index[0] < NODES - 6].to(dtype)


def model(**changes: Any) -> Node2Vec:
    options = {"embedding_dim": 8, "walk_length": 7, "context_size": 4, "num_nodes": NODES}
    return Node2Vec(**{"edge_index": edges(), **options, **changes})


def check_steps(pos: torch.Tensor, edge_index: torch.Tensor) -> None:
    """Each step is an edge, or stays where there is none."""
    known = set(map(tuple, edge_index.t().tolist()))
    leaves = set(edge_index[0].tolist())
    for run in pos.tolist():
        for a, b in itertools.pairwise(run):
            assert (a, b) in known if a in leaves else a == b


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.25, 4.0), (2.0, 0.5)])
def test_interface(dtype: torch.dtype, p: float, q: float) -> None:
    made = model(
        edge_index=edges(dtype), walks_per_node=3, num_negative_samples=2, p=p, q=q, sparse=True
    )
    assert isinstance(made, nn.Node2Vec)
    assert repr(made) == f"Node2Vec({NODES}, 8)"
    assert made().shape == (NODES, 8)
    assert made(torch.tensor([3, 1])).equal(made.embedding.weight[[3, 1]])
    for batch in ([4, 1, 39, 4], torch.tensor([4, 1, 39, 4]), torch.tensor([7], dtype=dtype)):
        pos, neg = made.sample(batch)
        count = 3 * len(batch) * (7 - 4 + 1)
        assert pos.shape == (count, 4)
        assert neg.shape == (2 * count, 4)
        assert pos.dtype == (batch.dtype if isinstance(batch, torch.Tensor) else torch.int64)
        check_steps(pos, edges())
        assert pos[: 3 * len(batch), 0].tolist() == 3 * list(map(int, batch))
        assert int(neg.min()) >= 0
        assert int(neg.max()) < NODES
        loss = made.loss(pos, neg)
        loss.backward()
        assert loss.item() > 0
    assert made.embedding.weight.grad.is_sparse


def test_runs_stand_as_pygs() -> None:
    """PyG's own method makes the same of the same walks."""
    made, again = model(walks_per_node=2, seed=4), model(walks_per_node=2, seed=4)
    batch = torch.tensor([0, 5, 38])
    seeds = batch.repeat(2)
    walks = made._walker.walk(seeds, torch.device("cpu"), 6, p=1.0, q=1.0, prob=None)
    theirs = SimpleNamespace(
        walks_per_node=2,
        walk_length=6,
        context_size=4,
        p=1.0,
        q=1.0,
        rowptr=None,
        col=None,
        random_walk_fn=lambda *_: walks.staying(),
    )
    assert again.pos_sample(batch).equal(nn.Node2Vec.pos_sample(theirs, batch))


def test_p_and_q() -> None:
    """On a ring, a p of almost infinity never turns back, and one of almost 0 always does."""
    ring = torch.arange(10)
    edge_index = torch.stack([torch.cat([ring, ring]), torch.cat([ring + 1, ring - 1]) % 10])
    made = Node2Vec(edge_index, 4, 9, 9, p=1e9)
    walks = made.pos_sample(ring.repeat(20))
    assert (walks[:, 2:] != walks[:, :-2]).all()
    made.p = 1e-9
    walks = made.pos_sample(ring.repeat(20))
    assert (walks[:, 2:] == walks[:, :-2]).all()


def test_weights_of_a_graph() -> None:
    edge_index = edges()
    weights = torch.ones(edge_index.shape[1])
    weights[::2] = 0
    graph = pgs.Graph.from_coo(*edge_index, num_nodes=NODES, edge_data={"w": weights})
    made = Node2Vec(graph, 4, 7, 4, prob="w", q=2.0)
    check_steps(made.pos_sample(torch.arange(NODES)), edge_index[:, 1::2])
    with pytest.raises(ValueError, match=r"num_nodes: expected 40, as the graph has, got 41"):
        Node2Vec(graph, 4, 7, 4, num_nodes=41)
    with pytest.raises(ValueError, match="prob: expected the name of an edge array"):
        Node2Vec(graph, 4, 7, 4, prob="v")


def passes(made: Any, **options: Any) -> list[torch.Tensor]:
    return [pos for pos, _ in made.loader(batch_size=16, **options)]


def equal(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return len(one) == len(other) and all(a.equal(b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", [Node2Vec, MetaPath2Vec])
def test_loader(kind: type) -> None:
    made = model(q=2.0) if kind is Node2Vec else typed()
    nodes = NODES if kind is Node2Vec else 5
    for options in ({}, {"num_workers": 2}, {"drop_last": nodes > 16}):
        torch.manual_seed(3)
        first = passes(made, shuffle=True, **options)
        assert sum(map(len, first)) == sum(map(len, passes(made, **options)))
        assert not equal(first, passes(made, shuffle=True, **options))
        torch.manual_seed(3)
        assert equal(first, passes(made, shuffle=True, **options))
    per = len(first[0]) // min(16, nodes)
    assert len(made.loader(batch_size=16).dataset) == nodes
    assert per > 0


def test_copies() -> None:
    def made() -> Node2Vec:
        return model(seed=9, p=0.5)

    batch, one = torch.arange(NODES), made()
    wanted = one.pos_sample(batch)
    assert not wanted.equal(one.pos_sample(batch))
    for other in (made(), copy.deepcopy(made()), pickle.loads(pickle.dumps(made()))):
        assert other.pos_sample(batch).equal(wanted)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"walk_length": 3}, ValueError, "walk_length: expected an integer >= 4, got 3"),
        ({"context_size": 0}, ValueError, "context_size: expected an integer >= 1, got 0"),
        ({"p": 0.0}, ValueError, "p: "),
        ({"q": -1.0}, ValueError, "q: "),
        ({"walks_per_node": 0}, ValueError, "walks_per_node: "),
        ({"num_negative_samples": -1}, ValueError, "num_negative_samples: "),
        ({"edge_index": edges().float()}, TypeError, "edge_index"),
        ({"num_nodes": 10}, (ValueError, IndexError), ""),
    ],
)
def test_arguments(change: dict[str, Any], kind: Any, text: str) -> None:
    with pytest.raises(kind) as error:
        model(**change)
    assert text in str(error.value)


def test_no_such_vertex() -> None:
    with pytest.raises(IndexError, match=r"\[0, 40\), got 40"):
        model().sample([3, 40])


def test_scripted() -> None:
    """As PyG's, but for sampling."""
    made = model()
    with pytest.warns(Warning, match="deprecated"):
        scripted = torch.jit.script(made)
    pos, neg = made.sample([1, 2])
    assert scripted(torch.tensor([1])).equal(made(torch.tensor([1])))
    assert scripted.loss(pos, neg).equal(made.loss(pos, neg))


def test_it_learns() -> None:
    """Two cliques with a bridge: vertices of one come near each other."""
    one = torch.combinations(torch.arange(8)).t()
    edge_index = torch.cat([one, one + 8, torch.tensor([[0], [8]])], dim=1)
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    torch.manual_seed(0)
    made = Node2Vec(edge_index, 8, 10, 5, walks_per_node=4, p=2.0, q=0.5, sparse=True)
    optimizer = torch.optim.SparseAdam(list(made.parameters()), lr=0.05)
    losses = []
    for _ in range(40):
        for pos, neg in made.loader(batch_size=16, shuffle=True):
            optimizer.zero_grad()
            loss = made.loss(pos, neg)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    z = torch.nn.functional.normalize(made().detach(), dim=1)
    near = z @ z.t()
    same = torch.arange(16)[:, None] // 8 == torch.arange(16) // 8
    assert near[same].mean() > near[~same].mean() + 0.3


# ---- MetaPath2Vec -------------------------------------------------------------------------------

WRITES, WRITTEN, CITES = ("a", "writes", "p"), ("p", "by", "a"), ("p", "cites", "p")
# Author 4 writes nothing, paper 3 is nobody's.
TYPED = {
    WRITES: torch.tensor([[0, 0, 1, 2, 3], [0, 1, 1, 2, 0]]),
    WRITTEN: torch.tensor([[0, 1, 1, 2, 0], [0, 0, 1, 2, 3]]),
    CITES: torch.tensor([[0, 1, 2], [1, 2, 3]]),
}


def typed(**changes: Any) -> MetaPath2Vec:
    options: dict[str, Any] = {
        "edge_index_dict": TYPED,
        "embedding_dim": 4,
        "metapath": [WRITES, CITES, WRITTEN],
        "walk_length": 6,
        "context_size": 7,
        "walks_per_node": 2,
        "num_nodes_dict": {"a": 5, "p": 4, "unused": 7},
    }
    return MetaPath2Vec(**{**options, **changes})


def test_metapath() -> None:
    made = typed(num_negative_samples=3)
    assert isinstance(made, nn.MetaPath2Vec)
    assert repr(made) == "MetaPath2Vec(9, 4)"
    assert (made.start, made.end, made.dummy_idx) == ({"a": 0, "p": 5}, {"a": 5, "p": 9}, 9)
    assert made("p").equal(made.embedding.weight[5:9])
    known = {
        kind: {(made.start[kind[0]] + a, made.start[kind[-1]] + b) for a, b in pairs.t().tolist()}
        for kind, pairs in TYPED.items()
    }
    batch = torch.arange(5).repeat(40)
    pos, neg = made._sample(batch)
    assert pos.shape == (2 * 200, 7)
    assert pos[:, 0].equal(batch.repeat(2))
    ended = 0
    for run in pos.tolist():
        for step, (a, b) in enumerate(itertools.pairwise(run)):
            of = known[made.metapath[step % 3]]
            if b == 9:
                assert not any(a == first for first, _ in of)
                ended += 1
            else:
                assert (a, b) in of
    assert ended > 100
    # Author 2 ends at paper 3, which nobody wrote.
    assert made._pos_sample(torch.tensor([2]))[0].tolist() == [2, 7, 8, 9, 9, 9, 9]
    assert neg.shape == (3 * 2 * 200, 7)
    assert neg[:, 0].equal(batch.repeat(6))
    for step, kind in enumerate("appappa"):
        low, high = neg[200:, step].min(), neg[200:, step].max()
        assert made.start[kind] <= int(low) <= int(high) < made.end[kind]
        assert len(neg[:, step].unique()) == made.num_nodes_dict[kind]
    assert made.loss(pos, neg).item() > 0


def test_a_shorter_context_and_a_shorter_path() -> None:
    made = typed(walk_length=2, context_size=2, metapath=[WRITES, CITES], walks_per_node=1)
    pos = made._pos_sample(torch.tensor([2, 4]))
    assert pos.tolist() == [[2, 7], [4, 9], [7, 8], [9, 9]]


def test_types_without_edges() -> None:
    none = torch.empty((2, 0), dtype=torch.int64)
    made = typed(edge_index_dict={**TYPED, WRITTEN: none})
    assert (made._pos_sample(torch.arange(5))[:, 3:] == 9).all()
    made = typed(edge_index_dict=dict.fromkeys(TYPED, none))
    assert (made._pos_sample(torch.arange(5))[:, 1:] == 9).all()
    assert len(passes(made)) == 1


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"metapath": [WRITES, WRITES]}, ValueError, "invalid metapath"),
        ({"metapath": [WRITES, CITES]}, AttributeError, "cycle"),
        ({"context_size": 8}, ValueError, "context_size: expected an integer from 1 to 7, got 8"),
        ({"num_nodes_dict": {"a": 5, "p": 3}}, IndexError, "('p', 'cites', 'p')][1]"),
        ({"num_nodes_dict": {"a": 3, "p": 4}}, IndexError, "('a', 'writes', 'p')][0]"),
    ],
)
def test_wrong_paths(change: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as error:
        typed(**change)
    assert text in str(error.value)


@pytest.mark.parametrize(("p", "q"), [(1.0, 1.0), (0.5, 2.0)])
def test_pygs_own_test_of_node2vec(p: float, q: float) -> None:
    """test/nn/models/test_node2vec.py."""
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    made = Node2Vec(edge_index, embedding_dim=16, walk_length=2, context_size=2, p=p, q=q)
    assert str(made) == "Node2Vec(3, 16)"
    assert made(torch.arange(3)).shape == (3, 16)
    assert made.loss(*made.sample(torch.arange(3))).item() >= 0


def test_pygs_own_tests_of_metapath2vec() -> None:
    """test/nn/models/test_metapath2vec.py."""
    there, back = ("author", "writes", "paper"), ("paper", "written_by", "author")
    pairs = torch.tensor([[0, 1, 1, 2], [0, 0, 1, 1]])
    edges_of = {there: pairs, back: pairs.flip(0)}
    made = MetaPath2Vec(edges_of, 16, [there, back], walk_length=2, context_size=2)
    assert str(made) == "MetaPath2Vec(5, 16)"
    assert made("author").shape == (3, 16) and made("paper").shape == (2, 16)
    assert made("author", torch.arange(2)).shape == (2, 16)
    assert made.loss(*made._sample(torch.arange(3))).item() >= 0
    there, back = ("a", "to", "b"), ("b", "to", "a")
    none = dict.fromkeys((there, back), torch.empty((2, 0), dtype=torch.int64))
    how = {"walks_per_node": 5, "num_negative_samples": 5, "num_nodes_dict": {"a": 3, "b": 4}}
    made = MetaPath2Vec(none, 16, [there, back], walk_length=10, context_size=7, **how)
    pos, neg = next(iter(made.loader(batch_size=16, shuffle=True)))
    assert pos.shape == (3 * 5 * 5, 7) and neg.shape == (5 * 3 * 5 * 5, 7)


# Torch does not take the emulator for a GPU. Its memory is the host's, so tensors on the host
# stand in for those that torch would allocate on the device.
CODE = """
import sys, warnings
sys.path += ["tests/support", "tests/pyg"]
warnings.simplefilter("ignore")
import torch
import torch_cpu
import pygsampler as pgs
from test_walks import edges, model, typed

batch = torch.tensor([3, 0, 39, 3])
for made, options, seeds in (
    (lambda: model(seed=3), dict(p=1.0, q=1.0, prob=None), batch),
    (lambda: model(seed=3, p=0.5, q=2.0), dict(p=0.5, q=2.0, prob=None), batch),
    (lambda: typed(seed=3), dict(metapath=[0, 1, 2], edge_types="type"), batch % 5),
):
    walks = [
        made()._walker.walk(seeds, torch.device(where), 6, **options) for where in ("cpu", "cuda")
    ]
    assert walks[0].nodes.equal(walks[1].nodes), options
one = model(seed=3)._walker
for _ in range(2):
    one.walk(batch, torch.device("cuda", 0), 3)
assert [g.device for g in one._copies.values()] == ["cuda:0"]
print("same")
"""


def test_walks_of_a_gpu(emulator: Path) -> None:
    assert run_with_driver(emulator, CODE) == "same\n"
