"""Sampling of papers, for comparison: modes, NextDoor's steps, GNNSampler's locality, classes."""

from __future__ import annotations

from pygsampler._engine.public_home import set_public_module
from pygsampler._sampling.extensions import (
    Family,
    register_class_frontend,
    register_family,
    register_mode,
)
from pygsampler.research import nextdoor  # noqa: F401, so that users need no import
from pygsampler.research.class_frontend import function_of_class
from pygsampler.research.dealt_samples import sample_on_devices
from pygsampler.research.locality import (
    locality,
    locality_importance,
    locality_layers,
    locality_saint,
    locality_scores,
)
from pygsampler.research.modes import MODES
from pygsampler.research.step_samples import StepSamples
from pygsampler.research.step_sampling import KHop, LayerSample, num_edges

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

for _name, _mode in MODES.items():
    register_mode(_name, _mode)
register_family("khop", Family((KHop, LayerSample), "steps", StepSamples, num_edges))
register_class_frontend(function_of_class)


def __dir__() -> list[str]:
    return sorted(__all__)
