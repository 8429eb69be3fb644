"""Samplers whose distributions are learned while the model is trained."""

from pygsampler._engine.public_home import set_public_module
from pygsampler.samplers.learned.asgcn_scores import ASGCNScores, asgcn_trained
from pygsampler.samplers.learned.bandits import Bandit, exp3, exp3m, gcn_bs, thanos
from pygsampler.samplers.learned.gradient_bounds import GradientBounds, gradient_norms, mvs_trained
from pygsampler.samplers.learned.history import History
from pygsampler.samplers.learned.pass_attention import pass_sampler
from pygsampler.samplers.learned.pass_ratio import pass_ratio
from pygsampler.samplers.learned.sampler import LearnedSampler

__all__ = [
    "ASGCNScores",
    "Bandit",
    "GradientBounds",
    "History",
    "LearnedSampler",
    "asgcn_trained",
    "exp3",
    "exp3m",
    "gcn_bs",
    "gradient_norms",
    "mvs_trained",
    "pass_ratio",
    "pass_sampler",
    "thanos",
]

set_public_module(globals())


def __dir__() -> list[str]:
    return sorted(__all__)
