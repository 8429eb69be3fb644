"""Edges that ``LinkLoader`` leaves out: no batch samples the answer to its own question."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch

import pygsampler as pgs
from pygsampler.torch import LinkLoader

BUYS, BOUGHT = ("user", "buys", "item"), ("item", "bought", "user")
LIKES = "user", "likes", "user"
NODES = {"user": 40, "item": 30}
COUNT = 300
ORDER = torch.randperm(COUNT, generator=torch.Generator().manual_seed(3))
"""Edge ``ORDER[i]`` of ``bought`` is the reverse of edge i of ``buys``."""
BACK = (torch.arange(200) + 100) % 200
"""The reverses of ``likes``, in the same type."""
EDGES = {BUYS: torch.arange(0, COUNT, 2), LIKES: torch.arange(0, 200, 5)}


def loopless(count: int, nodes: int, random: torch.Generator) -> torch.Tensor:
    """Ends of edges, none of which is its own reverse."""
    src = torch.randint(0, nodes, (count,), generator=random)
    return torch.stack([src, (src + torch.randint(1, nodes, (count,), generator=random)) % nodes])


def shop(same_ids: bool = False) -> pgs.Graph:
    """Users buy items, which were bought by users: the same edges, by other ids or the same."""
    random = torch.Generator().manual_seed(5)
    pairs = torch.randperm(NODES["user"] * NODES["item"], generator=random)[:COUNT]
    users, items = pairs // NODES["item"], pairs % NODES["item"]
    ends = loopless(100, NODES["user"], random)
    both = torch.cat([ends, ends.flip(0)], 1)
    place = torch.arange(COUNT) if same_ids else torch.argsort(ORDER)
    return pgs.Graph.from_coo(
        {BUYS: (users, items), BOUGHT: (items[place], users[place]), LIKES: (both[0], both[1])},
        num_nodes=NODES,
    )


def sampled(batch: Any, kind: Any) -> torch.Tensor:
    return torch.cat([hop[kind].edge_ids for hop in batch.minibatch.blocks])


def reverses(ids: torch.Tensor) -> torch.Tensor:
    return ORDER[ids]


def leave_out(ids: dict[Any, torch.Tensor]) -> dict[Any, torch.Tensor]:
    """Edges and reverses by hand; types may be named by their relations."""
    buys, likes = ids[BUYS], ids[LIKES]
    return {BUYS: buys, "bought": reverses(buys), "likes": torch.cat([likes, BACK[likes]])}


LIKED = {"likes": BACK}
BY_ID = {"exclude": "reverse_id", "reverse_eids": {BUYS: ORDER, LIKES: BACK}}
TURNED = {"reverse_etypes": {BUYS: BOUGHT}}


@pytest.mark.parametrize(
    "options",
    [
        {**BY_ID, "reverse_etypes": {BUYS: BOUGHT}},
        {**BY_ID, "reverse_etypes": {"buys": "bought", "likes": "likes"}},
        {
            "exclude": "reverse_types",
            "reverse_etypes": {BUYS: BOUGHT, LIKES: LIKES},
            "reverse_eids": {"buys": ORDER, "user__likes__user": BACK},
        },
        {"exclude": leave_out},
        {"exclude": "reverse_id", "reverse_etypes": {"buys": "bought"}},
        {"exclude": "reverse_id", "reverse_etypes": {"buys": "bought"}, "reverse_eids": LIKED},
    ],
    ids=["reverse_id", "by relation", "reverse_types", "callable", "of the graph", "in part"],
)
def test_reverses_of_other_types_and_ids_are_left_out(options: dict[str, Any]) -> None:
    """Every other edge of the seeds is there: rows are sampled around what is left out."""
    graph = shop()
    loader = LinkLoader(graph, EDGES, [-1, -1], batch_size=32, shuffle=True, seed=1, **options)
    own = LinkLoader(graph, EDGES, [-1, -1], batch_size=32, shuffle=True, seed=1)
    leaks = 0
    for batch, leaky in zip(loader, own, strict=True):
        buys, likes = (EDGES[kind][batch.input_id[kind]] for kind in (BUYS, LIKES))
        gone = {BUYS: buys, BOUGHT: reverses(buys), LIKES: torch.cat([likes, BACK[likes]])}
        assert batch.input_id[BUYS].equal(leaky.input_id[BUYS])
        for kind, ids in gone.items():
            assert not torch.isin(sampled(batch, kind), ids).any()
            # Hops are those of the sampler, around the same edges.
        leaks += int(torch.isin(sampled(leaky, BOUGHT), gone[BOUGHT]).sum())
        again = loader.sampler.sample(
            graph, batch.minibatch.output_nodes, epoch=0, batch=batch.minibatch.batch, exclude=gone
        )
        for kind in gone:
            assert sampled(batch, kind).equal(
                torch.cat([hop[kind].edge_ids.torch() for hop in again.blocks])
            )
    assert leaks > 100


def test_reverse_types_may_name_some() -> None:
    """As DGL's: edges of the others have no reverses, and their own are left out."""
    graph = shop(same_ids=True)
    options = {"exclude": "reverse_types", "reverse_etypes": {"buys": "bought", BOUGHT: BUYS}}
    seen = 0
    for batch in LinkLoader(graph, EDGES, [-1, -1], batch_size=32, seed=1, **options):
        buys, likes = (EDGES[kind][batch.input_id[kind]] for kind in (BUYS, LIKES))
        assert not torch.isin(sampled(batch, BOUGHT), buys).any()
        assert not torch.isin(sampled(batch, LIKES), likes).any()
        seen += int(torch.isin(sampled(batch, LIKES), BACK[likes]).sum())
    assert seen


