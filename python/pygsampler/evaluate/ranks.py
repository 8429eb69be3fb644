"""``Ranks``, and the measures of OGB from scores that there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch

from pygsampler._engine.checks import integer
from pygsampler.evaluate.arguments import one_of, real, tensor

__all__ = ["EXACT", "TIES", "Counts", "Excluded", "Ranks", "Ties", "hits_at", "rank_scores"]

Ties = Literal["mean", "optimistic", "pessimistic"]
TIES = "mean", "optimistic", "pessimistic"
Excluded = tuple[torch.Tensor, torch.Tensor] | torch.Tensor
# The most candidates that are counted at once, in float32.
EXACT = 1 << 24
# Scores that are compared at once.
_CHUNK = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Ranks:
    """Ranks of true links among their candidates, returned by ``rank`` and ``rank_scores``.

    The measures are means over all links, and NaN if there are none. Results of several
    calls, such as one for each edge type, join to ``Ranks(torch.cat(ranks), torch.cat(numbers))``.
    """

    ranks: torch.Tensor
    """The rank of each link, from 1, the best: float64, shape [links], or [2, links] with
    ``side="both"``, whose first row replaces the sources. A mean of ties may end with a half."""

    num_candidates: torch.Tensor
    """The number of candidates that each link was compared with, without itself: int64, in the
    shape of ``ranks``."""

    @property
    def mrr(self) -> float:
        """The mean reciprocal rank, from 0 to 1."""
        return float(self.ranks.reciprocal().mean())

    @property
    def mean_rank(self) -> float:
        """The mean of the ranks, 1 at best."""
        return float(self.ranks.mean())

    @property
    def auc(self) -> float:
        """The mean share of a link's candidates that score less than the link does.

        With ``ties="mean"`` a tie counts as one half, and the share is the area under the ROC curve
        of one link and its candidates. Links without candidates do not count.
        """
        return float((1 - (self.ranks - 1) / self.num_candidates).nanmean())

    def hits(self, k: int) -> float:
        """Returns hits@k: the share of links whose rank is at most ``k``."""
        return float((self.ranks <= integer(k, "k", 1)).double().mean())

    def __repr__(self) -> str:
        return (
            f"Ranks(links={self.ranks.shape[-1]}, mrr={self.mrr:.4f}, hits(1)={self.hits(1):.4f}, "
            f"hits(10)={self.hits(10):.4f}, mean_rank={self.mean_rank:.1f})"
        )


class Counts:
    """The numbers of candidates that were compared with each link, above it, and not below it."""

    def __init__(self, links: int, device: torch.device) -> None:
        self.above = torch.zeros(links, dtype=torch.float64, device=device)
        self.not_below = torch.zeros_like(self.above)
        self.total = torch.zeros(links, dtype=torch.int64, device=device)

    def add(self, block: slice, true: torch.Tensor, scores: torch.Tensor) -> None:
        """Compares the scores of the links ``block``, [links], with those of candidates."""
        # On the CPU torch sums float32 several times as fast as truth values, which are smaller.
        dtype = torch.bool if scores.is_cuda else torch.float32
        flags = torch.empty(scores.shape, dtype=dtype, device=scores.device)
        of = true.unsqueeze(1)
        self.above[block] += torch.gt(scores, of, out=flags).sum(1)
        self.not_below[block] += torch.ge(scores, of, out=flags).sum(1)
        self.total[block] += scores.shape[1]

    def exclude(self, block: slice, excluded: Excluded) -> None:
        """Takes off the totals what was added with NaN for a score."""
        if isinstance(excluded, tuple):
            rows, _ = excluded
            self.total[block].index_add_(0, rows, torch.full_like(rows, -1))
        else:
            self.total[block] -= excluded.sum(1)

    def ranks(self, ties: Ties) -> Ranks:
        """Returns the ranks, by one of ``TIES``."""
        if ties == "mean":
            return Ranks((self.above + self.not_below) / 2 + 1, self.total)
        return Ranks((self.above if ties == "optimistic" else self.not_below) + 1, self.total)


@torch.no_grad()
def rank_scores(positive: Any, negative: Any, *, ties: Ties = "mean") -> Ranks:
    """Ranks the score of each true link among the scores of its negatives.

    With ``ties="mean"`` the measures are those of OGB's evaluator for ogbl-citation2 and
    ogbl-wikikg2 (Hu et al., "Open Graph Benchmark", 2020).

    Parameters
    ----------
    positive : array of shape [links]
        The scores of the true links: floats or integers.
    negative : array of shape [links, n]
        The scores of n negatives for each, on the same device.
    ties : str
        ``"mean"``, ``"optimistic"`` or ``"pessimistic"``, as for ``rank``.

    Returns
    -------
    Ranks
        On the device of the scores.

    Raises
    ------
    TypeError, ValueError
        For other dtypes, shapes and devices, and for a score that is NaN.
    """
    one_of(ties, "ties", TIES)
    true = _number_tensor(positive, "positive", 1)
    others = _number_tensor(negative, "negative", 2)
    if len(others) != len(true):
        raise ValueError(f"negative: expected {len(true)} rows as positive, got {len(others)}")
    _check_device(others, true)
    _refuse_nan(true, "positive")
    counts = Counts(len(true), true.device)
    rows = max(1, _CHUNK // max(1, others.shape[1]))
    for start in range(0, len(true), rows):
        block = slice(start, start + rows)
        _refuse_nan(others[block], "negative")
        for columns in torch.split(others[block], EXACT, 1):
            counts.add(block, true[block], columns)
    return counts.ranks(ties)


@torch.no_grad()
def hits_at(positive: Any, negative: Any, k: int) -> float:
    """Returns OGB's hits@k: the share of true links above the k-th best of all negatives.

    This is the measure of ogbl-ppa, ogbl-collab and ogbl-ddi (Hu et al., "Open Graph Benchmark",
    2020), where all links share one pool of negatives; ``Ranks.hits`` is the one of links with
    candidates of their own. It is 1 if there are fewer than ``k`` negatives.

    Parameters
    ----------
    positive : array of shape [links]
        The scores of the true links, at least one: floats or integers.
    negative : array of shape [n]
        The scores of the negatives, on the same device.
    k : int
        1 or more.

    Raises
    ------
    TypeError, ValueError
        For other dtypes, shapes and devices, and for a score that is NaN.
    """
    integer(k, "k", 1)
    true = _number_tensor(positive, "positive", 1)
    others = _number_tensor(negative, "negative", 1)
    _check_device(others, true)
    if not len(true):
        raise ValueError("positive: expected at least one score, got none")
    _refuse_nan(true, "positive")
    _refuse_nan(others, "negative")
    if len(others) < k:
        return 1.0
    return float((true > others.topk(k).values[-1]).double().mean())


def _number_tensor(value: Any, where: str, dims: int) -> torch.Tensor:
    scores = tensor(value, where)
    if scores.dim() != dims:
        shape = "[n]" if dims == 1 else "[links, n]"
        raise ValueError(f"{where}: expected shape {shape}, got {list(scores.shape)}")
    return real(scores, where)


def _refuse_nan(scores: torch.Tensor, where: str) -> None:
    if scores.numel() and bool(scores.max().isnan()):
        raise ValueError(f"{where}: expected numbers, got NaN")


def _check_device(scores: torch.Tensor, true: torch.Tensor) -> None:
    if scores.device != true.device:
        raise ValueError(f"negative: expected it on {true.device}, got {scores.device}")
