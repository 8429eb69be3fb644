"""pygsampler.torch.LinkLoader: what batches of links are, whatever depth, threads and ranks."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import pytest
import torch
from torch.utils.data._utils import pin_memory as collate

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import Temporal
from pygsampler.torch import DataLoader, LinkBatch, LinkLoader, NegativeSampling
from tests.support.assertions import content, contents

NODES, EDGES = 400, 3000


def coo(dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Parallel edges and loops are among them."""
    random = torch.Generator().manual_seed(3)
    return torch.randint(0, NODES - 5, (2, EDGES), generator=random).to(dtype)


def make(dtype: torch.dtype = torch.int64) -> pgs.Graph:
    src, dst = coo(dtype)
    weights = torch.arange(EDGES) % 3
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data={"w": weights.float()})


IDS = torch.arange(5, EDGES, 7)


def loader(graph: pgs.Graph, edges: Any = IDS, fanouts: Any = (4, 3), **options: Any) -> LinkLoader:
    return LinkLoader(graph, edges, fanouts, **{"batch_size": 100, "seed": 1, **options})


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_edges_of_ids(dtype: torch.dtype) -> None:
    graph, edges = make(dtype), coo(dtype)
    made = loader(graph)
    batches = list(made)
    assert len(batches) == len(made) == 5
    assert torch.cat([b.input_id for b in batches]).tolist() == list(range(len(IDS)))
    for batch in batches:
        nodes = batch.minibatch.output_nodes
        assert nodes.dtype == dtype
        assert batch.edge_label_index is not None
        assert nodes[batch.edge_label_index].equal(edges[:, IDS[batch.input_id]])
        assert nodes.tolist() == sorted(set(nodes.tolist()))
        assert batch.edge_label is not None
        assert batch.edge_label.tolist() == [1.0] * len(batch.input_id)
        assert batch.src_index is None
        assert batch.dst_pos_index is None
        assert batch.dst_neg_index is None


def test_ends_of_a_graph_with_rows_and_no_ids() -> None:
    indptr, indices = torch.tensor([0, 2, 2, 3]), torch.tensor([1, 2, 0])
    graph = pgs.Graph.from_csc(indptr, indices, num_nodes=5)
    (batch,) = loader(graph, [2, 0, 1, 0])
    assert batch.edge_label_index is not None
    nodes = batch.minibatch.output_nodes
    assert nodes[batch.edge_label_index].tolist() == [[0, 1, 2, 1], [2, 0, 0, 0]]


@pytest.mark.parametrize("kind", ["uniform", "degree", "in_batch", "structural"])
def test_negatives(kind: str) -> None:
    """As pairs and as triplets they are those that ``NegativeSampling.draw`` gives."""
    graph, edges = make(), coo()
    pairs = loader(graph, negative_sampling=NegativeSampling(kind, 3), shuffle=True)
    triplets = loader(
        graph, negative_sampling=NegativeSampling(kind, 3, mode="triplet"), shuffle=True
    )
    for number, (one, other) in enumerate(zip(pairs, triplets, strict=True)):
        src, dst = edges[:, IDS[one.input_id]]
        wanted = NegativeSampling(kind, 3).draw(graph, src, dst, seed=1, epoch=0, batch=number)
        count, nodes = len(src), one.minibatch.output_nodes
        assert one.edge_label_index is not None
        assert one.edge_label is not None
        links = nodes[one.edge_label_index]
        assert links[:, :count].equal(torch.stack([src, dst]))
        assert links[0, count:].equal(src.repeat_interleave(3))
        assert links[1, count:].equal(wanted.flatten())
        assert one.edge_label.tolist() == [1.0] * count + [0.0] * 3 * count
        assert other.edge_label_index is None
        assert other.src_index is not None
        assert other.dst_pos_index is not None
        assert other.dst_neg_index is not None
        nodes = other.minibatch.output_nodes
        assert nodes[other.src_index].equal(src)
        assert nodes[other.dst_pos_index].equal(dst)
        assert nodes[other.dst_neg_index].equal(wanted)