def test_a_callable_without_types() -> None:
    """It gets int64 ids, and what it returns is left out, and nothing else."""
    src, dst = torch.randint(0, 50, (2, 400), generator=torch.Generator().manual_seed(1))
    graph = pgs.Graph.from_coo(torch.cat([src, dst]), torch.cat([dst, src]), num_nodes=50)
    asked: list[torch.Tensor] = []

    def both(ids: torch.Tensor) -> torch.Tensor:
        asked.append(ids)
        return torch.cat([ids, ids + 400, torch.tensor([-1])])

    edges = torch.arange(0, 400, 3, dtype=torch.int32)
    loader = LinkLoader(graph, edges, [4, 4], batch_size=16, exclude=both, seed=1)
    named = LinkLoader(
        *(graph, edges, [4, 4]),
        batch_size=16,
        seed=1,
        exclude="reverse_id",
        reverse_eids=torch.cat([torch.arange(400) + 400, torch.full((400,), -1)]),
    )
    for batch, same in zip(loader, named, strict=True):
        ids = asked.pop(0)
        assert ids.dtype == torch.int64 and ids.equal(edges[batch.input_id].long())
        for block, other in zip(batch.minibatch.blocks, same.minibatch.blocks, strict=True):
            assert not torch.isin(block.edge_ids, torch.cat([ids, ids + 400])).any()
            assert block.edge_ids.equal(other.edge_ids)
    everything = LinkLoader(graph, edges, [4, 4], batch_size=16, exclude=None, seed=1)
    nothing = LinkLoader(graph, edges, [4, 4], batch_size=16, exclude=lambda ids: None, seed=1)
    for batch, same in zip(nothing, everything, strict=True):
        assert batch.minibatch.blocks[0].edge_ids.equal(same.minibatch.blocks[0].edge_ids)
    # Static loaders ask for all batches of an epoch at once.
    whole = nothing._source.exclusion.of_pass(graph, [[torch.arange(9)], [torch.arange(4)]])
    assert whole is not None and whole.starts.tolist() == [0, 0, 0]


def test_edges_of_a_whole_pass_are_those_of_its_batches() -> None:
    """Static loaders hand over what all batches leave out, relation by relation."""
    graph = shop()
    loader = LinkLoader(graph, EDGES, [3], batch_size=64, reverse_etypes={BUYS: BOUGHT}, **BY_ID)
    batches = [[torch.arange(i, i + 9), torch.arange(i, i + 4)] for i in range(3)]
    whole = loader._source.exclusion.of_pass(graph, batches)
    assert whole is not None
    starts = whole.starts.tolist()
    for number, places in enumerate(batches):
        expected = loader._source.exclusion.excluded_ids(places)
        for place, kind in enumerate(graph.edge_types):
            at = number * len(graph.edge_types) + place
            assert whole.ids[starts[at] : starts[at + 1]].equal(expected[kind])


