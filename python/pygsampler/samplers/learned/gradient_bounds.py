"""MVS with bounds of gradients that training brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph, is_homogeneous
from pygsampler.samplers.learned.sampler import LearnedSampler, finite_values
from pygsampler.samplers.subgraphs import mvs

if TYPE_CHECKING:
    import torch

    from pygsampler.programs import Program

__all__ = ["GradientBounds", "gradient_norms", "mvs_trained"]

# The paper's bound has to be above 0: what is never drawn is never measured again.
_LEAST = 0.1
_TINY = 1e-30


class GradientBounds(LearnedSampler):
    """MVS with the norms of gradients of all nodes; ``mvs_trained`` returns it.

    The array is ``gradient_norm``, float64 [num_nodes]; ``LearnedSampler`` says how it is updated,
    and how a loader uses it. Weights of the loss are unbiased with any bounds, old ones too.

    Parameters
    ----------
    graph : Graph
        The graph whose nodes have norms, 1 at first.
    program : Program
        The program that samples by the norms.
    """

    def __init__(self, graph: Graph, program: Program) -> None:
        import numpy as np

        super().__init__(program, nodes={"gradient_norm": np.ones(graph.num_nodes)})

    def update(self, nodes: Any, norms: Any, *, least: float = _LEAST) -> int:
        """Takes the norms of some nodes' gradients, from the next batch on; gives the version.

        Parameters
        ----------
        nodes : int32 or int64, shape [N]
            Distinct nodes.
        norms : array or tensor of shape [N]
            Of their gradients, as ``gradient_norms`` finds them: finite numbers >= 0.
        least : float
            In (0, 1]: a bound is at least this share of the mean of ``norms``, so that each node
            is drawn now and then.

        Raises
        ------
        TypeError, ValueError
            For other shapes, nodes that are twice there, and numbers that are out of range.
        IndexError
            For what is no node.
        """
        import numpy as np

        # The nodes of a batch on a GPU are in its memory.
        given = nodes.cpu() if hasattr(nodes, "cpu") else nodes
        ids = np.asarray(Array._of_view(as_ids(given, "nodes")).cpu().numpy(), np.int64)
        values = finite_values(norms, "norms", ids.shape)
        if isinstance(least, bool) or not isinstance(least, (int, float)):
            raise TypeError(f"least: expected a number, got {describe(least)}")
        if not 0 < least <= 1:
            raise ValueError(f"least: expected a number in (0, 1], got {least}")
        state = self._state
        bounds = state.nodes["gradient_norm"]
        if len(ids):
            low, high = int(ids.min()), int(ids.max())
            if low < 0 or high >= len(bounds):
                wrong = low if low < 0 else high
                raise IndexError(f"nodes: expected nodes below {len(bounds)}, got {wrong}")
            if len(np.unique(ids)) != len(ids):
                raise ValueError("nodes: expected distinct nodes, got one twice")
            if values.min() < 0:
                raise ValueError(f"norms: expected numbers >= 0, got {values.min()}")
            values = np.maximum(values, max(least * values.mean(), _TINY))
        with state.lock:
            self._settle()
            bounds[ids] = values
            return self._changed()


def mvs_trained(
    graph: Graph, *, size: int, fanouts: Sequence[int] = (-1,), seed: int | None = None
) -> GradientBounds:
    """MVS (Cong et al., 2020) with bounds of gradients of its own, all 1 at first.

    ``mvs`` has the law. A training step tells the norms of those that stayed:

        sampler = samplers.learned.mvs_trained(graph, size=512)
        for batch in DataLoader(graph, train, sampler, batch_size=1024):
            share = batch.extra["loss_weight"]              # of batch.blocks[-1].dst_nodes
            there = share > 0
            ...                                             # scores and losses of those there
            sampler.update(nodes[there], samplers.learned.gradient_norms(losses, scores))
            (losses * share[there]).sum().backward()

    The paper measures a large batch of nodes every few steps, which ``update`` takes as well.

    Parameters
    ----------
    graph : Graph
        Whose nodes have the bounds: 8 bytes for each.
    size, fanouts
        As for ``mvs``.
    seed : int, optional
        As ``PGSampler`` has it.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value.
    """
    if not is_homogeneous(graph):
        raise TypeError(f"graph: expected a pygsampler.Graph, got {describe(graph)}")
    return GradientBounds(graph, mvs(size=size, fanouts=fanouts, seed=seed))


def gradient_norms(losses: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """Returns the norm of the gradient dL/dscores of each row of ``scores``, for MVS.

    The norm of the gradient by the output of the last layer bounds the norm of the gradient by all
    weights, up to a factor that is the same for all rows (Katharopoulos and Fleuret, 2018). It
    needs torch.

    Parameters
    ----------
    losses : tensor of shape [N]
        A loss of each row, not weighted: ``cross_entropy(scores, labels, reduction="none")``.
    scores : tensor of shape [N, ...]
        The output of the model; only row i is in loss i. The graph of gradients is not freed.

    Returns
    -------
    torch.Tensor
        [N], of the dtype of ``scores``.

    Raises
    ------
    TypeError, ValueError
        For other objects than tensors, other shapes, and losses without a gradient.
    """
    import torch

    for name, given in (("losses", losses), ("scores", scores)):
        if not isinstance(given, torch.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {describe(given)}")
    if scores.dim() < 1 or losses.shape != scores.shape[:1]:
        raise ValueError(
            f"losses: expected one for each row of scores {list(scores.shape)}, got shape "
            f"{list(losses.shape)}"
        )
    if not losses.requires_grad:
        raise ValueError("losses: expected some with a gradient, got some without")
    (found,) = torch.autograd.grad(losses.sum(), scores, retain_graph=True)
    norms: torch.Tensor = found.reshape(len(found), -1).norm(dim=1)
    return norms
