"""Sampling modes that are there for comparison: NextDoor's step sampling."""

from __future__ import annotations

from pygsampler.research.step_samples import StepSamples
from pygsampler.research.step_sampling import KHop, LayerSample

__all__ = ["KHop", "LayerSample", "StepSamples"]


def __dir__() -> list[str]:
    return sorted(__all__)