def test_a_graph_without_types_knows_its_reverses() -> None:
    src, dst = loopless(400, 50, torch.Generator().manual_seed(1))
    graph = pgs.Graph.from_coo(torch.cat([src, dst]), torch.cat([dst, src]), num_nodes=50)
    loader = LinkLoader(
        graph, torch.arange(400), [-1, -1], batch_size=16, exclude="reverse_id", shuffle=True
    )
    for batch in loader:
        ids = batch.input_id
        for block in batch.minibatch.blocks:
            assert not torch.isin(block.edge_ids, torch.cat([ids, ids + 400])).any()
    lone = pgs.Graph.from_coo([0, 1], [1, 2])
    text = "reverse_eids: expected an edge id for each edge, got None; reverse_edge_ids: expected"
    with pytest.raises(ValueError, match=text):
        LinkLoader(lone, [0], [3], batch_size=1, exclude="reverse_id")
    types = pgs.Graph.from_coo({BUYS: ([0, 1], [1, 2]), BOUGHT: ([1], [0])}, num_nodes=NODES)
    with pytest.raises(ValueError, match=r"reverse_eids\[.*\]: expected an edge id for each edge"):
        LinkLoader(types, {BUYS: [0]}, [3], batch_size=1, exclude="reverse_id", **TURNED)


def test_reverses_by_the_same_ids_are_as_many() -> None:
    graph = pgs.Graph.from_coo({BUYS: ([0, 1], [1, 2]), BOUGHT: ([1], [0])}, num_nodes=NODES)
    text = r"expected a type of 2 edges, with the same ids, got .* of 1; reverse_eids= names other"
    with pytest.raises(ValueError, match=text):
        LinkLoader(
            *(graph, {BUYS: [0]}, [3]),
            batch_size=1,
            exclude="reverse_types",
            reverse_etypes={BUYS: BOUGHT},
        )


def test_loaders_with_reverses_are_pickled() -> None:
    graph = shop()
    for options in ({**BY_ID, "reverse_etypes": {BUYS: BOUGHT}}, {"exclude": leave_out}):
        loader = LinkLoader(graph, EDGES, [3], batch_size=64, seed=1, **options)
        again = pickle.loads(pickle.dumps(loader))
        for batch, same in zip(loader, again, strict=True):
            assert sampled(batch, BOUGHT).equal(sampled(same, BOUGHT))


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        (
            BY_ID,
            ValueError,
            r"reverse_etypes: expected the type of edges from 'item' to 'user' that has its "
            r"reverses with exclude='reverse_id', got none; reverse_etypes={\('user', 'buys', 'it",
        ),
        (
            {**BY_ID, "reverse_etypes": {BUYS: LIKES}},
            ValueError,
            r"reverse_etypes\[.*\]: expected the type of edges from 'item' .*, got .*likes",
        ),
        (
            {"exclude": "reverse_types", "reverse_etypes": {BUYS: BUYS}},
            ValueError,
            "expected the type of edges from 'item' to 'user'",
        ),
        (
            {**BY_ID, "reverse_etypes": {BUYS: "sold"}},
            ValueError,
            "reverse_etypes: expected types of the graph, got 'sold'; there are .*'bought'",
        ),
        (
            {"exclude": "reverse_types", "reverse_etypes": {BOUGHT: BUYS}},
            ValueError,
            "reverse_etypes: expected the reverse of some type of the loader's .*, got .*bought",
        ),
        ({"exclude": "reverse_id"}, ValueError, "reverse_etypes: expected the type of edges from"),
        (
            {**BY_ID, "reverse_eids": {BUYS: ORDER + 1, LIKES: BACK}, **TURNED},
            IndexError,
            r"reverse_eids\[.*\]\[\d+\]: expected an edge id, or -1 for none, .*, got 300",
        ),
        (
            {**BY_ID, "reverse_eids": {BUYS: ORDER[:9], LIKES: BACK}, **TURNED},
            ValueError,
            r"reverse_eids\[.*\]: expected shape \[300\], got \(9,\)",
        ),
        (
            {"exclude": "self", **TURNED},
            ValueError,
            "reverse_etypes: expected None with exclude='self'",
        ),
        (
            {"exclude": leave_out, "reverse_eids": {BUYS: ORDER}},
            ValueError,
            "reverse_eids: expected None with exclude=",
        ),
    ],
)
def test_wrong_reverses(options: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        LinkLoader(shop(), EDGES, [3], batch_size=8, **options)


@pytest.mark.parametrize(
    ("returned", "kind", "text"),
    [
        ({"sold": [1]}, ValueError, "exclude: expected types of the graph, got 'sold'"),
        ({BUYS: [300]}, IndexError, r"exclude\[.*\]\[0\]: expected an edge id, or -1 for none,"),
        ({BUYS: [0.5]}, TypeError, r"exclude\[.*\]: expected int32 or int64"),
        ([1], TypeError, "exclude: expected a mapping of edge types"),
    ],
)
def test_wrong_ids_of_a_callable(returned: Any, kind: type[Exception], text: str) -> None:
    loader = LinkLoader(shop(), EDGES, [3], batch_size=8, exclude=lambda ids: returned)
    with pytest.raises(kind, match=text):
        next(iter(loader))
