"""Seeds by weight: ``DataLoader(seed_weights=, num_samples=)``."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import reference
import torch
from scipy.stats import chisquare

import pygsampler as pgs
from pygsampler._loader.seeds import HeteroSeeds
from pygsampler.torch import DataLoader
from tests.support.assertions import assert_equal, content

NODES, SEED = 40, 7
random = np.random.default_rng(1)
GRAPH = pgs.Graph.from_coo(
    *random.integers(0, NODES, (2, 300)),
    num_nodes=NODES,
    edge_data={"t": np.arange(300.0)},
)
SEEDS = torch.arange(20, 32)
WEIGHTS = [1, 0, 2, 3, 0.5, 1, 1, 0, 4, 1, 2.5, 1]
# The site of draws for seeds.
SITE = 4


def loader(**options: Any) -> DataLoader[Any]:
    about = {"batch_size": 5, "seed": SEED, "seed_weights": WEIGHTS, **options}
    return DataLoader(GRAPH, SEEDS, [3, 2], **about)


def drawn(of: Any) -> list[int]:
    return [node for batch in of for node in batch.output_nodes.tolist()]


def law(epoch: int, count: int) -> list[int]:
    """As docs/developer/walk-draws.md says, without the library."""
    reach = np.cumsum(np.asarray(WEIGHTS, np.float64))
    found = []
    for place in range(count):
        state = reference.row_state(SEED, epoch, 0, SITE, place, reference.NEGATIVES)
        x = reference.draw(state, 0, 1 << 53)
        found.append(int(SEEDS[np.searchsorted(reach, x / 2**53 * reach[-1], side="right")]))
    return found


def test_draws_are_those_of_the_law() -> None:
    made = loader(num_samples=33)
    assert len(made) == 7
    for epoch in range(3):
        assert drawn(made) == law(epoch, 33)
    assert drawn(loader()) == law(0, len(SEEDS))


def test_draws_are_in_proportion_to_the_weights() -> None:
    found = Counter(drawn(loader(num_samples=40_000, batch_size=4000)))
    expected = {int(s): w / sum(WEIGHTS) for s, w in zip(SEEDS, WEIGHTS, strict=True) if w}
    assert found.keys() == expected.keys()
    counts = [found[seed] for seed in expected]
    assert chisquare(counts, [40_000 * p for p in expected.values()]).pvalue > 1e-3
    # Not more of a seed than its weight wherever it stands, and no two draws alike in a row.
    of_epochs = [tuple(drawn(loader(num_samples=50)))]
    made = loader(num_samples=50)
    of_epochs += [tuple(drawn(made)) for _ in range(3)]
    assert of_epochs[0] == of_epochs[1] and len(set(of_epochs)) == 3


def test_a_batch_with_a_seed_twice_has_an_output_for_each() -> None:
    labels = torch.arange(NODES)
    seen = 0
    for batch in loader(num_samples=60, batch_size=20, labels=labels, features={"x": labels}):
        # What a model gives: a row for each distinct seed.
        outputs = batch.x[: batch.blocks[-1].num_dst_nodes]
        assert outputs[batch.output_index].equal(batch.y)
        seen += len(batch.y) - len(outputs)
    assert seen > 0


@pytest.mark.parametrize("deal", ["seeds", "batches"])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_ranks_share_the_draws_out(world_size: int, deal: str) -> None:
    options: dict[str, Any] = {"num_samples": 31, "world_size": world_size, "shard_by": deal}
    ranks = [loader(rank=rank, **options) for rank in range(world_size)]
    for epoch in range(2):
        found = [node for each in ranks for node in drawn(each)]
        assert sorted(found) == sorted(law(epoch, 31))
    with pytest.raises(ValueError, match="seed: expected an integer, the same on all 2 ranks"):
        DataLoader(GRAPH, SEEDS, [3], batch_size=5, world_size=2, seed_weights=WEIGHTS)


def test_depth_threads_and_pickles_change_nothing() -> None:
    expected = [content(batch) for batch in loader(num_samples=31)]
    for prefetch in (0, 1, 8):
        made = loader(num_samples=31, prefetch=prefetch)
        assert [content(b) for b in pickle.loads(pickle.dumps(made))] == expected
    # A batch is what the sampler makes of its seeds, whoever drew them.
    sampler = pgs.PGSampler([3, 2], seed=SEED)
    for batch in loader(num_samples=31):
        numbers = {"epoch": batch.epoch, "batch": batch.batch}
        assert_equal(sampler.sample(GRAPH, batch.output_nodes, **numbers).torch(), batch)


def test_an_epoch_is_resumed_with_equal_weights_only() -> None:
    made = loader(num_samples=31)
    expected = [content(batch) for batch in loader(num_samples=31)]
    going = iter(made)
    first = [content(next(going)), content(next(going))]
    state = made.state_dict()
    resumed = loader(num_samples=31)
    resumed.load_state_dict(state)
    assert first + [content(batch) for batch in resumed] == expected
    with pytest.raises(ValueError, match="state: expected one of the same seed_weights"):
        loader(num_samples=31, seed_weights=[1.0] * 12).load_state_dict(state)
    with pytest.raises(ValueError, match="state: expected num_seeds=12, got 31"):
        loader().load_state_dict(state)
    plain = DataLoader(GRAPH, SEEDS, [3, 2], batch_size=5, seed=SEED)
    with pytest.raises(ValueError, match="state: expected one of the same seed_weights"):
        plain.load_state_dict(loader().state_dict())
    with pytest.raises(ValueError, match="state: expected one of the same seed_weights"):
        loader().load_state_dict(plain.state_dict())


def test_times_go_with_their_seeds() -> None:
    times = torch.arange(12.0) * 25
    sampler = pgs.PGSampler([20], temporal="t", seed=SEED)
    options: dict[str, Any] = {"batch_size": 6, "seed_weights": WEIGHTS, "num_samples": 40}
    for batch in DataLoader(GRAPH, SEEDS, sampler, seed_time=times, **options):
        block = batch.blocks[0]
        bound = times[batch.output_nodes - 20].repeat_interleave(block.indptr.diff())
        assert bool((block.edge_ids.double() <= bound).all())


def test_seeds_of_several_types() -> None:
    types = pgs.Graph.from_coo(
        {("a", "to", "b"): ([0, 1, 2], [0, 1, 1]), ("b", "to", "a"): ([0, 1], [2, 0])},
        num_nodes={"a": 3, "b": 2},
    )
    seeds = {"b": [0, 1], "a": [0, 1, 2]}
    weights = {"a": [0, 1, 3], "b": [4, 0]}
    found: Counter[tuple[str, int]] = Counter()
    options: dict[str, Any] = {"batch_size": 100, "seed": 1, "num_samples": 8000}
    for batch in DataLoader(types, seeds, [2], seed_weights=weights, **options):
        assert sum(map(len, batch.output_nodes.values())) == 100
        for kind, ids in batch.output_nodes.items():
            found.update((kind, int(node)) for node in ids)
    expected = {("a", 1): 1000, ("a", 2): 3000, ("b", 0): 4000}
    assert found.keys() == expected.keys()
    assert chisquare([found[k] for k in expected], list(expected.values())).pvalue > 1e-3
    for wrong, error, text in (
        ([1, 2], TypeError, "seed_weights: expected a mapping of types to weights, got list"),
        ({"a": [1, 1, 1]}, ValueError, r"seed_weights: .* of the seeds \(a, b\), got a"),
        ({**weights, "a": [1]}, ValueError, r"seed_weights\['a'\]: .* each of 3 seeds, got 1"),
    ):
        with pytest.raises(error, match=text):
            DataLoader(types, seeds, [2], seed_weights=wrong, **options)


def test_the_text_of_a_loader_has_the_number_of_draws() -> None:
    assert repr(loader(num_samples=31)).startswith("DataLoader(31 by weight of 12 seeds, PGSampl")
    made = loader(num_samples=31, drop_last=True)
    assert len(made) == 6 and len(drawn(made)) == 30


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"seed_weights": [1, 2]}, ValueError, "seed_weights: .* each of 12 seeds, got 2"),
        ({"seed_weights": [-1.0] * 12}, ValueError, r"seed_weights\[0\]: expected a finite numb"),
        ({"seed_weights": [0.0] * 12}, ValueError, "seed_weights: expected a finite sum above 0"),
        ({"seed_weights": "w"}, TypeError, "seed_weights: expected an array of numbers, got str"),
        ({"seed_weights": np.ones((12, 1))}, ValueError, "seed_weights: .* for each seed, got sh"),
        ({"num_samples": 0}, ValueError, "num_samples: expected an integer >= 1, got 0"),
        ({"seed_weights": None, "num_samples": 3}, ValueError, "num_samples: expected None witho"),
        ({"shuffle": True}, ValueError, "shuffle: expected False with seed_weights"),
        ({"world_size": 9, "num_samples": 4}, ValueError, "world_size: expected at most one rank"),
    ],
)
def test_wrong_arguments_are_named(options: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        loader(**options)
    made = loader()
    with pytest.raises(ValueError, match="shuffle: expected False with seed_weights"):
        made.shuffle = True


def test_a_static_batch_has_room_for_repeated_seeds() -> None:
    types = pgs.Graph.from_coo({("a", "to", "b"): ([0], [0])}, num_nodes={"a": 3, "b": 2})
    seeds = HeteroSeeds(types, {"a": [0, 1, 2], "b": []})
    assert seeds.most(2) == {"a": 2, "b": 0}
    assert seeds.most(8) == {"a": 3, "b": 0}
    assert seeds.most(8, again=True) == {"a": 8, "b": 0}