def test_samples_are_those_of_the_sampler() -> None:
    """The seeds as they are, the edges of the batch left out."""
    graph = make()
    sampler = pgs.PGSampler([4, 3], seed=9)
    for number, batch in enumerate(
        loader(graph, fanouts=sampler, negative_sampling=NegativeSampling())
    ):
        ids = IDS[batch.input_id]
        nodes = batch.minibatch.output_nodes
        one = sampler.sample(graph, nodes, epoch=0, batch=number, exclude=ids).torch()
        assert content(batch._replace(minibatch=one)) == content(batch)


def test_excluded_edges() -> None:
    graph = make()
    reverse = (torch.arange(EDGES) + 1) % EDGES
    kinds: list[dict[str, Any]] = [
        {"exclude": None},
        {},
        {"exclude": "reverse_id", "reverse_eids": reverse},
    ]
    found = []
    for options in kinds:
        own = turned = 0
        for batch in loader(graph, fanouts=[-1], **options):
            ids = IDS[batch.input_id]
            sampled = batch.minibatch.blocks[0].edge_ids
            own += int(torch.isin(ids, sampled).sum())
            turned += int(torch.isin(reverse[ids], sampled).sum())
        found.append((own, turned))
    (own, turned), some, (none, few) = found
    assert own == len(IDS)
    assert some[0] == none == 0
    assert turned > some[1] / 2 > few == 0


def test_labels() -> None:
    graph = make()
    labels = torch.arange(len(IDS)).view(-1, 1) * 2
    for options in ({}, {"negative_sampling": NegativeSampling(mode="triplet")}):
        for batch in loader(graph, labels=labels, shuffle=True, **options):
            assert batch.edge_label is not None
            assert batch.edge_label.equal(labels[batch.input_id])
    (batch, *_) = loader(graph, negative_sampling=NegativeSampling(mode="triplet"))
    assert batch.edge_label is None


def test_pairs_that_are_no_edges() -> None:
    pairs = torch.tensor([[0, 399, 7], [399, 399, 1]], dtype=torch.int32)
    (batch,) = loader(make(), pairs, exclude=None)
    assert batch.edge_label_index is not None
    assert batch.minibatch.output_nodes[batch.edge_label_index].tolist() == pairs.tolist()


def test_no_edges() -> None:
    assert list(loader(make(), [])) == []


def test_options_that_change_nothing() -> None:
    graph = make()
    options = {"negative_sampling": NegativeSampling("structural", 2), "shuffle": True}
    wanted = contents(loader(graph, **options))
    for depth in (0, 1, 2, 9):
        assert contents(loader(graph, prefetch=depth, **options)) == wanted
    made = pickle.loads(pickle.dumps(loader(graph, **options)))
    assert contents(made) == wanted


def test_batches_move_and_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = next(iter(loader(make(), negative_sampling=NegativeSampling(amount=2))))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor, *_: tensor.clone())
    for again in (
        pickle.loads(pickle.dumps(batch)),
        copy.deepcopy(batch),
        batch.to("cpu"),
        batch.pin_memory(),
        collate.pin_memory(batch),
    ):
        assert isinstance(again, LinkBatch)
        assert content(again) == content(batch)
    assert batch.to("cpu").input_id is batch.input_id
    moved = batch.to("meta")
    assert moved.input_id.is_meta
    assert moved.minibatch.input_nodes.is_meta
    assert moved.edge_label_index.shape == (2, 300)
    assert batch.counts is None
    assert batch.trimmed() is batch
    assert batch.edge_mask.tolist() == [True] * 100
    assert batch.link_mask.tolist() == [True] * 300


def test_epochs_and_seeds() -> None:
    made = loader(make(), negative_sampling=NegativeSampling(), shuffle=True)
    first, second = contents(made), list(made)
    assert first != contents(second)
    assert sorted(itertools.chain(*(b.input_id.tolist() for b in second))) == [*range(len(IDS))]
    made.set_epoch(0)
    assert contents(made) == first
    made.set_seed(2)
    assert made.epoch == 0
    assert contents(made) != first
    made.set_seed(1)
    assert contents(made) == first
    torch.manual_seed(4)
    follows = loader(make(), negative_sampling=NegativeSampling(), shuffle=True, seed=None)
    third = contents(follows)
    torch.manual_seed(4)
    assert (
        contents(loader(make(), negative_sampling=NegativeSampling(), shuffle=True, seed=4))
        == third
    )
    torch.manual_seed(5)
    assert contents(follows) != third


