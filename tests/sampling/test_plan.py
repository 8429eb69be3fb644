"""Plans: what equals what, what cannot be changed, and what is refused with which words."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler.samplers import layer_wise


def test_equal_options_are_equal_plans():
    one = pgs.PGSampler([10, 5], prob="w", seed=1).plan
    other = pgs.PGSampler(np.array([10, 5]), prob="w", replace=False, seed=2).plan
    assert one == other and hash(one) == hash(other) and one is not other
    assert one != pgs.PGSampler([10, 5], seed=1).plan and one != "a plan"
    assert dict(one)["fanouts"] == (10, 5) and one["family"] == "neighbor" and len(one) > 5
    assert pickle.loads(pickle.dumps(one)) == one


def test_modes_are_of_one_family():
    for mode in ("auto", "persistent"):
        sampler = pgs.PGSampler([3], mode=mode)
        assert (sampler.mode, sampler.plan["family"]) == (mode, "neighbor")
        assert pickle.loads(pickle.dumps(sampler)).mode == mode


def test_a_plan_cannot_be_changed():
    plan = pgs.PGSampler([3]).plan
    with pytest.raises(AttributeError, match="expected no change"):
        plan.document = "{}"
    with pytest.raises(TypeError):
        plan["fanouts"] = (4,)
    with pytest.raises(AttributeError):
        plan["fanouts"].append(4)


def test_pickles_of_samplers_that_named_their_maker_otherwise():
    from pygsampler.samplers import neighbor as sampler

    restore = sampler._restore
    made = restore({"fanouts": (4, 2), "replace": True}, 5, 2, 7)
    assert (made.fanouts, made.replace, made.seed, made.epoch) == ((4, 2), True, 5, 2)


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"prob": ""}, ValueError, "^prob: expected the name of an edge array, got ''"),
        ({"mask": ""}, ValueError, "^mask: expected the name of an edge array"),
        ({"prob": "\ud800"}, TypeError, "^prob: expected the name of an edge array, got str"),
        ({"prob": 3}, TypeError, "^prob: expected the name of an edge array, got int 3"),
        ({"frontier": ["all"]}, ValueError, r"^frontier: expected one of \('all', 'new'\)"),
        ({"fanouts": [2] * 70000}, ValueError, "^fanouts: expected 1 to 256 hops, got 70000"),
        ({"fanouts": [[[1]]]}, TypeError, r"^fanouts\[0\]: expected an integer >= -1, got list"),
        ({"fanouts": [10**30]}, ValueError, r"^fanouts\[0\]: expected at most 2147483647"),
        ({"fanouts": [10**5000]}, ValueError, r"^fanouts\[0\]: expected at most 2147483647"),
        ({"fanouts": [-(10**5000)]}, ValueError, r"^fanouts\[0\]: expected an integer >= -1"),
        ({"fanouts": [torch.tensor(2.5)]}, TypeError, r"^fanouts\[0\]: expected an integer"),
        ({"map_bytes": 1 << 70}, ValueError, "^map_bytes: expected an integer from 1 to"),
        ({"edge_weights": "hajek"}, ValueError, "^edge_weights: expected None or 'ht'"),
        (
            {"mode_options": {"memory": 1}},
            ValueError,
            "^mode_options: expected none in mode 'auto'",
        ),
    ],
)
def test_what_is_refused(given, kind, text):
    with pytest.raises(kind, match=text):
        pgs.PGSampler(**{"fanouts": [3], **given})


def test_a_description_is_no_value():
    class int:
        def __repr__(self) -> str:
            return "3"

    with pytest.raises(TypeError, match=r"^fanouts\[0\]: expected an integer >= -1, got int 3"):
        pgs.PGSampler([int()])


@pytest.mark.parametrize("name", ["fanouts", "seed", "epoch", "fanout", "replaced"])
@pytest.mark.parametrize(
    "sampler",
    [
        pgs.PGSampler([2], seed=1),
        pgs.RandomWalk(3, seed=1),
        pgs.samplers.HGTSampler([2], seed=1),
        pgs.LaborSampler([2], seed=1, edge_weights="ht"),
        layer_wise.labor(fanouts=[2], seed=1),
    ],
    ids=lambda sampler: type(sampler).__name__,
)
def test_options_of_a_sampler_cannot_be_assigned(sampler: Any, name: str) -> None:
    before = repr(sampler)
    with pytest.raises(AttributeError):
        setattr(sampler, name, [3])
    assert repr(sampler) == before
