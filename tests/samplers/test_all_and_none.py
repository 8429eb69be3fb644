"""Algorithms at their ends: all rows, none, no marks, and arguments of another kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sampler_laws import BOTH, check_weights_of_all_edges, of

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import layer_wise


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    random = np.random.default_rng(0)
    ones = {name: random.random(5) + 0.5 for name in ("h_source", "h_target", "locality")}
    return of(BOTH, edge_data={"w": random.random(len(BOTH))}, node_data=ones)


@pytest.mark.parametrize(
    "made",
    [
        lambda: samplers.fastgcn(nodes=[-1], weight="w", seed=1),
        lambda: samplers.ladies(nodes=[-1], method="iid", normalize=False, weight="w", seed=1),
        lambda: samplers.ladies(nodes=[-1], method="poisson", weight="w", seed=1),
        lambda: samplers.asgcn(nodes=[-1], weight="w", seed=1),
    ],
)
def test_all_rows_have_the_weights_of_their_edges(graph: pgs.Graph, made: Any) -> None:
    """Each row is there for certain, so what stands for all of them is what they are."""
    check_weights_of_all_edges(made(), graph)


def test_a_bound_of_zero_brings_no_weight(graph: pgs.Graph) -> None:
    bounded = graph.with_data(node_data={"gradient_norm": np.array([0.0, 1, 1, 1, 1])})
    share = samplers.mvs(size=2, seed=1).sample(bounded, range(5)).extra["loss_weight"].numpy()
    assert np.isfinite(share).all() and share[0] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: samplers.saint_node(budget=-1), r"budget: expected an integer from 0 .*got -1"),
        (lambda: samplers.saint_edge(budget=-1), r"budget: expected an integer from 0 .*got -1"),
        (lambda: samplers.saint_walk(roots=2, length=-1), r"length: expected an integer from 0"),
        (lambda: samplers.mvs(size=0), r"size: expected an integer from 1 .* got 0"),
        (lambda: samplers.ladies(nodes=[]), r"nodes: expected numbers of at least 1 hop, got none"),
        (lambda: samplers.mvs(size=2, fanouts=()), r"fanouts: expected numbers of at least 1 hop"),
    ],
)
def test_numbers_that_are_none(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: samplers.ladies(nodes=[2], normalize="no"), "normalize: expected True or False"),
        (
            lambda: layer_wise.labor(fanouts=[2], exact=1),
            "exact: expected True or False, got int 1",
        ),
        (lambda: layer_wise.labor(fanouts=[2], weights=None), "weights: expected True or"),
        (lambda: layer_wise.labor(fanouts=[2], layer_dependency="x"), "layer_dependency: expected"),
        (lambda: samplers.clusters(None, 3), "graph: expected a pygsampler.Graph"),
        (lambda: samplers.saint_norms(None, None), "sampler: expected one of subgraphs, got None"),
    ],
)
def test_arguments_of_another_kind(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_vectors_of_integers_are_constants() -> None:
    import torch

    wanted = samplers.graphsage(fanouts=[3, 2], seed=1)
    for fanouts in (np.array([3, 2]), torch.tensor([3, 2], dtype=torch.int32)):
        made = samplers.graphsage(fanouts=fanouts, seed=1)
        assert (made.plan, repr(made)) == (wanted.plan, repr(wanted))


def test_samplers_around_programs_explain_themselves(graph: pgs.Graph) -> None:
    """What learns, and what takes clusters, tells its program and what it costs."""
    bandit = samplers.learned.gcn_bs(graph, fanouts=[2], seed=1)
    clusters = samplers.cluster_gcn_parts(np.array([0, 0, 1, 1, 2]), seed=1)
    for sampler, name in ((bandit, "individual"), (clusters, "cross")):
        assert name in sampler.code and sampler.name in ("exp3", "cluster_gcn")
        explained = sampler.explain(graph, 3)
        assert "as traced" in explained and explained.svg.startswith("<svg")
        assert "measured, the median of 1 batches" in sampler.explain(graph, 3, batches=1)
        profile = sampler.profile(graph, [0, 1], batches=1)
        assert "in all" in profile and sum(profile.microseconds.values()) > 0
        with pytest.raises(TypeError, match=r"graph: expected a pygsampler.Graph, got NoneType"):
            sampler.explain(None)
    with pytest.raises(IndexError, match="seeds: expected numbers of clusters below 3, got 3"):
        clusters.profile(graph, [3])