def test_order_of_a_data_loader() -> None:
    """Edges come as seeds of that number would."""
    seeds = DataLoader(make(), IDS % NODES, [1], batch_size=100, seed=1, shuffle=True)
    for nodes, links in zip(seeds, loader(make(), shuffle=True), strict=True):
        assert nodes.output_nodes.equal((IDS % NODES)[links.input_id])


def test_ranks() -> None:
    graph = make()
    ranks = [
        list(
            loader(graph, negative_sampling=NegativeSampling(), shuffle=True, rank=r, world_size=3)
        )
        for r in range(3)
    ]
    assert {len(batches) for batches in ranks} == {2}
    places = torch.cat([b.input_id for batches in ranks for b in batches])
    assert sorted(places.tolist()) == list(range(len(IDS)))
    with pytest.raises(ValueError, match="seed: expected an integer, the same on all 3 ranks"):
        loader(graph, shuffle=True, seed=None, world_size=3)


def test_disjoint() -> None:
    """A tree for each vertex of each link."""
    edges = coo()
    sampler = pgs.PGSampler([3], disjoint=True, frontier="new", seed=1)
    for batch in loader(make(), fanouts=sampler, negative_sampling=NegativeSampling(amount=2)):
        count = len(batch.input_id)
        assert len(batch.minibatch.output_nodes) == 4 * count
        assert batch.edge_label_index is not None
        assert batch.edge_label_index[:, :count].tolist() == [
            list(range(count)),
            list(range(count, 2 * count)),
        ]
        links = batch.minibatch.output_nodes[batch.edge_label_index]
        assert links[:, :count].equal(edges[:, IDS[batch.input_id]])


def test_weights_and_features() -> None:
    graph = make()
    x, e = torch.randn(NODES, 3), torch.randn(EDGES, 2)
    sampler = pgs.PGSampler([4, 3], prob="w", edge_weights="ht", seed=1)
    made = loader(graph, fanouts=sampler, features={"x": x}, edge_features={"e": e})
    for batch in made:
        minibatch: Any = batch.minibatch
        assert minibatch.x.equal(x[minibatch.input_nodes])
        for block in minibatch.blocks:
            assert block.e.equal(e[block.edge_ids])
            assert (block.edge_ids % 3 != 0).all()
            assert block.edge_weights is not None


def test_programs() -> None:
    sampler = samplers.ladies(nodes=[20, 20], seed=1)
    edges = coo()
    for batch in loader(
        make(), fanouts=sampler, exclude=None, negative_sampling=NegativeSampling()
    ):
        assert batch.edge_label_index is not None
        links = batch.minibatch.output_nodes[batch.edge_label_index][:, : len(batch.input_id)]
        assert links.equal(edges[:, IDS[batch.input_id]])
    seen = 0
    for batch in loader(make(), fanouts=sampler):
        own = set(IDS[batch.input_id].tolist())
        taken = [block.edge_ids.tolist() for block in batch.minibatch.blocks]
        assert own.isdisjoint(itertools.chain(*taken))
        seen += sum(map(len, taken))
    assert seen > 500


def test_times_and_edges_to_leave_out() -> None:
    """With links that are there at their own time, too, none samples one of its batch."""
    src, dst = coo()
    times = torch.arange(EDGES) % 100
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data={"t": times})
    sampler = pgs.PGSampler([-1], temporal="t", seed=3)
    total = 0
    for exclude in ("self", None):
        for batch in loader(graph, fanouts=sampler, seed_time=times[IDS], exclude=exclude):
            own = torch.isin(batch.minibatch.blocks[0].edge_ids, IDS[batch.input_id])
            assert bool(own.any()) == (exclude is None)
            total += batch.minibatch.num_edges
    assert total > 1000


