"""Algorithms that draw by a model's own weights, which training changes from batch to batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler.programs import program
from pygsampler.samplers.hop_order import innermost_first

if TYPE_CHECKING:
    from pygsampler.programs import GraphMatrix, Input, Matrix, NodeList

__all__ = ["pass_sampler"]


@program
def pass_sampler(
    A: GraphMatrix,
    seeds: NodeList,
    *,
    fanouts: Sequence[int],
    W1: Input,
    W2: Input,
    W3: Input,
    features: str = "x",
    scope: int = -1,
) -> list[Matrix]:
    """PASS (Yoon et al., 2021): edges by an attention over features, drawn with replacement.

    The edge from u to v has a1 = (x_u W1) . (x_v W1), a2 likewise with W2, and a3, its weight over
    the sum of those of v's edges; att = relu(softmax(W3) . (a1, a2, a3)) + 1e-9, and each draw of v
    is its edge with the probability p = att / (the sum of att over v's edges).

    Parameters
    ----------
    fanouts : sequence of int
        Draws of each destination, outermost hop first; the paper has 10.
    W1, W2 : tensor of shape (d, h)
        Of the features; the paper's h is 64. ``sampler.update(W1=...)`` changes them.
    W3 : tensor of shape (3,)
        The public code begins with .01, .01, 1.
    features : str
        The node array of rows of d numbers.
    scope : int
        The candidates of a destination: so many of its edges, drawn uniformly; -1: all. The public
        code has 32.

    Notes
    -----
    ``block.edge_data["w"]`` is p of each drawn edge. The paper aggregates by the plain mean over
    draws, and trains W1, W2 and W3 by the mean over draws of (dL/dh_v . h_u) grad log p:
    ``pass_ratio`` has it; so has ``p / p.detach()`` of ``sampler.recompute``, with ``scope=-1``.
    """
    if len(W3) != 3:
        raise ValueError(f"W3: expected 3 numbers, got {len(W3)}")
    X = A.features(features)
    top = W3[0].maximum(W3[1]).maximum(W3[2])
    exps = [(W3[i] - top).exp() for i in range(3)]
    total = exps[0] + exps[1] + exps[2]
    blocks: list[Any] = []
    for K in innermost_first(fanouts, "fanouts"):
        C = A[:, seeds]
        if scope >= 0:
            C = C.individual_sample(scope)
        ends = X[C.row()], X[C.column()]
        a = [C.dot(ends[0] @ W, ends[1] @ W) for W in (W1, W2)]
        a.append(C.div(C.sum(axis=0), axis=0))
        score = sum((exps[i] / total * a[i] for i in (1, 2)), exps[0] / total * a[0])
        att = score.relu() + 1e-9
        B = att.div(att.sum(axis=0), axis=0)
        B = B.individual_sample(K, B, replace=True)
        blocks.insert(0, B)
        seeds = seeds | B.row()
    return blocks
