"""AS-GCN with trained scores: the vectors w of its sampler, and what they make of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler.programs import Program
from pygsampler.samplers.layer_wise import asgcn
from pygsampler.samplers.learned.sampler import LearnedSampler, finite_values

__all__ = ["ASGCNScores", "asgcn_trained"]


class ASGCNScores(LearnedSampler):
    """AS-GCN whose scores X w are computed from features; ``asgcn_trained`` returns it.

    The arrays are ``h_source`` and ``h_target``, float64 [num_nodes]; ``LearnedSampler`` says how
    they are updated, and how a loader uses them.

    Parameters
    ----------
    program : Program
        The program that samples by the scores.
    features : float64, shape [num_nodes, d]
        X.
    w : array or tensor of shape [d, 2]
        The vectors for sources and for destinations.
    """

    def __init__(self, program: Program, features: Any, w: Any) -> None:
        self._features = features
        scores = self._scored(w)
        super().__init__(program, nodes={"h_source": scores[0], "h_target": scores[1]})

    def update(self, w: Any) -> int:
        """Sets ``w``, shape [d, 2], by which later batches score, and returns the version.

        Raises
        ------
        TypeError, ValueError
            For another shape, and for numbers that are not finite.
        """
        source, target = self._scored(w)
        state = self._state
        with state.lock:
            self._settle()
            state.nodes["h_source"][...] = source
            state.nodes["h_target"][...] = target
            return self._changed()

    def _scored(self, w: Any) -> Any:
        # Transposed, so that each column is an array of its own.
        return (self._features @ finite_values(w, "w", (self._features.shape[1], 2))).T.copy()


def asgcn_trained(
    graph: Graph,
    *,
    features: Any,
    w: Any,
    nodes: Sequence[int],
    weight: str | None = None,
    seed: int | None = None,
) -> ASGCNScores:
    """AS-GCN (Huang et al., 2018) with the scores h = X w of its paper.

    ``asgcn`` has the rule of sampling. Training changes w, by the loss and the variance of the
    sampler, and ``sampler.update(w)`` passes the new w to the sampler.

    Parameters
    ----------
    graph : Graph
    features : array or tensor of shape [num_nodes, d]
        X, of which the sampler stores a copy, float64.
    w : array or tensor of shape [d, 2]
        Column 0 scores sources, and column 1 destinations.
    nodes, weight, seed
        As for ``asgcn``.

    Raises
    ------
    TypeError, ValueError
        For other shapes, and numbers that are not finite.
    """
    if not is_homogeneous(graph):
        raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
    shape = tuple(getattr(features, "shape", ()))
    if len(shape) != 2 or shape[0] != graph.num_nodes:
        raise ValueError(
            f"features: expected a row for each of {graph.num_nodes} nodes, got shape {shape}"
        )
    rows = finite_values(features, "features", shape).copy()
    return ASGCNScores(asgcn(nodes=nodes, weight=weight, seed=seed), rows, w)