def test_times() -> None:
    """Nothing in a tree, and no negative, is later than the link that it is for."""
    src, dst = coo()
    times = {"t": torch.arange(EDGES) % 100}
    born = {"born": torch.arange(NODES) % 60}
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data=times, node_data=born)
    sampler = pgs.PGSampler([4, 3], temporal=Temporal("t", inclusive=False), seed=3)
    when = times["t"][IDS]
    law = NegativeSampling("uniform", 2, time_attr="born", src_weight=torch.ones(NODES))
    made = loader(
        graph, fanouts=sampler, negative_sampling=law, seed_time=when, exclude=None, shuffle=True
    )
    for batch in made:
        bound = when[batch.input_id]
        assert batch.edge_label_index is not None
        links = batch.minibatch.output_nodes[batch.edge_label_index]
        count = len(bound)
        assert links[:, :count].equal(torch.stack([src, dst])[:, IDS[batch.input_id]])
        later = bound.repeat_interleave(2)
        assert (links[:, count:] % 60 <= later).all()
        assert links[0, count:].tolist() != src[IDS[batch.input_id]].repeat_interleave(2).tolist()
        of = torch.cat([bound, bound, later, later])
        assert len(batch.minibatch.output_nodes) == len(of)
        subgraph_ids = batch.minibatch.subgraph_ids
        assert subgraph_ids is not None
        for block in batch.minibatch.blocks:
            rows = block.dst_offset + torch.repeat_interleave(
                torch.arange(block.num_dst_nodes), block.indptr.diff()
            )
            assert (times["t"][block.edge_ids] < of[subgraph_ids[rows]]).all()
            assert len(rows)
    for options, text in (
        ({"fanouts": sampler, "exclude": None}, "seed_time: expected a time for each edge with a"),
        ({"seed_time": when}, "seed_time: expected None for a sampler and negatives without time"),
        (
            {"negative_sampling": law},
            "seed_time: expected a time for each edge with negatives of time_attr=",
        ),
        (
            {"negative_sampling": law, "seed_time": when[1:]},
            "seed_time: expected a time for each of 428",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            loader(graph, **options)


def test_errors_of_negatives_come_in_their_turn() -> None:
    """The edges of the second batch are of a vertex with edges to all others."""
    src = torch.tensor([1] * 2 + [3] * 9)
    dst = torch.tensor([2, 3] + [v for v in range(10) if v != 3])
    graph = pgs.Graph.from_coo(src, dst, num_nodes=10)
    negatives = NegativeSampling("structural")
    made = iter(loader(graph, range(11), batch_size=2, negative_sampling=negatives, exclude=None))
    next(made)
    with pytest.raises(ValueError, match="got 3, from which edges lead to all 9 others"):
        next(made)


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"graph": None}, TypeError, "graph: expected"),
        ({"edges": [EDGES]}, IndexError, r"edges\[0\]: expected an edge id in \[0, 3000\)"),
        ({"edges": [[0], [NODES]]}, IndexError, r"edges\[1, 0\]: expected a node in \[0, 400\)"),
        ({"edges": [[0], [1], [2]]}, ValueError, r"edges: expected shape \[E\] or \[2, E\]"),
        ({"edges": [0.5]}, TypeError, "edges: expected int32 or int64"),
        ({"edges": "x"}, TypeError, "edges: expected an array"),
        ({"edges": [[0], [1]]}, ValueError, "exclude: expected None with pairs of nodes"),
        (
            {"negative_sampling": 2},
            TypeError,
            "negative_sampling: expected NegativeSampling or None",
        ),
        ({"exclude": "all"}, ValueError, "exclude: expected 'self', 'reverse_id', a callable"),
        ({"exclude": 3}, TypeError, "exclude: expected a string, a callable or None"),
        ({"exclude": "reverse_id"}, ValueError, "reverse_eids: expected an edge id for each"),
        ({"reverse_eids": [0]}, ValueError, "reverse_eids: expected None with exclude='self'"),
        (
            {"exclude": "reverse_id", "reverse_eids": [0]},
            ValueError,
            r"reverse_eids: expected shape \[3000\], got \(1,\)",
        ),
        ({"labels": [1]}, ValueError, r"labels: expected shape \[428, ...\]"),
        (
            {"labels": IDS, "negative_sampling": NegativeSampling()},
            ValueError,
            "labels: expected None with negatives of mode 'binary'",
        ),
        (
            {"fanouts": pgs.RandomWalk(3)},
            ValueError,
            "sampler: expected a sampler that returns blocks",
        ),
        ({"batch_size": 0}, ValueError, "batch_size: expected"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        loader(**{"graph": make(), **options})
