"""Sampling of papers, for comparison: NextDoor's steps, GNNSampler's locality."""

from __future__ import annotations

from pygsampler._engine.public_home import set_public_module
from pygsampler.research import nextdoor  # noqa: F401, so that users need no import
from pygsampler.research.dealt_samples import sample_on_devices
from pygsampler.research.locality import (
    locality,
    locality_importance,
    locality_layers,
    locality_saint,
    locality_scores,
)
from pygsampler.research.step_samples import StepSamples
from pygsampler.research.step_sampling import KHop, LayerSample

__all__ = [
    "KHop",
    "LayerSample",
    "StepSamples",
    "locality",
    "locality_importance",
    "locality_layers",
    "locality_saint",
    "locality_scores",
    "sample_on_devices",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
