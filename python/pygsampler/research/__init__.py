"""Sampling modes that are there for comparison: NextDoor's step sampling."""

from __future__ import annotations

from pygsampler._engine.public_home import set_public_module
from pygsampler.research.step_samples import StepSamples
from pygsampler.research.step_sampling import KHop, LayerSample

__all__ = ["KHop", "LayerSample", "StepSamples"]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
