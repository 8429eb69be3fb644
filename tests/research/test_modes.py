"""The modes of ``PGSampler`` for comparison: their options, pickles and refusals."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from graphs import circulant

import pygsampler as pgs
from pygsampler._sampling.extensions import MODES


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_is_a_family_of_plans(mode: str) -> None:
    sampler = pgs.PGSampler([3], mode=mode)
    assert sampler.mode == sampler.plan["family"] == mode
    assert pickle.loads(pickle.dumps(sampler)).mode == mode


@pytest.mark.parametrize("options", [{"ordered": False}, *({"fetch_size": n} for n in (1, 5, 256))])
def test_options_of_the_queue_change_no_edge(options: dict[str, Any]) -> None:
    graph = circulant(1000, 50)

    def edges(**how: Any) -> list[int]:
        batch = pgs.PGSampler([5], seed=0, **how).sample(graph, range(0, 1000, 10), batch=0)
        drawn: list[int] = batch.blocks[0].edge_ids.tolist()
        return drawn

    assert edges(mode="queue", mode_options=options) == edges()


def test_mode_and_options_are_shown_and_pickled() -> None:
    options = {"fetch_size": 5}
    sampler = pgs.PGSampler([3], mode="queue", mode_options=options, seed=5)
    assert pickle.loads(pickle.dumps(sampler)).mode_options == sampler.mode_options == options
    assert repr(sampler) == "PGSampler([3], mode='queue', mode_options={'fetch_size': 5}, seed=5)"
    replacing = pgs.PGSampler([3, -1], seed=5, replace=True, mode="queue", map_bytes=100)
    assert (replacing.replace, replacing.mode, replacing.map_bytes) == (True, "queue", 100)
    assert repr(replacing) == (
        "PGSampler([3, -1], replace=True, mode='queue', map_bytes=100, seed=5)"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"prob": "w", "mode": "queue"}, "^mode: expected 'auto' or 'persistent' with"),
        ({"prob": "a\nb", "mode": "queue"}, "^mode: expected .* with prob"),
        ({"mask": "m", "mode": "bsp"}, "^mode: expected .* with mask, got 'bsp'"),
        ({"mask": "m", "mode": "fused"}, "^mode: expected .* with mask, got 'fused'"),
        ({"mask": "", "mode": "bsp"}, "^mask: expected the name of an edge array"),
        *(
            ({"edge_weights": "ht", "mode": mode}, "mode: .* with edge_weights='ht', got")
            for mode in ("queue", "fused", "bsp")
        ),
    ],
)
def test_options_that_a_mode_does_not_have_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        pgs.PGSampler([3], **options)


@pytest.mark.parametrize("name", ["fanouts", "seed", "epoch", "fanout", "replaced"])
def test_options_of_steps_cannot_be_assigned(name: str) -> None:
    sampler = pgs.research.KHop([2], seed=1)
    before = repr(sampler)
    with pytest.raises(AttributeError):
        setattr(sampler, name, [3])
    assert repr(sampler) == before
