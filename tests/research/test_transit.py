"""Walks by transits: the option. tests/cuda has the walks."""

from __future__ import annotations

import pickle

import pytest

import pygsampler as pgs


def test_the_cpu_ignores_it() -> None:
    graph = pgs.Graph.from_coo([0, 1, 2, 0], [1, 2, 0, 2], num_nodes=3)
    walks = [
        pgs.RandomWalk(9, mode_options={"execution": execution}, seed=4)
        .sample(graph, [0, 1, 2])
        .nodes.tolist()
        for execution in ("auto", "sample", "transit")
    ]
    assert walks[0] == walks[1] == walks[2]


def test_it_is_written_where_it_is_not_usual() -> None:
    sampler = pgs.RandomWalk(9, mode_options={"execution": "transit"}, seed=4)
    assert repr(sampler) == "RandomWalk(length=9, mode_options={'execution': 'transit'}, seed=4)"
    assert repr(pickle.loads(pickle.dumps(sampler))) == repr(sampler)
    assert repr(pgs.RandomWalk(9, seed=4)) == "RandomWalk(length=9, seed=4)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"execution": "warp"}, r"mode_options\['execution'\]: expected"),
        (
            {"execution": "transit", "layout": "packed"},
            r"mode_options\['layout'\]: expected 'auto' or 'csr' with",
        ),
    ],
)
def test_what_is_refused(options: dict[str, str], message: str) -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 0], num_nodes=2)
    with pytest.raises(ValueError, match=message):
        pgs.RandomWalk(3, seed=1, mode_options=options).sample(graph, [0])
