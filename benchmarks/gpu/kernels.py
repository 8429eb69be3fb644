"""Measures the kernels of one call by the profiler's clock."""

from __future__ import annotations

from typing import Any

import torch

import pygsampler as pgs

# The kernels that build NextDoor's scheduling index; the rest of a call by transits samples.
_INDEX = ("khop_enter32", "khop_enter64", "transit_open", "transit_place")


def call(sampler: Any, graph: pgs.Graph, seeds: torch.Tensor, batch: int) -> Any:
    """Samples or walks in torch's memory."""
    return sampler.launch(graph, seeds, epoch=0, batch=batch, form="torch").result()


def kernels(sampler: Any, graph: pgs.Graph, seeds: torch.Tensor) -> dict[str, float]:
    """Microseconds of each kernel of a call; {} where the profiler sees none."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call(sampler, graph, seeds, 0)
        torch.cuda.synchronize()
    return {
        event.key: round(event.self_device_time_total, 1)
        for event in seen.key_averages()
        if event.self_device_time_total > 0
    }


def index_share(us: dict[str, float]) -> float | None:
    """The part of a call's kernels that makes the scheduling index."""
    own = {name: of for name, of in us.items() if name.startswith(("khop_", "transit_"))}
    if not own:
        return None
    return round(sum(of for name, of in own.items() if name in _INDEX) / sum(own.values()), 3)
