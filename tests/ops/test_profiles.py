"""Sampling and gathering by their names in profiles of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler._engine import pending


def test_profiles_name_sampling_and_gathering() -> None:
    rng = np.random.default_rng(0)
    graph = pgs.Graph.from_coo(*rng.integers(0, 300, (2, 3000)), num_nodes=300)
    sampler, rows = pgs.PGSampler([4, 4], seed=0), torch.randn(300, 8)
    features = pgs.Features.from_tensor(rows)
    ids = torch.tensor([3, 1])
    with torch.profiler.profile() as profile:
        batch = sampler.sample(graph, np.arange(20))
        got = features[ids]
        sampler.submit(graph, np.arange(300)).result()
    names = {event.key for event in profile.key_averages()}
    assert {"pygsampler::sample", "pygsampler::gather"} <= names
    assert torch.equal(got, rows[ids])
    # The same without a profiler.
    other = sampler.sample(graph, np.arange(20), epoch=batch.epoch, batch=batch.batch)
    assert batch.input_nodes.tolist() == other.input_nodes.tolist()


def test_a_torch_without_the_flag_has_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not pending.is_profiling()
    with torch.profiler.profile():
        assert pending.is_profiling()
    monkeypatch.delattr("torch.autograd.profiler._is_profiler_enabled")
    assert not pending.is_profiling()
