"""Labels of seeds: ``DataLoader(seed_labels=)``, against a lookup by the place of each seed."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler.samplers import Temporal
from pygsampler.torch import DataLoader

NODES, DAYS, SEED = 12, 10, 7
# Each day has an edge to each node, whose id says the day.
GRAPH = pgs.Graph.from_coo(
    np.arange(NODES * DAYS) % NODES,
    np.arange(NODES * DAYS) % NODES,
    num_nodes=NODES,
    edge_data={"t": np.arange(NODES * DAYS) // NODES},
    node_data={"kind": np.arange(NODES) % 2},
)
LATEST = pgs.PGSampler([1], temporal=Temporal("t", strategy="last"), seed=SEED)
# A node is a seed on several days.
random = np.random.default_rng(1)
PLACES = random.permutation(NODES * DAYS)[:47]
SEEDS, TIMES = PLACES % NODES, PLACES // NODES
COUNT = len(SEEDS)

TYPES = pgs.Graph.from_coo(
    {("a", "to", "b"): ([0, 1, 2], [0, 1, 1]), ("b", "to", "a"): ([0, 1], [2, 0])},
    num_nodes={"a": 3, "b": 2, "c": 1},
)
TYPED_SEEDS = {"b": [0, 1, 0, 0, 1], "a": [2, 0, 1, 2, 2, 0, 1]}


def loader(**options: Any) -> DataLoader[Any]:
    about = {"batch_size": 8, "seed": SEED, "seed_time": TIMES, "seed_labels": np.arange(COUNT)}
    return DataLoader(GRAPH, SEEDS, LATEST, **{**about, **options})


def checked(made: Any) -> list[int]:
    """The places of all seeds of an epoch, by their labels; each has the node and the day there."""
    found: list[int] = []
    for batch in made:
        places = batch.y.numpy()
        assert (batch.output_nodes.numpy() == SEEDS[places]).all()
        block = batch.blocks[-1]
        assert (block.in_degrees() == 1).all()
        assert (block.edge_ids.numpy() // NODES == TIMES[places]).all()
        found += places.tolist()
    return found


def test_by_hand() -> None:
    labels = [[1.0, 0.5], [2.0, 0.5], [3.0, 0.5]]
    made = DataLoader(GRAPH, [4, 4, 0], [1], batch_size=2, seed_labels=labels)
    first, second = made
    assert first.output_nodes.tolist() == [4, 4] and first.y.tolist() == labels[:2]
    assert second.output_nodes.tolist() == [0] and second.y.tolist() == labels[2:]
    assert first.features["y"] is first.y
    # A batch has rows of its own.
    first.y.zero_()
    assert next(iter(made)).y.tolist() == labels[:2]


@pytest.mark.parametrize("features", [None, {"x": torch.arange(NODES)}], ids=["ids", "features"])
@pytest.mark.parametrize("prefetch", [0, 1, 6])
def test_labels_are_those_of_the_place_of_each_seed(prefetch: int, features: Any) -> None:
    options = {"prefetch": prefetch, "features": features}
    assert checked(loader(**options)) == list(range(COUNT))
    shuffled = loader(shuffle=True, **options)
    first, second = checked(shuffled), checked(shuffled)
    assert sorted(first) == sorted(second) == list(range(COUNT)) and first != second
    assert len(checked(loader(shuffle=True, drop_last=True, **options))) == COUNT // 8 * 8
    assert checked(pickle.loads(pickle.dumps(loader(shuffle=True, **options)))) == first


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shard_by", ["seeds", "batches"])
@pytest.mark.parametrize("world_size", [2, 3])
def test_ranks_have_the_labels_of_their_seeds(
    world_size: int, shard_by: str, drop_last: bool
) -> None:
    options: dict[str, Any] = {"world_size": world_size, "shard_by": shard_by, "shuffle": True}
    ranks = [loader(rank=rank, drop_last=drop_last, **options) for rank in range(world_size)]
    for _ in range(2):
        found = [place for each in ranks for place in checked(each)]
        assert len(set(found)) == len(found)
        assert len(found) == sum(len(each) for each in ranks) * 8 if drop_last else COUNT


@pytest.mark.parametrize("options", [{"shuffle": True}, {"seed_weights": np.arange(COUNT)}])
def test_an_epoch_is_resumed(options: dict[str, Any]) -> None:
    expected = checked(loader(**options))
    going = loader(**options)
    batches = iter(going)
    begun = [next(batches), next(batches)]
    resumed = loader(**options)
    resumed.load_state_dict(going.state_dict())
    assert checked(begun) + checked(resumed) == expected
    assert checked(loader(skip_batches=2, **options)) == expected[16:]


def test_seeds_by_weight() -> None:
    found = checked(loader(seed_weights=np.arange(COUNT), num_samples=100))
    assert len(found) == 100 > len(set(found)) and 0 not in found


@pytest.mark.parametrize("labels", [torch.rand(NODES, 2), torch.arange(NODES) > 3])
def test_labels_that_are_those_of_nodes_are_as_labels_gives_them(labels: torch.Tensor) -> None:
    for sampler in ([2, 1], pgs.walks.RestartNeighbors("kind", {0: 2, 1: 1}, seed=1)):
        options: dict[str, Any] = {"batch_size": 5, "shuffle": True, "seed": SEED}
        by_node = DataLoader(GRAPH, SEEDS, sampler, labels=labels, **options)
        by_seed = DataLoader(GRAPH, SEEDS, sampler, seed_labels=labels[SEEDS], **options)
        for expected, batch in zip(by_node, by_seed, strict=True):
            assert batch.y.equal(expected.y) and batch.y.dtype == expected.y.dtype


@pytest.mark.parametrize("shuffle", [False, True])
def test_labels_by_type(shuffle: bool) -> None:
    by_node = {"a": torch.rand(3, 2), "b": torch.tensor([5, 6])}
    by_seed = {kind: of[TYPED_SEEDS[kind]] for kind, of in by_node.items()}
    places = {kind: np.arange(len(of)) for kind, of in TYPED_SEEDS.items()}
    options: dict[str, Any] = {"batch_size": 5, "shuffle": shuffle, "seed": SEED}
    loaders = [
        DataLoader(TYPES, TYPED_SEEDS, [2], **options, **labels)
        for labels in ({"labels": by_node}, {"seed_labels": by_seed}, {"seed_labels": places})
    ]
    for _ in range(2):
        seen: dict[str, list[int]] = {"a": [], "b": []}
        for expected, batch, where in zip(*loaders, strict=True):
            assert batch.y.keys() == expected.y.keys() == {"a", "b"}
            for kind, ids in batch.output_nodes.items():
                if kind not in TYPED_SEEDS:
                    continue
                assert batch.y[kind].equal(expected.y[kind])
                found = where.y[kind].tolist()
                assert [TYPED_SEEDS[kind][place] for place in found] == ids.tolist()
                seen[kind] += found
        assert {kind: sorted(of) for kind, of in seen.items()} == {
            kind: list(of) for kind, of in places.items()
        }


def test_seeds_of_one_type_need_no_mapping() -> None:
    seeds = {"a": [2, 2, 0]}
    (batch,) = DataLoader(TYPES, seeds, [2], batch_size=3, seed_labels=[1, 2, 3])
    assert batch.y["a"].tolist() == [1, 2, 3] and batch.y.keys() == {"a"}


def test_guard_compares_labels_of_seeds_with_columns() -> None:
    graph = pgs.Graph.from_coo(
        np.arange(100), np.arange(100), num_nodes=100, edge_data={"t": np.zeros(100, np.int64)}
    )
    seeds = np.tile(np.arange(100), 2)
    sampler = pgs.PGSampler([1], temporal="t", seed=1)
    options: dict[str, Any] = {"batch_size": 50, "seed_time": 1, "guard": True, "shuffle": True}
    labels = seeds % 3
    x = {"x": np.stack([np.ones(100), np.arange(100) % 3], 1)}
    with pytest.raises(ValueError, match=r"features\['x'\]: .* got column 1, which is column 0 of"):
        DataLoader(graph, seeds, sampler, features=x, seed_labels=labels, **options)
    # On another day the label is another one.
    labels[150] += 1
    made = DataLoader(graph, seeds, sampler, features=x, seed_labels=labels, **options)
    for batch in made:
        wrong = batch.y != batch.output_nodes % 3
        assert int(wrong.sum()) <= 1
    assert made.check_no_leakage() == 4
    # Few nodes that are seeds often may have equal columns by chance.
    DataLoader(graph, seeds % 20, sampler, features=x, seed_labels=seeds % 20 % 3, **options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"labels": np.arange(NODES)}, ValueError, "seed_labels: expected None with labels=, got"),
        ({"seed_labels": [1, 2]}, ValueError, r"seed_labels: expected shape \[47, ...\], got \(2,"),
        ({"seed_labels": 3}, ValueError, r"seed_labels: expected shape \[47, ...\], got \(\)"),
        (
            {"seed_labels": ["yes"] * COUNT},
            TypeError,
            "seed_labels: expected a tensor, got list.*: names are no numbers; np.unique",
        ),
        (
            {"seed_labels": np.array(["yes"] * COUNT)},
            TypeError,
            "seed_labels: expected a tensor, got ndarray: names are no numbers; np.unique",
        ),
        (
            {"seed_labels": torch.ones(COUNT, requires_grad=True)},
            ValueError,
            r"seed_labels: .* without a gradient, .* give seed_labels.detach\(\)",
        ),
        ({"features": {"y": np.arange(NODES)}}, ValueError, "features: expected another name"),
        ({"label_time": 5}, ValueError, "label_time: .* with seed_labels= compare the times"),
    ],
)
def test_mistakes(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        loader(**options)


@pytest.mark.parametrize(
    ("labels", "error", "text"),
    [
        ([1] * 12, TypeError, "seed_labels: expected a mapping of types to labels, got list"),
        ({"a": [1] * 7}, ValueError, "seed_labels: expected labels of 'b' too, got none"),
        ({"a": [1] * 7, "b": [1]}, ValueError, r"seed_labels\['b'\]: expected shape \[5, ...\]"),
        ({"a": [1] * 7, "b": [1] * 5, "c": []}, ValueError, "seed_labels: .*'c'"),
    ],
)
def test_mistakes_by_type(labels: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=f"^{text}"):
        DataLoader(TYPES, TYPED_SEEDS, [2], batch_size=3, seed_labels=labels)
    x = {"y": {"a": np.arange(3)}}
    with pytest.raises(ValueError, match="features: expected another name, since labels= uses it"):
        labels = {"a": [1] * 7, "b": [1] * 5}
        DataLoader(TYPES, TYPED_SEEDS, [2], batch_size=3, seed_labels=labels, features=x)


@pytest.mark.parametrize(
    ("sampler", "times"),
    [(pgs.samplers.context(budget=4, time="t"), TIMES), (pgs.walks.RandomWalk(2, seed=1), None)],
)
def test_batches_without_labels_refuse_them(sampler: Any, times: Any) -> None:
    options: dict[str, Any] = {"batch_size": 8, "seed_time": times, "seed_labels": SEEDS}
    with pytest.raises(ValueError, match="seed_labels: expected None for a sampler whose batches"):
        DataLoader(GRAPH, SEEDS, sampler, **options)


# There is no page-locked memory without a GPU, and no tensor of the device.
