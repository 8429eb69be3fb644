"""Attributes of loaders: what is assigned takes effect at the next epoch, or raises."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Generic

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler._loader.loader_base import LoaderBase
from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling
from tests.support.assertions import contents

NODES = 60
random = np.random.default_rng(2)
GRAPH = pgs.Graph.from_coo(*random.integers(0, NODES, (2, 400)), num_nodes=NODES)


def loader(**options: Any) -> DataLoader[Any]:
    return DataLoader(GRAPH, np.arange(50), [3], **{"batch_size": 8, "seed": 3, **options})


def links(**options: Any) -> LinkLoader:
    return LinkLoader(GRAPH, np.arange(50), [3], **{"batch_size": 8, "seed": 3, **options})


def test_loaders_have_one_base_class() -> None:
    for kind in (DataLoader, LinkLoader):
        assert kind.__mro__ == (kind, LoaderBase, Generic, object)
    ours = [
        each for each in LoaderBase.__subclasses__() if each.__module__.startswith("pygsampler")
    ]
    assert ours == [DataLoader, LinkLoader]


@pytest.mark.parametrize("make", [loader, links])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 7),
        ("batch_size", np.int64(30)),
        ("drop_last", True),
        ("shuffle", np.True_),
        ("prefetch", 0),
    ],
)
def test_an_assigned_option_takes_effect_at_the_next_epoch(
    make: Any, name: str, value: Any
) -> None:
    other, changed = make(**{name: value}), make()
    going = iter(changed)
    first = contents([next(going)])
    setattr(changed, name, value)
    # The epoch that goes on keeps what it began with.
    assert first + contents(going) == contents(make())
    other.set_epoch(1)
    assert len(changed) == len(other)
    assert repr(changed) == repr(other)
    assert contents(changed) == contents(other)


@pytest.mark.parametrize("make", [loader, links])
@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("batch_size", 0, ValueError, "batch_size: expected an integer >= 1, got 0"),
        ("batch_size", "8", TypeError, "batch_size: expected an integer >= 1, got str '8'"),
        ("drop_last", 1, TypeError, "drop_last: expected True or False, got int 1"),
        ("shuffle", None, TypeError, "shuffle: expected True or False, got NoneType None"),
        ("prefetch", -1, ValueError, "prefetch: expected an integer >= 0, got -1"),
        ("seed", 4, AttributeError, r"seed: .*; set_seed\(...\) takes another"),
        ("epoch", 4, AttributeError, r"epoch: .*; set_epoch\(...\) chooses"),
        ("graph", GRAPH, AttributeError, "graph: .*; make another .*Loader; batch_size, drop_last"),
        ("sampler", None, AttributeError, "sampler: .*; make another"),
        ("fanouts", [4], AttributeError, "fanouts: .*; make another"),
        ("features", {}, AttributeError, "features: .*; make another"),
        ("labels", None, AttributeError, "labels: .*; make another"),
        ("rank", 1, AttributeError, "rank: .*; make another"),
        ("world_size", 2, AttributeError, "world_size: .*; make another"),
        ("device", "cpu", AttributeError, "device: .*; make another"),
        ("static", True, AttributeError, "static: .*; make another"),
        ("batchsize", 4, AttributeError, "batchsize: .*; did you mean batch_size?"),
        ("droplast", 4, AttributeError, "droplast: .*; did you mean drop_last?"),
        ("num_workers", 4, AttributeError, "num_workers: .* the engine samples ahead, `prefetch="),
        ("colour", 4, AttributeError, "colour: .*; a subclass may have attributes of its own"),
    ],
)
def test_an_assignment_without_effect_raises_and_names_the_way(
    make: Any, name: str, value: Any, error: type[Exception], text: str
) -> None:
    made = make()
    before = repr(made), contents(make())
    with pytest.raises(error, match=text):
        setattr(made, name, value)
    assert (repr(made), contents(made)) == before


def test_seeds_edges_and_negatives_are_fixed() -> None:
    for made, name in ((loader(), "seeds"), (links(), "edges"), (links(), "negative_sampling")):
        with pytest.raises(AttributeError, match=f"{name}: .*; make another"):
            setattr(made, name, [1, 2])


@pytest.mark.parametrize("new", [loader, links])
def test_how_far_a_loader_is_ahead_may_be_assigned(new: Any) -> None:
    made = new()
    made.prefetch, made.gpu_share, made.progress = (2, 4), 0.5, False
    with pytest.raises(ValueError, match=r"prefetch\[0\]: expected an integer from 0 to 3, got 4"):
        made.prefetch = 4, 4
    assert made.prefetch == (2, 4)
    with pytest.raises(ValueError, match=r"gpu_share: expected a number in \(0, 1\], got 2"):
        made.gpu_share = 2
    made.prefetch = 2
    assert contents(made) == contents(new())


def test_assignments_are_checked_as_a_whole() -> None:
    made = loader(world_size=3, batch_size=2)
    with pytest.raises(ValueError, match="batch_size: expected at least 2 where world_size"):
        made.batch_size = 1
    assert made.batch_size == 2
    drawn = DataLoader(GRAPH, np.arange(50), [3], batch_size=8, world_size=2)
    with pytest.raises(ValueError, match="seed: expected an integer, the same on all 2 ranks"):
        drawn.shuffle = True
    drawn.set_seed(3)
    drawn.shuffle = True
    assert contents(drawn) == contents(loader(shuffle=True, world_size=2))


def test_a_state_is_of_the_epoch_that_goes_on() -> None:
    made = loader()
    going = iter(made)
    first = contents([next(going), next(going)])
    made.batch_size = 20
    resumed = loader()
    with pytest.raises(ValueError, match="state: expected batch_size=20, got 8"):
        loader(batch_size=20).load_state_dict(made.state_dict())
    resumed.load_state_dict(made.state_dict())
    with pytest.raises(AttributeError, match=r"batch_size: .* load_state_dict and the"):
        resumed.batch_size = 20
    assert first + contents(resumed) == contents(loader())
    # From the next epoch on it is what was assigned.
    contents(going)
    after = loader(batch_size=20)
    after.load_state_dict(made.state_dict())
    assert contents(after) == contents(made)


def test_a_subclass_may_have_other_attributes() -> None:
    class Mine(DataLoader[Any]):
        def __init__(self, *given: Any, **options: Any) -> None:
            self.before = 1
            super().__init__(*given, **options)
            self.name, self.features, self.batch_size = "mine", {"a": 1}, 10
            self.rows = 3

        @property
        def rows(self) -> int:
            return self._mine

        @rows.setter
        def rows(self, rows: int) -> None:
            self._mine = rows

    made = Mine(GRAPH, np.arange(50), [3], batch_size=8, seed=3)
    assert (made.before, made.name, made.features, made.rows) == (1, "mine", {"a": 1}, 3)
    assert contents(made) == contents(loader(batch_size=10))
    with pytest.raises(AttributeError, match=r"graph: .*; make another DataLoader"):
        made.graph = None


def test_copies_and_pickles_can_be_assigned_to() -> None:
    made = loader()
    for other in (copy.copy(made), pickle.loads(pickle.dumps(made))):
        other.batch_size = 25
        assert contents(other) == contents(loader(batch_size=25))
        with pytest.raises(AttributeError, match="did you mean batch_size"):
            other.batchsize = 3
    assert made.batch_size == 8


def test_negatives_do_not_change() -> None:
    negatives = NegativeSampling("uniform", 2)
    for name in ("amount", "kind", "dst_weight"):
        with pytest.raises(AttributeError, match=f"{name}: expected no assignment, since Negat"):
            setattr(negatives, name, torch.ones(3))
    with pytest.raises(AttributeError, match="other"):
        negatives.other = 3

    class Own(NegativeSampling):
        def __init__(self) -> None:
            super().__init__(amount=2)
            self.mine = 3

    assert Own().mine == 3
    assert repr(pickle.loads(pickle.dumps(negatives))) == repr(negatives)


def test_the_size_of_a_batch_is_fixed_while_an_epoch_goes_on() -> None:
    """``start`` counts batches of the old size."""
    made = loader(skip_batches=5)
    with pytest.raises(
        AttributeError, match="batch_size: expected no assignment between skip_batches="
    ):
        made.batch_size = 20
    list(made)
    made.batch_size = 20
    assert len(list(made)) == 3
